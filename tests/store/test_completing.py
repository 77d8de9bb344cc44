"""What somebody types is completed: by prefix first, then by frequency; a document that is hidden adds nothing."""

import tempfile
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from lab.access.corpora import Written, published
from lab.small_segments import small_segments
from nornweave.core.access import OPERATOR, Viewer
from nornweave.index.generations.serving import ServedGeneration

PATHS = st.sampled_from(("a/retry.md", "retry_policy.md", "docs/Retry.md", "limits.md", "[re].md", "größe.md"))
TYPED = st.sampled_from(("re", "RETRY", "a", "m", "[r", "grö", "md", ".", "x"))


@settings(max_examples=20)
@given(
    written=st.lists(
        st.builds(Written, st.just("open"), PATHS, st.just("some text"), st.sampled_from((None, ["board"])))
    ),
    typed=TYPED,
    largest=st.sampled_from((1_000, 2)),
)
def test_paths_are_completed_as_far_as_they_may_be_seen(written: list[Written], typed: str, largest: int) -> None:
    documents = list({one.path: one for one in written}.values())
    if not documents:
        return
    with tempfile.TemporaryDirectory() as folder, small_segments(largest):
        generation = ServedGeneration(published(Path(folder), documents).files)
        for viewer in (OPERATOR, Viewer(), Viewer(groups=frozenset({"board"}))):
            with generation.use(viewer) as index:
                texts = {each.text for each in index.complete(typed, 50) if each.kind == "path"}
            seen = [one.path for one in documents if one.is_seen_by(viewer)]
            assert texts == {path for path in seen if begins_a_word(typed.lower(), path.lower())}
        generation.close()


def begins_a_word(typed: str, text: str) -> bool:
    return any(
        text.startswith(typed, place) and (place == 0 or not text[place - 1].isalnum()) for place in range(len(text))
    )


@pytest.mark.parametrize("largest", [1_000, 2])
def test_texts_that_begin_so_come_first_then_the_frequent(tmp_path: Path, largest: int) -> None:
    heading = "# Retry policy\n\nText about it.\n\n# Our retry\n\nMore text."
    documents = [Written("open", f"{number}.md", heading) for number in range(3)]
    documents.append(Written("open", "retry.md", "Text."))
    with small_segments(largest):
        generation = ServedGeneration(published(tmp_path, documents).files)
    with generation.use(OPERATOR) as index:
        first = index.complete("ret", 1)
        completions = index.complete("ret", 10)
    assert first == completions[:1]
    assert [each.is_prefix for each in completions] == sorted((each.is_prefix for each in completions), reverse=True)
    generation.close()
