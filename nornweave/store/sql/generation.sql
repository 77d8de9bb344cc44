-- Everything a reader needs of one domain, built in one pass from the working file; `generation` is the new file.
create or replace temp table numbered as
select
  c.chunk_id,
  d.document_no,
  (row_number() over (order by d.document_no, c.position) - 1)::integer as chunk_no
from chunks c
join (
  select document_id, (row_number() over (order by source_id, path) - 1)::integer as document_no
  from documents
) d using (document_id);

create table generation.documents as
select
  (row_number() over (order by source_id, path) - 1)::integer as document_no,
  document_id,
  source_id,
  path,
  content_hash,
  format,
  title,
  updated_at,
  revision,
  url,
  metadata,
  "text",
  document_id in (select document_id from not_stored) as stale
from documents
order by document_no;

create table generation.chunks as
select
  n.chunk_no,
  n.document_no,
  c.* exclude (document_id, terms, frequencies, embedding_key)
from chunks c
join numbered n using (chunk_id);

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

-- BM25 (Robertson & Zaragoza 2009, eq. 3.15) with the non-negative idf of Lucene: the weights are final, because a
-- generation never changes; a query only sums them.
create table generation.postings as
with statistics as (
  select
    (select count(*) from chunks)::double as chunk_count,
    (select coalesce(avg(coalesce(list_sum(frequencies), 0)), 0) from chunks)::double as average_length
)
select
  t.term_id,
  o.chunk_no,
  (
    ln(1 + (s.chunk_count - t.document_frequency + 0.5) / (t.document_frequency + 0.5))
    * o.frequency * ($k1 + 1)
    / (o.frequency + $k1 * (1 - $b + $b * o.length / s.average_length))
  )::float as weight
from occurrences o
join generation.terms t using (term)
cross join statistics s
order by t.term_id, o.chunk_no;

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
