"""Settings of object storage: where generations are published, and the workers that share it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from nornweave.config.base import FrozenSettings, Text
from nornweave.core.signatures import public_key

SCHEMES = ("s3", "gs", "az", "file")


def checked_store(text: str) -> str:
    """Return the address of an object store without a slash at its end.

    Raises:
        ValueError: the address is of another kind, or holds a password, a query or a relative path.
    """
    parts = urlsplit(text)
    if parts.scheme not in SCHEMES:
        raise ValueError(f"expected an address of {', '.join(SCHEMES)}, such as s3://bucket/prefix")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("holds more than bucket and prefix; credentials come from the environment alone")
    if parts.scheme == "file":
        if parts.netloc or not Path(parts.path).is_absolute() or ".." in Path(parts.path).parts:
            raise ValueError("expected an absolute path, such as file:///srv/nornweave")
    elif not parts.hostname:
        raise ValueError("names no bucket; expected s3://bucket/prefix")
    return text.rstrip("/")


def _checked_endpoint(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username or parts.password:
        raise ValueError("expected an address without a password, such as https://minio.example.org:9000")
    return text


StoreAddress = Annotated[Text, AfterValidator(checked_store)]


class ObjectStoreSettings(FrozenSettings):
    """A bucket or a folder. Credentials come only from the environment."""

    url: StoreAddress
    """``s3://``, ``gs://``, ``az://`` with bucket and prefix, or ``file://`` with a folder."""
    endpoint: Annotated[Text, AfterValidator(_checked_endpoint)] | None = None
    """Of a server that speaks S3; Amazon's unless given."""
    region: Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]{1,40}$")] | None = None
    allow_http: bool = False
    """Whether the endpoint may be reached without encryption."""


def _checked_key(text: str) -> str:
    public_key(text)
    return text


PublicKey = Annotated[
    str, StringConstraints(strip_whitespace=True, pattern=r"^ed25519:[A-Za-z0-9+/=]{44}$"), AfterValidator(_checked_key)
]


class PublishSettings(ObjectStoreSettings):
    """The object store for published generations."""

    keep_generations: int = Field(3, ge=1, le=100)
    """How many generations of a domain stay in the store."""
    public_keys: tuple[PublicKey, ...] = ()
    """Of a replica: what the store says counts only if one of these keys has signed it; any counts without."""
    grace_hours: float = Field(24.0, ge=0, le=8_760)
    """What no kept generation needs is removed once it is so old; a reader that is slower starts over."""


BROKER_VARIABLE = "NORNWEAVE_BROKER_URL"
BROKER_PASSWORD_VARIABLE = "NORNWEAVE_BROKER_PASSWORD"  # noqa: S105 - a name
BROKERS = ("redis", "rediss", "amqp", "amqps")


def checked_broker(text: str) -> str:
    """Return the address of a broker. Refuse an address that holds a password.

    Raises:
        ValueError: the text is not a broker's address. The message does not repeat it, as it may hold a password.
    """
    parts = urlsplit(text)
    if parts.scheme not in BROKERS or not (parts.netloc or parts.path.strip("/")):
        example = "redis://broker.example.org:6379/0"
        raise ValueError(f"expected an address that begins with {', '.join(BROKERS)}, such as {example}")
    if parts.password:
        raise ValueError("holds a password; leave the address out here and set it in the environment")
    return text


class RunLauncherSettings(FrozenSettings):
    """Dagster's run launcher: ``run_launcher`` of its ``dagster.yaml``."""

    module: Text
    class_: Annotated[Text, Field(alias="class")]
    config: Mapping[str, Any] = Field(default_factory=dict)


class WorkersSettings(FrozenSettings):
    """Workers on other machines that encode texts and sync domains."""

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
    run_launcher: RunLauncherSettings | None = None
    """Executes the runs that Dagster's schedule, sensors and UI start, in place of Dagster's machine; needs leases."""
    lease_s: float = Field(30.0, ge=1, le=3_600)
    """A worker that has not renewed its lease for so many seconds has lost the domain."""

    @model_validator(mode="after")
    def _leases_for_runs(self) -> WorkersSettings:
        if self.run_launcher and not self.leases:
            raise ValueError("runs on other machines need leases: true")
        return self

    @property
    def store(self) -> ObjectStoreSettings:
        """The settings of the object store ``objects``."""
        return ObjectStoreSettings(url=self.objects)
