"""What every function that reads facts earns: planted changes, agreements and labelled pairs without it.

One function at a time answers as if it found nothing. Files in which it finds nothing anyway are not read again.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from lab.conflicts.pairs import OWN, Pair, judge, load_pairs
from lab.conflicts.planted import Base, Facts
from lab.conflicts.repositories import Repository, facts_of
from nornweave.disagree import facts
from nornweave.disagree.conflicts import LocatedFact
from nornweave.disagree.drift.agreements import shown
from nornweave.disagree.drift.files import WorkingTree
from nornweave.disagree.facts.comparison import FactComparison

_NOTHING: tuple[tuple[str, Any], ...] = (
    ("Iterator", ()), ("tuple", ()), ("list", []), ("frozenset", frozenset()), ("dict", {}), ("bool", False),
    ("str", ""),
)  # fmt: skip
_NEEDED = frozenset(("extract", "names", "values", "units", "tokens", "passage", "comparison", "folding"))
"""Modules without which nothing is read."""
PROCESSES = 2


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function that may find nothing.

    Attributes:
        nothing: what it answers then.
        holders: module, class or dictionary that has it, and the name or key there.
    """

    name: str
    call: Callable[..., Any]
    nothing: Any
    holders: tuple[tuple[Any, Any], ...]

    def bind(self, call: Callable[..., Any]) -> None:
        """Let all callers call something else."""
        for holder, key in self.holders:
            if isinstance(holder, dict):
                holder[key] = call
            else:
                setattr(holder, key, call)

    def silent(self) -> Callable[..., Any]:
        """Return a function that answers that there is nothing."""
        return lambda *_arguments, **_named: self.nothing

    def noting(self, used: set[str]) -> Callable[..., Any]:
        """Return a function that answers the same, and notes that there is something."""

        def note(*arguments: Any, **named: Any) -> Any:
            answer = self.call(*arguments, **named)
            answer = list(answer) if inspect.isgenerator(answer) else answer
            if (answer or answer is not self.nothing) and answer not in (self.nothing, []):
                used.add(self.name)
            return answer

        return note


def functions() -> dict[str, Function]:
    """Return the functions of the package of facts that can be left out, by name."""
    for listed in pkgutil.walk_packages(facts.__path__, f"{facts.__name__}."):
        importlib.import_module(listed.name)
    modules = {name: module for name, module in sys.modules.items() if name.startswith(f"{facts.__name__}.")}
    found: list[Function] = []
    for module_name, module in sorted(modules.items()):
        short = module_name.removeprefix(f"{facts.__name__}.")
        if short.split(".")[0] in _NEEDED:
            continue
        for name, call in [*vars(module).items()]:
            if getattr(call, "__module__", "") != module_name:
                continue
            if inspect.isclass(call):
                methods = [(key, one) for key, one in vars(call).items() if inspect.isfunction(one)]
                found += [Function(f"{short}.{name}.{key}", one, _nothing(one), ((call, key),)) for key, one in methods]
            elif callable(call):
                found.append(Function(f"{short}.{name}", call, _nothing(call), tuple(_holders(call, modules.values()))))
    return {one.name: one for one in found if one.nothing is not Ellipsis and "__" not in one.name}


def _nothing(call: Callable[..., Any]) -> Any:
    said = str(getattr(getattr(call, "__wrapped__", call), "__annotations__", {}).get("return", ""))
    if said == "None" or said.endswith("| None"):
        return None
    if said.startswith("tuple") and "..." not in said:
        return ([], None) if said.startswith("tuple[list") else ...
    return next((nothing for name, nothing in _NOTHING if said.startswith(name)), ...)


def _holders(call: Callable[..., Any], modules: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    for module in modules:
        for key, one in [*vars(module).items()]:
            if one is call:
                yield module, key
            elif isinstance(one, dict) and not key.startswith("__"):
                yield from ((one, inner) for inner, value in one.items() if value is call)


@contextmanager
def without(left_out: Iterable[Function]) -> Iterator[None]:
    """Let functions answer that there is nothing."""
    with _bound({one: one.silent() for one in left_out}):
        yield


@contextmanager
def _bound(calls: Mapping[Function, Callable[..., Any]]) -> Iterator[None]:
    _clear()
    for one, call in calls.items():
        one.bind(call)
    try:
        yield
    finally:
        for one in calls:
            one.bind(one.call)
        _clear()


def _clear() -> None:
    for name, module in [*sys.modules.items()]:
        if name.startswith("nornweave.disagree.facts"):
            for one in [*vars(module).values()]:
                with suppress(AttributeError, TypeError):
                    one.cache_clear()


@dataclass(frozen=True, slots=True)
class Ablated:
    """What is lost without some functions; of nothing left out, what there is.

    Attributes:
        files: in which it finds something.
        facts: lost or changed.
        planted: altered values that a diff reports.
        agree: documented values that agree with the code; ``compared`` all that are held to it.
    """

    files: int = 0
    facts: int = 0
    planted: int = 0
    agree: int = 0
    compared: int = 0

    def __add__(self, other: Ablated) -> Ablated:
        return Ablated(*(getattr(self, one) + getattr(other, one) for one in self.__slots__))


class _Read:
    """A repository that was read once with all functions, each noted where it found something."""

    def __init__(self, repository: Repository, *, seed: int, each: int) -> None:
        self._repository = repository
        tree = WorkingTree(repository.root)
        self._files = {file.path: file for file in tree.list()}
        self._raw = {path: tree.read(file) for path, file in self._files.items()}
        self._used: dict[str, set[str]] = defaultdict(set)
        names: set[str] = set()
        self._facts: Facts = {}
        with _bound({one: one.noting(names) for one in functions().values()}):
            for path in self._files:
                names.clear()
                self._facts[path] = self._read(path)
                for name in names:
                    self._used[name].add(path)
        self._base = Base(repository, self._facts)
        self._altered = [*self._base.altered(seed=seed, each=each)]
        self._found = [self._base.look(*one).is_found for one in self._altered]
        self._held = {path: _held(self._base, path) for path in self._files}

    def _read(self, path: str) -> tuple[LocatedFact, ...]:
        return facts_of(self._repository, self._files[path], self._raw[path])

    def whole(self) -> Ablated:
        """Return what is found with all functions."""
        agree, compared = _sums(self._held)
        return Ablated(len(self._files), sum(map(len, self._facts.values())), sum(self._found), agree, compared)

    def without(self, left_out: Sequence[Function]) -> Ablated:
        """Return what is lost without some functions."""
        paths = set().union(*(self._used[one.name] for one in left_out))
        with without(left_out):
            now = {path: self._read(path) for path in sorted(paths)}
            changed = {path: facts for path, facts in now.items() if facts != self._facts[path]}
            lost = sum(len({*self._facts[path]} ^ {*facts}) for path, facts in changed.items())
            is_of_code = any(_of_code(facts) != _of_code(self._facts[path]) for path, facts in changed.items())
            base = self._base.with_facts({**self._facts, **changed}, is_of_code=is_of_code)
            found = [
                base.look(*one).is_found if is_of_code or one[0].path in paths else was
                for one, was in zip(self._altered, self._found, strict=True)
            ]
            held = self._held | {path: _held(base, path) for path in (self._files if is_of_code else changed)}
        agree, compared = _sums(held)
        whole = self.whole()
        return Ablated(
            len(paths), lost, whole.planted - sum(found), whole.agree - agree, whole.compared - compared,
        )  # fmt: skip


def _of_code(stated: Sequence[LocatedFact]) -> set[LocatedFact]:
    return {one for one in stated if one.fact.side != "documentation"}


def _held(base: Base, path: str) -> tuple[int, int]:
    """Return how many documented values of a file agree with the code, and how many are compared."""
    pairs = base.pairs(path)
    agreeing = [pair for pair in pairs if pair.outcome is FactComparison.AGREE]
    agree, compared = ({(pair.other.fact.name, shown(pair.other.fact)) for pair in some} for some in (agreeing, pairs))
    return len(agree), len(compared)


def _sums(held: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    return sum(one[0] for one in held.values()), sum(one[1] for one in held.values())


def _of_repository(repository: Repository, *, groups: Sequence[str], seed: int, each: int) -> dict[str, Ablated]:
    read = _Read(repository, seed=seed, each=each)
    known = functions()
    return {"": read.whole()} | {one: read.without(_members(one, known)) for one in groups}


def _members(group: str, known: Mapping[str, Function]) -> list[Function]:
    """Return the functions of a group: names joined by ``+``; a name may be that of a module."""
    wanted = group.split("+")
    found = [one for name, one in known.items() if any(name == each or name.startswith(f"{each}.") for each in wanted)]
    if not found:
        raise ValueError(f"no function of the package of facts is called {group!r}")
    return found


def ablate(
    repositories: Sequence[Repository], pairs: Path, *, groups: Sequence[str] = (), seed: int, each: int
) -> Iterator[tuple[str, Ablated, str, str]]:
    """Measure without each function or group; the first row is what there is with everything.

    Yields:
        Name, what is lost in the repositories, labelled pairs from elsewhere, own pairs; `=` is the same as with all.
    """
    known = functions()
    chosen = list(groups or known)
    with get_context("fork").Pool(PROCESSES, maxtasksperchild=1) as pool:
        task = partial(_of_repository, groups=chosen, seed=seed, each=each)
        rows = list(pool.imap_unordered(task, repositories))
    labelled = [load_pairs(pairs), load_pairs(OWN)]
    whole = [_judged(some) for some in labelled]
    yield "", sum((row[""] for row in rows), Ablated()), whole[0], whole[1]
    for group in chosen:
        with without(_members(group, known)):
            now = [_judged(some) for some in labelled]
        judged = ["=" if new == old else new for new, old in zip(now, whole, strict=True)]
        yield group, sum((row[group] for row in rows), Ablated()), judged[0], judged[1]


def _judged(pairs: Sequence[Pair]) -> str:
    alarms = [one.pair.is_conflict for one in judge(pairs) if one.is_alarm]
    return f"{sum(alarms)} right, {len(alarms) - sum(alarms)} false"
