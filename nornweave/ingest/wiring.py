"""Build the parts of a sync, and the sync, from the settings."""

from __future__ import annotations

import logging
from functools import partial

from nornweave.carry.wiring import INBOX, encoder_of, pull, store_of
from nornweave.carry.workers import distributed
from nornweave.config import DomainSettings, Settings
from nornweave.connect.connectors import GitSettings, open_sources
from nornweave.connect.git.remote import remove_unused
from nornweave.connect.inbox.source import InboxSource
from nornweave.core.types import Domain
from nornweave.ingest.confirmations import Confirmations
from nornweave.ingest.pipeline import DomainSync
from nornweave.ingest.records import DISTRIBUTED_WINDOW, EMBEDDING_WINDOW, DomainParts, Gate, Progress, SyncOptions
from nornweave.models.encoders.port import VERSION, token_encoder
from nornweave.read.chunking.chunker import Chunker

log = logging.getLogger(__name__)


def domain_sync(
    settings: Settings, domain: Domain, options: SyncOptions, progress: Progress, *, gate: Gate
) -> DomainSync:
    """Return the sync of ``domain``. It is not open yet. Confirmations are read from disk, not from ``options``."""
    # Loading a model takes a second, or many where it runs with torch.
    progress(f"{domain.value} load", 0, 1)
    parts = domain_parts(settings, domain)
    progress(f"{domain.value} load", 1, 1)
    repositories = [source.url for source in settings.sources if isinstance(source, GitSettings) and source.url]
    remove_unused(settings.data_dir, repositories)
    confirm = partial(confirmations_of(settings).redeem, domain)
    return DomainSync(parts, options, progress, gate=gate, confirm=confirm)


def domain_parts(settings: Settings, domain: Domain) -> DomainParts:
    """Return the parts of a sync of ``domain``. Domains with the same embedding model share one encoder."""
    configured = settings.domains[domain]
    pull(settings, domain)  # the published generation decides which encoder is used
    published = store_of(settings, domain).published_facts()
    encoder = encoder_of(settings, configured, like=published.get("encoder"))
    sources = open_sources(settings, domain)
    if INBOX not in {source.id for source in sources}:
        sources.append(InboxSource(INBOX, domain, settings.inbox(domain)))
    encoder = distributed(settings, domain, encoder)
    of_tokens = token_encoder(encoder) if configured.plan.late_interaction else None
    if configured.plan.late_interaction and of_tokens is None:
        log.info("%s answers without late interaction: its encoder gives no vectors of tokens", domain.value)
    return DomainParts(
        domain=domain,
        sources=tuple(sources),
        chunker=chunker_of(configured),
        encoder=encoder,
        store=store_of(settings, domain, dimensions=encoder.dimensions, token_vectors=VERSION if of_tokens else ""),
        token_encoder=of_tokens,
        access=settings.restricted_sources(domain),
        embedding_window=DISTRIBUTED_WINDOW if settings.workers else EMBEDDING_WINDOW,
    )


def chunker_of(configured: DomainSettings) -> Chunker:
    """Return the chunker for a domain's settings."""
    chunking = configured.chunking
    return Chunker(
        strategy=chunking.strategy, limit=chunking.max_chunk_tokens, grammars=frozenset(chunking.language_grammars)
    )


def confirmations_of(settings: Settings) -> Confirmations:
    """Return the confirmations made at the command line."""
    return Confirmations(data_dir=settings.data_dir)
