create unique index on {g}documents (source_id, path);

create unique index on {g}chunks (chunk_id);

create index on {g}chunks (document_no);
