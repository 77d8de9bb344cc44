-- The working tables of one domain, and what is known of its generations. Texts compare by their bytes, as they do in
-- DuckDB. `generation_numbers` never goes back: a generation never takes the name of another.
create table if not exists meta (key text collate "C" primary key, value text not null);

create table if not exists documents (
  document_id text collate "C" primary key,
  source_id text collate "C" not null,
  path text collate "C" not null,
  gate text not null,
  content_hash text not null,
  pipeline text not null,
  format text not null,
  title text,
  updated_at timestamptz,
  revision text,
  url text,
  metadata text not null,
  "text" text not null,
  access text,
  stored_at timestamptz not null
);

create table if not exists chunks (
  chunk_id text collate "C" primary key,
  document_id text collate "C" not null references documents on delete cascade,
  position integer not null,
  char_start integer not null,
  char_end integer not null,
  line_start integer not null,
  line_end integer not null,
  page integer,
  content text not null,
  context text not null,
  title text,
  section text,
  message_ids text[],
  token_count integer not null,
  metadata text not null,
  embedding_key text collate "C" not null,
  terms text[] not null,
  in_path integer[] not null,
  in_title integer[] not null,
  in_section integer[] not null,
  in_content integer[] not null,
  pairs bigint[] not null,
  keys text[] not null,
  facts text,
  fact_keys text not null
);

create index if not exists chunks_document on chunks (document_id);

create index if not exists chunks_embedding on chunks (embedding_key);

-- Vectors as float32, little-endian: exact, and not searched here.
create table if not exists embeddings (
  embedding_key text collate "C" primary key,
  vector bytea not null,
  orphaned_in integer,
  tokens bytea
);

alter table embeddings add column if not exists tokens bytea;

create table if not exists not_stored (
  document_id text collate "C" primary key,
  source_id text collate "C" not null,
  path text collate "C" not null,
  gate text not null,
  pipeline text not null,
  content_hash text,
  reason text not null,
  outcome text not null,
  looked_at timestamptz not null
);

create table if not exists published (
  document_id text collate "C" primary key,
  name text collate "C" not null,
  version text not null,
  stale boolean not null
);

create table if not exists publications (
  generation text collate "C" primary key,
  run_id text not null,
  created_at timestamptz not null,
  added text[] not null,
  changed text[] not null,
  removed text[] not null
);

create sequence if not exists generation_numbers;

-- `complete` from its publication on; before that it is a candidate that no reader opens.
create table if not exists generations (
  number integer primary key,
  complete boolean not null,
  meta jsonb not null
);

create table if not exists pointer (
  one boolean primary key default true check (one),
  number integer not null references generations,
  published_at timestamptz not null
);

-- Who writes, for those who have to wait: the advisory lock says nothing but that somebody does.
create table if not exists writer (one boolean primary key default true check (one), holder text not null);
