"""Read the passages of all published generations: what the ledger compares sentence by sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from nornweave.core.errors import StoreError
from nornweave.disagree.assertions.pairing import AssertingPassage
from nornweave.index.connection import Connection, connect_readers
from nornweave.index.searching.generation_file import DataFile


def read_passages(files: Mapping[str, Sequence[DataFile]]) -> list[AssertingPassage]:
    """Return the chunks of generations, by domain, source, path and place.

    Args:
        files: domain → files of its generation, one for each segment.

    Raises:
        StoreError: a file cannot be read.
    """
    with TemporaryDirectory(prefix="nornweave-ledger-") as spill:
        named = {
            f"{domain}_{number:d}": (domain, file)
            for domain in sorted(files)
            for number, file in enumerate(files[domain])
        }
        connection = connect_readers({name: file.path for name, (_, file) in named.items()}, spill=Path(spill))
        return _read(connection, named)


def _read(connection: Connection, named: Mapping[str, tuple[str, DataFile]]) -> list[AssertingPassage]:
    try:
        passages = [
            passage for name, (domain, file) in named.items() for passage in _passages(connection, name, file, domain)
        ]
        # Those of a document are in one file, in order.
        return sorted(passages, key=lambda each: (each.domain, each.source_id, each.path))
    except duckdb.Error as error:
        raise StoreError(f"the passages of {[*named]} cannot be read ({error}); run `nornweave sync`") from error
    finally:
        connection.close()


def _passages(connection: Connection, name: str, file: DataFile, domain: str) -> Iterator[AssertingPassage]:
    rows = connection.execute(
        f"""
        select
          c.content, c.char_start, c.line_start, coalesce(c.page, len(c.message_ids), 0) > 0, c.chunk_id,
          coalesce(c.title, d.title), c.section, d.source_id, d.path, d.updated_at, d.revision
        from {name}.chunks c
        join {name}.documents d using (document_no)
        where c.document_no not in (select unnest(?::integer[]))
        order by c.chunk_no
        """,
        [str([*file.gone])],
    ).fetchall()
    for text, start, line, has_no_lines, chunk_id, title, section, source_id, path, updated_at, revision in rows:
        yield AssertingPassage(
            text=text, start=start, line=None if has_no_lines or line is None else line - 1, place=chunk_id,
            domain=domain, source_id=source_id, path=path, title=title, section=section, updated_at=updated_at,
            revision=revision,
        )  # fmt: skip
