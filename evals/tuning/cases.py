"""What tuning is fitted to: judged queries with what counts as an answer, put into folds that share no document."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from evals.judgments import JudgmentError, JudgmentOrigin
from evals.matches import JudgedHits
from evals.targets import RunTarget
from nornweave.ask.search.records import Filters, HiddenPlace
from nornweave.core.types import Domain

FOLDS = 5
LARGEST_GROUP = 0.4
"""Where more of the queries hang together than this, folds cannot keep them together and stay folds."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TuningCase:
    """A judged query.

    Attributes:
        id: domain, set and query id; unique.
        judged: domain and name of its set.
        domain: the set's own; ``None`` where it is judged in all domains at once.
        filters: of that domain.
        hidden: by domain what it was taken from, which must not be found by its own words.
        grades: of its relevant judgments, by place.
        documents: judged ones, with their domains.
        places: judged ones, with their domains.
    """

    id: str
    judged: str
    origin: JudgmentOrigin
    domain: Domain | None
    text: str
    filters: Filters
    hidden: Mapping[Domain, HiddenPlace]
    hits: JudgedHits
    grades: Mapping[str, int]
    documents: frozenset[str]
    places: frozenset[str]


def cases_of(targets: Sequence[RunTarget]) -> tuple[TuningCase, ...]:
    """Return the judged queries of some sets, by id.

    Raises:
        JudgmentError: two sets of a domain have one name; their queries could not be told apart.
    """
    names = Counter(_label(target) for target in targets)
    if repeated := [name for name, count in names.items() if count > 1]:
        raise JudgmentError(f"two judged sets are called {repeated[0]!r}; give each folder a name of its own")
    return tuple(sorted((case for target in targets for case in _cases(target)), key=lambda case: case.id))


def _label(target: RunTarget) -> str:
    """Name a set: every domain may have one called ``generated``."""
    domain = "all domains" if target.judged.across_domains else target.domain.value
    return f"{domain}/{target.judged.name}"


def _cases(target: RunTarget) -> Iterable[TuningCase]:
    for query in target.queries:
        judgments = target.relevant[query.id]
        yield TuningCase(
            id=f"{_label(target)}/{query.id}",
            judged=_label(target),
            origin=target.judged.origin,
            domain=None if target.judged.across_domains else target.domain,
            text=query.text,
            filters=query.filters,
            hidden=MappingProxyType({target.domain: query.hidden.place} if query.hidden else {}),
            hits=JudgedHits(judgments, target.domain, target.held),
            grades=MappingProxyType({one.key: one.grade for one in judgments}),
            documents=frozenset(f"{target.held.get(one.path, target.domain)} {one.path}" for one in judgments),
            places=frozenset(f"{target.held.get(one.path, target.domain)} {one.key}" for one in judgments),
        )


def sample(cases: Sequence[TuningCase], size: int) -> tuple[TuningCase, ...]:
    """Return at most ``size`` cases, the same ones whatever else there is, by id."""
    return tuple(sorted(sorted(cases, key=_hash)[:size], key=lambda case: case.id))


def folds_of(cases: Sequence[TuningCase], folds: int = FOLDS) -> tuple[int, ...]:
    """Put cases into folds of about equal size, from 0.

    Queries with the same text or a judged document in common are in one fold: what is fitted to a document must not be
    tested on it. Where that would tie too many together (a handful of long documents that everything is judged in), the
    judged places are kept together instead, and where that does, too, only equal texts.

    Returns:
        The fold of each case, in their order; the same whatever that order is.
    """
    groups: list[list[TuningCase]] = []
    for name in ("documents", "places", None):
        groups = _groups({case: {_text(case)} | (getattr(case, name) if name else set()) for case in cases})
        if len(groups) >= folds and max(map(len, groups)) <= LARGEST_GROUP * len(cases):
            break
    fold_of: dict[TuningCase, int] = {}
    sizes = [0] * folds
    # The largest first, each into the emptiest fold: sizes come out even, and a hash says who goes where.
    for group in sorted(groups, key=lambda group: (-len(group), min(map(_hash, group)))):
        emptiest = sizes.index(min(sizes))
        sizes[emptiest] += len(group)
        fold_of |= dict.fromkeys(group, emptiest)
    return tuple(fold_of[case] for case in cases)


def _groups(keys: Mapping[TuningCase, set[str]]) -> list[list[TuningCase]]:
    """Return the cases that hang together by a key."""
    groups: list[tuple[set[str], list[TuningCase]]] = []
    for case, its in keys.items():
        touched = [group for group in groups if group[0] & its]
        groups = [group for group in groups if not group[0] & its]
        members = [one for _, group in touched for one in group]
        groups.append((its.union(*(group for group, _ in touched)), [*members, case]))
    return [members for _, members in groups]


def _text(case: TuningCase) -> str:
    return f"text {' '.join(case.text.casefold().split())}"


def _hash(case: TuningCase) -> str:
    return hashlib.sha256(case.id.encode("utf-8", "surrogatepass")).hexdigest()
