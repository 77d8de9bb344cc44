-- The tables of one generation; `{g}` is its prefix. They are filled once, in the transaction that creates them.
-- `file` is the generation as readers open it, in parts, and then its arrays: it is compressed already. `documents` and `chunks` are for
-- people with SQL, and say where a chunk stood that is not served any more; `rule` says who may see a row.
create table {g}file (part integer primary key, content bytea not null);

alter table {g}file alter column content set storage external;

create table {g}documents (
  document_no integer primary key,
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
  rule jsonb not null
);

create table {g}chunks (
  chunk_no integer primary key,
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
  rule jsonb not null
);
