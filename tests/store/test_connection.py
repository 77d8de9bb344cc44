"""Connections to DuckDB: what each of them has in common."""

import sys
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import duckdb
import pytest

from nornweave.index.connection import connect_memory, connect_reader, connect_readers


@pytest.mark.skipif(find_spec("pandas") is not None, reason="what is installed is loaded once")
def test_parameters_do_not_search_for_pandas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []

    class Finder:
        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> None:
            searched.append(name)

    monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])
    with closing(connect_memory(spill=tmp_path)) as connection:
        assert connection.execute("select ?, ?", ["a", 1]).fetchall() == [("a", 1)]
    assert searched == []
    assert "pandas" not in sys.modules, "nobody else takes it for installed"


@pytest.mark.parametrize("made", [
    "create view documents as select content as text from read_text('{secret}')",
    "create table documents as select 'A' as text;"
    "create macro lower(x) as (select content from read_text('{secret}'))",
    "create view documents as select file as text from glob('{secret}*')",
])  # fmt: skip
def test_what_came_from_elsewhere_reads_no_other_file(tmp_path: Path, made: str) -> None:
    (tmp_path / "secret").write_text("the token")
    file = tmp_path / "generation.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute(made.format(secret=tmp_path / "secret"))
    readers = {
        "documents": connect_reader(file),
        "forged.documents": connect_readers({"forged": file}, spill=tmp_path / "s"),
    }
    for table, connection in readers.items():
        with closing(connection), pytest.raises(duckdb.PermissionException, match="disabled"):
            if "." in table:
                connection.execute("use forged")
            connection.execute(f"select lower(text) from {table}").fetchall()
