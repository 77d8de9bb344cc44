"""Confluence Cloud: pages and blog posts."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from nornweave.config.base import formed
from nornweave.connect.mirror.settings import AtlassianSettings
from nornweave.connect.protocol import Connector, Source
from nornweave.core.files.withheld import OwnFiles
from nornweave.core.types import Domain

SPACE_KEY = r"~?[A-Za-z0-9][\w:.-]{0,254}"
SpaceKey = Annotated[str, formed(SPACE_KEY, "the key of a space, such as 'ENG'")]


class ConfluenceSettings(AtlassianSettings):
    """The keys of ``type: confluence``."""

    domains: ClassVar[frozenset[Domain]] = frozenset({Domain.DOCUMENTATION})

    type: Literal["confluence"] = "confluence"
    spaces: Annotated[tuple[SpaceKey, ...], Field(max_length=100)] = ()
    """Keys of spaces; empty: every space that the user may read."""


def _open(settings: ConfluenceSettings, own: OwnFiles) -> Source:
    from nornweave.connect.confluence.feed import ConfluenceFeed
    from nornweave.connect.mirror.mirrored import MirroredSource

    return MirroredSource(settings, ConfluenceFeed(settings), own.data_dir)


CONFLUENCE = Connector(ConfluenceSettings, _open)
