-- What declared filters look at: numbers, and values that are not of the declared type. Texts join the facets, dates the
-- moments. `declared_said` has what each chunk or its document says, `declared_values` how each distinct of it was read.
create table generation.quantities as
select distinct field, number as value, chunk_no
from declared_said
join declared_values using (field, said)
where number is not null
order by field, value, chunk_no;

create table generation.unread_values as
select distinct field, c.document_no, left(said, 200) as said, problem
from declared_said
join declared_values using (field, said)
join generation.chunks c using (chunk_no)
where problem is not null
order by field, c.document_no, said;
