"""Search for a query and its variants, and merge the results into one ranking."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nornweave.ask.search.combine import Ranking, merge
from nornweave.ask.search.expand import acronym_variants, should_expand, stated_category, variants
from nornweave.ask.search.query import Query, read_query
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import Candidate, RetrievalSource
from nornweave.ask.search.retrievers import is_said
from nornweave.ask.search.search import SearchContext, SearchOutcome, search
from nornweave.core.types import NO_METADATA
from nornweave.index.port import Numbers

# A match of a variant counts less than one of the query. An acronym and its long form mean the same, nearly always.
VARIANT_SHARE, ACRONYM_SHARE = 0.8, 0.9


@dataclass(frozen=True, slots=True)
class ExpandedOutcome:
    """The ranking of a question, with what led to it.

    Attributes:
        ranking: of all wordings together.
        outcomes: of each wording, the question itself first.
        variants: the other wordings.
    """

    ranking: Ranking
    outcomes: tuple[SearchOutcome, ...]
    variants: tuple[str, ...]


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


def candidate_among(searched: ExpandedOutcome, numbers: Numbers, wanted: int) -> Candidate | None:
    """Return where the best of some chunks is ranked; ``None`` if no retriever found one of them.

    Args:
        searched: for a question.
        numbers: of the chunks.
        wanted: items that the question asks for.
    """
    ranking = searched.ranking
    places = np.flatnonzero(np.isin(ranking.numbers, numbers))
    if not len(places):
        return None
    last = ranking.scores[min(wanted, len(ranking)) - 1]
    hits = {name: finding.hits.numbers for name, finding in searched.outcomes[0].findings.items()}
    ranks = {name: np.flatnonzero(np.isin(held, numbers)) for name, held in hits.items()}
    retrievers = {name: int(held[0]) + 1 for name, held in ranks.items() if len(held)}
    return Candidate(int(places[0]) + 1, float(last - ranking.scores[places[0]]), retrievers)
