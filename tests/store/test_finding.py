"""Lines are found as a reader with a pencil finds them: all of them, in order, with their numbers; nothing else."""

import re
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from lab.access.corpora import Written, published
from lab.small_segments import small_segments
from nornweave.core.access import OPERATOR
from nornweave.core.errors import QueryError
from nornweave.core.text.terminal import lines_of
from nornweave.index.generations.serving import ServedGeneration
from nornweave.index.searching.conditions import AtPath, PathGlob
from nornweave.index.searching.finding import SHOWN_CHARACTERS, FoundLines, LineMatch, LinePattern

# In these both engines mean the same.
EXPRESSIONS = ("retry", "RETRY", r"re.ry\b", "^a", "b$", "[ab]+c", "(ab|ba){2}", "", ".", r"\d", "größe", "x|y")
LINES = st.text(st.sampled_from("ab c\tRETRYretry1größeü支"), max_size=12)
TEXTS = st.lists(LINES, min_size=1, max_size=12).flatmap(
    lambda lines: st.sampled_from(("\n", "\r\n")).map(lambda end: end.join(lines))
)


def served(folder: Path, written: Sequence[Written], largest: int = 1_000) -> ServedGeneration:
    with small_segments(largest):
        return ServedGeneration(published(folder, written).files)


def found(
    generation: ServedGeneration, pattern: LinePattern, limit: int = 1000, seconds: float = 60, path: str = ""
) -> FoundLines:
    with generation.use(OPERATOR) as index:
        within = index.within([AtPath(path)]) if path else None
        return index.find(pattern, limit, time.monotonic() + seconds, within)


def places(lines: FoundLines) -> list[tuple[str, str, int]]:
    return [match.place for match in lines.matches]


@settings(max_examples=15)
@given(
    texts=st.lists(TEXTS, min_size=1, max_size=8),
    patterns=st.lists(st.tuples(st.sampled_from(EXPRESSIONS[:-5]), st.booleans(), st.booleans()), min_size=6),
    limit=st.integers(1, 12),
    largest=st.sampled_from((1_000, 2)),
)
def test_every_line_is_found(
    texts: list[str], patterns: list[tuple[str, bool, bool]], limit: int, largest: int
) -> None:
    written = [Written("open", f"{number % 3}/{number}.md", text) for number, text in enumerate(texts) if text.strip()]
    if not written:
        return
    with tempfile.TemporaryDirectory() as folder:
        generation = served(Path(folder), written, largest)
        for expression, is_regex, ignores_case in patterns:
            flags = re.IGNORECASE if ignores_case else 0
            regex = re.compile(expression if is_regex else re.escape(expression), flags)
            expected = [
                (one.source_id, one.path, number)
                for one in sorted(written, key=lambda one: one.path)
                for number, line in enumerate(lines_of(one.text), 1)
                if regex.search(line)
            ]
            lines = found(generation, LinePattern(expression, is_regex, ignores_case), limit)
            assert places(lines) == expected[:limit]
            assert lines.is_complete is (len(expected) <= limit)
        generation.close()


@pytest.fixture(scope="module")
def generation(tmp_path_factory: pytest.TempPathFactory) -> ServedGeneration:
    written = [
        Written("open", "a/[id].md", "first retry\n" + "word " * 400 + "needle " + "word " * 400 + "\nlast retry"),
        Written("open", "b.md", "retry once\n\nand again"),
    ]
    return served(tmp_path_factory.mktemp("found"), written)


def test_a_match_names_its_passage_and_a_long_line_is_cut_around_it(generation: ServedGeneration) -> None:
    (match,) = found(generation, LinePattern("NEEDLE", ignores_case=True)).matches
    assert (match.path, match.line) == ("a/[id].md", 2)
    assert len(match.text) == SHOWN_CHARACTERS and "needle" in match.text
    with generation.use(OPERATOR) as index:
        chunk = index.chunk(match.chunk_id or "")
        assert chunk and "needle" in chunk.content


def test_one_document_and_a_glob_that_is_its_path(generation: ServedGeneration) -> None:
    assert places(found(generation, LinePattern("retry"), path="b.md")) == [("open", "b.md", 1)]
    with generation.use(OPERATOR) as index:
        within = index.within([PathGlob("a/[id].md")])
        lines = index.find(LinePattern("retry"), 9, time.monotonic() + 9, within)
    assert places(lines) == [("open", "a/[id].md", 1), ("open", "a/[id].md", 3)]


@pytest.mark.parametrize("expression", ["(", "a{1001}", r"(?=a)", r"\1", "[z-a]"])
def test_what_re2_does_not_know_is_refused(generation: ServedGeneration, expression: str) -> None:
    with pytest.raises(QueryError, match="RE2"):
        found(generation, LinePattern(expression, is_regex=True))


def test_time_that_is_up_is_said(generation: ServedGeneration) -> None:
    assert found(generation, LinePattern("retry"), seconds=-1) == FoundLines((), is_complete=False)


def test_an_expression_that_explodes_elsewhere_takes_linear_time(tmp_path: Path) -> None:
    generation = served(tmp_path, [Written("open", "a.md", "a" * 50_000)])
    started = time.monotonic()
    assert found(generation, LinePattern("(a+)+b|(a|aa)+c", is_regex=True), seconds=20).is_complete
    assert time.monotonic() - started < 20
    assert isinstance(found(generation, LinePattern("^a", is_regex=True)).matches[0], LineMatch)
