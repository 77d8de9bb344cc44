"""The path of a query: ``route → recall in every domain at once → fuse → (synthesise | render)``."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

from nornweave.budget import fit
from nornweave.documents import (
    CoverageDocument,
    FusionResult,
    conflict_document,
    fused_item_document,
    synthesis_document,
)
from nornweave.fusion.pipeline import Stopwatch, fuse
from nornweave.fusion.records import CoverageGap, Fused, FuseRequest, Synthesis
from nornweave.fusion_settings import FusionSettings
from nornweave.gathering import Question, asked_agents, recall_everywhere, remaining_ms
from nornweave.recall.agent import Agent
from nornweave.recall.query import check_query
from nornweave.recall.records import RecallResponse
from nornweave.render import render_text
from nornweave.routing import combine_signals, domain_signals, query_type
from nornweave.synthesis import Synthesizer
from nornweave.types import Domain

__all__ = ["Answer", "Question", "answer", "fuse_answers", "fuse_responses"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer out of several agents'.

    Attributes:
        request: what was fused.
        fused: what came of it.
        synthesis: what a model made of it; ``None`` when none was asked for.
        asked: domain → agent: of all that were asked, in their order; where others asked, of those that answered.
        total_latency_ms: from the question to here.
    """

    request: FuseRequest
    fused: Fused
    synthesis: Synthesis | None
    asked: Mapping[str, str]
    total_latency_ms: float

    def document(self) -> FusionResult:
        """Return it as contract §4 has it."""
        fused, request = self.fused, self.request
        return {
            "query_id": str(uuid.uuid4()),
            "query": request.text,
            "items": [fused_item_document(item, fused.conflicts) for item in fused.items],
            "synthesis": self.synthesis.text if self.synthesis else None,
            "synthesis_details": synthesis_document(self.synthesis) if self.synthesis else None,
            "conflicts": [conflict_document(conflict) for conflict in fused.conflicts],
            "coverage": _coverage(self.asked, request.responses, fused.coverage_gaps),
            "coverage_gaps": [
                {"domain_id": gap.domain_id, "agent_id": gap.agent_id, "reason": gap.reason}
                for gap in fused.coverage_gaps
            ],
            "domains_queried": list(self.asked),
            "domain_signals": {domain: round(value, 3) for domain, value in request.domain_signals.items()},
            "query_type": query_type(request.text).value,
            "normalization": fused.normalization,
            "duplicates_removed": len(fused.merges),
            "stats": {
                "total_items": fused.statistics["total_items"],
                "deduplicated_items": fused.statistics["deduplicated_items"],
                "final_items": fused.statistics["final_items"],
                "estimated_tokens": fused.statistics["estimated_tokens"],
            },
            "stage_latency_ms": dict(fused.stage_latency_ms),
            "total_latency_ms": round(self.total_latency_ms, 3),
            "trace_id": uuid.uuid4().hex,
        }

    def text(self, max_chars_per_source: int) -> str:
        """Return it as text with a section a domain (WIKI)."""
        return render_text(
            self.fused.items,
            conflicts=self.fused.conflicts,
            coverage_gaps=self.fused.coverage_gaps,
            synthesis=self.synthesis,
            max_chars_per_source=max_chars_per_source,
        )


def answer(
    question: Question,
    agents: Mapping[Domain, Agent],
    executors: Mapping[Domain, Executor],
    settings: FusionSettings | None = None,
    synthesizer: Synthesizer | None = None,
) -> Answer:
    """Answer a question from everything that can be asked.

    Args:
        question: what is asked.
        agents: who can be asked.
        executors: where each domain's agent works.
        settings: of fusion; the defaults unless given.
        synthesizer: writes the answer where one is asked for.

    Returns:
        The answer; a domain that could not be searched is a coverage gap.

    Raises:
        QueryError: the question asks for something that cannot be; nothing is searched then.
    """
    check_query(question.text, question.top_k)
    settings = settings or FusionSettings()
    if question.timeout_ms is None and not question.trace:
        question = replace(question, timeout_ms=round(settings.fusion_timeout_seconds * 1000))
    started = time.monotonic()
    if question.synthesize and synthesizer:
        synthesizer.prepare()  # loading takes seconds the first time; the domains are asked meanwhile
    asked = asked_agents(question, agents, settings.fusion_max_sources)
    responses, gaps = recall_everywhere(question, asked, executors)
    recalled_ms = (time.monotonic() - started) * 1000
    left = replace(question, timeout_ms=remaining_ms(question.timeout_ms, started))
    answered = fuse_responses(left, responses, gaps, settings, synthesizer)
    stages = {"recall": round(recalled_ms, 3), **answered.fused.stage_latency_ms}
    return replace(
        answered,
        fused=replace(answered.fused, stage_latency_ms=stages),
        asked={domain.value: agent.agent_id for domain, agent in asked.items()},
        total_latency_ms=(time.monotonic() - started) * 1000,
    )


def fuse_responses(
    question: Question,
    responses: Mapping[Domain, RecallResponse],
    gaps: tuple[CoverageGap, ...],
    settings: FusionSettings,
    synthesizer: Synthesizer | None = None,
) -> Answer:
    """Fuse what the domains answered to a question; ``timeout_ms`` of the question is for the synthesis."""
    request = FuseRequest(
        text=question.text,
        responses=tuple(responses.values()),
        coverage_gaps=gaps,
        strategy=question.strategy,
        domain_signals=_signals(question.text, responses),
        now=question.now,
        top_k=question.top_k,
        max_tokens=question.max_tokens,
        min_score=question.min_score,
        diversity=question.diversity,
        synthesize=question.synthesize,
        timeout_ms=question.timeout_ms,
    )
    return fuse_answers(request, settings, synthesizer)


def fuse_answers(request: FuseRequest, settings: FusionSettings, synthesizer: Synthesizer | None = None) -> Answer:
    """Make one answer out of any agents' answers (PIPELINE, ``POST /fuse``)."""
    started = time.monotonic()
    fused = _fitted(request, fuse(request, settings))
    synthesis = _synthesis(request, fused, synthesizer) if request.synthesize else None
    asked = {response.domain_id: response.agent_id for response in request.responses}
    return Answer(
        request=request,
        fused=fused,
        synthesis=synthesis,
        asked=asked,
        total_latency_ms=(time.monotonic() - started) * 1000,
    )


def _fitted(request: FuseRequest, fused: Fused) -> Fused:
    """Cut to what was asked for; conflicts stay of which a side is shown, others are between items that nobody sees."""
    clock = Stopwatch()
    fitted = clock.time(
        "budget",
        lambda: fit(
            fused.items,
            request.text,
            top_k=len(fused.items) if request.top_k is None else request.top_k,
            max_tokens=request.max_tokens,
            min_score=request.min_score,
            diversity=request.diversity,
        ),
    )
    chunks = {ranked.tagged.item.chunk_id for ranked in fitted.items}
    kept = [place for place, conflict in enumerate(fused.conflicts) if chunks.intersection(conflict.items)]
    places = {place: new for new, place in enumerate(kept)}
    sizes = {"final_items": len(fitted.items), "estimated_tokens": fitted.estimated_tokens}
    return replace(
        fused,
        items=tuple(replace(one, conflict=None if one.conflict is None else places[one.conflict])
                    for one in fitted.items),
        conflicts=tuple(fused.conflicts[place] for place in kept),
        statistics={**fused.statistics, **sizes},
        stage_latency_ms={**fused.stage_latency_ms, **clock.milliseconds},
    )  # fmt: skip


def _signals(text: str, responses: Mapping[Domain, RecallResponse]) -> dict[str, float]:
    """Return how strongly a question is about each domain: what its words say and how well each domain answered."""
    evidence = {
        domain: min(max(response.items[0].score, 0.0), 1.0) for domain, response in responses.items() if response.items
    }
    return {domain.value: value for domain, value in combine_signals(domain_signals(text), evidence).items()}


def _synthesis(request: FuseRequest, fused: Fused, synthesizer: Synthesizer | None) -> Synthesis:
    if synthesizer is None:
        return Synthesis(text=None, reason="no model is configured")
    if not fused.items:
        return Synthesis(text=None, reason="nothing was found to write about")
    return synthesizer.synthesize(
        request.text, fused.items, fused.conflicts, fused.coverage_gaps, timeout_ms=request.timeout_ms
    )


def _coverage(
    asked: Mapping[str, str], responses: Sequence[RecallResponse], gaps: Sequence[CoverageGap]
) -> dict[str, CoverageDocument]:
    answered = {response.domain_id: response for response in responses}
    reasons = {gap.domain_id: gap.reason for gap in gaps}
    return {
        domain: _covered(answered[domain])
        if domain in answered
        else {"searched": False, "reason": reasons.get(domain, "gave no answer")}
        for domain in dict.fromkeys((*asked, *reasons))
    }


def _covered(response: RecallResponse) -> CoverageDocument:
    return {
        "searched": True,
        "agent_id": response.agent_id,
        "generation": response.generation,
        "indexed_at": response.indexed_at,
        "total_searched": response.total_searched,
        "retrieval": dict(response.retrieval),
        "latency_ms": response.latency_ms,
        "notices": list(response.notices),
    }
