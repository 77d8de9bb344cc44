"""One domain's answer to a question out of one generation: search it, expand, rerank, cut, cite."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from nornweave.ask.search.combine import Ranking
from nornweave.ask.search.expanded_search import ExpandedOutcome, search_expanded
from nornweave.ask.search.items import citation_of
from nornweave.ask.search.query import read_query
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import Placed, RecallResponse
from nornweave.ask.search.search import SearchContext
from nornweave.ask.search.selection import select
from nornweave.ask.search.signals import signals_of
from nornweave.config import DomainSettings
from nornweave.core.text import analyzer
from nornweave.index.declared import DeclaredFilters
from nornweave.index.index import Index
from nornweave.index.ranked_chunks import Hits
from nornweave.models.rerankers import Reranker, RerankerSlot

# `rerank: on` waits this long for a model that is still being loaded.
MODEL_WAIT_S = 60.0


def recall_from(
    question: Question, context: SearchContext, settings: DomainSettings, slot: RerankerSlot
) -> RecallResponse:
    """Answer a question from one generation.

    Args:
        question: what is asked.
        context: what is searched, and how.
        settings: of the domain.
        slot: holds the domain's cross-encoder, if any.

    Returns:
        At most ``top_k`` items, best first, ties by chunk number; the latency is the caller's to measure.
    """
    searched = search_expanded(question, context)
    reranker, missing = _reranker(question, context, slot)
    items, problems = select(question, searched, context, settings, reranker)
    first, generation, within = searched.outcomes[0], context.generation, context.within
    return RecallResponse(
        agent_id=settings.agent_id,
        domain_id=context.domain,
        generation=generation.meta["generation"],
        indexed_at=generation.built_at,
        items=items,
        retrieval=first.states,
        total_searched=generation.chunk_count if within is None else int(within.sum()),
        latency_ms=0.0,
        notices=(*_notices(generation, settings), *first.reasons.values(), *missing, *problems),
        expansions=searched.variants,
        stages=_stages(question, searched, context) if question.trace else {},
        calibrated=context.plan.combine == "convex",
        encoder=generation.meta.get("encoder"),
        signals=signals_of(read_query(question.text), first, items, context),
    )


def _reranker(question: Question, context: SearchContext, slot: RerankerSlot) -> tuple[Reranker | None, list[str]]:
    """Return the cross-encoder if this question uses one, or what to say where it cannot."""
    if question.rerank == "off" or (question.rerank == "auto" and not context.plan.rerank):
        return None, []
    reranker = slot.reranker
    if reranker is None and question.rerank == "on":
        deadline = context.deadline
        remaining = MODEL_WAIT_S if deadline is None else max(0.0, deadline - time.monotonic())
        reranker = slot.wait(min(remaining, MODEL_WAIT_S))
    return reranker, [] if reranker else [f"not reranked by a model: {slot.state}"]


def _notices(generation: Index, settings: DomainSettings) -> Iterator[str]:
    """Say where a generation was built otherwise than questions are read now."""
    built_with = generation.meta.get("analyzer")
    if built_with != analyzer.VERSION:
        yield f"built with analyzer {built_with}, queries are read by {analyzer.VERSION}; sync to rebuild"
    declared = DeclaredFilters(tuple(each for each in settings.filters if each.is_declared))
    if not declared.is_read_by(generation.meta.get("filters", "")):
        yield "filters were declared anew since the index was built; they find nothing before the next sync"


def _stages(question: Question, searched: ExpandedOutcome, context: SearchContext) -> dict[str, tuple[Placed, ...]]:
    """Return the best ``top_k`` of each source for the query, of them combined, and of all its wordings together."""
    first = searched.outcomes[0]
    hits = {name: finding.hits for name, finding in first.findings.items()}
    hits["combined"] = _hits(first.ranking)
    if searched.variants:
        hits["expanded"] = _hits(searched.ranking)
    numbers = np.unique(np.concatenate([each.numbers[: question.top_k] for each in hits.values()]))
    chunks = context.generation.chunks(numbers)
    return {
        stage: tuple(
            Placed(score, citation_of(context.domain, chunks[number]))
            for number, score in zip(each.numbers[: question.top_k].tolist(), each.scores.tolist(), strict=False)
        )
        for stage, each in hits.items()
    }


def _hits(ranking: Ranking) -> Hits:
    return Hits(ranking.numbers, ranking.places.astype(np.float32))
