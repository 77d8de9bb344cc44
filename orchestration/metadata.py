"""Metadata of the assets: numbers for the UI's plots, and tables for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import dagster as dg

from nornweave.disagree.ledger.entries import Ledger
from nornweave.index.port import Candidate, Failure, Publication
from nornweave.ingest.diff import Changes
from nornweave.ingest.records import SyncReport

Metadata: TypeAlias = Mapping[str, int | float | str | bool | dg.MarkdownMetadataValue | dg.TextMetadataValue]

# Keep metadata short: people read it, and every run stores it.
SHOWN = 50
CELL_CHARACTERS = 300


def documents_metadata(changes: Changes, seconds: float) -> Metadata:
    """Return metadata about how the listed documents differ from the stored documents."""
    tables = {
        "held removals (confirm: nornweave sync --confirm-deletes)": table(
            ("source", "removals", "why"),
            [(held.source_id, str(len(held.paths)), held.reason) for held in changes.held],
        ),
        "unavailable sources (their documents stay)": table(("source", "why"), sorted(changes.unavailable.items())),
    }
    return {
        "listed": changes.listed,
        "to_read": len(changes.due),
        "to_remove": len(changes.removed),
        "unchanged": changes.unchanged,
        "held_removals": sum(len(held.paths) for held in changes.held),
        "unavailable_sources": len(changes.unavailable),
        "seconds": seconds,
        **nonempty_tables(tables),
    }


def chunks_metadata(report: SyncReport, seconds: float) -> Metadata:
    """Return metadata about documents that were read, cut and stored, that failed, and that were left out."""
    return {
        "added": report.added,
        "changed": report.changed,
        "removed": report.removed,
        "unchanged": report.unchanged,
        "failed": len(report.failed),
        "failed_with_older_version": sum(failure.stale for failure in report.failed),
        "left_out": len(report.skipped),
        "chunks": report.chunks,
        "seconds": seconds,
        **nonempty_tables(
            {"failed documents": failures_table(report.failed), "files of the sources": _readings(report)}
        ),
    }


def _readings(report: SyncReport) -> str:
    """Return a table of how many files of each source are read; an empty text without sources."""
    rows = [
        (source_id, reading.summary(), "; ".join(filter(None, [*reading.notices, reading.warning()])))
        for source_id, reading in report.sources.items()
    ]
    return table(("source", "files", "notices"), rows)


def embeddings_metadata(embedded: int, seconds: float) -> Metadata:
    """Return metadata about the number of new vectors."""
    speed = {"embedded_per_second": round(embedded / seconds, 1)} if embedded and seconds else {}
    return {"embedded": embedded, "seconds": seconds, **speed}


def ledger_metadata(ledger: Ledger) -> Metadata:
    """Return the numbers of open, new and settled conflicts as metadata."""
    new = [entry for entry in ledger.open if entry.first_seen == ledger.made_at]
    settled = [entry for entry in ledger.settled if entry.settled == ledger.made_at]
    return {"open": len(ledger.open), "new": len(new), "settled": len(settled)}


def index_metadata(candidate: Candidate | None, seconds: float) -> Metadata:
    """Return metadata about the candidate, or about why there is none."""
    if candidate is None:
        return {"built": 0, "seconds": seconds, "summary": "nothing changed since the published generation"}
    return {
        "built": 1,
        "documents": candidate.counts.documents,
        "chunks": candidate.counts.chunks,
        "vectors": candidate.counts.vectors,
        "size_bytes": candidate.size_bytes,
        "seconds": seconds,
        "candidate": candidate.generation,
        "vector_index": candidate.vector_index,
    }


def generation_metadata(publication: Publication | None, report: SyncReport) -> Metadata:
    """Return metadata about the publication, or about the generation that stays published."""
    numbers: Metadata = {
        "published": publication is not None,
        "new_generations": int(publication is not None),
        "chunks": report.chunks,
        "vectors_computed": report.embedded,
        "vectors_reused": report.reused,
        "added": len(publication.added) if publication else 0,
        "changed": len(publication.changed) if publication else 0,
        "removed": len(publication.removed) if publication else 0,
        "sync_seconds": report.seconds,
        "generation": report.generation or "none: nothing was ever ingested",
    }
    if publication is None:
        return numbers
    rows = [(what, path) for what in ("added", "changed", "removed") for path in getattr(publication, what)]
    return {**numbers, **nonempty_tables({"documents in this publication": table(("what", "document"), rows)})}


def failures_table(failures: Sequence[Failure]) -> str:
    """Return a table of the failed documents with their reasons."""
    rows = [
        (f"{failure.source_id}/{failure.path}", failure.reason, "yes" if failure.stale else "no")
        for failure in failures
    ]
    return table(("document", "why", "older version answers"), rows)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table of the first rows; an empty text without rows."""
    if not rows:
        return ""
    lines = [header, ["---"] * len(header), *([_cell(cell) for cell in row] for row in rows[:SHOWN])]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"{text}\n\n… and {len(rows) - SHOWN} more" if len(rows) > SHOWN else text


def _cell(text: str) -> str:
    """Return foreign text, escaped and shortened for a table cell."""
    line = " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "\\`")
    return line if len(line) <= CELL_CHARACTERS else line[: CELL_CHARACTERS - 1] + "…"


def nonempty_tables(tables: Mapping[str, str]) -> Metadata:
    """Return the non-empty tables as Markdown metadata."""
    return {name: dg.MetadataValue.md(text) for name, text in tables.items() if text}
