-- What filters look at, taken out of the metadata once, so that no query parses JSON: which chunks have which value of
-- a field, and when. What a chunk says of itself goes before what its document says.

-- How what is kept and what is asked for is written, so that both are always alike: composed (NFC), without regard to
-- case, blank space collapsed; of a name its words alone. A reader finds these macros in the same file.
create macro generation.folded(stated) as lower(nfc_normalize(trim(regexp_replace(stated, '[\s\p{Z}]+', ' ', 'g'))));
create macro generation.name_words(stated) as
trim(regexp_replace(lower(nfc_normalize(stated)), '[^\p{L}\p{M}\p{N}]+', ' ', 'g'));

create or replace temp macro wanted() as
[
  'language', 'node_type', 'format', 'source_type', 'channel', 'participants', 'authors', 'author', 'tags',
  'message_timestamp', 'message_timestamps', 'publication_date', 'kind', 'touches', 'changed'
];

create or replace temp table stated as
with said as (
  select
    c.chunk_no,
    d.format,
    unnest(wanted()) as field,
    unnest(json_extract(c.metadata, wanted())) as by_chunk,
    unnest(d.said) as by_document
  from generation.chunks c
  join (
    select document_no, format, json_extract(metadata, wanted()) as said
    from generation.documents
  ) d using (document_no)
),
settled as (
  select
    chunk_no,
    field,
    coalesce(by_chunk, by_document, case when field in ('format', 'source_type') then to_json(format) end) as said
  from said
)
select
  chunk_no,
  field,
  unnest(
    case json_type(said)
      when 'ARRAY' then json_extract_string(said, '$[*]')
      else [json_extract_string(said, '$')]
    end
  ) as value
from settled
where said is not null;

create or replace temp table facet_rows as
select chunk_no, field, value
from (
  select
    chunk_no,
    field,
    case field
      when 'authors' then generation.name_words(value)
      when 'channel' then ltrim(generation.folded(value), '#')
      when 'changed' then nfc_normalize(value)
      else generation.folded(value)
    end as value
  from (
    select chunk_no, field, value
    from stated
    where field not in ('author', 'message_timestamp', 'message_timestamps', 'publication_date')
    union all
    select chunk_no, 'authors', value
    from stated
    where field = 'author' and chunk_no not in (select chunk_no from stated where field = 'authors')
    union all
    select chunk_no, 'heading_path', section
    from generation.chunks
  )
  union all
  select c.chunk_no, 'path', nfc_normalize(d.path)
  from generation.chunks c
  join generation.documents d using (document_no)
  union all
  select distinct chunk_no, field, generation.folded("text")
  from declared_said
  join declared_values using (field, said)
  where "text" is not null
)
where value <> '';

create or replace temp table numbered_values as
select
  (row_number() over (order by field, value) - 1)::integer as value_no,
  field,
  value
from (select distinct field, value from facet_rows);

-- Each value stands here under every part that it can be looked up by: a name by its words, a heading path by its
-- headings, a path by its components and, when no component is known, by ''; anything else by itself.
create table generation.facet_values as
select
  field,
  unnest(
    case field
      when 'authors' then list_distinct(string_split(value, ' '))
      when 'heading_path' then list_distinct(string_split(value, ' > '))
      when 'path' then list_distinct(string_split('/' || value, '/'))
      when 'changed' then list_distinct(string_split('/' || value, '/'))
      else [value]
    end
  ) as part,
  value_no,
  value
from numbered_values
order by field, part, value_no;

create table generation.facets as
select v.value_no, r.chunk_no
from facet_rows r
join numbered_values v using (field, value)
order by v.value_no, r.chunk_no;

-- Moments are kept as what they cover, both ends included: a day, month or year that stands without a time is the whole
-- of it. A chunk of several messages has a row for each whose time is known; the id of a Slack message is its time.
create table generation.moments as
with written as (
  select
    chunk_no,
    case field when 'message_timestamps' then 'message_timestamp' else field end as field,
    case
      when regexp_full_match(value, '\d{4}') then value || '-01-01'
      when regexp_full_match(value, '\d{4}-\d{2}') then value || '-01'
      else value
    end as day,
    case
      when regexp_full_match(value, '\d{4}') then interval 1 year
      when regexp_full_match(value, '\d{4}-\d{2}') then interval 1 month
      when regexp_full_match(value, '\d{4}[-/]\d{1,2}[-/]\d{1,2}') then interval 1 day
      else interval 1 microsecond
    end as covers
  from stated
  where field in ('message_timestamp', 'message_timestamps', 'publication_date')
  and regexp_matches(value, '^\d{4}([-/]|$)')
),
known as (
  select chunk_no, field, try_cast(day as timestamptz) as first, covers
  from written
  union all
  select c.chunk_no, 'updated_at', d.updated_at, interval 1 microsecond
  from generation.chunks c
  join generation.documents d using (document_no)
  union all
  select c.chunk_no, 'message_timestamp', to_timestamp(split_part(c.id, '.', 1)::bigint), interval 1 microsecond
  from (
    select chunk_no, unnest(message_ids) as id
    from generation.chunks
  ) c
  where c.chunk_no in (select chunk_no from stated where field = 'source_type' and lower(value) = 'slack')
  and regexp_full_match(c.id, '\d{9,10}\.\d{6}')
)
select distinct
  field,
  first,
  first + covers - interval 1 microsecond as last,
  chunk_no
from known
where first is not null
union
select field, v.first, v.last, chunk_no
from declared_said
join declared_values v using (field, said)
where v.first is not null
order by field, first, last, chunk_no;

drop table temp.declared_said;
drop table temp.declared_values;
drop table temp.stated;
drop table temp.facet_rows;
drop table temp.numbered_values;
drop macro temp.wanted;
