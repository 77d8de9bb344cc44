"""What is shown of chunks, mapped from the file beside a generation."""

import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nornweave.index.searching.arrays import open_arrays, writing_arrays
from nornweave.index.searching.generation import stored_chunk
from nornweave.index.searching.inverted import Cards, write_cards


def connection_with(cards: Sequence[tuple[int, str]]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("create table cards (chunk_no integer, card varchar)")
    if cards:
        connection.executemany("insert into cards values (?, ?)", cards)
    return connection


def cards_of(connection: duckdb.DuckDBPyConnection, folder: Path, count: int) -> Cards:
    with writing_arrays(folder / "gen-000001.duckdb", "one") as writer:
        write_cards(connection, writer, count)
    return Cards(open_arrays(folder / "gen-000001.duckdb", "one"))


@given(
    texts=st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40), max_size=12
    ),
    chance=st.randoms(use_true_random=False),
)
@settings(max_examples=40)
def test_every_card_comes_back(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], chance: random.Random
) -> None:
    written = list(enumerate(texts))
    chance.shuffle(written)
    cards = cards_of(connection_with(written), tmp_path_factory.mktemp("cards"), len(texts))
    assert cards.read(range(len(texts))) == {number: text.encode() for number, text in enumerate(texts)}


def test_more_cards_than_one_batch(tmp_path: Path) -> None:
    connection = duckdb.connect()
    connection.execute(
        "create table cards as select i::integer as chunk_no, repeat('ä', i % 7) || i as card from range(20000) t(i)"
    )
    cards = cards_of(connection, tmp_path, 20_000)
    chosen = [0, 8191, 8192, 16383, 16384, 19999]
    assert cards.read(chosen) == {number: f"{'ä' * (number % 7)}{number}".encode() for number in chosen}


def test_a_card_that_names_its_fields_is_read_as_one_that_does_not() -> None:
    """An earlier version named them."""
    card = {
        "chunk_id": "c", "document_id": "d", "content": "text", "source_id": "s", "path": "p", "title": None,
        "section": "A > B", "page": 3, "char_range": [1, 5], "line_range": [1, 2], "message_ids": ["1"],
        "updated_at": "2026-01-15T10:00:00+00:00", "revision": None, "url": "u", "stale": False,
        "metadata": {"language": "python"}, "facts": None,
    }  # fmt: skip
    chunk = stored_chunk(7, list(card.values()))
    assert stored_chunk(7, card) == chunk
    assert (chunk.chunk_no, chunk.section, chunk.page, chunk.char_range) == (7, "A > B", 3, (1, 5))


MEASURED = """
import sys
import threading
import time
from pathlib import Path
import duckdb
from nornweave.index.searching.arrays import writing_arrays
from nornweave.index.searching.inverted import write_cards
from nornweave.index.connection import connect_reader

def held():
    return int(Path("/proc/self/status").read_text().partition("RssAnon:")[2].split()[0]) / 1024

def watch():
    while True:
        held_at_times.append(held())
        time.sleep(0.005)

file = Path(sys.argv[1]) / "generation.duckdb"
with duckdb.connect(file) as connection:
    connection.execute(
        "create table cards as select i::integer as chunk_no, repeat('a', 1000) as card from range(200000) t(i)"
    )
connection = connect_reader(file)
held_at_times = [held()]
threading.Thread(target=watch, daemon=True).start()
with writing_arrays(file, "one") as arrays:
    write_cards(connection, arrays, 200_000)
print(max(held_at_times) - held_at_times[0])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="read from /proc")
def test_cards_are_not_held_in_memory_while_they_are_written(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", MEASURED, tmp_path], capture_output=True, text=True, check=True)
    assert float(ended.stdout.split()[-1]) < 150, "MB, of 200 that were copied"
