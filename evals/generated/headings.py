"""Documentation and papers: a heading → its section."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evals.generated.drafts import Draft, DraftCandidate, by_document, lines_of
from evals.generated.query_words import (
    is_askable,
    is_boilerplate,
    normalised,
    without_marks,
    without_number,
    words_of,
)
from evals.judgments import HiddenText
from nornweave.core.text.inline_markup import plain_line
from nornweave.core.types import Span
from nornweave.index.index import Index
from nornweave.index.searching.generation_file import ChunkPlace

MAX_CHUNKS = 8
"""A section of more holds so many things that its heading asks for none of them."""
MIN_CHARACTERS = 120
"""Beside its heading; in less than this nothing is said that could be found without it."""
# Characters between two words of a heading: markup, line breaks, escapes.
_BETWEEN = r"[\W_]{1,40}"
_BRACKETS = re.compile(r"\[\s*([^\[\]\n]{1,200}?)\s*\]")
_MARKUP_AROUND = re.compile(r"^[\s>]*#{0,6}\s*|\s*#*\s*$")


@dataclass(frozen=True, slots=True)
class _Section:
    """A heading with the text below it, including subsections."""

    path: tuple[str, ...]
    chunks: tuple[ChunkPlace, ...]

    @property
    def title(self) -> str:
        return _plain(self.path[-1])

    @property
    def with_parent(self) -> str:
        return f"{_plain(self.path[-2])}: {self.title}" if len(self.path) > 1 else self.title


class Headings:
    """Headings that name the subject of their section, alone or with the heading above."""

    kind = "heading"
    distinct = True

    def candidates(self, generation: Index) -> Sequence[DraftCandidate]:
        """Return the sections whose heading is unique. No text is read."""
        documents = by_document(chunk for chunk in generation.chunk_places() if _path(chunk))
        sections = [section for chunks in documents for section in _sections(chunks)]
        titles = Counter(normalised(section.title) for section in sections)
        worded = [(section, _wording(section, titles)) for section in sections]
        times = Counter(normalised(wording) for _, wording in worded)
        return [
            DraftCandidate(
                kind=self.kind, key=wording, chunks=section.chunks, wording=wording, heading=section.path[-1]
            )
            for section, wording in worded
            if wording and times[normalised(wording)] == 1 and len(section.chunks) <= MAX_CHUNKS
        ]

    def draft(self, candidate: DraftCandidate, text: str) -> Draft | None:
        """Return the heading as a query, unless its place is not clear."""
        first, last = candidate.chunks[0], candidate.chunks[-1]
        found = list(_places(text, Span(first.span.start, last.span.end), candidate.heading, first.format))
        if len(found) != 1 or last.span.end - found[0].end < MIN_CHARACTERS:
            return None
        hidden = found[0]
        return Draft(
            kind=self.kind,
            text=candidate.wording,
            hidden=HiddenText(candidate.path, hidden.start, hidden.end),
            # A page is cited by its number: of a paged document only the whole can be judged.
            lines=None if first.page else lines_of(text, hidden.start, last.span.end),
        )


def _plain(heading: str) -> str:
    return without_marks(_BRACKETS.sub(r"\1", without_number(heading)))


def _path(chunk: ChunkPlace) -> tuple[str, ...]:
    """Return the headings above a chunk; empty for messages, questions and answers, which have their own rules."""
    if chunk.message_ids or "question_id" in chunk.metadata or "answer_id" in chunk.metadata:
        return ()
    path = chunk.metadata.get("heading_path")
    if isinstance(path, list | tuple):
        return tuple(str(heading) for heading in path)
    return tuple(chunk.section.split(" > ")) if chunk.section else ()


def _sections(chunks: Sequence[ChunkPlace]) -> Iterator[_Section]:
    """Yield the sections of a document, also nested ones."""
    opened: list[tuple[str, int]] = []
    for at, chunk in enumerate([*chunks, None]):
        path = _path(chunk) if chunk else ()
        kept = 0
        while kept < min(len(opened), len(path)) and opened[kept][0] == path[kept]:
            kept += 1
        for depth in range(len(opened), kept, -1):
            names = tuple(name for name, _ in opened[:depth])
            yield _Section(names, tuple(chunks[opened[depth - 1][1] : at]))
        opened = [*opened[:kept], *((name, at) for name in path[kept:])]


def _wording(section: _Section, titles: Counter[str]) -> str:
    """Return a query that only this heading can mean; empty if there is none."""
    if is_boilerplate(section.title):
        return ""
    if is_askable(section.title) and titles[normalised(section.title)] == 1:
        return section.title
    return section.with_parent if is_askable(section.with_parent) else ""


def _places(text: str, within: Span, heading: str, kind: str) -> Iterator[Span]:
    """Yield the places of a heading: lines with only this text, or in HTML the content of a tag."""
    words = words_of(heading)
    pattern = re.compile(_BETWEEN.join(map(re.escape, words))) if words else None
    for match in pattern.finditer(text, within.start, within.end) if pattern else ():
        start = text.rfind("\n", 0, match.start()) + 1
        end = text.find("\n", match.end())
        line = Span(start, len(text) if end < 0 else end)
        if kind == "html":
            tag = text[max(0, match.start() - 200) : match.start()].rpartition("<")[2]
            if re.match(r"(?:h[1-6]|a|span|code|strong)\b[^<>]{0,190}>\s*$", tag, re.IGNORECASE):
                yield Span(*match.span())
        elif len(line) <= 1000 and words_of(plain_line(_MARKUP_AROUND.sub("", text[line.start : line.end]))) == words:
            yield line
