-- Roles of least privilege. Run once as an administrator of the database, again for a new domain; running it again
-- changes nothing. Logins are yours: `create role ingest login in role nornweave_writer`, and so on.
--   nornweave_owner   owns the schemas and their working tables; for nobody's daily work
--   nornweave_writer  what syncs: reads and writes the working tables, makes and drops the tables of generations
--   nornweave_reader  what serves: reads, and sees every document, for NornWeave itself decides who is shown what
--   nornweave_people  people with SQL: documents and chunks that the roles `group:<name>` which they are in may see
do $$
declare
  name text;
begin
  foreach name in array array['nornweave_owner', 'nornweave_writer', 'nornweave_reader', 'nornweave_people'] loop
    if not exists (select from pg_roles where rolname = name) then
      execute format('create role %I nologin', name);
    end if;
  end loop;
end
$$;

create extension if not exists vector;
