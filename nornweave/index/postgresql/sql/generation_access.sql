-- Who may read the tables of a generation, where the roles are there. Whether somebody may see a document is decided by
-- the rule that it had when the generation was built: of every statement, one group whose role they are in.
grant select on {tables} to nornweave_reader;

grant select on {g}documents, {g}chunks to nornweave_people;

alter table {g}documents enable row level security;

alter table {g}chunks enable row level security;

create policy service on {g}documents for select to nornweave_reader using (true);

create policy service on {g}chunks for select to nornweave_reader using (true);

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

create policy people on {g}documents for select to nornweave_people using (nornweave_may_see(rule));

create policy people on {g}chunks for select to nornweave_people using (nornweave_may_see(rule));

-- What the planner expects of a column comes from all of its values. An index over paths or texts would say how many
-- hidden ones it found: there is none.
do $$
declare
  each record;
begin
  for each in
    select attrelid::regclass as relation, attname from pg_attribute
    where attrelid in ('{g}documents'::regclass, '{g}chunks'::regclass) and attnum > 0
  loop
    execute format('alter table %s alter column %I set statistics 0', each.relation, each.attname);
  end loop;
end
$$;
