"""Which domains were searched for an answer, and how that went, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from api.pages.catalogue import DomainChoice
from nornweave.ask.search.late_interaction import LATE
from nornweave.ask.views.answer import FusionResult
from nornweave.ask.views.items import CoverageDocument
from nornweave.core.text.legible import counted

RETRIEVERS = {
    "dense": "meaning",
    "sparse": "words",
    "fulltext": "word pairs",
    "structured": "names",
    "exact": "exact name or words",
    LATE: "word by word",
}
STATES = {
    "ok": "found",
    "empty": "found nothing",
    "timeout": "late",
    "failed": "failed",
    "off": "off",
}


def coverage_of(document: FusionResult, catalogue: Sequence[DomainChoice]) -> list[dict[str, Any]]:
    """Return how each domain was searched, those left out included: ``state`` in a word, ``summary`` in a few.

    The states are ``found``, ``empty``, ``late``, ``unpublished``, ``failed`` and ``left out``.
    """
    shown = Counter(item["citation"]["domain_id"] for item in document["items"])
    domains = dict.fromkeys([*(choice.domain for choice in catalogue), *document["coverage"]])
    return [{"domain": name, **_searched(document["coverage"].get(name), shown[name])} for name in domains]


def not_searched(document: FusionResult, missing: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[str]]]:
    """Return why something gave no answer, with the domains; agents elsewhere also where others of their domain did."""
    silent = [
        (gap["domain_id"], f"agent {gap['agent_id']}: {gap['reason']}")
        for gap in document["coverage_gaps"]
        if gap.get("elsewhere")
    ]
    named = {domain for domain, _ in silent}
    reasons: dict[str, list[str]] = {}
    for domain, reason in [(one["domain"], one["summary"]) for one in missing if one["domain"] not in named] + silent:
        reasons.setdefault(reason, []).append(domain)
    return [*reasons.items()]


def _searched(coverage: CoverageDocument | None, shown: int) -> Mapping[str, Any]:
    if coverage is None:
        return {"state": "left out", "summary": "not asked"}
    if not coverage["searched"]:
        reason = coverage.get("reason", "gave no answer")
        return {"state": _why_not(reason), "summary": reason}
    states, total = coverage.get("retrieval", {}), coverage.get("total_searched", 0)
    found = f"{counted(shown, 'passage')} of {total:,} shown" if "ok" in states.values() else ""
    return {
        **coverage,
        "state": "found" if found else "empty",
        "summary": found or f"nothing in {counted(total, 'passage')}",
        "retrievers": [(RETRIEVERS.get(name, name), state, STATES.get(state, state)) for name, state in states.items()],
    }


def _why_not(reason: str) -> str:
    """Sort the reason of a gap: late, not published, or failed."""
    if "timeout" in reason or "in time" in reason:
        return "late"
    return "unpublished" if "published" in reason else "failed"


def summary_of(document: FusionResult, searched: int, asked: int) -> str:
    """Return a line about the whole answer: conflicts, domains, duplicates, time."""
    domains = f"{searched} of {asked} domains searched" if searched != asked else f"{counted(asked, 'domain')} searched"
    parts = [domains, f"{round(document['total_latency_ms'])} ms"]
    if document["duplicates_removed"]:
        parts.insert(1, f"{counted(document['duplicates_removed'], 'duplicate')} merged")
    if document["conflicts"]:
        parts.insert(0, counted(len(document["conflicts"]), "conflict"))
    return " · ".join(parts)


def nothing_found(document: FusionResult, missing: Sequence[Mapping[str, Any]]) -> str:
    """Return what it means that an answer is empty; ``missing`` are the domains that were not searched."""
    if missing and len(missing) == len(document["coverage"]):
        return "No domain was searched, so this says nothing about what is known."
    if missing:
        names = ", ".join(one["domain"] for one in missing)
        return f"The domains that were searched have nothing. {names}: not searched, the answer may be there."
    total = sum(one.get("total_searched", 0) for one in document["coverage"].values())
    return f"Every domain that was asked was searched, {counted(total, 'passage')} in all. None matches."
