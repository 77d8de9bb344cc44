"""``/metrics`` for Prometheus: the cost of requests and answers, and the state of the index.

Counters of several serving processes are added up through files in a folder (prometheus_client's multiprocess mode), so
that any process can answer for all. What is read from the index when Prometheus asks is the same in each of them.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.server.workers import METRICS_FOLDER
from nornweave.ask.fuse.records import Answer
from nornweave.core.access import OPERATOR
from nornweave.core.errors import NornWeaveError
from nornweave.improve.records import LAST_STAGE

if TYPE_CHECKING:
    from nornweave.ask.engine import Engine

log = logging.getLogger(__name__)

CONTENT_TYPE = CONTENT_TYPE_LATEST
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
UNMATCHED = "unmatched"
OF_DOMAIN = ("domain",)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
REMOTE_COUNTS = {
    "requests": "Requests to an agent elsewhere.",
    "failures": "Requests to an agent elsewhere that failed.",
}
GAUGES = {
    "nornweave_http_requests_in_progress": "Requests that are being answered.",
    "nornweave_encoder_waiting": "Queries that wait for the encoder.",
}
MEASURES = {"Recall@10": "recall_at_10", "RR@10": "mrr"}


class Metrics:
    """Measurements of one app. Every method may be called from any thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._registry = CollectorRegistry()
        made: dict[str, Any] = {"registry": self._registry}
        self._requests = Counter(
            "nornweave_http_requests", "Requests by route template.", ("method", "route", "status"), **made
        )
        self._durations = Histogram(
            "nornweave_http_request_duration_seconds", "From the request to the end of its answer.",
            ("method", "route"), buckets=SECONDS, **made,
        )  # fmt: skip
        self._stages = Histogram(
            "nornweave_answer_stage_duration_seconds", "Stages of an answer.", ("stage",), buckets=SECONDS, **made
        )
        self._retrievals = Counter(
            "nornweave_retrievals", "How each retriever went: ok, empty, failed, timeout, off.",
            ("domain", "retriever", "outcome"), **made,
        )  # fmt: skip
        self._gaps = Counter("nornweave_coverage_gaps", "Domains that were not searched.", ("domain", "reason"), **made)
        self._conflicts = Counter("nornweave_answer_conflicts", "Conflicts that answers showed.", **made)
        self.hooks = Counter(
            "nornweave_webhooks", "Requests of services: accepted, coalesced, replayed, refused, invalid.",
            ("service", "outcome"), **made,
        )  # fmt: skip
        self._encoded = Counter(
            "nornweave_query_vectors", "Vectors of queries: encoded, or remembered.", ("origin",), **made
        )
        self.in_progress, self._waiting = (
            Gauge(name, help_text, multiprocess_mode="livesum", **made) for name, help_text in GAUGES.items()
        )
        of_agent = [
            Counter(f"nornweave_remote_agent_{name}", help_text, ("agent",), **made)
            for name, help_text in REMOTE_COUNTS.items()
        ]
        self._sent = dict(zip(REMOTE_COUNTS, of_agent, strict=True))
        self._lock = threading.Lock()
        self._seen: dict[object, int] = {}
        self._state = IndexState(engine)

    def observe_answer(self, answer: Answer) -> None:
        """Count the time, the retrievers and the gaps of an answer."""
        for stage, milliseconds in answer.stage_latency_ms.items():
            self._stages.labels(stage).observe(milliseconds / 1000)
        for response in answer.recalled.responses:
            for retriever, outcome in response.retrieval.items():
                self._retrievals.labels(response.domain_id, retriever, outcome).inc()
        for gap in answer.recalled.coverage_gaps:
            self._gaps.labels(gap.domain_id, reason_kind(gap.reason)).inc()
        self._conflicts.inc(len(answer.conflicts))
        load = self._engine.models.encoder_load()
        self._waiting.set(load.waiting)
        with self._lock:
            for origin, count in (("encoded", load.encoded), ("remembered", load.remembered)):
                self._encoded.labels(origin).inc(self._since(origin, count))
            for agent in self._engine.path.remote.agents() if self._engine.path.remote else ():
                for name, counter in self._sent.items():
                    counter.labels(agent.agent_id).inc(self._since((agent.agent_id, name), getattr(agent.counts, name)))

    def _since(self, what: object, count: int) -> int:
        """Return how much the count of ``what`` has grown since the last call. A smaller count has restarted at 0."""
        before, self._seen[what] = self._seen.get(what, 0), count
        return count - before if count >= before else count

    def observe_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(method, route, str(status)).inc()
        self._durations.labels(method, route).observe(seconds)

    def exposition(self) -> bytes:
        """Return everything in Prometheus' text format; reads the state of the index from disk."""
        registry = CollectorRegistry()
        registry.register(self._state)
        if os.environ.get(METRICS_FOLDER):
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
            return generate_latest(registry)
        return generate_latest(self._registry) + generate_latest(registry)


class IndexState(Collector):
    """The state of the index, read when Prometheus asks."""

    def __init__(self, engine: Engine) -> None:
        self._seen = engine.as_seen_by(OPERATOR)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the state. Parts that cannot be read are left out and counted."""
        unreadable = 0
        for read in (self._freshness, self._documents, self._conflicts, self._quality):
            try:
                yield from list(read())
            except NornWeaveError as error:
                log.warning("metrics: %s", error)
                unreadable += 1
        yield _gauge(
            "unreadable_state", "Parts of the state that could not be read for this answer.", [((), unreadable)]
        )

    def _conflicts(self) -> Iterator[GaugeMetricFamily]:
        entries = len(self._seen.ledger.conflicts()["open"])
        yield _gauge("open_conflicts", "Entries of the conflict ledger that are not settled.", [((), entries)])

    def _freshness(self) -> Iterator[GaugeMetricFamily]:
        ages, behind, unreached = [], [], []
        for domain, agent in self._seen.agents.here().items():
            health = agent.health()
            behind.append(((domain.value,), _number(health.get("behind_s"))))
            if health.get("age_s") is not None:
                ages.append(((domain.value,), _number(health["age_s"])))
            if isinstance(replica := health.get("replica"), Mapping):
                checked_s = replica["checked_s"]
                unreached.append(((domain.value,), math.inf if checked_s is None else _number(checked_s)))
        yield _gauge("store_unreached_seconds", "Since a replica's store had everything.", unreached, OF_DOMAIN)
        yield _gauge("generation_age_seconds", "Since what answers was built.", ages, OF_DOMAIN)
        yield _gauge(
            "generation_behind_seconds", "For how long a newer generation has not answered.", behind, OF_DOMAIN
        )

    def _documents(self) -> Iterator[GaugeMetricFamily]:
        status = self._seen.documents.status()
        for name, help_text, field in (
            ("documents", "Documents of the last sync.", "documents"),
            ("chunks", "Chunks of the last sync.", "chunks"),
            ("failed_documents", "Documents that could not be read.", "failed"),
            ("unavailable_sources", "Sources that could not be listed.", "unavailable"),
        ):
            values = [((domain,), _size(document[field])) for domain, document in status.items()]  # type: ignore[literal-required]
            yield _gauge(name, help_text, values, OF_DOMAIN)
        copies = [((domain,), copy["behind_s"]) for domain, document in status.items() if (copy := document["copy"])]
        yield _gauge("store_behind_seconds", "For how long what is published is not in the store.", copies, OF_DOMAIN)
        held = [((domain,), sum(len(one["paths"]) for one in document["held"])) for domain, document in status.items()]
        yield _gauge("held_deletions", "Documents whose removal waits for a person.", held, OF_DOMAIN)

    def _quality(self) -> Iterator[GaugeMetricFamily]:
        newest: dict[tuple[str, str, str], dict[str, Any]] = {}
        for one in self._seen.quality.evaluations()["evaluations"]:
            if one["verdict"] != "refused":
                newest.setdefault((one["domain"], one["set"], one["scope"]), one["stages"].get(LAST_STAGE, {}))
        for measure, name in MEASURES.items():
            values = [(key, stages[measure]["mean"]) for key, stages in newest.items() if measure in stages]
            help_text = f"{measure} of the answers, measured last."
            yield _gauge(f"evaluation_{name}", help_text, values, ("domain", "set", "scope"))


class Measured:
    """Counts requests by route template. Requests without a route are counted as ``unmatched``."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 499  # as nginx calls a client that went before there was an answer

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self._metrics.in_progress.inc()
        try:
            await self._app(scope, receive, noting)
        finally:
            self._metrics.in_progress.dec()
            route = getattr(scope.get("route"), "path", None) or UNMATCHED
            method = scope["method"] if scope["method"] in METHODS else "other"
            self._metrics.observe_request(method, route, status, time.perf_counter() - started)


def reason_kind(reason: str) -> str:
    """Return the kind of a gap's reason. The text itself names times and files, so it would make too many labels."""
    if reason.startswith("timeout"):
        return "timeout"
    return "unpublished" if "nothing is published" in reason else "failed"


def _gauge(
    name: str, help_text: str, values: Iterable[tuple[tuple[str, ...], float]], labels: tuple[str, ...] = ()
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"nornweave_{name}", help_text, labels=labels)
    for key, value in values:
        family.add_metric(key, value)
    return family


def _size(value: object) -> float:
    return float(value) if isinstance(value, int | float) else float(len(value))  # type: ignore[arg-type]


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
