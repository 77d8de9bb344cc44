"""Confluence Cloud: pages and blog posts."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from nornweave.config.sources import Name
from nornweave.connect.connector import AT_ONCE, Connector
from nornweave.connect.mirror.settings import AtlassianSettings
from nornweave.connect.protocol import Source
from nornweave.core.types import Domain


class ConfluenceSettings(AtlassianSettings):
    """The keys of ``type: confluence``."""

    domains: ClassVar[frozenset[Domain]] = frozenset({Domain.DOCUMENTATION})

    type: Literal["confluence"] = "confluence"
    spaces: tuple[Name, ...] = ()
    """Keys of spaces; empty: every space that the user may read."""


def _open(settings: ConfluenceSettings, data_dir: Path) -> Source:
    from nornweave.connect.confluence.feed import ConfluenceFeed
    from nornweave.connect.mirror.mirrored import MirroredSource

    return MirroredSource(settings, ConfluenceFeed(settings), data_dir)


def _bound(settings: ConfluenceSettings) -> str:
    return (
        f"{AT_ONCE} for pages that changed, or are in the trash, archived or deleted; at most {settings.hours()} for "
        "pages that were purged, moved, restored, or are hidden from the account"
    )


CONFLUENCE = Connector(ConfluenceSettings, _open, _bound)
