"""What the process that watches folders tells the sensors: ``watched.json`` in ``DAGSTER_HOME``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from nornweave.config import Settings
from nornweave.core.files.atomic_write import write_whole
from orchestration.instance import home_of
from orchestration.leases import is_gone

NAME = "watched.json"


@dataclass(frozen=True, slots=True)
class Watched:
    """What is watched.

    Attributes:
        process: the mark of the process that watches.
        sources: by ``domain/source``, what changes when the source has to be listed.
        ledger: changes when something was published that the ledger has not seen; empty at first.
    """

    process: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)
    ledger: str = ""


def write_watched(settings: Settings, watched: Watched) -> None:
    """Replace the file."""
    write_whole(home_of(settings) / NAME, json.dumps(asdict(watched)))


def read_watched(settings: Settings) -> Watched:
    """Return what the process that watches said last; nothing if there is none, or it is gone."""
    try:
        watched = Watched(**json.loads((home_of(settings) / NAME).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return Watched()
    return Watched() if is_gone(watched.process) else watched
