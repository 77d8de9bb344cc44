-- The tables of one generation; `{g}` is its prefix. They are filled once, in the transaction that creates them.
-- Lists of chunk numbers are int32, little-endian, ascending; how often a term stands in a field is uint16.
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
  facts text
);

create table {g}cards (chunk_no integer primary key, card text not null);

create table {g}fact_keys (
  key text collate "C" not null,
  chunk_no integer not null,
  position integer not null,
  side text not null,
  attribute text not null
);

create table {g}vectors (chunk_no integer primary key, vector vector({dimensions}) not null);

create table {g}terms (
  term text collate "C" primary key,
  chunk_nos bytea not null,
  in_path bytea not null,
  in_title bytea not null,
  in_section bytea not null,
  in_content bytea not null
);

create table {g}pairs (pair bigint primary key, chunk_nos bytea not null);

create table {g}names (name text collate "C" primary key, chunk_nos bytea not null);

-- What a reader holds in memory: the document of each chunk, and the length of its fields.
create table {g}arrays (name text primary key, numbers bytea not null);

create table {g}facet_values (
  field text collate "C" not null,
  part text collate "C" not null,
  value_no integer not null,
  value text collate "C" not null
);

create table {g}facets (value_no integer primary key, chunk_nos bytea not null);

create table {g}moments (
  field text collate "C" not null,
  first timestamptz not null,
  last timestamptz not null,
  chunk_no integer not null
);

create table {g}quantities (field text collate "C" not null, value double precision not null, chunk_no integer not null);

create table {g}unread_values (
  field text collate "C" not null,
  document_no integer not null,
  said text not null,
  problem text not null
);
