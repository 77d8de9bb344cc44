"""Asset checks: one per invariant that reconciliation knows; each blocks publication within its run."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from nornweave.reconcile import INVARIANTS, Invariant

MEANINGS = {
    "documents_accounted_for": "Every document that is listed is stored, failed with a reason, or left out on purpose.",
    "texts_embedded": "Every text has its vector.",
    "no_orphan_chunks": "Every chunk belongs to a document.",
    "ids_unique": "No id is used twice.",
    "generation_complete": "Every stored chunk is in the candidate generation.",
    "vectors_match_chunks": "The candidate generation has one vector per chunk.",
    "index_matches_chunks": "The BM25 tables of the candidate generation find every chunk.",
    "no_orphans_in_generation": "No row of the candidate generation belongs to nothing.",
}


def invariant_checks(asset: dg.AssetKey) -> list[dg.AssetCheckSpec]:
    """Return a blocking check per invariant."""
    return [
        dg.AssetCheckSpec(name, asset=asset, blocking=True, description=MEANINGS.get(name, name.replace("_", " ")))
        for name in INVARIANTS
    ]


def check_results(asset: dg.AssetKey, invariants: Sequence[Invariant]) -> list[dg.AssetCheckResult]:
    """Return a result for every check; an invariant of the candidate holds where there is no candidate."""
    found = {invariant.name: invariant for invariant in invariants}
    return [_result(asset, name, found.get(name)) for name in INVARIANTS]


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
