"""Learn which templates state the value of a name: those whose values agree with the code, counted per name.

Distant supervision (Mintz et al., ACL 2009) over wrapper induction: a template of a page and a form of the code whose
values mostly agree, agreements likely by chance discounted, are taken to state the same thing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import PurePosixPath
from typing import TypeAlias

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Fact
from nornweave.disagree.conflicts import LocatedFact
from nornweave.disagree.conflicts.comparable import NameMatch, match_names, outcome
from nornweave.disagree.conflicts.decision import CandidatePair
from nornweave.disagree.drift.files import SourceFile, format_of
from nornweave.disagree.drift.induced.believing import (
    BELIEVED_FROM,
    CodeFact,
    Rates,
    believe,
    code_fact,
    general_form,
    is_same_name,
    learned_fact,
    shipped_prior,
    templates_of,
)
from nornweave.disagree.drift.induced.code import Definitions, code_statements
from nornweave.disagree.drift.induced.statements import (
    Known,
    Statement,
    comment_statements,
    statements_of,
)
from nornweave.disagree.facts.code import Comment
from nornweave.disagree.facts.comparison import FactComparison
from nornweave.disagree.facts.expressions import read_value
from nornweave.disagree.facts.names import Name, is_generic, join_keys, read_name, words_of
from nornweave.disagree.facts.passage import SECRET
from nornweave.disagree.facts.versions import PRODUCTS
from nornweave.read.blocks.reader import shown_text
from nornweave.read.worth import is_built

STATES_FROM = 0.3
"""From this share of agreements on, a template is taken to state values."""
HOLDS_FROM = 0.6
"""From this share on, what it reads is held by a lock; of what is below, a third was right when 60 were read."""
MOST = 2 / 3
"""Share of the manifests of a repository that have to say one version: others are of its tools."""
MAX_HOLDERS = 60
"""Values of one name in code that a statement is compared with."""
PREFIXED, SHARE = 4, 0.3
"""Documented names, and their share, from which a word before them in programs is no part of them."""
_IDENTIFIER = lazy_pattern(r"[A-Za-z_]\w{3,79}")
MAX_LEARNED = 3
"""Values that templates of code give a name; of more each is one of many."""
PRIOR = 0.1
"""Share of agreements that is expected before anything is seen."""
UNSEEN = 10
"""Other values that a kind could have: of few values in code none agrees by chance."""
_COMPARED = frozenset(("default", "value", "setting", "requires"))
EXTRACTED = "E "
"""Before the template of a statement that an extractor read."""
_STRENGTH = (("page", 4.0), ("both", 3.0), ("here", 3.0))
"""How many names what is known at a wider level counts for at the next narrower one."""

Template: TypeAlias = tuple[str, ...]


class CodeNames:
    """The values of the code by name."""

    def __init__(self, facts: Iterable[LocatedFact]) -> None:
        """Index the facts of programs and configuration."""
        self._by_key: dict[str, list[LocatedFact]] = defaultdict(list)
        self._learned: dict[str, set[str]] = defaultdict(set)
        kinds: dict[str, Counter[str]] = defaultdict(Counter)
        for one in facts:
            if isinstance(one, CodeFact):
                self._learned[one.fact.name].add(one.fact.value)
            if one.fact.side in {"code", "configuration"} and one.fact.attribute in _COMPARED:
                kinds[one.fact.kind][one.fact.value] += 1
                for key in _keys(one.fact.name):
                    self._by_key[key].append(one)
        self._chance = {
            (kind, value): count / (sum(values.values()) + UNSEEN)
            for kind, values in kinds.items()
            for value, count in values.items()
        }
        self.is_known: Known = lru_cache(1 << 16)(self._is_known)

    def _is_known(self, written: str) -> bool:
        name = read_name(written)
        if name is None or (len(name.name) < 3 and name.name not in PRODUCTS):
            return False
        return any(key in self._by_key for key in (*_keys(name.name), f"{name.owner}{name.name}".replace(" ", "")))

    def holders(self, statement: LocatedFact, most: int = MAX_LEARNED) -> Sequence[LocatedFact]:
        """Return the code's values of a statement's name. If its owner has some of them, return only these.

        Values read by templates of code are left out if the statement is an example, or if they are more than ``most``
        and their file is not called as the page.
        """
        most = 0 if is_example(statement.fact.statement) else most
        found: dict[int, LocatedFact] = {}
        full = "".join(_full_name(statement))
        for key in (*_keys(statement.fact.name), full):
            for one in self._by_key.get(key, ()):
                is_one_of_many = isinstance(one, CodeFact) and len(self._learned[one.fact.name]) > most
                is_one_of_many = is_one_of_many and not (most and has_one_stem(statement, one))
                if not is_one_of_many and (not isinstance(one, CodeFact) or is_same_name(statement, one)):
                    found[id(one)] = one
        joined = "".join(statement.name_words)
        same = [one for one in found.values() if "".join(one.fact.name.split()) == full]
        same = same or [one for one in found.values() if "".join(one.name_words) == joined]
        matching = [one for one in found.values() if match_names(statement, one) is not NameMatch.OTHER]
        chosen = same or matching
        if statement.fact.attribute == "requires":
            chosen = _nearest(chosen, statement.path)
        owner = set(words_of(statement.title or "")) - {"default", "defaults"}  # no class, but Rust's ``fn default``
        owned = [one for one in chosen if owner and not owner.isdisjoint(one.context)]
        if is_generic(statement.fact.name):  # each file that configures something has a ``type``
            chosen = [one for one in chosen if one.fact.side == "code"]
        return (owned or chosen)[:MAX_HOLDERS]

    def telling(self, fact: Fact) -> float:
        """Return how unlikely a chance agreement on a value is, in [0, 1]."""
        return 1 - self._chance.get((fact.kind, fact.value), 0.0)


def has_one_stem(page: LocatedFact, code: LocatedFact) -> bool:
    """Tell whether page and code are called the same, as ``index.d.ts`` and ``index.js``."""
    first, second = (PurePosixPath(one.path).name.partition(".")[0] for one in (page, code))
    return first == second


def _full_name(statement: LocatedFact) -> tuple[str, ...]:
    """Return the words of a name in order, including those of the part before its last dot."""
    return *words_of(statement.title or ""), *statement.fact.name.split()


def is_example(template: str) -> bool:
    """Tell whether a template is of code on a page and does not mention a default."""
    return template.removeprefix("C").startswith("F") and "default" not in template


def _nearest(manifests: Sequence[LocatedFact], page: str) -> list[LocatedFact]:
    """Return the manifests of the innermost package around a page. Without a package return those with the usual value.

    The result is empty if most of them do not have the same value.
    """
    around = [one for one in manifests if page.startswith(_folder(one))]
    if around:
        innermost = max(map(len, map(_folder, around)))
        return [one for one in around if len(_folder(one)) == innermost]
    ((value, said),) = Counter(one.fact.value for one in manifests).most_common(1) or (("", 0),)
    return [one for one in manifests if one.fact.value == value] if said >= MOST * len(manifests) else []


def _folder(one: LocatedFact) -> str:
    return one.path[: one.path.rfind("/") + 1]


def _keys(name: str) -> set[str]:
    """Return the join keys of a name, and the name without blanks, because flags may join words: ``--maxrows``."""
    return {*join_keys(name), name.replace(" ", "")}


def located(statement: Statement, path: str) -> LocatedFact | None:
    """Return a statement as a fact of its page; ``None`` if it has no name, or a secret or its own name as value."""
    name = read_name(statement.name)
    words = words_of(statement.value.text) if statement.value.kind == "string" else ()
    is_alias = len(statement.value.text) == len("-r") and statement.value.text[0] == "-"
    is_alias &= statement.value.kind == "string"
    if name is None or is_alias or words == words_of(name.name) or (words and SECRET.search(statement.name)):
        return None
    fact = learned_fact(statement, name, " ".join(words_of(statement.owner)), "documentation", statement.template)
    number = (statement.line + 1, statement.line + 1)
    return LocatedFact(fact=fact, domain="documentation", path=path, title=name.owner, line_range=number)


@dataclass(frozen=True, slots=True)
class Compared:
    """A statement of a page and a value of the code. ``page`` and ``code`` are their templates."""

    pair: CandidatePair
    page: str
    code: str


def compare(statements: Iterable[LocatedFact], names: CodeNames) -> Iterator[Compared]:
    """Compare the statements of pages with the values of the code; what extractors read only with learned values."""
    for page in statements:
        for code in names.holders(page):
            said = outcome(code.fact, page.fact)
            is_known = page.fact.statement.startswith(EXTRACTED) and not isinstance(code, CodeFact)
            if said is not FactComparison.UNDECIDED and not is_known:
                yield Compared(CandidatePair(code, page, said, 0.0), page.fact.statement, templates_of(code)[:2][-1])


def extracted(facts: Iterable[LocatedFact]) -> Iterator[LocatedFact]:
    """Yield the defaults that extractors read on pages as statements of templates."""
    for one in facts:
        if one.fact.side == "documentation" and one.fact.attribute == "default" and one.domain == "documentation":
            said = f"{EXTRACTED}default {one.fact.form}"
            yield replace(one, fact=replace(one.fact, form="learned", statement=said))


class Templates:
    """How often values of templates agree with the code."""

    def __init__(self, compared: Iterable[Compared], telling: Callable[[Fact], float]) -> None:
        """Count agreements, weighted by ``telling``, and differences. Every name counts once."""
        seen: dict[Template, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        places: dict[tuple[Template, str, int, int], float] = {}
        for one in compared:
            agrees = one.pair.outcome is FactComparison.AGREE
            other = one.pair.other
            for level in _levels(one):
                place = (level, other.fact.name, other.fact.line, other.fact.span.start)
                weight = telling(other.fact) if agrees else 0.0
                places[place] = max(places.get(place, 0.0), weight)
        for (level, name, _, _), weight in places.items():
            seen[level][name].append(weight)
        self._counts: Mapping[Template, tuple[float, float]] = {
            level: (
                sum(sum(weights) / len(weights) for weights in by_name.values()),
                sum(sum(not weight for weight in weights) / len(weights) for weights in by_name.values()),
            )
            for level, by_name in seen.items()
        }

    def rate(self, one: Compared) -> float:
        """Return the share of agreements of a statement, smoothed from its general to its special templates."""
        share = PRIOR
        for level, (_, strength) in zip(_levels(one), _STRENGTH, strict=True):
            agreeing, differing = self._counts.get(level, (0.0, 0.0))
            share = (agreeing + strength * share) / (agreeing + differing + strength)
        return share


def _levels(one: Compared) -> tuple[Template, Template, Template]:
    return (general_form(one.page),), (one.page, one.code), (one.pair.other.path, one.page, one.code)


def stated(compared: Iterable[Compared], templates: Templates) -> list[CandidatePair]:
    """Return the pairs whose templates mostly agree with the code. Their strength is the share of agreements."""
    rated = ((one.pair, templates.rate(one)) for one in compared)
    return [replace(pair, strength=rate) for pair, rate in rated if rate >= STATES_FROM]


@dataclass
class Notation:
    """Reads the statements of a repository's pages and comments by templates.

    Attributes:
        text_of: a function that returns the text of a page.
        comments: the comments of the programs.
        known: a function that tells whether the code has a name at any of the compared commits.
    """

    text_of: Callable[[SourceFile], str]
    comments: Mapping[SourceFile, Sequence[Comment]]
    known: Known
    _read: dict[SourceFile, tuple[LocatedFact, ...]] = field(default_factory=dict)

    def compared(
        self, files: Iterable[SourceFile], names: CodeNames, facts: Iterable[LocatedFact] = ()
    ) -> list[Compared]:
        """Compare the statements of pages and comments, and the ``facts`` of pages, with the values of the code.

        A file is read once.
        """
        listed = list(files)
        for file in listed:
            if file not in self._read:
                read = read_statements(file, self.text_of(file), self.comments.get(file, ()), self.known)
                self._read[file] = tuple(fact for one in read if (fact := located(one, file.path)) is not None)
        statements = [one for file in listed for one in self._read[file]]
        there = {(one.path, one.fact.line, one.fact.name) for one in statements}
        new = (one for one in extracted(facts) if (one.path, one.fact.line, one.fact.name) not in there)
        return list(compare((*statements, *new), names))


def read_statements(file: SourceFile, text: str, comments: Iterable[Comment], known: Known) -> Iterator[Statement]:
    """Yield the literals near names of a page, or in the comments of a program."""
    if file.kind == "documentation":
        yield from statements_of(shown_text(text, format_of(file.path)), known)
    else:
        yield from comment_statements(text, comments, known)


@dataclass
class CodeNotation:
    """Literals in a repository's programs that stand beside names to which pages give values.

    Attributes:
        text_of: a function that returns the text of a file.
        comments: the comments of the programs.
    """

    text_of: Callable[[SourceFile], str]
    comments: Mapping[SourceFile, Sequence[Comment]]
    _pages: dict[SourceFile, tuple[LocatedFact, ...]] = field(default_factory=dict)

    def pairs(self, files: Iterable[SourceFile], facts: Iterable[LocatedFact]) -> list[CandidatePair]:
        """Return pairs of a value on a page and a value of the same name in code: a known value, or any literal."""
        listed, facts = list(files), list(facts)
        pages = [*(fact for file in listed for fact in self._stated(file)), *extracted(facts)]
        wanted = {joined for fact in pages for joined in ("".join(fact.fact.name.split()), "".join(_full_name(fact)))}
        programs = [
            (file.path, text)
            for file in listed
            if file.kind == "code" and file.program is not None
            for text in (self.text_of(file),)
            if not is_built(text)
        ]
        constants = Definitions(programs)
        words = {word for _, text in programs for word in _IDENTIFIER.findall(text)}
        meant = _among(wanted, _prefixes(words, wanted, {fact.fact.name for fact in pages}))
        literals = [
            fact
            for path, text in programs
            for one in code_statements(text, path, meant, constants)
            if (fact := code_fact(one, path)) is not None
        ]
        names = CodeNames([*facts, *literals])
        return [
            CandidatePair(code, page, said, 0.0)
            for page in pages
            for code in names.holders(page, most=MAX_HOLDERS)
            if (said := outcome(code.fact, page.fact)) is not FactComparison.UNDECIDED
        ]

    def _stated(self, file: SourceFile) -> tuple[LocatedFact, ...]:
        if file not in self._pages:
            comments = self.comments.get(file, ())
            read = read_statements(file, self.text_of(file), comments, may_be_name)
            self._pages[file] = tuple(fact for one in read if (fact := located(one, file.path)) is not None)
        return self._pages[file]


def _prefixes(written: Iterable[str], wanted: Collection[str], pages: Iterable[str]) -> frozenset[str]:
    """Return the first words that programs put before documented names: *conf* of ``Conf_MaxJoins``.

    Many names of the programs with such a word are documented without it, and few are documented with it.

    Args:
        written: the names of the programs.
        wanted: the documented names, without blanks between their words.
        pages: the same names with blanks.
    """
    rests: dict[str, list[str]] = defaultdict(list)
    for first, _, rest in {one.name.partition(" ") for word in written if (one := read_name(word)) is not None}:
        rests[first] += [rest] if " " in rest else []
    said = Counter(name.partition(" ")[0] for name in pages)
    known = {first: sum(rest.replace(" ", "") in wanted for rest in of) for first, of in rests.items()}
    return frozenset(
        one for one, count in known.items() if count >= max(PREFIXED, len(rests[one]) * SHARE, 2 * said[one])
    )


def _among(wanted: Collection[str], prefixes: Collection[str]) -> Callable[[Name], Name | None]:
    def meant(name: Name) -> Name | None:
        first, _, rest = name.name.partition(" ")
        bare = replace(name, name=rest) if first in prefixes and rest else name
        return next((one for one in (name, bare) if one.name.replace(" ", "") in wanted), None)

    return meant


@lru_cache(1 << 16)
def may_be_name(written: str) -> bool:
    """Tell whether a word of a page may be a name, because it is not a literal."""
    name = read_name(written)
    if name is None or len(name.name) < 3:
        return False
    value = read_value(written)
    return value is None or value.kind == "symbol"


def code_rates(pairs: Sequence[CandidatePair], telling: Callable[[Fact], float]) -> Rates:
    """Return the rates of the templates of code. ``telling`` is as in ``believe``."""
    return believe(pairs, telling, shipped_prior())[1]


def believed(pairs: Iterable[CandidatePair], rates: Rates) -> list[CodeFact]:
    """Return the literals of code that are values of the names beside them."""
    literals = {id(pair.code): pair.code for pair in pairs if isinstance(pair.code, CodeFact)}
    return [one for one in literals.values() if rates.of(one.templates) >= BELIEVED_FROM]
