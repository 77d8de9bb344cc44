"""One domain's answer to a question from one generation: search, expand, rerank, cut, cite."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from nornweave.ask.search.combine import Ranking, merge, reorder
from nornweave.ask.search.exact import asks_for_newest
from nornweave.ask.search.expand import acronym_variants, should_expand, stated_category, variants
from nornweave.ask.search.folding import fold
from nornweave.ask.search.history import (
    asks_for_past,
    known_commits,
    last_changes,
    may_ask_for_past,
    newest_releases,
    not_in_history,
    of_past,
    past_first,
    weigh_changes,
    with_titles,
)
from nornweave.ask.search.items import citation_of, item_of
from nornweave.ask.search.query import Query, read_query
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import (
    DomainRank,
    Explanation,
    Placed,
    RecallItem,
    RecallResponse,
    RetrievalSource,
    SourceScore,
)
from nornweave.ask.search.rerank import NO_BONUSES, Ranked, rerank
from nornweave.ask.search.retrievers import is_said
from nornweave.ask.search.search import ExpandedOutcome, SearchContext, SearchOutcome, search
from nornweave.ask.search.signals import signals_of
from nornweave.config import DomainSettings
from nornweave.core.errors import RerankerError
from nornweave.core.text import analyzer
from nornweave.core.text.index_fields import PAST
from nornweave.core.text.negation import affirms, negated_terms
from nornweave.core.types import COMMIT, NO_METADATA, RELEASE, Domain
from nornweave.index.index import Index
from nornweave.index.port import NO_HITS, Hits, Mask, Numbers, Scores
from nornweave.index.records import StoredChunk
from nornweave.index.writing.build import DeclaredFilters
from nornweave.models.rerankers import Reranker, RerankerSlot

# `rerank: on` waits this long for a model that is still being loaded.
MODEL_WAIT_S = 60.0
# A match of a variant counts less than one of the query. An acronym and its long form mean the same, nearly always.
VARIANT_SHARE, ACRONYM_SHARE = 0.8, 0.9
OPPOSITE, LOOKED_AT = 0.25, 20
"""What a passage counts that affirms what is asked for as negated, and how many are looked at."""


def search_expanded(question: Question, context: SearchContext) -> ExpandedOutcome:
    """Search for a question and its acronym variants; for all variants if the plan or the question asks for it."""
    query, whole = read_query(question.text), context
    named = known_commits(question.text, context.generation)
    asks_past = context.domain == Domain.CODE and may_ask_for_past(question.text, named)
    past = of_past(context.generation) if asks_past else NO_HITS.numbers
    if len(past):
        context = replace(context, generation=context.generation.without(PAST))
    elif asks_for_newest(query) and len(others := of_past(context.generation)):
        others = np.setdiff1d(others, newest_releases(context.generation))
        context = _within(np.setdiff1d(np.flatnonzero(context.generation.within(())), others), context)
    outcomes = [search(query, context)]
    expands = _expands(question, outcomes[0], context)
    wordings = _variants(question, query, context, expands=expands)
    outcomes += [search(wording, context) for wording in wordings]
    share = VARIANT_SHARE if expands else ACRONYM_SHARE
    ranking = outcomes[0].ranking
    if wordings:
        ranking = merge(ranking, [outcome.ranking for outcome in outcomes[1:]], share)
    if len(past):
        outcomes.append(search(query, _within(past, whole)))
        found = with_titles(outcomes[-1].ranking, question.text, whole.generation)
        code = outcomes[0].ranking if asks_for_past(question.text, named) else None  # else both are asked for
        changes = weigh_changes(found, question.text, whole.generation, whole.within, code, question.now)
        ranking = past_first(merge(ranking, [changes], 1), question.text, whole.generation, whole.within)
    elif context.domain != Domain.CODE:
        ranking = below_opposite(ranking, question.text, context.generation)
    ranking, folded = fold(ranking, question.text, outcomes[0].places, whole.generation)
    said = tuple(wording.text for wording in wordings)
    return ExpandedOutcome(ranking, tuple(outcomes), said, folded, past=len(past) > 0)


def _within(numbers: Numbers, context: SearchContext) -> SearchContext:
    """Return a context that searches only these chunks."""
    mask: Mask = np.zeros(context.generation.size, np.bool_)
    mask[numbers] = True
    return replace(context, within=mask if context.within is None else mask & context.within)


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
    """Return the best rank that one of the chunks ``numbers`` has, itself or as folded behind another chunk.

    Args:
        wanted: how many items are asked for: the rank is compared with the last of these.

    Returns:
        The rank; ``None`` if no retriever found any of the chunks.
    """
    ranking = searched.ranking
    leading = [leader for leader, behind in searched.folded.items() if np.isin(behind, numbers).any()]
    places = np.flatnonzero(np.isin(ranking.numbers, [*numbers, *leading]))
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
        At most ``top_k`` items, best first, ties by chunk number. The caller measures the latency.
    """
    searched = search_expanded(question, context)
    reranker, missing = _reranker(question, context, slot)
    items, problems = select(question, searched, context, settings, reranker)
    first, generation, within = searched.outcomes[0], context.generation, context.within
    # Wordings that the question was expanded to come between these, and know no more words of it.
    as_asked = (first, searched.outcomes[-1]) if searched.past else (first,)
    leads = searched.past and items and items[0].metadata.get("kind") in {COMMIT, RELEASE}
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
        signals=replace(
            signals_of(read_query(question.text), as_asked[-1] if leads else first, items, context, as_asked),
            older=not_in_history(question.text, generation) if searched.past else "",
            last_changes=last_changes(question.text, generation) if searched.past else frozenset(),
        ),
    )


def _reranker(question: Question, context: SearchContext, slot: RerankerSlot) -> tuple[Reranker | None, list[str]]:
    """Return the cross-encoder (``None`` if the question uses none or it is not available), and notices."""
    if question.rerank == "off" or (question.rerank == "auto" and not context.plan.rerank):
        return None, []
    reranker = slot.reranker
    if reranker is None and question.rerank == "on":
        deadline = context.deadline
        remaining = MODEL_WAIT_S if deadline is None else max(0.0, deadline - time.monotonic())
        reranker = slot.wait(min(remaining, MODEL_WAIT_S))
    return reranker, [] if reranker else [f"not reranked by a model: {slot.state}"]


def _notices(generation: Index, settings: DomainSettings) -> Iterator[str]:
    """Yield notices if the generation was built with another analyzer or other filters."""
    built_with = generation.meta.get("analyzer")
    if built_with != analyzer.VERSION:
        yield f"built with analyzer {built_with}, queries are read by {analyzer.VERSION}; sync to rebuild"
    declared = DeclaredFilters(tuple(each for each in settings.filters if each.is_declared))
    if not declared.is_read_by(generation.meta.get("filters", "")):
        yield "filters were declared anew since the index was built; they find nothing before the next sync"


def _stages(question: Question, searched: ExpandedOutcome, context: SearchContext) -> dict[str, tuple[Placed, ...]]:
    """Return the best ``top_k`` of each retriever, of their combination, and of all wordings together."""
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


_Chosen: TypeAlias = tuple[float, int, Ranked | None]
"""A chunk in its place: minus its score, its number, what reranking says of it."""


def select(
    question: Question,
    searched: ExpandedOutcome,
    context: SearchContext,
    settings: DomainSettings,
    reranker: Reranker | None,
) -> tuple[tuple[RecallItem, ...], list[str]]:
    """Rerank more items than requested if a reranker is available, then cut to ``top_k``.

    Returns:
        At most ``top_k`` items, best first, ties by chunk number; and notices about problems.
    """
    heuristics = settings.plan.heuristics and question.rerank != "off"
    reranks = heuristics or reranker is not None
    wanted = question.top_k * (settings.reranking.overfetch_factor if reranks else 1)
    numbers, places = searched.ranking.numbers[:wanted], searched.ranking.places[:wanted].tolist()
    chunks = context.generation.chunks(numbers)
    # Ties by number: the first five are the first five of ten.
    chosen: list[_Chosen] = sorted(
        (-min(1.0, place), number, None) for place, number in zip(places, numbers.tolist(), strict=True)
    )
    problems: list[str] = []
    if reranks:
        items = [item_of(context, chunks[number], -score) for score, number, _ in chosen]
        model_scores, problems = _model_scores(question.text, items, reranker, context.deadline)
        ranked = rerank(
            items,
            query=question.text,
            domain=context.domain,
            settings=settings.reranking,
            now=question.now,
            model_scores=model_scores,
            heuristics=heuristics or model_scores is not None,
        )
        numbered = {chunk.chunk_id: number for number, chunk in chunks.items()}
        chosen = sorted((-each.score, numbered[each.item.chunk_id], each) for each in ranked)
    return _explain_items(chosen[: question.top_k], chunks, searched, context, explain=question.explain), problems


def _model_scores(
    query: str, items: Sequence[RecallItem], reranker: Reranker | None, deadline: float | None
) -> tuple[Scores | None, list[str]]:
    """Return a model's scores of items, and notices. The scores are ``None`` without a model or if it fails."""
    if reranker is None:
        return None, []
    try:
        return reranker.score(query, [item.content for item in items], deadline=deadline), []
    except RerankerError as error:
        return None, [str(error)]


def _explain_items(
    chosen: Sequence[_Chosen],
    chunks: Mapping[int, StoredChunk],
    searched: ExpandedOutcome,
    context: SearchContext,
    *,
    explain: bool,
) -> tuple[RecallItem, ...]:
    """Return the chosen items with vectors and sources. With ``explain`` they explain their scores."""
    numbers = np.array([number for _, number, _ in chosen], np.int32)
    behind = {number: searched.folded[number] for number in numbers.tolist() if number in searched.folded}
    is_chosen = np.zeros(context.generation.size, np.bool_)
    is_chosen[np.concatenate([numbers, *behind.values()])] = True
    sources: dict[int, dict[str, SourceScore]] = {number: {} for number in np.flatnonzero(is_chosen).tolist()}
    for outcome in searched.outcomes:
        for name, finding in outcome.findings.items():
            hits = finding.hits
            for place in np.flatnonzero(is_chosen[hits.numbers]).tolist():
                scored = SourceScore(place + 1, round(float(hits.scores[place]), 4))
                sources[int(hits.numbers[place])].setdefault(name, scored)  # of the first wording that found the chunk
    vectors = context.generation.vectors(numbers)
    alike = context.generation.chunks(np.concatenate([*behind.values()])) if behind else {}
    return tuple(
        item_of(
            context,
            chunks[number],
            -score,
            sources=next(filter(None, (sources[each] for each in (number, *behind.get(number, ())))), {}),
            rerank_score=ranked.model_score if ranked else None,
            explanation=_explanation(number, ranked, searched) if explain else None,
            vector=vector,
            folded=[alike[other] for other in behind.get(number, ())],
            told=searched.outcomes[0].told.get(number),
        )
        for (score, number, ranked), vector in zip(chosen, vectors, strict=False)
    )


def _explanation(number: int, ranked: Ranked | None, searched: ExpandedOutcome) -> Explanation:
    place = int(np.flatnonzero(searched.ranking.numbers == number)[0])
    return Explanation(
        weights=searched.outcomes[0].weights,
        contributions={name: float(part[place]) for name, part in searched.ranking.contributions.items()},
        combined=float(searched.ranking.scores[place]),
        bonuses=ranked.bonuses if ranked else NO_BONUSES,
        model_score=ranked.model_score if ranked else None,
        query_map=any(each.unmapped is not None for each in searched.outcomes[0].findings.values()),
    )


def leaving_out(question: Question, generation: Index) -> tuple[Question, Mask | None, dict[str, int]]:
    """Prepare a question that excludes words (``-redis``).

    Returns:
        The question, a mask of the chunks without an excluded word (``None`` if no word is excluded), and excluded word
        → the number of chunks that hold it. If passages contain a word with the minus sign, such as the flag ``-race``,
        it is not an exclusion and is put back into the question.
    """
    flags = [word for word in question.left_out if len(generation.containing(f" -{word}", 1))]
    words = [word for word in question.left_out if word not in flags]
    if flags:
        question = replace(question, text=" ".join((question.text, *(f"-{word}" for word in flags))))
    if not words:
        return question, None, {}
    left, counts = generation.within(()).copy(), {}  # of what the viewer may see: chunks are counted by it
    for word in words:
        chunks = generation.holding(analyzer.analyze(word))
        left[chunks], counts[word] = False, len(chunks)
    return question, left, counts


def below_opposite(ranking: Ranking, text: str, generation: Index) -> Ranking:
    """Return a ranking in which passages that affirm a negated word of the question come after the others."""
    negated = negated_terms(text)
    if not negated:
        return ranking
    chunks = generation.chunks(ranking.numbers[:LOOKED_AT])
    factors = np.ones(len(ranking))
    for place, number in enumerate(ranking.numbers[:LOOKED_AT].tolist()):
        chunk = chunks[number]
        if affirms("\n\n".join(filter(None, (chunk.title, chunk.section, chunk.content))), negated):
            factors[place] = OPPOSITE
    return reorder(ranking, factors)
