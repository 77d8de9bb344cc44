"""Settings of workers on other machines: what they share, and how long a sync waits for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from nornweave.config.base import FrozenSettings
from nornweave.config.publish import ObjectStoreSettings, StoreAddress

BROKER_VARIABLE = "NORNWEAVE_BROKER_URL"
BROKER_PASSWORD_VARIABLE = "NORNWEAVE_BROKER_PASSWORD"  # noqa: S105 - a name
BROKERS = ("redis", "rediss", "amqp", "amqps")


def checked_broker(text: str) -> str:
    """Return the address of a broker, without a password.

    Raises:
        ValueError: it is none; the message does not repeat it, for it may hold a password.
    """
    parts = urlsplit(text)
    if parts.scheme not in BROKERS or not (parts.netloc or parts.path.strip("/")):
        example = "redis://broker.example.org:6379/0"
        raise ValueError(f"expected an address that begins with {', '.join(BROKERS)}, such as {example}")
    if parts.password:
        raise ValueError("holds a password; leave the address out here and set it in the environment")
    return text


class WorkersSettings(FrozenSettings):
    """Workers that encode, and run domains, on other machines."""

    broker: Annotated[str, AfterValidator(checked_broker)] | None = None
    """Where batches queue: Redis or RabbitMQ. The environment's ``NORNWEAVE_BROKER_URL`` comes first."""
    objects: StoreAddress
    """Folder on object storage that all machines reach; its keys come from the environment."""
    batch: int = Field(64, ge=1, le=1_024)
    """Texts of one task: a second or two of work on one core."""
    patience_s: float = Field(60.0, ge=0.1, le=3_600)
    """A sync that gets no batch for so many seconds encodes itself."""
    leases: bool = False
    """Take a domain by a lease in PostgreSQL, and carry its files through ``objects``: runs on several machines."""
    runs: Literal["here", "celery", "kubernetes"] = "here"
    """Where the runs that Dagster's schedule, sensors and UI start are executed; elsewhere needs leases."""
    kubernetes: Mapping[str, Any] = Field(default_factory=dict)
    """What the job of a run looks like: the configuration of dagster-k8s' ``K8sRunLauncher``."""
    lease_s: float = Field(30.0, ge=1, le=3_600)
    """A worker that has not renewed its lease for so many seconds has lost the domain."""

    @model_validator(mode="after")
    def _leases_for_runs(self) -> WorkersSettings:
        if self.runs != "here" and not self.leases:
            raise ValueError("runs on other machines need leases: true")
        if bool(self.kubernetes) != (self.runs == "kubernetes"):
            raise ValueError("runs: kubernetes and kubernetes: {job_image: …} belong together")
        return self

    @property
    def store(self) -> ObjectStoreSettings:
        """How ``objects`` is reached: as its address and the environment say."""
        return ObjectStoreSettings(url=self.objects)
