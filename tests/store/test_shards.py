"""A domain in shards answers as the same domain in one file does."""

from __future__ import annotations

import importlib
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evals.judgments import HiddenText
from lab.campaigns.processes import CampaignChild
from nornweave.ask.search.question import Question
from nornweave.core.access.viewer import OPERATOR, Viewer
from nornweave.core.errors import StoreError
from nornweave.core.text.analyzer import pair_key
from nornweave.core.types import Domain
from nornweave.index import partition
from nornweave.index.arrays import arrays_file
from nornweave.index.index import Index
from nornweave.index.partition import working_files
from nornweave.index.serving import ServedGeneration
from nornweave.ingest.records import DomainParts
from tests.recall_workspace import agent_of, configure, write_workspace
from tests.recall_workspace import publish as publish_workspace
from tests.support import MemorySource, found_by_words, memory_parts, published_texts, sync

WORDS = """
    the retry timeout of a queue worker waits until every lease ends or its owner dies again
""".split()  # noqa: SIM905
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=60).map(" ".join)
corpora = st.lists(
    st.dictionaries(st.sampled_from([f"{name}.md" for name in "abcdefghij"]), texts, max_size=10),
    min_size=2,
    max_size=2,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
QUESTIONS = ("how are payment errors handled", "retry timeout", "close the day", "refund policy", "error 422")


def filled(name: str, documents: dict[str, str]) -> MemorySource:
    source = MemorySource(id=name)
    for path, text in documents.items():
        source.write(path, text)
    return source


@dataclass
class Pair:
    """The same corpus in one file and in shards."""

    one: DomainParts
    several: DomainParts

    def open(self, stack: ExitStack, viewer: Viewer = OPERATOR) -> tuple[Index, Index]:
        indexes = [parts.store.files.open(parts.store.current()) for parts in (self.one, self.several)]
        first, second = (stack.enter_context(index).seen_by(viewer) for index in indexes)
        return first, second


def pair(folder: Path, corpus: list[dict[str, str]], shards: int = 3) -> Pair:
    sources = [filled(f"s{number}", documents) for number, documents in enumerate(corpus)]
    made = Pair(memory_parts(folder / "one", *sources), memory_parts(folder / "several", *sources, shards=shards))
    for parts in (made.one, made.several):
        sync(parts)
    return made


def assert_same(one: Index, other: Index, words: list[str], k: int) -> None:
    numbers = np.arange(one.size, dtype=np.int32)
    assert (one.size, one.chunk_count, one.document_count) == (other.size, other.chunk_count, other.document_count)
    assert one.chunks(numbers) == other.chunks(numbers)
    assert one.contents(numbers) == other.contents(numbers)
    np.testing.assert_array_equal(one.vectors(numbers), other.vectors(numbers))
    assert one.document_frequencies(words) == other.document_frequencies(words)
    weights = {word: 1 / (1 + place) for place, word in enumerate(words)}
    for share in (0, 0.4):
        np.testing.assert_array_equal(one.sparse(weights, share), other.sparse(weights, share))
    np.testing.assert_array_equal(one.holding(words[:2]), other.holding(words[:2]))
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
    assert one.served_documents(("", ""), 100) == other.served_documents(("", ""), 100)
    assert one.served_documents(("s0", "c.md"), 2, mask) == other.served_documents(("s0", "c.md"), 2, mask)
    assert one.value_counts("format", "keyword", 5, mask) == other.value_counts("format", "keyword", 5, mask)
    assert one.unread_values("year", 5) == other.unread_values("year", 5)
    assert sorted(one.paths()) == sorted(other.paths())
    assert one.chunk_places() == other.chunk_places()
    assert one.chunk_places(holding=[words[0]]) == other.chunk_places(holding=[words[0]])
    documents = range(one.document_count)
    assert one.document_texts(documents) == other.document_texts(documents)
    for path in set(one.paths()):
        assert one.indexed_documents(path) == other.indexed_documents(path)
        assert sorted(one.sources_of(path)) == sorted(other.sources_of(path))
        assert one.document("s0", path) == other.document("s0", path)
    for chunk in one.chunks(numbers[:3]).values():
        assert one.chunk(chunk.chunk_id) == other.chunk(chunk.chunk_id) == chunk


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(corpora.filter(any), st.lists(st.sampled_from(WORDS), min_size=2, max_size=6, unique=True), st.integers(2, 5))
def test_shards_answer_as_one_file(
    tmp_path_factory: pytest.TempPathFactory, corpus: list[dict[str, str]], words: list[str], shards: int
) -> None:
    made = pair(tmp_path_factory.mktemp("shards"), corpus, shards)
    with ExitStack() as stack:
        assert_same(*made.open(stack), words, 5)


@pytest.fixture
def corpus() -> list[dict[str, str]]:
    return [{f"{number:02}.md": f"word{number} {WORDS[number % len(WORDS)]} retry" for number in range(20)}, {}]


def test_unchanged_shards_keep_their_file(tmp_path: Path, corpus: list[dict[str, str]]) -> None:
    source = filled("s", corpus[0])
    parts = memory_parts(tmp_path, source, shards=3)
    before = sync(parts)
    source.write("00.md", "another text")
    source.write("new.md", "a new text")
    after = sync(parts)
    first, second = (set(parts.store.files.data_files(report.generation)) for report in (before, after))
    assert 1 <= len(first & second) < 3
    assert (after.added, after.changed, after.removed) == (1, 1, 0)
    assert published_texts(parts)["s/new.md"] == "a new text"
    assert not sync(parts).published


def test_a_rollback_brings_all_shards_back_and_the_next_sync_forward(
    tmp_path: Path, corpus: list[dict[str, str]]
) -> None:
    source = filled("s", corpus[0])
    parts = memory_parts(tmp_path, source, shards=3)
    sync(parts)
    old = published_texts(parts)
    source.write("00.md", "another text")
    sync(parts)
    parts.store.rollback()
    assert published_texts(parts) == old
    source.write("01.md", "one more text")
    sync(parts)
    assert published_texts(parts) == {**old, "s/00.md": "another text", "s/01.md": "one more text"}


def test_files_that_no_manifest_names_are_removed(tmp_path: Path, corpus: list[dict[str, str]]) -> None:
    source = filled("s", corpus[0])
    parts = memory_parts(tmp_path, source, shards=3)
    for number in range(8):
        source.write(f"{number:02}.md", f"text of round {number}")
        sync(parts)
    files = parts.store.files
    named = {file for generation in files.all() for file in files.parts(generation)}
    assert len(files.all()) == 3
    assert {file for file in files.folder.iterdir() if file.suffix in {".duckdb", ".json"}} == named
    published_texts(parts)
    assert {file.with_suffix("") for file in files.folder.glob("*.arrays")} <= named


def test_what_terms_count_for_in_the_whole_is_kept_beside_the_manifest(
    tmp_path: Path, corpus: list[dict[str, str]]
) -> None:
    made = pair(tmp_path, corpus)
    kept = arrays_file(made.several.store.files.path(made.several.store.current()))
    written = []
    for damage in (b"", b"damaged", None):
        if damage is not None:
            kept.unlink(missing_ok=True)
            kept.write_bytes(damage)
        with ExitStack() as stack:
            one, several = made.open(stack)
            np.testing.assert_array_equal(one.sparse({"retry": 1.0}), several.sparse({"retry": 1.0}))
        written.append(kept.stat().st_mtime_ns)
    assert written[1] == written[2], "made once"


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (3, 2), (2, 3)])
def test_another_number_of_shards_moves_what_is_stored(
    tmp_path: Path, corpus: list[dict[str, str]], before: int, after: int
) -> None:
    source = filled("s", corpus[0])
    sync(memory_parts(tmp_path, source, shards=before))
    parts = memory_parts(tmp_path, source, shards=after)
    report = sync(parts)
    assert report.embedded == 0
    assert (report.added, report.changed, report.removed, report.published) == (0, 0, 0, True)
    assert len(parts.store.files.data_files(report.generation)) == after
    assert all(file.exists() for file in working_files(tmp_path, after))
    assert not any(file.exists() for file in working_files(tmp_path, before))
    assert len(published_texts(parts)) == 20
    parts.store.rollback()
    assert len(published_texts(parts)) == 20


def test_a_text_of_several_shards_is_embedded_once(tmp_path: Path) -> None:
    source = filled("s", dict.fromkeys([f"{number}.md" for number in range(8)], "the same text"))
    parts = memory_parts(tmp_path, source, shards=3)
    assert sync(parts).embedded == 1
    source.write("another.md", "the same text")
    assert sync(parts).embedded == 0
    assert len(found_by_words(parts, "same")) == 9


@pytest.mark.parametrize("victim", ["manifest", "shard"])
def test_a_damaged_part_leaves_the_generation_before_serving_and_is_built_again(
    tmp_path: Path, corpus: list[dict[str, str]], victim: str
) -> None:
    source = filled("s", corpus[0])
    parts = memory_parts(tmp_path, source, shards=3)
    first = sync(parts).generation
    source.write("00.md", "another text")
    second = sync(parts).generation
    files = parts.store.files
    new = set(files.data_files(second)) - set(files.data_files(first))
    (files.path(second) if victim == "manifest" else new.pop()).write_bytes(b"no database" * 1000)
    served = ServedGeneration(files)
    with served.use(OPERATOR) as index:
        assert index.document_count == 20
    assert served.name == first
    assert served.problem
    served.close()
    sync(parts)
    assert published_texts(parts)["s/00.md"] == "another text"


def test_a_file_of_another_generation_is_not_taken_for_a_shard(tmp_path: Path, corpus: list[dict[str, str]]) -> None:
    parts = memory_parts(tmp_path, filled("s", corpus[0]), shards=2)
    generation = sync(parts).generation
    first, second = parts.store.files.data_files(generation)
    for file in (first, second):
        file.with_name(f"{file.name}.crc32").unlink()
    second.write_bytes(first.read_bytes())
    with pytest.raises(StoreError, match="is not the file that"):
        parts.store.files.open(generation)


def test_a_text_that_comes_to_another_shard_keeps_its_vector(tmp_path: Path, corpus: list[dict[str, str]]) -> None:
    source = filled("s", corpus[0])
    parts = memory_parts(tmp_path, source, shards=3)
    sync(parts)
    source.documents = {f"moved/{path}": text for path, text in source.documents.items()}
    source.revisions = dict.fromkeys(source.documents, 1)
    report = sync(parts, confirm_deletes=True)
    assert (report.embedded, report.published) == (0, True)
    assert published_texts(parts) == {f"s/{path}": text for path, text in source.documents.items()}


def test_auto_divides_what_has_grown_and_keeps_what_has_shrunk(
    tmp_path: Path, corpus: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition, "CHUNKS_PER_SHARD", 9)
    source = filled("s", corpus[0])
    parts = memory_parts(tmp_path, source, shards="auto")
    waiting = parts.store.writer()

    def shards_after(**options: bool) -> int:
        report = sync(parts, **options)
        assert (len(published_texts(parts)), report.reused) == (len(source.documents), report.chunks - report.embedded)
        return len(parts.store.files.data_files(report.generation))

    assert shards_after() == 1, "what is published decides, and nothing was"
    assert shards_after() == 3
    assert not sync(parts).published
    with waiting:
        assert all(file.exists() for file in working_files(tmp_path, 3)), "whoever waited finds the division of now"
    source.documents = dict(list(source.documents.items())[:8])
    assert shards_after(confirm_deletes=True) == 3


def test_vector_indexes_of_shards_answer_as_that_of_one_file(tmp_path: Path, corpus: list[dict[str, str]]) -> None:
    source = filled("s", dict(list(corpus[0].items())[:5]))  # a shard has none of them
    made = Pair(*(memory_parts(tmp_path / str(n), source, shards=n, vector_index="hnsw") for n in (1, 4)))
    for parts in (made.one, made.several):
        assert sync(parts).published
    with ExitStack() as stack:
        assert_same(*made.open(stack), WORDS[:4], 5)
        queries = stack.enter_context(made.several.store.files.open(made.several.store.current()))
        assert queries.meta["built_with"] == "hnsw"


def documents(version: int) -> dict[str, str]:
    """Return documents of which each version adds, changes, moves and removes some."""
    texts = {f"{n:02}.md": f"word{n} {WORDS[n % len(WORDS)]} retry of version {version * (n % 3)}" for n in range(18)}
    moved = texts.pop(f"{version:02}.md")
    return {**texts, f"moved-{version}.md": moved}


def parts_of_version(folder: Path, version: int, shards: int) -> DomainParts:
    source = filled("s", documents(version))
    source.revisions = dict.fromkeys(source.documents, version)
    return memory_parts(folder, source, shards=shards)


def killed_sync(folder: Path, version: int, shards: int, place: str, calls: int) -> None:
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
    sync(parts_of_version(folder, version, shards), confirm_deletes=True)


def kill(folder: Path, *arguments: object) -> None:
    ended = CampaignChild(folder / "said.txt", killed_sync, folder, *arguments).wait()
    assert ended.code == -signal.SIGKILL, ended.said


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> DomainParts:
    """Return a first sync of version 1, in one file."""
    parts = parts_of_version(tmp_path_factory.mktemp("reference"), 1, 1)
    sync(parts)
    return parts


@pytest.mark.parametrize(
    ("place", "calls", "published"),
    [
        ("working_rows:_insert", 4, 0),  # inside the transaction of a shard
        ("writer:DuckDBWriter.add_vectors", 1, 0),
        ("sharded_writer:checksum_of", 1, 0),
        ("publish:_complete", 3, 0),
        ("publish:GenerationFiles.point_at", 0, 0),
        ("writer:DuckDBWriter.record_publication", 0, 1),
        ("writer:DuckDBWriter.record_publication", 1, 1),
        ("working_tables:WorkingTables._record", 2, 1),  # inside the transaction of a shard
    ],
)
def test_a_killed_sync_leaves_one_of_two_generations_and_the_next_what_a_first_sync_does(
    tmp_path: Path, reference: DomainParts, place: str, calls: int, published: int
) -> None:
    parts = [parts_of_version(tmp_path, version, 3) for version in (0, 1)]
    sync(parts[0])
    kill(tmp_path, 1, 3, place, calls)
    left = {f"s/{path}": text for path, text in documents(published).items()}
    assert published_texts(parts[1]) == left
    if published:  # what was published and not recorded is taken back
        sync(parts[0], confirm_deletes=True)
        assert published_texts(parts[0]) == {f"s/{path}": text for path, text in documents(0).items()}
    sync(parts[1], confirm_deletes=True)
    assert not sync(parts[1]).published
    with ExitStack() as stack:
        assert_same(*Pair(reference, parts[1]).open(stack), WORDS[:4], 5)
    named = {file for generation in parts[1].store.generations() for file in parts[1].store.files.parts(generation)}
    assert {file for file in parts[1].store.files.folder.iterdir() if file.suffix in {".duckdb", ".json"}} == named


@pytest.mark.parametrize(
    ("before", "after", "place", "calls"),
    [(1, 3, "_copy", 2), (3, 1, "_take_place", 0), (3, 2, "_remove", 0), (3, 2, "shutil.rmtree", 1)],
)
def test_a_killed_division_loses_nothing(
    tmp_path: Path, reference: DomainParts, before: int, after: int, place: str, calls: int
) -> None:
    sync(parts_of_version(tmp_path, 1, before))
    kill(tmp_path, 1, after, f"partition:{place}", calls)
    parts = parts_of_version(tmp_path, 1, after)
    parts.sources[0].unavailable = True
    report = sync(parts)
    assert (report.embedded, report.documents) == (0, len(documents(1)))
    with ExitStack() as stack:
        assert_same(*Pair(reference, parts).open(stack), WORDS[:4], 5)
    assert not any(file.exists() for file in working_files(tmp_path, before))


def test_an_agent_recalls_the_same_items_out_of_shards(tmp_path: Path) -> None:
    answers = []
    write_workspace(tmp_path)
    for shards in (1, 3):
        workspace = configure(tmp_path, {"documentation": {"storage": {"shards": shards}}})
        publish_workspace(workspace, Domain.DOCUMENTATION)
        with (
            ThreadPoolExecutor(2) as executor,
            agent_of(workspace, Domain.DOCUMENTATION, executor) as agent,
        ):
            found = [agent.recall(Question(text=text, now=NOW, viewer=OPERATOR)) for text in QUESTIONS]
            with agent.generation.use(OPERATOR) as index:
                hidden = index.indexed_documents(next(iter(index.paths())))[0].document
            question = Question(
                text=hidden.text[:80], now=NOW, viewer=OPERATOR,
                views={Domain.DOCUMENTATION: HiddenText(hidden.path, 0, 40).view},
            )  # fmt: skip
            found.append(agent.recall(question))
        answers.append([one.items for one in found])
    assert answers[0] == answers[1]
    assert all(answers[0])
