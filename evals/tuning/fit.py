"""Cross-validated fitting: what is found on some queries is tested on others, and judged by that."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic

from evals.tuning.cases import Case, folds_of
from evals.tuning.results import Change, FoldResult, TuningResult, differing
from evals.tuning.search import Found, OutOfTimeError, Score, search
from evals.tuning.space import Space, T
from evals.tuning.verdict import praise, refusal
from nornweave.errors import NornWeaveError


class TuningError(NornWeaveError):
    """Nothing can be fitted: too few queries, a domain that does not answer as it should, too little time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted(Generic[T]):
    """What cross-validation found.

    Attributes:
        in_force: what is to be beaten.
        folds: of the cases, in their order.
        before: the objective by case, with what is in force.
        after: the same with the plan of its fold, which was not fitted to it.
    """

    space: Space[T]
    in_force: T
    found: Found[T]
    cases: Sequence[Case]
    folds: tuple[int, ...]
    before: Mapping[str, float]
    after: Mapping[str, float]

    @property
    def held_out(self) -> Change:
        """Return what the folds' plans change on queries that they were not fitted to."""
        return Change.of("held out", self.before, self.after)

    @property
    def sets(self) -> tuple[Change, ...]:
        """Return the same for each judged set."""
        names = sorted({case.judged for case in self.cases})
        return tuple(self._on(name, [case.id for case in self.cases if case.judged == name]) for name in names)

    @property
    def refusal(self) -> str:
        """Say why the best is not to be kept; nothing where it may be."""
        return refusal(self.held_out, self.sets, changed=self.found.of_all != self.in_force)

    def of_folds(self, values: Callable[[T], Mapping[str, Any]]) -> tuple[FoldResult, ...]:
        """Return what each fold found; one without a query is left out."""
        results = []
        for fold, point in enumerate(self.found.of_folds):
            if ids := [case.id for case, its in zip(self.cases, self.folds, strict=True) if its == fold]:
                tested = self._on(str(fold), ids).comparison
                differ = differing(values(point), values(self.space.configured))
                results.append(FoldResult(len(ids), tested.before, tested.after, differ))
        return tuple(results)

    def _on(self, name: str, ids: Sequence[str]) -> Change:
        return Change.of(name, {one: self.before[one] for one in ids}, {one: self.after[one] for one in ids})


def cross_validated(
    space: Space[T], score: Score[T], cases: Sequence[Case], in_force: T, deadline: float | None, rounds: int
) -> Fitted[T]:
    """Search in folds; see ``search``.

    Args:
        space: where to look.
        score: the objective of every case, in their order.
        cases: what to fit to.
        in_force: what is to be beaten; it is looked at, too.
        deadline: ``time.monotonic()`` by which the search stops.
        rounds: of the search, at most.

    Raises:
        TuningError: not even what is in force could be scored in time.
    """
    folds = folds_of(cases)
    try:
        found = search(space, score, folds, known=(in_force,), deadline=deadline, rounds=rounds)
    except OutOfTimeError as error:
        raise too_short(len(cases)) from error
    before = {case.id: float(found.values[in_force][at]) for at, case in enumerate(cases)}
    after = {case.id: float(found.values[found.of_folds[folds[at]]][at]) for at, case in enumerate(cases)}
    return Fitted(
        space=space,
        in_force=in_force,
        found=found,
        cases=cases,
        folds=folds,
        before=MappingProxyType(before),
        after=MappingProxyType(after),
    )


def too_short(queries: int) -> TuningError:
    """Say that there is too little time."""
    return TuningError(f"the time is too short to ask {queries} queries even once; allow more, or fewer queries")


def result_of(
    fitted: Fitted[T],
    values: Callable[[T], dict[str, Any]],
    *,
    subject: str,
    base: str,
    reason: str,
    generation: str,
    started: float,
    everywhere: tuple[Change, ...] = (),
    notes: tuple[str, ...] = (),
) -> TuningResult:
    """Write down what was found.

    Args:
        fitted: what was found.
        values: a point as JSON values, complete.
        subject: see ``TuningResult``, as the others.
        reason: why it is not kept; empty to keep it.
        started: ``time.monotonic()`` at the beginning.
    """
    found, held_out = fitted.found, fitted.held_out
    unfinished = () if found.finished else ("the search was cut short by the deadline; more time may find more",)
    return TuningResult(
        subject=subject,
        base=base,
        configured=values(fitted.space.configured),
        before=values(fitted.in_force),
        best=values(found.of_all),
        kept=not reason,
        reason=reason or praise(held_out),
        held_out=held_out,
        sets=fitted.sets,
        everywhere=everywhere,
        folds=fitted.of_folds(values),
        queries=len(fitted.cases),
        tried=len(found.values),
        generation=generation,
        seconds=time.monotonic() - started,
        notes=(*notes, *unfinished),
    )
