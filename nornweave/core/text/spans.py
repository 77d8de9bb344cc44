"""Spans, tokens and lines: measure, cut and pack pieces of a text.

A chunker decides where a document may be cut; this module knows how long pieces are and packs them under a limit.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from nornweave.core.types import Span

# From the coarsest cut to the finest: blank line, line, sentence, word. A piece that has none of them is cut by tokens.
BOUNDARIES: tuple[re.Pattern[str], ...] = (
    re.compile(r"\n[ \t]*\n\s*"),
    re.compile(r"\n+"),
    re.compile(r"(?<=[.!?])[\"')\]]*\s+"),
    re.compile(r"\s+"),
)
PARAGRAPH, LINE, SENTENCE, WORD = BOUNDARIES


class Tokenizer(Protocol):
    """Finds the tokens of a text."""

    @property
    def version(self) -> str:
        """The version. It changes when the same text may get other tokens."""

    def token_starts(self, text: str) -> Sequence[int]:
        """Return the character offset at which each token starts, ascending, without special tokens."""


class KnownStarts:
    """A tokenizer that returns token starts that were found before."""

    version = ""

    def __init__(self, starts: Sequence[int]) -> None:
        self._starts = starts

    def token_starts(self, text: str) -> Sequence[int]:  # noqa: ARG002 - the port's signature
        """Return the known starts."""
        return self._starts


class TokenIndex:
    """Counts the tokens of any span of one text. The text is tokenised once as a whole."""

    def __init__(self, text: str, tokenizer: Tokenizer) -> None:
        self.text = text
        self._starts = tokenizer.token_starts(text)

    def count(self, span: Span) -> int:
        """Count the tokens that start inside ``span``."""
        return bisect_left(self._starts, span.end) - bisect_left(self._starts, span.start)

    def without(self, text: str, hidden: Sequence[Span]) -> TokenIndex:
        """Return the index of ``text``, a copy of the index's own text with blanks in the ``hidden`` spans.

        The spans must be in order.
        """
        if not hidden:
            return self
        starts: list[int] = []
        at = 0
        for span in (*hidden, Span(len(text), len(text))):
            starts += self._starts[bisect_left(self._starts, at) : bisect_left(self._starts, span.start)]
            at = span.end
        return TokenIndex(text, KnownStarts(starts))

    def offset_after(self, start: int, tokens: int) -> int:
        """Skip this number of tokens from ``start`` on. Return the start of the next token, or the end of the text."""
        position = bisect_left(self._starts, start) + tokens
        return self._starts[position] if position < len(self._starts) else len(self.text)


def line_starts(text: str) -> list[int]:
    """Return the offset at which each line starts. As in editors and git hosts, a single ``\\r`` also ends a line."""
    return [0, *(match.end() for match in re.finditer("\r\n?|\n" if "\r" in text else "\n", text))]


class Lines:
    """Finds the line number, from 1, of an offset in a text."""

    def __init__(self, text: str) -> None:
        self._starts = line_starts(text)

    def at(self, offset: int) -> int:
        """Return the number of the line that holds ``offset``."""
        return bisect_right(self._starts, offset)

    def range(self, span: Span) -> tuple[int, int]:
        """Return the first and the last line that ``span`` touches."""
        return self.at(span.start), self.at(max(span.start, span.end - 1))


def strip(text: str, span: Span) -> Span:
    """Return ``span`` without blank space at both ends. An all-blank span becomes empty."""
    piece = text[span.start : span.end]
    start = span.start + len(piece) - len(piece.lstrip())
    return Span(start, max(start, span.start + len(piece.rstrip())))


def strip_lines(text: str, span: Span) -> Span:
    """Return ``span`` without blank space at both ends, but with the first line's indentation, which code needs."""
    inner = strip(text, span)
    start = inner.start
    while len(inner) and start > span.start and text[start - 1] in " \t":
        start -= 1
    return Span(start, inner.end)


def cut(text: str, span: Span, boundary: re.Pattern[str]) -> Iterator[Span]:
    """Cut ``span`` after every match of ``boundary``. The pieces cover it without gaps."""
    start = span.start
    for match in boundary.finditer(text, span.start, span.end):
        if start < match.end() < span.end:
            yield Span(start, match.end())
            start = match.end()
    if start < span.end:
        yield Span(start, span.end)


def pack(pieces: Iterable[Span], index: TokenIndex, limit: int) -> Iterator[Span]:
    """Join neighbouring ``pieces`` while the result has at most ``limit`` tokens. Text between them is included.

    A piece that exceeds the limit is not joined.
    """
    current: Span | None = None
    for piece in pieces:
        joined = piece if current is None else Span(current.start, piece.end)
        if current is not None and index.count(joined) > limit:
            yield current
            current = piece
        else:
            current = joined
    if current is not None:
        yield current


SHORT_PART = 4
"""A part that is shorter than the limit by so many times says little."""
ABOUT_AS_LONG = 0.6
"""Of the tokens of a part that could be longer."""


def pack_outermost(
    pieces: Sequence[Span],
    index: TokenIndex,
    limit: int,
    depth: Callable[[int], int],
    is_apart: Callable[[int], bool] | None = None,
) -> Iterator[Span]:
    """Join neighbouring ``pieces`` like ``pack``. End each part before the piece that is nested least deeply.

    If several pieces are nested least deeply, the part ends before the last of them. An earlier one is preferred if
    only that one stands apart and the part becomes hardly shorter. A part is not ended while it is short.

    Args:
        depth: returns the depth of nesting at an offset.
        is_apart: tells whether the text at an offset stands apart from the text before it.
    """
    at = 0
    while at < len(pieces):
        start, end = pieces[at].start, at + 1
        while end < len(pieces) and index.count(Span(start, pieces[end].end)) <= limit:
            end += 1
        if end < len(pieces):
            least = limit // SHORT_PART
            ends = [each for each in range(at + 1, end) if index.count(Span(start, pieces[each].start)) >= least]
            end = min((*ends, end), key=lambda each: (depth(pieces[each].start), -each))
            deep, long = depth(pieces[end].start), ABOUT_AS_LONG * index.count(Span(start, pieces[end].start))
            about = (each for each in ends if each < end and index.count(Span(start, pieces[each].start)) >= long)
            if is_apart is not None and not is_apart(pieces[end].start):
                alike = (each for each in about if depth(pieces[each].start) == deep and is_apart(pieces[each].start))
                end = max(alike, default=end)
        yield Span(start, pieces[end - 1].end)
        at = end


def split(span: Span, index: TokenIndex, limit: int, boundaries: Sequence[re.Pattern[str]] = BOUNDARIES) -> list[Span]:
    """Split ``span`` into pieces of at most ``limit`` tokens, at the coarsest boundaries possible.

    Returns:
        Pieces in order that cover ``span`` without gaps. A piece without any boundary is cut between tokens.
    """
    if index.count(span) <= limit:
        return [span] if len(span) else []
    if not boundaries:
        return _split_by_tokens(span, index, limit)
    pieces = [
        part
        for piece in cut(index.text, span, boundaries[0])
        for part in ([piece] if index.count(piece) <= limit else split(piece, index, limit, boundaries[1:]))
    ]
    return list(pack(pieces, index, limit))


def _split_by_tokens(span: Span, index: TokenIndex, limit: int) -> list[Span]:
    pieces = []
    start = span.start
    while start < span.end:
        # A text without tokens for long (one token of a million letters) still has to end somewhere.
        end = min(max(index.offset_after(start, limit), start + 1), span.end)
        pieces.append(Span(start, end))
        start = end
    return pieces
