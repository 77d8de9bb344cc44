"""Questions as of an earlier time: which generation answers, who may see what of it, and when it is closed."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lab.access.corpora import DIMENSIONS, Written, publish_into, published
from lab.small_segments import small_segments
from nornweave.config import StorageSettings
from nornweave.config.domain import KeepSettings
from nornweave.core.access import OPERATOR, Viewer
from nornweave.core.errors import GenerationNotKeptError, QueryError, StoreError
from nornweave.core.types import GenerationId
from nornweave.index.corpus import DuckDBStore
from nornweave.index.generations import moves
from nornweave.index.generations.moves import Move, kept_by, read_as_of, then
from nornweave.index.generations.serving import MOST_PAST, ServedGeneration

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
STAFF = Viewer(groups=frozenset({"staff"}))
ONE, TWO, THREE = (GenerationId(f"gen-{number:06d}") for number in (1, 2, 3))


def at(hour: int, generation: GenerationId) -> Move:
    moment = NOW.replace(hour=hour)
    return Move(moment, generation, moment - timedelta(minutes=10))


ROLLED_BACK = [at(1, ONE), at(2, TWO), at(3, THREE), at(4, TWO), at(5, THREE)]


@pytest.mark.parametrize(
    ("hour", "expected"), [(1, ONE), (2, TWO), (3, THREE), (4, TWO), (5, THREE), (11, THREE)]
)  # fmt: skip
def test_the_generation_that_was_current_answers(hour: int, expected: GenerationId) -> None:
    answering = then(NOW.replace(hour=hour, minute=59), ROLLED_BACK, (ONE, TWO, THREE))
    assert (answering.generation, answering.notice) == (expected, "")


def test_a_time_before_the_oldest_kept_names_the_oldest_kept() -> None:
    for as_of in (NOW.replace(hour=0), NOW.replace(hour=1, minute=30), ONE):
        with pytest.raises(GenerationNotKeptError, match=r"oldest kept is gen-000002 of 2026-11-24T02:00:00Z"):
            then(as_of, ROLLED_BACK, (TWO, THREE))


def test_the_nearest_before_answers_for_one_that_is_not_kept_and_says_so() -> None:
    answering = then(NOW.replace(hour=3, minute=30), ROLLED_BACK, (ONE, TWO))
    assert answering.generation == TWO
    assert answering.notice.startswith("gen-000003 of 2026-11-24T03:00:00Z is not kept; gen-000002")


def test_the_time_that_an_answer_names_as_indexed_means_its_generation() -> None:
    assert then(NOW.replace(hour=1, minute=50), ROLLED_BACK, (ONE, TWO, THREE)).generation == TWO


def test_a_time_or_a_generation_is_read() -> None:
    assert read_as_of("gen-000012", NOW) == "gen-000012"
    assert read_as_of("2026-11-24T11:00:00+02:00", NOW) == NOW.replace(hour=9, microsecond=999_999)
    assert read_as_of("2026-11-24t09:00:00.5z", NOW) == NOW.replace(hour=9, microsecond=500_000)
    for text in (
        "",
        "yesterday",
        "2026-11-24",
        "2026-11-24T09:00:00",
        "2026-13-24T09:00:00Z",
        "gen-1",
        "\N{DEVANAGARI DIGIT TWO}",
    ):
        with pytest.raises(QueryError, match="RFC 3339"):
            read_as_of(text, NOW)
    with pytest.raises(QueryError, match="future"):
        read_as_of("2026-11-24T12:02:00Z", NOW)


def test_a_policy_keeps_the_last_of_each_period() -> None:
    days = [Move(NOW - timedelta(days=back), GenerationId(f"gen-{100 - back:06d}"), NOW) for back in range(70, -1, -1)]
    kept = {100 - int(name.removeprefix("gen-")) for name in kept_by(KeepSettings(days=3, weeks=2, months=2), days)}
    # 24 November 2026 is a Tuesday: the last Sunday is two days back; October ended 24 days back.
    assert kept == {0, 1, 2} | {0, 2} | {0, 24}
    twice = [Move(NOW.replace(hour=1), ONE, NOW), Move(NOW.replace(hour=2), TWO, NOW)]
    assert kept_by(KeepSettings(days=30), twice) == {TWO}


# a.md was for everybody, b.md for staff, c.md for everybody, then for staff, then it went.
A, B, C = ("a.md", "alpha one"), ("b.md", "alpha two"), ("c.md", "alpha three")
VERSIONS = (
    (Written("open", *A), Written("open", *B, ["staff"]), Written("open", *C)),
    (Written("open", *A), Written("open", *B, ["staff"]), Written("open", *C, ["staff"])),
    (Written("open", *A, ["staff"]), Written("open", *B)),
)


KEPT = StorageSettings(keep_generations=9)


@pytest.fixture(scope="module", params=[1_000, 0], ids=["one file", "segments"])
def template(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    folder = tmp_path_factory.mktemp("template")
    with small_segments(smallest=request.param):
        store = published(folder, VERSIONS[0], KEPT)
        for version in VERSIONS[1:]:
            publish_into(store, version)
    return folder


@pytest.fixture
def store(template: Path, tmp_path: Path) -> DuckDBStore:
    return DuckDBStore(Path(shutil.copytree(template, tmp_path / "store")), KEPT, dimensions=DIMENSIONS)


def paths(served: ServedGeneration, viewer: Viewer, generation: GenerationId) -> list[str]:
    with served.use(viewer, generation) as index:
        return sorted(index.paths())


def test_a_move_that_a_killed_process_did_not_note_is_noted_by_the_next(store: DuckDBStore) -> None:
    store.rollback(TWO)
    history = store.files.folder / moves.NAME
    history.write_text("".join(history.read_text().splitlines(keepends=True)[:-1]))
    between = datetime.now(UTC)
    store.rollback(ONE)
    assert [move.generation for move in store.files.moves()] == [ONE, TWO, THREE, TWO, ONE]
    assert then(between, store.files.moves(), store.generations()).generation == TWO


def test_a_generation_that_a_killed_process_completed_was_never_published(store: DuckDBStore) -> None:
    history = store.files.folder / moves.NAME
    history.write_text("".join(history.read_text().splitlines(keepends=True)[:-1]))
    (store.files.folder / "CURRENT").write_text(f"{TWO}\n")
    assert [move.generation for move in store.files.moves()] == [ONE, TWO]
    assert then(datetime.now(UTC), store.files.moves(), store.generations()).generation == TWO


def test_what_was_stated_then_and_what_is_stated_today_have_both_to_be_met(store: DuckDBStore) -> None:
    served = ServedGeneration(store.files)
    served.refresh()
    for generation in (ONE, TWO):
        assert paths(served, Viewer(), generation) == []
        assert paths(served, STAFF, generation) == paths(served, OPERATOR, generation) == ["a.md", "b.md", "c.md"]
    assert paths(served, Viewer(), THREE) == ["b.md"]
    with served.use(Viewer(), ONE) as index:
        assert index.document_frequencies(["alpha"]) == {"alpha": 0}
    served.close()


def test_what_a_removed_generation_stated_still_counts(store: DuckDBStore) -> None:
    store.files.remove([TWO])
    served = ServedGeneration(store.files)
    served.refresh()
    assert paths(served, Viewer(), ONE) == []
    assert paths(served, STAFF, ONE) == ["a.md", "b.md", "c.md"]
    served.close()
    strict = ServedGeneration(store.files, access={"open": ["board"]})
    strict.refresh()
    assert paths(strict, STAFF, ONE) == []
    strict.close()


@pytest.mark.parametrize("content", [None, "", "{}", "[]", '{"generations": [], "documents": {}}', "\xff"])
def test_what_is_gone_is_hidden_where_nobody_remembers_what_was_stated(store: DuckDBStore, content: str | None) -> None:
    store.files.remove([TWO])
    former = store.files.folder / "FORMER_ACCESS"
    former.unlink() if content is None else former.write_text(content, "latin-1")
    for _ in ("as it was noted", "as nothing was noted"):
        served = ServedGeneration(store.files)
        served.refresh()
        assert paths(served, STAFF, ONE) == ["a.md", "b.md"]
        assert paths(served, OPERATOR, ONE) == ["a.md", "b.md", "c.md"]
        served.close()
        (store.files.folder / moves.NAME).unlink(missing_ok=True)


def test_a_removed_generation_answers_nobody_also_while_it_is_open(store: DuckDBStore) -> None:
    served = ServedGeneration(store.files)
    served.refresh()
    with served.use(OPERATOR, ONE) as held:
        store.files.remove([ONE])
        with pytest.raises(GenerationNotKeptError):
            served.past.at(ONE)
        with pytest.raises(StoreError), served.use(OPERATOR, ONE):
            pass
        assert len(held.paths()) == 3  # who has it goes on reading it
    assert not served.past._open
    served.close()


def test_who_asks_older_generations_disturbs_nobody(store: DuckDBStore) -> None:
    served = ServedGeneration(store.files)
    served.refresh()

    def ask(number: int) -> int:
        with served.use(OPERATOR, (ONE, TWO, None)[number % 3]) as index:
            assert len(served.past._open) <= MOST_PAST
            return len(index.document_texts(range(index.document_count)))

    with ThreadPoolExecutor(6) as pool:
        counts = [pool.submit(ask, number) for number in range(90)]
        for number in range(3):
            publish_into(store, (*VERSIONS[2], Written("open", "more.md", f"alpha {number}")))
            served.refresh()
            counts += [pool.submit(ask, number) for number in range(30)]
    assert all(count.result() == 3 for number, count in enumerate(counts) if number % 3 < 2)
    served.close()
    assert not served.is_used


def test_a_move_that_was_not_noted_is_known_by_the_pointer(store: DuckDBStore) -> None:
    history = store.files.folder / moves.NAME
    noted = history.read_text().splitlines(keepends=True)
    history.write_text("".join(noted[:2]) + noted[2][:20])
    assert [move.generation for move in store.files.moves()] == [ONE, TWO, THREE]
    store.rollback(ONE)
    history.write_text("".join(noted))
    assert [move.generation for move in store.files.moves()] == [ONE, TWO, THREE, ONE]
    history.unlink()  # as an earlier version left it
    assert [move.generation for move in store.files.moves()] == [ONE, TWO, THREE, ONE]


def test_the_policy_decides_beside_the_newest(tmp_path: Path) -> None:
    store = published(tmp_path, VERSIONS[0], StorageSettings(keep_generations=1, keep=KeepSettings(days=30)))
    history = store.files.folder / moves.NAME
    for number, version in enumerate(VERSIONS[1:]):
        *before, last = history.read_text().splitlines(keepends=True)
        history.write_text("".join(before) + f"2026-01-0{number + 1}{last[10:]}")
        publish_into(store, version)
    assert store.generations() == (ONE, TWO, THREE)
    publish_into(store, VERSIONS[0])
    assert store.generations() == (ONE, TWO, GenerationId("gen-000004"))
