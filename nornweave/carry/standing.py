"""The records that a publisher and a replica keep on their own disks, and a replica's state by them."""

from __future__ import annotations

import json
import logging
import time
import uuid
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter

from nornweave.config import Settings
from nornweave.core.errors import PublicationError
from nornweave.core.files.writing import write_whole
from nornweave.core.types import Domain, JsonValue, digest

log = logging.getLogger(__name__)
R = TypeVar("R")
# After this many seconds without an answer from its store, a replica says so in its notices.
SILENT_S = 30.0
_READ_AGAIN_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """The state of a replica for one domain.

    Attributes:
        url: the address of the store.
        published: the generation that the store names; ``None`` if it is unknown.
        published_at: when this generation was published, as ISO 8601.
        behind_s: seconds since the replica learnt of this generation without having it, or since the store last
            answered; 0 if the replica has it.
        checked_s: seconds since the store last answered and had every object that it names; ``None`` if it never did.
        problems: what is wrong, for people.
    """

    url: str
    published: str | None
    published_at: str | None
    behind_s: float
    checked_s: float | None
    problems: tuple[str, ...]

    def as_json(self) -> dict[str, JsonValue]:
        """Return the state for ``/health``."""
        return {
            "url": self.url,
            "published": self.published,
            "published_at": self.published_at,
            "behind_s": round(self.behind_s, 1),
            "checked_s": None if self.checked_s is None else round(self.checked_s, 1),
        }


class StandingBook:
    """Reads a replica's record, and reads it again when it may have changed. Thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self._url = settings.replica_of
        self._file = standing_file(settings.data_dir)
        self._read: tuple[float, Standing | None] = (float("-inf"), None)

    def of(self, domain: Domain) -> Following | None:
        """Return the replica's state for a domain; ``None`` if the workspace is not a replica."""
        if self._url is None:
            return None
        standing = self._standing()
        if standing is None:
            return Following(
                url=self._url, published=None, published_at=None, behind_s=0.0, checked_s=None,
                problems=("the store has not been looked at yet",),
            )  # fmt: skip
        now, noted = time.time(), standing.domains.get(domain.value, DomainStanding())
        checked_s = max(0.0, now - standing.checked_at) if standing.checked_at else None
        return Following(
            url=self._url,
            published=noted.published,
            published_at=noted.published_at,
            behind_s=max(
                now - noted.behind_since if noted.behind_since else 0.0,
                checked_s if checked_s is not None and checked_s > SILENT_S else 0.0,
            ),
            checked_s=checked_s,
            problems=tuple(_problems(standing, noted, checked_s)),
        )

    def _standing(self) -> Standing | None:
        read_at, standing = self._read
        if time.monotonic() - read_at > _READ_AGAIN_S:
            standing = read_standing(self._file)
            self._read = (time.monotonic(), standing)
        return standing


def _problems(standing: Standing, noted: DomainStanding, checked_s: float | None) -> list[str]:
    problems = [one for one in (standing.problem, noted.problem) if one]
    if checked_s is None or checked_s > SILENT_S:
        since = "ever" if checked_s is None else f"for {checked_s:.0f} s"
        problems.append(f"the store has not answered as it should {since}; what was brought before answers")
    return problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A publisher's record of its last copy of one domain.

    Attributes:
        url: the address of the store.
        number: the generation's number in the store; 0 before the first copy.
        commit: the name of the commit in the store.
        built_as: the generation's name on this disk.
        at: when it was copied, as ISO 8601.
        problem: why the last try failed; ``None`` if it succeeded.
        lost: whether the last try failed because another publisher has published the domain.
        tried_at: when the last try was, as ISO 8601.
    """

    url: str
    number: int = 0
    commit: str = ""
    built_as: str | None = None
    at: str | None = None
    problem: str | None = None
    lost: bool = False
    tried_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainStanding:
    """A replica's record of one domain.

    Attributes:
        published: the generation that the store names.
        published_at: when this generation was published, as ISO 8601.
        generation: the newest generation that is complete on the replica.
        behind_since: when the replica learnt of a generation that it lacks, in seconds since 1970; ``None`` if it lacks
            none.
        problem: why the replica lacks it.
    """

    published: str | None = None
    published_at: str | None = None
    generation: str | None = None
    behind_since: float | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A replica's record.

    Attributes:
        url: the address of the store.
        checked_at: when the store last answered for every domain, in seconds since 1970.
        problem: what is wrong with the store or the workspace document.
        domains: name of a domain → its record.
    """

    url: str
    checked_at: float = 0.0
    problem: str | None = None
    domains: dict[str, DomainStanding] = field(default_factory=dict)


_PUBLISHED, _STANDING = TypeAdapter(Published), TypeAdapter(Standing)


def publisher_id(settings: Settings) -> str:
    """Return the id of this data folder as a publisher. Machines that share domains have the same id."""
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
    """Return the path of a publisher's record. ``subject`` is a domain, or the name of the workspace document."""
    return data_dir / "publication" / f"{subject}.json"


def standing_file(data_dir: Path) -> Path:
    """Return the path of a replica's record."""
    return data_dir / "replica.json"


def read_published(file: Path) -> Published | None:
    """Return a publisher's record; ``None`` if there is none or it cannot be read."""
    return _read(_PUBLISHED, file)


def read_standing(file: Path) -> Standing | None:
    """Return a replica's record; ``None`` before its first poll."""
    return _read(_STANDING, file)


def write_published(file: Path, record: Published) -> None:
    """Replace a publisher's record durably.

    Raises:
        PublicationError: the record cannot be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, json.dumps(asdict(record)))
    except OSError as error:
        raise PublicationError(f"{file}: cannot be written: {error}") from error


def write_standing(file: Path, standing: Standing) -> None:
    """Replace a replica's record atomically but not durably, because it need not survive a crash.

    Raises:
        OSError: the record cannot be written.
    """
    aside = file.with_name(f".{file.name}.new")
    aside.write_text(json.dumps(asdict(standing)), encoding="utf-8")
    aside.replace(file)


def _read(kind: TypeAdapter[R], file: Path) -> R | None:
    """Return a record; ``None`` if it is missing or damaged. Unknown keys are ignored."""
    try:
        return kind.validate_json(file.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        log.warning("%s: cannot be read, it is made anew: %s", file, error)
        return None
