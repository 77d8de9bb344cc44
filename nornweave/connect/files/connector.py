"""Files in a folder, or a single file."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import ClassVar, Literal

from nornweave.config.sources import SourceSettings
from nornweave.connect.protocol import Connector, Source
from nornweave.core.files.paths import is_inside
from nornweave.core.types import Domain, SourceId


class FilesSettings(SourceSettings):
    """The keys of ``type: files``."""

    # Conversations are messages, which plain files do not have.
    domains: ClassVar[frozenset[Domain]] = frozenset({Domain.CODE, Domain.DOCUMENTATION, Domain.RESEARCH})

    type: Literal["files"] = "files"
    metadata: Path | None = None
    """A YAML or JSON file with dates, revisions and the like per path."""


def _open(settings: FilesSettings, data_dir: Path) -> Source:
    from nornweave.connect.files.source import FilesSource

    return FilesSource(
        SourceId(settings.id),
        settings.domain,
        settings.required_path,
        include=settings.include,
        exclude=(*settings.exclude, *_own_files(data_dir, settings.required_path)),
        metadata=settings.metadata,
    )


def _own_files(data_dir: Path, root: Path) -> tuple[str, ...]:
    """Return the glob of what NornWeave itself writes below the folder of a source, if that is there."""
    written, folder = os.path.realpath(data_dir), os.path.realpath(root)
    if written == folder or not is_inside(written, folder):
        return ()
    return ("/" + re.sub(r"([\\*?\[\]!# ])", r"\\\1", os.path.relpath(written, folder)) + "/",)


FILES = Connector(FilesSettings, _open)
