"""Reports of an agent: its content and filters, its health, and statistics of its requests."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from statistics import quantiles
from typing import TYPE_CHECKING

from nornweave.ask.search.filter_counts import described_filters
from nornweave.core.access import Viewer
from nornweave.core.errors import StoreError
from nornweave.core.types import JsonValue

if TYPE_CHECKING:
    from nornweave.ask.search.agent import Agent

UNPUBLISHED = "nothing is published yet; run `nornweave sync`"
# Enough for a stable 95th percentile, recent enough to show a change.
_LATENCIES = 1000


class Statistics:
    """Counts requests. Every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests = 0
        self._failures = 0
        self._searched = 0
        self._latencies: deque[float] = deque(maxlen=_LATENCIES)

    def answered(self, latency_ms: float, searched: int) -> None:
        """Count an answer."""
        with self._lock:
            self._requests += 1
            self._searched += searched
            self._latencies.append(latency_ms)

    def failed(self) -> None:
        """Count a request without an answer."""
        with self._lock:
            self._requests += 1
            self._failures += 1

    def as_json(self) -> dict[str, JsonValue]:
        """Return totals, and percentiles of the last 1,000 latencies in milliseconds."""
        with self._lock:
            latencies = sorted(self._latencies)
            totals: dict[str, JsonValue] = {
                "requests": self._requests,
                "failures": self._failures,
                "total_searched": self._searched,
            }
        if len(latencies) < 2:
            return {**totals, "latency_ms": {"p50": latencies[0], "p95": latencies[0]} if latencies else None}
        cuts = quantiles(latencies, n=20, method="inclusive")
        return {**totals, "latency_ms": {"p50": round(cuts[9], 2), "p95": round(cuts[18], 2)}}


def problems(agent: Agent) -> list[str]:
    """Return the agent's problems as sentences; empty if there are none."""
    following = agent.following()
    found = (
        _generation_problem(agent),
        agent.encoding.problem,
        agent.encoding.mismatch(agent.generation.meta),
        *(following.problems if following else ()),
    )
    return [problem for problem in found if problem]


def _generation_problem(agent: Agent) -> str | None:
    return agent.generation.problem or (None if agent.generation.name else UNPUBLISHED)


def describe(agent: Agent, viewer: Viewer) -> dict[str, JsonValue]:
    """Return an agent's description: filters, and sizes as far as a viewer may see the domain."""
    settings = agent.settings
    return {
        "agent_id": agent.agent_id,
        "domain_id": agent.domain.value,
        "name": settings.name,
        "description": settings.description,
        "chunking": settings.chunking.model_dump(mode="json"),
        "embedding": settings.embedding.model_dump(mode="json"),
        "reranking": {"model": settings.reranking.model, "state": str(agent.reranker.state)},
        "filters": described_filters(settings.filters, agent.filter_counts(viewer)),
        "plan": settings.plan.model_dump(mode="json"),
        **_index_facts(agent, viewer),
    }


def _index_facts(agent: Agent, viewer: Viewer) -> Mapping[str, JsonValue]:
    try:
        with agent.generation.use(viewer) as generation:
            return {
                "generation": generation.meta["generation"],
                "indexed_at": generation.built_at,
                "documents": generation.document_count,
                "chunks": generation.chunk_count,
            }
    except StoreError as error:
        return {"generation": None, "indexed_at": None, "documents": 0, "chunks": 0, "reason": str(error)}


def health(agent: Agent, viewer: Viewer) -> dict[str, JsonValue]:
    """Return an agent's health. Only operators get the statistics of all requests."""
    encoder = agent.encoding
    checks: dict[str, JsonValue] = {
        "generation": _generation_problem(agent) or "ok",
        "encoder": encoder.problem or ("ok" if encoder.is_loaded else "not loaded yet"),
        "reranker": str(agent.reranker.state),
    }
    return {
        "agent_id": agent.agent_id,
        "domain_id": agent.domain.value,
        "state": agent.state.value,
        "generation": agent.generation.name,
        "published": agent.generation.published,
        **_freshness(agent),
        "checks": checks,
        "statistics": agent.statistics.as_json() if viewer.operates else {},
        "notices": problems(agent),
    }


def _freshness(agent: Agent) -> dict[str, JsonValue]:
    """Return the age of the served generation, and for how long a newer one has been published."""
    following = agent.following()
    built_at = agent.generation.meta.get("built_at")
    age_s = (datetime.now(UTC) - datetime.fromisoformat(built_at)).total_seconds() if built_at else None
    return {
        "indexed_at": built_at.replace("+00:00", "Z") if built_at else None,
        "age_s": None if age_s is None else round(max(0.0, age_s), 1),
        "behind_s": round(max(agent.generation.behind_s, following.behind_s if following else 0.0), 1),
        **({"replica": following.as_json()} if following else {}),
    }
