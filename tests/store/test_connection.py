"""Connections to DuckDB: what each of them has in common."""

import sys
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest

from nornweave.index.connection import connect_memory


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
