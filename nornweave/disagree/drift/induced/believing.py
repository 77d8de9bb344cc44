"""Decide which literals beside names in code are their values, by the agreement of pages with templates of code.

Pages and programs support each other: a template of code is believed as far as its literals
agree with believed templates of pages, and the reverse (in the spirit of expectation and maximisation; Dempster,
Laird & Rubin 1977). Each name counts once, and agreements that are likely by chance are discounted. What many other
repositories have in common is known beforehand (``prior.json``, ``python -m lab.conflicts prior``).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import PurePosixPath

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Fact, Side, Span
from nornweave.disagree.conflicts import LocatedFact
from nornweave.disagree.conflicts.decision import CandidatePair
from nornweave.disagree.drift.induced.code import CodeStatement
from nornweave.disagree.drift.induced.statements import Statement
from nornweave.disagree.facts.comparison import FactComparison
from nornweave.disagree.facts.names import Name, words_of
from nornweave.disagree.facts.passage import SECRET, says_name
from nornweave.disagree.facts.values import measured_in

BELIEVED_FROM = 0.3
"""From this share on, the literals of a template of code are values of the names beside them."""
UNKNOWN = 0.1
"""Share of agreements that is expected of a template before anything is seen."""
ROUNDS = 2
_DEFAULT = lazy_pattern(r"^(\S+ \S+) (?:\S+ )*?defaults?(?: \S+)* V\b")
STRENGTHS = (4.0, 3.0, 2.0)
"""How many names what is known of a wider template counts for at the next narrower one; the first is of the prior."""


@dataclass(frozen=True, kw_only=True)
class CodeFact(LocatedFact):
    """A literal beside a name in code. ``templates`` describe its place, from general to special."""

    templates: tuple[str, ...] = ()
    standing: int = 1


def learned_fact(statement: CodeStatement | Statement, name: Name, owner: str, side: Side, template: str = "") -> Fact:
    """Return a fact with the name and the value of a statement, which a template has read on a page or in code."""
    value = measured_in(statement.value, name.unit)
    return Fact(
        name=name.name,
        owner=owner,
        attribute="requires" if value.kind == "version" else "default",
        kind=value.kind,
        value=value.text,
        unit=value.unit,
        side=side,
        form="learned",
        span=Span(statement.start, statement.end),
        line=statement.line,
        statement=template,
    )


def code_fact(statement: CodeStatement, path: str) -> CodeFact | None:
    """Return a literal beside a name as a fact of its file; ``None`` if it may be a secret or repeats the name."""
    if statement.value.kind == "string" and SECRET.search(statement.written):
        return None
    if says_name(statement.value, statement.name):
        return None
    fact = learned_fact(statement, statement.name, statement.name.owner, "code")
    suffix = PurePosixPath(path).suffix
    templates = (*statement.templates[:2], f"{suffix} {statement.templates[2]}")
    line = (statement.line + 1, statement.line + 1)
    return CodeFact(
        fact=fact, domain="code", path=statement.path or path, line_range=line, templates=templates,
        standing=statement.standing,
    )  # fmt: skip


def templates_of(one: LocatedFact) -> tuple[str, ...]:
    """Return the templates of a value, from general to special. An extractor of code counts as a template."""
    if isinstance(one, CodeFact):
        return one.templates
    if one.fact.side == "documentation":
        said = one.fact.statement
        return general_form(said), said, f"{one.path} {said}"
    return (f"{PurePosixPath(one.path).suffix} {one.fact.form} {one.fact.attribute}",)


def general_form(template: str) -> str:
    """Return a page's template without the name of a table's first column and without the words around *default*."""
    _, bar, column = template.partition("|")
    return f"T|{column}" if bar and template[0] == "T" else _DEFAULT.sub(r"\1 default V", template)


class Rates:
    """For each template the share of its values that agree with the other side, such as the code for a page."""

    def __init__(
        self, seen: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]], prior: Mapping[str, float]
    ) -> None:
        """Count agreements and differences.

        Args:
            seen: template → name → how far each of its literals agrees and differs, in [0, 1].
            prior: template → its share of agreements in other repositories.
        """
        self._prior = prior
        self._counts = {template: _totals(by_name) for template, by_name in seen.items()}

    def of(self, templates: Sequence[str]) -> float:
        """Return the share of agreements of a literal, smoothed from its general to its special ``templates``."""
        share = next((self._prior[one] for one in reversed(templates) if one in self._prior), UNKNOWN)
        for template, strength in zip(templates, STRENGTHS, strict=False):
            agreeing, differing = self._counts.get(template, (0.0, 0.0))
            share = (agreeing + strength * share) / (agreeing + differing + strength)
        return share

    @property
    def counts(self) -> Mapping[str, tuple[float, float]]:
        """Template → numbers of names that agree and that differ."""
        return self._counts


def _totals(by_name: Mapping[str, Sequence[tuple[float, float]]]) -> tuple[float, float]:
    means = [[sum(column) / len(pairs) for column in zip(*pairs, strict=True)] for pairs in by_name.values()]
    return sum(one[0] for one in means), sum(one[1] for one in means)


@dataclass(frozen=True, slots=True)
class Prior:
    """The share of agreements of templates of pages and of code in many repositories."""

    page: Mapping[str, float]
    code: Mapping[str, float]


@cache
def shipped_prior() -> Prior:
    """Load the shipped prior."""
    file = resources.files("nornweave.disagree.drift.induced").joinpath("prior.json")
    stored = json.loads(file.read_text(encoding="utf-8"))
    return Prior(stored["page"], stored["code"])


def believe(pairs: Iterable[CandidatePair], telling: Callable[[Fact], float], prior: Prior) -> tuple[Rates, Rates]:
    """Return the rates of the templates of pages, and those of the templates of code.

    Args:
        pairs: the values on pages, each with every literal of the same name in code. A page's ``fact.statement`` is its
            template.
        telling: a function that returns how unlikely a chance agreement on a value is, in [0, 1].
    """
    by_page: dict[int, list[CandidatePair]] = defaultdict(list)
    by_code: dict[int, list[CandidatePair]] = defaultdict(list)
    for pair in pairs:
        by_page[id(pair.other)].append(pair)
        by_code[id(pair.code)].append(pair)
    pages, codes = Rates({}, prior.page), Rates({}, prior.code)
    for _ in range(ROUNDS):
        belief = {page: pages.of(templates_of(of[0].other)) for page, of in by_page.items()}
        codes = Rates(_seen(by_code.values(), _code, belief, _page, telling), prior.code)
        belief = {code: codes.of(templates_of(of[0].code)) for code, of in by_code.items()}
        pages = Rates(_seen(by_page.values(), _page, belief, _code, telling), prior.page)
    return pages, codes


def _page(pair: CandidatePair) -> LocatedFact:
    return pair.other


def _code(pair: CandidatePair) -> LocatedFact:
    return pair.code


_Side = Callable[[CandidatePair], LocatedFact]


def _seen(
    groups: Iterable[Sequence[CandidatePair]],
    mine: _Side,
    belief: Mapping[int, float],
    theirs: _Side,
    telling: Callable[[Fact], float],
) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """Return template → name → how far each literal of one side agrees with the other side, and how far it differs.

    Args:
        groups: the pairs of each literal.
        belief: how far each literal of the other side is believed.
    """
    seen: dict[str, dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for pairs in groups:
        agreeing = differing = 0.0
        for pair in pairs:
            believed = belief[id(theirs(pair))]
            if pair.outcome is FactComparison.AGREE:
                agreeing = max(agreeing, believed * telling(pair.other.fact))
            else:
                differing = max(differing, believed)
        for template in templates_of(mine(pairs[0])):
            name = pairs[0].other.fact.name
            seen[template][name].append((agreeing, differing if differing > agreeing else 0.0))
    return seen


def is_same_name(page: LocatedFact, code: CodeFact) -> bool:
    """Tell whether a page and a program mean one name. A dotted name may be the end of a longer dotted name."""
    said = (*words_of(page.title or ""), *page.fact.name.split())
    coded = (*code.fact.owner.split(), *code.fact.name.split())
    short, long = (said, coded) if len(said) <= len(coded) else (coded, said)
    return "".join(long).endswith("".join(short))
