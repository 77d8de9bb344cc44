-- Who may read the tables of a generation, where the roles are there. Whether somebody may see a document is decided by
-- the rule that it had when the generation was built: of every statement, one group whose role they are in.
grant select on {tables} to nornweave_reader;

grant select on {g}documents, {g}chunks to nornweave_people;

alter table {g}documents enable row level security;

alter table {g}chunks enable row level security;

create policy service on {g}documents for select to nornweave_reader using (true);

create policy service on {g}chunks for select to nornweave_reader using (true);

create policy people on {g}documents for select to nornweave_people using (
  not exists (
    select from jsonb_array_elements(rule) as statement
    where not exists (
      select from jsonb_array_elements_text(statement) as named
      join pg_roles on rolname = 'group:' || named
      where pg_has_role(current_user, pg_roles.oid, 'member')
    )
  )
);

create policy people on {g}chunks for select to nornweave_people using (
  exists (select from {g}documents where {g}documents.document_no = {g}chunks.document_no)
);
