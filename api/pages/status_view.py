"""The status of a domain as its page shows it: what answers, how fresh it is, what needs somebody, what to type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from api.pages.citations import age_of
from api.pages.text_runs import TextRun, runs_of
from api.schemas import AgentDocument
from api.syncs import Running
from nornweave.ask.views.status import StatusDocument
from nornweave.core.errors import EMPTY
from nornweave.core.types import JsonValue

# Steps of a sync as people call them.
STEPS = {
    "load": "loading the model",
    "list": "reading",
    "store": "reading documents",
    "embed": "computing vectors",
    "build": "building the generation",
    "evaluate": "measuring its answers",
}
MAX_FAILED = 100
MAX_PATHS = 20
MAX_RUNS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedDocument:
    """A document that could not be read."""

    place: tuple[TextRun, ...]
    reason: str
    keeps_answering: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBack:
    """Removals of a source that wait for a person."""

    source_id: str
    reason: str
    count: int
    paths: tuple[tuple[TextRun, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderWay:
    """A sync that was started on the page: since when, and what it does."""

    since: str
    step: str
    done: int
    total: int
    pace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A finished run, or one that failed; ``run_id`` is Dagster's."""

    run_id: str
    at: str
    summary: str
    failed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """An address of an agent on another machine; ``url`` is empty for who does not operate the service."""

    name: str
    domain: str
    state: str
    url: str
    seen: str
    seen_at: str
    breaker: str
    p95: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainStatus:
    """The status of one domain."""

    domain: str
    state: str
    generation: str
    answers: str
    generations: tuple[str, ...]
    indexed: str
    indexed_at: str
    checked: str
    documents: int
    passages: int
    notices: tuple[str, ...]
    failed: tuple[FailedDocument, ...]
    failed_count: int
    only_empty: bool
    held: tuple[HeldBack, ...]
    unavailable: tuple[tuple[str, str], ...]
    skipped: tuple[tuple[str, int], ...]
    runs: tuple[Ran, ...]
    remedies: tuple[tuple[str, str], ...]
    running: UnderWay | None
    held_count: int


def status_view(
    domain: str,
    document: StatusDocument,
    health: Mapping[str, JsonValue],
    running: Mapping[str, Running],
    now: datetime,
) -> DomainStatus:
    """Return what the page shows of a domain.

    Args:
        document: what its syncs reported.
        health: of its agent, in this process.
        running: syncs that are under way, by domain.
        now: what ages count from.
    """
    notices = health.get("notices")
    indexed_at = str(health.get("indexed_at") or "")
    return DomainStatus(
        domain=domain,
        state=str(health.get("state", "")),
        generation=document["generation"] or "",
        answers=str(health.get("generation") or ""),
        generations=tuple(reversed(document["generations"])),
        indexed=age_of(indexed_at, now),
        indexed_at=indexed_at,
        checked=age_of(document["checked_at"], now),
        documents=document["documents"],
        passages=document["chunks"],
        notices=tuple(map(str, notices)) if isinstance(notices, list) else (),
        failed=tuple(_failed(failure) for failure in document["failed"][:MAX_FAILED]),
        failed_count=len(document["failed"]),
        only_empty=all(failure["reason"].startswith(EMPTY) for failure in document["failed"]),
        held=tuple(_held(held) for held in document["held"]),
        unavailable=tuple(document["unavailable"].items()),
        skipped=tuple(document["skip_reasons"].items()),
        runs=tuple(_ran(run, now) for run in document["runs"][:MAX_RUNS]),
        remedies=tuple(_remedies(domain, document)),
        running=_under_way(running[domain], now) if domain in running else None,
        held_count=sum(len(held["paths"]) for held in document["held"]),
    )


def elsewhere_view(agent: AgentDocument, now: datetime) -> Elsewhere:
    """Return what the page shows of an agent on another machine."""
    p95_ms = agent.get("p95_ms")
    return Elsewhere(
        name=agent["agent_id"],
        domain=agent["domain_id"].value,
        state=agent["state"].value,
        url=agent.get("url", ""),
        seen=age_of(agent.get("seen_at"), now),
        seen_at=agent.get("seen_at", ""),
        breaker=agent.get("breaker", "closed"),
        p95="" if p95_ms is None else f"{p95_ms:.0f} ms",
    )


def _under_way(running: Running, now: datetime) -> UnderWay:
    _, step, name = (*running.step.split(), "", "", "")[:3]
    return UnderWay(
        since=age_of(running.since.isoformat(), now),
        step=f"{STEPS[step]} {name}" if step == "list" else STEPS.get(step, step),
        done=running.done,
        total=running.total,
        pace=running.pace,
    )


def _remedies(domain: str, document: StatusDocument) -> list[tuple[str, str]]:
    """Return what to type, and what it does; the first is what helps most."""
    remedies = []
    if document["held"]:
        remedies.append(
            (f"nornweave sync --domain {domain} --confirm-deletes", "remove what is held, if that is meant")
        )
    if document["unavailable"]:
        remedies.append(("nornweave sync", "read the sources again, once they can be reached"))
    if document["failed"]:
        remedies.append(
            (f"nornweave sync --domain {domain}", "read changed documents again; mend or exclude them first")
        )
    if document["generation"] is None:
        remedies.append((f"nornweave sync --domain {domain}", "publish a first generation"))
    if len(document["generations"]) > 1:
        remedies.append((f"nornweave rollback {domain}", "answer from the generation before this one"))
    return remedies


def _failed(failure: Mapping[str, Any]) -> FailedDocument:
    place = "/".join(part for part in (failure.get("source_id", ""), failure["path"]) if part)
    return FailedDocument(place=runs_of(place), reason=failure["reason"], keeps_answering=bool(failure.get("stale")))


def _held(held: Mapping[str, Any]) -> HeldBack:
    paths = held["paths"]
    return HeldBack(
        source_id=held["source_id"],
        reason=held["reason"],
        count=len(paths),
        paths=tuple(runs_of(path) for path in paths[:MAX_PATHS]),
    )


def _ran(run: Mapping[str, Any], now: datetime) -> Ran:
    at, run_id = age_of(run.get("at"), now), str(run.get("run_id") or "")
    if "error" in run:
        return Ran(run_id=run_id, at=at, summary=str(run["error"]), failed=True)
    parts = [f"{run.get(name, 0)} {name}" for name in ("added", "changed", "removed", "failed") if run.get(name)]
    changes = ", ".join(parts) or "no change"
    published = f", published {run['generation']}" if run.get("published") else ""
    return Ran(run_id=run_id, at=at, summary=f"{changes}{published} in {run.get('seconds', 0):.1f} s", failed=False)
