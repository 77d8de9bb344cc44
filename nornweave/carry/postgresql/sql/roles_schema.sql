create schema if not exists {schema} authorization nornweave_owner;

-- What a sync has made before there were roles belongs to whoever synced.
alter schema {schema} owner to nornweave_owner;

do $$
declare
  each record;
begin
  for each in
    select oid::regclass as relation from pg_class
    where relnamespace = '{schema}'::regnamespace and relkind in ('r', 'v', 'S')
      and not exists (select from pg_depend where objid = pg_class.oid and deptype in ('a', 'i'))  -- with their table
      and pg_get_userbyid(relowner) not in ('nornweave_owner', 'nornweave_writer')
  loop
    execute format('alter table %s owner to nornweave_owner', each.relation);
  end loop;
end
$$;

revoke all on schema {schema} from public;

grant usage on schema {schema} to nornweave_writer;

grant usage on schema {schema} to nornweave_reader;

set search_path = {schema}, public;

set role nornweave_owner;

{tables}
insert into meta values ('schema', '{version}') on conflict (key) do nothing;

-- Not on all tables: those of earlier versions for vectors are the writer's, and the owner may grant nothing on them.
do $$
declare
  each record;
begin
  for each in
    select oid::regclass as relation from pg_class
    where relnamespace = '{schema}'::regnamespace and relkind in ('r', 'v')
      and pg_get_userbyid(relowner) = 'nornweave_owner'
  loop
    execute format('grant select, insert, update, delete on %s to nornweave_writer', each.relation);
  end loop;
end
$$;

grant usage on all sequences in schema {schema} to nornweave_writer;

{grants}

reset role;

reset search_path;
