"""Cutting and packing tile what they cut."""

import re

import hypothesis.strategies as st
from hypothesis import given
from words import Words

from nornweave.core.text.spans import (
    BOUNDARIES,
    LINE,
    Lines,
    TokenIndex,
    cut,
    pack,
    pack_outermost,
    split,
    strip,
    strip_lines,
)
from nornweave.core.types import Span

TEXTS = st.text(alphabet=st.sampled_from("ab. \n\t!é日"), max_size=400)


def whole(text: str) -> Span:
    return Span(0, len(text))


@given(TEXTS, st.integers(1, 20))
def test_split_tiles_within_the_limit(text: str, limit: int) -> None:
    index = TokenIndex(text, Words(re.compile(r"\w|[^\w\s]")))
    pieces = split(whole(text), index, limit)
    assert "".join(text[piece.start : piece.end] for piece in pieces) == text
    assert all(index.count(piece) <= limit for piece in pieces)
    assert all(len(piece) for piece in pieces)


@given(TEXTS, st.sampled_from(BOUNDARIES))
def test_cut_tiles(text: str, boundary: re.Pattern[str]) -> None:
    assert "".join(text[piece.start : piece.end] for piece in cut(text, whole(text), boundary)) == text


@given(TEXTS, st.integers(1, 20))
def test_packed_neighbours_do_not_fit_together(text: str, limit: int) -> None:
    index = TokenIndex(text, Words(re.compile(r"\w|[^\w\s]")))
    packed = list(pack(cut(text, whole(text), BOUNDARIES[1]), index, limit))
    assert "".join(text[piece.start : piece.end] for piece in packed) == text
    for first, second in zip(packed, packed[1:], strict=False):
        following = next(cut(text, second, BOUNDARIES[1]))
        assert index.count(Span(first.start, following.end)) > limit


@given(TEXTS, st.integers(0, 400), st.integers(0, 400))
def test_counts_add_up(text: str, one: int, other: int) -> None:
    index = TokenIndex(text, Words(re.compile(r"\w|[^\w\s]")))
    first, second = sorted((min(one, len(text)), min(other, len(text))))
    parts = [Span(0, first), Span(first, second), Span(second, len(text))]
    assert sum(map(index.count, parts)) == index.count(whole(text))


@given(TEXTS)
def test_strip_leaves_out_only_blank_space(text: str) -> None:
    span = strip(text, whole(text))
    assert text[span.start : span.end] == text.strip()
    indented = strip_lines(text, whole(text))
    assert text[indented.start : indented.end].strip() == text.strip()


def test_lines_count_from_one() -> None:
    lines = Lines("one\ntwo\n\nfour")
    assert [lines.at(offset) for offset in (0, 3, 4, 7, 8, 9)] == [1, 1, 2, 2, 3, 4]
    assert lines.range(Span(4, 8)) == (2, 2)


def test_parts_end_where_the_text_stands_least_deep() -> None:
    text = "a\nb\nc\n d\n d\n d\ne\n f\n f\n f\n f\n"
    lines, index = list(cut(text, whole(text), LINE)), TokenIndex(text, Words(re.compile(r"\w")))
    parts = pack_outermost(lines, index, 8, lambda at: text.startswith(" ", at))
    assert [text[part.start : part.end].split() for part in parts] == [list("abcddd"), list("effff")]


@given(TEXTS, st.integers(1, 20))
def test_parts_that_end_least_deep_tile_within_the_limit(text: str, limit: int) -> None:
    index = TokenIndex(text, Words(re.compile(r"\w|[^\w\s]")))
    parts = list(pack_outermost(split(whole(text), index, 1), index, limit, lambda at: at % 3))
    assert "".join(text[part.start : part.end] for part in parts) == text
    assert all(index.count(part) <= limit for part in parts)
