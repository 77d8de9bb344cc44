"""PostgreSQL as the store: a schema per domain, tables per generation, a row that points at one."""
