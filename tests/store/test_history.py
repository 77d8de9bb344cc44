"""The history of evaluations: kept, read while it is written, whole after a kill, said to be damaged when it is.

What both stores promise is tested over a file and over a real PostgreSQL server.
"""

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import forked
import pytest
from waiting import HANGS_S, SOON_S

from nornweave.carry.postgresql.server import Server
from nornweave.core.errors import StoreError
from nornweave.improve import history as history_module
from nornweave.improve.history import KEEP_VALUES, EvaluationHistory, HistoryFile
from nornweave.improve.postgresql_history import PostgresHistory
from nornweave.improve.records import Evaluation, QueryValue, StageMetric, Verdict

NUMBERS = itertools.count()
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
FUSED = ("fused", "RR@10")
METRICS = (
    StageMetric("sparse", "RR@10", 0.25, 0.125, 0.5),
    StageMetric("fused", "Recall@10", 1 / 3, 0.1, 0.9),
    StageMetric("fused", "RR@10", 0.1 + 0.2, 0.0, 1.0),
)
# A process that writes evaluations of 300 values each until it has written so many, and says so after each.
WRITER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from test_history import evaluation, values_of
from nornweave.improve.history import HistoryFile
history = HistoryFile(Path(sys.argv[1]))
print("ready", flush=True)
for number in range(int(sys.argv[3])):
    written = evaluation(f"{sys.argv[2]}-{number}", at=datetime.now(UTC))
    history.record([(written, values_of(written.evaluation_id, 300))])
    print(number, flush=True)
"""


def evaluation(
    name: str, *, at: datetime = NOON, domain: str = "code", set_name: str = "golden", scope: str = "domain",
    generation: str = "gen-000001", verdict: Verdict = Verdict.PUBLISHED, p50_ms: float | None = 1.5,
) -> Evaluation:  # fmt: skip
    return Evaluation(
        evaluation_id=name,
        run_id=f"run of {name}",
        at=at,
        domain=domain,
        set_name=set_name,
        origin="people",
        scope=scope,
        generation=generation,
        verdict=verdict,
        commit="0.1.0+abc",
        queries=30,
        measured=25,
        missing=2,
        failed=1,
        p50_ms=p50_ms,
        p95_ms=p50_ms,
        metrics=METRICS,
    )


def values_of(name: str, count: int = 3) -> list[QueryValue]:
    """Return values of which the first tells whose they are."""
    own = [QueryValue("fused", "who", name, "RR@10", 1.0)]
    return own + [QueryValue("fused", f"q{number}", "d", "RR@10", number / 7) for number in range(count - 1)]


def keep(history: EvaluationHistory, *evaluations: Evaluation) -> None:
    history.record([(one, values_of(one.evaluation_id)) for one in evaluations])


def names(history: EvaluationHistory, **asked: str | int) -> list[str]:
    return [one.evaluation_id for one in history.evaluations(**asked)]  # type: ignore[arg-type]


pytestmark = pytest.mark.usefixtures("patient")


@pytest.fixture(params=["file", "postgresql"])
def history(request: pytest.FixtureRequest, tmp_path: Path) -> EvaluationHistory:
    if request.param == "file":
        return HistoryFile(tmp_path)
    return PostgresHistory(Server(request.getfixturevalue("server").url, f"history_{next(NUMBERS)}"))


def test_nothing_is_recorded_before_anything_is_measured(history: EvaluationHistory) -> None:
    history.record([])
    assert history.evaluations(domain="code") == ()
    assert history.values("anything") == {}


def test_before_anything_is_measured_it_is_empty_and_makes_no_file(tmp_path: Path) -> None:
    history = HistoryFile(tmp_path / "none")

    assert history.evaluations() == ()
    assert history.values("anything") == {}
    history.record([])
    assert not (tmp_path / "none").exists()


def test_what_is_recorded_is_read_back_unchanged(history: EvaluationHistory) -> None:
    written = evaluation("one", at=NOON + timedelta(microseconds=123456))
    values = [
        QueryValue("fused", "Größe?", "d1", "RR@10", 1 / 3),
        QueryValue("fused", "q2", "d2", "RR@10", 0.1 + 0.2),
        QueryValue("sparse", "q2", "d2", "Recall@10", 0.0),
    ]
    history.record([(written, values)])

    (read,) = history.evaluations()
    assert read == written
    assert read.at.tzinfo is not None
    assert read.metric("fused", "RR@10") == METRICS[2]
    assert read.metric("fused", "P@5") is None
    assert history.values("one") == {
        FUSED: {("Größe?", "d1"): 1 / 3, ("q2", "d2"): 0.1 + 0.2},
        ("sparse", "Recall@10"): {("q2", "d2"): 0.0},
    }
    assert history.values("two") == {}


def test_times_of_another_zone_and_missing_latencies_are_kept(history: EvaluationHistory) -> None:
    east = datetime.fromisoformat("2026-03-01T21:00:00+09:00")
    keep(history, evaluation("east", at=east, p50_ms=None))

    (read,) = history.evaluations()
    assert (read.at, read.at.utcoffset()) == (NOON, timedelta(0))
    assert (read.p50_ms, read.p95_ms) == (None, None)


def test_the_newest_come_first_and_every_filter_narrows(history: EvaluationHistory) -> None:
    for number, (domain, set_name, scope, generation) in enumerate(
        [
            ("code", "golden", "domain", "gen-000001"),
            ("code", "golden", "all domains", "gen-000001"),
            ("code", "generated", "domain", "gen-000001"),
            ("code", "golden", "domain", "gen-000002"),
            ("research", "golden", "domain", "gen-000002"),
        ]
    ):
        at = NOON + timedelta(minutes=number)
        keep(
            history,
            evaluation(str(number), at=at, domain=domain, set_name=set_name, scope=scope, generation=generation),
        )

    assert names(history) == ["4", "3", "2", "1", "0"]
    assert names(history, limit=2) == ["4", "3"]
    assert names(history, domain="code") == ["3", "2", "1", "0"]
    assert names(history, set_name="golden") == ["4", "3", "1", "0"]
    assert names(history, scope="domain", domain="code") == ["3", "2", "0"]
    assert names(history, generation="gen-000002") == ["4", "3"]
    assert names(history, domain="code", set_name="golden", scope="domain", generation="gen-000001") == ["0"]
    assert names(history, domain="conversations") == []
    assert names(history, domain="' or true --") == []
    assert names(history, domain="\0") == []


def test_at_the_same_moment_the_id_decides(history: EvaluationHistory) -> None:
    keep(history, *(evaluation(name) for name in "bca"))

    assert names(history) == ["a", "b", "c"]


def test_all_or_nothing_is_recorded(history: EvaluationHistory) -> None:
    keep(history, evaluation("one"))
    with pytest.raises(StoreError):
        keep(history, evaluation("two"), evaluation("one"))

    assert names(history) == ["one"]
    assert history.values("two") == {}


def test_only_the_newest_evaluations_of_a_set_keep_their_values(history: EvaluationHistory) -> None:
    old = [evaluation(f"{number:03}", at=NOON + timedelta(minutes=number)) for number in range(KEEP_VALUES + 2)]
    other = [evaluation("other", set_name="generated"), evaluation("everywhere", scope="all domains")]
    keep(history, *other, *reversed(old))

    assert [name for name in ("000", "001", "002", "031", "other", "everywhere") if history.values(name)] == [
        "002",
        "031",
        "other",
        "everywhere",
    ]
    kept = next(one for one in history.evaluations(limit=1000) if one.evaluation_id == "000")
    assert kept.metrics == METRICS, "the means stay"


def test_refused_candidates_do_not_push_out_what_they_are_compared_with(history: EvaluationHistory) -> None:
    """One that is tried again every hour would be published on the second day, for want of anything to compare."""
    keep(history, evaluation("published"))
    refused = [
        evaluation(f"{number:03}", at=NOON + timedelta(hours=1 + number), verdict=Verdict.REFUSED)
        for number in range(KEEP_VALUES + 1)
    ]
    keep(history, *refused)

    assert history.values("published")
    assert not history.values("000")
    assert history.values("030")


def test_the_view_says_which_generation_and_commit_gave_which_value(history: EvaluationHistory, tmp_path: Path) -> None:
    keep(history, evaluation("one"))

    said = 'select generation, "commit", "set", query, measure, "value" from history order by query'
    if isinstance(history, PostgresHistory):
        rows = history._server.rows(said)
    else:
        with duckdb.connect(str(tmp_path / "history.duckdb"), read_only=True) as connection:
            rows = connection.execute(said).fetchall()
    assert rows == [
        ("gen-000001", "0.1.0+abc", "golden", "q0", "RR@10", 0.0),
        ("gen-000001", "0.1.0+abc", "golden", "q1", "RR@10", 1 / 7),
        ("gen-000001", "0.1.0+abc", "golden", "who", "RR@10", 1.0),
    ]


# --- several at once ----------------------------------------------------------------------------------------------


def writer(folder: Path, name: str, count: int) -> forked.Popen:
    return forked.Popen(
        [sys.executable, "-c", WRITER, str(folder), name, str(count)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_two_processes_write_while_one_reads(tmp_path: Path) -> None:
    history = HistoryFile(tmp_path)
    writers = [writer(tmp_path, name, 5) for name in ("a", "b")]
    seen = 0
    while any(one.poll() is None for one in writers):
        found = history.evaluations()
        assert len(found) >= seen, "what was there once is there"
        seen = len(found)
        for one in found[:1]:
            assert len(history.values(one.evaluation_id)[FUSED]) == 300, "never half of an evaluation"
        time.sleep(0.005)

    for process in writers:
        _, said = process.communicate()
        assert process.returncode == 0, said
    assert set(names(history)) == {f"{name}-{number}" for name in "ab" for number in range(5)}


def test_threads_of_one_process_read_and_write(history: EvaluationHistory) -> None:
    """DuckDB refuses to open a file twice in one process, once for writing and once for reading."""
    problems: list[Exception] = []

    def run(work: Callable[[], object]) -> None:
        try:
            for _ in range(5):
                work()
        except Exception as error:
            problems.append(error)

    def write() -> None:
        keep(history, evaluation(os.urandom(8).hex()))

    threads = [threading.Thread(target=run, args=(work,)) for work in (write, write, history.evaluations)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert problems == []
    assert len(history.evaluations()) == 10


@pytest.mark.parametrize("delay", [0.0, 0.03, 0.13])
def test_a_writer_that_is_killed_leaves_what_it_had_recorded(tmp_path: Path, delay: float) -> None:
    process = writer(tmp_path, "killed", 1000)
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    told = process.communicate()[0].split()

    history = HistoryFile(tmp_path)
    found = names(history, limit=1000)
    assert len(told) <= len(found) <= len(told) + 1
    assert all(len(history.values(name)[FUSED]) == 300 for name in found[:KEEP_VALUES])

    keep(history, evaluation("next", at=datetime.now(UTC)))
    assert names(history, limit=1000) == ["next", *found]


def test_what_a_writer_left_that_was_killed_while_it_made_the_file_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / ".history.duckdb.new").write_bytes(b"\0" * 100)
    history = HistoryFile(tmp_path)

    assert history.evaluations() == ()
    keep(history, evaluation("one"))
    assert names(history) == ["one"]
    assert not (tmp_path / ".history.duckdb.new").exists()


def test_a_file_that_stays_open_elsewhere_is_waited_for_and_then_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_module, "WAIT_S", 0.3)
    history = HistoryFile(tmp_path)
    keep(history, evaluation("one"))

    with duckdb.connect(str(tmp_path / "history.duckdb")):
        started = time.monotonic()
        with pytest.raises(StoreError, match=r"history\.duckdb"):
            history.evaluations()
        assert time.monotonic() - started >= 0.3
    assert names(history) == ["one"]


# --- damaged ------------------------------------------------------------------------------------------------------


def garbage(file: Path) -> None:
    file.write_bytes(b"not a database at all\n" * 1000)


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def truncated(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: 4096 * 2])


def scribbled_on(file: Path) -> None:
    """Its checksums do not hold any more; DuckDB says in which "block", which has to do with no lock."""
    content = bytearray(file.read_bytes())
    for position in range(4096, len(content), 4096):
        content[position : position + 64] = b"\xff" * 64
    file.write_bytes(content)


@pytest.mark.parametrize("damage", [garbage, emptied, truncated, scribbled_on])
def test_a_damaged_file_is_an_error_at_once_that_says_what_to_do(
    tmp_path: Path, damage: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_module, "WAIT_S", HANGS_S)
    folder = tmp_path / "locks of Connection Error"
    history = HistoryFile(folder)
    keep(history, evaluation("one"))
    damage(folder / "history.duckdb")
    started = time.monotonic()

    for ask in (history.evaluations, lambda: history.values("one"), lambda: keep(history, evaluation("two"))):
        with pytest.raises(StoreError, match=r"history\.duckdb: cannot be used .*remove it"):
            ask()
    assert time.monotonic() - started < SOON_S, "it waited for a file that nobody holds"

    (folder / "history.duckdb").unlink()
    keep(history, evaluation("two"))
    assert names(history) == ["two"]


def test_a_folder_that_cannot_be_made_is_an_error_of_the_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(StoreError, match="cannot be written"):
        keep(HistoryFile(tmp_path / "file" / "evaluations"), evaluation("one"))
