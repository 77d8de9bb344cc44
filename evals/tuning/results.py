"""Results of tuning: the evidence for a plan, and whether it is kept; as JSON and as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from nornweave.core.types import Metadata
from nornweave.improve.comparison import QueryChange, compare

OBJECTIVE = "mean of nDCG@10, Recall@10 and RR@10"
SIGNIFICANT = 0.05
_WORST = 10


@dataclass(frozen=True, slots=True)
class Change:
    """What a plan changes on some queries.

    Attributes:
        name: of the set, or of all together.
        before: the mean objective; ``after`` likewise.
        low: lower end of the 95 % interval of the mean difference; ``high`` is the upper end.
        p_gain: one-sided: how probable so large a gain is if both plans are equally good; ``p_drop`` of a loss.
        worst: the ten queries that lose most, worst first.
    """

    name: str
    queries: int
    before: float
    after: float
    difference: float
    low: float
    high: float
    p_gain: float
    p_drop: float
    worst: tuple[QueryChange, ...]

    @classmethod
    def of(cls, name: str, before: Mapping[str, float], after: Mapping[str, float]) -> Self:
        """Compare two plans on the same queries.

        Raises:
            ValueError: there is no query.
        """
        found, reverse = compare(before, after), compare(after, before)
        if found is None or reverse is None:
            raise ValueError(f"{name}: no query to compare on")
        return cls(
            name=name,
            queries=found.queries,
            before=found.before,
            after=found.after,
            difference=found.difference,
            low=found.low,
            high=found.high,
            p_gain=reverse.p_drop,
            p_drop=found.p_drop,
            worst=found.worse[:_WORST],
        )

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


@dataclass(frozen=True, slots=True)
class FoldResult:
    """One fold: the plan fitted to all others, tested on this one.

    Attributes:
        values: of that plan, where they differ from the configured one.
    """

    queries: int
    before: float
    after: float
    values: Metadata


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningResult:
    """What tuning found.

    Attributes:
        subject: a domain, or ``fusion``.
        base: digest of what is configured.
        kept: whether the best is better beyond chance, and nothing else gets worse.
        reason: why, or why not.
        queries: that it was fitted to.
        held_out: on queries that the plan of their fold was not fitted to.
        sets: the same for each judged set of its own.
        all_domains: with all domains asked, none named: this domain's queries, those of the others; empty where that
            was not looked at.
        folds: in their order; one without a query is left out.
        configured: complete values of the configuration.
        in_force: of what answers now, which the best has to beat.
        best: fitted to all queries.
        plans_tried: how many were scored.
        generation: what was searched.
        seconds: how long it took.
        notes: what one should know besides.
    """

    subject: str = ""
    base: str = ""
    kept: bool
    reason: str
    objective: str = OBJECTIVE
    queries: int
    held_out: Change
    sets: tuple[Change, ...]
    all_domains: tuple[Change, ...] = ()
    folds: tuple[FoldResult, ...]
    configured: Metadata
    in_force: Metadata
    best: Metadata
    plans_tried: int
    generation: str = ""
    seconds: float = 0
    notes: tuple[str, ...] = ()


def refusal(held_out: Change, sets: Sequence[Change], *, changed: bool) -> str:
    """Say why a plan is not kept; nothing where it may be.

    Args:
        held_out: what the folds' plans change on queries that they were not fitted to.
        sets: the same for each judged set.
        changed: whether the best plan is another than the one in force.
    """
    if not changed:
        return "Nothing that was tried is better by more than one standard error than the plan in force."
    if not held_out.gains:
        return f"On queries that it was not fitted to, {held_out}: no more than chance."
    return drop(sets)


def drop(changes: Sequence[Change]) -> str:
    """Say which of these loses beyond chance; nothing where none does."""
    return next((f"{one.name} gets worse: {one}." for one in changes if one.drops), "")


def as_json(result: TuningResult) -> dict[str, Any]:
    """Return the result as JSON values; it is also the evidence in a plan's file."""
    values = asdict(result)
    del values["base"]
    return values


def as_markdown(result: TuningResult) -> str:
    """Return the result as tables that people read: the verdict, what would change, what it was tested on."""
    configured, in_force, best = map(flattened, (result.configured, result.in_force, result.best))
    changed = [key for key in best if not best[key] == in_force.get(key) == configured.get(key)]
    parts = [
        f"### Tuning {result.subject}: {'kept' if result.kept else 'not kept'}\n\n{result.reason}",
        _table(
            ("value", "configured", "in force", "best"),
            [(f"`{key}`", *(_number(one.get(key)) for one in (configured, in_force, best))) for key in changed],
        ),
        _table(
            ("tested on", "queries", "before", "after", "difference [95 %]", "p gain", "p drop"),
            [_change_row(one) for one in (result.held_out, *result.sets, *result.all_domains)],
        ),
        _table(
            ("fold", "queries", "before", "after", "fitted to the others"),
            [
                (str(number), str(one.queries), f"{one.before:.4f}", f"{one.after:.4f}", _shown(one.values))
                for number, one in enumerate(result.folds, 1)
            ],
        ),
        f"Objective: {OBJECTIVE}; {result.queries} queries, {result.plans_tried} plans, {result.seconds:.0f} s, "
        f"{result.generation}.",
        *(f"- {note}" for note in result.notes),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def flattened(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested values by dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= flattened(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return flat


def differing(values: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values, by dotted keys, that differ from those of ``base``."""
    of_base = flattened(base)
    return {key: value for key, value in flattened(values).items() if value != of_base.get(key)}


def _change_row(change: Change) -> tuple[str, ...]:
    return (
        change.name.replace("|", "\\|"),
        str(change.queries),
        f"{change.before:.4f}",
        f"{change.after:.4f}",
        f"{change.difference:+.4f} [{change.low:+.4f}, {change.high:+.4f}]",
        f"{change.p_gain:.4f}",
        f"{change.p_drop:.4f}",
    )


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; nothing where it has no row."""
    lines = [header, ["---"] * len(header), *rows] if rows else []
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _shown(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {_number(value)}" for key, value in values.items()) or "as configured"


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
