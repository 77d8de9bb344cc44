"""One domain's answer to a question out of one generation: search it, expand, rerank, cut, cite."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from nornweave.ask.search.combine import Ranking, merge
from nornweave.ask.search.expand import acronym_variants, should_expand, stated_category, variants
from nornweave.ask.search.items import citation_of
from nornweave.ask.search.query import Query, read_query
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import DomainRank, Placed, RecallResponse, RetrievalSource
from nornweave.ask.search.retrievers import is_said
from nornweave.ask.search.search import ExpandedOutcome, SearchContext, SearchOutcome, search
from nornweave.ask.search.selection import select
from nornweave.ask.search.signals import signals_of
from nornweave.config import DomainSettings
from nornweave.core.text import analyzer
from nornweave.core.types import NO_METADATA
from nornweave.index.index import Index
from nornweave.index.port import Numbers
from nornweave.index.searching.ranked_chunks import Hits
from nornweave.index.writing.declared import DeclaredFilters
from nornweave.models.rerankers import Reranker, RerankerSlot

# `rerank: on` waits this long for a model that is still being loaded.
MODEL_WAIT_S = 60.0
# A match of a variant counts less than one of the query. An acronym and its long form mean the same, nearly always.
VARIANT_SHARE, ACRONYM_SHARE = 0.8, 0.9


def search_expanded(question: Question, context: SearchContext) -> ExpandedOutcome:
    """Search for a question and its acronyms in the other form, or all its variants if the plan or it says so."""
    query = read_query(question.text)
    first = search(query, context)
    expands = _expands(question, first, context)
    wordings = _variants(question, query, context, expands=expands)
    others = [search(wording, context) for wording in wordings]
    share = VARIANT_SHARE if expands else ACRONYM_SHARE
    ranking = merge(first.ranking, [outcome.ranking for outcome in others], share) if others else first.ranking
    return ExpandedOutcome(ranking, (first, *others), tuple(wording.text for wording in wordings))


def _expands(question: Question, outcome: SearchOutcome, context: SearchContext) -> bool:
    if question.expand == "auto" and not context.plan.expand:
        return False
    # Nearest neighbours there always are: how many dense retrieval found says nothing.
    dense = RetrievalSource.DENSE.value
    candidates = {name: len(finding.hits) for name, finding in outcome.findings.items() if name != dense}
    return should_expand(question.text, candidates=candidates, switch=question.expand)


def _variants(question: Question, query: Query, context: SearchContext, *, expands: bool) -> list[Query]:
    if question.expand == "off":
        return []
    if expands:
        category = stated_category(question.filters.get(context.domain, NO_METADATA))
        return [read_query(variant) for variant in variants(query.text, category=category)]
    return [read_query(each) for each in acronym_variants(query.text, lambda text: is_said(text, context.generation))]


def rank_among(searched: ExpandedOutcome, numbers: Numbers, wanted: int) -> DomainRank | None:
    """Return where the best of some chunks is ranked; ``None`` if no retriever found one of them."""
    ranking = searched.ranking
    places = np.flatnonzero(np.isin(ranking.numbers, numbers))
    if not len(places):
        return None
    last = ranking.scores[min(wanted, len(ranking)) - 1]
    hits = {name: finding.hits.numbers for name, finding in searched.outcomes[0].findings.items()}
    ranks = {name: np.flatnonzero(np.isin(held, numbers)) for name, held in hits.items()}
    retrievers = {name: int(held[0]) + 1 for name, held in ranks.items() if len(held)}
    return DomainRank(int(places[0]) + 1, float(last - ranking.scores[places[0]]), retrievers)


def recall_from(
    question: Question, context: SearchContext, settings: DomainSettings, slot: RerankerSlot
) -> RecallResponse:
    """Answer a question from one generation.

    Returns:
        At most ``top_k`` items, best first, ties by chunk number; the latency is the caller's to measure.
    """
    searched = search_expanded(question, context)
    reranker, missing = _reranker(question, context, slot)
    items, problems = select(question, searched, context, settings, reranker)
    first, generation, within = searched.outcomes[0], context.generation, context.within
    total = generation.chunk_count if within is None else int(within.sum())
    nothing = ["nothing passes the filters"] if generation.chunk_count and not total else []
    return RecallResponse(
        agent_id=settings.agent_id,
        domain_id=context.domain,
        generation=generation.meta["generation"],
        indexed_at=generation.built_at,
        items=items,
        retrieval=searched.states,
        total_searched=total,
        latency_ms=0.0,
        notices=(*nothing, *_notices(generation, settings), *first.reasons.values(), *missing, *problems),
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
