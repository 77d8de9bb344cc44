-- Everything a reader needs of some documents, built in one pass from the working file; `generation` is the new file.
-- What was stored last lies at the end of the working tables: found by their rows, a few documents cost little to read.
-- Large columns are joined to small numbered ones and never sorted or windowed: that would hold them all in memory.
create or replace temp table numbered_documents as
select
  document_id,
  rowid as place,
  (row_number() over (order by source_id, path) - 1)::integer as document_no
from documents
where document_id in (select document_id from picked);

create or replace temp table numbered as
select
  c.rowid as place,
  d.document_no,
  (row_number() over (order by d.document_no, c.position) - 1)::integer as chunk_no
from chunks c
join numbered_documents d using (document_id);

create table generation.documents as
select
  n.document_no,
  d.* exclude (pipeline, stored_at),
  d.document_id in (select document_id from not_stored) as stale
from documents d
join numbered_documents n on n.place = d.rowid;

create table generation.chunks as
select
  n.chunk_no,
  n.document_no,
  c.* exclude (document_id, terms, in_path, in_title, in_section, in_content, pairs, keys, embedding_key, fact_keys,
    settings)
from chunks c
join numbered n on n.place = c.rowid;

-- What is shown of a chunk, in one text: reading ten chunks out of the tables above decompresses a block of every column
-- for each of them. The fields are those of `StoredChunk`, in their order. This view and those below are written into
-- the arrays beside the file, and are not in it.
create or replace temp view cards as
select
  c.chunk_no,
  json_array(
    c.chunk_id,
    d.document_id,
    c.content,
    d.source_id,
    d.path,
    coalesce(c.title, d.title),
    c.section,
    c.page,
    [c.char_start, c.char_end],
    [c.line_start, c.line_end],
    c.message_ids,
    d.updated_at,
    d.revision,
    d.url,
    d.stale,
    c.metadata::json,
    c.facts::json
  )::varchar as card
from generation.chunks c
join generation.documents d using (document_no);

-- What the ledger joins facts by; `position` counts the facts of a chunk, from 0.
create table generation.fact_keys as
select key.key, chunk_no, key.position, key.side, key.attribute
from (
  select n.chunk_no, unnest(c.fact_keys) as key
  from chunks c
  join numbered n on n.place = c.rowid
)
order by key.key, chunk_no;

create or replace temp table embedded as
select n.chunk_no, e.rowid as place
from chunks c
join numbered n on n.place = c.rowid
join embeddings e using (embedding_key);

create or replace temp view vectors as
select n.chunk_no, e.vector, e.tokens
from embeddings e
join embedded n on n.place = e.rowid;

-- What each setting is described with; `position` counts the facts of a chunk, from 0.
create or replace temp table described as
select n.chunk_no, s.position, e.rowid as place
from (
  select rowid as place, unnest(settings, recursive := true) from chunks where rowid in (select place from numbered)
) s
join numbered n using (place)
join embeddings e using (embedding_key)
order by n.chunk_no, s.position;

create or replace temp view settings as
select d.rowid as setting_no, e.vector
from embeddings e
join described d on d.place = e.rowid;

create or replace temp table occurrences as
select
  n.chunk_no,
  unnest(c.terms) as term,
  unnest(c.in_path) as in_path,
  unnest(c.in_title) as in_title,
  unnest(c.in_section) as in_section,
  unnest(c.in_content) as in_content
from chunks c
join numbered n on n.place = c.rowid;

create or replace temp table terms as
select
  (row_number() over (order by term) - 1)::integer as term_id,
  term,
  count(*)::integer as document_frequency
from occurrences
group by term
order by term;

-- Where terms stand, and how often; readers weigh the fields and make BM25 of it (`inverted.py`).
create or replace temp table postings as
select t.term_id, o.* exclude (term)
from occurrences o
join terms t using (term)
order by t.term_id, o.chunk_no;

drop table occurrences;

create table generation.lengths as
select
  n.chunk_no,
  coalesce(list_sum(c.in_path), 0)::integer as in_path,
  coalesce(list_sum(c.in_title), 0)::integer as in_title,
  coalesce(list_sum(c.in_section), 0)::integer as in_section,
  coalesce(list_sum(c.in_content), 0)::integer as in_content
from chunks c
join numbered n on n.place = c.rowid
order by n.chunk_no;

create or replace temp view pairs as
select pair, n.chunk_no
from (select rowid as place, unnest(pairs) as pair from chunks where rowid in (select place from numbered))
join numbered n using (place);

create or replace temp view named as
select key as name, n.chunk_no
from (select rowid as place, unnest(keys) as key from chunks where rowid in (select place from numbered))
join numbered n using (place);

create or replace temp view lengths as from generation.lengths;

create table generation.meta (key varchar, value varchar);
