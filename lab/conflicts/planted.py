"""Planted drift: a documented value is altered, one at a time and in memory, to see whether a diff reports it."""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lab.conflicts.documented import KINDS, Documented, canonical, documented
from lab.conflicts.repositories import Repository, all_facts, comments_of, facts_of, manifests, texts
from lab.conflicts.shares import Share
from nornweave.core.errors import DocumentError
from nornweave.core.text.decode import decode
from nornweave.disagree.conflicts import LocatedFact
from nornweave.disagree.conflicts.comparable import MAX_BLOCK, comparable, keys_of, outcome
from nornweave.disagree.conflicts.decision import CandidatePair, corpus_of, features, shipped
from nornweave.disagree.drift.agreements import before, broken
from nornweave.disagree.drift.files import SourceFile, WorkingTree, kind_of
from nornweave.disagree.drift.induced.learning import (
    CodeNames,
    CodeNotation,
    Compared,
    Templates,
    believed,
    code_rates,
    compare,
    located,
    read_statements,
    stated,
)
from nornweave.disagree.facts.comparison import FactComparison

Reason = Literal["found", "file not read", "not read", "never agreed"]
Facts = Mapping[str, Sequence[LocatedFact]]

_TIMES = (2.0, 0.5, 3.0, 10.0)
_SWITCHED = {"true": "false", "false": "true", "on": "off", "off": "on", "enabled": "disabled", "disabled": "enabled"}


@dataclass(frozen=True, slots=True)
class Planted:
    """A documented value that was altered.

    Attributes:
        altered: what stands there instead of ``documented.literal``.
        reason: ``found``, or where it was lost: a file that is left out, no value read there, or one that differs
            and was not seen to agree before.
        others: what else was reported, which nobody altered.
    """

    repository: str
    documented: Documented
    altered: str
    reason: Reason
    others: int = 0

    @property
    def is_found(self) -> bool:
        """Tell whether a diff reports the change."""
        return self.reason == "found"


class CodeIndex:
    """The values of programs and configuration by what they are joined by, to compare single pages with."""

    def __init__(self, facts: Iterable[LocatedFact]) -> None:
        """Index the facts of a repository."""
        everything = list(facts)
        self._corpus = corpus_of(everything)
        self._size: Counter[str] = Counter()
        self._by_key: dict[str, list[LocatedFact]] = defaultdict(list)
        for one in everything:
            for key in keys_of(one.fact):
                self._size[key] += 1
                if one.fact.side in {"code", "configuration"}:
                    self._by_key[key].append(one)

    def pairs(self, page: Iterable[LocatedFact]) -> list[CandidatePair]:
        """Return what a page or the comments of a program state beside the values of the code."""
        compared = []
        for one in page:
            if one.fact.side != "documentation":
                continue
            keys = [key for key in keys_of(one.fact) if self._size[key] <= MAX_BLOCK]
            near = {id(code): code for key in keys for code in self._by_key.get(key, ())}
            for code in near.values():
                said = outcome(code.fact, one.fact) if comparable(code, one) else FactComparison.UNDECIDED
                if said is not FactComparison.UNDECIDED:
                    strength = shipped().probability(features(code, one, self._corpus))
                    compared.append(CandidatePair(code, one, said, strength))
        return compared


class _Notation:
    """What the templates of a repository state, by page."""

    def __init__(self, repository: Repository, facts: Sequence[LocatedFact]) -> None:
        tree = WorkingTree(repository.root)
        self._files = {file.path: file for file in tree.list()}
        comments = {file: comments_of(file, tree.read(file)) for file in self._files.values() if file.kind == "code"}
        notation = CodeNotation(lambda file: _text(tree.read(file)), comments)
        pairs = notation.pairs(self._files.values(), facts)
        rates = code_rates(pairs, CodeNames(facts).telling)
        self._names = CodeNames([*facts, *believed(pairs, rates)])
        self._compared = {path: self._compare(path, _text(tree.read(file))) for path, file in self._files.items()}
        everything = [one for compared in self._compared.values() for one in compared]
        self._templates = Templates(everything, self._names.telling)

    def stated(self, path: str, text: str | None = None) -> list[CandidatePair]:
        """Return what a page states, or another text in its place."""
        compared = self._compared.get(path, []) if text is None else self._compare(path, text)
        return stated(compared, self._templates)

    def _compare(self, path: str, text: str) -> list[Compared]:
        file = self._files.get(path)
        if file is None:
            return []
        read = read_statements(file, text, comments_of(file, text.encode()), self._names.is_known)
        return list(compare((fact for one in read if (fact := located(one, path)) is not None), self._names))


def _text(raw: bytes) -> str:
    try:
        return decode(raw)
    except DocumentError:
        return ""


class Base:
    """A repository before anything is altered, as ``nornweave drift --diff`` reads it.

    Without ``learn`` extractors read alone.
    """

    _notation: _Notation | None = None

    def __init__(self, repository: Repository, facts: Facts | None = None) -> None:
        """Read everything, unless its facts are given."""
        self.repository = repository
        self.facts = all_facts(repository) if facts is None else facts
        files = list(texts(repository.root))
        self._contents = {path: text for path, _, text in files}
        self._values = list(documented(files, manifests(repository.root)))
        self._index = CodeIndex(fact for facts in self.facts.values() for fact in facts)

    def pairs(self, path: str) -> list[CandidatePair]:
        """Return the documented values of a file beside those of the code."""
        learned = self._notation.stated(path) if self._notation else []
        return [*self._index.pairs(self.facts.get(path, ())), *learned]

    def learn(self) -> Base:
        """Read by the templates that the repository teaches as well."""
        self._notation = _Notation(self.repository, [fact for facts in self.facts.values() for fact in facts])
        return self

    def altered(self, *, seed: int, each: int) -> Iterator[tuple[Documented, str, str]]:
        """Choose up to ``each`` documented values, with another literal and the text of the page that has it."""
        chooser = random.Random(f"{seed} {self.repository.name}")  # noqa: S311
        strings = sorted({one.literal[1:-1] for one in self._values if one.kind == "string"})
        for one in choose(self._values, each, chooser):
            literal = alter(one, chooser, strings)
            if literal is not None:
                yield one, literal, replaced(self._contents[one.path], one, literal)

    def plant(self, *, seed: int, each: int) -> Iterator[Planted]:
        """Alter documented values, one at a time, and look what a diff reports."""
        for one, literal, changed in self.altered(seed=seed, each=each):
            yield self.look(one, literal, changed)

    def look(self, one: Documented, literal: str, changed: str) -> Planted:
        """Alter a page, and tell whether that is reported, and what else; other pages stay as they are."""
        kind = kind_of(one.path)
        read = facts_of(self.repository, SourceFile(one.path, kind), changed.encode()) if kind else ()
        pairs_now = self._index.pairs(read)
        if kind and self._notation:
            pairs_now += self._notation.stated(one.path, changed)
        start = changed.rfind("\n", 0, min(one.top, one.start)) + 1
        end = changed.find("\n", one.start + len(literal))
        end = end if end >= 0 else len(changed)

        def is_there(side: LocatedFact) -> bool:
            return side.path == one.path and side.fact.span.start < end and start <= side.fact.span.end

        was = before(self.pairs(one.path), {})
        reported = [is_there(found.conflict.second) for found in broken(was, pairs_now)]
        others = reported.count(False)
        if any(reported):
            return Planted(self.repository.name, one, literal, "found", others)
        here = [pair for pair in pairs_now if is_there(pair.other) and pair.outcome is FactComparison.DIFFER]
        reason: Reason = "never agreed" if here else "not read" if kind else "file not read"
        return Planted(self.repository.name, one, literal, reason, others)


def choose(values: Iterable[Documented], each: int, chooser: random.Random) -> list[Documented]:
    """Choose values of different names, by turns from each kind, at random within it."""
    by_kind: dict[str, list[Documented]] = defaultdict(list)
    for one in values:
        by_kind[one.kind].append(one)
    for kind in KINDS:
        chooser.shuffle(by_kind[kind])
    chosen: dict[str, Documented] = {}
    while len(chosen) < each and any(by_kind.values()):
        for kind in KINDS:
            while by_kind[kind] and by_kind[kind][-1].name in chosen:
                by_kind[kind].pop()
            if by_kind[kind] and len(chosen) < each:
                one = by_kind[kind].pop()
                chosen[one.name] = one
    return list(chosen.values())


def alter(one: Documented, chooser: random.Random, strings: Sequence[str] = ()) -> str | None:
    """Return another literal of the same kind and spelling that code gives to the name nowhere, or ``None``."""
    others = list(dict.fromkeys(_others(one, strings)))
    chooser.shuffle(others)
    return next((other for other in others if canonical(other) not in {*one.taken, canonical(one.literal)}), None)


def _others(one: Documented, strings: Sequence[str]) -> Iterator[str]:
    text = one.literal
    if one.kind == "boolean":
        other = _SWITCHED[text.lower()]
        yield other.capitalize() if text[0].isupper() else other
    elif one.kind == "string":
        shape = re.sub(r"\w+", "w", text[1:-1])
        alike = [other for other in strings if re.sub(r"\w+", "w", other) == shape]
        yield from (f"{text[0]}{other}{text[-1]}" for other in (*alike, text[1:-1] + "2"))
    elif one.kind == "list":
        items = text[1:-1].split(",")
        yield from (
            f"[{','.join((*items[:at], *items[at + 1 :])).strip()}]" for at in range(len(items)) if len(items) > 1
        )
    elif one.kind == "version":
        head, _, last = text.rpartition(".")
        yield from (f"{head}{'.' if head else ''}{int(last) + step}" for step in (-1, 1, 2) if int(last) + step > 0)
    else:
        yield from _numbers(text)


def _numbers(text: str) -> Iterator[str]:
    """Yield plausible other numbers in the same spelling: digit separators, decimals, exponent."""
    figure = re.match(r"(-?)([\d_,]+)(\.\d+)?(e\d+)?", text)
    if figure is None:
        return
    sign, digits, decimals, exponent = figure.groups()
    separator = "," if "," in digits else "_" if "_" in digits else ""
    number = float(digits.replace(",", "").replace("_", "") + (decimals or ""))
    for other in [number * times for times in _TIMES] if number and not sign else (1.0, 5.0, 30.0):
        if decimals:
            yield f"{other:.{len(decimals) - 1}f}" if round(other, len(decimals) - 1) else f"{other:g}"
        elif other == int(other):
            yield f"{int(other):{separator}}{exponent or ''}"


def replaced(text: str, one: Documented, literal: str) -> str:
    """Return a page with one value altered; the columns of a table stay where they are."""
    behind = text[one.end :]
    gap = len(behind) - len(behind.lstrip(" "))
    if gap > 1:
        behind = " " * max(1, gap + len(one.literal) - len(literal)) + behind[gap:]
    return text[: one.start] + literal + behind


def summary(planted: Sequence[Planted]) -> Iterator[tuple[str, Share]]:
    """Yield the share found of all, by kind, by repository, and by repository's mean of shares."""
    yield "all", _share(planted)
    for kind in KINDS:
        yield kind, _share([one for one in planted if one.documented.kind == kind])
    for repository in dict.fromkeys(one.repository for one in planted):
        yield repository, _share([one for one in planted if one.repository == repository])


def _share(planted: Sequence[Planted]) -> Share:
    return Share(sum(one.is_found for one in planted), len(planted))


def reasons(planted: Iterable[Planted]) -> dict[str, int]:
    """Count where altered values were lost, the most frequent first."""
    return dict(Counter(one.reason for one in planted if not one.is_found).most_common())
