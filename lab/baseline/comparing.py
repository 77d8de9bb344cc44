"""Compare two records and write them as Markdown. Pure: nothing is measured or read here."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from lab.baseline.measuring import Rows

MAY_FALL = {"Recall@10": 0.005, "MRR": 0.005, "precision": 0.0, "recall": 0.0}
"""Figures that may not fall by more than this. All others are only shown."""
MUST_STAY = ("queries", "positive")
"""Counts of what was measured: figures of other queries or pairs cannot be compared."""
SUMMED = ("Recall@10", "MRR")
SUM = "sum"
NOISY = "serving (noisy)"
"""The part that depends on what else runs on the machine: its ratios are shown, and nothing in it is worse."""
_ROUNDING = 1e-6


def is_worse(row: str, figure: str, before: float | None, after: float | None) -> bool:
    """Tell whether a figure is lower than it may be, no longer measured, or measured on something else."""
    if before is None:
        return False
    if figure in MUST_STAY:
        return before != after
    allowed = 0.0 if row == SUM else MAY_FALL.get(figure, math.inf)
    return allowed < math.inf and (after is None or before - after > allowed + _ROUNDING)


def worse(before: Mapping[str, Rows], after: Mapping[str, Rows]) -> Iterator[str]:
    """Yield every figure that is worse, with both values, of the parts that both records have."""
    for part in before:
        if part in after and part != NOISY:
            old, new = with_sums(before[part], after[part]), with_sums(after[part], before[part])
            for row, figures in old.items():
                for figure, value in figures.items():
                    now = new.get(row, {}).get(figure)
                    if is_worse(row, figure, value, now):
                        yield f"{part}, {row}, {figure}: {_cell(now, value)}"


def with_sums(rows: Rows, other: Rows) -> Rows:
    """Add a row with the sums over judged sets that another record has as well; none where nothing is judged."""
    common = [figures for row, figures in rows.items() if row in other]
    sums = {
        name: math.fsum(one[name] for one in common) for name in SUMMED if common and all(name in one for one in common)
    }
    return {**rows, SUM: sums} if sums else rows


def report(record: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> str:
    """Return a record as Markdown, a table for each part; beside an earlier record both values where they differ."""
    lines = ["# Baseline", ""]
    for name in record:
        if name != "parts":
            lines.append(f"- {name}: {_told(record[name])}")
            if before and before.get(name) != record[name]:
                lines.append(f"  - before: {_told(before.get(name))}")
    for part, rows in record["parts"].items():
        old = before["parts"].get(part, {}) if before else rows
        lines += [
            "",
            f"## {part}",
            "",
            *_table(part, with_sums(rows, old), with_sums(old, rows), compared=before is not None),
        ]
    if before:
        lines += [*(f"\nNot measured this time: {part}." for part in before["parts"] if part not in record["parts"])]
        found = list(worse(before["parts"], record["parts"]))
        lines += ["", "## Worse", "", *(f"- {one}" for one in found)] if found else ["", "Nothing is worse."]
    return "\n".join(lines)


def _told(value: object) -> str:
    return "; ".join(f"{name} {each}" for name, each in value.items()) if isinstance(value, dict) else str(value)


def _table(part: str, rows: Rows, old: Rows, *, compared: bool) -> Iterator[str]:
    figures = list(dict.fromkeys(figure for row in rows.values() for figure in row))
    yield f"| | {' | '.join(figures)} |"
    yield f"|---|{'---:|' * len(figures)}"
    for name, row in rows.items():
        cells = [
            _cell(row.get(figure), old.get(name, {}).get(figure) if compared else None, ratio=part == NOISY)
            for figure in figures
        ]
        yield f"| {name} | {' | '.join(cells)} |"


def _cell(now: float | None, before: float | None, *, ratio: bool = False) -> str:
    """Return a figure; where it changed, the one before, this one, and the difference or ratio."""
    if now is None or before is None or now == before:
        return _shown(before) + " → –" if now is None and before is not None else _shown(now)
    change = f"× {now / before:.2f}" if ratio and before else f"{now - before:+.4f}"
    return f"{_shown(before)} → {_shown(now)} ({change})"


def _shown(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.0f}" if isinstance(value, int) else f"{value:.4f}" if value < 20 else f"{value:.1f}"
