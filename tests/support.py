"""Parts that tests build on: a source held in memory, and readers of what was published."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np

from nornweave.config import StorageSettings
from nornweave.connect.protocol import Watchable
from nornweave.core.errors import (
    DocumentError,
    DocumentSkipped,
    SourceUnavailableError,
    StoreError,
    TransientDocumentError,
)
from nornweave.core.files.paths import Within
from nornweave.core.text import analyzer
from nornweave.core.types import ContentHash, Document, Domain, Entry, Listing, SourceId, digest, document_id
from nornweave.index.connection import check_vss
from nornweave.index.corpus import DuckDBStore
from nornweave.index.port import found
from nornweave.ingest.pipeline import run
from nornweave.ingest.records import DomainParts, SyncOptions, SyncReport
from nornweave.models.encoders import Encoder
from nornweave.models.encoders.hashing import HashEncoder
from nornweave.read.chunking.chunker import Chunker

BROKEN = "\0broken"
SKIPPED = "\0skipped"
LOCKED = "\0locked"
DEFECT = "\0defect"


@cache
def why_without_vss() -> str | None:
    """Return why the index of vectors cannot be used with this DuckDB, if so: newer ones have no such extension."""
    try:
        check_vss()
    except StoreError as error:
        return str(error)
    return None


@dataclass
class MemorySource:
    """A source whose documents are a dict; some contents stand for what cannot be ingested."""

    id: str = "memory"
    domain: Domain = Domain.DOCUMENTATION
    version: str = "1"
    documents: dict[str, str] = field(default_factory=dict)
    revisions: dict[str, int] = field(default_factory=dict)
    unavailable: bool = False

    def write(self, path: str, text: str) -> None:
        """Write a document; its gate changes even when its text does not, as with ``touch``."""
        self.documents[path] = text
        self.revisions[path] = self.revisions.get(path, 0) + 1

    def list(self) -> Listing:
        if self.unavailable:
            raise SourceUnavailableError("not mounted; mount it")
        return Listing(tuple(Entry(path=path, gate=f"{self.revisions[path]}") for path in sorted(self.documents)))

    def watched_folder(self) -> None:
        """No file system tells what changes in it."""

    def list_within(self, within: Within | None) -> Listing:
        listing = self.list()
        if within is None:
            return listing
        return replace(listing, entries=tuple(e for e in listing.entries if within.holds(e.path)), within=within)

    def fetch(self, entry: Entry) -> bytes:
        text = self.documents[entry.path]
        if text == LOCKED:
            raise TransientDocumentError("locked; try again")
        return text.encode()

    def parse(self, entry: Entry, raw: bytes) -> Document:
        text = raw.decode()
        if text == BROKEN:
            raise DocumentError("broken; mend it")
        if text == SKIPPED:
            raise DocumentSkipped("generated")
        if text == DEFECT:
            raise KeyError("nobody thought of this")
        return Document(
            id=document_id(self.id, entry.path),
            domain=self.domain,
            source_id=SourceId(self.id),
            path=entry.path,
            text=text,
            format="text",
            content_hash=ContentHash(digest(raw)),
        )


def memory_parts(
    folder: Path, *sources: MemorySource, encoder: Encoder | None = None, limit: int = 16, **storage: object
) -> DomainParts:
    """Return the parts of a domain that reads ``sources``; ``storage`` are its settings."""
    encoder = encoder or HashEncoder(dimensions=16)
    return DomainParts(
        domain=Domain.DOCUMENTATION,
        sources=sources,
        chunker=Chunker(strategy="RECURSIVE_CHARACTER", limit=limit),
        encoder=encoder,
        store=DuckDBStore(folder, StorageSettings.model_validate(storage), dimensions=encoder.dimensions),
    )


def sync(parts: DomainParts, told: Collection[str] = (), **options: bool) -> SyncReport:
    """Run one sync with a run id, of the paths of the source ``memory`` that it is told of, or of all."""
    within = Within(frozenset(told))
    memory = [each for each in parts.sources if isinstance(each, Watchable) and each.id == "memory"] if told else []
    listed = {source.id: source.list_within(within) for source in memory}
    return run(parts, SyncOptions(run_id="test", wait_s=0, listed=listed, **options))


def published_texts(parts: DomainParts) -> dict[str, str]:
    """Return the published documents' texts by path, put together from their chunks."""
    with parts.store.files.open(parts.store.current()) as generation:
        chunks = generation.chunks(np.arange(generation.chunk_count, dtype=np.int32))
    texts: dict[str, list[tuple[int, str]]] = {}
    for chunk in chunks.values():
        texts.setdefault(f"{chunk.source_id}/{chunk.path}", []).append((chunk.char_range[0], chunk.content))
    return {path: " ".join(content for _, content in sorted(pieces)) for path, pieces in texts.items()}


def found_by_words(parts: DomainParts, words: str) -> set[str]:
    """Return the paths whose chunks hold any of ``words``, as BM25 finds them."""
    with parts.store.files.open(parts.store.current()) as generation:
        scores = generation.sparse(dict.fromkeys(analyzer.query_terms(words), 1.0))
        return {chunk.path for chunk in generation.chunks(found(scores, 1000).numbers).values()}
