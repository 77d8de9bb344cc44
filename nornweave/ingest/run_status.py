"""The status of a domain, readable during a sync: its latest report and its last runs.

``status.json`` in the domain's folder is replaced atomically at the end of every run. The working file is the truth;
this is its summary, because DuckDB lets nobody read a file that another process writes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
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
