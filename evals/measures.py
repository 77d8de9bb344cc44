"""Measures of a ranking, with bootstrap intervals. Pure: no storage, no search.

A ranking is a sequence of *places*, best first, and a place is the judgments that it is the first to hit: none for an
item that answers nothing, or nothing new; more than one for a chunk that holds two judged messages. It is measured in
two views:

- by place, one document a place: ``RR@10``, ``P@5`` and ``Success@1`` ask how far a person has to look;
- by judgment, the judgments of one place one after the other: ``Recall@10`` and ``nDCG@10`` ask how much of what was
  judged is found, and a chunk that holds two answers has found two.

Where every place hits one judgment at most, both are the ordinary TREC run, and the values are those of trec_eval to
the last bit (``tests/evals/test_measures.py`` compares with ``ir_measures``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from evals.judgments import Judgment
from nornweave.ask.search.records import Citation
from nornweave.core.types import Domain
from nornweave.improve.comparison import bootstrap_interval

Ranking: TypeAlias = Sequence[Sequence[str]]
"""Places, best first; each the judgments that it is the first to hit, best grade first."""

DEEPEST = 10
"""No measure looks at places below this one."""

Grades: TypeAlias = Sequence[int]
"""Grades down a ranking, best first: above 0 is relevant."""


def _relevant(grades: Iterable[int]) -> int:
    return sum(grade > 0 for grade in grades)


def _dcg(grades: Grades) -> float:
    # One after the other, as trec_eval adds them; fsum would differ in the last bit.
    total = 0.0
    for rank, grade in enumerate(grades[:DEEPEST], start=1):
        total += max(grade, 0) / math.log2(rank + 1)
    return total


def _recall(found: Grades, judged: Grades) -> float:
    """Return set recall over the first ten places. A cutoff of ten judgments would lose those that share a place."""
    return _relevant(found) / _relevant(judged)


def _ndcg(found: Grades, judged: Grades) -> float:
    """Return DCG divided by that of the best order, with the grade as the gain (Järvelin & Kekäläinen, TOIS 2002)."""
    return _dcg(found) / _dcg(sorted(judged, reverse=True))


def _reciprocal_rank(found: Grades, _judged: Grades) -> float:
    return next((1 / rank for rank, grade in enumerate(found, start=1) if grade > 0), 0.0)


def _precision_at_5(found: Grades, _judged: Grades) -> float:
    return _relevant(found[:5]) / 5


def _success_at_1(found: Grades, _judged: Grades) -> float:
    return float(_relevant(found[:1]))


_MEASURES: Mapping[str, Callable[[Grades, Grades], float]] = {
    "Recall@10": _recall,
    "RR@10": _reciprocal_rank,
    "nDCG@10": _ndcg,
    "P@5": _precision_at_5,
    "Success@1": _success_at_1,
}
_BY_JUDGMENT = frozenset({"Recall@10", "nDCG@10"})
MEASURES = tuple(_MEASURES)


@dataclass(frozen=True, slots=True)
class Metric:
    """A measure's value over all queries.

    Attributes:
        mean: over every judged query; one without an answer counts 0.
        low: lower end of the 95 % bootstrap interval of the mean.
        high: upper end.
    """

    mean: float
    low: float
    high: float
    values: Mapping[str, float]


def measure(
    rankings: Mapping[str, Ranking], grades: Mapping[str, Mapping[str, int]], names: Collection[str] = MEASURES
) -> Mapping[str, Metric]:
    """Measure the rankings of one stage.

    Args:
        rankings: by query, their places naming judgments of ``grades``; a judged query that has none counts 0.
        grades: by query the grades of its judgments; every query has one above 0.
        names: of ``MEASURES``.

    Returns:
        By name, in the order of ``MEASURES``.

    Raises:
        ValueError: a query has no judgment above 0 (recall would be 0/0), or there is no query.
    """
    if unjudged := [query for query, of_query in grades.items() if max(of_query.values(), default=0) <= 0]:
        raise ValueError(f"query {unjudged[0]!r} has no judgment above grade 0; leave it out")
    if not grades:
        raise ValueError("no judged query; nothing can be measured")
    values: dict[str, dict[str, float]] = {name: {} for name in MEASURES if name in names}
    for query, graded in grades.items():
        judged = tuple(graded.values())
        places = [[graded[key] for key in keys] or [0] for keys in rankings.get(query, ())[:DEEPEST]]
        by_judgment, by_place = [grade for place in places for grade in place], [place[0] for place in places]
        for name, of_measure in values.items():
            found = by_judgment if name in _BY_JUDGMENT else by_place
            of_measure[query] = _MEASURES[name](found, judged)
    return MappingProxyType({name: metric_of(of_measure) for name, of_measure in values.items()})


def metric_of(values: Mapping[str, float]) -> Metric:
    """Average values over queries, with a percentile bootstrap interval (Efron & Tibshirani 1993, ch. 13; seeded)."""
    samples = np.fromiter(values.values(), dtype=np.float64, count=len(values))
    low, high = bootstrap_interval(samples)
    return Metric(math.fsum(samples) / len(samples), low, high, MappingProxyType(dict(values)))


class JudgedHits:
    """One query's relevant judgments by domain and path.

    Args:
        judgments: the relevant ones.
        own: the judged set's domain.
        held: path → domain that holds it. An item of another domain that happens to have the same path is no hit.
    """

    def __init__(self, judgments: Sequence[Judgment], own: Domain, held: Mapping[str, Domain]) -> None:
        self.whole_documents = bool(judgments) and all(judgment.whole_document for judgment in judgments)
        self._judgments: dict[tuple[str, str], list[Judgment]] = {}
        for judgment in sorted(judgments, key=lambda one: (-one.grade, one.key)):
            for path in judgment.paths:
                for domain in {own, held.get(path, own)}:
                    self._judgments.setdefault((domain, path), []).append(judgment)

    def places(self, ranking: Iterable[Citation], *, by_document: bool) -> tuple[tuple[str, ...], ...]:
        """Turn a ranking into places: for each item the judgments that it is the first to hit, best grade first.

        A judgment is hit once, at the best rank. An item that hits nothing new keeps its place and gains nothing: the
        reader has to pass it.

        Args:
            ranking: best first.
            by_document: drop the later chunks of a document already listed before ranks are counted, as document
                retrieval is measured everywhere; meant for queries of which only whole documents are judged.

        Returns:
            The first ten places; an empty one hits nothing new.
        """
        found: list[tuple[str, ...]] = []
        documents: set[tuple[str, str, str]] = set()
        hit: set[str] = set()
        for item in ranking:
            document = (item.domain_id, item.source_id, item.source_path)
            if by_document and document in documents:
                continue
            documents.add(document)
            judged = self._judgments.get((item.domain_id, item.source_path), ())
            new = [judgment.key for judgment in judged if judgment.key not in hit and judgment.hit_by(item)]
            hit.update(new)
            found.append(tuple(new))
            if len(found) == DEEPEST:
                break
        return tuple(found)
