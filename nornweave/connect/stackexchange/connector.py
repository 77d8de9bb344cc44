"""Stack Exchange: questions and answers of a site, or files of them."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import StringConstraints

from nornweave.config.base import formed
from nornweave.connect.mirror.settings import ApiSettings
from nornweave.connect.protocol import AT_ONCE, Connector, Source
from nornweave.core.files.withheld import OwnFiles
from nornweave.core.types import Domain, SourceId


class StackExchangeSettings(ApiSettings):
    """The keys of ``type: stackexchange``."""

    domains: ClassVar[frozenset[Domain]] = frozenset({Domain.RESEARCH})
    place_keys: ClassVar[tuple[str, ...]] = ("path", "site")

    type: Literal["stackexchange"] = "stackexchange"
    site: Annotated[str, StringConstraints(pattern=r"^[\w.-]+$", max_length=100)] | None = None
    """A site of Stack Exchange, such as ``stackoverflow``: read it through its API instead of a dump."""
    tags: tuple[Annotated[str, formed(r"[^\s;,/?&]{1,100}", "one tag, such as 'python'")], ...] = ()
    """Questions with any of these."""
    api_url: str = "https://api.stackexchange.com/2.3"


def _open(settings: StackExchangeSettings, own: OwnFiles) -> Source:
    if settings.site is None:
        from nornweave.connect.files.source import FilesSource

        types, place = ("**/*.json",), (SourceId(settings.id), settings.domain, settings.required_path)
        return FilesSource(*place, types=types, only=settings.chosen, exclude=settings.exclude, own=own)
    from nornweave.connect.mirror.mirrored import MirroredSource
    from nornweave.connect.stackexchange.feed import StackExchangeFeed

    return MirroredSource(settings, StackExchangeFeed(settings), own.data_dir)


def _bound(settings: StackExchangeSettings) -> str:
    if settings.path is not None:
        return AT_ONCE
    return f"{AT_ONCE} for changes; deleted questions are found 100 a sync, and all within {settings.hours()}"


STACKEXCHANGE = Connector(StackExchangeSettings, _open, _bound)
