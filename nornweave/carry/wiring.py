"""Build the parts that serving and syncing share from the settings: storage, locks, encoders."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from nornweave.carry.lease import DATABASE_VARIABLE, Lease, plain_address
from nornweave.carry.parts import ObjectStore
from nornweave.carry.shared_folder import SharedFolder
from nornweave.config import DomainSettings, EmbeddingSettings, Settings
from nornweave.config.workspace import INBOX_ID, WorkersSettings, WorkspaceStorageSettings
from nornweave.core.errors import ConfigError, EncoderError
from nornweave.core.installation import optional
from nornweave.core.types import Domain, SourceId
from nornweave.index.corpus import DuckDBStore
from nornweave.index.writing.build import DeclaredFilters
from nornweave.models.encoders import Encoder, load_encoder
from nornweave.models.encoders.loading import machine_cache
from nornweave.models.folders import BUNDLED


@contextmanager
def hold_domain(settings: Settings, domain: Domain, purpose: str, wait_s: float) -> Iterator[Callable[[], None]]:
    """Lock a domain and download its files if several machines share it. Otherwise do nothing.

    Yields:
        A function that raises an error if another machine has taken over the domain.
    """
    if shared := leased_folder(settings, domain):
        with shared.lock(purpose, wait_s) as lock:
            yield lock.confirm
    else:
        yield lambda: None


def pull(settings: Settings, *domains: Domain) -> None:
    """If leases are configured, download the newest publications of ``domains``, by default of all served domains."""
    for domain in domains or settings.served_domains:
        if shared := leased_folder(settings, domain):
            shared.pull()


def leased_folder(settings: Settings, domain: Domain) -> SharedFolder | None:
    """Return the shared folder of a domain; ``None`` if leases are not configured."""
    workers, folder = settings.workers, domain_folder(settings, domain)
    if workers is None or not workers.leases:
        return None
    return SharedFolder(folder, partial(_lease, workers, folder), lambda _: ObjectStore(workers.store))


def _lease(workers: WorkersSettings, folder: Path, purpose: str) -> Lease:
    name = f"{workers.objects} {folder.name}"  # several installations may share a server
    address = os.environ.get(DATABASE_VARIABLE)
    if not address:
        raise ConfigError(f"workers.leases: true needs PostgreSQL; set {DATABASE_VARIABLE} to its address")
    return Lease(plain_address(address), name, purpose=purpose, seconds=workers.lease_s)


if TYPE_CHECKING:
    from nornweave.carry.postgresql.server import Server

log = logging.getLogger(__name__)

# Every domain has an inbox, even if none is configured.
INBOX = SourceId(INBOX_ID)


def store_of(settings: Settings, domain: Domain, *, dimensions: int = 0, token_vectors: str = "") -> DuckDBStore:
    """Return the domain's storage. Only writers need ``dimensions`` and ``token_vectors``.

    Raises:
        ConfigError: the storage is in PostgreSQL, and the packages for PostgreSQL are not installed.
    """
    folder, shared = domain_folder(settings, domain), leased_folder(settings, domain)
    if settings.storage:
        server = _server(settings, _schema(settings.storage, domain))
        from nornweave.carry.postgresql.carrier import in_server

        shared = in_server(server, folder)
    return DuckDBStore(
        folder,
        settings.domains[domain].storage,
        dimensions=dimensions,
        declared=_declared(settings, domain),
        token_vectors=token_vectors,
        shared=shared,
    )


def workspace_server(settings: Settings) -> Server | None:
    """Return the connection to the workspace's own schema; ``None`` if the workspace is in files.

    Raises:
        ConfigError: the packages for PostgreSQL are not installed.
    """
    return _server(settings, workspace_schema(settings.storage)) if settings.storage else None


def database_checks(settings: Settings, environment: Mapping[str, str]) -> dict[str, Callable[[], object]]:
    """Return name → check for each PostgreSQL server in use: the one for documents and the one for runs.

    A check raises ``StoreError`` if the server cannot be used. The message names the cause and what to do.

    Raises:
        ConfigError: the packages for PostgreSQL are not installed.
    """
    checks: dict[str, Callable[[], object]] = {}
    if server := workspace_server(settings):
        checks["storage"] = partial(server.rows, "select 1")
    if address := environment.get(DATABASE_VARIABLE):
        with optional("postgresql", DATABASE_VARIABLE):
            from nornweave.carry.postgresql.server import check_answers
        checks[DATABASE_VARIABLE] = partial(check_answers, address, DATABASE_VARIABLE)
    return checks


def workspace_schema(storage: WorkspaceStorageSettings) -> str:
    """Return the name of the workspace's own schema."""
    return f"{storage.schema_prefix}_workspace"


def _server(settings: Settings, schema: str) -> Server:
    assert settings.storage
    with optional("postgresql", f"{settings.file}: storage: PostgreSQL"):
        from nornweave.carry.postgresql.server import Server
    return Server(settings.storage.url, schema, settings.storage.connections)


def storage_schemas(settings: Settings) -> tuple[str, ...]:
    """Return the schemas of the served domains in PostgreSQL; empty if the domains are in files."""
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
    """Return the domain's encoder. A process loads each encoder once.

    Args:
        like: the version of existing vectors, whose precision new vectors must have. For queries it is ``None``, which
            means the fastest precision, because queries can search vectors of any precision.
    """
    return _load(configured.embedding, machine_cache(settings.data_dir / "models"), like)


def sentence_encoder_of(settings: Settings) -> Encoder | None:
    """Return an encoder with the bundled model, whatever the domains use; ``None`` if it cannot be loaded.

    The thresholds for similar sentences were fitted to this model. The cosines of other models differ.
    """
    chosen = (each.embedding for each in settings.domains.values() if each.embedding.model in BUNDLED)
    try:
        return _load(next(chosen, EmbeddingSettings()), machine_cache(settings.data_dir / "models"), None)
    except EncoderError as error:
        log.warning("sentences are not compared: %s", error)
        return None


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
