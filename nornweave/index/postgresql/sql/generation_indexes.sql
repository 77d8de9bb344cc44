create unique index on {g}chunks (chunk_id);

create index on {g}chunks (document_no);
