-- Everything a reader needs of one domain, built in one pass from the working file; `generation` is the new file.
-- Large columns are joined to small numbered ones and never sorted or windowed: that would hold them all in memory.
create or replace temp table numbered_documents as
select
  document_id,
  (row_number() over (order by source_id, path) - 1)::integer as document_no
from documents;

create or replace temp table numbered as
select
  c.chunk_id,
  d.document_no,
  (row_number() over (order by d.document_no, c.position) - 1)::integer as chunk_no
from chunks c
join numbered_documents d using (document_id);

create table generation.documents as
select
  n.document_no,
  d.* exclude (gate, pipeline, stored_at),
  d.document_id in (select document_id from not_stored) as stale
from documents d
join numbered_documents n using (document_id);

create table generation.chunks as
select
  n.chunk_no,
  n.document_no,
  c.* exclude (document_id, terms, frequencies, pairs, keys, embedding_key)
from chunks c
join numbered n using (chunk_id);

-- What is shown of a chunk, in one column: a reader copies it into a file when it opens the generation (`cards.py`), for
-- reading ten chunks out of the tables above decompresses a block of every column for each of them. Filled a slice at a
-- time, because joining all of it at once would hold it in memory.
create table generation.cards (chunk_no integer, card varchar using compression uncompressed);

insert into generation.cards
select
  c.chunk_no,
  to_json({
    chunk_id: c.chunk_id,
    document_id: d.document_id,
    content: c.content,
    source_id: d.source_id,
    path: d.path,
    title: coalesce(c.title, d.title),
    section: c.section,
    page: c.page,
    char_range: [c.char_start, c.char_end],
    line_range: [c.line_start, c.line_end],
    message_ids: c.message_ids,
    updated_at: d.updated_at,
    revision: d.revision,
    url: d.url,
    stale: d.stale,
    metadata: c.metadata::json,
    claims: c.claims::json
  })::varchar as card
from generation.chunks c
join generation.documents d using (document_no)
where c.chunk_no between $first and $last
order by c.chunk_no;

create table generation.vectors as
select n.chunk_no, e.vector
from chunks c
join numbered n using (chunk_id)
join embeddings e using (embedding_key);

create or replace temp table occurrences as
select
  n.chunk_no,
  unnest(c.terms) as term,
  unnest(c.frequencies) as frequency,
  list_sum(c.frequencies)::float as length
from chunks c
join numbered n using (chunk_id);

create table generation.terms as
select
  (row_number() over (order by term) - 1)::integer as term_id,
  term,
  count(*)::integer as document_frequency
from occurrences
group by term
order by term;

-- BM25 (Robertson & Zaragoza 2009, eq. 3.15) without its idf factor, which a query supplies: what a term counts for in
-- a chunk, in [0, k1 + 1).
create table generation.postings as
with statistics as (
  select coalesce(avg(coalesce(list_sum(frequencies), 0)), 0) as average_length
  from chunks
)
select
  t.term_id,
  o.chunk_no,
  (o.frequency * ($k1 + 1) / (o.frequency + $k1 * (1 - $b + $b * o.length / s.average_length)))::float as weight
from occurrences o
join generation.terms t using (term)
cross join statistics s
order by t.term_id, o.chunk_no;

create table generation.pairs as
select pair, n.chunk_no
from (select chunk_id, unnest(pairs) as pair from chunks)
join numbered n using (chunk_id)
order by pair, n.chunk_no;

create or replace temp table named as
select key as name, n.chunk_no
from (select chunk_id, unnest(keys) as key from chunks)
join numbered n using (chunk_id);

create table generation.names as
select
  (row_number() over (order by name) - 1)::integer as name_id,
  name,
  count(*)::integer as chunk_count
from named
group by name
order by name;

create table generation.chunk_names as
select name_id, chunk_no
from named
join generation.names using (name)
order by name_id, chunk_no;

create table generation.failures as
select
  source_id,
  path,
  reason,
  looked_at,
  document_id in (select document_id from documents) as stale
from not_stored
where outcome <> 'skipped';

create table generation.publications as from publications;

create table generation.meta (key varchar, value varchar);
