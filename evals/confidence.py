"""How well a low score shows that there is no answer: unanswerable questions, flagged by ``min_score``. Pure.

A query is *flagged* when its best item scores below ``min_score``, so that nothing is left of its answer, or when
nothing was found at all. Flagging is right for the queries that the corpus holds no answer to, and only for them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nornweave.improve.comparison import CONFIDENCE, RESAMPLES, SEED

_Floats: TypeAlias = NDArray[np.float64]

NOTHING_FOUND = -math.inf
"""Where a query without an item stands among the scores: below every one of them."""


@dataclass(frozen=True, slots=True)
class TopScore:
    """The best item's score of one query.

    Attributes:
        score: of the first item of the answer; ``None`` when nothing was found.
        answerable: whether the corpus holds an answer.
    """

    query_id: str
    score: float | None
    answerable: bool


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure and its 95 % interval, from resampling the answerable and the unanswerable queries apart."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Confidence:
    """How well scores separate the two kinds of queries; 0.5 is chance, 1 is perfect.

    Attributes:
        min_score: the threshold that was asked about; ``None`` flags only queries to which nothing was found.
        at_min_score: balanced accuracy at ``min_score``.
        best_min_score: the threshold of highest balanced accuracy on these queries; ``None`` if it takes none.
        best: balanced accuracy at this threshold; too optimistic, because the threshold was chosen on the same queries.
        held_out: balanced accuracy of thresholds that were chosen without the query that they judge; ``None`` where a
            kind has one query only.
        auc: area under the ROC curve, which needs no threshold.
    """

    answerable: int
    unanswerable: int
    min_score: float | None
    at_min_score: Estimate
    best_min_score: float | None
    best: float
    held_out: Estimate | None
    auc: Estimate


def confidence_of(queries: Sequence[TopScore], min_score: float | None = None) -> Confidence | None:
    """Return how well the best items' scores show which queries have no answer.

    Balanced accuracy is ``(flagged unanswerable / unanswerable + kept answerable / answerable) / 2``, the mean of
    sensitivity and specificity, whatever the proportion of the two kinds (Brodersen et al., ICPR 2010).

    Args:
        queries: in any order.
        min_score: the threshold to judge, as ``POST /query`` takes it: an item below it is dropped.

    Returns:
        The confidence; ``None`` if there are no queries of one of the two kinds.

    Raises:
        ValueError: a query comes twice, or a score or the threshold is not finite.
    """
    if repeated := [query for query, times in Counter(query.query_id for query in queries).items() if times > 1]:
        raise ValueError(f"query {min(repeated)!r} comes twice; expected each query once")
    for query in queries:
        if query.score is not None and not math.isfinite(query.score):
            raise ValueError(f"score {query.score!r} of query {query.query_id!r}; expected a finite number or None")
    if min_score is not None and not math.isfinite(min_score):
        raise ValueError(f"min_score {min_score!r}; expected a finite number or None")
    kept = _scores(queries, answerable=True)
    flagged = _scores(queries, answerable=False)
    if not len(kept) or not len(flagged):
        return None
    best_min_score, best = best_threshold(queries)
    return Confidence(
        answerable=len(kept),
        unanswerable=len(flagged),
        min_score=min_score,
        at_min_score=_balanced_accuracy(_is_flagged(kept, min_score), _is_flagged(flagged, min_score)),
        best_min_score=best_min_score,
        best=best,
        held_out=_held_out(kept, flagged),
        auc=_auc(kept, flagged),
    )


def best_threshold(queries: Sequence[TopScore]) -> tuple[float | None, float]:
    """Return the threshold of highest balanced accuracy, and that accuracy.

    If several are equal, it is the midpoint of the widest gap between neighbouring scores, which leaves most room for
    scores that were not seen; of equally wide gaps the lower one, which drops fewer answers. ``None``: no threshold
    does better than flagging only queries without results.

    Raises:
        ValueError: there are no answerable or no unanswerable queries.
    """
    kept = _scores(queries, answerable=True)
    flagged = _scores(queries, answerable=False)
    if not len(kept) or not len(flagged):
        raise ValueError(f"{len(kept)} answerable and {len(flagged)} unanswerable queries; expected both kinds")
    threshold, accuracy = _choose(kept, flagged)
    return (None if threshold == NOTHING_FOUND else threshold), accuracy


def as_json(confidence: Confidence) -> dict[str, Any]:
    """Return the figures as JSON, rounded to four digits."""
    return {
        "answerable": confidence.answerable,
        "unanswerable": confidence.unanswerable,
        "min_score": _round_measure(confidence.min_score),
        "balanced_accuracy": _estimate_json(confidence.at_min_score),
        "best_min_score": _round_measure(confidence.best_min_score),
        "best_balanced_accuracy": _round_measure(confidence.best),
        "held_out_balanced_accuracy": _estimate_json(confidence.held_out),
        "auc": _estimate_json(confidence.auc),
    }


def _scores(queries: Sequence[TopScore], *, answerable: bool) -> _Floats:
    """Return the scores of one kind of queries, ascending."""
    scores = (
        NOTHING_FOUND if query.score is None else query.score for query in queries if query.answerable == answerable
    )
    return np.sort(np.fromiter(scores, np.float64))


def _is_flagged(scores: _Floats, min_score: float | None) -> NDArray[np.bool_]:
    return scores == NOTHING_FOUND if min_score is None else scores < min_score


def _choose(kept: _Floats, flagged: _Floats) -> tuple[float, float]:
    """Return the best threshold (``NOTHING_FOUND`` for none) for two ascending lists of scores."""
    distinct = np.unique(np.concatenate([kept, flagged]))
    found = distinct[distinct > NOTHING_FOUND]
    if not len(found):
        return NOTHING_FOUND, _accuracy(kept == NOTHING_FOUND, flagged == NOTHING_FOUND)
    middles = found[:-1] + np.diff(found) / 2
    # Between two neighbouring floats there is no middle: the upper one keeps itself and drops the lower.
    inner = np.where(middles > found[:-1], middles, found[1:])
    thresholds = np.concatenate([[NOTHING_FOUND], inner, [np.nextafter(found[-1], math.inf)]])
    below = found[0], *found[1:], math.inf
    dropped, lost = np.searchsorted(flagged, below), np.searchsorted(kept, below)
    accuracies = (dropped / len(flagged) + (len(kept) - lost) / len(kept)) / 2
    best = accuracies.max()
    # Neither end is a gap: what lies beyond was never seen.
    widths = np.concatenate([[0.0], np.diff(found), [0.0]])
    chosen = int(np.argmax(np.where(accuracies >= best - 1e-12, widths, -1.0)))
    return float(thresholds[chosen]), float(accuracies[chosen])


def _held_out(kept: _Floats, flagged: _Floats) -> Estimate | None:
    """Judge every query by the threshold chosen on the others (leave-one-out; Stone, JRSS B 1974)."""
    if min(len(kept), len(flagged)) < 2:
        return None
    of_kept = [
        score < _choose(np.delete(kept, at), flagged)[0] or score == NOTHING_FOUND for at, score in enumerate(kept)
    ]
    of_flagged = [
        score < _choose(kept, np.delete(flagged, at))[0] or score == NOTHING_FOUND for at, score in enumerate(flagged)
    ]
    return _balanced_accuracy(np.array(of_kept), np.array(of_flagged))


def _accuracy(kept: NDArray[np.bool_], flagged: NDArray[np.bool_]) -> float:
    """Return the balanced accuracy, from the flags of the queries of both kinds."""
    return (int(flagged.sum()) / len(flagged) + int((~kept).sum()) / len(kept)) / 2


def _balanced_accuracy(kept: NDArray[np.bool_], flagged: NDArray[np.bool_]) -> Estimate:
    """Return the balanced accuracy with its interval. Drawing n queries with replacement is a binomial draw."""
    generator = np.random.default_rng(SEED)
    accuracy = _accuracy(kept, flagged)
    sensitivity = generator.binomial(len(flagged), int(flagged.sum()) / len(flagged), RESAMPLES) / len(flagged)
    specificity = generator.binomial(len(kept), int((~kept).sum()) / len(kept), RESAMPLES) / len(kept)
    return _estimate(accuracy, (sensitivity + specificity) / 2)


def _auc(kept: _Floats, flagged: _Floats) -> Estimate:
    """Return the share of pairs in which the answerable query scores higher, a tie counting half.

    Source: Mann & Whitney 1947; as the area under the ROC curve, Hanley & McNeil 1982.
    """
    wins = (kept[:, None] > flagged[None, :]) + 0.5 * (kept[:, None] == flagged[None, :])
    generator = np.random.default_rng(SEED)
    drawn_kept = generator.multinomial(len(kept), np.full(len(kept), 1 / len(kept)), RESAMPLES) / len(kept)
    drawn_flagged = generator.multinomial(len(flagged), np.full(len(flagged), 1 / len(flagged)), RESAMPLES)
    resampled = ((drawn_kept @ wins) * drawn_flagged).sum(axis=1) / len(flagged)
    return _estimate(float(wins.mean()), resampled)


def _estimate(value: float, resampled: _Floats) -> Estimate:
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(resampled, (tail, 1 - tail))
    return Estimate(value, float(low), float(high))


def _estimate_json(estimate: Estimate | None) -> dict[str, float] | None:
    if estimate is None:
        return None
    return {"value": round(estimate.value, 4), "low": round(estimate.low, 4), "high": round(estimate.high, 4)}


def _round_measure(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
