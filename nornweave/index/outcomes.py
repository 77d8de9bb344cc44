"""Files that syncs leave for servers: ``outcomes.json``, ``left_out.json``, ``verified.json``, ``status.json``.

``left_out.json`` has all files of each source that are not read, by reason. Outcomes are of the documents whose last
attempt stored nothing. The working file is the truth; nobody can read it while it is being written. A generation does
not say this either: a document that fails publishes nothing.

``verified.json`` says when sources last confirmed what is published. A sync that changes nothing publishes nothing, and
a generation never changes: what sources confirm lies beside them. The file holds for one generation; of documents of
another one it says nothing.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from nornweave.core.files.writing import write_whole

logger = logging.getLogger(__name__)

NAME, STATUS, LEFT_OUT = "outcomes.json", "status.json", "left_out.json"
# A repository may skip a hundred thousand files; nobody reads a list of them.
MAX_OUTCOMES = 20_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a document that was not stored.

    Attributes:
        outcome: ``failed``, ``transient`` (failed, tried again at every sync) or ``skipped``.
        looked_at: when the document was last tried, as ISO 8601 in UTC.
    """

    source_id: str
    path: str
    gate: str
    outcome: str
    reason: str
    looked_at: str


def write_outcomes(folder: Path, outcomes: Sequence[Outcome]) -> None:
    """Replace the file of outcomes if it differs. A failure is only logged, because the working file has them, too."""
    text = json.dumps([asdict(outcome) for outcome in outcomes[:MAX_OUTCOMES]], ensure_ascii=False)
    try:
        if _text(folder / NAME) != text:
            write_whole(folder / NAME, text)
    except OSError as error:
        logger.warning("%s: cannot be written: %s", folder / NAME, error)


def read_outcomes(folder: Path) -> tuple[Outcome, ...]:
    """Return the last sync's outcomes, sorted by source and path; empty if no sync ran or the file is damaged."""
    try:
        return tuple(Outcome(**stored) for stored in json.loads(_text(folder / NAME) or "[]"))
    except (OSError, ValueError, TypeError) as error:
        logger.warning("%s: cannot be read: %s", folder / NAME, error)
        return ()


def write_left_out(folder: Path, known: Mapping[str, Any]) -> None:
    """Replace the file that says which files of the sources are not read, and why.

    Args:
        known: source id → ``files``, ``read`` (how many files there are, and how many are read) and ``left_out``
            (reason → paths).
    """
    write_whole(folder / LEFT_OUT, json.dumps(known, ensure_ascii=False))


def read_left_out(folder: Path) -> dict[str, Any]:
    """Return what ``write_left_out`` wrote; empty if there is no file or it is damaged."""
    try:
        loaded = json.loads(_text(folder / LEFT_OUT) or "{}")
    except (OSError, ValueError) as error:
        logger.warning("%s: cannot be read: %s", folder / LEFT_OUT, error)
        return {}
    return loaded if isinstance(loaded, dict) else {}


def read_status(folder: Path) -> dict[str, Any]:
    """Return what the domain's last sync recorded; empty if no sync ran or the file is damaged."""
    try:
        loaded = json.loads(_text(folder / STATUS) or "{}")
    except (OSError, ValueError, RecursionError) as error:
        logger.warning("%s: cannot be read, starting it afresh: %s", folder / STATUS, error)
        return {}
    return loaded if isinstance(loaded, dict) else {}


def _text(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


VERIFIED = "verified.json"


@dataclass(frozen=True, slots=True)
class VerifiedSource:
    """When a source confirmed its documents. Moments are RFC 3339, or ``None``.

    Attributes:
        listed_at: when the source last named all of its documents.
        verified_at: when it last confirmed all documents that ``documents`` does not name.
        documents: path → when it last confirmed this document.
        bound: how soon a change at the source must reach the index. It is set only on a replica, which does not
            configure the source.
        commit: the last commit read from a repository.
    """

    listed_at: str | None = None
    verified_at: str | None = None
    documents: Mapping[str, str | None] = field(default_factory=dict)
    bound: str | None = None
    commit: str | None = None

    def of(self, path: str) -> str | None:
        """Return when a document was last confirmed; ``None`` if it never was."""
        return self.documents.get(path, self.verified_at)

    @property
    def oldest(self) -> str | None:
        """Return the time of the oldest confirmation; ``None`` if any document was never confirmed."""
        moments = [self.verified_at, *self.documents.values()]
        return None if None in moments else min(filter(None, moments))


@dataclass(frozen=True, slots=True)
class Verified:
    """When the sources of a domain confirmed the documents of one generation."""

    generation: str | None = None
    sources: Mapping[str, VerifiedSource] = field(default_factory=dict)

    def at(self, source_id: str, path: str) -> datetime | None:
        """Return when a document's source last confirmed its present version; ``None`` if it never did."""
        source = self.sources.get(source_id)
        moment = source.of(path) if source else None
        return _moment(moment) if moment else None


_moment = lru_cache(maxsize=64)(datetime.fromisoformat)  # an answer cites sixty documents of a few sources


NOTHING_VERIFIED = Verified()


def write_verified(folder: Path, verified: Verified) -> None:
    """Replace the file of confirmations. A failure is only logged. Answers then show older confirmations."""
    try:
        write_whole(folder / VERIFIED, json.dumps(asdict(verified), ensure_ascii=False))
    except OSError as error:
        logger.warning("%s: cannot be written: %s", folder / VERIFIED, error)


def read_verified(folder: Path) -> Verified:
    """Return the last sync's confirmations; empty if no sync ran."""
    try:
        stored = json.loads((folder / VERIFIED).read_text(encoding="utf-8"))
        sources = {name: VerifiedSource(**source) for name, source in stored["sources"].items()}
        return Verified(stored["generation"], sources)
    except FileNotFoundError:
        return NOTHING_VERIFIED
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        logger.warning("%s: cannot be read: %s", folder / VERIFIED, error)
        return NOTHING_VERIFIED


class VerifiedFile:
    """Reads a domain's file of confirmations, and reads it again when it changes. Thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / VERIFIED
        self._read: tuple[object, Verified] = (None, NOTHING_VERIFIED)

    def of(self, generation: str) -> Verified:
        """Return the confirmations of a generation; empty if the file has those of another generation."""
        state = self._state()
        if self._read[0] != state:
            self._read = (state, read_verified(self._folder))
        verified = self._read[1]
        return verified if verified.generation == generation else NOTHING_VERIFIED

    def _state(self) -> tuple[int, int, int] | None:
        try:
            status = self._file.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino
