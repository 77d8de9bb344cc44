"""The steps from a place of the corpus to a query: first a candidate, cheaply, then a query with its judgment."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from evals.judgments import HiddenText
from nornweave.index.index import Index
from nornweave.index.searching.generation_file import ChunkPlace


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftCandidate:
    """A place that may give a query. This is known only after reading its text.

    Attributes:
        key: identifies it in its document, and stays the same when other parts of the document change.
        chunks: the chunks with the source of the query and with its answer.
        wording: the query, if it is known already.
        heading: the headings above the place, as indexed.
    """

    kind: str
    key: str
    chunks: tuple[ChunkPlace, ...]
    wording: str = ""
    heading: str = ""

    @property
    def path(self) -> str:
        """Return the document's path."""
        return self.chunks[0].path

    @property
    def document_no(self) -> int:
        """Return the document's number in the generation."""
        return self.chunks[0].document_no

    @property
    def order(self) -> str:
        """Return a sort key that is independent of the corpus."""
        return short_hash(self.kind, self.path, self.key, length=64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A query and the only place that answers it: lines, a message, or the whole document."""

    kind: str
    text: str
    hidden: HiddenText
    lines: tuple[int, int] | None = None
    message_id: str | None = None


class DraftRule(Protocol):
    """A rule that makes queries of one kind."""

    @property
    def kind(self) -> str:
        """The kind's name."""

    @property
    def distinct(self) -> bool:
        """Whether each query is known to be unique, so that no search has to check it."""

    def candidates(self, generation: Index) -> Sequence[DraftCandidate]:
        """Return the places that may give a query, without reading texts."""

    def draft(self, candidate: DraftCandidate, text: str) -> Draft | None:
        """Make a query from a candidate and its document's text; ``None`` if none is worth asking."""


def short_hash(*parts: str, length: int = 12) -> str:
    """Return the beginning of a SHA-256 over the parts, in hex."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:length]


def lines_of(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the first and last line, from 1, that ``text[start:end]`` touches."""
    return text.count("\n", 0, start) + 1, text.count("\n", 0, max(start, end - 1)) + 1


def by_document(chunks: Iterable[ChunkPlace]) -> list[list[ChunkPlace]]:
    """Group chunks by their documents. The chunks must be in order."""
    documents: dict[int, list[ChunkPlace]] = {}
    for chunk in chunks:
        documents.setdefault(chunk.document_no, []).append(chunk)
    return list(documents.values())
