"""Cut a document into chunks, with everything that the index needs."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

from nornweave.core.text import analyzer
from nornweave.core.text.dates import iso_moment
from nornweave.core.text.index_fields import is_aside, lookup_keys, terms_by_field
from nornweave.core.text.spans import KnownStarts, Lines, TokenIndex
from nornweave.core.types import COMMIT, RELEASE, Chunk, ChunkId, Document, Domain, Fact, JsonValue, Span, digest
from nornweave.disagree.facts.extract import extract_facts
from nornweave.disagree.facts.passage import Passage
from nornweave.disagree.facts.statement import called, is_declared, settings_in
from nornweave.index.records import DescribedSetting, IndexedChunk
from nornweave.read.blocks.reader import CONVERTED
from nornweave.read.chunking.chunker import Chunker
from nornweave.read.isolated import Fields, document_from

MAX_FACTS_OF_CHUNK = 128
"""More is a table of constants; each is read at every query that finds the chunk."""
_READ_BY_CHUNK = frozenset((Domain.CONVERSATIONS, Domain.RESEARCH))


def index_document(values: Mapping[str, JsonValue], raw: bytes) -> list[IndexedChunk]:
    """Cut a document in a sandbox process. Return its chunks for the index.

    Args:
        values: the other arguments of ``index_chunks`` as JSON.
        raw: the offsets of the document's tokens, 8 bytes each.
    """
    settings = cast(Fields, values["chunker"])
    document = document_from(cast(Fields, values["document"]))
    chunker = Chunker(**{**settings, "grammars": frozenset(settings["grammars"])})
    return list(
        index_chunks(document, chunker, array("q", raw), str(values["encoder_version"]), bool(values["describes"]))
    )


def index_chunks(
    document: Document, chunker: Chunker, token_starts: Sequence[int], encoder_version: str, describes: bool = False
) -> Iterator[IndexedChunk]:
    """Yield the chunks of a document with their data for the index, in order.

    Args:
        token_starts: the offset at which each token of the encoder starts.
        describes: whether the words that describe each setting are encoded as well.
    """
    index = TokenIndex(document.text, KnownStarts(token_starts))
    lines = Lines(document.text)
    chunks = tuple(chunker.chunk(document, index))
    facts = _facts_by_chunk(document, chunks, lines)
    seen: Counter[str] = Counter()
    describes = describes and not is_aside(document.path)
    for chunk, stated in zip(chunks, facts, strict=True):
        text_id, facts_kept = digest(chunk.content), stated[:MAX_FACTS_OF_CHUNK]
        yield IndexedChunk(
            chunk_id=ChunkId(digest(document.id, text_id, str(seen[text_id]))),
            chunk=chunk,
            embedding_key=digest(encoder_version, chunk.embedded_text),
            terms=terms_by_field(document, chunk),
            lines=lines.range(chunk.span),
            pairs=_pairs(chunk),
            keys=tuple(sorted(lookup_keys(document, chunk) | _setting_keys(stated))),
            facts=facts_kept,
            settings=tuple(
                DescribedSetting(position, words, digest(encoder_version, words))
                for position, words in (settings_in(facts_kept, chunk.content, chunk.span.start) if describes else ())
            ),
        )
        seen[text_id] += 1


def _facts_by_chunk(document: Document, chunks: Sequence[Chunk], lines: Lines) -> list[tuple[Fact, ...]]:
    """Return the document's facts by chunk. A fact belongs to the chunk in which it starts.

    Code and documentation are read as a whole, so that a fact gets its class and its headings. In conversations and
    research each chunk is read alone, because only the chunk has the speaker and the heading.
    """
    if document.format in {COMMIT, RELEASE}:  # history: facts of the past
        return [() for _ in chunks]
    if document.domain in _READ_BY_CHUNK:
        return [_facts_of_chunk(document, chunk, lines) for chunk in chunks]
    starts = [chunk.span.start for chunk in chunks]
    stated: list[list[Fact]] = [[] for _ in chunks]
    for fact in extract_facts(_passage(document)):
        place = bisect_right(starts, fact.span.start) - 1
        if place >= 0:
            stated[place].append(fact)
    return [tuple(facts) for facts in stated]


def _setting_keys(facts: Sequence[Fact]) -> set[str]:
    """Return the lookup keys of the settings whose values these facts state."""
    names = {name for fact in facts if fact.attribute in {"default", "value", "setting"} for name in _written(fact)}
    declared = {name for fact in facts if is_declared(fact) for name in _written(fact)}
    return {*(f"defaults:{name}" for name in declared), *(f"states:{name}" for name in names)}


def _written(fact: Fact) -> tuple[str, ...]:
    """Return the names of a setting. A setting in a file, or an option, has ``cli timeout`` besides ``timeout``."""
    return called(fact) if fact.side == "configuration" or fact.form == "option" else (fact.name,)


def _facts_of_chunk(document: Document, chunk: Chunk, lines: Lines) -> tuple[Fact, ...]:
    first = lines.range(chunk.span)[0] - 1
    return tuple(replace(fact, line=fact.line + first) for fact in extract_facts(_passage(document, chunk)))


def _passage(document: Document, chunk: Chunk | None = None) -> Passage:
    """Return a document or one of its chunks as a passage to read facts from."""
    span = chunk.span if chunk else Span(0, len(document.text))
    return Passage(
        text=document.text[span.start : span.end],
        start=span.start,
        domain=document.domain.value,
        format="markdown" if document.format in CONVERTED else document.format,
        path=document.path,
        title=(chunk.title if chunk else None) or document.title,
        section=chunk.section if chunk else None,
        context=chunk.context if chunk else "",
        timestamp=(iso_moment(chunk.metadata.get("message_timestamp")) if chunk else None) or document.updated_at,
    )


def _pairs(chunk: Chunk) -> tuple[int, ...]:
    pairs = analyzer.word_pairs(analyzer.sequence(chunk.content))
    return tuple(sorted({analyzer.pair_key(pair) for pair in pairs}))
