"""Asset checks for each invariant and for quality, and metadata of the assets: numbers for the UI's plots, and tables.

A check that fails blocks publication within its run. Metadata of evaluations are curves, tables and charts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import dagster as dg

from evals.evaluation import Evaluated, GenerationReport
from evals.gate import SHOWN_QUERIES, worse_queries
from evals.measures import MEASURES
from evals.results import ResultScope
from evals.trend import TrendPoint, trend
from nornweave.ask.views.evaluations import set_title
from nornweave.disagree.ledger import Ledger
from nornweave.improve.records import LAST_STAGE, Evaluation, Verdict
from nornweave.index.port import Candidate, Failure, Publication
from nornweave.ingest.diff import Changes
from nornweave.ingest.records import INVARIANTS, Invariant, SyncReport

QUALITY = "quality"

Metadata: TypeAlias = Mapping[str, int | float | str | bool | dg.MarkdownMetadataValue | dg.TextMetadataValue]

# Keep metadata short: people read it, and every run stores it.
SHOWN = 50
CELL_CHARACTERS = 300


def quality_check(asset: dg.AssetKey) -> dg.AssetCheckSpec:
    """Return the check that refuses a candidate of lower quality."""
    return dg.AssetCheckSpec(
        QUALITY,
        asset=asset,
        blocking=True,
        description="No measure of the domain's judged sets dropped beyond its margin, or below its floor; "
        "what is beyond chance as well, or below, is held back.",
    )


def quality_result(asset: dg.AssetKey, report: GenerationReport | None) -> dg.AssetCheckResult:
    """Return the check's result for a generation, with the queries that got worse.

    Without a report the check passes, because there is no candidate or the domain is not measured.
    """
    if report is None:
        untested = "nothing was measured: no candidate was built, or the domain names no judged set"
        return dg.AssetCheckResult(passed=True, asset_key=asset, check_name=QUALITY, description=untested)
    reasons = "; ".join(report.reasons or report.warnings) or "no measure dropped beyond its margin"
    accepted = "a person has asked for it: " if report.reasons and report.accepted else ""
    return dg.AssetCheckResult(
        passed=not report.refused and not report.warnings,
        severity=dg.AssetCheckSeverity.ERROR if report.refused else dg.AssetCheckSeverity.WARN,
        asset_key=asset,
        check_name=QUALITY,
        description=accepted + reasons + _describe_gone(report),
        metadata=findings_metadata(report),
    )


def _describe_gone(report: GenerationReport) -> str:
    """Return a phrase about judged documents that are gone; empty if there are none.

    No measure shows that they are gone, because measures leave their judgments out.
    """
    if not report.judged_gone:
        return ""
    named = ", ".join(path for _, path in report.judged_gone[:SHOWN_QUERIES])
    more = ", …" if len(report.judged_gone) > SHOWN_QUERIES else ""
    return f"; {len(report.judged_gone)} judged documents went: {named}{more}"


def invariant_checks(asset: dg.AssetKey) -> list[dg.AssetCheckSpec]:
    """Return a blocking check for each invariant."""
    return [
        dg.AssetCheckSpec(name, asset=asset, blocking=True, description=meaning) for name, meaning in INVARIANTS.items()
    ]


def check_results(asset: dg.AssetKey, invariants: Sequence[Invariant]) -> list[dg.AssetCheckResult]:
    """Return the results of all checks. If there is no candidate, the invariants of a candidate pass."""
    by_name = {invariant.name: invariant for invariant in invariants}
    return [_result(asset, name, by_name.get(name)) for name in INVARIANTS]


def _result(asset: dg.AssetKey, name: str, invariant: Invariant | None) -> dg.AssetCheckResult:
    if invariant is None:
        untested = "nothing to publish: no candidate was built"
        return dg.AssetCheckResult(passed=True, asset_key=asset, check_name=name, description=untested)
    return dg.AssetCheckResult(
        passed=invariant.holds,
        asset_key=asset,
        check_name=name,
        description=str(invariant),
        metadata={
            "found": invariant.found,
            "expected": invariant.expected,
            "difference": invariant.found - invariant.expected,
        },
    )


CURVES = {"Recall@10": "Recall@10", "MRR": "RR@10"}
"""What is plotted, by its name in the UI."""


def evaluated_metadata(evaluated: Sequence[Evaluated], scope: ResultScope) -> Metadata:
    """Return a figure for each curve of each set, the number of queries, and a table of all measures."""
    numbers: dict[str, float | int | str] = {}
    for place, evaluation in enumerate(evaluated):
        run = evaluation.result.scope(scope)
        served = run.stage(LAST_STAGE) if run else None
        if run is None or served is None:
            continue
        for name, measure in CURVES.items():
            key = _curve(name, place, evaluation.result.subject, evaluation.result.name)
            numbers[key] = round(served.metrics[measure].mean, 4)
        if place == 0 and run.p50_ms is not None:
            numbers["p50_ms"] = round(run.p50_ms, 2)
    return {
        **numbers,
        "queries": sum(evaluation.result.measured for evaluation in evaluated),
        **nonempty_tables({"measures": measures_table(evaluated, scope)}),
    }


def known_metadata(known: Sequence[Evaluation]) -> Metadata:
    """Return the curves of earlier evaluations, named as in ``evaluated_metadata``.

    Args:
        known: the newest evaluation of each set, in the order of the sets.
    """
    numbers: dict[str, float | int | str] = {}
    for place, evaluation in enumerate(known):
        for name, measure in CURVES.items():
            if metric := evaluation.metric(LAST_STAGE, measure):
                numbers[_curve(name, place, evaluation.domain, evaluation.set_name)] = round(metric.mean, 4)
    return {**numbers, **({"queries": sum(each.measured for each in known)} if known else {})}


def _curve(name: str, place: int, domain: str, set_name: str) -> str:
    """Return the name of a curve: ``MRR`` for the first set (``place`` 0), ``code tickets MRR`` for another set."""
    return f"{set_title(domain, set_name)} {name}" if place else name


def measures_table(evaluated: Sequence[Evaluated], scope: ResultScope) -> str:
    """Return a table of what the last stage measured, one row per set, with intervals and the previous values."""
    rows = []
    for evaluation in evaluated:
        run = evaluation.result.scope(scope)
        served = run.stage(LAST_STAGE) if run else None
        if served is None:
            continue
        cells = []
        for measure in MEASURES:
            metric, compared = served.metrics[measure], evaluation.comparison(scope, LAST_STAGE, measure)
            was = f", was {compared.before:.3f}" if compared and abs(compared.difference) >= 0.0005 else ""
            cells.append(f"{metric.mean:.3f} ({metric.low:.3f}–{metric.high:.3f}{was})")
        title = set_title(evaluation.result.subject, evaluation.result.name)
        rows.append((title, str(evaluation.result.measured), evaluation.generation, *cells))
    return table(("set", "queries", "generation", *MEASURES), rows)


def findings_metadata(report: GenerationReport) -> Metadata:
    """Return metadata about what the gate compared, and about the queries that got worse."""
    rows = [
        ("refuses" if finding.refuses else "warns" if finding.warns else "passes", finding.text)
        for finding in report.findings
    ]
    worse = [
        (name, query, measure, f"{before:.3f}", f"{after:.3f}")
        for name, query, measure, before, after in worse_queries(report.findings)
    ]
    return {
        "candidate": report.generation,
        "refusals": len(report.reasons),
        "judged_documents_gone": len(report.judged_gone),
        "worse_queries": len({(name, query) for name, query, *_ in worse}),
        **nonempty_tables(
            {
                "what was compared": table(("verdict", "finding"), rows),
                "queries that got worse": table(("set", "query", "measure", "before", "after"), worse),
                "judged documents that went": table(("set", "document"), report.judged_gone),
                "problems": table(("problem",), [(problem,) for problem in report.problems]),
            }
        ),
    }


def trend_metadata(set_name: str, found: Sequence[Evaluation]) -> Metadata:
    """Return a chart of a set's history for the UI."""
    points = [
        TrendPoint(
            at=record.at,
            generation=record.generation,
            recall=recall.mean,
            mrr=rank.mean,
            refused=record.verdict is Verdict.REFUSED,
        )
        for record in found
        if (recall := record.metric(LAST_STAGE, "Recall@10")) and (rank := record.metric(LAST_STAGE, "RR@10"))
    ]
    return nonempty_tables({f"trend of {set_name}": trend(points)})


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
