"""The pages of a documentation site."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from nornweave.config.sources import AddressedSettings
from nornweave.connect.mirror.settings import MirroredSettings
from nornweave.connect.protocol import AT_ONCE, Connector, Source
from nornweave.core.files.withheld import OwnFiles
from nornweave.core.types import Domain


class WebSettings(AddressedSettings, MirroredSettings):
    """The keys of ``type: web``."""

    domains: ClassVar[frozenset[Domain]] = frozenset({Domain.DOCUMENTATION, Domain.RESEARCH})
    place_keys: ClassVar[tuple[str, ...]] = ("url",)

    type: Literal["web"] = "web"
    prefix: str | None = None
    """Only pages whose address starts so; the folder of ``url`` unless given."""
    max_pages: int = Field(5_000, ge=1, le=200_000)
    max_requests: int = Field(500, ge=1, le=1_000_000)
    """One sync asks so often without getting a page that is new or as it was; the next one goes on from there."""


def _open(settings: WebSettings, own: OwnFiles) -> Source:
    from nornweave.connect.mirror.mirrored import MirroredSource
    from nornweave.connect.web.feed import WebFeed

    return MirroredSource(settings, WebFeed(settings), own.data_dir)


def _bound(settings: WebSettings) -> str:
    return (
        f"{AT_ONCE} for what the sitemap names anew, dates anew or names no longer; other pages are asked for again, "
        f"200 a sync, and all within {settings.hours()}"
    )


WEB = Connector(WebSettings, _open, _bound)
