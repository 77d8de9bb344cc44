"""Files in a folder, or a single file."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from nornweave.config.sources import SourceSettings
from nornweave.connect.protocol import Connector, Source
from nornweave.core.files.withheld import OwnFiles
from nornweave.core.types import Domain, SourceId


class FilesSettings(SourceSettings):
    """The keys of ``type: files``."""

    # Conversations are messages, which plain files do not have.
    domains: ClassVar[frozenset[Domain]] = frozenset({Domain.CODE, Domain.DOCUMENTATION, Domain.RESEARCH})

    type: Literal["files"] = "files"
    metadata: Path | None = None
    """A YAML or JSON file with dates, revisions and the like per path."""


def _open(settings: FilesSettings, own: OwnFiles) -> Source:
    from nornweave.connect.files.source import FilesSource

    return FilesSource(
        SourceId(settings.id),
        settings.domain,
        settings.required_path,
        include=settings.include,
        only=settings.only,
        exclude=settings.exclude,
        metadata=settings.metadata,
        own=own,
    )


FILES = Connector(FilesSettings, _open)
