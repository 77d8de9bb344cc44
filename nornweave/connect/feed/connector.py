"""RSS and Atom feeds: a document for each entry."""

from __future__ import annotations

from typing import ClassVar, Literal

from nornweave.config.sources import AddressedSettings
from nornweave.connect.mirror.settings import MirroredSettings
from nornweave.connect.protocol import AT_ONCE, Connector, Source
from nornweave.core.files.withheld import OwnFiles
from nornweave.core.types import Domain


class FeedSettings(AddressedSettings, MirroredSettings):
    """The keys of ``type: feed``."""

    domains: ClassVar[frozenset[Domain]] = frozenset({Domain.DOCUMENTATION, Domain.RESEARCH})
    place_keys: ClassVar[tuple[str, ...]] = ("path", "url")

    type: Literal["feed"] = "feed"


def _open(settings: FeedSettings, own: OwnFiles) -> Source:
    from nornweave.connect.feed.feed import SyndicationFeed
    from nornweave.connect.mirror.mirrored import MirroredSource

    return MirroredSource(settings, SyndicationFeed(settings), own.data_dir)


FEED = Connector(FeedSettings, _open, lambda _: f"{AT_ONCE} for entries that the feed lists; the others stay")
