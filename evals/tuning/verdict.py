"""Whether a tuned plan is kept: only for a gain beyond chance, and only if nothing else is lost."""

from __future__ import annotations

from collections.abc import Sequence

from evals.tuning.results import Change

SIGNIFICANT = 0.05


def refusal(held_out: Change, sets: Sequence[Change], *, changed: bool) -> str:
    """Say why a plan is not kept; nothing where it may be.

    Args:
        held_out: what the folds' plans change on queries that they were not fitted to.
        sets: the same for each judged set.
        changed: whether the best plan is another than the one in force.
    """
    if not changed:
        return "Nothing that was tried is better by more than one standard error than the plan in force."
    if held_out.comparison.difference <= 0 or held_out.p_gain >= SIGNIFICANT:
        return f"On queries that it was not fitted to, {_figures(held_out)}: no more than chance."
    return drop(sets)


def drop(changes: Sequence[Change]) -> str:
    """Say which of these loses beyond chance; nothing where none does."""
    dropped = [one for one in changes if one.comparison.difference < 0 and one.comparison.p_drop < SIGNIFICANT]
    return f"{dropped[0].name} gets worse: {_figures(dropped[0])}." if dropped else ""


def praise(held_out: Change) -> str:
    """Say why a plan is kept."""
    return f"On queries that it was not fitted to, {_figures(held_out)}: better beyond chance."


def _figures(change: Change) -> str:
    found = change.comparison
    p = change.p_gain if found.difference > 0 else found.p_drop
    interval = f"[{found.low:+.4f}, {found.high:+.4f}]"
    return f"{found.before:.4f} → {found.after:.4f} ({found.difference:+.4f} {interval}, p = {p:.4f})"
