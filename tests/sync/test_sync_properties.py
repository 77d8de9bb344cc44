"""What a sync must never lose or keep, as properties against the real store."""

import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support import BROKEN, DEFECT, LOCKED, SKIPPED, MemorySource, found_by_words, memory_parts, published_texts, sync

from lab.small_segments import small_segments
from nornweave.core.errors import QualityError
from nornweave.index.port import Candidate
from nornweave.ingest.pipeline import DomainSync, run
from nornweave.ingest.records import Progress, SyncOptions
from nornweave.models.encoders.hashing import HashEncoder

PATHS = st.sampled_from([f"{letter}.txt" for letter in "abcdef"])
WORDS = st.sampled_from(["alpha", "beta", "gamma", "delta", "größe", "日本"])
TEXTS = st.lists(WORDS, min_size=1, max_size=60).map(" ".join)


def word(number: int) -> str:
    """Return a word of its own for a number, without digits: the analyzer splits words at digits."""
    return "q" + "".join("bcdfghjklm"[int(digit)] for digit in f"{number:03}")


UNUSABLE = st.sampled_from([BROKEN, LOCKED])


class Killed(BaseException):
    """Stands for a process that ends at this point: nothing catches it."""


@dataclass(frozen=True)
class Refused:
    """A report that refuses its candidate unless a person accepts it."""

    accepted: bool = False
    reasons: tuple[str, ...] = ("everything is worse",)
    judged_gone: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def refused(self) -> bool:
        return not self.accepted


@dataclass
class RefuseAll:
    """A gate that refuses every candidate; it counts how often it is asked."""

    asked: int = 0

    def __call__(self, candidate: Candidate, *, run_id: str, accept: Callable[[], bool], progress: Progress) -> Refused:
        self.asked += 1
        return Refused(accepted=accept())


class SyncMachine(RuleBasedStateMachine):
    """Documents come, change, break and go, syncs run and are killed; the published index always tells the truth."""

    @initialize(smallest=st.sampled_from([0, 1_000]))
    def start(self, smallest: int) -> None:
        self.resources = ExitStack()
        self.resources.enter_context(small_segments(smallest=smallest))
        self.folder = Path(tempfile.mkdtemp())
        self.source = MemorySource()
        self.parts = memory_parts(self.folder, self.source)
        self.expected: dict[str, str] = {}
        self.touched: set[str] = set()  # since a sync has seen all
        self.published: dict[str, str] | None = None

    def teardown(self) -> None:
        self.resources.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    @rule(path=PATHS, text=TEXTS)
    def write(self, path: str, text: str) -> None:
        self.source.write(path, text)
        self.touched.add(path)

    @rule(path=PATHS, text=UNUSABLE)
    def damage(self, path: str, text: str) -> None:
        self.source.write(path, text)
        self.touched.add(path)

    @rule(path=PATHS)
    def skip(self, path: str) -> None:
        self.source.write(path, SKIPPED)
        self.touched.add(path)

    @rule(path=PATHS)
    def delete(self, path: str) -> None:
        self.source.documents.pop(path, None)
        self.touched.add(path)

    @rule(full=st.booleans(), is_told=st.booleans())
    def sync(self, full: bool, is_told: bool) -> None:
        """Sync all, or only what changed: both leave the same."""
        report = sync(self.parts, self.touched if is_told else (), full=full, confirm_deletes=True)
        self.touched = set()
        self.expect_stored()
        assert {failure.path for failure in report.failed} == {
            path for path, text in self.source.documents.items() if text in {BROKEN, LOCKED}
        }
        assert report.embedded + report.reused >= report.chunks
        if self.parts.store.current():
            self.published = {f"memory/{path}": text for path, text in self.expected.items()}

    @rule()
    def refuse(self) -> None:
        """Sync with a gate that refuses every candidate; what is published stays."""
        options = SyncOptions(run_id="refused", confirm_deletes=True, wait_s=0)
        with suppress(QualityError):  # without changes there is no candidate to refuse
            run(self.parts, options, gate=RefuseAll())
        self.expect_stored()

    @rule(step=st.sampled_from(["list", "store", "embed", "build"]))
    def kill(self, step: str) -> None:
        """End a sync after a step; what is published stays, what was stored is finished by the next sync."""
        options = SyncOptions(run_id="killed", confirm_deletes=True, wait_s=0)
        left_behind: dict[Path, bytes] = {}
        with pytest.raises(Killed), DomainSync(self.parts, options) as running:
            running.list_changes()
            _raise_if(step == "list")
            running.store_changes()
            self.expect_stored()
            _raise_if(step == "store")
            running.embed()
            _raise_if(step == "embed")
            candidate = running.build().candidate
            if candidate:
                left_behind = {file: file.read_bytes() for file in self.parts.store.files.folder.glob(".build-*")}
            raise Killed
        for file, content in left_behind.items():  # a killed process removes nothing
            file.write_bytes(content)

    def expect_stored(self) -> None:
        """Expect what the sources say now; documents that cannot be read stay as they were."""
        self.expected = {
            path: self.expected.get(path, "") if text in {BROKEN, LOCKED} else text
            for path, text in self.source.documents.items()
            if text != SKIPPED and not (text in {BROKEN, LOCKED} and path not in self.expected)
        }

    @precondition(lambda self: hasattr(self, "published") and self.published is not None)
    @invariant()
    def published_index_is_what_the_last_finished_sync_saw(self) -> None:
        assert published_texts(self.parts) == self.published

    @precondition(lambda self: hasattr(self, "published") and self.published is not None)
    @invariant()
    def deleted_words_find_nothing(self) -> None:
        assert self.published is not None
        for word in ("alpha", "größe"):
            expected = {path.split("/")[1] for path, text in self.published.items() if word in text}
            assert found_by_words(self.parts, word) == expected


def _raise_if(condition: bool) -> None:
    if condition:
        raise Killed


TestSyncMachine = SyncMachine.TestCase
TestSyncMachine.settings = settings(
    max_examples=25, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
)


@pytest.fixture
def source() -> MemorySource:
    memory = MemorySource()
    for number in range(30):
        memory.write(f"{number:02}.txt", f"document {word(number)} says hello")
    return memory


def test_a_second_sync_writes_nothing(tmp_path: Path, source: MemorySource) -> None:
    parts = memory_parts(tmp_path, source)
    first = sync(parts)
    files = {file: (file.stat().st_mtime_ns, file.read_bytes()) for file in tmp_path.rglob("*.duckdb")}

    second = sync(parts)

    assert (first.added, first.published, first.generation) == (30, True, "gen-000001")
    assert (second.added, second.changed, second.removed, second.unchanged) == (0, 0, 0, 30)
    assert (second.embedded, second.reused, second.published) == (0, second.chunks, False)
    assert {file: (file.stat().st_mtime_ns, file.read_bytes()) for file in tmp_path.rglob("*.duckdb")} == files


def test_a_document_that_got_shorter_leaves_nothing_behind(tmp_path: Path, source: MemorySource) -> None:
    source.write("long.txt", " ".join(map(word, range(300, 500))))
    parts = memory_parts(tmp_path, source)
    sync(parts)
    assert found_by_words(parts, word(499)) == {"long.txt"}

    source.write("long.txt", f"{word(300)} only")
    report = sync(parts)

    assert report.changed == 1
    assert found_by_words(parts, word(499)) == set()
    assert found_by_words(parts, word(300)) == {"long.txt"}


def test_documents_with_identical_content_are_separate(tmp_path: Path) -> None:
    source = MemorySource()
    source.write("one.txt", "the same words")
    source.write("two.txt", "the same words")
    parts = memory_parts(tmp_path, source)
    report = sync(parts)
    assert found_by_words(parts, "same") == {"one.txt", "two.txt"}
    assert (report.chunks, report.embedded, report.reused) == (2, 1, 1)

    del source.documents["one.txt"]
    sync(parts)

    assert found_by_words(parts, "same") == {"two.txt"}


def test_touching_a_document_publishes_nothing(tmp_path: Path, source: MemorySource) -> None:
    parts = memory_parts(tmp_path, source)
    sync(parts)

    source.write("00.txt", source.documents["00.txt"])
    report = sync(parts)

    assert (report.changed, report.unchanged, report.published) == (0, 30, False)


def test_a_failed_document_keeps_answering_marked_stale_until_it_is_mended(
    tmp_path: Path, source: MemorySource
) -> None:

    parts = memory_parts(tmp_path, source)
    sync(parts)

    source.write("00.txt", BROKEN)
    report = sync(parts)
    with parts.store.files.open(parts.store.current()) as generation:
        stale = {chunk.path for chunk in generation.chunks(range(generation.chunk_count)).values() if chunk.stale}

    assert [(failure.path, failure.stale) for failure in report.failed] == [("00.txt", True)]
    assert "mend it" in report.failed[0].reason
    assert stale == {"00.txt"}
    assert found_by_words(parts, word(0)) == {"00.txt"}

    again = sync(parts)
    assert (len(again.failed), again.published) == (1, False)

    source.write("00.txt", f"mended {word(0)}")
    mended = sync(parts)
    assert (mended.failed, mended.changed) == ((), 1)
    assert found_by_words(parts, "mended") == {"00.txt"}


def test_a_defect_of_a_parser_costs_its_document_only(tmp_path: Path, source: MemorySource) -> None:
    source.write("00.txt", DEFECT)
    report = sync(memory_parts(tmp_path, source))
    assert (report.added, [failure.path for failure in report.failed]) == (29, ["00.txt"])
    assert "KeyError" in report.failed[0].reason


def test_a_full_sync_reads_everything_and_calls_only_what_changed_changed(tmp_path: Path, source: MemorySource) -> None:
    parts = memory_parts(tmp_path, source)
    sync(parts)
    source.write("00.txt", "something else")
    report = sync(parts, full=True)
    assert (report.added, report.changed, report.unchanged) == (0, 1, 29)
    assert (report.embedded, report.published) == (1, True)


@pytest.mark.parametrize("left", [0, 5])
def test_the_brake_holds_mass_deletes_until_confirmed(tmp_path: Path, source: MemorySource, left: int) -> None:
    parts = memory_parts(tmp_path, source)
    sync(parts)
    source.documents = dict(list(source.documents.items())[:left])

    held = sync(parts)
    assert (held.removed, held.published, len(held.held[0].paths)) == (0, False, 30 - left)
    assert found_by_words(parts, "hello") == {f"{number:02}.txt" for number in range(30)}

    confirmed = sync(parts, confirm_deletes=True)
    assert (confirmed.removed, confirmed.held) == (30 - left, ())
    assert found_by_words(parts, "hello") == set(source.documents)


def test_an_unavailable_source_deletes_nothing_even_when_confirmed(tmp_path: Path, source: MemorySource) -> None:
    other = MemorySource(id="other")
    other.write("x.txt", "elsewhere")
    parts = memory_parts(tmp_path, source, other)
    sync(parts)

    source.unavailable = True
    other.write("y.txt", "another")
    report = sync(parts, confirm_deletes=True)

    assert report.unavailable == {"memory": "not mounted; mount it"}
    assert (report.removed, report.added) == (0, 1)
    assert "00.txt" in found_by_words(parts, "hello")
    assert found_by_words(parts, "another") == {"y.txt"}


def test_a_sync_that_is_told_of_paths_leaves_the_others_alone(tmp_path: Path, source: MemorySource) -> None:
    other = MemorySource(id="other")
    other.write("x.txt", "elsewhere")
    parts = memory_parts(tmp_path, source, other)
    sync(parts)
    for path in ("00.txt", "01.txt", "folder/new.txt", "folder_2.txt"):
        source.write(path, f"told of {path}")
    del source.documents["02.txt"], source.documents["03.txt"]
    other.unavailable = True

    report = sync(parts, ["00.txt", "02.txt", "folder"])

    assert (report.added, report.changed, report.removed, report.unchanged) == (1, 1, 1, 29)
    assert (report.documents, report.unavailable, report.held, report.published) == (31, {}, (), True)
    assert found_by_words(parts, "told") == {"00.txt", "folder/new.txt"}
    assert found_by_words(parts, word(3)) == {"03.txt"}

    other.unavailable = False
    rest = sync(parts)
    assert (rest.added, rest.changed, rest.removed) == (1, 1, 1)


def test_the_brake_knows_how_many_documents_there_are_beside_those_it_is_told_of(
    tmp_path: Path, source: MemorySource
) -> None:
    parts = memory_parts(tmp_path, source)
    sync(parts)
    names = list(source.documents)
    for name in names[:10]:
        del source.documents[name]
    assert sync(parts, names[:10]).removed == 10, "a third of all"

    for name in names[10:17]:
        del source.documents[name]
    held = sync(parts, names[10:17])
    assert (held.removed, held.held[0].reason) == (0, "7 of 20 documents are gone")

    source.documents.clear()
    assert sync(parts, names).held[0].reason == "the source lists nothing, it had 20 documents"


def test_paths_are_not_enough_after_a_change_of_settings(tmp_path: Path, source: MemorySource) -> None:
    sync(memory_parts(tmp_path, source))
    assert sync(memory_parts(tmp_path, source, limit=17), ["00.txt"]).changed == 30
    source.write("01.txt", "changed")
    assert sync(memory_parts(tmp_path, source, limit=17), ["00.txt"]).changed == 0


def test_another_chunker_or_encoder_reaches_every_document(tmp_path: Path, source: MemorySource) -> None:
    sync(memory_parts(tmp_path, source))

    smaller = sync(memory_parts(tmp_path, source, limit=17))
    assert (smaller.changed, smaller.unchanged, smaller.embedded, smaller.published) == (30, 0, 0, True)

    other_model = sync(memory_parts(tmp_path, source, limit=17, encoder=HashEncoder(dimensions=32)))
    assert (other_model.changed, other_model.embedded, other_model.published) == (30, 30, True)


def test_generations_are_bounded_and_can_be_rolled_back(tmp_path: Path, source: MemorySource) -> None:
    parts = memory_parts(tmp_path, source)
    for number in range(5):
        source.write("00.txt", f"version {word(500 + number)}")
        sync(parts)
    assert parts.store.generations() == ("gen-000003", "gen-000004", "gen-000005")

    parts.store.rollback()
    assert found_by_words(parts, word(503)) == {"00.txt"}
    assert sync(parts).published is False, "a rollback lasts until something changes"

    source.write("01.txt", "news")
    assert sync(parts).generation == "gen-000006"
    assert found_by_words(parts, word(504)) == {"00.txt"}


def test_progress_is_reported_to_the_end(tmp_path: Path, source: MemorySource) -> None:
    seen: dict[str, tuple[int, int]] = {}
    run(memory_parts(tmp_path, source), SyncOptions(), lambda step, done, total: seen.update({step: (done, total)}))
    assert seen["documentation store"] == (30, 30)
    assert seen["documentation embed"] == (30, 30)


def generation_files(folder: Path) -> set[str]:
    return {file.name for file in (folder / "generations").iterdir()}


def test_a_refused_candidate_is_not_published_and_goes(tmp_path: Path, source: MemorySource) -> None:
    parts, gate = memory_parts(tmp_path, source), RefuseAll()
    sync(parts)
    before = generation_files(tmp_path)
    source.write("00.txt", "worse")

    with pytest.raises(QualityError, match=r"nothing is published: everything is worse; .*--accept-quality"):
        run(parts, SyncOptions(wait_s=0), gate=gate)

    assert gate.asked == 1
    assert generation_files(tmp_path) == before
    assert found_by_words(parts, "worse") == set()
    accepted = run(parts, SyncOptions(wait_s=0, accept_quality=True), gate=gate)
    assert (accepted.published, accepted.embedded, gate.asked) == (True, 0, 2)
    assert found_by_words(parts, "worse") == {"00.txt"}
    assert not run(parts, SyncOptions(wait_s=0), gate=gate).published
    assert gate.asked == 2, "without a candidate there is nothing to measure"


def test_a_generation_is_built_and_measured_once_however_often_the_steps_are_called(
    tmp_path: Path, source: MemorySource
) -> None:
    gate = RefuseAll()
    options = SyncOptions(wait_s=0, accept_quality=True)
    with DomainSync(memory_parts(tmp_path, source), options, gate=gate) as running:
        running.store_changes()
        running.embed()
        first = running.build()
        assert running.build() is first
        assert running.evaluate() is running.evaluate()
        publication = running.publish()
        assert publication is not None
        assert running.publish() is publication
        assert gate.asked == 1
    assert generation_files(tmp_path) >= {"gen-000001-000.duckdb", "CURRENT"}
