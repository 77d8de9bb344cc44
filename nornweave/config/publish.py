"""Settings of object storage, and of the publication of generations to it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints

from nornweave.config.base import FrozenSettings
from nornweave.core.signatures import public_key

SCHEMES = ("s3", "gs", "az", "file")


def checked_store(text: str) -> str:
    """Return the address of an object store without a slash at its end.

    Raises:
        ValueError: it is of another kind, or holds a password, a query or a relative path.
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


Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2_000)]
StoreAddress = Annotated[Text, AfterValidator(checked_store)]


class ObjectStoreSettings(FrozenSettings):
    """A bucket or a folder; credentials come from the environment alone."""

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
    """Where published generations are copied to."""

    keep_generations: int = Field(3, ge=1, le=100)
    """How many generations of a domain stay in the store."""
    public_keys: tuple[PublicKey, ...] = ()
    """Of a replica: what the store says counts only if one of these keys has signed it; any counts without."""
    grace_hours: float = Field(24.0, ge=0, le=8_760)
    """What no kept generation needs is removed once it is so old; a reader that is slower starts over."""
