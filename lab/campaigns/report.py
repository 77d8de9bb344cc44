"""What a campaign found, as a row of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab.campaigns.processes import EndedProcess

SHOWN = 10


@dataclass(slots=True)
class Tally:
    """Counts of one campaign.

    Attributes:
        runs: what happened how often, in the words of the table.
        outcomes: how it ended, in the words of the table.
        trouble: what must not be, each with what is needed to do it again.
        notes: what helps to judge the campaign itself.
    """

    name: str
    runs: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    trouble: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def ended_well(self, what: str, ended: EndedProcess) -> bool:
        """Return whether a process did its work; otherwise its end, with its cause, is what must not be."""
        is_well = ended.code == 0 and not ended.defect
        if not is_well:
            self.trouble.append(f"{what} {ended.cause}")
        return is_well


@dataclass(frozen=True, slots=True)
class Order:
    """What a campaign is asked to do: ``runs`` times, decided by ``seed``, in a folder of its own.

    ``storage`` is the address of a PostgreSQL server that stores documents; only ``kill`` asks for it.
    """

    folder: Path
    seed: int
    runs: int
    storage: str = ""


def as_markdown(tallies: Sequence[Tally]) -> str:
    """Return the table, and below it what must not be."""
    lines = ["| campaign | what was done | how it ended | must not be |", "|---|---|---|---|"]
    for tally in tallies:
        done, ended = _counts(tally.runs), _counts(tally.outcomes)
        lines.append(f"| {tally.name} | {done} | {ended} | {len(tally.trouble)} |")
    lines += [f"\n{tally.name}: {note}" for tally in tallies for note in tally.notes]
    for tally in tallies:
        lines += [f"\n{tally.name}: {trouble}" for trouble in tally.trouble[:SHOWN]]
        if (more := len(tally.trouble) - SHOWN) > 0:
            lines.append(f"\n{tally.name}: {more} more")
    return "\n".join(lines) + "\n"


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counter.items())
