"""Answer NornWeave's recalls from PostgreSQL's full-text search: one table, ``tsvector`` and ``ts_rank_cd``.

    DATABASE_URL=postgresql://… AGENT_TOKEN=… python postgresql.py --table articles --port 8091

The table has the columns ``id``, ``title``, ``body``, ``url`` and ``updated_at``. Words are joined by OR: a question in
sentences seldom has all of its words in one text; ``ts_rank_cd`` puts those with most of them, close together, first.
"""

from __future__ import annotations

import os
import re

import psycopg
from psycopg import sql
from psycopg.rows import dict_row
from recall_server import EngineError, Rows, options, serve

SEARCH = """
select id, title, body, url, to_char(updated_at, 'YYYY-MM-DD"T"HH24:MI:SSTZH:TZM') as updated_at,
       ts_rank_cd(vector, query, 32) as score, count(*) over () as matched
from (select *, setweight(to_tsvector('english', title), 'A') || to_tsvector('english', body) as vector from {table})
     as texts,
     to_tsquery('english', %(words)s) as query
where vector @@ query
order by score desc, id
limit %(top_k)s
"""
OPTIONS = "-c statement_timeout=2000 -c default_transaction_read_only=on"


class Texts:
    """The table, through a connection for each question; connecting and a statement end after two seconds."""

    def __init__(self, url: str, table: str) -> None:
        self._statement = sql.SQL(SEARCH).format(table=sql.Identifier(table))
        self._url = url

    def search(self, text: str, top_k: int) -> Rows:
        """Return the best rows, best first."""
        words = " | ".join(dict.fromkeys(re.findall(r"\w+", text.lower())))
        if not words:
            return []
        try:
            with psycopg.connect(self._url, connect_timeout=2, options=OPTIONS, row_factory=dict_row) as connection:
                return connection.execute(self._statement, {"words": words, "top_k": top_k}).fetchall()
        except psycopg.Error as error:
            raise EngineError(type(error).__name__) from error


if __name__ == "__main__":
    given = options(__doc__, port=8091, table="articles").parse_args()
    serve("postgresql", Texts(os.environ["DATABASE_URL"], given.table).search, given)
