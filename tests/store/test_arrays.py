"""The arrays beside a segment: whole or not at all, and never trusted unchecked."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import forked
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nornweave.core.errors import StoreError
from nornweave.core.types import FIELDS
from nornweave.index.connection import connect_reader
from nornweave.index.searching.arrays import (
    Arrays,
    ArrayWriter,
    arrays_file,
    check_arrays,
    open_arrays,
    remove_arrays,
    writing_arrays,
)
from nornweave.index.searching.inverted import load_names, write_names, write_terms
from nornweave.index.searching.vectors import VectorMatrix

VALUES = np.arange(5000, dtype=np.float32)
CHILD = """
import sys, time
from pathlib import Path
import numpy as np
from nornweave.index.searching.arrays import writing_arrays

with writing_arrays(Path(sys.argv[1]), "one") as writer:
    writer.reserve("values", np.float32, (5000,))[:2500] = np.arange(2500)
    print("writing", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    file = tmp_path / "gen-000001-000.duckdb"
    file.write_bytes(b"a segment")
    return file


def write(segment: Path, of: str = "one") -> None:
    with writing_arrays(segment, of) as writer:
        writer.add("values", VALUES)
        writer.add("none", np.zeros(0, np.int64))
        writer.extend("parts", np.int64, (VALUES[start : start + 7] for start in range(0, 5000, 7)))
        writer.extend("no parts", np.int64, ())
        writer.add("bytes", np.arange(7, dtype=np.int8))


def is_whole(arrays: Arrays) -> bool:
    assert (arrays["none"].shape, arrays["no parts"].shape) == ((0,), (0,))
    assert arrays["parts"].dtype == np.int64
    same = arrays["values"].tolist() == arrays["parts"].tolist() == VALUES.tolist()
    return same and arrays["bytes"].tolist() == [*range(7)]


def test_what_was_written_is_mapped(segment: Path) -> None:
    write(segment)
    assert is_whole(open_arrays(segment, "one"))
    write(segment, "two")
    assert is_whole(open_arrays(segment, "two"))
    assert {file.name for file in segment.parent.iterdir()} == {segment.name, arrays_file(segment).name}


def test_what_is_mapped_cannot_be_written_to(segment: Path) -> None:
    write(segment)
    arrays = open_arrays(segment, "one")
    with pytest.raises(ValueError, match="read-only"):
        arrays["values"][0] = 1


def test_arrays_of_another_segment_are_refused(segment: Path) -> None:
    write(segment)
    with pytest.raises(StoreError, match=r"gen-000001-000\.duckdb\.arrays: is of another segment; roll back, or sync"):
        open_arrays(segment, "two")


def flipped(content: bytes) -> bytes:
    return content[:100] + bytes([content[100] ^ 1]) + content[101:]


@pytest.mark.parametrize(
    "damage",
    [lambda content: b"", lambda content: content[:9], lambda content: content[:-1], lambda content: content[64:],
     flipped, lambda content: content[::-1], lambda content: content + b"more", lambda content: bytes(len(content))],
    ids=["empty", "nearly empty", "truncated", "headless", "flipped", "reversed", "longer", "zeros"],
)  # fmt: skip
def test_a_damaged_file_is_named(segment: Path, damage: Callable[[bytes], bytes]) -> None:
    write(segment)
    file = arrays_file(segment)
    file.write_bytes(damage(file.read_bytes()))
    for read in (check_arrays, lambda segment: open_arrays(segment, "one")):
        with pytest.raises(StoreError, match=r"\.arrays: is damaged: it.*; roll back, or sync again with --full"):
            read(segment)


def test_a_file_that_is_not_there_is_named(segment: Path) -> None:
    with pytest.raises(StoreError, match=r"\.arrays: is missing; roll back, or sync again"):
        open_arrays(segment, "one")


def test_a_process_killed_while_it_writes_leaves_nothing_that_is_read(segment: Path) -> None:
    command = [sys.executable, "-c", CHILD, str(segment)]
    with forked.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "writing\n"
        os.kill(child.pid, signal.SIGKILL)
    with pytest.raises(StoreError, match="is damaged: it does not say what it holds"):
        open_arrays(segment, "one")
    write(segment)
    assert is_whole(open_arrays(segment, "one"))


def test_arrays_go_with_their_segment(segment: Path) -> None:
    write(segment)
    arrays = open_arrays(segment, "one")
    remove_arrays(segment.parent)
    assert arrays_file(segment).exists()
    segment.unlink()
    segment.with_name(f".{arrays_file(segment).name}.abc").write_bytes(b"of a process that an earlier version ran")
    remove_arrays(segment.parent)
    assert list(segment.parent.iterdir()) == []
    assert is_whole(arrays)  # whoever has mapped them goes on


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1 << 32), st.integers(0, 300), st.sampled_from([3, 48, 384]))
def test_a_mapped_matrix_answers_as_one_in_memory(
    tmp_path_factory: pytest.TempPathFactory, seed: int, count: int, dimensions: int
) -> None:
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(count, dimensions)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    memory = VectorMatrix.of(vectors)

    file = tmp_path_factory.mktemp("mapped") / "gen-000001.duckdb"
    with writing_arrays(file, "one") as writer:
        for name, array in (("vectors", memory.matrix), ("codes", memory.codes), ("scales", memory.scales)):
            writer.add(name, array)
    arrays = open_arrays(file, "one")
    mapped = VectorMatrix(arrays["vectors"], arrays["codes"], arrays["scales"])
    within = random.random(count) < random.random()
    query = random.normal(size=dimensions).astype(np.float32)
    for mask in (None, within):
        expected, found = memory.search(query, 10, mask), mapped.search(query, 10, mask)
        assert found.numbers.tolist() == expected.numbers.tolist()
        assert found.scores.tolist() == expected.scores.tolist()


def test_terms_are_written_with_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sorting them in DuckDB would take more memory than a reader has."""
    file, terms = tmp_path / "gen-000001.duckdb", 300_000
    with duckdb.connect(file) as connection:
        fields = ", ".join(f"{number} as in_{field}" for number, field in enumerate(FIELDS))
        connection.execute(
            f"""
            create table terms as
            select i::integer as term_id, lpad(i::varchar, 40, 'a') as term, 1 as document_frequency
            from range({terms}) t(i);
            create table postings as select term_id, 0 as chunk_no, {fields} from terms;
            create table lengths as select 0 as chunk_no, {fields};
            """
        )
    monkeypatch.setattr("nornweave.index.connection.READER_MEMORY", "12MB")
    with connect_reader(file) as connection:
        with pytest.raises(duckdb.OutOfMemoryException):
            connection.sql("select term from terms order by term_id").to_arrow_table()
        with writing_arrays(file, "one") as writer:
            write_terms(connection, writer)
    arrays = open_arrays(file, "one")
    assert arrays["terms.starts"].tolist() == list(range(terms + 1))


def test_places_take_four_bytes_and_those_of_the_version_before_are_read(
    segment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"symbol:{letter * length}" for letter in "aäz" for length in range(1, 40)]
    sizes = []
    for is_before in (False, True):
        if is_before:
            monkeypatch.setattr("nornweave.index.searching.arrays.FORMAT", "3")
            monkeypatch.setattr(ArrayWriter, "add_starts", ArrayWriter.add)
        with duckdb.connect() as connection, writing_arrays(segment, "one") as writer:
            connection.execute("create table named as select unnest(?) as name, 7::integer as chunk_no", [names])
            write_names(connection, writer)
        arrays = open_arrays(segment, "one")
        keys, lists = load_names(arrays)
        sizes.append(arrays["names.starts"].itemsize)
        assert [lists.frequency(name) for name in (*names, "symbol:b")] == [1] * len(names) + [0]
        assert keys.near("symbol", "aab") == ["symbol:aa", "symbol:aaa"]
    assert sizes == [4, 8]
