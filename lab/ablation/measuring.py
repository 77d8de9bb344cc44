"""Take a function out of this process, and measure the labelled pairs without it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any

from lab import duplicates
from lab.ablation.targets import Target
from lab.conflicts.pairs import Outcome, measured
from lab.conflicts.shares import Figures, figures
from nornweave.core.types import Fact
from nornweave.disagree.conflicts import find_conflicts
from nornweave.disagree.conflicts.model import Model, shipped


@dataclass(frozen=True, slots=True)
class Row:
    """What is measured without a part: figures by set of pairs, and what was read from which passage."""

    name: str
    sets: Mapping[str, Figures]
    facts: frozenset[tuple[str, Fact]] = frozenset()


@contextmanager
def without(target: Target) -> Iterator[None]:
    """Replace a function, wherever a module of the package holds it, by one that yields nothing.

    Raises:
        AttributeError: there is no such function.
    """
    owner: Any = import_module(target[0])
    *outer, name = target[1].split(".")
    for each in outer:
        owner = getattr(owner, each)
    function = getattr(owner, name)
    empty = yields_nothing(function)
    held = list(_holders(function))
    _clear_caches()
    try:
        for holder, key, value in held:
            holder[key] = empty if value is function else partial(empty, *value.args)
        setattr(owner, name, empty)
        yield
    finally:
        setattr(owner, name, function)
        for holder, key, value in held:
            holder[key] = value
        _clear_caches()


def yields_nothing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that returns no items, ``None``, ``False`` or no text, as the annotation of another says."""
    returned = str(inspect.signature(function).return_annotation)
    if returned.startswith("Iterator"):
        return lambda *_, **__: iter(())
    empty: object = None if returned.endswith("None") else {"bool": False, "str": ""}.get(returned, ())
    return lambda *_, **__: empty


def _holders(function: object) -> Iterator[tuple[dict[Any, Any], Any, Any]]:
    """Yield where modules hold a function: under a name, or in a table of readers, bound to arguments or not."""
    modules = list(_modules())
    for holder in (*modules, *(value for names in modules for value in names.values() if type(value) is dict)):
        for key, value in holder.items():
            if value is function or (isinstance(value, partial) and value.func is function):
                yield holder, key, value


def _clear_caches() -> None:
    """Forget what a function that is replaced had a part in."""
    for names in _modules():
        for value in names.values():
            if callable(clear := getattr(value, "cache_clear", None)):
                clear()


def _modules() -> Iterator[dict[str, Any]]:
    return (vars(module) for name, module in sorted(sys.modules.items()) if name.startswith("nornweave."))


def conflict_row(name: str, outcomes: Mapping[str, Sequence[Outcome]]) -> Row:
    """Measure conflict detection on each set."""
    sides = (side for each in outcomes.values() for outcome in each for side in outcome.facts)
    facts = frozenset((one.chunk_id, one.fact) for side in sides for one in side)
    return Row(name, {part: measured(each) for part, each in outcomes.items()}, facts)


def feature_rows(outcomes: Mapping[str, Sequence[Outcome]]) -> Iterator[Row]:
    """Measure the shipped model without the weight of each feature; the other weights stay as they are."""
    model = shipped()
    for feature in sorted(model.weights):
        other = Model(model.intercept, {name: weight for name, weight in model.weights.items() if name != feature})
        yield conflict_row(feature, {part: [_decided(one, other) for one in each] for part, each in outcomes.items()})


def _decided(outcome: Outcome, model: Model) -> Outcome:
    found = find_conflicts([fact for side in outcome.facts for fact in side], min_confidence=0.0, model=model)
    return replace(outcome, conflicts=tuple(found))


def duplicate_row(
    name: str, pairs: Sequence[duplicates.LabelledPair], vectors: Iterable[duplicates.PairVectors]
) -> Row:
    """Measure deduplication on each split."""
    outcomes: dict[str, list[tuple[bool, bool]]] = {"own dev": [], "own test": []}
    for pair, each in zip(pairs, vectors, strict=True):
        outcomes[f"own {pair.split}"].append((pair.duplicate, duplicates.judge(pair, each).merged))
    return Row(name, {part: figures(each) for part, each in outcomes.items()})
