"""Settings that all sources share; ``connect/connectors.py`` adds the keys of each kind.

Sources that are read over the network into a mirror share some more.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, StringConstraints, model_validator

from nornweave.config.base import EnvironmentName, FrozenSettings, Name
from nornweave.core.access import RIGHTS
from nornweave.core.errors import ConfigError
from nornweave.core.types import Domain

# A user and a password before the host.
_PASSWORD = re.compile(r"[a-z+]+://[^/@]*:[^/@]*@", re.I)


class SourceSettings(FrozenSettings):
    """One entry of ``sources:``. It holds no secrets, only the names of their environment variables."""

    domains: ClassVar[frozenset[Domain]]
    """What sources of this kind can feed."""
    place_keys: ClassVar[tuple[str, ...]] = ("path",)
    """The keys that say where the documents are; a source has one of them."""

    id: Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]+$", max_length=64)]
    domain: Domain
    type: str
    path: Path | None = None
    include: tuple[str, ...] = ()
    """Globs of files that are read beside those of the default types; of kinds without types, what ``only`` is."""
    only: tuple[str, ...] = ()
    """Globs in place of the default types."""
    exclude: tuple[str, ...] = ()
    access: tuple[Name, ...] = ()
    """Groups that may see the source's documents; empty: everybody who may ask."""

    @property
    def restricted_to(self) -> tuple[str, ...]:
        """The groups of ``access``, and ``RIGHTS`` if the source itself decides who may read."""
        return (*self.access, *([RIGHTS] if getattr(self, "rights", None) else []))

    @property
    def chosen(self) -> tuple[str, ...]:
        """The globs of files to read (``include`` and ``only``) for a kind of source that has no default file types."""
        return (*self.include, *self.only)

    @property
    def is_remote(self) -> bool:
        """Tell whether reading the source needs the network."""
        return any(key != "path" and getattr(self, key) is not None for key in self.place_keys)

    @property
    def required_path(self) -> Path:
        """The folder or file of a local source. If it has no ``path``, this raises ``ConfigError``."""
        if self.path is None:
            raise ConfigError("key 'path' is missing")
        return self.path

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        is_local = self.path is not None and "path" in self.place_keys
        if not (is_local or self.is_remote):
            raise ValueError(f"key {' or '.join(map(repr, self.place_keys))} is missing")
        if self.path is not None and self.is_remote:
            message = f"keys 'path' and {self.place_keys[-1]!r} exclude each other; a source is local or remote"
            raise ValueError(message)
        if _PASSWORD.match(getattr(self, "url", None) or ""):
            message = "key 'url' holds a password; name the environment variable that has it (its value is not shown)"
            raise ValueError(message)
        return self


class HookedSettings(SourceSettings):
    """The keys of sources that receive webhooks (``connect/hooks.py``)."""

    hook_services: ClassVar[tuple[str, ...]] = ()
    """Whose events may tell of sources of this kind."""

    webhook_secret_env: EnvironmentName | None = None
    """The environment variable with the secret that the service signs its webhooks with."""


class RightsSettings(SourceSettings):
    """The keys of sources that know who may read their documents."""

    rights: Literal["source"] | None = None
    """``source``: whom the service lets read a document, and nobody else."""

    @model_validator(mode="after")
    def _is_asked(self) -> Self:
        if self.rights and not self.is_remote:
            raise ValueError("key 'rights': an export does not say who may read; name groups in 'access' instead")
        return self


class AddressedSettings(SourceSettings):
    """The keys of sources with an address on the network."""

    url: str | None = None
    """Where it is; a site's first page, a repository, a feed."""
    public_addresses_only: bool = False
    """Ask only hosts that everybody reaches, with no login of this machine; set on what was added over HTTP."""


class MirroredSettings(SourceSettings):
    """The keys of sources that are listed repeatedly over the network."""

    lists_everything: ClassVar[bool] = False
    """Every pass is a full one, whatever ``relist_hours`` says."""

    relist_hours: float = Field(24.0, gt=0, le=8_760)
    """Everything is listed again after so many hours, to find what was deleted."""
    max_minutes: float = Field(15.0, gt=0, le=1_440)
    """One sync asks for so long; the next one goes on from there."""

    @property
    def problem(self) -> str | None:
        """Return why the source cannot be read; ``None`` if no problem is known."""
        return None

    def hours(self, passes: int = 1) -> str:
        """Return the time that a number of full passes takes, such as ``24 h``."""
        return f"{passes * self.relist_hours:g} h"


class ApiSettings(MirroredSettings):
    """The keys of an API that accepts a token."""

    usual_variable: ClassVar[str] = "token_env"
    """The environment variable that holds the token unless the source names another; for ``own_hosts`` alone."""
    own_hosts: ClassVar[tuple[str, ...]] = ()
    """The kind's own; with ``*.`` before it, those below it."""
    max_minutes: float = Field(60.0, gt=0, le=1_440)
    """One sync asks for so long; the next one goes on from there."""

    token_env: EnvironmentName | None = None
    """The environment variable that holds the token."""

    @property
    def token_name(self) -> str:
        """The name of the environment variable that holds the token."""
        return self.token_env or (self.usual_variable if self._is_own_host() else "token_env")

    def _is_own_host(self) -> bool:
        """Tell whether the host belongs to the service itself. A default token is sent to no other host."""
        try:
            host = urlsplit(str(getattr(self, "api_url", None) or getattr(self, "url", ""))).hostname or ""
        except ValueError:
            return False
        return any(host == own or (own.startswith("*.") and host.endswith(own[1:])) for own in self.own_hosts)

    @property
    def token(self) -> str | None:
        """The token from the environment, without a line end; ``None`` if there is none."""
        return (os.environ.get(self.token_name) or "").strip() or None

    @property
    def problem(self) -> str | None:
        """Return a message if the variable that ``token_env`` names is not set; ``None`` if it is set."""
        return f"token_env names {self.token_env}, which is not set" if self.token_env and not self.token else None


class AtlassianSettings(ApiSettings, HookedSettings, RightsSettings):
    """The keys of a site of Atlassian Cloud."""

    place_keys: ClassVar[tuple[str, ...]] = ("url",)
    usual_variable: ClassVar[str] = "ATLASSIAN_TOKEN"
    own_hosts: ClassVar[tuple[str, ...]] = ("*.atlassian.net", "api.atlassian.com")
    lists_everything: ClassVar[bool] = True

    url: str | None = None
    """Of the site."""
    user: Name | None = None
    """The account, an e-mail address, that the token belongs to; without one it is sent as a bearer token."""
