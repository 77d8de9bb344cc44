"""Settings → the queue that a sync and its workers share."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import quote

from nornweave.config import Settings
from nornweave.config.publish import BROKER_PASSWORD_VARIABLE, BROKER_VARIABLE, BROKERS, WorkersSettings
from nornweave.core.errors import ConfigError
from nornweave.core.types import Domain
from nornweave.index.object_store import ObjectStore
from nornweave.models.encoders.port import Encoder
from nornweave.share.workers.encoder import CeleryQueue, DistributedEncoder


def workers_of(settings: Settings) -> WorkersSettings:
    """Return the settings of workers.

    Raises:
        ConfigError: there are none.
    """
    if settings.workers is None:
        raise ConfigError(f"{settings.file}: key 'workers' is missing; it says where batches queue: docs/workers.md")
    return settings.workers


def broker_of(workers: WorkersSettings, environment: Mapping[str, str] | None = None) -> str:
    """Return the broker's address with its password, so it is never shown.

    A password that stands in a variable of its own may hold any character; in an address it has to be percent-encoded.

    Raises:
        ConfigError: neither the environment nor the settings name one.
    """
    environment = os.environ if environment is None else environment
    address = environment.get(BROKER_VARIABLE) or workers.broker
    if not address:
        raise ConfigError(f"workers.broker: is missing; name it there, or with its password in {BROKER_VARIABLE}")
    if address.partition("://")[0] not in BROKERS:
        raise ConfigError(f"{BROKER_VARIABLE}: expected an address that begins with {', '.join(BROKERS)}")
    if password := environment.get(BROKER_PASSWORD_VARIABLE):
        scheme, _, place = address.partition("://")
        user, _, host = place.rpartition("@")
        return f"{scheme}://{user.partition(':')[0]}:{quote(password, safe='')}@{host}"
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
