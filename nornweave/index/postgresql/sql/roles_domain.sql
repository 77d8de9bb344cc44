grant usage on schema {schema} to nornweave_people;

grant select on generations, pointer to nornweave_reader;
