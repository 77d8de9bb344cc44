-- The working file of one domain. No primary keys: DuckDB checks them eagerly, so that a delete and an insert of the
-- same key in one transaction can fail; reconciliation counts duplicates instead.
create table meta (key varchar, value varchar);

create table documents (
  document_id varchar,
  source_id varchar,
  path varchar,
  gate varchar,
  content_hash varchar,
  pipeline varchar,
  format varchar,
  title varchar,
  updated_at timestamptz,
  revision varchar,
  url varchar,
  metadata varchar,
  "text" varchar,
  stored_at timestamptz,
  access varchar
);

create table chunks (
  chunk_id varchar,
  document_id varchar,
  position integer,
  char_start integer,
  char_end integer,
  line_start integer,
  line_end integer,
  page integer,
  content varchar,
  context varchar,
  title varchar,
  section varchar,
  message_ids varchar[],
  token_count integer,
  metadata varchar,
  embedding_key varchar,
  terms varchar[],
  in_path usmallint[],
  in_title usmallint[],
  in_section usmallint[],
  in_content usmallint[],
  pairs uinteger[],
  keys varchar[],
  facts varchar,
  fact_keys struct(key varchar, position usmallint, side varchar, attribute varchar)[],
  settings struct(position usmallint, "text" varchar, embedding_key varchar)[]
);

-- Documents whose last attempt stored nothing: failed, transient (tried at every sync) or skipped on purpose. An older
-- version of one that failed stays in documents, and is stale.
create table not_stored (
  document_id varchar,
  source_id varchar,
  path varchar,
  gate varchar,
  pipeline varchar,
  content_hash varchar,
  reason varchar,
  outcome varchar,
  looked_at timestamptz
);

-- What the newest publication holds, and in which file; what differs from it is unpublished, and so is what has no file.
create table published (document_id varchar, name varchar, version varchar, stale boolean, segment varchar);

create table publications (
  generation varchar,
  run_id varchar,
  created_at timestamptz,
  added varchar[],
  changed varchar[],
  removed varchar[]
);
