"""A passage in its document: markup rendered, code coloured, messages with their speakers, and the cited part marked.

The printed page of a PDF that holds a passage, as a picture.
"""

from __future__ import annotations

import base64
import logging
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from api.pages.addresses import day_of, passage_address, place_of
from api.pages.markup import MARKUP, MAX_CHARACTERS, Block, MessageView, blocks_of, colours_of, messages_of
from api.pages.text_runs import TextRun, marked_code
from nornweave.ask.views.texts import ChangeDocument, ChunkDocument, DocumentDocument, HeadingDocument
from nornweave.core.errors import DocumentError
from nornweave.core.sandbox import run_apart
from nornweave.core.text.spans import line_starts
from nornweave.core.text.terminal import lines_of
from nornweave.core.types import COMMIT, RELEASE

CONTEXT_LINES = 16
LINES_ABOVE = 6
"""Of the context: what is cited stands near the top of a window."""
MORE_LINES = 400
MAX_LINE_CHARACTERS = 4_000
MAX_OUTLINE = 300
_FLOWING = frozenset({"slack", "github", "gitlab", "transcript", "messages", "pdf", "stackexchange"})
"""Formats whose text has no lines of its own: numbers would mean nothing to a reader."""


class PassageLine(NamedTuple):
    """A line of a document, and whether it is cited."""

    number: int
    cited: bool
    runs: tuple[TextRun, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """The part of a document that is shown: its lines, and the cited ones among them, counted from 0."""

    text: str
    lines: Sequence[str]
    low: int
    high: int
    cited: range
    first_number: int

    @property
    def is_cut(self) -> bool:
        """Tell whether the document has more lines."""
        return self.low > 0 or self.high < len(self.lines)

    @property
    def numbers(self) -> range:
        """Return the numbers of the cited lines."""
        return range(self.cited.start + self.first_number, self.cited.stop + self.first_number)


def passage_view(
    chunk: ChunkDocument,
    document: DocumentDocument | None,
    context: int = CONTEXT_LINES,
    terms: Collection[str] = (),
    back: str = "",
    headings: Sequence[HeadingDocument] = (),
) -> dict[str, Any]:
    """Return a passage for the page. It stands alone if its document was removed in the meantime.

    The ``kind`` decides between ``lines`` (``code`` and ``prose``), ``blocks`` of markup (``doc``) and ``messages``
    (``thread``). ``before`` and ``after`` count the lines that are not shown; ``fewer`` and ``more`` are
    addresses that show fewer or more lines, ``previous`` and ``following`` those of its neighbours.

    Args:
        context: lines of the document before and after the passage.
        back: address of the answer that led here.
    """
    citation, kind = chunk["citation"], _kind(chunk, document)
    shown = _shown(chunk, document, context)
    address = passage_address(chunk["chunk_id"])
    previous, following = _neighbours(chunk["chunk_id"], document["chunks"] if document else ())
    return {
        "title": citation["title"] or citation["source_path"],
        "chunk_id": chunk["chunk_id"],
        "place": place_of(citation, chunk["chunk_id"]),
        "source_id": citation["source_id"],
        "path": citation["source_path"],
        "kind": kind,
        "numbered": kind == "code" or (citation["line_range"] is not None and chunk["domain_id"] != "code"),
        "lines": tuple(_lines(shown, chunk, terms)) if kind in {"code", "prose"} else (),
        "blocks": _blocks(shown, document, terms) if kind == "doc" else (),
        "messages": _messages(shown, chunk, terms) if kind == "thread" else (),
        "before": shown.low,
        "after": len(shown.lines) - shown.high,
        "more": f"{address}?context={MORE_LINES}" if shown.is_cut else "",
        "fewer": address if context > CONTEXT_LINES else "",
        "previous": previous,
        "following": following,
        "outline": _outline(chunk["chunk_id"], document["chunks"] if document and kind != "thread" else (), headings),
        "facts": _facts(chunk["metadata"]),
        "last_change": _last_change(chunk["last_change"]),
        "about": tuple((passage_address(each["chunk_id"]), each["title"]) for each in chunk["about"]),
        "generation": chunk["generation"],
        "back": back,
    }


def _neighbours(chunk_id: str, chunks: Sequence[str]) -> tuple[str, str]:
    """Return the addresses of the previous and the next passage; empty if there is none."""
    if chunk_id not in chunks:
        return "", ""
    at = chunks.index(chunk_id)
    before, after = chunks[:at][-1:], chunks[at + 1 : at + 2]
    return "".join(map(passage_address, before)), "".join(map(passage_address, after))


def _outline(
    chunk_id: str, chunks: Sequence[str], headings: Sequence[HeadingDocument]
) -> list[tuple[str, str, int | None, bool]]:
    """Return the sections of a document: title, address, line, and whether the passage belongs to it.

    A passage without a title belongs to the last section that begins before it.
    """
    before = set(chunks[: chunks.index(chunk_id) + 1]) if chunk_id in chunks else set()
    begun = [each["chunk_id"] for each in headings if each["chunk_id"] in before]
    return [
        (each["title"], passage_address(each["chunk_id"]), each["line"], each["chunk_id"] in begun[-1:])
        for each in headings[: MAX_OUTLINE if len(headings) > 1 and chunks else 0]
    ]


def _shown(chunk: ChunkDocument, document: DocumentDocument | None, context: int) -> _Shown:
    citation = chunk["citation"]
    text = document["text"] if document else chunk["content"]
    start, end = citation["char_range"] if document else (0, len(text))
    lines, offsets = lines_of(text), line_starts(text)
    first, last = _line_at(offsets, start), _line_at(offsets, max(start, end - 1))
    return _Shown(
        text=text,
        lines=lines,
        low=max(0, first - (LINES_ABOVE if context == CONTEXT_LINES else context)),
        high=min(len(lines), last + context + 1),
        cited=range(first, last + 1),
        first_number=1 if document else (citation["line_range"] or [1])[0],
    )


def _kind(chunk: ChunkDocument, document: DocumentDocument | None) -> str:
    if chunk["metadata"].get("kind") in {COMMIT, RELEASE}:
        return "prose"
    if chunk["domain_id"] == "code":
        return "code"
    if chunk["domain_id"] == "conversations" and (document is None or document["format"] in _FLOWING):
        return "thread"
    is_markup = document is not None and document["format"] in MARKUP and len(document["text"]) <= MAX_CHARACTERS
    return "doc" if is_markup else "prose"


def _lines(shown: _Shown, chunk: ChunkDocument, terms: Collection[str]) -> Iterator[PassageLine]:
    """Yield the shown lines with their numbers."""
    lines = [line[:MAX_LINE_CHARACTERS] for line in shown.lines[shown.low : shown.high]]
    language = str(chunk["metadata"].get("language") or "") if chunk["domain_id"] == "code" else ""
    coloured = marked_code(lines, colours_of("\n".join(lines), language) if language else [], terms)
    for place, runs in enumerate(coloured, shown.low):
        yield PassageLine(place + shown.first_number, place in shown.cited, runs)


def _blocks(shown: _Shown, document: DocumentDocument | None, terms: Collection[str]) -> tuple[Block, ...]:
    """Return the blocks of the document that overlap the shown lines."""
    form = document["format"] if document else "markdown"
    blocks = blocks_of(shown.text, terms, format=form, cited=shown.numbers)
    return tuple(block for block in blocks if block.lines[0] <= shown.high and shown.low < block.lines[1])


def _messages(shown: _Shown, chunk: ChunkDocument, terms: Collection[str]) -> tuple[MessageView, ...]:
    return messages_of(
        "\n".join(shown.lines[shown.low : shown.high]),
        terms,
        first_line=shown.low + shown.first_number,
        cited=shown.numbers,
        ids=chunk["citation"]["message_ids"] or (),
    )


def _line_at(offsets: Sequence[int], offset: int) -> int:
    return max(0, bisect_right(offsets, offset) - 1)


def _facts(metadata: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the metadata that the page shows, as names and values: people, places, dates."""
    wanted = ("channel", "participants", "authors", "author", "venue", "publication_date", "message_timestamp", "tags")
    shown = []
    for key in wanted:
        value = metadata.get(key)
        text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value) if value else ""
        if text:
            shown.append((key.replace("_", " "), text[:300]))
    return tuple(shown)


def _last_change(change: ChangeDocument | None) -> tuple[str, str] | None:
    """Return address and text of the last commit: ``2026-03-04 by Ada: Keep sessions longer``; ``None`` if unknown.

    The address is empty if the commit is not read.
    """
    if change is None:
        return None
    by = f" by {change['author']}" if change["author"] else ""
    address = passage_address(change["chunk_id"]) if change["chunk_id"] else ""
    return address, f"{day_of(change['date'])}{by}: {change['subject']}"


CPU_S = 10.0
"""Of processor time, for one page."""
log = logging.getLogger(__name__)


def printed_page(chunk: ChunkDocument, folder: Path) -> bytes | None:
    """Return the chunk's page of a PDF file as PNG, with the chunk's lines marked; ``None`` if it cannot be drawn."""
    # A process that answers reads documents for nothing else.
    from nornweave.connect.files.source import read_inside
    from nornweave.read.pdf.picture import page_picture

    path = chunk["citation"]["source_path"]
    values = {"page": chunk["citation"]["page"], "text": chunk["content"]}
    try:
        drawn = run_apart(page_picture, values, read_inside(folder, path), cpu_s=CPU_S)
    except DocumentError as error:
        log.info("no picture of a page of %s: %s", path, error)
        return None
    return base64.b64decode(drawn) if isinstance(drawn, str) else None
