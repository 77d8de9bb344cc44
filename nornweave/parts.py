"""Settings → the parts that a sync works with."""

from __future__ import annotations

from nornweave.chunking.chunker import Chunker
from nornweave.ingest.inbox import InboxSource
from nornweave.ingest.opening import open_source
from nornweave.settings import DomainSettings, Settings
from nornweave.sync import DomainParts
from nornweave.types import Domain, SourceId
from nornweave.workspace import encoder_of, store_of

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
