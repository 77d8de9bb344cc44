"""The tables of a mirror and the statements about them; ``:first`` to ``:last`` are keys that start with a prefix."""

from __future__ import annotations

TABLES = (
    """
    create table if not exists records (
      key text primary key,
      document text not null,
      size integer not null,
      digest text not null,
      pass integer not null,
      verified_at real not null,
      body blob not null
    ) without rowid
    """,
    "create index if not exists records_of_document on records (document, key)",
    """
    create table if not exists documents (
      path text primary key,
      mark text not null,
      size integer not null
    ) without rowid
    """,
    """
    create table if not exists reading (
      id integer primary key check (id = 1),
      scope text not null,
      pass integer not null,
      is_full integer not null,
      is_complete integer not null,
      position text not null,
      since text not null,
      next_since text not null,
      listed text not null,
      began_at real not null,
      full_at real not null,
      listed_at real not null
    )
    """,
)
START = "insert into reading values (1, :scope, 0, 1, 1, 'null', 'null', 'null', '[]', 0, 0, 0)"
STORE = """
insert into records (key, document, size, digest, pass, verified_at, body)
values (:key, :document, :size, :digest, :pass, :at, :body)
on conflict (key) do update
set document = excluded.document, body = excluded.body, size = excluded.size, digest = excluded.digest,
  pass = excluded.pass, verified_at = excluded.verified_at
"""
MARK = "insert into documents values (:path, :mark, :size) on conflict (path) do update set mark = :mark, size = :size"
# Keys that start with a prefix.
CONFIRM = "update records set pass = :pass, verified_at = :at where key >= :first and key < :last"
KEEP = "update records set pass = :pass where key >= :first and key < :last"
# Keys are chosen first: bodies would be sorted with them.
OLDEST = """
select key, body
from records
where key in (
  select key
  from records
  where key >= :first and key < :last and verified_at < :before
    and (not :is_named or pass = (select pass from reading))
  order by verified_at, key
  limit :limit
)
order by verified_at, key
"""
# A document was confirmed when the last of its records was.
DOCUMENTS = """
select path, mark, documents.size, min(verified_at)
from documents
join records on document = path
group by path
order by path
"""
UNDER = "select key, body from records where key >= :first and key < :last order by key"
SURVIVING = """
select key, body
from records
where key >= :first and key < :last
  and pass >= (select case when is_full and not is_complete then pass else 0 end from reading)
order by key
"""
COUNT = "select count(*) from records where key >= :first and key < :last"
TOUCHED = "select distinct document from records where key >= :first and key < :last"
REMOVE = "delete from records where key >= :first and key < :last"
BEFORE = "select document, digest, verified_at from records where key = ?"
STALE = "select distinct document from records where key >= :first and key < :last and pass < :pass"
REMOVE_STALE = "delete from records where key >= :first and key < :last and pass < :pass"
