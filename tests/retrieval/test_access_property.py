"""What a viewer may not see does not count: the answers are those of an index that never had it, to the last digit."""

import tempfile
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from lab.access.comparing import indexes
from lab.access.corpora import GROUPS, NAMES, PLANS, SOURCES, STATEMENTS, WORDS, Written, path_of
from lab.small_segments import small_segments
from nornweave.config import StorageSettings
from nornweave.core.access import Viewer

TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=40).map(" ".join)
DOCUMENTS = st.lists(
    st.tuples(st.sampled_from(tuple(SOURCES)), st.sampled_from(NAMES), TEXTS, st.sampled_from(STATEMENTS)),
    min_size=1,
    max_size=10,
)
VIEWERS = st.frozensets(st.sampled_from(GROUPS), max_size=3).map(lambda groups: Viewer(groups=groups))
PHRASES = st.lists(st.sampled_from((*WORDS, *NAMES)), min_size=1, max_size=5).map(" ".join)
QUERIES = st.one_of(PHRASES, st.tuples(PHRASES, PHRASES).map(lambda two: f'{two[0]} "{two[1]}"'))
ASKED = st.lists(st.tuples(QUERIES, st.sampled_from(PLANS), st.booleans()), min_size=15, max_size=15)


@settings(max_examples=6, suppress_health_check=[HealthCheck.too_slow])
@given(
    documents=DOCUMENTS,
    viewers=st.lists(VIEWERS, min_size=2, max_size=2),
    asked=ASKED,
    largest=st.sampled_from((1_000, 4)),
)
def test_a_restricted_index_answers_as_one_that_never_had_the_rest(
    documents: list[tuple[str, str, str, object]],
    viewers: list[Viewer],
    asked: list[tuple[str, object, bool]],
    largest: int,
) -> None:
    written = [Written("open", "first.md", "the queue of the ledger")] + [
        Written(source, path_of(number, name), text, access)  # type: ignore[arg-type]
        for number, (source, name, text, access) in enumerate(documents)
    ]
    with tempfile.TemporaryDirectory() as folder, small_segments(largest), indexes(Path(folder), written) as pair:
        for viewer in viewers:
            assert pair.other_differences(viewer) == []
            for text, plan, filtered in asked:
                filters = {"path_glob": "part-00[0-4]/**"} if filtered else None
                assert pair.differences(viewer, text, plan=plan, filters=filters) == []  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["exact", pytest.param("hnsw", marks=pytest.mark.vss)])
def test_what_is_hidden_moves_no_score(tmp_path: Path, kind: str) -> None:
    """A hundred hidden documents repeat the word that one visible document has: it is as rare as without them."""
    written = [Written("open", "a.md", "the retry limit of the queue"), Written("open", "b.md", "a ledger and a shard")]
    written += [Written("secret", f"{number:03}.md", f"retry retry limit {number}") for number in range(100)]
    storage = StorageSettings(vector_index=kind)  # type: ignore[arg-type]
    viewer = Viewer(groups=frozenset({"staff"}))
    with indexes(tmp_path, written, storage=storage) as pair:
        assert pair.other_differences(viewer) == []
        for text in ("retry", "retry limit", '"retry limit"', "ledger or retry", "100"):
            assert pair.differences(viewer, text) == []
        everything = Viewer(groups=frozenset({"board"}))
        assert pair.whole.describe(everything)["documents"] == 102


def test_an_acronym_that_only_hidden_documents_say_expands_nothing(tmp_path: Path) -> None:
    written = [
        Written("open", "a.md", "we keep to the Web Content Accessibility Guidelines here"),
        Written("secret", "b.md", "WCAG is what the board calls them"),
    ]
    text = "Web Content Accessibility Guidelines"
    with indexes(tmp_path, written) as pair:
        outsider, member = Viewer(), Viewer(groups=frozenset({"board"}))
        assert pair.differences(outsider, text) == pair.differences(member, text) == []
        assert pair.variants(outsider, text) == ()
        assert pair.variants(member, text) == ("WCAG",)
