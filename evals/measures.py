"""Measures of a ranking, all calculated by ``ir_measures``, with bootstrap intervals. Pure: no storage, no search.

A ranking is a sequence of *places*, best first, and a place is the judgments that it is the first to hit: none for an
item that answers nothing, or nothing new; more than one for a chunk that holds two judged messages. Two views of it go
to ``ir_measures``:

- by place, one document a place: ``RR@10``, ``P@5`` and ``Success@1`` ask how far a person has to look;
- by judgment, the judgments of one place one after the other: ``Recall@10`` and ``nDCG@10`` ask how much of what was
  judged is found, and a chunk that holds two answers has found two.

Where every place hits one judgment at most, both are the ordinary TREC run, and the values are those of ``ir_measures``
called directly.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Self, TypeAlias

import ir_measures
import numpy as np

from evals.judgments import Judgment
from nornweave.ask.search.records import Citation
from nornweave.core.types import Domain
from nornweave.improve.comparison import bootstrap_interval

Ranking: TypeAlias = Sequence[Sequence[str]]
"""Places, best first; each the judgments that it is the first to hit, best grade first."""

DEEPEST = 10
"""No measure looks at places below this one."""

# "Recall@10" is set recall over the first ten places: R@10 would lose judgments that share a place with others.
_BY_JUDGMENT: Mapping[str, Any] = {"Recall@10": ir_measures.SetR, "nDCG@10": ir_measures.nDCG @ 10}
_BY_PLACE: Mapping[str, Any] = {
    "RR@10": ir_measures.RR @ 10,
    "P@5": ir_measures.P @ 5,
    "Success@1": ir_measures.Success @ 1,
}
MEASURES = ("Recall@10", "RR@10", "nDCG@10", "P@5", "Success@1")


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
    asked = [_Asked.of(grades[query], rankings.get(query, ())) for query in grades]
    values = {
        **_values(_BY_JUDGMENT, names, grades, asked, [hits.by_judgment() for hits in asked]),
        **_values(_BY_PLACE, names, grades, asked, [hits.by_place() for hits in asked]),
    }
    return MappingProxyType({name: metric_of(values[name]) for name in MEASURES if name in values})


def metric_of(values: Mapping[str, float]) -> Metric:
    """Average values over queries, with a percentile bootstrap interval (Efron & Tibshirani 1993, ch. 13; seeded)."""
    samples = np.fromiter(values.values(), dtype=np.float64, count=len(values))
    low, high = bootstrap_interval(samples)
    return Metric(math.fsum(samples) / len(samples), low, high, MappingProxyType(dict(values)))


@dataclass(frozen=True, slots=True)
class _Asked:
    """One query as ``ir_measures`` sees it.

    Judgments are numbered: trec_eval's ids are C strings, and it says no more than "duplicate docs", with zeros for a
    result, when two of them are the same up to a NUL.
    """

    qrels: Mapping[str, int]
    places: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, grades: Mapping[str, int], ranking: Ranking) -> Self:
        numbers = {key: f"judgment-{number}" for number, key in enumerate(grades)}
        return cls(
            qrels={numbers[key]: grade for key, grade in grades.items()},
            places=tuple(tuple(numbers[key] for key in keys) for keys in ranking[:DEEPEST]),
        )

    def by_judgment(self) -> dict[str, float]:
        rows = [key for place, keys in enumerate(self.places) for key in (keys or (f"nothing-{place}",))]
        return {key: -float(row) for row, key in enumerate(rows)}

    def by_place(self) -> dict[str, float]:
        firsts = (keys[0] if keys else f"nothing-{place}" for place, keys in enumerate(self.places))
        return {key: -float(place) for place, key in enumerate(firsts)}


def _values(
    measures: Mapping[str, Any],
    names: Collection[str],
    queries: Collection[str],
    asked: Sequence[_Asked],
    runs: Sequence[Mapping[str, float]],
) -> dict[str, dict[str, float]]:
    """Return the wanted measures per query, in the order of ``queries``; one without a run has 0."""
    wanted = {measure: name for name, measure in measures.items() if name in names}
    if not wanted:
        return {}
    by_number = {str(number): query for number, query in enumerate(queries)}
    qrels = {number: query.qrels for number, query in zip(by_number, asked, strict=True)}
    run = {number: ranked for number, ranked in zip(by_number, runs, strict=True) if ranked}
    values: dict[str, dict[str, float]] = {name: dict.fromkeys(queries, 0.0) for name in wanted.values()}
    for metric in ir_measures.iter_calc(list(wanted), qrels, run):
        values[wanted[metric.measure]][by_number[metric.query_id]] = float(metric.value)
    return values


class JudgedHits:
    """One query's relevant judgments, looked up by domain and path.

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
        """Turn a ranking into places: per item the judgments that it is the first to hit, best grade first.

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
