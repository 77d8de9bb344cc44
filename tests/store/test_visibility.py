"""The view of a generation that a viewer gets: each of its operations has a decision, and remembers little."""

import inspect
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from lab.access.corpora import SOURCES, Written, published
from nornweave.core.access import ANYONE, OPERATOR, Viewer
from nornweave.core.errors import StoreError
from nornweave.core.text.index_fields import asked_keys
from nornweave.index.generations.serving import ServedGeneration
from nornweave.index.index import Index
from nornweave.index.searching.counting import FileCounts
from nornweave.index.searching.generation import FileSearch, FileTexts
from nornweave.index.searching.visibility import MOST_VISIBILITIES

WRITTEN = (
    Written("open", "a.md", "alpha alpha beta"),
    Written("inner", "b.md", "alpha gamma"),
    Written("secret", "c.md", "alpha delta"),
    Written("open", "d.md", "alpha epsilon", ["guests"]),
    Written("inner", "e.md", "alpha zeta", ["board"]),
)
STAFF, BOARD, BOTH = (Viewer(groups=frozenset(groups)) for groups in (["staff"], ["board"], ["staff", "board"]))
# What each public operation does for a viewer; whoever adds one decides here, and says how it is tested.
DECIDED = {
    "counts": {"chunk_count", "document_count"},
    "masked": {
        "dense", "document_frequencies", "sparse", "paired", "named", "holding", "within", "contents",
        "containing", "paths", "chunks", "chunk", "document", "seen_places", "sees_document",
        "value_counts", "unread_values", "served_documents", "sources_of",
        "find", "complete", "named_nearly", "texts_with",
        "chunk_places", "document_texts", "indexed_documents", "term_weights", "average_length",
        "sample", "without",
    },
    "of numbers that a masked operation returned": {
        "similarities", "token_matches", "setting_similarities", "vectors",
    },
    "for the parts that search several files, which mask": {
        "document_places", "live_paths", "places", "field_values", "unread_rows", "sparse_with",
    },
    "of all documents, for the command line alone": {"stated_documents"},
    "the same for everybody": {"built_at", "close", "part", "seen_by", "restricted_documents"},
}  # fmt: skip


@pytest.fixture(scope="module")
def generation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    store = published(tmp_path_factory.mktemp("visible"), WRITTEN)
    with store.files.open(store.current()) as opened:
        yield opened


def test_every_operation_of_a_generation_has_a_decision() -> None:
    classes = (Index, FileSearch, FileTexts, FileCounts)
    public = {name for each in classes for name, _ in inspect.getmembers(each) if not name.startswith("_")}
    assert public == set().union(*DECIDED.values())


@pytest.mark.parametrize(("viewer", "paths"), [
    (OPERATOR, "abcde"), (ANYONE, "a"), (Viewer(), "a"), (STAFF, "ab"), (BOARD, "ac"), (BOTH, "abce"),
    (Viewer(groups=frozenset({"guests"})), "ad"), (Viewer(groups=frozenset({"nobody knows it"})), "a"),
])  # fmt: skip
def test_every_statement_has_to_be_met(generation: Index, viewer: Viewer, paths: str) -> None:
    seen = generation.seen_by(viewer)
    assert sorted(seen.paths()) == [f"{letter}.md" for letter in paths]
    assert seen.document_count == seen.chunk_count == len(paths)
    assert seen.document_frequencies(["alpha"]) == {"alpha": len(paths)}
    places = [(one.source_id, one.path) for one in WRITTEN]
    assert len(seen.seen_places(places)) == len(paths)


def test_hidden_chunks_are_in_no_answer(generation: Index) -> None:
    seen = generation.seen_by(STAFF)
    hidden = np.array([number for number in range(generation.size) if not seen.sees_document(number)], np.int32)
    everything = np.arange(generation.size, dtype=np.int32)
    assert set(seen.chunks(everything)) == set(seen.contents(everything)) == set(range(5)) - set(hidden.tolist())
    scores = seen.sparse({"alpha": 1.0, "delta": 1.0}, 0.5)
    assert not scores[hidden].any() and scores.any()
    assert set(hidden.tolist()).isdisjoint(seen.containing("alpha", 10).tolist())
    assert set(hidden.tolist()).isdisjoint(seen.holding(["alpha"]).tolist())
    assert set(hidden.tolist()).isdisjoint(seen.dense(generation.vectors(everything)[0], 10).numbers.tolist())
    assert not seen.within([])[hidden].any()
    np.testing.assert_array_equal(seen.sample, generation.vectors(np.setdiff1d(everything, hidden)))
    for number in hidden.tolist():
        stored = generation.chunks(np.array([number], np.int32))[number]
        assert seen.chunk(stored.chunk_id) is None
        assert seen.document(stored.source_id, stored.path) is None
        assert generation.chunk(stored.chunk_id) is not None


def test_samples_for_evaluations_are_of_the_visible_part(generation: Index) -> None:
    seen = generation.seen_by(STAFF)
    assert {place.path for place in seen.chunk_places()} == {"a.md", "b.md"}
    assert len(seen.document_texts(range(5))) == 2
    assert seen.indexed_documents("c.md") == ()
    assert len(generation.indexed_documents("c.md")) == 1


def test_viewers_who_may_see_the_same_share_a_mask(generation: Index) -> None:
    one = generation.seen_by(Viewer(groups=frozenset({"staff", "x"}), name="one"))
    other = generation.seen_by(Viewer(groups=frozenset({"ops"}), name="other"))
    assert one._parts.visible is other._parts.visible
    assert generation.seen_by(OPERATOR) is generation
    assert one.part == other.part != generation.part == b""


def test_masks_are_bounded(tmp_path: Path) -> None:
    count = MOST_VISIBILITIES + 4
    written = [Written("open", f"{number:02}.md", f"text {number}", [f"g{number}"]) for number in range(count)]
    store = published(tmp_path, [Written("open", "a.md", "text"), *written])
    with store.files.open(store.current()) as generation:
        for number in range(count):
            seen = generation.seen_by(Viewer(groups=frozenset({f"g{number}"})))
            assert sorted(seen.paths()) == [f"{number:02}.md", "a.md"]
        assert len(generation._parts.opened.visibilities._visible) == MOST_VISIBILITIES
        assert generation.restricted_documents == count


def test_the_configuration_restricts_at_once_what_the_generation_does_not(tmp_path: Path) -> None:
    """Stricter without a sync; looser only with one: both have to be met."""
    store = published(tmp_path, WRITTEN)
    for access, expected in (
        ({}, {"a.md", "b.md"}),
        ({"open": ["board"]}, {"b.md"}),
        ({"inner": ["nobody"], **{"secret": SOURCES["secret"]}}, {"a.md"}),
        ({"secret": ["staff"]}, {"a.md", "b.md"}),
    ):
        served = ServedGeneration(store.files, access=access)
        with served.use(STAFF) as generation:
            assert set(generation.paths()) == expected
        served.close()


def test_a_generation_without_rules_is_not_served(tmp_path: Path) -> None:
    import duckdb

    from nornweave.index.generations.checksums import checksum_file

    store = published(tmp_path, WRITTEN)
    file = store.files.data_files(store.current())[0].path
    with duckdb.connect(str(file)) as connection:
        connection.execute("delete from meta where key = 'access'")
    checksum_file(file).unlink()
    served = ServedGeneration(store.files)
    with pytest.raises(StoreError, match="access"), served.use(OPERATOR):
        pass


def test_what_is_left_out_by_name_leaves_no_trace_and_shows_nothing_more(generation: Index) -> None:
    named = next(key for key in asked_keys("a.md") if key in generation.named([key]))
    for viewer in (OPERATOR, STAFF, BOTH):
        seen = generation.seen_by(viewer)
        left = seen.without(named)
        gone = set(seen.named([named]).get(named, ()))
        assert left.chunk_count == seen.chunk_count - len(gone)
        assert left.document_frequencies(["alpha"]) == {"alpha": left.chunk_count}
        there = set(np.flatnonzero(left.within(())))
        assert there == set(np.flatnonzero(seen.within(()))) - gone
        assert left.without(named).named([named]) == {}
