"""Documents that a sync looks at → what becomes of each, in batches that are stored together.

A document's failure is its own: it is named with its reason, and the others go on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from nornweave.chunking.chunker import Chunker
from nornweave.embedding import Encoder
from nornweave.errors import DocumentError, DocumentSkipped, NornWeaveError, TransientDocumentError
from nornweave.indexing import index_chunks
from nornweave.ingest.changes import Look
from nornweave.ingest.source import Source
from nornweave.store.port import Batch, NotStored, StoredDocument
from nornweave.types import ContentHash, canonical_json, digest, document_id

logger = logging.getLogger(__name__)

# A transaction is worth its overhead from about this much on, and small enough to hold in memory.
BATCH_DOCUMENTS = 256
BATCH_CHUNKS = 2048
BATCH_CHARACTERS = 8_000_000

Fate: TypeAlias = Literal["added", "changed", "unchanged", "removed", "failed", "skipped"]
"""What became of a document; ``removed`` is one that was stored and is left out on purpose now."""


@dataclass(frozen=True, slots=True)
class Looked:
    """One document that was looked at, and what is to be stored of that."""

    fate: Fate
    batch: Batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """Reads, parses and cuts documents.

    Attributes:
        sources: by id.
        pipelines: per source, the versions and settings that its documents go through.
        full: read documents again that did not change.
    """

    sources: Mapping[str, Source]
    pipelines: Mapping[str, str]
    chunker: Chunker
    encoder: Encoder
    full: bool = False

    def batches(self, looks: Sequence[Look], done: Callable[[Fate], None]) -> Iterator[Batch]:
        """Look at documents, in order; ``done`` is told what became of each."""
        collected: list[Batch] = []
        chunks = characters = 0
        for look in looks:
            looked = self.look(look)
            collected.append(looked.batch)
            done(looked.fate)
            chunks += sum(len(one.chunks) for one in looked.batch.stored)
            characters += sum(len(one.document.text) for one in looked.batch.stored)
            if len(collected) >= BATCH_DOCUMENTS or chunks >= BATCH_CHUNKS or characters >= BATCH_CHARACTERS:
                yield _join(collected)
                collected, chunks, characters = [], 0, 0
        if collected:
            yield _join(collected)

    def look(self, look: Look) -> Looked:
        """Read one document and decide what becomes of it."""
        known = look.stored if look.stored and look.stored.content_hash else None
        try:
            raw = self.sources[look.source_id].fetch(look.entry)
            content_hash = ContentHash(digest(raw, canonical_json(look.entry.metadata)))
            pipeline = self.pipelines[look.source_id]
            is_same = known is not None and (known.content_hash, known.pipeline) == (content_hash, pipeline)
            if known and is_same and not self.full:
                return Looked("unchanged", Batch(touched=((known.document_id, look.entry.gate),)))
            stored = self._cut(look, raw, content_hash)
        except DocumentSkipped as skip:
            removed = (known.document_id,) if known else ()
            batch = Batch(not_stored=(self._not_stored(look, str(skip), "skipped"),), removed=removed)
            return Looked("removed" if known else "skipped", batch)
        except TransientDocumentError as error:
            return Looked("failed", Batch(not_stored=(self._not_stored(look, str(error), "transient"),)))
        except DocumentError as error:
            return Looked("failed", Batch(not_stored=(self._not_stored(look, str(error), "failed"),)))
        return Looked("unchanged" if is_same else "changed" if known else "added", Batch(stored=(stored,)))

    def _cut(self, look: Look, raw: bytes, content_hash: ContentHash) -> StoredDocument:
        """Parse and cut a document.

        A defect of ours or of a parser shows on one document: that one fails, with its trace in the log, not the run.
        """
        try:
            parsed = self.sources[look.source_id].parse(look.entry, raw)
            document = replace(parsed, content_hash=content_hash)
            chunks = tuple(index_chunks(document, self.chunker, self.encoder))
        except NornWeaveError:
            raise
        except Exception as error:
            logger.exception("%s/%s: a defect", look.source_id, look.entry.path)
            reason = f"a defect of the parser ({type(error).__name__}: {error}); exclude the document and report it"
            raise DocumentError(reason) from error
        if not chunks:
            raise DocumentError("empty: nothing in it can be indexed; add text or exclude it")
        pipeline = self.pipelines[look.source_id]
        return StoredDocument(document=document, gate=look.entry.gate, pipeline=pipeline, chunks=chunks)

    def _not_stored(self, look: Look, reason: str, outcome: Literal["failed", "transient", "skipped"]) -> NotStored:
        logger.info("%s/%s: %s: %s", look.source_id, look.entry.path, outcome, reason)
        return NotStored(
            document_id=document_id(look.source_id, look.entry.path),
            source_id=look.source_id,
            path=look.entry.path,
            gate=look.entry.gate,
            pipeline=self.pipelines[look.source_id],
            reason=reason,
            outcome=outcome,
        )


def _join(batches: Sequence[Batch]) -> Batch:
    return Batch(
        stored=tuple(one for batch in batches for one in batch.stored),
        not_stored=tuple(one for batch in batches for one in batch.not_stored),
        removed=tuple(one for batch in batches for one in batch.removed),
        touched=tuple(one for batch in batches for one in batch.touched),
    )
