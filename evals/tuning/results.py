"""What comes of tuning: the evidence for a plan, or the reason why none is kept; as JSON and as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from nornweave.comparison import Comparison, compare
from nornweave.types import Metadata

OBJECTIVE = "mean of nDCG@10, Recall@10 and RR@10"
_WORST = 10


@dataclass(frozen=True, slots=True)
class Change:
    """What a plan changes on some queries.

    Attributes:
        name: of the set, or of all together.
        comparison: of the objective, per query.
        p_gain: one-sided: how probable so large a gain is if both plans are equally good.
    """

    name: str
    comparison: Comparison
    p_gain: float

    @classmethod
    def of(cls, name: str, before: Mapping[str, float], after: Mapping[str, float]) -> Self:
        """Compare two plans on the same queries.

        Raises:
            ValueError: there is no query.
        """
        comparison, reverse = compare(before, after), compare(after, before)
        if comparison is None or reverse is None:
            raise ValueError(f"{name}: no query to compare on")
        # A long list of queries is no part of a verdict.
        return cls(name, replace(comparison, worse=comparison.worse[:_WORST]), reverse.p_drop)


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
        configured: complete values of the configuration.
        before: of what is in force, which the best has to beat.
        best: fitted to all queries.
        kept: whether it is better beyond chance, and nothing else gets worse.
        reason: why, or why not.
        held_out: on queries that the plan of their fold was not fitted to.
        sets: the same for each judged set of its own.
        everywhere: with all domains asked, none named: this domain's queries, those of the others; empty where that was
            not looked at.
        folds: in their order.
        queries: that it was fitted to.
        tried: how many plans were scored.
        generation: what was searched.
        seconds: how long it took.
        notes: what one should know besides.
    """

    subject: str
    base: str
    configured: Metadata
    before: Metadata
    best: Metadata
    kept: bool
    reason: str
    held_out: Change
    sets: tuple[Change, ...]
    everywhere: tuple[Change, ...]
    folds: tuple[FoldResult, ...]
    queries: int
    tried: int
    generation: str
    seconds: float
    notes: tuple[str, ...] = ()


def as_json(result: TuningResult) -> dict[str, Any]:
    """Return the result as JSON values; it is also the evidence in a plan's file."""
    return {
        "subject": result.subject,
        "kept": result.kept,
        "reason": result.reason,
        "objective": OBJECTIVE,
        "queries": result.queries,
        "held_out": _change_json(result.held_out),
        "sets": [_change_json(one) for one in result.sets],
        "all_domains": [_change_json(one) for one in result.everywhere],
        "folds": [
            {"queries": one.queries, "before": one.before, "after": one.after, "values": dict(one.values)}
            for one in result.folds
        ],
        "configured": dict(result.configured),
        "in_force": dict(result.before),
        "best": dict(result.best),
        "plans_tried": result.tried,
        "generation": result.generation,
        "seconds": round(result.seconds, 1),
        "notes": list(result.notes),
    }


def _change_json(change: Change) -> dict[str, Any]:
    found = change.comparison
    return {
        "name": change.name,
        "queries": found.queries,
        "before": found.before,
        "after": found.after,
        "difference": found.difference,
        "low": found.low,
        "high": found.high,
        "p_gain": change.p_gain,
        "p_drop": found.p_drop,
        "worst": [{"query": one.query, "before": one.before, "after": one.after} for one in found.worse],
    }


def as_markdown(result: TuningResult) -> str:
    """Return the result as tables that people read: the verdict, what would change, what it was tested on."""
    verdict = "kept" if result.kept else "not kept"
    parts = [
        f"### Tuning {result.subject}: {verdict}\n\n{result.reason}",
        _values_table(result),
        _table(
            ("tested on", "queries", "before", "after", "difference [95 %]", "p gain", "p drop"),
            [_change_row(one) for one in (result.held_out, *result.sets, *result.everywhere)],
        ),
        _table(
            ("fold", "queries", "before", "after", "fitted to the others"),
            [
                (str(number), str(one.queries), f"{one.before:.4f}", f"{one.after:.4f}", _shown(one.values))
                for number, one in enumerate(result.folds, 1)
            ],
        ),
        f"Objective: {OBJECTIVE}; {result.queries} queries, {result.tried} plans, {result.seconds:.0f} s, "
        f"{result.generation}.",
        *(f"- {note}" for note in result.notes),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _values_table(result: TuningResult) -> str:
    configured, before, best = (flattened(one) for one in (result.configured, result.before, result.best))
    rows = [
        (f"`{key}`", _number(configured.get(key)), _number(before.get(key)), _number(best[key]))
        for key in best
        if not best[key] == before.get(key) == configured.get(key)
    ]
    return _table(("value", "configured", "in force", "best"), rows) if rows else ""


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
    found = change.comparison
    return (
        change.name.replace("|", "\\|"),
        str(found.queries),
        f"{found.before:.4f}",
        f"{found.after:.4f}",
        f"{found.difference:+.4f} [{found.low:+.4f}, {found.high:+.4f}]",
        f"{change.p_gain:.4f}",
        f"{found.p_drop:.4f}",
    )


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _shown(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {_number(value)}" for key, value in values.items()) or "as configured"


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
