"""Controls that must score low; otherwise a measure would also praise nonsense. Pure: no search.

- ``shuffled``: every query's ranking is scored against another query's judgments. It scores high when wrong hits are
  counted, when most judgments name places that every query finds, or when the corpus is so small that ten items are
  half of it.
- ``meaningless``: dense retrieval with meaningless query vectors. It scores high when something other than the
  embeddings finds the answers, or the filters leave little else to find.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from evals.judgments import Judgment
from evals.measures import DEEPEST, JudgedHits, Metric, measure, metric_of
from nornweave.ask.search.records import Citation
from nornweave.core.types import Domain
from nornweave.models.encoders import Encoder, Progress, Vectors

if TYPE_CHECKING:
    from nornweave.core.text.spans import Tokenizer

Relevant: TypeAlias = Mapping[str, Sequence[Judgment]]

HIGHEST_SHARE = 0.5
"""Of the real figure: a control above it is not low."""

_TRIES = 200
"""Partners that a query looks at before it takes what it has."""

# To be left out is worse than any number of neighbours.
_ELSEWHERE, _SAME_DOCUMENT, _OVERLAPPING = 0, 1, 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """A control beside the real figure, over the same queries.

    Attributes:
        name: of the control.
        stage: whose rankings it looks at.
        measure: by which both are measured.
        real: the stage's own figure.
        control: the figure that must be low.
        chance: the figure of a random order, if known.
    """

    name: str
    stage: str
    measure: str
    real: Metric
    control: Metric
    chance: float | None = None

    @property
    def holds(self) -> bool:
        """Tell whether the control is low enough."""
        return controls_hold(self.real, self.control)


def control_of(
    name: str, stage: str, measure_name: str, real: Metric, control: Metric, chance: float | None = None
) -> Control:
    """Return a control beside its stage. The real figure is computed again over the control's queries.

    Raises:
        KeyError: the control has a query that was never measured.
    """
    same = metric_of({query: real.values[query] for query in control.values})
    return Control(name=name, stage=stage, measure=measure_name, real=same, control=control, chance=chance)


def controls_hold(real: Metric, control: Metric) -> bool:
    """Tell whether a control is low: its interval lies below the real one, and its mean is at most half of it.

    Apart intervals say that the difference is no accident of the queries drawn (stricter than a test of the
    difference: the queries are the same, so most of the spread is common to both). With hundreds of queries they come
    apart at .80 and .75, too, and a measure that gives .75 for nonsense praises anything; hence the half. Where both
    figures are 0 nothing was shown, and the control does not hold.

    In a tiny corpus chance alone is high, see ``chance_recall``: with ten of thirty chunks listed a third of the
    answers is found blindly. Not to hold is the right verdict there as well: such a set cannot tell a good index from
    a bad one by this measure.
    """
    return control.high < real.low and control.mean <= HIGHEST_SHARE * real.mean


def chance_recall(chunks: int, listed: int = DEEPEST, hitting: int = 1) -> float:
    """Return the expected recall of ``listed`` chunks drawn blindly.

    ``1 − C(chunks − hitting, listed) / C(chunks, listed)``, the hypergeometric chance to draw one that hits; for one
    hitting chunk ``listed / chunks``.

    Args:
        chunks: that could be listed, after filters.
        hitting: chunks that hit a judgment: one, or those of a document where whole documents are judged.

    Raises:
        ValueError: a count is negative, or more chunks hit than there are.
    """
    if min(chunks, listed, hitting) < 0 or hitting > chunks:
        raise ValueError(f"{hitting} of {chunks} chunks hit, {listed} are listed; expected 0 ≤ hitting ≤ chunks")
    if listed >= chunks:
        return 1.0 if hitting else 0.0
    return 1 - math.comb(chunks - hitting, listed) / math.comb(chunks, listed)


def strangers(relevant: Relevant) -> Mapping[str, str]:
    """Give every query another one whose judgments do not overlap its own. Each query is given once.

    Queries with judgments in other documents are preferred; in the same document they name other lines or messages.
    Deterministic: by hashes of the ids, whatever the order of ``relevant``.

    Returns:
        Query → the query whose judgments it takes; queries without a partner are not in it.
    """
    queries = sorted(relevant, key=_hash_key)
    places = [_Places.of(relevant[query]) for query in queries]
    partners = [(at + 1) % len(queries) for at in range(len(queries))]
    for at in range(len(queries)):
        _settle(at, partners, places)
    return MappingProxyType(
        {
            queries[at]: queries[partner]
            for at, partner in enumerate(partners)
            if at != partner and places[at].nearness(places[partner]) < _OVERLAPPING
        }
    )


def shuffled(
    rankings: Mapping[str, Sequence[Citation]], relevant: Relevant, own: Domain, held: Mapping[str, Domain]
) -> Mapping[str, Metric]:
    """Measure every query's ranking by another query's judgments. Nothing is searched.

    Args:
        rankings: by query, of one stage, best first; a query without one found nothing.
        relevant: by query the judgments above grade 0.
        own: the judged set's domain.
        held: path → the domain that holds it.

    Returns:
        By measure, the values under the query that the *judgments* belong to; nothing where no query has a stranger.
    """
    places, grades = {}, {}
    for query, stranger in strangers(relevant).items():
        hits = JudgedHits(relevant[stranger], own, held)
        places[stranger] = hits.places(rankings.get(query, ()), by_document=hits.whole_documents)
        grades[stranger] = {judgment.key: judgment.grade for judgment in relevant[stranger]}
    return measure(places, grades) if grades else MappingProxyType({})


@dataclass(frozen=True, slots=True)
class _Places:
    """One query's judgments by path."""

    by_path: Mapping[str, Sequence[Judgment]]

    @classmethod
    def of(cls, judgments: Sequence[Judgment]) -> _Places:
        by_path: dict[str, list[Judgment]] = {}
        for judgment in judgments:
            by_path.setdefault(judgment.path, []).append(judgment)
        return cls(by_path)

    def nearness(self, other: _Places) -> int:
        """Return whether another query's judgments are in other documents, in the same ones, or overlap."""
        nearest = _ELSEWHERE
        for path in self.by_path.keys() & other.by_path.keys():
            nearest = _SAME_DOCUMENT
            if any(_overlap(own, two) for own in self.by_path[path] for two in other.by_path[path]):
                return _OVERLAPPING
        return nearest


def _overlap(first: Judgment, other: Judgment) -> bool:
    """Tell whether two places of one document overlap. Lines and messages are not comparable, so they overlap."""
    if first.lines and other.lines:
        return first.lines[0] <= other.lines[1] and other.lines[0] <= first.lines[1]
    if first.message_id is not None and other.message_id is not None:
        return first.message_id == other.message_id
    return True


def _settle(at: int, partners: list[int], places: Sequence[_Places]) -> None:
    """Swap a query's partner with another query's if both together get better; prefer the first perfect swap."""

    def cost(query: int, partner: int) -> int:
        return _OVERLAPPING if query == partner else places[query].nearness(places[partner])

    mine = cost(at, partners[at])
    if mine == _ELSEWHERE:
        return
    best, gain = None, 0
    for step in range(1, min(len(partners), _TRIES)):
        other = (at + step) % len(partners)
        now = mine + cost(other, partners[other])
        gained = now - cost(at, partners[other]) - cost(other, partners[at])
        if gained > gain:
            best, gain = other, gained
        if gain >= mine:
            break
    if best is not None:
        partners[at], partners[best] = partners[best], partners[at]


def _hash_key(text: str) -> tuple[bytes, str]:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), text


class MeaninglessEncoder:
    """An encoder whose vectors depend on the text but carry none of its meaning.

    A vertex of the hypercube by the bits of the text's hash: of length 1, the same on every machine, and with a cosine
    to any other vector that is 0 on average, give or take ``1 / √dimensions``.

    It has the version of the encoder that it stands in for, so that a generation accepts it: never let it encode what
    is stored, or its vectors are taken for the real ones.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    @property
    def version(self) -> str:
        """The real encoder's version."""
        return self._encoder.version

    @property
    def dimensions(self) -> int:
        """The real encoder's dimensions."""
        return self._encoder.dimensions

    @property
    def max_tokens(self) -> int:
        """The real encoder's limit."""
        return self._encoder.max_tokens

    @property
    def tokenizer(self) -> Tokenizer:
        """The real encoder's tokenizer."""
        return self._encoder.tokenizer

    def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        """Encode texts as ``encode_query`` does."""
        vectors = np.empty((len(texts), self.dimensions), np.float32)
        for at, text in enumerate(texts):
            vectors[at] = self.encode_query(text)
        if progress is not None:
            progress(len(texts))
        return vectors

    def encode_query(self, text: str) -> Vectors:
        """Return the vector of a text, always the same one."""
        digest = hashlib.shake_256(text.encode("utf-8", "surrogatepass")).digest((self.dimensions + 7) // 8)
        bits = np.unpackbits(np.frombuffer(digest, np.uint8), count=self.dimensions)
        return ((2.0 * bits - 1.0) / math.sqrt(self.dimensions)).astype(np.float32)


def controls_json(controls: Sequence[Control]) -> list[dict[str, Any]]:
    """Return the controls as JSON, rounded to four digits."""
    return [
        {
            "control": control.name,
            "stage": control.stage,
            "measure": control.measure,
            "queries": len(control.control.values),
            "real": _metric_json(control.real),
            "value": _metric_json(control.control),
            "chance": None if control.chance is None else round(control.chance, 4),
            "holds": control.holds,
        }
        for control in controls
    ]


def _metric_json(metric: Metric) -> dict[str, float]:
    return {"mean": round(metric.mean, 4), "low": round(metric.low, 4), "high": round(metric.high, 4)}
