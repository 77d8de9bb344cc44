"""Choose the chunking strategy of a document."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from nornweave.core.text.spans import TokenIndex, split, strip_lines
from nornweave.core.types import COMMIT, RELEASE, Chunk, Document, Domain, Span, freeze
from nornweave.read.blocks.reader import CONVERTED, FORMATS
from nornweave.read.chunking import code, messages, sections
from nornweave.read.chunking.division import Sections
from nornweave.read.chunking.languages import LANGUAGES
from nornweave.read.worth import is_encoded, licence_span, without

_VERSION = "recursive-6"

_WORD = re.compile(r"\w")
MARKUP = FORMATS | {"text"}
_OF_COMMITS = ("kind", "author", "release", "order")
"""What a chunk of a commit repeats of it."""


@dataclass(frozen=True, slots=True)
class Chunker:
    """A domain's chunking strategy with its token limit. If it does not fit a document, another strategy is used.

    Attributes:
        strategy: ``SYNTAX_AWARE``, ``HIERARCHICAL_SECTIONS``, ``MESSAGE_BOUNDARY`` or ``RECURSIVE_CHARACTER``.
        limit: the maximum number of tokens in an ordinary chunk.
        grammars: the languages that ``SYNTAX_AWARE`` can parse. Code in other languages is cut by
            ``RECURSIVE_CHARACTER``.
    """

    strategy: str
    limit: int
    grammars: frozenset[str] = frozenset(LANGUAGES)

    @property
    def version(self) -> str:
        """Return a version that changes whenever a document may be cut differently."""
        versions = (code.VERSION, messages.VERSION, sections.PAPERS_VERSION, _VERSION, sections.VERSION)
        settings = (self.strategy, str(self.limit), ",".join(sorted(self.grammars)))
        return "/".join((*versions, *settings))

    def chunk(self, document: Document, index: TokenIndex) -> Iterator[Chunk]:
        """Cut a document into chunks. They are in order and do not overlap.

        Blank space and the licence of code are left out. Only the beginning of encoded bytes is in a chunk.
        """
        for number, chunk in enumerate(self._chunks(document, index)):
            if not (number and is_encoded(chunk.content)):
                yield chunk

    def _chunks(self, document: Document, index: TokenIndex) -> Iterator[Chunk]:
        if document.format in {COMMIT, RELEASE}:
            return _chunk_commit(document, index, limit=self.limit)
        if self.strategy == "RECURSIVE_CHARACTER":
            return _chunk_recursive(document, index, limit=self.limit)
        if document.messages:
            return messages.chunk_messages(document, index, limit=self.limit, group_limit=2 * self.limit)
        if document.format in CONVERTED and self.strategy == "HIERARCHICAL_SECTIONS":
            return sections.chunk_sections(document, index, h1_limit=2 * self.limit, limit=self.limit)
        if document.sections:
            return sections.chunk_papers(document, index, section_limit=2 * self.limit, limit=self.limit)
        if document.format in self.grammars:
            return code.chunk_code(document, index, limit=self.limit)
        if document.format in MARKUP and self.strategy == "HIERARCHICAL_SECTIONS":
            return sections.chunk_sections(document, index, h1_limit=2 * self.limit, limit=self.limit)
        return _chunk_recursive(document, index, limit=self.limit)


def _chunk_recursive(document: Document, index: TokenIndex, *, limit: int) -> Iterator[Chunk]:
    """Cut a document at paragraphs, lines, sentences or words. A chunk has at most ``limit`` tokens.

    Pieces without a letter or digit, such as a line of dashes, are left out, and so is the licence of code.
    """
    text, is_code = document.text, document.domain is Domain.CODE
    licence = licence_span(text) if is_code else Span(0, 0)
    headed = Sections(text, document.path) if is_code else None
    whole = Span(0, len(text))
    for piece in headed.pieces(whole, index, limit) if headed else split(whole, index, limit):
        for part in without(licence, piece):
            span = strip_lines(text, part)
            if _WORD.search(text, span.start, span.end):
                title = headed.title(span) if headed else document.title
                yield Chunk(span=span, content=text[span.start : span.end], token_count=index.count(span), title=title)


def _chunk_commit(document: Document, index: TokenIndex, *, limit: int) -> Iterator[Chunk]:
    """Cut the text of a commit or a release. The metadata of each chunk name the commit, its author and its release."""
    metadata = freeze({key: document.metadata.get(key) for key in _OF_COMMITS})
    for piece in split(Span(0, len(document.text)), index, limit):
        span = strip_lines(document.text, piece)
        content = document.text[span.start : span.end]
        yield Chunk(span=span, content=content, token_count=index.count(span), title=document.title, metadata=metadata)
