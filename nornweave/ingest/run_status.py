"""The status of a domain, readable during a sync: its latest report, its last runs, and the progress of a step.

``status.json`` in the domain's folder is replaced atomically at the end of every run. The working file is the truth;
this is its summary, because DuckDB lets nobody read a file that another process writes. The progress of a step says how
much is done, how fast, and how long it will take.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from nornweave.core.errors import StoreError
from nornweave.core.files.lock import WriterLock
from nornweave.core.files.writing import write_whole
from nornweave.index.outcomes import LEFT_OUT, STATUS, read_status
from nornweave.ingest.left_out import SourceReading, note_left_out
from nornweave.ingest.records import SyncReport

KEEP_RUNS = 20
# Lists in the status are for people; a repository may skip a hundred thousand files.
KEEP_SKIPS = 200
LOCK_WAIT_S = 30.0
_REPORT = TypeAdapter(SyncReport)
_UNSEEN = ("skipped", "skip_reasons", "held", "unavailable", "sources")

UNITS = {
    "load": "model",
    "list": "documents",
    "read": "KiB",
    "store": "documents",
    "embed": "chunks",
    "build": "generation",
}
"""What a step counts; the steps of an evaluation count questions."""

# A rate over less time than this says little.
_LEAST_S = 1.0


def record_run(folder: Path, report: SyncReport, *, is_of_paths: bool = False) -> None:
    """Record a finished run.

    Args:
        is_of_paths: whether the run compared only some paths. Then the rest of the status is copied from the last run.

    Raises:
        StoreError: the status cannot be written, or another process holds its lock too long.
    """
    full = report_as_json(report)
    details = {"failed", "skipped", "held", "skip_reasons", "sources"}
    run = {key: value for key, value in full.items() if key not in details}
    run["failed"] = len(report.failed)
    if not is_of_paths:
        try:
            note_left_out(folder, report.sources)
        except OSError as error:
            raise StoreError(f"{folder / LEFT_OUT}: cannot be written: {error}") from error
    _record(folder, run, full, kept=_UNSEEN if is_of_paths else ())


def record_failure(folder: Path, run_id: str, error: str) -> None:
    """Record a run that ended with an error. The last finished run's report stays.

    Raises:
        StoreError: as ``record_run``.
    """
    _record(folder, {"run_id": run_id, "error": error}, {})


def report_as_json(report: SyncReport) -> dict[str, Any]:
    """Return a report as JSON, with at most ``KEEP_SKIPS`` skipped documents and the count of each reason."""
    short = replace(report, skipped=report.skipped[:KEEP_SKIPS], sources={})
    document: dict[str, Any] = _REPORT.dump_python(short, mode="json")
    document["sources"] = {source_id: _counts(reading) for source_id, reading in report.sources.items()}
    reasons = Counter(skip.reason for skip in report.skipped)
    return {**document, "skip_reasons": dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0])))}


def _counts(reading: SourceReading) -> dict[str, Any]:
    return {
        "files": reading.files,
        "read": reading.read,
        "left_out": dict(reading.labels().most_common()),
        "summary": reading.summary(),
        "warning": reading.warning(),
        "notices": list(reading.notices),
    }


def _record(folder: Path, run: Mapping[str, Any], latest: Mapping[str, Any], *, kept: Sequence[str] = ()) -> None:
    """Add a run to the stored runs, under a lock.

    Args:
        latest: the report of the run; empty to keep the last one.
        kept: the keys whose values are copied from the last report.
    """
    file = folder / STATUS
    try:
        with WriterLock(folder / "status.lock", purpose="status", wait_s=LOCK_WAIT_S):
            now = datetime.now(UTC).isoformat(timespec="seconds")
            previous = read_status(folder)
            runs = [{"at": now, **run}, *previous.get("runs", [])][:KEEP_RUNS]
            before = {key: value for key, value in previous.get("latest", {}).items() if key in kept}
            checked = {"checked_at": now, "latest": {**latest, **before}} if latest else {}
            write_whole(file, json.dumps({**previous, **checked, "runs": runs}, ensure_ascii=False))
    except OSError as error:
        raise StoreError(f"{file}: cannot be written: {error}") from error


class Pace:
    """Follows the calls of a ``Progress`` and describes the current step."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._name, self._started, self._first, self._kib = "", 0.0, 0, 0

    def describe_step(self, name: str, done: int, total: int) -> str | None:
        """Return a phrase such as ``300 of 1,000 documents, 40/s, 18 s left``.

        Returns:
            The phrase; ``None`` for the step ``read``, whose bytes are part of the next phrase about the listing.
        """
        step = name.split()[1] if " " in name else name
        if step == "read":
            self._kib = done
            return None
        if name != self._name:
            self._name, self._started, self._first = name, self._clock(), done
        seconds = self._clock() - self._started
        rate = (done - self._first) / seconds if seconds >= _LEAST_S else 0.0
        return describe(done, total, UNITS.get(step, ""), self._kib if step == "list" else 0, rate)


def describe(done: int, total: int, unit: str, kib: int = 0, rate: float = 0.0) -> str:
    """Return the progress of a step: ``300 of 1,000 documents, 12.5 MiB, 40/s, 18 s left``.

    Args:
        total: the number of units of the step; 0 if it is unknown.
        kib: the KiB that were read for it; 0 leaves the size out.
        rate: units per second; 0 if it is unknown.
    """
    parts = [f"{done:,} of {total:,} {unit}".rstrip() if total else f"{done:,} {unit}".rstrip()]
    if kib:
        parts.append(f"{kib / 1024:,.1f} MiB")
    if rate >= 0.1:
        parts.append(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s")
        if total > done:
            parts.append(f"{_duration((total - done) / rate)} left")
    return ", ".join(parts)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
