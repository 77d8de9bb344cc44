"""Answer NornWeave's recalls from SQLite's full-text search: an FTS5 table and ``bm25()``.

    AGENT_TOKEN=… python sqlite_fts5.py notes.sqlite --table notes --port 8092

The table was made by ``create virtual table notes using fts5(title, body, url unindexed, updated_at unindexed)``.
Words are joined by OR. ``bm25()`` is better the lower it is, therefore its sign is turned.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

from recall_server import EngineError, Rows, options, serve

SEARCH = """
select rowid as id, title, body, url, updated_at, -bm25("{table}", 2.0, 1.0) as score,
       (select count(*) from "{table}" where "{table}" match :words) as matched
from "{table}"
where "{table}" match :words
order by score desc, rowid
limit :top_k
"""


class Texts:
    """The table, opened for reading by each question."""

    def __init__(self, file: Path, table: str) -> None:
        if not re.fullmatch(r"\w+", table):
            raise SystemExit(f"{table!r} is no name of a table")
        self._address = f"{file.resolve().as_uri()}?mode=ro"
        self._statement = SEARCH.format(table=table)

    def search(self, text: str, top_k: int) -> Rows:
        """Return the best rows, best first."""
        words = " OR ".join(f'"{word}"' for word in dict.fromkeys(re.findall(r"\w+", text.lower())))
        if not words:
            return []
        try:
            with closing(sqlite3.connect(self._address, uri=True, timeout=2)) as connection:
                connection.row_factory = sqlite3.Row
                return [dict(row) for row in connection.execute(self._statement, {"words": words, "top_k": top_k})]
        except sqlite3.Error as error:
            raise EngineError(type(error).__name__) from error


if __name__ == "__main__":
    parser = options(__doc__, port=8092, table="notes")
    parser.add_argument("file", type=Path)
    given = parser.parse_args()
    serve("sqlite", Texts(given.file, given.table).search, given)
