"""Agreements of documentation and code, and those that broke since a base.

If a pair of places agreed and differs now, and one side changed, that is drift, even if it is not certain that both
are about one thing, because they did agree. So broken agreements need no threshold.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Final, TypeAlias

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Fact
from nornweave.disagree.conflicts import MIN_CONFIDENCE, FactConflict, LocatedFact
from nornweave.disagree.conflicts.comparable import NameMatch, keys_of, match_names
from nornweave.disagree.conflicts.decision import CandidatePair, conflict_of
from nornweave.disagree.drift.induced.believing import CodeFact
from nornweave.disagree.drift.induced.code import DECLARED, TESTED
from nornweave.disagree.drift.induced.learning import has_one_stem, is_example
from nornweave.disagree.drift.records import Coverage, DocumentedOption, State, Which
from nornweave.disagree.facts.comparison import FactComparison
from nornweave.disagree.facts.names import is_generic, read_name, singular, words_of
from nornweave.disagree.facts.values import show

BROKEN_CONFIDENCE = 0.9
"""Of an agreement that broke; see docs/drift.md for what was measured."""
LEARNED: Final = "learned"
_STATED = frozenset(("default", "value", "setting"))
NO_DEFAULT = "the code gives it no one default"
OTHER_TEXT = "the code gives it another text"
"""A word can be spelt in several ways, and what is a value is not certain."""
NO_CLAIM = "the page does not call it a default"
_HELP = lazy_pattern(r"^--?[A-Za-z]|[(\[]defaults?[ :]")
"""In the text of an option that is read from a program's help."""
CALLED_DEFAULT = DECLARED + 1
"""How a value stands in a class or file of defaults."""
NEAR, LEAST = 20, 5
A_LITTLE_MORE, MORE, FAR_MORE = 1.5, 3, 10
"""Lines around a place in code, and how many times as many names, at least ``LEAST``, another place has there."""
CLEARLY = 0.8
"""Of two values that code gives a name, the one that matches the page so much better is the one that it means."""
_EMPTY = frozenset(("", "[]", "{}"))
_CLASS_WORDS = frozenset("properties settings options configuration params props defaults default".split())  # noqa: SIM905
"""What classes of settings are called beside what they are about: ``RedProperties``."""

AgreementKey: TypeAlias = tuple[str, str, str, str]
"""Path and name on the page, path and name in the code."""


Lines: TypeAlias = tuple[int, int]
"""How many statements of a page, and how many lines of the code, say something."""


@dataclass(frozen=True, slots=True, order=True)
class Agreement:
    """Two places that state the same value.

    Attributes:
        key: the two places, named by their content and not by their lines.
        attribute: the stated property: ``default``, ``value``, …; ``learned`` if a template of the repository read it.
        documented, coded: the value as the page and the code write it, for people.
    """

    key: AgreementKey
    attribute: str
    documented: str
    coded: str


@dataclass(frozen=True, slots=True)
class BrokenAgreement:
    """Two places that agreed and now differ.

    Attributes:
        conflict: both places as they are now.
        moved: the side that changed, as in ``Finding``.
        was: the value that both had.
    """

    conflict: FactConflict
    moved: Which
    was: str


@dataclass(frozen=True, slots=True)
class Before:
    """The agreements and values at the base.

    Attributes:
        agreements: agreement at the base, with the paths of the head → how many lines of page and code state it.
        documented: the reader, path, name, value and statement of each fact on pages; empty if unknown.
        coded: the path, name and value of each fact in code; empty if unknown.
    """

    agreements: Mapping[Agreement, Lines]
    documented: Collection[tuple[str, ...]] = frozenset()
    coded: Collection[tuple[str, ...]] = frozenset()


def shown(fact: Fact) -> str:
    """Return the value of a fact for people."""
    return ("not " if fact.negated else "") + show(fact.kind, fact.value, fact.unit)


def key_of(pair: CandidatePair) -> AgreementKey:
    """Return the key of the two places that a pair compares."""
    return (pair.other.path, pair.other.fact.name, pair.code.path, pair.code.fact.name)


def agreement_of(pair: CandidatePair) -> Agreement:
    """Return an agreeing pair as an agreement."""
    return Agreement(
        key_of(pair), _reading(pair) or pair.other.fact.attribute, shown(pair.other.fact), shown(pair.code.fact)
    )


def agreements_of(pairs: Iterable[CandidatePair]) -> dict[Agreement, Lines]:
    """Return each agreement with the number of statements on its pages and the number of lines in its code."""
    lines: dict[Agreement, tuple[set[int], set[int]]] = defaultdict(lambda: (set(), set()))
    for pair in pairs:
        if pair.outcome is FactComparison.AGREE:
            page, code = lines[agreement_of(pair)]
            page.add(pair.other.fact.span.start)
            code.add(pair.code.fact.line)
    return {one: (len(page), len(code)) for one, (page, code) in lines.items()}


def before(pairs: Sequence[CandidatePair], renamed: Mapping[str, str]) -> Before:
    """Return the agreements and values at the base, given all compared pairs at the base.

    Args:
        renamed: path of a moved file at the base → its path at the head.
    """
    moved = [
        replace(
            pair,
            code=replace(pair.code, path=renamed.get(pair.code.path, pair.code.path)),
            other=replace(pair.other, path=renamed.get(pair.other.path, pair.other.path)),
        )
        for pair in pairs
    ]
    return Before(
        agreements_of(moved),
        frozenset(map(_stated, moved)),
        frozenset(of(pair.code) for pair in moved for of in (_value, _of_class)),
    )


def _stated(pair: CandidatePair) -> tuple[str, ...]:
    """Return the reader, path, name, value and text of a page's statement. An example may have the same value."""
    return (_reading(pair), *_value(pair.other), pair.other.fact.statement)


def _value(one: LocatedFact) -> tuple[str, str, str]:
    return one.path, f"{one.title or ''} {one.fact.name}".strip(), shown(one.fact)


def _said(one: LocatedFact) -> tuple[str, str, str]:
    return one.path, one.fact.name, shown(one.fact)


def _of_class(one: LocatedFact) -> tuple[str, str, str]:
    return one.path, f"{one.fact.owner} > {one.fact.name}", shown(one.fact)


def broken(base: Before, pairs: Sequence[CandidatePair]) -> list[BrokenAgreement]:
    """Return the pairs that agreed at the base and differ now because one side changed, the strongest pair first.

    Args:
        pairs: all compared pairs at the head.
    """
    settled: dict[tuple[str, ...], float] = defaultdict(float)
    for pair in pairs:
        if pair.outcome is FactComparison.AGREE:
            key = (_reading(pair), *_documented_place(pair))
            settled[key] = max(settled[key], pair.strength)
    followed = {
        _documented_place(pair)[:2]
        for pair in pairs
        if pair.outcome is FactComparison.AGREE and not is_example(pair.other.fact.statement)
    }
    best: dict[tuple[str, str, str], tuple[float, BrokenAgreement]] = {}
    for agreement, pair, moved in differing(base, pairs):
        place = _documented_place(pair)
        # The page still says what another place of the code says, which is more likely the one it means.
        is_settled = settled[_reading(pair), *place] > pair.strength
        # The page says the new value, and an example on it sets another.
        is_settled |= (
            moved == "first"
            and pair.other.fact.form == LEARNED
            and is_example(pair.other.fact.statement)
            and place[:2] in followed
        )
        if not is_settled and pair.strength > best.get(place, (-1.0,))[0]:
            best[place] = pair.strength, BrokenAgreement(_conflict(pair), moved, agreement.documented)
    ranked = [one for _, one in sorted(best.values(), key=lambda ranked: -ranked[0])]
    return _by_change({_lines(one.conflict): one for one in reversed(ranked)}.values())


def _lines(one: FactConflict) -> tuple[object, ...]:
    return one.second.path, one.second.fact.line, one.first.path, one.first.fact.line


def _by_change(found: Iterable[BrokenAgreement]) -> list[BrokenAgreement]:
    """Join the agreements that one changed line of code breaks on several pages. ``found`` has the weakest first."""
    changes: dict[tuple[object, ...], BrokenAgreement] = {}
    for one in reversed(list(found)):
        code = one.conflict.first
        change = (code.path, code.fact.line, one.was) if one.moved == "first" else _lines(one.conflict)
        if change in changes:
            first = changes[change]
            also = (*first.conflict.also, one.conflict.second, *one.conflict.also)
            changes[change] = replace(first, conflict=replace(first.conflict, also=also))
        else:
            changes[change] = one
    return list(changes.values())


def _reading(pair: CandidatePair) -> str:
    """Return the reader of a pair. Strengths and counts are compared only within one reader."""
    return LEARNED if pair.other.fact.form == LEARNED else ""


def _documented_place(pair: CandidatePair) -> tuple[str, str, str]:
    """Return the path, name and value of a pair's page. The line is left out, because it differs between readers."""
    return _value(pair.other)


def _conflict(pair: CandidatePair) -> FactConflict:
    return conflict_of(pair, max(pair.strength, BROKEN_CONFIDENCE))


def differing(base: Before, pairs: Iterable[CandidatePair]) -> Iterator[tuple[Agreement, CandidatePair, Which]]:
    """Yield each agreement of the base that is now broken by one changed side, with the pair and the changed side."""
    by_key: dict[tuple[AgreementKey, str], list[CandidatePair]] = defaultdict(list)
    for pair in pairs:
        by_key[key_of(pair), _reading(pair)].append(pair)
    for agreement in sorted(base.agreements):
        reading = LEARNED if agreement.attribute == LEARNED else ""
        for pair, moved in _differing(agreement, by_key.get((agreement.key, reading), ()), base):
            yield agreement, pair, moved


def _differing(
    agreement: Agreement, pairs: Sequence[CandidatePair], base: Before
) -> Iterator[tuple[CandidatePair, Which]]:
    """Yield each pair at the two places that differs because one side changed, with that side."""
    sides = [
        (pair, shown(pair.other.fact) != agreement.documented, shown(pair.code.fact) != agreement.coded)
        for pair in pairs
    ]
    still = [pair for pair, page, code in sides if pair.outcome is FactComparison.AGREE and not (page and code)]
    lines = len({pair.other.fact.span.start for pair in still}), len({pair.code.fact.line for pair in still})
    if all(now >= then for now, then in zip(lines, base.agreements[agreement], strict=True)):
        return
    for pair, has_page_moved, has_code_moved in sides:
        if pair.outcome is not FactComparison.DIFFER or has_page_moved == has_code_moved:
            continue
        if has_page_moved and _stated(pair) not in base.documented:
            yield pair, "second"
        elif has_code_moved and (_of_class if path_run(pair) else _value)(pair.code) not in base.coded:
            yield pair, "first"


def own_pairs(pairs: Sequence[CandidatePair]) -> list[CandidatePair]:
    """Return the pairs without those whose code is about something else, as other pairs of the same value show.

    That is a configuration file where a program states the value too; another class than the one that the path of the
    key names best; ``x or 5`` where ``x`` is declared with a default, or the page says that it is empty; a value
    that differs where the line of the page calls the code's value a default as well (*default: 1: HUP*); and the code
    of ``log_size`` for ``error_log_size`` where the page documents both.
    """
    programs, declared, agreeing, named = set(), set(), set(), set()
    paths = {_line(pair.other): pair.other.title for pair in pairs if pair.other.title}
    run: dict[tuple[object, ...], int] = defaultdict(int)
    for pair in pairs:
        place, line, fact = _documented_place(pair), _line(pair.other), pair.code.fact
        programs |= {place} if fact.side == "code" else set()
        is_declared = fact.form != "fallback" and standing(pair) >= DECLARED
        declared |= {(place, fact.name)} if is_declared else set()
        named |= {(pair.other.path, pair.other.name_words)}
        agreeing |= {(line, _line(pair.code))} if pair.outcome is FactComparison.AGREE else set()
        run[line] = max(run[line], path_run(pair, paths.get(line)))
    found = []
    for pair in pairs:
        place, line, page, code = _documented_place(pair), _line(pair.other), pair.other.fact, pair.code.fact
        is_sample = code.side != "code" and standing(pair) < DECLARED and place in programs
        is_use = code.form == "fallback" and ((place, code.name) in declared or page.value in _EMPTY)
        is_also_said = pair.outcome is not FactComparison.AGREE and (line, _line(pair.code)) in agreeing
        is_of_another = path_run(pair, paths.get(line)) < run[line] or (
            _is_special(pair) and (pair.other.path, pair.code.name_words) in named
        )
        if not (is_sample or is_use or is_of_another or (is_also_said and calls_default(page))):
            found.append(pair)
    return _near_others(found)


def _near_others(pairs: Sequence[CandidatePair]) -> list[CandidatePair]:
    """Return the pairs without those whose code stands apart from the names of their page, or from their value.

    If a file that is called as the page has exactly the name and agrees, other files do not matter. Otherwise a place
    counts by how many names of the page have values within ``NEAR`` lines of it. A pair is left out if another place
    has ``MORE`` times as many for the same documented value, ``A_LITTLE_MORE`` if both agree; or, for a value that only
    stands beside the name, ``FAR_MORE`` for any value of the page.
    """
    names: dict[tuple[str, str], dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    called = set()
    for pair in pairs:
        if standing(pair) > TESTED:
            names[pair.other.path, pair.code.path][pair.code.fact.line].add(pair.other.fact.name)
            is_own = has_one_stem(pair.other, pair.code) and pair.outcome is FactComparison.AGREE
            is_own = is_own and match_names(pair.other, pair.code) is NameMatch.SAME
            called |= {_line(pair.other)} if is_own else set()

    @cache
    def near(page: str, code: str, line: int) -> int:
        lines = names[page, code]
        return len(set().union(*(lines[at] for at in range(line - NEAR, line + NEAR + 1) if at in lines)))

    counted = [(pair, near(pair.other.path, pair.code.path, pair.code.fact.line), standing(pair)) for pair in pairs]
    most: dict[object, int] = defaultdict(int)
    for pair, count, role in counted:
        line = _line(pair.other)
        for key in (line, (line, pair.outcome), pair.other.path) if role > TESTED else ():
            most[key] = max(most[key], count)
    found = []
    for pair, count, role in counted:
        line, agrees = _line(pair.other), pair.outcome is FactComparison.AGREE
        is_apart = (
            most[line] >= max(MORE * count, LEAST)
            or (agrees and most[line, pair.outcome] >= max(A_LITTLE_MORE * count, LEAST))
            or (role == 1 and most[pair.other.path] >= FAR_MORE * count)
        )
        if not is_apart and (line not in called or has_one_stem(pair.other, pair.code)):
            found.append(pair)
    return found


def _is_special(pair: CandidatePair) -> bool:
    """Tell whether a page's name has more words before the code's name, and nothing explains them."""
    more = pair.other.name_words[: -len(pair.code.name_words)]
    return bool(more) and [*more] != ["no"] and match_names(pair.other, pair.code) is NameMatch.LONGER


def _line(one: LocatedFact) -> tuple[str, int, str]:
    return one.path, one.fact.line, one.fact.name


def path_run(pair: CandidatePair, path: str | None = None) -> int:
    """Return how many last words of a key's path are those of the class in code: 2 for ``a.slow-query.size``."""
    key = [singular(word) for word in words_of(path or pair.other.title or "") if word not in _CLASS_WORDS]
    owner = [singular(word) for word in pair.code.fact.owner.split() if word not in _CLASS_WORDS] if key else []
    owner += pair.code.name_words[: -len(pair.other.name_words)]  # ``esTimeout`` for ``es.timeout``
    spans = {"".join(owner[i:k]) for i in range(len(owner)) for k in range(i + 1, len(owner) + 1)}
    return next((many for many in range(len(key), 0, -1) if "".join(key[-many:]) in spans), 0)


def values_of(facts: Sequence[LocatedFact], pairs: Sequence[CandidatePair]) -> list[DocumentedOption]:
    """Return each documented value with its state, by page and line."""
    compared: dict[tuple[str, str, str], list[CandidatePair]] = defaultdict(list)
    for pair in pairs:
        compared[_said(pair.other)].append(pair)
    found = [option_of(of, of[0].other.fact.name) for of in compared.values()]
    in_code = {key for one in facts if one.fact.side != "documentation" for key in keys_of(one.fact)}
    others: dict[tuple[str, str, str], DocumentedOption] = {}
    for one in facts:
        place = _said(one)
        if one.fact.side == "documentation" and one.fact.attribute in _STATED and place not in compared:
            others[place] = DocumentedOption(
                path=one.path, line=one.fact.line + 1, name=one.fact.name, value=shown(one.fact), state="not_compared",
                reason="no value of the code can be compared"
                if not in_code.isdisjoint(keys_of(one.fact))
                else "the code has no value of this name",
            )  # fmt: skip
    return sorted((*found, *others.values()), key=lambda one: (one.path, one.line, one.name))


def option_of(
    pairs: Sequence[CandidatePair], written: str, line: int | None = None, plain: CandidatePair | None = None
) -> DocumentedOption:
    """Return the state of a documented name, by its compared values.

    Args:
        line: the line of the name on the page, from 0; ``None`` for the line of the value.
        plain: the pair that plainly differs; ``None`` if no pair does.
    """
    verdict, pair = (plain.outcome, plain) if plain else decided(pairs, written, line)
    page, code = pair.other, pair.code
    is_text = verdict is FactComparison.DIFFER and page.fact.kind == "string"
    verdict = None if is_text else verdict
    state: State = "not_compared" if verdict is None else "held" if verdict is FactComparison.AGREE else "differs"
    why = OTHER_TEXT if is_text else NO_DEFAULT if calls_default(page.fact) else NO_CLAIM
    said = {"held": "", "differs": f"the code says {shown(code.fact)}", "not_compared": why}
    return DocumentedOption(
        path=page.path, line=(page.fact.line if line is None else line) + 1, name=written,
        value=shown(page.fact), state=state, reason=said[state],
        code="" if verdict is None else f"{code.path}:{code.fact.line + 1}",
    )  # fmt: skip


def decided(
    pairs: Sequence[CandidatePair], written: str, line: int | None = None
) -> tuple[FactComparison | None, CandidatePair]:
    """Return how the code's value of a documented name compares with the page's, and the pair that shows this.

    The comparison is ``None`` if the code does not give the name a single default. Arguments are as in ``option_of``.
    """
    pairs = [pair for pair in pairs if calls_default(pair.other.fact)] or pairs
    pairs = _nearest(pairs, pairs[0].other.fact.line if line is None else line)
    # What stands for *not set* is decided elsewhere.
    pairs = [pair for pair in pairs if pair.outcome is FactComparison.AGREE or not _is_unset(pair)] or pairs
    most = max(map(standing, pairs))
    telling = [pair for pair in pairs if standing(pair) == most]
    verdict = _verdict(telling, name.owner if (name := read_name(written)) else "") if most > TESTED else None
    is_default = calls_default(telling[0].other.fact)
    if verdict is FactComparison.DIFFER and (
        not is_default or all(isinstance(pair.code, CodeFact) and most < DECLARED for pair in telling)
    ):
        verdict = None  # an example, or a value that the code only uses
    pair = max((one for one in telling if one.outcome is verdict), default=telling[0],
               key=lambda one: (_shared_folder(one), one.strength, _shared_owner(one)))  # fmt: skip
    return verdict, pair


def _is_unset(pair: CandidatePair) -> bool:
    return pair.code.fact.value in {*_EMPTY, "-1"}


def _nearest(pairs: Sequence[CandidatePair], line: int) -> list[CandidatePair]:
    """Return the pairs on the line that is nearest to ``line``. Lines below it are preferred to lines above it."""
    nearest = min((pair.other.fact.line for pair in pairs), key=lambda at: (at < line, abs(at - line)), default=line)
    return [pair for pair in pairs if pair.other.fact.line == nearest]


def plain_difference(pairs: Sequence[CandidatePair], line: int) -> CandidatePair | None:
    """Return the pair whose documented default plainly differs from the code's; ``None`` if no pair does.

    The page states one default. The code declares a default of the same kind for exactly the same name, and no place of
    the code agrees with the page. Only bare numbers and booleans differ plainly, because words and numbers with units
    can be spelt in several ways.
    """
    said = _nearest([pair for pair in pairs if calls_default(pair.other.fact)], line)
    own = [pair for pair in said if match_names(pair.code, pair.other) is NameMatch.SAME]
    most = max(map(standing, own), default=TESTED)
    declared = [pair for pair in own if standing(pair) == most > TESTED and pair.code.fact.side == "code"]
    values = {shown(pair.code.fact) for pair in declared}, {shown(pair.other.fact) for pair in said}
    # A longer name that agrees, as with the prefix of an application, is what the page means.
    rivals = [pair for pair in said if pair in declared or standing(pair) >= DECLARED]
    is_one = max(map(len, values)) == 1 and all(pair.outcome is FactComparison.DIFFER for pair in rivals)
    if not declared or not is_one or any(pair.other.fact.qualifiers for pair in said):
        return None
    pair = max(declared, key=lambda one: (_shared_folder(one), one.strength))
    code, page = pair.code.fact, pair.other.fact
    is_plain = code.kind == page.kind and code.kind in {"number", "boolean"} and code.unit == page.unit
    is_exact = not is_generic(page.name) or _shared_owner(pair) > 0 or pair.strength >= MIN_CONFIDENCE
    return pair if is_plain and is_exact and code.value != "-1" else None


def _verdict(pairs: Sequence[CandidatePair], owner: str) -> FactComparison | None:
    """Return how the code compares with a documented value; ``None`` if its places disagree or are all ignored.

    An equal name is preferred to a name that needs its owner. An empty value is ignored, because it is filled in
    elsewhere. A value of another kind or of a longer name is ignored, because it belongs to another thing.
    """
    pairs = [pair for pair in pairs if match_names(pair.code, pair.other) is NameMatch.SAME] or pairs
    if owner:  # queue.size is not pool.size
        own = [frozenset(pair.code.fact.owner.split()).symmetric_difference(owner.split()) for pair in pairs]
        pairs = [pair for pair, apart in zip(pairs, own, strict=True) if len(apart) == min(map(len, own))]
    found: dict[FactComparison, float] = {}
    for pair in pairs:
        code, page = pair.code.fact, pair.other.fact
        is_longer = match_names(pair.code, pair.other) is NameMatch.LONGER
        is_other = code.kind != page.kind or _is_unset(pair) or is_longer
        if pair.outcome is FactComparison.AGREE or not is_other:
            found[pair.outcome] = max(found.get(pair.outcome, 0.0), pair.strength)
    if len(found) == 2 and min(found.values()) >= CLEARLY * max(found.values()):
        return None
    return max(found, key=lambda outcome: found[outcome]) if found else None


def standing(pair: CandidatePair) -> int:
    """Return the role of a value: ``CALLED_DEFAULT``, ``DECLARED``, ``TESTED`` in a condition, 1 beside a name.

    Help texts, and samples of a configuration that the page does not call defaults either, are no better than tests.
    """
    code, fact = pair.code, pair.code.fact
    is_of_defaults = "default" in words_of(f"{fact.owner} {PurePosixPath(code.path).stem}")
    if not is_of_defaults and fact.side == "configuration" and not calls_default(pair.other.fact):
        return TESTED
    if fact.form == "option" and _HELP.search(fact.statement):
        return TESTED
    is_default = fact.side == "code" and fact.attribute == "default"
    role = code.standing if isinstance(code, CodeFact) else DECLARED if is_default else 1
    return max(role, CALLED_DEFAULT) if is_of_defaults and role > TESTED else role


def calls_default(fact: Fact) -> bool:
    """Tell whether a page calls a value a default."""
    return "default" in (fact.statement if fact.form == LEARNED else fact.attribute)


def _shared_folder(pair: CandidatePair) -> int:
    """Return how many folders a page and a code file share, because a page usually means its own module."""
    both = zip(pair.other.path.split("/")[:-1], pair.code.path.split("/")[:-1], strict=False)
    return sum(1 for _ in takewhile(lambda one: one[0] == one[1], both))


def _shared_owner(pair: CandidatePair) -> int:
    """Return how many words the owner of the code's value shares with the owner on the page, such as its headings."""
    return len({*pair.other.fact.owner.split()} & {*pair.code.fact.owner.split()})


def coverage_of(values: Sequence[DocumentedOption]) -> Coverage:
    """Return the number of documented values that are compared with the code, and the reasons why others are not."""
    others = Counter(one.reason for one in values if one.state == "not_compared")
    compared = len(values) - others.total()
    agree = sum(one.state == "held" for one in values)
    return Coverage(read=len(values), compared=compared, agree=agree, not_compared=dict(sorted(others.items())))
