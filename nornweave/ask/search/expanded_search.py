"""Search for a query and its variants, and merge the results into one ranking."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np

from nornweave.ask.search.combine import Ranking, merge
from nornweave.ask.search.expand import acronym_variants, should_expand, variants
from nornweave.ask.search.items import citation_of
from nornweave.ask.search.query import Query, read_query
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import Placed, RetrievalSource
from nornweave.ask.search.retrievers import is_said
from nornweave.ask.search.search import SearchOutcome, search
from nornweave.config import PlanSettings
from nornweave.core.types import Domain
from nornweave.index.index import Index
from nornweave.index.port import Mask, Vectors
from nornweave.index.ranked_chunks import Hits

# Candidates of each retrieval source, whatever is asked for: combining and reranking need more than they return, and
# ten items must be the first ten of a hundred.
CANDIDATES = 200
# What a variant of the query finds counts for less than what the query itself finds.
VARIANT_SHARE = 0.8
# An acronym and its long form mean the same; not 1, for either may mean something else here.
ACRONYM_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class ExpandedQuery:
    """The ranking of a query, with the stages that led to it.

    Attributes:
        ranking: of all wordings together.
        found: by each wording, the query itself first.
        variants: the other wordings.
    """

    ranking: Ranking
    found: tuple[SearchOutcome, ...]
    variants: tuple[str, ...]


def ask(
    question: Question,
    generation: Index,
    plan: PlanSettings,
    *,
    encode: Callable[[str], Vectors],
    executor: Executor,
    dense_executor: Executor,
    within: Mask | None,
    deadline: float | None,
    category: str | None = None,
) -> ExpandedQuery:
    """Search for a query and, if the plan or the request asks for it, for its variants.

    Args:
        question: what is asked.
        generation: where.
        plan: how.
        encode: returns the vector of a text, or raises ``EncoderError``.
        executor: where retrieval sources run, except dense retrieval.
        dense_executor: where that runs.
        within: which chunks may be found.
        deadline: of ``time.monotonic()``; a source that misses it is named in what is found.
        category: the error category that is filtered by.
    """

    def found_by(query: Query) -> SearchOutcome:
        return search(
            query,
            generation,
            plan,
            encode=encode,
            depth=CANDIDATES,
            executor=executor,
            dense_executor=dense_executor,
            within=within,
            deadline=deadline,
        )

    asked = read_query(question.text)
    found = [found_by(asked)]
    expands = _expands(question, found[0], plan)
    others = _variants(question, asked, generation, category, expands=expands)
    found += [found_by(query) for query in others]
    ranking = found[0].ranking
    if others:
        ranking = merge(ranking, [one.ranking for one in found[1:]], VARIANT_SHARE if expands else ACRONYM_SHARE)
    return ExpandedQuery(ranking, tuple(found), tuple(query.text for query in others))


def stages_of(
    question: Question, asked: ExpandedQuery, generation: Index, domain: Domain
) -> dict[str, tuple[Placed, ...]]:
    """Return what each source found of the query, and what came of combining and expanding it; ``top_k`` of each."""
    hits = {name: finding.hits for name, finding in asked.found[0].findings.items()}
    hits["combined"] = _hits(asked.found[0].ranking)
    if asked.variants:
        hits["expanded"] = _hits(asked.ranking)
    numbers = np.unique(np.concatenate([one.numbers[: question.top_k] for one in hits.values()]))
    chunks = generation.chunks(numbers)
    return {
        stage: tuple(
            Placed(score, citation_of(domain, chunks[number]))
            for number, score in zip(one.numbers[: question.top_k].tolist(), one.scores.tolist(), strict=False)
        )
        for stage, one in hits.items()
    }


def _variants(
    question: Question, asked: Query, generation: Index, category: str | None, *, expands: bool
) -> list[Query]:
    """Return other ways to put the query: those with its acronyms the other way round, or all where it ``expands``.

    Spelling out an acronym does not turn a quotation into a question, nor the other way round.
    """
    if question.expand == "off":
        return []
    if expands:
        return [read_query(variant) for variant in variants(asked.text, category=category)]
    acronyms = acronym_variants(asked.text, lambda text: is_said(text, generation))
    return [replace(read_query(variant), is_literal=asked.is_literal) for variant in acronyms]


def _expands(question: Question, found: SearchOutcome, plan: PlanSettings) -> bool:
    if question.expand == "off" or (question.expand == "auto" and not plan.expand):
        return False
    # Nearest neighbours there always are: how many dense retrieval found says nothing.
    dense = RetrievalSource.DENSE.value
    candidates = {name: len(finding.hits) for name, finding in found.findings.items() if name != dense}
    return should_expand(question.text, candidates=candidates, switch=question.expand)


def _hits(ranking: Ranking) -> Hits:
    return Hits(ranking.numbers, ranking.places.astype(np.float32))
