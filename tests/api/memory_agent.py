"""An agent held in memory: answers with the texts that it is given; some queries stand for what goes wrong."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from nornweave.ask.search.question import Question
from nornweave.ask.search.records import (
    AgentState,
    Citation,
    Explanation,
    Filters,
    RecallItem,
    RecallResponse,
    SourceScore,
)
from nornweave.core.access.viewer import ANYONE, Viewer
from nornweave.core.errors import NoGenerationError, QueryError, StoreError
from nornweave.core.types import ChunkId, Domain, freeze


@dataclass
class MemoryAgent:
    """Answers every request with as many items as it holds texts; some queries stand for what goes wrong."""

    domain: Domain
    texts: tuple[str, ...] = ("def pay(): ...", "def refund(): ...")
    state: AgentState = AgentState.READY
    generation: str | None = "gen-000001"
    seconds: float = 0.0
    prefix: str = ""
    released: threading.Event | None = None
    fails: str | None = None
    asked: list[Question] = field(default_factory=list)
    left_ms: list[int | None] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def agent_id(self) -> str:
        return f"{self.domain.value}-memory"

    @property
    def ingestion_problem(self) -> str | None:
        return "its encoder is lost" if self.state is AgentState.DEGRADED else None

    def recall(self, question: Question) -> RecallResponse:
        with self._lock:
            self.asked.append(question)
            self.left_ms.append(question.deadline.left_ms if question.deadline else None)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if self.released:
                self.released.wait(self.seconds)
            else:
                time.sleep(self.seconds)
            return self._answer(question)
        finally:
            with self._lock:
                self.at_once -= 1

    def _answer(self, question: Question) -> RecallResponse:
        if self.generation is None:
            raise NoGenerationError(f"{self.domain.value}: nothing is published yet; run `nornweave sync`")
        if question.text == "damaged" or self.fails == "store":
            raise StoreError("gen-000001: cannot be read, roll back or sync again")
        if question.text == "defect" or self.fails == "defect":
            raise KeyError("secret detail of the implementation")
        if question.text == "wrong text":
            raise QueryError("query", "no words in it")
        self.conditions(question.filters.get(self.domain, {}))
        items = tuple(self._item(number, question) for number in range(min(question.top_k, len(self.texts))))
        return RecallResponse(
            agent_id=self.agent_id,
            domain_id=self.domain,
            generation=self.generation,
            indexed_at="2026-01-20T10:00:00Z",
            items=items,
            retrieval=MappingProxyType({"dense": "ok", "sparse": "empty", "fulltext": "off", "structured": "failed"}),
            total_searched=len(self.texts),
            latency_ms=1.23456,
            notices=("structured: not built",),
            expansions=("pay money",) if question.expand == "on" else (),
        )

    def _item(self, number: int, question: Question) -> RecallItem:
        return RecallItem(
            chunk_id=ChunkId(f"{self.prefix}chunk-{number}"),
            content=self.texts[number],
            score=0.9 - number / 10,
            citation=memory_citation(self.domain, number),
            sources=MappingProxyType({"dense": SourceScore(number + 1, 0.71)}),
            rerank_score=0.5 if question.rerank == "on" else None,
            metadata=freeze({"language": "python", "nested": freeze({"a": ("b", 1)})}),
            explanation=Explanation(
                weights={"dense": 1.0}, contributions={"dense": 0.5}, combined=0.5, bonuses={"symbol_match": 0.15}
            )
            if question.explain
            else None,
        )

    def conditions(self, filters: Filters) -> None:
        for key in filters:
            if key != "language":
                raise QueryError(f"filters.{self.domain.value}.{key}", "unknown filter; allowed: language")

    def start(self) -> None:
        """Has nothing to load; the real engine starts what it holds."""

    def refresh(self) -> None:
        """Has nothing newer."""

    def follow(self, plan: object) -> None:
        """Has no use for a plan."""

    def close(self) -> None:
        """Has nothing to end."""

    def describe(self, viewer: Viewer = ANYONE) -> dict[str, Any]:
        return {
            "agent_id": self.agent_id,
            "domain_id": self.domain,
            "name": self.domain.value.title(),
            "description": "Held in memory.",
            "filters": [{"key": "language", "type": "string"}],
            "generation": self.generation,
        }

    def facets(self, viewer: Viewer = ANYONE) -> dict[str, list[tuple[str, int]]]:
        return {"language": [("python", 2)]} if self.generation else {}

    def health(self, viewer: Viewer = ANYONE) -> dict[str, Any]:
        missing = "nothing is published yet; run `nornweave sync`"
        return {
            "state": self.state,
            "generation": self.generation,
            "published": self.generation,
            "indexed_at": "2026-01-20T10:00:00Z" if self.generation else None,
            "age_s": 60.0 if self.generation else None,
            "behind_s": 0.0,
            "checks": {"generation": "ok" if self.generation else missing},
            "statistics": {"requests": len(self.asked)},
            "notices": [] if self.generation else [missing],
        }


def memory_citation(domain: Domain, number: int) -> Citation:
    """Say where the agent's items stand."""
    return Citation(
        domain_id=domain,
        source_id="payments",
        source_path=f"src/größe/{number}.py",
        timestamp=datetime(2026, 1, 20, 10, tzinfo=UTC),
        line_range=(1, 2),
        char_range=(0, 10),
        page=None,
        section=None,
        message_ids=("1.0", "2.0") if number else None,
        url=None,
        title="pay",
        revision="abc1234",
        stale=False,
    )
