"""Asset checks: one per invariant, and quality. A check that fails blocks publication within its run."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from evals.evaluation import GenerationReport
from evals.gate import SHOWN_QUERIES
from nornweave.ingest.invariants import INVARIANTS, Invariant
from orchestration.quality import findings_metadata

QUALITY = "quality"


def quality_check(asset: dg.AssetKey) -> dg.AssetCheckSpec:
    """Return the check that holds a candidate back, and that shows where what is published got worse."""
    return dg.AssetCheckSpec(
        QUALITY,
        asset=asset,
        blocking=True,
        description="No measure of the domain's judged sets dropped beyond chance and its margin, or below its floor.",
    )


def quality_result(asset: dg.AssetKey, report: GenerationReport | None) -> dg.AssetCheckResult:
    """Return whether a generation is good enough, and which queries got worse.

    Without a report the check passes: there is no candidate, or the domain is not measured.
    """
    if report is None:
        untested = "nothing was measured: no candidate was built, or the domain names no judged set"
        return dg.AssetCheckResult(passed=True, asset_key=asset, check_name=QUALITY, description=untested)
    reasons = "; ".join(report.reasons) or "no measure dropped beyond chance and its margin"
    accepted = "a person has asked for it: " if report.reasons and report.accepted else ""
    return dg.AssetCheckResult(
        passed=not report.refused,
        asset_key=asset,
        check_name=QUALITY,
        description=accepted + reasons + _gone(report),
        metadata=findings_metadata(report),
    )


def _gone(report: GenerationReport) -> str:
    """Name judged documents that went: no measure shows it, for their judgments are left out."""
    if not report.judged_gone:
        return ""
    named = ", ".join(path for _, path in report.judged_gone[:SHOWN_QUERIES])
    more = ", …" if len(report.judged_gone) > SHOWN_QUERIES else ""
    return f"; {len(report.judged_gone)} judged documents went: {named}{more}"


def invariant_checks(asset: dg.AssetKey) -> list[dg.AssetCheckSpec]:
    """Return a blocking check per invariant."""
    return [
        dg.AssetCheckSpec(name, asset=asset, blocking=True, description=meaning) for name, meaning in INVARIANTS.items()
    ]


def check_results(asset: dg.AssetKey, invariants: Sequence[Invariant]) -> list[dg.AssetCheckResult]:
    """Return a result for every check; without a candidate its invariants pass."""
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
