"""Judged sets: queries, and the places of documents that answer them.

Judgments name documents and places in them, never chunks: they outlive every change of the chunker.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePosixPath
from types import MappingProxyType

from evals.masked_document import without
from nornweave.ask.search.records import Citation
from nornweave.core.types import NO_METADATA, Metadata, Span
from nornweave.index.index import Index
from nornweave.models.encoders.port import Encoder

_LINES = re.compile(r"L(\d{1,9})(?:-L?(\d{1,9}))?", re.ASCII)
_FILE_ENDING = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,9}")


class JudgmentError(ValueError):
    """A judged set is wrong. The message has file and line, the value found, and the value expected."""


class JudgmentOrigin(StrEnum):
    """Who made the judgments of a set."""

    PEOPLE = "people"
    """By reading the corpus."""
    PUBLIC = "public"
    """Taken from elsewhere."""
    GENERATED = "generated"
    """Out of the corpus itself, by rule: easier than what people ask, good for comparing one index with the next."""
    FEEDBACK = "feedback"
    """Out of what users said of the answers that they got."""


@dataclass(frozen=True, slots=True)
class HiddenText:
    """The text from which a query was made. It is hidden, so that no place is found by the query's own words.

    Attributes:
        path: of the document, relative to its source.
        start: first character, from 0.
        end: after the last.
    """

    path: str
    start: int
    end: int

    def view(self, generation: Index, encoder: Encoder | None) -> Index:
        """Return the generation as if the text did not exist."""
        return without(generation, self.path, Span(self.start, self.end), encoder)


@dataclass(frozen=True, slots=True)
class JudgedQuery:
    """A question of a judged set.

    Attributes:
        filters: of its own domain, if it has any.
        kind: a label of the set's own (keyword, semantic, …), to measure kinds of queries apart.
        answerable: ``False`` if the corpus holds no answer; then no judgment is above 0.
        hidden: the text from which a generated query was made.
    """

    id: str
    text: str
    filters: Metadata = field(default_factory=lambda: NO_METADATA)
    kind: str | None = None
    answerable: bool = True
    hidden: HiddenText | None = None


@dataclass(frozen=True, slots=True)
class Judgment:
    """A place that answers a query.

    Attributes:
        path: of the document, relative to its source.
        lines: first and last line, from 1, both included; ``None`` when another place or the whole document is meant.
        message_id: the message that answers, in a conversation.
        grade: above 0 is relevant, and more is better; 0 and below are judged not relevant.
        moved_to: where the document lies since its path was judged; see ``moves``.
    """

    query_id: str
    path: str
    lines: tuple[int, int] | None
    message_id: str | None
    grade: int
    moved_to: str | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """Return the possible paths of the document. A generation has one of them."""
        return (self.path, self.moved_to) if self.moved_to else (self.path,)

    @property
    def key(self) -> str:
        """Return the place as one text, the same for all ways of writing it."""
        if self.lines:
            return f"{self.path}#L{self.lines[0]}-{self.lines[1]}"
        return f"{self.path}#{self.message_id or ''}"

    @property
    def whole_document(self) -> bool:
        """Tell whether any part of the document answers."""
        return self.lines is None and self.message_id is None

    def hit_by(self, item: Citation) -> bool:
        """Tell whether an item lies in this document and overlaps the lines or holds the message."""
        if item.source_path not in self.paths:
            return False
        if self.lines:
            return item.line_range is not None and (
                item.line_range[0] <= self.lines[1] and self.lines[0] <= item.line_range[1]
            )
        return self.message_id is None or self.message_id in (item.message_ids or ())


@dataclass(frozen=True, slots=True)
class JudgedSet:
    """Queries and judgments, each in the order of their file.

    Attributes:
        across_domains: whether it is judged in all domains at once, and has none of its own.
    """

    name: str
    queries: tuple[JudgedQuery, ...]
    judgments: tuple[Judgment, ...]
    origin: JudgmentOrigin = JudgmentOrigin.PEOPLE
    note: str = ""
    across_domains: bool = False

    @property
    def unanswerable(self) -> tuple[JudgedQuery, ...]:
        """Return the queries without an answer in the corpus."""
        return tuple(query for query in self.queries if not query.answerable)

    @property
    def relevant(self) -> Mapping[str, tuple[Judgment, ...]]:
        """Return the judgments above grade 0 by query. Queries without any are left out; they cannot be measured."""
        found: dict[str, list[Judgment]] = {}
        for judgment in self.judgments:
            if judgment.grade > 0:
                found.setdefault(judgment.query_id, []).append(judgment)
        return MappingProxyType({query: tuple(judgments) for query, judgments in found.items()})


def parse_place(doc_id: str) -> tuple[str, tuple[int, int] | None, str | None]:
    """Split a ``doc_id`` into path, lines and message id.

    ``path#L12-40``, ``path#L12-L40`` and ``path#L12`` name lines. Otherwise what follows the last ``#`` is a message
    id, unless it belongs to the path: it starts with ``/``, or what precedes it has no file ending while it has one or
    goes deeper (``C#/intro.md``, ``notes/c#-tips.md``, ``team#4/log``). A ``#`` at the very end says that the path ends
    there, for the names that these rules get wrong (``v1.x#notes.md#``).

    Raises:
        ValueError: there is no path, or the lines do not count from 1 upwards.
    """
    path, mark, fragment = doc_id.rpartition("#")
    lines = _LINES.fullmatch(fragment) if mark else None
    if not mark or (not lines and _belongs_to_the_path(path, fragment)):
        path, fragment = doc_id, ""
    if not path:
        raise ValueError("the path is missing")
    if not lines:
        return path, None, fragment or None
    first, last = int(lines[1]), int(lines[2] or lines[1])
    if not 1 <= first <= last:
        raise ValueError(f"lines {first} to {last}; they count from 1, the first is not after the last")
    return path, (first, last), None


def _belongs_to_the_path(before: str, fragment: str) -> bool:
    """Tell whether a ``#`` is part of a file name.

    Message ids may look like files, too (``mail.jsonl#1@example.com``), but the file that holds them has an ending.
    """
    if _has_file_ending(before):
        return fragment.startswith("/")
    return "/" in fragment or _has_file_ending(fragment)


def _has_file_ending(path: str) -> bool:
    return bool(_FILE_ENDING.fullmatch(PurePosixPath(path).suffix))
