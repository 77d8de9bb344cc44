"""What is shown of chunks, copied out of the file when a generation is opened."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nornweave.store.cards import Cards


def connection_with(cards: list[str]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("create table cards (chunk_no integer, card varchar)")
    if cards:
        connection.executemany("insert into cards values (?, ?)", list(enumerate(cards)))
    return connection


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40), max_size=12))
@settings(max_examples=40)
def test_every_card_comes_back(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    cards = Cards(connection_with(texts), tmp_path_factory.mktemp("cards"))
    assert cards.read(range(len(texts))) == {number: text.encode() for number, text in enumerate(texts)}
    cards.close()


def test_more_cards_than_one_batch(tmp_path: Path) -> None:
    connection = duckdb.connect()
    connection.execute(
        "create table cards as select i as chunk_no, repeat('ä', i % 7) || i as card from range(20000) t(i)"
    )
    cards = Cards(connection, tmp_path)
    chosen = [0, 8191, 8192, 16383, 16384, 19999]
    assert cards.read(chosen) == {number: f"{'ä' * (number % 7)}{number}".encode() for number in chosen}
    assert cards.read(np.array([5], np.int32).tolist()) == {5: "äääää5".encode()}
    cards.close()


def test_the_copy_has_no_name_and_goes_with_its_owner(tmp_path: Path) -> None:
    cards = Cards(connection_with(["one"]), tmp_path)
    assert list(tmp_path.iterdir()) == []
    cards.close()
    with pytest.raises(ValueError, match="closed file"):
        cards.read([0])


@pytest.mark.skipif(os.geteuid() == 0, reason="everything can be written by root")
def test_a_folder_that_cannot_be_written_is_no_obstacle(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    cards = Cards(connection_with(["one"]), tmp_path)
    assert cards.read([0]) == {0: b"one"}
    cards.close()


def test_a_folder_that_is_gone_is_no_obstacle(tmp_path: Path) -> None:
    cards = Cards(connection_with(["one"]), tmp_path / "gone")
    assert cards.read([0]) == {0: b"one"}
    cards.close()


def test_a_full_disk_is_no_obstacle(tmp_path: Path) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("file systems can be mounted by root only")
    try:
        cards = Cards(connection_with(["one" * 100_000, "two"]), tmp_path)
        assert cards.read([1]) == {1: b"two"}
        cards.close()
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_cards_that_memory_does_not_hold_at_once(tmp_path: Path) -> None:
    """A reader has 128 MB for 200 MB of cards; here a smaller one for smaller ones."""
    file = str(tmp_path / "cards.duckdb")
    with duckdb.connect(file) as writing:
        writing.execute(
            "create table cards as select i as chunk_no, repeat(md5(i::varchar), 40) as card from range(60000) t(i)"
        )
    connection = duckdb.connect(file, read_only=True, config={"memory_limit": "40MB", "threads": "2"})
    cards = Cards(connection, tmp_path)
    expected = connection.execute("select card from cards where chunk_no = 59999").fetchone()
    assert expected is not None
    assert cards.read([59999]) == {59999: expected[0].encode()}
    cards.close()


MEASURED = """
import sys
from pathlib import Path
import duckdb
from nornweave.store.cards import Cards
from nornweave.store.connection import connect_reader

def held(name):
    return int(Path("/proc/self/status").read_text().partition(name)[2].split()[0]) / 1024

file = Path(sys.argv[1]) / "generation.duckdb"
with duckdb.connect(file) as connection:
    connection.execute(
        "create table cards as select i::integer as chunk_no, repeat('a', 1000) as card from range(200000) t(i)"
    )
connection = connect_reader(file)
before = held("VmRSS:")
Path("/proc/self/clear_refs").write_text("5")
Cards(connection, Path(sys.argv[1])).close()
print(held("VmHWM:") - before)
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux says how much memory was held at most")
def test_the_copy_is_not_held_in_memory(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", MEASURED, tmp_path], capture_output=True, text=True, check=True)
    assert float(ended.stdout.split()[-1]) < 150, "MB, of 200 that were copied"
