"""What a publisher and a replica note on their own disks, each in one small file."""

from __future__ import annotations

import json
import logging
import uuid
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter

from nornweave.config import Settings
from nornweave.core.errors import PublicationError
from nornweave.core.files.atomic_write import write_whole
from nornweave.core.types import digest

log = logging.getLogger(__name__)

R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What this publisher last copied of one domain.

    Attributes:
        url: of the store.
        number: under which the store has it; 0 before the first time.
        manifest: SHA-256 of its manifest.
        built_as: the generation's name on this disk.
        at: when, ISO 8601.
        problem: why the last try failed; ``None`` when it did not.
        lost: whether another publisher was there first.
        tried_at: when it was tried last, ISO 8601.
    """

    url: str
    number: int = 0
    manifest: str = ""
    built_as: str | None = None
    at: str | None = None
    problem: str | None = None
    lost: bool = False
    tried_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainStanding:
    """Where a replica is with one domain.

    Attributes:
        published: the generation that the store names.
        published_at: when it was published, ISO 8601.
        generation: the newest that is complete here.
        behind_since: when the replica learnt of one that it does not have yet, in seconds since 1970.
        problem: why it does not have it.
    """

    published: str | None = None
    published_at: str | None = None
    generation: str | None = None
    behind_since: float | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a replica is.

    Attributes:
        url: of the store.
        checked_at: when the store last answered for every domain, in seconds since 1970.
        problem: what is wrong with the store or the workspace document.
        restart: whether settings have changed that only a new start takes over.
        domains: by name.
    """

    url: str
    checked_at: float = 0.0
    problem: str | None = None
    restart: bool = False
    domains: dict[str, DomainStanding] = field(default_factory=dict)


_PUBLISHED, _STANDING = TypeAdapter(Published), TypeAdapter(Standing)


def publisher_id(settings: Settings) -> str:
    """Return who publishes: a random name of this data folder, made once; machines that share domains are one."""
    if settings.workers and settings.workers.leases:
        return digest(settings.workers.objects)
    file = settings.data_dir / "publication" / "publisher-id"
    try:
        known = file.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        known = ""
    except OSError as error:
        raise PublicationError(f"{file}: cannot be read: {error}") from error
    if len(known) == 32:
        return known
    file.parent.mkdir(parents=True, exist_ok=True)
    made = uuid.uuid4().hex
    write_whole(file, f"{made}\n")
    return made


def record_file(data_dir: Path, subject: str) -> Path:
    """Return where the record of a domain, or of the workspace document, is kept."""
    return data_dir / "publication" / f"{subject}.json"


def standing_file(data_dir: Path) -> Path:
    """Return where a replica's standing is kept."""
    return data_dir / "replica.json"


def read_published(file: Path) -> Published | None:
    """Return what was noted; ``None`` without a note, or when it cannot be read."""
    return _read(_PUBLISHED, file)


def read_standing(file: Path) -> Standing | None:
    """Return a replica's standing; ``None`` before the first look at the store."""
    return _read(_STANDING, file)


def write_published(file: Path, record: Published) -> None:
    """Replace the note of a publisher; it is durable.

    Raises:
        OSError: it cannot be written.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, json.dumps(asdict(record)))


def write_standing(file: Path, standing: Standing) -> None:
    """Replace the standing in one step; not flushed to disk, for it is true only now.

    Raises:
        OSError: it cannot be written.
    """
    aside = file.with_name(f".{file.name}.new")
    aside.write_text(json.dumps(asdict(standing)), encoding="utf-8")
    aside.replace(file)


def _read(kind: TypeAdapter[R], file: Path) -> R | None:
    """Return a record; keys of later versions are left out."""
    try:
        return kind.validate_json(file.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        log.warning("%s: cannot be read, it is made anew: %s", file, error)
        return None
