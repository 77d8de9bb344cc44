"""Repositories, on this machine or elsewhere."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from nornweave.config.base import EnvironmentName
from nornweave.config.sources import AddressedSettings
from nornweave.connect.protocol import Connector, Source
from nornweave.core.errors import ConfigError
from nornweave.core.files.withheld import OwnFiles
from nornweave.core.types import Domain, SourceId


class GitSettings(AddressedSettings):
    """The keys of ``type: git``."""

    domains: ClassVar[frozenset[Domain]] = frozenset({Domain.CODE, Domain.DOCUMENTATION, Domain.RESEARCH})
    place_keys: ClassVar[tuple[str, ...]] = ("path", "url")

    type: Literal["git"] = "git"
    ref: str = "HEAD"
    """The branch, tag or commit that is read."""
    web_url: str | None = None
    """Where people read a file in a browser, with ``{commit}`` and ``{path}``; of well-known hosts it is known."""
    credentials_env: EnvironmentName | None = None
    """The environment variable with a password or token for ``url``."""
    max_megabytes: int = Field(2_000, ge=1, le=1_000_000)
    """The largest clone."""

    @model_validator(mode="after")
    def _has_an_address(self) -> Self:
        from nornweave.connect.git.address import parse_address

        try:
            if self.url is not None:
                parse_address(self.url)
        except ConfigError as error:
            raise ValueError(str(error)) from error
        return self


def _open(settings: GitSettings, own: OwnFiles) -> Source:
    if settings.url is not None:
        from nornweave.connect.git.remote import RemoteGitSource

        return RemoteGitSource(settings, own.data_dir)
    from nornweave.connect.git.source import GitSource

    return GitSource(
        SourceId(settings.id),
        settings.domain,
        settings.required_path,
        include=settings.include,
        only=settings.only,
        exclude=settings.exclude,
        ref=settings.ref,
        own=own,
        web_url=settings.web_url,
    )


GIT = Connector(GitSettings, _open)
