"""What a plan is fitted to: judged queries with what counts as an answer, put into folds that share no document."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evals.judgments import JudgedQuery, JudgmentError
from evals.measures import JudgedHits
from evals.targets import RunTarget

FOLDS = 5
LARGEST_GROUP = 0.4
"""If more of the queries than this share documents, folds cannot keep them together."""


@dataclass(frozen=True, slots=True, eq=False)
class TuningCase:
    """A judged query of a set."""

    target: RunTarget
    query: JudgedQuery

    @property
    def judged(self) -> str:
        """Return the name of its set with the domain: every domain may have one called ``generated``."""
        domain = "all domains" if self.target.judged.across_domains else self.target.domain.value
        return f"{domain}/{self.target.judged.name}"

    @property
    def id(self) -> str:
        """Return domain, set and query id; unique."""
        return f"{self.judged}/{self.query.id}"

    @property
    def grades(self) -> Mapping[str, int]:
        """Return the grades of its relevant judgments, by place."""
        return {judgment.key: judgment.grade for judgment in self.target.relevant[self.query.id]}

    @property
    def hits(self) -> JudgedHits:
        """Return its relevant judgments."""
        return JudgedHits(self.target.relevant[self.query.id], self.target.domain, self.target.held)

    @property
    def keys(self) -> frozenset[str]:
        """Return its judged documents, with their domains."""
        target = self.target
        return frozenset(f"{target.held.get(each.path, target.domain)} {each.path}"
                         for each in target.relevant[self.query.id])  # fmt: skip


def cases_of(targets: Sequence[RunTarget], *, most: int | None = None) -> tuple[TuningCase, ...]:
    """Return the judged queries of some sets, by id; of each set at most so many, the same ones whatever else there is.

    Raises:
        JudgmentError: two sets of a domain have one name; their queries could not be told apart.
    """
    sets = [sorted((TuningCase(target, query) for query in target.queries), key=_hash)[:most] for target in targets]
    names = Counter(cases[0].judged for cases in sets if cases)
    if repeated := [name for name, count in names.items() if count > 1]:
        raise JudgmentError(f"two judged sets are called {repeated[0]!r}; give each folder a name of its own")
    return tuple(sorted((case for cases in sets for case in cases), key=lambda case: case.id))


def folds_of(cases: Sequence[TuningCase], folds: int = FOLDS) -> tuple[int, ...]:
    """Put cases into folds of about equal size, from 0.

    Queries with the same text or a judged document in common are in one fold: a plan that was fitted to a document must
    not be tested on it. If a handful of long documents would tie too many queries together, only equal texts are.

    Returns:
        The fold of each case, in their order; the same whatever that order is.
    """
    texts = {case: {f"text {' '.join(case.query.text.casefold().split())}"} for case in cases}
    groups = _groups({case: text | case.keys for case, text in texts.items()})
    if len(groups) < folds or max(map(len, groups)) > LARGEST_GROUP * len(cases):
        groups = _groups(texts)
    fold_of: dict[TuningCase, int] = {}
    sizes = [0] * folds
    # The largest first, each into the emptiest fold: sizes come out even, and a hash says who goes where.
    for group in sorted(groups, key=lambda group: (-len(group), min(map(_hash, group)))):
        emptiest = sizes.index(min(sizes))
        sizes[emptiest] += len(group)
        fold_of |= dict.fromkeys(group, emptiest)
    return tuple(fold_of[case] for case in cases)


def _groups(keys: Mapping[TuningCase, set[str]]) -> list[list[TuningCase]]:
    """Return the cases that are connected by keys."""
    groups: list[tuple[set[str], list[TuningCase]]] = []
    for case, of_case in keys.items():
        touched = [group for group in groups if group[0] & of_case]
        groups = [group for group in groups if not group[0] & of_case]
        members = [member for _, group in touched for member in group]
        groups.append((of_case.union(*(group for group, _ in touched)), [*members, case]))
    return [members for _, members in groups]


def _hash(case: TuningCase) -> str:
    return hashlib.sha256(case.id.encode("utf-8", "surrogatepass")).hexdigest()
