-- The files of one domain, and what is published of them. `objects` are parts of files: compressed already, or written in
-- places. `carried` names them, and is what is published.
create table if not exists meta (key text collate "C" primary key, value text not null);

create table if not exists objects (
  key text collate "C" primary key,
  content bytea not null
);

alter table objects alter column content set storage external;

-- `holder` says who writes, for those who have to wait: the advisory lock says nothing but that somebody does.
create table if not exists carried (
  one boolean primary key default true check (one),
  fence bigint not null default 0,
  holder text not null default '',
  state jsonb not null default '{}'
);

insert into carried default values on conflict do nothing;

-- Documents and chunks of the published generation, for people with SQL; `rule` says who may see a row. An index over
-- paths or texts would say how many hidden ones it found: there is none.
create table if not exists documents (
  segment text collate "C" not null,
  document_no integer not null,
  document_id text collate "C" not null,
  source_id text collate "C" not null,
  path text collate "C" not null,
  gate text,
  content_hash text,
  format text,
  title text,
  updated_at timestamptz,
  revision text,
  url text,
  metadata text,
  "text" text,
  access text,
  stale boolean,
  rule jsonb not null,
  primary key (segment, document_no)
);

create table if not exists chunks (
  segment text collate "C" not null,
  chunk_no integer not null,
  document_no integer not null,
  chunk_id text collate "C" not null,
  position integer,
  char_start integer,
  char_end integer,
  line_start integer,
  line_end integer,
  page integer,
  content text,
  context text,
  title text,
  section text,
  message_ids text[],
  token_count integer,
  metadata text,
  facts text,
  rule jsonb not null,
  primary key (segment, chunk_no),
  foreign key (segment, document_no) references documents on delete cascade
);

create index if not exists chunks_document on chunks (segment, document_no);

create index if not exists chunks_id on chunks (chunk_id);
