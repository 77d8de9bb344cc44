"""Run the control of a judged set that needs searches: dense retrieval with meaningless query vectors."""

from __future__ import annotations

from evals.controls import Control, MeaninglessEncoder, chance_recall, control_of
from evals.judgments import JudgedSet
from evals.measures import JudgedHits, measure
from evals.results import ResultScope, SetResult
from evals.runs import DOCUMENT_DEPTHS
from evals.searching import PathSearcher
from evals.targets import locate
from nornweave.ask.engine import Engine
from nornweave.ask.search.question import Question
from nornweave.core.access import OPERATOR
from nornweave.core.errors import QueryError
from nornweave.core.types import present

MOST_QUERIES = 50
"""Enough to tell chance from meaning."""
STAGE = "dense"
MEASURES = ("Recall@10", "RR@10")


def embeddings_off(engine: Engine, judged: JudgedSet, result: SetResult) -> tuple[Control, ...]:
    """Run a set with meaningless query vectors; empty if dense retrieval did not run.

    Args:
        result: of its evaluation, with a run in its own domain.
    """
    run, agent = result.scope(ResultScope.DOMAIN), engine.agents[result.domain]
    dense, memo = run.stage(STAGE) if run else None, agent.encoder()
    if dense is None or memo is None:
        return ()
    target = locate(PathSearcher(engine.path), judged, (result.domain,), count_missing=result.missing_counted)
    blind = agent.altered(encoder=MeaninglessEncoder(memo.encoder))
    places, grades = {}, {}
    for query in target.queries[:MOST_QUERIES]:
        relevant = target.relevant[query.id]
        hits = JudgedHits(relevant, target.domain, target.held)
        try:
            question = Question(
                text=query.text,
                now=present(),
                viewer=OPERATOR,
                top_k=DOCUMENT_DEPTHS[0],
                filters={result.domain: query.filters},
                trace=True,
            )
            found = [item.citation for item in blind.recall(question).stages.get(STAGE, ())]
        except QueryError:  # it has no answer in the evaluation either
            found = []
        places[query.id] = hits.places(found, by_document=hits.whole_documents)
        grades[query.id] = {judgment.key: judgment.grade for judgment in relevant}
    with agent.generation.use(OPERATOR) as generation:
        chance = {"Recall@10": chance_recall(generation.chunk_count)}
    measured = measure(places, grades, MEASURES)
    return tuple(
        control_of("embeddings off", STAGE, name, dense.metrics[name], measured[name], chance.get(name))
        for name in MEASURES
    )
