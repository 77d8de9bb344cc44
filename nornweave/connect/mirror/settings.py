"""The keys of sources that are read into a mirror."""

from __future__ import annotations

import os
from typing import ClassVar
from urllib.parse import urlsplit

from pydantic import Field

from nornweave.config.base import EnvironmentName, Name
from nornweave.config.sources import HookedSettings, RightsSettings, SourceSettings


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
