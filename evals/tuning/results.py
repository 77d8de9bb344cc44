"""Results of tuning: the evidence for a plan, and whether it is kept; as JSON and as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nornweave.core.types import Metadata
from nornweave.improve.comparison import compare
from nornweave.read.formats.markdown import header_lines, row

OBJECTIVE = "mean of nDCG@10, Recall@10 and RR@10"
SIGNIFICANT = 0.05


@dataclass(frozen=True, slots=True)
class Change:
    """What a plan changes on some queries, of a set or of all: see ``EvaluationComparison``."""

    name: str
    queries: int
    before: float
    after: float
    difference: float
    low: float
    high: float
    p_gain: float
    p_drop: float

    @classmethod
    def of(cls, name: str, before: NDArray[np.float64], after: NDArray[np.float64]) -> Self:
        """Compare the values of two plans on the same queries.

        Raises:
            ValueError: there is no query.
        """
        change = compare(*({str(at): float(value) for at, value in enumerate(values)} for values in (before, after)))
        if change is None:
            raise ValueError(f"{name}: no query to compare on")
        return cls(name, *(getattr(change, field.name) for field in fields(cls)[1:]))

    @property
    def gains(self) -> bool:
        """Whether it is better beyond chance."""
        return self.difference > 0 and self.p_gain < SIGNIFICANT

    @property
    def drops(self) -> bool:
        """Whether it is worse beyond chance."""
        return self.difference < 0 and self.p_drop < SIGNIFICANT

    def __str__(self) -> str:
        p = self.p_gain if self.difference > 0 else self.p_drop
        interval = f"[{self.low:+.4f}, {self.high:+.4f}]"
        return f"{self.before:.4f} → {self.after:.4f} ({self.difference:+.4f} {interval}, p = {p:.4f})"


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningResult:
    """The result of tuning a domain; as a ``dict`` it is the evidence in a plan's file.

    Attributes:
        kept: whether the best is better beyond chance, and nothing else gets worse.
        held_out: on queries that the plan of their fold was not fitted to.
        sets: the same for each judged set of the domain.
        all_domains: with all domains asked, none named: this domain's queries, those of the others; empty where that
            was not looked at.
        in_force: complete values of what answers now, which the best has to beat.
        best: fitted to all queries.
        notes: what one should know besides.
    """

    subject: str
    kept: bool
    reason: str
    objective: str = OBJECTIVE
    queries: int
    held_out: Change
    sets: tuple[Change, ...]
    all_domains: tuple[Change, ...] = ()
    in_force: Metadata
    best: Metadata
    plans_tried: int
    generation: str = ""
    seconds: float = 0
    notes: tuple[str, ...] = ()


def refusal(held_out: Change, others: Sequence[Change], *, changed: bool) -> str:
    """Say why a plan is not kept; nothing where it may be.

    Args:
        held_out: what the folds' plans change on queries that they were not fitted to.
        others: what may not get worse.
        changed: whether the best plan is another than the one in force.
    """
    if not changed:
        return "Nothing that was tried is better by more than one standard error than the plan in force."
    if not held_out.gains:
        return f"On queries that it was not fitted to, {held_out}: no more than chance."
    return next((f"{change.name} gets worse: {change}." for change in others if change.drops), "")


def as_markdown(result: TuningResult) -> str:
    """Return the result as tables that people read: the verdict, what would change, what it was tested on."""
    in_force, best = flattened(result.in_force), flattened(result.best)
    values = [(f"`{key}`", f"{in_force[key]:g}", f"{best[key]:g}") for key in best if best[key] != in_force[key]]
    changes = [
        (each.name, str(each.queries), str(each)) for each in (result.held_out, *result.sets, *result.all_domains)
    ]
    sections = [
        f"### Tuning {result.subject}: {'kept' if result.kept else 'not kept'}\n\n{result.reason}",
        _table(("value", "in force", "best"), values),
        _table(("tested on", "queries", "before → after (difference, 95 %, one-sided p)"), changes),
        f"Objective: {OBJECTIVE}; {result.queries} queries, {result.plans_tried} plans, {result.seconds:.0f} s, "
        f"{result.generation}.",
        *(f"- {note}" for note in result.notes),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def flattened(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested values by dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= flattened(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return flat


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join((header_lines(header), *map(row, rows))) if rows else ""
