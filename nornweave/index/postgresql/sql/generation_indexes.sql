create unique index on {g}documents (source_id, path);

create index on {g}documents using hash (path);

create unique index on {g}chunks (chunk_id);

create index on {g}chunks (document_no);

create index on {g}facet_values (field, part);

create index on {g}moments (field, first);

create index on {g}quantities (field, value);
