"""Settings → the leases of domains."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from nornweave.config import Settings
from nornweave.config.publish import WorkersSettings
from nornweave.core.errors import ConfigError
from nornweave.core.files.lock import Lock
from nornweave.core.types import Domain
from nornweave.index.leases.domain_lease import DomainLease, FilesElsewhere, pull_generations
from nornweave.index.leases.lease import DATABASE_VARIABLE, Lease, plain_address
from nornweave.index.object_store import ObjectStore


def lease_lock(workers: WorkersSettings, folder: Path, purpose: str, wait_s: float) -> Lock:
    """Return the writer's lock of the domain in ``folder``, as several machines share it.

    Raises:
        ConfigError: the environment names no PostgreSQL server.
    """
    objects = ObjectStore(workers.store)
    return DomainLease(_lease(workers, folder, purpose), objects, folder, purpose=purpose, wait_s=wait_s)


def files_elsewhere(workers: WorkersSettings, folder: Path) -> FilesElsewhere:
    """Return where the files of the domain in ``folder`` lie that are not on this machine."""
    return FilesElsewhere(lambda: _lease(workers, folder, "read"), lambda: ObjectStore(workers.store), folder)


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


def _lease(workers: WorkersSettings, folder: Path, purpose: str) -> Lease:
    name = f"{workers.objects} {folder.name}"  # several installations may share a server
    address = os.environ.get(DATABASE_VARIABLE)
    if not address:
        raise ConfigError(f"workers.leases: true needs PostgreSQL; set {DATABASE_VARIABLE} to its address")
    return Lease(plain_address(address), name, purpose=purpose, seconds=workers.lease_s)
