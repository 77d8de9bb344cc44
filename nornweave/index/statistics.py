"""Numbers of a whole generation, for those who describe it without loading it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb

from nornweave.core.errors import StoreError
from nornweave.index.connection import connect_reader

_STATEMENT = """
select count(*) as chunks, coalesce(sum(in_path), 0) as in_path, coalesce(sum(in_title), 0) as in_title,
  coalesce(sum(in_section), 0) as in_section, coalesce(sum(in_content), 0) as in_content,
  (select count(*) from documents) as documents
from lengths
"""


def statistics_of(files: Sequence[Path]) -> Mapping[str, int]:
    """Return counts of chunks and documents, and the total length of each field in terms, over all files together.

    Raises:
        StoreError: one cannot be read.
    """
    total: Counter[str] = Counter()
    for file in files:
        total.update(_statistics(file))
    return dict(total)


def _statistics(file: Path) -> Mapping[str, int]:
    connection = connect_reader(file)
    try:
        cursor = connection.execute(_STATEMENT)
        names = [column[0] for column in cursor.description or ()]
        values = cursor.fetchone() or ()
        return {name: int(value) for name, value in zip(names, values, strict=True)}
    except duckdb.Error as error:
        raise StoreError(f"{file}: cannot be read ({error}); roll back, or sync again") from error
    finally:
        connection.close()
