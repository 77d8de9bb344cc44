"""Small random corpora with rules of access, published for real, and the viewers and questions to try on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nornweave.config import PlanSettings, StorageSettings
from nornweave.core.access import Viewer, is_met, read_rule
from nornweave.core.types import (
    ContentHash,
    Document,
    Domain,
    Entry,
    JsonValue,
    Listing,
    SourceId,
    digest,
    document_id,
    freeze,
)
from nornweave.index.corpus import DuckDBStore
from nornweave.index.port import Store
from nornweave.ingest.pipeline import run
from nornweave.ingest.records import DomainParts, SyncOptions
from nornweave.models.encoders.hashing import HashEncoder
from nornweave.read.chunking.chunker import Chunker

GROUPS = ("staff", "ops", "board", "guests")
SOURCES: dict[str, tuple[str, ...]] = {"open": (), "inner": ("staff", "ops"), "secret": ("board",)}
# Words that several documents share, acronyms with what they stand for, names, phrases: all that a score depends on.
WORDS = (
    "retry", "limit", "queue", "deploy", "rollback", "ledger", "timeout", "shard", "the", "of", "is", "and",
    "WCAG", "SLA", "DNS", "service level agreement", "Web Content Accessibility Guidelines", "domain name system",
    "handle_payment_error", "RetryPolicy", "max_retries", "connection reset by peer", "größe", "支付", "422", "v2.1",
)  # fmt: skip
# Files of several folders and sources have the same name: it is looked up, and how rare it is counts.
DIMENSIONS = 16
NAMES = ("limits.md", "guide.md", "ledger.md", "retry_policy.md")
STATEMENTS: tuple[JsonValue, ...] = (
    None, None, None, "staff", ["ops", "board"], ["guests"], ["board"], "", [], 3, ["staff", 4],
)  # fmt: skip
PLANS = (
    PlanSettings(),
    PlanSettings(combine="rrf"),
    PlanSettings(document_share=0, function_words=1, heuristics=False),
    PlanSettings(document_share=0.5),
)


@dataclass(frozen=True, slots=True)
class Written:
    """A document of a corpus; ``access`` is what its metadata state."""

    source_id: str
    path: str
    text: str
    access: JsonValue = None

    def is_seen_by(self, viewer: Viewer) -> bool:
        """Tell whether a viewer may see it, by the definition."""
        statements = [self.access, list(SOURCES[self.source_id]) or None]
        return viewer.sees_everything or is_met(read_rule(*statements), viewer.groups)


@dataclass(frozen=True, slots=True)
class WrittenSource:
    """The documents of one source, held in memory."""

    id: SourceId
    written: Sequence[Written]
    domain: Domain = Domain.DOCUMENTATION
    version: str = "1"

    def list(self) -> Listing:
        """List the documents."""
        return Listing(tuple(self._entry(one) for one in sorted(self.written, key=lambda one: one.path)))

    def fetch(self, entry: Entry) -> bytes:
        """Return a document's text."""
        return next(one.text for one in self.written if one.path == entry.path).encode()

    def parse(self, entry: Entry, raw: bytes) -> Document:
        """Return a document with its metadata."""
        return Document(
            id=document_id(self.id, entry.path),
            domain=self.domain,
            source_id=self.id,
            path=entry.path,
            text=raw.decode(),
            format="text",
            content_hash=ContentHash(digest(raw)),
            metadata=entry.metadata,
        )

    @staticmethod
    def _entry(one: Written) -> Entry:
        return Entry(path=one.path, gate=digest(one.text, str(one.access)), metadata=freeze({"access": one.access}))


def published(folder: Path, written: Sequence[Written], storage: StorageSettings | None = None) -> DuckDBStore:
    """Publish documents as a sync does; return where."""
    store = DuckDBStore(folder, storage or StorageSettings(), dimensions=DIMENSIONS)
    publish_into(store, written)
    return store


def publish_into(store: Store, written: Sequence[Written]) -> None:
    """Publish documents as a sync does."""
    encoder = HashEncoder(dimensions=DIMENSIONS)
    parts = DomainParts(
        domain=Domain.DOCUMENTATION,
        sources=tuple(
            WrittenSource(SourceId(name), [one for one in written if one.source_id == name]) for name in SOURCES
        ),
        chunker=Chunker(strategy="RECURSIVE_CHARACTER", limit=16),
        encoder=encoder,
        store=store,
        access=SOURCES,
    )
    run(parts, SyncOptions(run_id="access", wait_s=0, confirm_deletes=True))


def path_of(number: int, name: str) -> str:
    """Return the path of a document; paths differ, names need not."""
    return f"part-{number:03}/{name}"
