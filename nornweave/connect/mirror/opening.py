"""Open a feed as a source."""

from __future__ import annotations

from pathlib import Path

from nornweave.connect.mirror.feed import Feed
from nornweave.connect.mirror.mirrored import MirroredSource
from nornweave.connect.mirror.settings import MirroredSettings
from nornweave.connect.protocol import Source
from nornweave.core.types import SourceId


def mirrored(settings: MirroredSettings, feed: Feed, data_dir: Path) -> Source:
    """Return the source that keeps a mirror of ``feed`` below ``data_dir``."""
    return MirroredSource(
        SourceId(settings.id),
        feed,
        data_dir / "remote",
        relist_s=settings.relist_hours * 3600,
        problem=settings.problem,
    )
