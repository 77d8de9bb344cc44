"""The arrays beside a generation: made once, whole or not at all, and never trusted unchecked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import duckdb
import forked
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nornweave.core.types import FIELDS
from nornweave.index.connection import connect_reader
from nornweave.index.searching.arrays import Arrays, ArrayWriter, arrays_file, open_arrays, remove_arrays
from nornweave.index.searching.terms import write_terms
from nornweave.index.searching.vectors import VectorMatrix

VALUES = np.arange(5000, dtype=np.float32)
CHILD = """
import sys, time
from pathlib import Path
import numpy as np
from nornweave.index.searching.arrays import open_arrays

def make(writer):
    array = writer.reserve("values", np.float32, (5000,))
    array[:2500] = np.arange(2500)
    print("writing", flush=True)
    {pause}
    array[:] = np.arange(5000)

arrays = open_arrays(Path(sys.argv[1]), "one", make)
print(float(arrays["values"].sum()), flush=True)
"""


def make(writer: ArrayWriter) -> None:
    writer.add("values", VALUES)
    writer.add("none", np.zeros(0, np.int64))
    writer.add("bytes", np.arange(7, dtype=np.int8))


def never(writer: ArrayWriter) -> None:
    raise AssertionError("made again")


@pytest.fixture
def generation(tmp_path: Path) -> Path:
    file = tmp_path / "gen-000001.duckdb"
    file.write_bytes(b"a generation")
    return file


def is_whole(arrays: Arrays) -> bool:
    return arrays["values"].tolist() == VALUES.tolist() and arrays["bytes"].tolist() == [*range(7)]


def test_the_file_is_made_once(generation: Path) -> None:
    assert is_whole(open_arrays(generation, "one", make))
    assert is_whole(open_arrays(generation, "one", never))
    assert {file.name for file in generation.parent.iterdir()} == {generation.name, arrays_file(generation).name}


def test_what_is_mapped_cannot_be_written_to(generation: Path) -> None:
    arrays = open_arrays(generation, "one", make)
    with pytest.raises(ValueError, match="read-only"):
        arrays["values"][0] = 1


def test_arrays_of_another_generation_are_made_again(generation: Path) -> None:
    open_arrays(generation, "one", lambda writer: writer.add("values", VALUES[::-1]))
    assert is_whole(open_arrays(generation, "two", make))
    assert is_whole(open_arrays(generation, "two", never))


def flipped(content: bytes) -> bytes:
    return content[:100] + bytes([content[100] ^ 1]) + content[101:]


@pytest.mark.parametrize(
    "damage",
    [lambda content: b"", lambda content: content[:9], lambda content: content[:-1], lambda content: content[64:],
     flipped, lambda content: content[::-1], lambda content: content + b"more", lambda content: bytes(len(content))],
    ids=["empty", "nearly empty", "truncated", "headless", "flipped", "reversed", "longer", "zeros"],
)  # fmt: skip
def test_a_damaged_file_is_made_again(generation: Path, damage: Callable[[bytes], bytes]) -> None:
    open_arrays(generation, "one", make)
    file = arrays_file(generation)
    file.write_bytes(damage(file.read_bytes()))
    assert is_whole(open_arrays(generation, "one", make))
    assert is_whole(open_arrays(generation, "one", never))


def test_a_process_killed_while_it_writes_leaves_nothing_that_is_read(generation: Path) -> None:
    command = [sys.executable, "-c", CHILD.format(pause="time.sleep(600)"), str(generation)]
    with forked.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "writing\n"
        os.kill(child.pid, signal.SIGKILL)
    assert not arrays_file(generation).exists()
    assert is_whole(open_arrays(generation, "one", make))


def test_two_processes_that_open_it_at_once_make_it_once(generation: Path) -> None:
    command = [sys.executable, "-c", CHILD.format(pause="time.sleep(0.5)"), str(generation)]
    children = [forked.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = [child.communicate()[0].split("\n") for child in children]
    assert [lines[-2] for lines in said] == [str(float(VALUES.sum()))] * 3
    assert sum("writing" in lines for lines in said) == 1


def test_threads_of_one_process_make_it_once(generation: Path) -> None:
    made: list[int] = []

    def counted(writer: ArrayWriter) -> None:
        made.append(1)
        make(writer)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(lambda _: is_whole(open_arrays(generation, "one", counted)), range(4)))
    assert len(made) == 1


def test_a_folder_that_cannot_be_written_keeps_them_in_memory(tmp_path: Path) -> None:
    gone = tmp_path / "gone" / "gen-000001.duckdb"  # root may write anywhere; a folder that is not there stops it too
    assert is_whole(open_arrays(gone, "one", make))
    assert list(tmp_path.iterdir()) == []


def test_arrays_go_with_their_generation(generation: Path) -> None:
    arrays = open_arrays(generation, "one", make)
    remove_arrays(generation.parent)
    assert arrays_file(generation).exists()
    generation.unlink()
    left = generation.with_name(f".{arrays_file(generation).name}.abc")
    left.write_bytes(b"of a killed process")
    os.utime(left, (0, 0))
    remove_arrays(generation.parent)
    assert list(generation.parent.iterdir()) == []
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

    def write(writer: ArrayWriter) -> None:
        for name, array in (("vectors", memory.matrix), ("codes", memory.codes), ("scales", memory.scales)):
            writer.add(name, array)

    file = tmp_path_factory.mktemp("mapped") / "gen-000001.duckdb"
    arrays = open_arrays(file, json.dumps(seed), write)
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
            connection.execute("select term from terms order by term_id").to_arrow_table()
        arrays = open_arrays(file, "one", partial(write_terms, connection))
    assert arrays["terms.starts"].tolist() == list(range(terms + 1))
