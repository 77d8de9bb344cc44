"""A domain in segments answers as the same domain in one fresh file does."""

import importlib
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import MemorySource, memory_parts, published_texts, sync

from lab.access.corpora import GROUPS, SOURCES, Written, publish_into, published
from lab.campaigns.processes import CampaignChild
from lab.small_segments import lengths_in, small_segments
from nornweave.config.domain import Bm25Settings
from nornweave.core.access import OPERATOR, Viewer
from nornweave.core.errors import StoreError
from nornweave.core.text.analyzer import pair_key
from nornweave.index.corpus import LARGEST, NEGLIGIBLE_SHARE, SMALLEST, DuckDBStore, SegmentFill, joining
from nornweave.index.fact_pairs import read_fact_pairs, read_passages
from nornweave.index.generations.serving import ServedGeneration
from nornweave.index.index import Index
from nornweave.index.searching.arrays import arrays_file
from nornweave.index.searching.inverted import NO_LENGTHS
from nornweave.ingest.records import DomainParts

WORDS = """
    the retry timeout of a queue worker waits until every lease ends or its owner dies again
""".split()  # noqa: SIM905
FIRST, SECOND = "gen-000001", "gen-000002"
FIELDS = Bm25Settings.model_validate({"b": 0.3, "fields": {"title": 3, "content": 1, "path": 0.5, "section": 2}})


def filled(name: str, documents: dict[str, str]) -> MemorySource:
    source = MemorySource(id=name)
    for path, text in documents.items():
        source.write(path, text)
    return source


def segments_of(store: DuckDBStore) -> list[str]:
    return [file.path.name for file in store.files.data_files(store.current())]


def assert_same(one: Index, other: Index, words: list[str], k: int) -> None:
    numbers = np.arange(one.size, dtype=np.int32)
    assert (one.size, one.chunk_count, one.document_count) == (other.size, other.chunk_count, other.document_count)
    assert (one.restricted_documents, bool(one.part)) == (other.restricted_documents, bool(other.part))
    assert one.chunks(numbers) == other.chunks(numbers)
    assert one.contents(numbers) == other.contents(numbers)
    np.testing.assert_array_equal(one.vectors(numbers), other.vectors(numbers))
    assert_same_terms(one, other, words)
    np.testing.assert_array_equal(one.containing(words[0], k), other.containing(words[0], k))
    neighbours = [pair_key(pair) for pair in pairwise(words)]
    for held, same in (
        (one.paired(neighbours), other.paired(neighbours)),
        (one.named(["path:c.md"]), other.named(["path:c.md"])),
    ):
        assert held.keys() == same.keys()
        assert all(np.array_equal(chunks, same[key]) for key, chunks in held.items())
    mask = numbers % 2 == 0
    for query in one.vectors(numbers[:2]):
        for within in (None, mask):
            first, second = one.dense(query, k, within), other.dense(query, k, within)
            np.testing.assert_array_equal(first.numbers, second.numbers)
            np.testing.assert_array_equal(first.scores, second.scores)
        np.testing.assert_array_equal(one.similarities(query, numbers[::-1]), other.similarities(query, numbers[::-1]))
    assert_same_documents(one, other, mask, words)


def assert_same_terms(one: Index, other: Index, words: list[str]) -> None:
    assert one.document_frequencies(words) == other.document_frequencies(words)
    numbers = np.arange(one.size, dtype=np.int32)
    weights = {word: 1 / (1 + place) for place, word in enumerate(words)}
    for bm25 in (Bm25Settings(), FIELDS):
        assert one.average_length(bm25) == other.average_length(bm25)
        for share in (0, 0.4):
            np.testing.assert_array_equal(one.sparse(weights, share, bm25), other.sparse(weights, share, bm25))
        for word in words:
            np.testing.assert_array_equal(
                one.term_weights([word], numbers[::-1], bm25), other.term_weights([word], numbers[::-1], bm25)
            )
    np.testing.assert_array_equal(one.holding(words[:2]), other.holding(words[:2]))


def assert_same_documents(one: Index, other: Index, mask: np.ndarray, words: list[str]) -> None:
    for asked in ((("", ""), 100, None), (("s0", "c.md"), 2, mask[: one.size])):
        first, second = (
            [replace(document, gate="") for document in index.served_documents(*asked)] for index in (one, other)
        )
        assert first == second  # a gate that was looked at again and is of the same text is not published
    assert one.stated_documents(["year"]) == other.stated_documents(["year"])
    assert one.value_counts("format", "keyword", 5, mask) == other.value_counts("format", "keyword", 5, mask)
    assert one.value_counts("source", "keyword", 5) == other.value_counts("source", "keyword", 5)
    assert one.unread_values("year", 5) == other.unread_values("year", 5)
    assert one.complete("c", 9) == other.complete("c", 9)
    assert sorted(one.paths()) == sorted(other.paths())
    assert one.chunk_places() == other.chunk_places()
    assert one.chunk_places(holding=[words[0]]) == other.chunk_places(holding=[words[0]])
    documents = range(one.document_count) if not one.part else ()
    assert one.document_texts(documents) == other.document_texts(documents)
    paths = sorted(set(one.paths()))
    for path in paths[:: 1 + len(paths) // 9]:  # of many, every third
        assert one.indexed_documents(path) == other.indexed_documents(path)
        assert sorted(one.sources_of(path)) == sorted(other.sources_of(path))
        for source in SOURCES:
            assert one.document(source, path) == other.document(source, path)
    for chunk in one.chunks(np.arange(min(3, one.size), dtype=np.int32)).values():
        assert one.chunk(chunk.chunk_id) == other.chunk(chunk.chunk_id) == chunk


texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=40).map(" ".join)
stated = st.sampled_from((None, None, "staff", ["ops", "board"]))
versions = st.dictionaries(
    st.tuples(st.sampled_from(sorted(SOURCES)), st.sampled_from([f"{name}.md" for name in "abcdefg"])),
    st.tuples(texts, stated),
    max_size=9,
).map(lambda held: tuple(Written(source, path, *said) for (source, path), said in sorted(held.items())))


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(versions, min_size=2, max_size=4).filter(lambda history: any(history[0]) and any(history[-1])),
    st.lists(st.sampled_from(WORDS), min_size=2, max_size=6, unique=True),
    st.sampled_from(((LARGEST, 0, 0.3), (LARGEST, 0, 1.0), (LARGEST, 2, 0.5), (3, 0, 1.0))),
    st.booleans(),
)
def test_any_history_answers_as_one_fresh_file(
    tmp_path_factory: pytest.TempPathFactory,
    history: list[tuple[Written, ...]],
    words: list[str],
    sizes: tuple[int, int, float],
    goes_back: bool,
) -> None:
    folder = tmp_path_factory.mktemp("segments")
    one = published(folder / "one", history[-1])
    with small_segments(*sizes):
        several = published(folder / "several", history[0])
        for version in history[1:-1]:
            publish_into(several, version)
        if goes_back and len(several.generations()) > 1 and history[-1] != history[-2]:
            several.rollback()
        publish_into(several, history[-1])
    assert_same_stores(one, several, words)


def assert_same_stores(one: DuckDBStore, several: DuckDBStore, words: list[str]) -> None:
    with ExitStack() as stack:
        indexes = [stack.enter_context(store.files.open(store.current())) for store in (one, several)]
        for viewer in (OPERATOR, Viewer(), *(Viewer(groups=frozenset({group})) for group in GROUPS[:3])):
            first, second = (index.seen_by(viewer) for index in indexes)
            assert_same(first, second, words, 5)
    files = [store.files.data_files(store.current()) for store in (one, several)]
    lengths = [sum(map(lengths_in, each), NO_LENGTHS) for each in files]
    assert lengths[0] == lengths[1]
    assert read_passages({"documentation": files[0]}) == read_passages({"documentation": files[1]})
    assert read_fact_pairs({"documentation": files[0]}) == read_fact_pairs({"documentation": files[1]})


def test_facts_of_what_was_replaced_meet_no_others(tmp_path: Path) -> None:
    said = [Written("open", f"{number}.md", f"The `max_retries` setting is {number}.") for number in range(6)]
    stores = [published(tmp_path / "one", said)]
    with small_segments():
        stores.append(published(tmp_path / "several", [*said[:5], Written("open", "5.md", "`max_retries` is 77.")]))
        publish_into(stores[1], said)
    assert len(segments_of(stores[1])) == 2
    assert_same_stores(*stores, ["setting", "max_retries"])


CORPUS = {f"{number:02}.md": f"word{number} {WORDS[number % len(WORDS)]} retry" for number in range(20)}


@pytest.fixture
def tiered() -> Iterator[None]:
    with small_segments():
        yield


@pytest.fixture(scope="module")
def changed_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, MemorySource]:
    """Return a corpus that was synced, and synced again with one change, to be copied."""
    folder, source = tmp_path_factory.mktemp("changed"), filled("s", CORPUS)
    parts = memory_parts(folder, source)
    with small_segments():
        assert sync(parts).generation == FIRST
        source.write("00.md", "another text")
        assert sync(parts).generation == SECOND
    return folder, source


@pytest.fixture
def changed(changed_once: tuple[Path, MemorySource], tmp_path: Path, tiered: None) -> tuple[DomainParts, MemorySource]:
    folder, source = changed_once
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    own = deepcopy(source)
    return memory_parts(tmp_path, own), own


@pytest.mark.usefixtures("tiered")
def test_a_change_writes_what_changed(tmp_path: Path) -> None:
    source = filled("s", CORPUS)
    parts = memory_parts(tmp_path, source)
    sync(parts)
    before = segments_of(parts.store)
    source.write("00.md", "another text")
    source.write("new.md", "a new text")
    report = sync(parts)
    assert (report.added, report.changed, report.removed) == (1, 1, 0)
    manifest = parts.store.files.manifest(report.generation)
    assert [segment.name for segment in manifest.segments][:1] == before
    assert [(each.documents, each.gone_documents) for each in manifest.segments] == [(20, 1), (2, 0)]
    assert published_texts(parts)["s/new.md"] == "a new text"
    assert not sync(parts).published
    del source.documents["01.md"]
    assert sync(parts).removed == 1
    assert [len(file.gone) for file in parts.store.files.data_files(parts.store.current())] == [2, 0]
    assert "s/01.md" not in published_texts(parts)


def test_a_small_domain_stays_one_whole_file(tmp_path: Path) -> None:
    source = filled("s", CORPUS)
    parts = memory_parts(tmp_path, source)
    sync(parts)
    del source.documents["01.md"]
    sync(parts)
    source.write("00.md", "another text")
    sync(parts)
    (file,) = parts.store.files.data_files(parts.store.current())
    assert file.gone == ()


def test_a_year_of_changes_leaves_few_segments_and_little_that_is_gone() -> None:
    live, written, most = {0: 60_000}, 0, 0
    for day in range(1, 366):
        held = [SegmentFill(str(number), 60_000 if number == 0 else count, count) for number, count in live.items()]
        joined = joining(held, 1_000)
        built = 1_000 + sum(live.pop(int(name)) for name in joined)
        live = {number: count - (100 if number == 0 else 0) for number, count in live.items()} | {day: built}
        written, most = written + built, max(most, len(live))
    assert most <= 12
    assert written / 365_000 < 8


LITTLE = SMALLEST // NEGLIGIBLE_SHARE


@pytest.mark.parametrize(("held", "changed", "joined"), [
    ([(50_000, 50_000), (2_000, 2_000)], 1_500, set()),
    ([(50_000, 50_000), (2_000, 2_000)], 2_000, {1}),
    ([(50_000, 50_000), (4_000, 4_000), (2_000, 2_000)], 2_000, {1, 2}),
    ([(50_000, 34_000), (2_000, 2_000)], 0, {0, 1}),  # worn
    ([(50_000, 50_000), (2_000, 1_900)], 0, set()),
    ([(50_000, 50_000), (SMALLEST, SMALLEST)], 1, set()),
    ([(50_000, 50_000), (LITTLE, LITTLE)], 1, {1}),
    ([(50_000, 50_000), (LITTLE + 1, LITTLE + 1)], 1, set()),
    ([(SMALLEST - 1, SMALLEST - 1)], 1, {0}),  # a small domain
    ([(SMALLEST, SMALLEST)], 1, set()),
    ([(SMALLEST + 1, SMALLEST)], 0, {0}),
    ([(SMALLEST, SMALLEST)], 0, set()),
    ([(LARGEST, LARGEST)], LARGEST, set()),
])  # fmt: skip
def test_segments_join_by_tiers(held: list[tuple[int, int]], changed: int, joined: set[int]) -> None:
    assert joining([SegmentFill(str(number), *each) for number, each in enumerate(held)], changed) == set(
        map(str, joined)
    )


def test_full_writes_everything_again(changed: tuple[DomainParts, MemorySource]) -> None:
    parts, _ = changed
    report = sync(parts, full=True)
    assert (report.published, report.embedded) == (True, 0)
    (name,) = segments_of(parts.store)
    assert not name.startswith(FIRST)


def test_a_rollback_brings_all_segments_back_and_the_next_sync_forward(
    changed: tuple[DomainParts, MemorySource],
) -> None:
    parts, source = changed
    old = {f"s/{path}": text for path, text in CORPUS.items()}
    parts.store.rollback()
    assert published_texts(parts) == old
    source.write("01.md", "one more text")
    sync(parts)
    assert published_texts(parts) == {**old, "s/00.md": "another text", "s/01.md": "one more text"}


@pytest.mark.usefixtures("tiered")
def test_files_that_no_manifest_names_are_removed(tmp_path: Path) -> None:
    source = filled("s", CORPUS)
    parts = memory_parts(tmp_path, source)
    for number in range(5):
        source.write(f"{number:02}.md", f"text of round {number}")
        sync(parts)
    files = parts.store.files
    named = {file for generation in files.all() for file in files.parts(generation)}
    assert len(files.all()) == 3
    assert {file for file in files.folder.iterdir() if file.suffix in {".duckdb", ".json", ".arrays"}} == named


@pytest.mark.parametrize("victim", ["manifest", "segment", "arrays", "no arrays"])
def test_a_damaged_part_leaves_the_generation_before_serving_and_is_built_again(
    changed: tuple[DomainParts, MemorySource], victim: str
) -> None:
    parts, _ = changed
    files = parts.store.files
    segment = files.data_files(SECOND)[-1].path
    damaged = {"manifest": files.path(SECOND), "segment": segment}.get(victim, arrays_file(segment))
    if victim == "no arrays":
        damaged.unlink()
    else:
        damaged.write_bytes(b"no database" * 1000)
    served = ServedGeneration(files)
    with served.use(OPERATOR) as index:
        assert index.document_count == 20
    assert served.name == FIRST
    assert served.problem
    served.close()
    sync(parts)
    assert published_texts(parts)["s/00.md"] == "another text"


def test_a_file_of_another_generation_is_not_taken_for_a_segment(changed: tuple[DomainParts, MemorySource]) -> None:
    parts, _ = changed
    first, second = (file.path for file in parts.store.files.data_files(SECOND))
    for file in (first, second):
        file.with_name(f"{file.name}.crc32").unlink()
    second.write_bytes(first.read_bytes())
    with pytest.raises(StoreError, match="is of another segment"):
        parts.store.files.open(SECOND)
    arrays_file(second).write_bytes(arrays_file(first).read_bytes())
    with pytest.raises(StoreError, match="is not the file that"):
        parts.store.files.open(SECOND)


def test_generations_share_what_is_open_of_their_segments(changed: tuple[DomainParts, MemorySource]) -> None:
    parts, _ = changed
    old = parts.store.files.open(FIRST)
    with parts.store.files.open(SECOND) as new:
        assert new._parts.segments[0].opened.file is old._parts.opened.file
        old.close()
        assert new.containing("word1", 50).size == 11
    with pytest.raises(StoreError):
        new.containing("word1", 50)


@pytest.mark.vss
@pytest.mark.usefixtures("tiered")
def test_vector_indexes_of_segments_answer_as_that_of_one_file(tmp_path: Path) -> None:
    source = filled("s", CORPUS)
    parts = [memory_parts(tmp_path / str(number), source, vector_index="hnsw") for number in range(2)]
    sync(parts[0])
    source.write("00.md", "another text")
    sync(parts[0])
    sync(parts[1])
    with ExitStack() as stack:
        several, one = (stack.enter_context(each.store.files.open(each.store.current())) for each in parts)
        assert several.meta["built_with"] == "hnsw"
        assert_same(one, several, WORDS[:4], 5)


def documents(version: int) -> dict[str, str]:
    """Return documents of which each version adds, changes, moves and removes some."""
    texts = {f"{n:02}.md": f"word{n} {WORDS[n % len(WORDS)]} retry of version {version * (n % 3)}" for n in range(18)}
    moved = texts.pop(f"{version:02}.md")
    return {**texts, f"moved-{version}.md": moved}


def parts_of_version(folder: Path, version: int) -> DomainParts:
    source = filled("s", documents(version))
    source.revisions = dict.fromkeys(source.documents, version)
    return memory_parts(folder, source)


def killed_sync(folder: Path, version: int, sizes: tuple[int, int], place: str, calls: int) -> None:
    """Sync a version and be killed at a function, when it has been called so many times."""
    module, _, path = place.partition(":")
    *owners, name = path.split(".")
    owner = reduce(getattr, owners, importlib.import_module(f"nornweave.index.{module}"))
    step, left = getattr(owner, name), [calls]

    def doomed(*arguments: object, **options: object) -> object:
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        return step(*arguments, **options)

    setattr(owner, name, doomed)
    with small_segments(*sizes):
        sync(parts_of_version(folder, version), confirm_deletes=True)


def kill(folder: Path, *arguments: object) -> None:
    ended = CampaignChild(folder / "said.txt", killed_sync, folder, *arguments).wait()
    assert ended.code == -signal.SIGKILL, ended.said


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> DomainParts:
    """Return a first sync of version 1, in one file."""
    parts = parts_of_version(tmp_path_factory.mktemp("reference"), 1)
    sync(parts)
    return parts


@pytest.fixture(scope="module", params=[(LARGEST, 0), (7, 0)], ids=["one new segment", "several"])
def synced(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[int, int]]:
    """Return a first sync of version 0, to be copied, and the sizes of its segments."""
    folder = tmp_path_factory.mktemp("synced")
    with small_segments(*request.param):
        sync(parts_of_version(folder, 0))
    return folder, request.param


@pytest.mark.parametrize(("place", "calls", "published"), [
    ("writing.working_tables:_insert", 1, 0),  # inside the transaction of a batch
    ("corpus:DuckDBWriter.add_vectors", 0, 0),
    ("writing.build:write_cards", 0, 0),  # arrays that nothing ends
    ("corpus:checksum_of", 0, 0),
    ("generations.publish:_complete", 0, 0),
    ("generations.publish:_complete", 1, 0),
    ("generations.publish:Path.rename", 1, 0),  # arrays have their name, the segment has not
    ("generations.publish:GenerationFiles.point_at", 0, 0),
    ("corpus:DuckDBWriter._record_publication", 0, 1),
    ("writing.working_tables:WorkingTables._record", 0, 1),  # inside the transaction
    ("generations.publish:GenerationFiles.prune", 0, 1),
])  # fmt: skip
def test_a_killed_sync_leaves_one_of_two_generations_and_the_next_what_a_first_sync_does(
    tmp_path: Path, reference: DomainParts, synced: tuple[Path, tuple[int, int]], place: str, calls: int, published: int
) -> None:
    first, sizes = synced
    shutil.copytree(first, tmp_path, dirs_exist_ok=True)
    parts = [parts_of_version(tmp_path, version) for version in (0, 1)]
    with small_segments(*sizes):
        kill(tmp_path, 1, sizes, place, calls)
        left = {f"s/{path}": text for path, text in documents(published).items()}
        assert published_texts(parts[1]) == left
        if published:  # what was published and not recorded is taken back
            sync(parts[0], confirm_deletes=True)
            assert published_texts(parts[0]) == {f"s/{path}": text for path, text in documents(0).items()}
        sync(parts[1], confirm_deletes=True)
        assert not sync(parts[1]).published
    with ExitStack() as stack:
        one, several = (
            stack.enter_context(each.store.files.open(each.store.current())) for each in (reference, parts[1])
        )
        assert_same(one, several, WORDS[:4], 5)
    files = parts[1].store.files
    named = {file for generation in files.all() for file in files.parts(generation)}
    assert {file for file in files.folder.iterdir() if file.suffix in {".duckdb", ".json", ".arrays"}} == named
