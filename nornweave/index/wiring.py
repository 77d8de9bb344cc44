"""Settings → the parts that serving and syncing share: where a domain is stored, what encodes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from nornweave.config import DomainSettings, EmbeddingSettings, Settings
from nornweave.config.workspace import INBOX_ID, WorkspaceStorageSettings
from nornweave.core.extras import optional
from nornweave.core.types import Domain, SourceId
from nornweave.index.corpus import DuckDBStore
from nornweave.index.leases.lease import DATABASE_VARIABLE
from nornweave.index.leases.wiring import files_elsewhere, lease_lock
from nornweave.index.writing.declared import DeclaredFilters
from nornweave.models.encoders import Encoder, load_encoder
from nornweave.models.encoders.loading import machine_cache

if TYPE_CHECKING:
    from nornweave.index.postgresql.server import Server

# Every domain has an inbox, without configuration.
INBOX = SourceId(INBOX_ID)


def store_of(settings: Settings, domain: Domain, *, dimensions: int = 0, token_vectors: str = "") -> DuckDBStore:
    """Return the domain's storage; ``dimensions`` and ``token_vectors`` matter to writers only.

    Raises:
        ConfigError: it is in PostgreSQL, and the packages for that are not installed.
    """
    workers, folder, storage = settings.workers, domain_folder(settings, domain), settings.domains[domain].storage
    store = partial(
        DuckDBStore,
        folder,
        storage,
        dimensions=dimensions,
        declared=_declared(settings, domain),
        token_vectors=token_vectors,
    )
    if settings.storage:
        server = _server(settings, _schema(settings.storage, domain))
        from nornweave.index.postgresql.carrier import FilesInServer, server_lock

        elsewhere = FilesInServer(server, folder)
        return store(open_lock=server_lock(server), elsewhere=elsewhere)
    if workers and workers.leases:
        return store(open_lock=partial(lease_lock, workers), elsewhere=files_elsewhere(workers, folder))
    return store()


def workspace_server(settings: Settings) -> Server | None:
    """Return the schema of what belongs to no single domain; ``None`` where that is in files below ``data_dir``.

    Raises:
        ConfigError: the packages for PostgreSQL are not installed.
    """
    return _server(settings, workspace_schema(settings.storage)) if settings.storage else None


def database_checks(settings: Settings, environment: Mapping[str, str]) -> dict[str, Callable[[], object]]:
    """Return what connects to the PostgreSQL servers that store documents and record runs, where there are any.

    Each raises ``StoreError`` if the server cannot be used; the message names the cause and what to do.

    Raises:
        ConfigError: the packages for PostgreSQL are not installed.
    """
    checks: dict[str, Callable[[], object]] = {}
    if server := workspace_server(settings):
        checks["storage"] = partial(server.rows, "select 1")
    if address := environment.get(DATABASE_VARIABLE):
        with optional("postgresql", DATABASE_VARIABLE):
            from nornweave.index.postgresql.server import check_answers
        checks[DATABASE_VARIABLE] = partial(check_answers, address, DATABASE_VARIABLE)
    return checks


def workspace_schema(storage: WorkspaceStorageSettings) -> str:
    """Return the schema of what belongs to no single domain."""
    return f"{storage.schema_prefix}_workspace"


def _server(settings: Settings, schema: str) -> Server:
    assert settings.storage
    with optional("postgresql", f"{settings.file}: storage: PostgreSQL"):
        from nornweave.index.postgresql.server import Server
    return Server(settings.storage.url, schema, settings.storage.connections)


def storage_schemas(settings: Settings) -> tuple[str, ...]:
    """Return the schemas of the served domains in PostgreSQL; none where domains are stored in files."""
    storage = settings.storage
    return tuple(_schema(storage, domain) for domain in settings.served_domains) if storage else ()


def _schema(storage: WorkspaceStorageSettings, domain: Domain) -> str:
    return f"{storage.schema_prefix}_{domain.value}"


def _declared(settings: Settings, domain: Domain) -> DeclaredFilters:
    return DeclaredFilters(
        tuple(each for each in settings.domains[domain].filters if each.is_declared),
        {INBOX: INBOX, **{source.id: source.type for source in settings.sources_of(domain)}},
    )


def domain_folder(settings: Settings, domain: Domain) -> Path:
    """Return the folder that holds the domain's working file, generations and status."""
    return settings.data_dir / "domains" / domain.value


def encoder_of(settings: Settings, configured: DomainSettings, *, like: str | None = None) -> Encoder:
    """Return the domain's encoder, loaded once per process.

    Args:
        like: version of the vectors that the encoder's are to join; queries, which search vectors of any precision,
            leave it out and take the fastest.
    """
    return _load(configured.embedding, machine_cache(settings.data_dir / "models"), like)


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
