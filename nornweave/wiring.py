"""Settings → the parts that serving and syncing share: where a domain is stored, what encodes it."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from nornweave.models.conversion import machine_cache
from nornweave.models.encoders import Encoder, load_encoder
from nornweave.settings import DomainSettings, EmbeddingSettings, Settings
from nornweave.settings.workspace import INBOX_ID
from nornweave.store.corpus import DuckDBStore
from nornweave.store.declared import DeclaredFilters
from nornweave.store.history import EvaluationHistory
from nornweave.types import Domain, SourceId

# Every domain has an inbox, without configuration.
INBOX = SourceId(INBOX_ID)


def store_of(settings: Settings, domain: Domain, *, dimensions: int = 0) -> DuckDBStore:
    """Return the domain's storage; ``dimensions`` matters to writers only."""
    configured = settings.domains[domain]
    return DuckDBStore(
        domain_folder(settings, domain),
        configured.storage,
        dimensions=dimensions,
        declared=DeclaredFilters(
            tuple(each for each in configured.filters if each.is_declared),
            {INBOX: INBOX, **{source.id: source.type.value for source in settings.sources_of(domain)}},
        ),
    )


def domain_folder(settings: Settings, domain: Domain) -> Path:
    """Return the folder that holds the domain's working file, generations and status."""
    return settings.data_dir / "domains" / domain.value


def history_of(settings: Settings) -> EvaluationHistory:
    """Return the history of evaluations."""
    return EvaluationHistory(settings.data_dir / "evaluations")


def encoder_of(settings: Settings, configured: DomainSettings, *, like: str | None = None) -> Encoder:
    """Return the domain's encoder, loaded once per process.

    Args:
        settings: of the workspace.
        configured: of the domain.
        like: version of the vectors that the encoder's are to join; queries, which search vectors of any precision,
            leave it out and take the fastest.
    """
    return _load(configured.embedding, model_cache(settings), like)


def model_cache(settings: Settings) -> Path:
    """Return where converted models are kept: once per user and machine, if its cache folder can be written."""
    return machine_cache(settings.data_dir / "models")


@lru_cache(maxsize=8)
def _load(embedding: EmbeddingSettings, cache_dir: Path, like: str | None) -> Encoder:
    return load_encoder(
        embedding.model,
        dimensions=embedding.dimensions,
        device=embedding.device,
        batch_size=embedding.batch_size,
        cache_dir=cache_dir,
        precision=embedding.precision,
        like=like,
    )
