"""What the syncs of a domain left for whoever serves: ``outcomes.json``, ``left_out.json``, reports in ``status.json``.

``left_out.json`` has all files of each source that are not read, by reason. Outcomes are of the documents whose last
attempt stored nothing.
The working file is the truth; nobody can read it while it is being written. A generation does not say this either: a
document that fails publishes nothing.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nornweave.core.files.atomic_write import write_whole

logger = logging.getLogger(__name__)

NAME, STATUS, LEFT_OUT = "outcomes.json", "status.json", "left_out.json"
# A repository may skip a hundred thousand files; nobody reads a list of them.
MAX_OUTCOMES = 20_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a document that was looked at and not stored.

    Attributes:
        outcome: ``failed``, ``transient`` (failed, tried again at every sync) or ``skipped``.
        looked_at: ISO 8601, UTC.
    """

    source_id: str
    path: str
    gate: str
    outcome: str
    reason: str
    looked_at: str


def write_outcomes(folder: Path, outcomes: Sequence[Outcome]) -> None:
    """Replace the file if it says something else; a failure is logged, for the working file still knows."""
    text = json.dumps([asdict(outcome) for outcome in outcomes[:MAX_OUTCOMES]], ensure_ascii=False)
    try:
        if _text(folder / NAME) != text:
            write_whole(folder / NAME, text)
    except OSError as error:
        logger.warning("%s: cannot be written: %s", folder / NAME, error)


def read_outcomes(folder: Path) -> tuple[Outcome, ...]:
    """Return what the last sync left, by source and path; empty where none ran."""
    try:
        return tuple(Outcome(**stored) for stored in json.loads(_text(folder / NAME) or "[]"))
    except (OSError, ValueError, TypeError) as error:
        logger.warning("%s: cannot be read: %s", folder / NAME, error)
        return ()


def write_left_out(folder: Path, known: Mapping[str, Any]) -> None:
    """Replace what is left out, by source: counts of ``files`` and ``read``, and ``left_out``: paths by reason."""
    write_whole(folder / LEFT_OUT, json.dumps(known, ensure_ascii=False))


def read_left_out(folder: Path) -> dict[str, Any]:
    """Return what ``write_left_out`` wrote; empty where no sync wrote it yet."""
    try:
        loaded = json.loads(_text(folder / LEFT_OUT) or "{}")
    except (OSError, ValueError) as error:
        logger.warning("%s: cannot be read: %s", folder / LEFT_OUT, error)
        return {}
    return loaded if isinstance(loaded, dict) else {}


def read_status(folder: Path) -> dict[str, Any]:
    """Return the domain's status, empty when it never ran."""
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
