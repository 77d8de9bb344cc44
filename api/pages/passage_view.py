"""A passage in its document: lines numbered, the cited ones marked, code coloured."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api.pages.addresses import passage_address
from api.pages.citations import CitedPlace, place_of
from api.pages.code_colours import colours_of
from api.pages.text_runs import Mark, TextRun, runs_of
from nornweave.ask.views.texts import ChunkDocument, DocumentDocument
from nornweave.core.text.lines import lines_of
from nornweave.core.text.message_lines import split_line

CONTEXT_LINES = 16
MORE_LINES = 400
MAX_LINE_CHARACTERS = 4_000
_FLOWING = frozenset({"slack", "github", "transcript", "messages", "pdf", "stackexchange"})
"""Formats whose text has no lines of its own: numbers would mean nothing to a reader."""


@dataclass(frozen=True, slots=True)
class PassageLine:
    """A line of a document: whether it is cited, who speaks, what is said."""

    number: int
    cited: bool
    speaker: str
    runs: tuple[TextRun, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageView:
    """A passage as its page shows it.

    Attributes:
        kind: ``code``, ``thread`` or ``prose``.
        numbered: whether line numbers are shown.
        lines: of the document around the passage.
        before, after: lines of the document that are not shown.
        fewer, more: addresses that show less or more of the document; empty where there is none.
        neighbours: addresses of the passages before and after it.
    """

    title: str
    chunk_id: str
    place: CitedPlace
    source_id: str
    path: str
    kind: str
    numbered: bool
    lines: tuple[PassageLine, ...]
    before: int
    after: int
    more: str
    fewer: str
    previous: str
    following: str
    facts: tuple[tuple[str, str], ...]
    generation: str
    language: str


def passage_view(chunk: ChunkDocument, document: DocumentDocument | None, context: int = CONTEXT_LINES) -> PassageView:
    """Return what the page shows of a passage.

    Args:
        chunk: that is cited.
        document: it stands in; ``None`` when it went between two look-ups: the passage alone is shown.
        context: lines before and after it.
    """
    citation = chunk["citation"]
    text = document["text"] if document else chunk["content"]
    start, end = citation["char_range"] if document else (0, len(text))
    kind = _kind(chunk, document)
    language = (
        str(chunk["metadata"].get("language") or (document["format"] if document else "")) if kind == "code" else ""
    )
    lines = lines_of(text)
    offsets = _offsets(text)
    first, last = _line_at(offsets, start), _line_at(offsets, max(start, end - 1))
    low, high = max(0, first - context), min(len(lines), last + context + 1)
    numbers_from = 1 if document else (citation["line_range"] or [1])[0]
    address = passage_address(chunk["chunk_id"])
    neighbours = document["chunks"] if document else []
    position = neighbours.index(chunk["chunk_id"]) if chunk["chunk_id"] in neighbours else -1
    return PassageView(
        title=citation["title"] or citation["source_path"],
        chunk_id=chunk["chunk_id"],
        place=place_of(citation, chunk["chunk_id"]),
        source_id=citation["source_id"],
        path=citation["source_path"],
        kind=kind,
        numbered=kind == "code" or citation["line_range"] is not None,
        lines=tuple(_lines(lines[low:high], low, (first, last), numbers_from, kind, language)),
        before=low,
        after=len(lines) - high,
        more=f"{address}?context={MORE_LINES}" if low > 0 or high < len(lines) else "",
        fewer=address if context > CONTEXT_LINES else "",
        previous=passage_address(neighbours[position - 1]) if position > 0 else "",
        following=passage_address(neighbours[position + 1]) if 0 <= position < len(neighbours) - 1 else "",
        facts=_facts(chunk["metadata"]),
        generation=chunk["generation"],
        language=language,
    )


def _kind(chunk: ChunkDocument, document: DocumentDocument | None) -> str:
    if chunk["domain_id"] == "code":
        return "code"
    is_thread = chunk["domain_id"] == "conversations" and (document is None or document["format"] in _FLOWING)
    return "thread" if is_thread else "prose"


def _lines(
    lines: Sequence[str], low: int, cited: tuple[int, int], numbers_from: int, kind: str, language: str
) -> Iterator[PassageLine]:
    """Yield the lines that are shown, with their numbers; a colour that spans several lines is cut at their ends."""
    marks = colours_of("\n".join(lines), language) if language else []
    at = start = 0
    for place, line in enumerate(lines):
        end = start + len(line)
        within: list[Mark] = []
        while at < len(marks) and marks[at].start <= end:
            mark = marks[at]
            if mark.end > start:
                within.append(Mark(max(0, mark.start - start), min(len(line), mark.end - start), mark.kind))
            if mark.end > end:
                break
            at += 1
        speaker, said = _spoken(line) if kind == "thread" else ("", line)
        number = low + place
        yield PassageLine(
            number + numbers_from,
            cited[0] <= number <= cited[1],
            speaker,
            runs_of(said[:MAX_LINE_CHARACTERS], within if kind == "code" else ()),
        )
        start = end + 1


def _spoken(line: str) -> tuple[str, str]:
    """Split a line where its speaker is a name: texts that were handed in need not be conversations."""
    speaker, said = split_line(line)
    is_name = 0 < len(speaker) <= 40 and not set(speaker) & set("`\"'(){}[]<>=/#*|")
    return (speaker, said) if is_name and len(speaker.split()) <= 4 else ("", line)


def _offsets(text: str) -> list[int]:
    offsets = [0]
    while (found := text.find("\n", offsets[-1])) >= 0:
        offsets.append(found + 1)
    return offsets


def _line_at(offsets: Sequence[int], offset: int) -> int:
    return max(0, bisect_right(offsets, offset) - 1)


def _facts(metadata: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return what is worth a line: who, where, when."""
    wanted = ("channel", "participants", "authors", "author", "venue", "publication_date", "message_timestamp", "tags")
    shown = []
    for key in wanted:
        value = metadata.get(key)
        text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value) if value else ""
        if text:
            shown.append((key.replace("_", " "), text[:300]))
    return tuple(shown)
