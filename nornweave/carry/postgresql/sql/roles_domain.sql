grant usage on schema {schema} to nornweave_people;

grant select on meta, carried, objects, documents, chunks to nornweave_reader;

grant select on documents, chunks to nornweave_people;

-- Who may read documents and chunks. Whether somebody may see a document is decided by the rule that it had when its
-- segment was built: of every statement, one group whose role they are in.
alter table documents enable row level security;

alter table chunks enable row level security;

-- Plans say of each of their parts how often it ran, also for rows that are hidden: whoever compares a column with a
-- prefix would read texts letter by letter. What a function does inside is in no plan.
create or replace function nornweave_may_see(rule jsonb) returns boolean
language plpgsql stable parallel safe set search_path = pg_catalog
as $$
begin
  return not exists (
    select from jsonb_array_elements(rule) as statement
    where not exists (
      select from jsonb_array_elements_text(statement) as named
      join pg_roles on rolname = 'group:' || named
      where pg_has_role(current_user, pg_roles.oid, 'member')
    )
  );
end
$$;

do $$
declare
  each record;
begin
  for each in select unnest(array['documents', 'chunks']) as name loop
    execute format('drop policy if exists service on %I', each.name);
    execute format('drop policy if exists writing on %I', each.name);
    execute format('drop policy if exists people on %I', each.name);
    execute format('create policy service on %I for select to nornweave_reader using (true)', each.name);
    execute format('create policy writing on %I to nornweave_writer using (true)', each.name);
    execute format('create policy people on %I for select to nornweave_people using (nornweave_may_see(rule))', each.name);
  end loop;
end
$$;

-- What the planner expects of a column comes from all of its values.
do $$
declare
  each record;
begin
  for each in
    select attrelid::regclass as relation, attname from pg_attribute
    where attrelid in ('documents'::regclass, 'chunks'::regclass) and attnum > 0
  loop
    execute format('alter table %s alter column %I set statistics 0', each.relation, each.attname);
  end loop;
end
$$;
