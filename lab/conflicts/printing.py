"""Tables and errors as a person reads them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from lab.conflicts.pairs import PairOutcome
from lab.conflicts.shares import Figures, reliability
from nornweave.core.types import Fact
from nornweave.disagree.conflicts import FactConflict, LocatedFact
from nornweave.disagree.facts.values import show

_MOST_LINES = 40


def print_figures(rows: Iterable[tuple[str, Figures]], title: str, console: Console) -> None:
    """Print one line a group."""
    table = Table(title=f"{title}: share [95 % interval] hits/of")
    for heading in ("", "precision", "recall"):
        table.add_column(heading, no_wrap=True)
    for name, figures in rows:
        table.add_row(name, str(figures.precision), str(figures.recall))
    console.print(table)


def print_reliability(judged: Sequence[tuple[float, bool]], console: Console) -> None:
    """Print for each bin of confidence how many cases it has and which share of them is right."""
    table = Table(title=f"Reliability, {len(judged)} cases that are compared at all")
    for heading in ("confidence", "mean", "share right"):
        table.add_column(heading, no_wrap=True)
    for low, high, mean, share in reliability(judged):
        table.add_row(f"{low:.1f}–{high:.1f}", f"{mean:.2f}", str(share))
    console.print(table)


def value_of(fact: Fact) -> str:
    """Return the value of a fact as people write it."""
    return ("not " if fact.negated else "") + show(fact.kind, fact.value, fact.unit)


def print_outcome(outcome: PairOutcome, console: Console) -> None:
    """Print a pair: its label, both texts, the facts of both sides, and what was compared."""
    pair = outcome.pair
    verdict = "right" if outcome.is_right else "MISSED" if pair.is_conflict else "FALSE ALARM"
    console.rule(f"{verdict}  {pair.pair_id}  {pair.kind}/{pair.label}  {pair.group}", align="left")

    def print_plain(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    print_plain(f"why: {pair.why}")
    for letter, passage, facts in zip("AB", pair.sides, outcome.facts, strict=True):
        print_plain(f"\n{letter} {passage.domain} {passage.path}  [{passage.section or passage.title}]")
        lines = passage.text.splitlines()
        for line in lines[:_MOST_LINES]:
            print_plain(f"   | {line}")
        if len(lines) > _MOST_LINES:
            print_plain(f"   … {len(lines) - _MOST_LINES} more lines")
        for located in facts:
            print_plain(f"   = {described(located)}")
        if not facts:
            print_plain("   = no facts")
    for conflict in outcome.conflicts:
        print_plain(f"\n  {conflict.confidence:.2f} {_compared(conflict)}\n       {conflict.explanation}")


def described(located: LocatedFact) -> str:
    """Return a fact in a line."""
    fact = located.fact
    qualifiers = f" ({', '.join(fact.qualifiers)})" if fact.qualifiers else ""
    owner = f" of {fact.owner!r}" if fact.owner else ""
    return f"{fact.name!r}{owner} {fact.attribute} {value_of(fact)}  <{fact.side} {fact.form}>{qualifiers}"


def _compared(conflict: FactConflict) -> str:
    first, second = (f"{side.fact.name} {side.fact.attribute} {value_of(side.fact)}"
                     for side in (conflict.first, conflict.second))  # fmt: skip
    return f"{conflict.name} {conflict.attribute}: {first} | {second}"
