"""GitHub: issues, pull requests and discussions of a repository, or a dump of them."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from nornweave.config.base import formed
from nornweave.connect.mirror.settings import ApiSettings
from nornweave.connect.protocol import AT_ONCE, Connector, Source
from nornweave.core.files.withheld import OwnFiles
from nornweave.core.types import Domain


class GithubSettings(ApiSettings):
    """The keys of ``type: github``."""

    domains: ClassVar[frozenset[Domain]] = frozenset({Domain.CONVERSATIONS})
    place_keys: ClassVar[tuple[str, ...]] = ("path", "repository")
    usual_variable: ClassVar[str] = "GITHUB_TOKEN"
    own_hosts: ClassVar[tuple[str, ...]] = ("api.github.com",)

    type: Literal["github"] = "github"
    repository: Annotated[str, formed(r"[\w-][\w.-]*/[\w.-]*[\w-][\w.-]*", "'owner/name'")] | None = None
    """``owner/name``: read GitHub through its API instead of a dump."""
    api_url: str = "https://api.github.com"
    """Of an enterprise server; the public service unless given."""


def _open(settings: GithubSettings, own: OwnFiles) -> Source:
    if settings.repository is None:
        from nornweave.connect.github.export import GithubDumpSource

        return GithubDumpSource(settings, own)
    from nornweave.connect.github.feed import GithubFeed
    from nornweave.connect.mirror.mirrored import MirroredSource

    return MirroredSource(settings, GithubFeed(settings), own.data_dir)


def _bound(settings: GithubSettings) -> str:
    if settings.repository is None:
        return AT_ONCE
    return (
        f"{AT_ONCE} for changes; deleted and transferred issues are found 100 a sync where there is a token, and all "
        f"that was deleted within {settings.hours()}"
    )


GITHUB = Connector(GithubSettings, _open, _bound)
