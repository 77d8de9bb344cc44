-- Facts of two sides that share a name and state comparable properties; `fact_keys` holds those of all domains.
-- A key that very many facts have says nothing.
create temp table fact_pairs as
with shared as (
  select key
  from fact_keys
  group by key
  having count(*) <= $most and count(distinct side) > 1
),
kept as (
  select k.*
  from fact_keys k
  semi join shared using (key)
)
select distinct
  a.segment_no as first_segment,
  a.chunk_no as first_chunk,
  a.position as first_position,
  b.segment_no as second_segment,
  b.chunk_no as second_chunk,
  b.position as second_position
from kept a
join kept b using (key)
where a.side < b.side
and not (a.side = 'code' and b.side = 'configuration')
and (
  a.attribute = b.attribute
  or (a.attribute in ('default', 'value', 'setting', 'minimum', 'maximum')
      and b.attribute in ('default', 'value', 'setting', 'minimum', 'maximum'))
);
