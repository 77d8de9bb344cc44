"""Settings → what a sync and a worker share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from nornweave.cluster.domain_lease import DomainLease, pull_generations
from nornweave.cluster.encoder import CeleryQueue, DistributedEncoder
from nornweave.cluster.lease import Lease
from nornweave.errors import ConfigError
from nornweave.models.encoders.port import Encoder
from nornweave.object_store import ObjectStore
from nornweave.settings import Settings
from nornweave.settings.workers import BROKER_VARIABLE, BROKERS, WorkersSettings
from nornweave.store.lock import Lock
from nornweave.types import Domain

DATABASE_VARIABLE = "NORNWEAVE_DAGSTER_POSTGRES_URL"


def workers_of(settings: Settings) -> WorkersSettings:
    """Return the settings of workers.

    Raises:
        ConfigError: there are none.
    """
    if settings.workers is None:
        raise ConfigError(f"{settings.file}: key 'workers' is missing; it says where batches queue: docs/workers.md")
    return settings.workers


def broker_of(workers: WorkersSettings, environment: Mapping[str, str] | None = None) -> str:
    """Return the broker's address; it may hold a password, so it is never shown.

    Raises:
        ConfigError: neither the environment nor the settings name one.
    """
    environment = os.environ if environment is None else environment
    address = environment.get(BROKER_VARIABLE) or workers.broker
    if not address:
        raise ConfigError(f"workers.broker: is missing; name it there, or with its password in {BROKER_VARIABLE}")
    if address.partition("://")[0] not in BROKERS:
        raise ConfigError(f"{BROKER_VARIABLE}: expected an address that begins with {', '.join(BROKERS)}")
    return address


def distributed(settings: Settings, domain: Domain, local: Encoder) -> Encoder:
    """Return the domain's encoder with workers behind it, if the settings name a broker."""
    workers = settings.workers
    if workers is None or not (workers.broker or os.environ.get(BROKER_VARIABLE)):
        return local
    return DistributedEncoder(
        local=local,
        domain=domain.value,
        queue=CeleryQueue(broker_of(workers)),
        objects=ObjectStore(workers.store),
        batch=workers.batch,
        patience_s=workers.patience_s,
    )


def lease_lock(workers: WorkersSettings, folder: Path, purpose: str, wait_s: float) -> Lock:
    """Return the writer's lock of the domain in ``folder``, as several machines share it.

    Raises:
        ConfigError: the environment names no PostgreSQL server.
    """
    objects = ObjectStore(workers.store)
    return DomainLease(_lease(workers, folder, purpose), objects, folder, purpose=purpose, wait_s=wait_s)


@contextmanager
def held_domain(settings: Settings, folder: Path, purpose: str, wait_s: float) -> Iterator[Callable[[], None]]:
    """Hold a domain that several machines share, with its files as they are now; one machine's needs no holding.

    Yields:
        What fails once another machine has taken over.
    """
    workers = settings.workers
    if workers is None or not workers.leases:
        yield lambda: None
        return
    with lease_lock(workers, folder, purpose, wait_s) as lock:
        yield lock.confirm


def pull(settings: Settings, *domains: Domain) -> None:
    """Bring what other machines have published of these domains, or of all, to this one, if leases are configured."""
    workers = settings.workers
    if workers is None or not workers.leases:
        return
    for domain in domains or settings.served_domains:
        folder = settings.data_dir / "domains" / domain.value
        pull_generations(_lease(workers, folder, "pull"), ObjectStore(workers.store), folder)


def run_lease(workers: WorkersSettings, run_id: str) -> Lease:
    """Return the lease that shows that the process of a Dagster run lives."""
    return Lease(_database(os.environ), f"run {run_id}", purpose="run", seconds=workers.lease_s)


def _lease(workers: WorkersSettings, folder: Path, purpose: str) -> Lease:
    name = f"{workers.objects} {folder.name}"  # several installations may share a server
    return Lease(_database(os.environ), name, purpose=purpose, seconds=workers.lease_s)


def _database(environment: Mapping[str, str]) -> str:
    address = environment.get(DATABASE_VARIABLE)
    if not address:
        raise ConfigError(f"workers.leases: true needs PostgreSQL; set {DATABASE_VARIABLE} to its address")
    _, _, rest = address.partition("://")
    return f"postgresql://{rest}"
