"""Feedback: remembered, judged, forgotten in time, whatever else happens to its file."""

import logging
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import forked
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from questions import question_of
from shown_answers import document, item, remembered, stored
from waiting import HANGS_S, SOON_S

from nornweave.ask import feedback as feedback_module
from nornweave.ask.feedback import FILE, REMEMBERED_DAYS, FeedbackBook
from nornweave.core.errors import QueryError, StoreError
from nornweave.core.types import Domain

START = datetime(2026, 1, 20, 10, tzinfo=UTC)


class Clock:
    """Stands until it is moved."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait until an answer is written: the machine of a test may be slow."""
    monkeypatch.setattr(feedback_module, "PATIENCE_S", HANGS_S)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "new" / "folder"


def test_what_was_shown_and_said_comes_back(folder: Path) -> None:
    book = FeedbackBook(folder, now=Clock())
    assert book.judged() == ()
    question = question_of("why?", filters={Domain.CODE: {"language": "python", "tags": ("a", "b")}})
    book.shown(question, document("q-1", item("c-1"), item("c-2", "b.json", None, ["1.0", "2.0"]), item("c-3")))
    book.shown(question_of("nobody judges this"), document("q-2"))
    assert book.add("q-1", "c-2", useful=True) == {
        "query_id": "q-1", "chunk_id": "c-2", "useful": True, "at": "2026-01-20T10:00:00.000000Z", "previous": None,
    }  # fmt: skip
    (answer,) = book.judged()
    assert (answer.query_id, answer.at, answer.text, answer.domains) == ("q-1", START, "why?", ("code",))
    assert {domain: dict(values) for domain, values in answer.filters.items()} == {
        "code": {"language": "python", "tags": ["a", "b"]}
    }
    assert dict(answer.votes) == {"c-2": True}
    assert [one.rank for one in answer.items] == [1, 2, 3]
    first, second, _ = answer.items
    assert (first.line_range, first.message_ids) == ((1, 9), ())
    assert (second.source_path, second.line_range, second.message_ids) == ("b.json", None, ("1.0", "2.0"))


def test_the_last_word_counts_and_repeating_it_is_no_second_vote(folder: Path) -> None:
    book = FeedbackBook(folder)
    book.shown(question_of("x"), document("q-1"))
    said = [book.add("q-1", "c-1", useful) for useful in (True, True, False, False, True)]
    assert [one and one["previous"] for one in said] == [None, True, True, False, False]
    book.add("q-1", "c-2", useful=False)
    (answer,) = book.judged()
    assert dict(answer.votes) == {"c-1": True, "c-2": False}


def test_answers_come_in_the_order_in_which_they_were_given(folder: Path) -> None:
    book = FeedbackBook(folder)
    for name in ("q-3", "q-1", "q-2"):
        book.shown(question_of(name), document(name))
    for name in ("q-1", "q-2", "q-3"):
        book.add(name, "c-1", useful=True)
    assert [answer.text for answer in book.judged()] == ["q-3", "q-1", "q-2"]


def test_an_answer_that_nobody_remembers(folder: Path) -> None:
    book = FeedbackBook(folder)
    unknown = ("q-2", "", "' or 1=1 --", "q-1 ", "x" * 10_000, "\0")
    assert [book.add(query_id, "c-1", useful=True) for query_id in unknown] == [None] * 6
    book.tidy()
    assert book.judged() == ()
    assert not folder.parent.exists(), "asking leaves nothing behind"
    book.shown(question_of("x"), document("q-1"))
    assert [book.add(query_id, "c-1", useful=True) for query_id in unknown] == [None] * 6
    assert book.judged() == ()


@pytest.mark.parametrize(("chunk_id", "named"), [("c-3", "'c-3'"), ("x" * 500, "500 characters"), ("%", "'%'")])
def test_what_was_not_shown_cannot_be_judged(folder: Path, chunk_id: str, named: str) -> None:
    book = FeedbackBook(folder)
    book.shown(question_of("x"), document("q-1"))
    with pytest.raises(QueryError) as raised:
        book.add("q-1", chunk_id, useful=True)
    assert raised.value.field == "chunk_id"
    assert named in raised.value.problem and "2 items" in raised.value.problem
    assert book.judged() == ()


@pytest.fixture(scope="module")
def any_book(tmp_path_factory: pytest.TempPathFactory) -> FeedbackBook:
    return FeedbackBook(tmp_path_factory.mktemp("any"))


ITEMS = st.builds(
    item,
    st.text(max_size=9),
    st.text(max_size=9),
    st.none() | st.tuples(st.integers(1, 99), st.integers(1, 99)),
    st.none() | st.lists(st.text(max_size=5), max_size=3),
)
JSON = st.recursive(st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=2))


@given(
    text=st.text(st.characters(codec=None), max_size=20),
    filters=st.dictionaries(st.text(max_size=5), JSON, max_size=2),
    items=st.lists(ITEMS, min_size=1, max_size=4, unique_by=lambda one: str(one["chunk_id"])),
    useful=st.booleans(),
)
@settings(max_examples=40)
def test_any_answer_comes_back_as_it_was(
    any_book: FeedbackBook, text: str, filters: dict[str, Any], items: list[Any], useful: bool
) -> None:
    name = str(len(any_book.judged()))
    any_book.shown(question_of(text, filters={Domain.CODE: filters}), document(name, *items))
    for one in items:
        any_book.add(name, one["chunk_id"], useful)
    answer = any_book.judged()[-1]
    assert answer.query_id == name
    assert answer.text == text
    assert dict(answer.filters.get("code", {})) == filters
    assert dict(answer.votes) == {one["chunk_id"]: useful for one in items}
    for rank, (shown, one) in enumerate(zip(answer.items, items, strict=True), 1):
        citation = one["citation"]
        assert (shown.chunk_id, shown.rank, shown.source_path) == (one["chunk_id"], rank, citation["source_path"])
        assert shown.line_range == (tuple(citation["line_range"]) if citation["line_range"] else None)
        assert shown.message_ids == tuple(citation["message_ids"] or ())


def test_texts_of_items_are_not_kept(tmp_path: Path) -> None:
    book = FeedbackBook(tmp_path)
    book.shown(question_of("asked"), document("q-1"))
    book.close()
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"asked" in kept
    assert b"secret" not in kept


def test_without_queries_nothing_is_kept(tmp_path: Path) -> None:
    book = FeedbackBook(tmp_path / "feedback", keep_queries=False)
    book.shown(question_of("x"), document("q-1"))
    assert book.add("q-1", "c-1", useful=True) is None
    book.tidy()
    book.close()
    assert not (tmp_path / "feedback").exists()


def test_who_turns_queries_off_has_those_forgotten_that_were_not_judged(tmp_path: Path) -> None:
    book = FeedbackBook(tmp_path)
    for name in ("q-1", "q-2"):
        book.shown(question_of(f"text of {name}"), document(name))
    book.add("q-1", "c-1", useful=True)
    book.close()
    off = FeedbackBook(tmp_path, keep_queries=False)
    off.tidy()
    assert remembered(tmp_path) == ["q-1"]
    assert off.add("q-1", "c-2", useful=False), "what was judged before can be judged further"
    off.close()
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"text of q-1" in kept
    assert b"text of q-2" not in kept, "not even in what the file no longer uses"


def test_what_nobody_judged_is_forgotten_in_time(folder: Path) -> None:
    clock = Clock()
    for name, days in (("old", 0), ("judged", 0), ("new", 2)):
        clock.now = START + timedelta(days=days)
        FeedbackBook(folder, now=clock).shown(question_of(name), document(name))
    clock.now = START + timedelta(days=REMEMBERED_DAYS)
    book = FeedbackBook(folder, now=clock)
    book.tidy()
    assert remembered(folder) == ["old", "judged", "new"], "not before their time"
    book.add("judged", "c-1", useful=True)
    clock.now += timedelta(seconds=1)
    book.tidy()
    assert remembered(folder) == ["old", "judged", "new"], "once a minute is enough"
    FeedbackBook(folder, now=clock).tidy()
    assert remembered(folder) == ["judged", "new"]
    assert book.add("old", "c-1", useful=True) is None


def test_the_oldest_are_forgotten_when_there_are_too_many(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feedback_module, "REMEMBERED_ANSWERS", 5)
    monkeypatch.setattr(feedback_module, "BATCH", 4)
    book = FeedbackBook(folder)
    for number in range(20):
        book.shown(question_of("x"), document(f"q-{number}"))
    book.add("q-3", "c-1", useful=False)
    book.tidy()
    assert remembered(folder) == ["q-3", "q-15", "q-16", "q-17", "q-18", "q-19"]


def test_an_answer_of_enormous_filters_is_not_remembered(tmp_path: Path) -> None:
    book = FeedbackBook(tmp_path)
    book.shown(question_of("x", filters={Domain.CODE: {"path_glob": ["y" * 1000] * 300}}), document("large"))
    book.shown(question_of("x"), document("small"))
    assert remembered(tmp_path) == ["small"]


def test_it_is_a_log_that_readers_and_writers_share(tmp_path: Path) -> None:
    book = FeedbackBook(tmp_path)
    book.shown(question_of("x"), document("q-1"))
    assert stored(tmp_path / FILE, "pragma journal_mode") == [("wal",)]
    reading = sqlite3.connect(tmp_path / FILE, isolation_level=None)
    reading.execute("begin")
    assert reading.execute("select count(*) from shown").fetchone() == (1,)
    book.shown(question_of("x"), document("q-2"))
    assert book.add("q-2", "c-1", useful=True)
    assert reading.execute("select count(*) from shown").fetchone() == (1,), "reads what was there when it began"
    reading.close()


def held(folder: Path) -> sqlite3.Connection:
    """Hold the file as a writer that does not end."""
    holder = sqlite3.connect(folder / FILE, isolation_level=None)
    holder.execute("begin immediate")
    return holder


def test_a_locked_file_costs_queries_nothing_but_a_line_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feedback_module, "PAUSE_S", 3600)
    monkeypatch.setattr(feedback_module, "PATIENCE_S", 0.2)
    monkeypatch.setattr(feedback_module, "FEEDBACK_PATIENCE_S", 0.2)
    book = FeedbackBook(tmp_path)
    book.shown(question_of("private"), document("before"))
    holder = held(tmp_path)
    started = time.monotonic()
    for number in range(200):
        book.shown(question_of("private"), document(f"q-{number}"))
    # One of them waits, 0.2 s; if all did it would be 40 s.
    assert time.monotonic() - started < SOON_S
    with pytest.raises(StoreError, match="locked; try again later") as raised:
        book.add("before", "c-1", useful=True)
    assert str(tmp_path) not in str(raised.value)
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1 and "database is locked" in warnings[0].getMessage()
    assert "private" not in caplog.text
    holder.close()
    assert book.add("before", "c-1", useful=True)
    assert book.add("q-0", "c-1", useful=True) is None, "what could not be written is not remembered"
    book._not_before = 0
    book.shown(question_of("x"), document("after"))
    assert remembered(tmp_path) == ["before", "after"]


FULL = """
import logging, resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from questions import question_of
from shown_answers import document, remembered
from nornweave.core.errors import StoreError
import nornweave.ask.feedback
logging.basicConfig(format="%(levelname)s %(message)s")
nornweave.ask.feedback.PAUSE_S = 0
folder = Path(sys.argv[1])
book = nornweave.ask.feedback.FeedbackBook(folder)
book.shown(question_of("x"), document("q-0"))
before = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
for number in range(1, 60):
    book.shown(question_of("x" * 4000), document(f"q-{number}"))
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
try:
    book.add("q-0", "c-1", True)
except StoreError as error:
    print("refused:", error)
resource.setrlimit(resource.RLIMIT_FSIZE, before)
book.shown(question_of("x"), document("q-60"))
print(book.add("q-0", "c-1", True)["useful"], book.add("q-60", "c-1", True)["useful"])
"""


def run(program: str, *arguments: object) -> forked.Popen:
    """Start a Python program with this folder's tests at hand."""
    return forked.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )


def test_a_full_disk_is_said_once_and_what_was_written_stays(tmp_path: Path) -> None:
    out, log = run(FULL, tmp_path, Path(__file__).parents[1]).communicate(timeout=60)
    assert out.splitlines()[0].startswith("refused: feedback cannot be stored now:"), log
    assert out.splitlines()[1] == "True True"
    assert len([line for line in log.splitlines() if line.startswith("WARNING")]) == 1


@pytest.mark.parametrize(
    "content", [b"no database at all, but long enough to be taken for one" * 9, b"SQLite format 3\0"]
)
def test_a_damaged_file_stays_as_it_is(tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    book = FeedbackBook(tmp_path)
    book.shown(question_of("x"), document("q-1"))
    book.tidy()
    with pytest.raises(StoreError) as raised:
        book.add("q-1", "c-1", useful=True)
    assert str(tmp_path) not in str(raised.value)
    with pytest.raises(StoreError):
        book.judged()
    assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 1
    assert (tmp_path / FILE).read_bytes() == content


def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    book = FeedbackBook(tmp_path)
    book.shown(question_of("x"), document("q-1"))
    book.close()
    stored(tmp_path / FILE, "pragma user_version = 4")
    newer = FeedbackBook(tmp_path)
    newer.shown(question_of("x"), document("q-2"))
    with pytest.raises(StoreError, match="version 4"):
        newer.add("q-1", "c-1", useful=True)
    assert remembered(tmp_path) == ["q-1"]


OF_VERSION_2 = """
create table shown (
  number integer primary key, query_id text not null unique, at text not null, text text not null,
  filters text not null, domains text not null, items text not null, asker text not null default '',
  judged integer not null default 0
);
create index shown_unjudged on shown (at) where judged = 0;
create table feedback (
  query_id text not null references shown (query_id), chunk_id text not null, useful integer not null, at text not null,
  primary key (query_id, chunk_id)
) without rowid;
insert into shown (query_id, at, text, filters, domains, items, judged)
select value, '2026-01-20T10:00:00.000000Z', '"why?"', '{}', '["code"]', '[]', value = 'q-1'
from json_each('["q-1", "q-2"]');
insert into feedback values ('q-1', 'c-"1"', 1, ''), ('q-1', 'c-2', 0, '');
pragma user_version = 2;
"""


def test_a_file_of_the_version_before_keeps_what_was_said(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / FILE)
    connection.executescript(OF_VERSION_2)
    connection.close()
    book = FeedbackBook(tmp_path)
    (answer,) = book.judged()
    assert (answer.query_id, dict(answer.votes)) == ("q-1", {'c-"1"': True, "c-2": False})
    book.shown(question_of("x"), document("q-3"))
    assert book.add("q-3", "c-1", useful=True)
    book.tidy()
    assert remembered(tmp_path) == ["q-1", "q-3"]


def test_rows_that_somebody_else_wrote_are_said_to_be_damaged(tmp_path: Path) -> None:
    book = FeedbackBook(tmp_path)
    book.shown(question_of("x"), document("q-1"))
    book.add("q-1", "c-1", useful=True)
    book.close()
    connection = sqlite3.connect(tmp_path / FILE)
    connection.execute("update shown set items = '[{\"chunk_id\": 1}]'")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="damaged"):
        book.judged()


def test_threads_write_at_once(folder: Path) -> None:
    book = FeedbackBook(folder)

    def use(thread: int) -> None:
        for number in range(25):
            book.shown(question_of("x"), document(f"q-{thread}-{number}"))
            assert book.add(f"q-{thread}-{number}", "c-1", useful=bool(number % 2))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(use, range(8)))
    answers = book.judged()
    assert len(answers) == 200
    assert sum(answer.votes["c-1"] for answer in answers) == 8 * 12


WRITE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from questions import question_of
from shown_answers import document
from nornweave.ask.feedback import FeedbackBook
book = FeedbackBook(Path(sys.argv[1]))
sys.stdin.readline()
for number in range(int(sys.argv[4])):
    name = f"{sys.argv[3]}-{number}"
    book.shown(question_of("x"), document(name))
    book.add(name, "c-1", True)
    print(name, flush=True)
"""


@pytest.fixture
def writers(tmp_path: Path) -> Iterator[Callable[[str, int], forked.Popen]]:
    """Make processes that write when they are told to; whatever survives a test is ended after it."""
    made: list[forked.Popen] = []

    def make(name: str, answers: int) -> forked.Popen:
        made.append(run(WRITE, tmp_path / "feedback", Path(__file__).parents[1], name, answers))
        return made[-1]

    yield make
    for process in made:
        process.kill()
        process.communicate()


def test_processes_write_at_once_and_what_was_stored_survives_the_death_of_one(
    writers: Callable[[str, int], forked.Popen], tmp_path: Path
) -> None:
    processes = [writers("a", 30), writers("b", 30), writers("killed", 1_000_000)]
    for process in processes:  # together from the very first answer on, which makes the file
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    *living, killed = processes
    said = [line for process in living for line in process.communicate(timeout=60)[0].split()]
    assert ([process.returncode for process in living], len(said)) == ([0, 0], 60)
    assert killed.stdout
    said += [killed.stdout.readline().strip() for _ in range(10)]
    killed.send_signal(signal.SIGKILL)
    said += killed.stdout.read().split()  # a line is written in one piece
    assert killed.wait() == -signal.SIGKILL
    kept = [answer.query_id for answer in FeedbackBook(tmp_path / "feedback").judged()]
    assert len(kept) == len(set(kept))
    assert len(said) >= 70
    assert set(said) <= set(kept)
    assert len(kept) <= len(said) + 1, "and what it was about to say"
    assert stored(tmp_path / "feedback" / FILE, "pragma integrity_check") == [("ok",)]
