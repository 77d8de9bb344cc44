"""Which domains were searched for an answer, and how that went, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api.pages.catalogue import DomainChoice
from nornweave.ask.views.answer import FusionResult
from nornweave.core.text.legible import counted

RETRIEVERS = {
    "dense": "meaning",
    "sparse": "words",
    "fulltext": "word pairs",
    "structured": "names",
    "exact": "exact name or words",
    "late_interaction": "word by word",
}
STATES = {
    "ok": "found",
    "empty": "found nothing",
    "timeout": "late",
    "failed": "failed",
    "off": "off",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """How one domain was searched.

    Attributes:
        state: ``found``, ``empty``, ``late``, ``unpublished``, ``failed`` or ``left out``.
        summary: the same in a few words.
        retrievers: name, and how it went, for those that did not simply find something.
    """

    domain: str
    state: str
    summary: str
    shown: int
    retrievers: tuple[tuple[str, str, str], ...]
    generation: str
    indexed_at: str
    notices: tuple[str, ...]


def coverage_of(document: FusionResult, catalogue: Sequence[DomainChoice]) -> tuple[Searched, ...]:
    """Return how each domain was searched, those that were left out included."""
    shown: dict[str, int] = {}
    for item in document["items"]:
        shown[item["citation"]["domain_id"]] = shown.get(item["citation"]["domain_id"], 0) + 1
    domains = dict.fromkeys([*(choice.domain for choice in catalogue), *document["coverage"]])
    return tuple(_searched(domain, document["coverage"].get(domain), shown.get(domain, 0)) for domain in domains)


def not_searched(document: FusionResult, missing: Sequence[Searched]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return why something gave no answer, with the domains; agents elsewhere also where others of their domain did."""
    silent = tuple(
        _without_answer(gap["domain_id"], _why_not(gap["reason"]), f"agent {gap['agent_id']}: {gap['reason']}")
        for gap in document["coverage_gaps"]
        if gap.get("elsewhere")
    )
    named = {gap.domain for gap in silent}
    reasons: dict[str, list[str]] = {}
    for gap in (*(domain for domain in missing if domain.domain not in named), *silent):
        reasons.setdefault(gap.summary, []).append(gap.domain)
    return tuple((reason, tuple(domains)) for reason, domains in reasons.items())


def _searched(domain: str, coverage: Mapping[str, Any] | None, shown: int) -> Searched:
    if coverage is None:
        return _without_answer(domain, "left out", "not asked")
    if not coverage["searched"]:
        reason = str(coverage.get("reason", "gave no answer"))
        return _without_answer(domain, _why_not(reason), reason)
    states: Mapping[str, str] = coverage.get("retrieval", {})
    total = coverage.get("total_searched", 0)
    found = any(state == "ok" for state in states.values())
    return Searched(
        domain=domain,
        state="found" if found else "empty",
        summary=f"{counted(shown, 'passage')} of {total:,} shown"
        if found
        else f"nothing in {counted(total, 'passage')}",
        shown=shown,
        retrievers=tuple(
            (RETRIEVERS.get(name, name), state, STATES.get(state, state)) for name, state in states.items()
        ),
        generation=coverage.get("generation", ""),
        indexed_at=coverage.get("indexed_at", ""),
        notices=tuple(coverage.get("notices", ())),
    )


def _without_answer(domain: str, state: str, summary: str) -> Searched:
    return Searched(
        domain=domain,
        state=state,
        summary=summary,
        shown=0,
        retrievers=(),
        generation="",
        indexed_at="",
        notices=(),
    )


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


def nothing_found(document: FusionResult, missing: Sequence[Searched]) -> str:
    """Return what it means that an answer is empty; ``missing`` are the domains that were not searched."""
    if missing and len(missing) == len(document["coverage"]):
        return "No domain was searched, so this says nothing about what is known."
    if missing:
        names = ", ".join(one.domain for one in missing)
        return f"The domains that were searched have nothing. {names}: not searched, the answer may be there."
    total = sum(one.get("total_searched", 0) for one in document["coverage"].values())
    return f"Every domain that was asked was searched, {counted(total, 'passage')} in all. None matches."
