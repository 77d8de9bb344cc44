"""The part of a passage that a list of results shows: the lines that say the most about the question."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from api.pages.text_runs import Mark, TextRun, hits, runs_of
from nornweave.core.text.lines import lines_of

# What fits a screen beside nine others.
MAX_LINES = 9
MAX_PARAGRAPHS = 5
MAX_LINE_CHARACTERS = 600
# A cut that leaves out less than this takes the room of what it leaves out.
MIN_CUT = 3
# A line as short as this ends where its author wanted it to.
_WRAPPED = 50
# What begins a block of its own: headings, lists, tables, quotes.
_BLOCK = re.compile(r"#|[-*+>|]\s|\d+[.)]\s|\||\.\. ")
_FENCE = re.compile(r"\s*(```|~~~)")
_UNDERLINE = re.compile(r"\s*([=~^*-])\1{2,}\s*")


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its number in the document, if the document has lines, and its text."""

    number: int | None
    runs: tuple[TextRun, ...]


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Neighbouring lines of a passage, and how many stand before and after them."""

    lines: tuple[Line, ...]
    before: int
    after: int


def code_excerpt(text: str, terms: Collection[str], first_line: int | None) -> Excerpt:
    """Choose the neighbouring lines of code that hold the most different terms, the earliest of equals.

    Args:
        text: of the passage.
        terms: of the question (``query_terms_of``).
        first_line: the number of its first line; ``None`` where lines have no number.
    """
    return _excerpt(lines_of(text.rstrip()), terms, MAX_LINES, first_line)


def prose_excerpt(text: str, terms: Collection[str]) -> Excerpt:
    """Choose the neighbouring paragraphs that hold the most different terms, the earliest of equals."""
    return _excerpt(paragraphs_of(text), terms, MAX_PARAGRAPHS, None)


def thread_excerpt(text: str, terms: Collection[str]) -> Excerpt:
    """Choose the neighbouring messages that hold the most different terms, the earliest of equals."""
    return _excerpt([line for line in lines_of(text) if line.strip()], terms, MAX_LINES, None)


def paragraphs_of(text: str) -> list[str]:
    """Return a text as it reads: wrapped lines joined; fences, underlines and blank lines left out."""
    paragraphs: list[str] = []
    is_code, joins = False, False
    for line in lines_of(text):
        if _FENCE.match(line):
            is_code, joins = not is_code, False
        elif not line.strip() or _UNDERLINE.fullmatch(line):
            joins = False
        elif is_code or not joins or _BLOCK.match(line) or line[:1].isspace():
            paragraphs.append(line)
            joins = not is_code and len(line) >= _WRAPPED and not line.startswith(("#", "|"))
        else:
            paragraphs[-1] += f" {line}"
            joins = len(line) >= _WRAPPED
    return paragraphs


def _excerpt(lines: Sequence[str], terms: Collection[str], limit: int, first_line: int | None) -> Excerpt:
    lines = [line[:MAX_LINE_CHARACTERS] for line in lines]
    limit = len(lines) if len(lines) < limit + MIN_CUT else limit
    marks = [hits(line, terms) for line in lines]
    start = _best_window(lines, marks, limit)
    shown = range(start, min(start + limit, len(lines)))
    return Excerpt(
        tuple(
            Line(None if first_line is None else first_line + place, runs_of(lines[place], marks[place]))
            for place in shown
        ),
        before=start,
        after=len(lines) - shown.stop,
    )


def _best_window(lines: Sequence[str], marks: Sequence[Sequence[Mark]], limit: int) -> int:
    """Return where the window starts; the first lines count a little more, because they say what the passage is."""
    words = [
        {line[mark.start : mark.end].lower() for mark in line_marks}
        for line, line_marks in zip(lines, marks, strict=True)
    ]
    starts = range(max(1, len(lines) - limit + 1))
    return max(starts, key=lambda start: (len(set().union(*words[start : start + limit])) + (start == 0), -start))
