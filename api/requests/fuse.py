"""Any agents' answers: the body of ``POST /fuse``.

What stands around the answers is checked strictly, the answers themselves as in ``nornweave/ask/agents/answers.py``.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Self

from pydantic import Field, model_validator

from api.requests import Body
from api.requests.query import (
    MAX_TIMEOUT_MS,
    DiversityField,
    ScoreField,
    StrategyField,
    SynthesizeField,
    TokensField,
)
from nornweave.ask.agents.exchange import MAX_ITEMS, Foreign, ResponseBody
from nornweave.ask.fuse.records import Recalled
from nornweave.ask.search.question import ConflictStrategy, Question
from nornweave.ask.search.records import CoverageGap
from nornweave.core.text.checked_values import DomainId, Line, Moment, QuestionText, Share

MAX_RESPONSES = 1_000


class GapBody(Foreign):
    """An agent that gave no answer, and why."""

    domain_id: DomainId
    agent_id: Line = ""
    reason: Line


class FuseBody(Body):
    """Answers of any agents to one question; only `original_text` and `responses` are required."""

    original_text: Annotated[QuestionText, Field(description="the question that they answer")]
    responses: Annotated[
        list[ResponseBody], Field(max_length=MAX_RESPONSES, description=f"together at most {MAX_ITEMS:,} items")
    ]
    coverage_gaps: Annotated[list[GapBody], Field(max_length=MAX_RESPONSES)] = []
    conflict_strategy: StrategyField = None
    domain_signals: Annotated[
        dict[DomainId, Share],
        Field(max_length=100, description="domain → how strongly the question is about it; 0.5 unless it is here"),
    ] = {}
    synthesize: SynthesizeField = False
    now: Annotated[Moment | None, Field(description="what recency is counted from; null is the present")] = None
    top_k: Annotated[int | None, Field(ge=1, le=MAX_ITEMS, description="items wanted; null keeps all")] = None
    max_tokens: TokensField = None
    min_score: ScoreField = None
    diversity: DiversityField = None
    timeout_ms: Annotated[
        int | None, Field(ge=1, le=MAX_TIMEOUT_MS, description="for waiting for a turn, and for the synthesis")
    ] = None

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self._items > MAX_ITEMS:
            raise ValueError(f"{self._items:,} items in all responses; allowed are {MAX_ITEMS:,}")
        return self

    @property
    def _items(self) -> int:
        return sum(len(response.items) for response in self.responses)

    def question(self, arrived: Question) -> Question:
        """Return the question that the agents answered, as fusion takes it."""
        return replace(
            arrived,
            text=self.original_text,
            now=self.now or arrived.now,
            top_k=max(1, self._items) if self.top_k is None else self.top_k,
            strategy=ConflictStrategy(self.conflict_strategy) if self.conflict_strategy else None,
            max_tokens=self.max_tokens,
            min_score=self.min_score,
            diversity=self.diversity,
            synthesize=self.synthesize,
        )

    def recalled(self) -> Recalled:
        """Return the answers as fusion takes them."""
        return Recalled(
            asked={response.domain_id: response.agent_id for response in self.responses},
            responses=tuple(response.response() for response in self.responses),
            coverage_gaps=tuple(CoverageGap(gap.domain_id, gap.agent_id, gap.reason) for gap in self.coverage_gaps),
            domain_signals=MappingProxyType(dict(self.domain_signals)),
        )
