create schema if not exists {schema} authorization nornweave_owner;

revoke all on schema {schema} from public;

grant usage, create on schema {schema} to nornweave_writer;

grant usage on schema {schema} to nornweave_reader;

set search_path = {schema}, public;

set role nornweave_owner;

{tables}
insert into meta values ('schema', '{version}') on conflict (key) do nothing;

grant select, insert, update, delete on all tables in schema {schema} to nornweave_writer;

grant usage on all sequences in schema {schema} to nornweave_writer;

{grants}

reset role;

reset search_path;
