"""Alarms of a domain, remembered between runs: one event when an alarm begins, one when it is over.

An alarm is a condition: a sync that failed, a source that cannot be listed, removals that wait for a person, a document
that cannot be read, a candidate that was refused, a measure below its floor. It is told once when it begins, not at
every run, and ``recovered`` once when it is gone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from nornweave.core.files.writing import write_whole
from nornweave.core.types import Domain
from nornweave.ingest.records import SyncReport

MAX_ITEMS = 100
"""Alarms that one event lists; ``count`` counts all."""
MAX_TEXT = 500
JUDGED_GONE = "a judged document was removed; measures leave its judgments out: judge others, or bring it back"
CONFIRM = "`nornweave sync --confirm-deletes` removes them"


class AlarmKind(StrEnum):
    """The kinds of alarms; also the names of their events."""

    SYNC_FAILED = "sync_failed"
    SOURCE_UNAVAILABLE = "source_unavailable"
    DELETIONS_HELD = "deletions_held"
    JUDGED_DOCUMENT_GONE = "judged_document_gone"
    DOCUMENT_FAILED = "document_failed"
    CANDIDATE_REFUSED = "candidate_refused"
    QUALITY_DROPPED = "quality_dropped"


OF_A_SYNC = frozenset(AlarmKind) - {AlarmKind.QUALITY_DROPPED}
"""What a sync that ends well has looked at."""
OF_PATHS = OF_A_SYNC - {AlarmKind.SOURCE_UNAVAILABLE, AlarmKind.DELETIONS_HELD}
"""The same of one that compared only the paths that it was told of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """One problem.

    Attributes:
        subject: a source, ``source/path`` or a judged set. It identifies the alarm among the alarms of its kind.
        text: what is wrong and, if known, what to do.
        lasts: whether the alarm is stored until the problem is over. ``False`` for a drop between two measurements,
            which is only announced.
    """

    kind: AlarmKind
    subject: str
    text: str
    lasts: bool = True


def alarms_of(report: SyncReport) -> tuple[Alarm, ...]:
    """Return the alarms after a sync that ended well."""
    failed = (
        Alarm(kind=AlarmKind.DOCUMENT_FAILED, subject=f"{failure.source_id}/{failure.path}", text=failure.reason)
        for failure in report.failed
    )
    unavailable = (
        Alarm(kind=AlarmKind.SOURCE_UNAVAILABLE, subject=source, text=reason)
        for source, reason in report.unavailable.items()
    )
    held = (
        Alarm(kind=AlarmKind.DELETIONS_HELD, subject=held.source_id, text=f"{held.reason}; {CONFIRM}")
        for held in report.held
    )
    judged = (
        Alarm(kind=AlarmKind.JUDGED_DOCUMENT_GONE, subject=f"{name}: {path}", text=JUDGED_GONE, lasts=False)
        for name, path in report.judged_gone
    )
    wrong = (Alarm(kind=AlarmKind.JUDGED_DOCUMENT_GONE, subject=text, text=text) for text in report.judged_wrong)
    worse = (
        Alarm(kind=AlarmKind.QUALITY_DROPPED, subject=text, text=text, lasts=False) for text in report.quality_warnings
    )
    return (*failed, *unavailable, *held, *judged, *wrong, *worse)


class AlarmBook:
    """The stored alarms of one domain, in one file that the domain's lock protects.

    Args:
        domain: the domain of the alarms; ``None`` for answers over all domains.
    """

    def __init__(self, file: Path, domain: Domain | None) -> None:
        self._file = file
        self._domain = domain

    def update(
        self,
        alarms: Sequence[Alarm],
        looked_at: Collection[AlarmKind],
        *,
        send: Callable[[dict[str, Any]], None],
        run_id: str,
        at: datetime,
    ) -> None:
        """Send the events of new and ended alarms, then store the current alarms.

        If the process is killed between the two steps, the events are sent twice.

        Args:
            looked_at: the kinds that were checked. Alarms of other kinds stay.

        Raises:
            OSError: the file cannot be written.
        """
        before = self.active()
        now = {(alarm.kind, alarm.subject): alarm.text[:MAX_TEXT] for alarm in alarms}
        passing = {(alarm.kind, alarm.subject) for alarm in alarms if not alarm.lasts}
        began = {key: text for key, text in now.items() if key not in before}
        over = {key: text for key, text in before.items() if key[0] in looked_at and key not in now}
        for event in (*self._events(began, run_id, at), *self._events(over, run_id, at, over=True)):
            send(event)
        after = {key: text for key, text in (before | now).items() if key not in over and key not in passing}
        if after != before:
            self._write(after)

    def _write(self, alarms: Mapping[tuple[AlarmKind, str], str]) -> None:
        document = [{"kind": kind.value, "subject": subject, "text": text} for (kind, subject), text in alarms.items()]
        self._file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self._file, json.dumps(document, ensure_ascii=False))

    def active(self) -> dict[tuple[AlarmKind, str], str]:
        """Return the stored alarms, (kind, subject) → text; empty if the file is missing or damaged."""
        try:
            stored = json.loads(self._file.read_text(encoding="utf-8"))
            return {(AlarmKind(alarm["kind"]), str(alarm["subject"])): str(alarm["text"]) for alarm in stored}
        except (OSError, ValueError, TypeError, KeyError):
            return {}

    def _events(
        self, found: Mapping[tuple[AlarmKind, str], str], run_id: str, at: datetime, *, over: bool = False
    ) -> list[dict[str, Any]]:
        """Return one event for each kind of alarm in ``found``. With ``over``, the events say that the alarms ended."""
        events = []
        for kind in AlarmKind:
            items = [{"subject": subject, "text": text} for (of, subject), text in found.items() if of is kind]
            if items:
                name = {"event": "recovered", "of": kind.value} if over else {"event": kind.value}
                about = {"domain": self._domain.value if self._domain else None, "run_id": run_id}
                told = {"created_at": at.isoformat(), "count": len(items), "items": items[:MAX_ITEMS]}
                events.append({**name, **about, **told})
        return events
