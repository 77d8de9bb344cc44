"""Settings → the parts that a sync or a query works with."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from nornweave.chunking.chunker import Chunker
from nornweave.embedding import Encoder, load_encoder
from nornweave.ingest.inbox import InboxSource
from nornweave.ingest.opening import open_source
from nornweave.settings import DomainSettings, EmbeddingSettings, Settings
from nornweave.store.corpus import DuckDBStore
from nornweave.sync import DomainParts
from nornweave.types import Domain, SourceId

INBOX = SourceId("inbox")


def domain_parts(settings: Settings, domain: Domain) -> DomainParts:
    """Return what a sync of ``domain`` works with; the encoder is shared between domains that use the same."""
    configured = settings.domains[domain]
    encoder = encoder_of(settings, configured)
    sources = [open_source(source) for source in settings.sources_of(domain)]
    if INBOX not in {source.id for source in sources}:
        sources.append(InboxSource(INBOX, domain, settings.inbox(domain)))
    return DomainParts(
        domain=domain,
        sources=tuple(sources),
        chunker=chunker_of(configured),
        encoder=encoder,
        store=store_of(settings, domain, dimensions=encoder.dimensions),
    )


def chunker_of(configured: DomainSettings) -> Chunker:
    """Return the domain's chunker."""
    chunking = configured.chunking
    return Chunker(
        strategy=chunking.strategy, limit=chunking.max_chunk_tokens, grammars=frozenset(chunking.language_grammars)
    )


def store_of(settings: Settings, domain: Domain, *, dimensions: int = 0) -> DuckDBStore:
    """Return the domain's storage; ``dimensions`` matters to writers only."""
    return DuckDBStore(domain_folder(settings, domain), settings.domains[domain].storage, dimensions=dimensions)


def domain_folder(settings: Settings, domain: Domain) -> Path:
    """Return the folder that holds the domain's working file, generations and status."""
    return settings.data_dir / "domains" / domain.value


def encoder_of(settings: Settings, configured: DomainSettings) -> Encoder:
    """Return the domain's encoder, loaded once per process."""
    return _load(configured.embedding, settings.data_dir / "models")


@lru_cache(maxsize=8)
def _load(embedding: EmbeddingSettings, cache_dir: Path) -> Encoder:
    return load_encoder(
        embedding.model,
        dimensions=embedding.dimensions,
        device=embedding.device,
        batch_size=embedding.batch_size,
        cache_dir=cache_dir,
    )
