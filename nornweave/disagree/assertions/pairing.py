"""Find assertions of two domains that are about one thing and contradict each other."""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from nornweave.core.errors import EncoderError
from nornweave.core.text.words import NAME
from nornweave.core.types import Attribute, Fact, Side, Span
from nornweave.disagree.assertions import forms
from nornweave.disagree.assertions.alike import (
    ALIKE_IN_CORPORA,
    ANSWERING,
    AlikePair,
    SentenceEncoder,
    Statement,
    alike_pairs,
    choose_pairs,
    choose_pairs_of_corpora,
    cosines,
    statements_of,
)
from nornweave.disagree.assertions.answers import (
    ASKED,
    STANDING,
    Answering,
    Assertion,
    Context,
    read_answers,
    read_settings,
    settings_of,
)
from nornweave.disagree.assertions.asked import OPEN_KINDS, OPEN_KINDS_OF_CORPORA, SURE, Asked, read_question
from nornweave.disagree.assertions.passage import AssertingPassage
from nornweave.disagree.assertions.reading import content, months, read_words, stems
from nornweave.disagree.conflicts.comparable import SIDES, are_of_two_environments
from nornweave.disagree.conflicts.decision import DEMOTE_FROM, POSSIBLE_FROM
from nornweave.disagree.conflicts.records import FactConflict, LocatedFact

log = logging.getLogger(__name__)

HIGHEST = DEMOTE_FROM - 0.01
"""Confidence of such a conflict at most: it is shown and settles nothing (docs/decisions/0033-assertions.md)."""
AS_CLOSE = 3 / 4
"""Share that a sentence has to say of the question's words that the sentence closest to it says."""
COUNTS_ALIKE = 0.75
"""Cosine from which two sentences of corpora with a number without a unit are about one thing."""
COMMENT_ALIKE = 0.5
"""Share of the words of a comment and of a sentence of a page that both must have, if no value is compared."""
NEAREST = 4
"""Sentences of a domain, with most words of the question, of which the nearest is looked for."""
# A domain of another name, which ``/fuse`` takes, speaks as documentation does.
_SIDES: Mapping[str, Side] = {"code": "code", "conversations": "conversation", "research": "research"}
_ATTRIBUTES: Mapping[str, Attribute] = {
    "date": "date", "presence": "holds", "version": "requires",
}  # fmt: skip


class _Pair(NamedTuple):
    """Two assertions that may contradict each other, with the indices of their passages."""

    first: int
    one: Assertion
    second: int
    other: Assertion
    confidence: float = SURE


def find_contradictions(
    passages: Sequence[AssertingPassage], *, question: str | None = None, encode: SentenceEncoder | None = None
) -> list[FactConflict]:
    """Return pairs of sentences of two domains that probably contradict each other about one thing.

    Args:
        question: if given, only sentences that answer it are compared.
        encode: if given, sentences that are alike in meaning are compared, whatever their words. Without it, only
            sentences with words of the question are compared. Without both, the result is empty.

    Returns:
        The pairs in the order of the passages. For each passage and other domain there is at most the most confident
        pair; without a question, for each sentence and other domain.
    """
    if len({passage.domain for passage in passages}) < 2:
        return []
    pairs: list[_Pair] = []
    if question is not None:
        asked = read_question(question)
        pairs = list(_answered(asked, passages))
        if encode and not pairs:
            pairs = list(_answered_alike(question, asked, passages, encode))
        if encode and not pairs:
            pairs = _announced(question, passages, encode)
    elif encode:
        pairs = list(_alike_in_corpora(passages, encode))
    return [_conflict(pair, passages) for pair in sorted(pairs, key=lambda each: (each.first, each.second))]


def _alike_in_corpora(passages: Sequence[AssertingPassage], encode: SentenceEncoder) -> Iterator[_Pair]:
    """Yield pairs of sentences that state different values of one thing; at most one per sentence and other domain.

    A sentence does not contradict a passage if another sentence of the passage agrees with it.
    """
    nothing = Asked(OPEN_KINDS_OF_CORPORA, frozenset())
    read = {each: _read_both(each, nothing, passages) for each in choose_pairs_of_corpora(passages)}
    agreed = {
        (meeting, said.assertion.kind, said.assertion.key)
        for each, (mine, theirs) in read.items()
        for said in mine
        if _states(theirs, said.assertion)
        for meeting in _meetings(each)
    }
    differing = [
        (each, pair)
        for each, sides in read.items()
        for pair in _differing(each, *sides, passages)
        if _may_meet(each, pair, passages)
        and agreed.isdisjoint((meeting, pair.one.kind, pair.one.key) for meeting in _meetings(each))
    ]
    close = cosines([(one.told, other.told) for (one, other), _ in differing], encode)
    pairs = [
        pair._replace(confidence=min(cosine, HIGHEST))
        for (each, pair), cosine in zip(differing, close, strict=True)
        if cosine >= _least_alike(each, pair)
    ]
    yield from _one_each(sorted(pairs, key=lambda each: -each.confidence), passages, per_sentence=True)


def _least_alike(alike: AlikePair, pair: _Pair) -> float:
    """Return the least cosine at which the two sentences of a pair count as being about the same thing."""
    is_plain_count = pair.one.key == "count" and not (alike.one.setting or alike.other.setting)
    return COUNTS_ALIKE if is_plain_count else ALIKE_IN_CORPORA


def _meetings(alike: AlikePair) -> tuple[tuple[Statement, int], tuple[Statement, int]]:
    """Return each of two statements with the number of the other statement's passage."""
    return (alike.one, alike.other.number), (alike.other, alike.one.number)


def _may_meet(alike: AlikePair, pair: _Pair, passages: Sequence[AssertingPassage]) -> bool:
    """Tell whether two statements of corpora may contradict each other.

    Code and documentation of one product describe its parts in similar words. Therefore only the settings of a program
    are compared with the product's pages, and only if they are numbers or versions. A denial of what the other passage
    does not name is an exception, or about something else.
    """
    if (alike.one.setting is None) != (alike.other.setting is None) and pair.one.kind in {"quantity", "version"}:
        return True
    one, other = _word_both(pair, passages)
    if one.names - other.said and other.names - one.said:  # Storkow's bell, Beeskow's bell
        return False
    for said, words, at in ((pair.one, other.said, pair.second), (pair.other, one.said, pair.first)):
        if said.values == {"no"} and not said.about <= words | passages[at].near:
            return False
    domains = (passages[pair.first].domain, passages[pair.second].domain)
    return pair.one.kind != "version" and not {"conversations", "research"}.isdisjoint(domains)


def _answered(asked: Asked, passages: Sequence[AssertingPassage]) -> Iterator[_Pair]:
    """Yield pairs of sentences of two domains that answer a question differently.

    There is at most one pair for each passage and other domain.
    """
    answers: list[tuple[int, int, Answering]] = []
    for number, passage in enumerate(passages if asked.kinds and asked.about else ()):
        if passage.is_history:
            continue
        counts = [len(asked.about & (each.stems | passage.topic)) for each in passage.sentences]
        for place, said in enumerate(passage.sentences):
            if counts[place] >= max(1, AS_CLOSE * max(counts)):
                before = passage.sentences[place - 1].text if place else ""
                read = read_answers(said.text, said.start, passage.domain, before, asked, passage.topic)
                answers += ((counts[place], number, each) for each in read)
        if passage.sets_values:
            topic = passage.topic_of_settings
            set_here = settings_of(passage.text, with_words=passage.is_configuration)
            settings = read_settings(set_here, asked, topic)
            answers += ((len(asked.about & (each.context.said | topic)), number, each) for each in settings)
    best = max((count for count, *_ in answers), default=0)
    pairs = [
        (count + other_count, _Pair(first, one.assertion, second, other.assertion))
        for (count, first, one), (other_count, second, other) in combinations(answers, 2)
        if max(count, other_count) >= AS_CLOSE * best
        and _answer_differently(one, other, passages[first], passages[second], asked)
    ]  # fmt: skip
    yield from _one_each((pair for _, pair in sorted(pairs, key=lambda each: -each[0])), passages)


def _answered_alike(
    question: str, asked: Asked, passages: Sequence[AssertingPassage], encode: SentenceEncoder
) -> Iterator[_Pair]:
    """Yield pairs of sentences that state different values of one thing; at most one per passage and other domain.

    A sentence contradicts no other sentence if the sentence closest to it agrees with it.
    """
    read = {pair: _read_both(pair, asked, passages) for pair in choose_pairs(question, passages)}
    pairs = {pair: list(_differing(pair, *sides, passages)) for pair, sides in read.items()}
    if not any(pairs.values()):
        return
    try:
        alike = alike_pairs(question, list(pairs), encode)
    except (EncoderError, TimeoutError) as error:
        log.warning("sentences are compared by their words alone: %s", error)
        return
    yield from (pair for pair in _one_each(_unsettled(alike, read, pairs), passages) if pair.confidence)


def _announced(question: str, passages: Sequence[AssertingPassage], encode: SentenceEncoder) -> list[_Pair]:
    """Return a sentence that announces a change, and one of another domain that does not, if both answer the question.

    Of each domain only the sentence nearest to the question counts. No value is read: the two may be in any words.
    Comments and strings of code take no part: they say what one place does, not what holds.
    """
    held: dict[str, list[Statement]] = defaultdict(list)
    for number, passage in enumerate(passages):
        if not passage.is_history and passage.domain != "code":
            held[passage.domain] += statements_of(number, passage)
    asked = stems(question)
    near = [sorted(said, key=lambda each: -len(each.words & asked))[:NEAREST] for said in held.values() if said]
    lines = [each for said in near for each in said]
    news = [each.told for each in lines if _announces(each) and not forms.TOLD_OF.search(each.told)]
    try:  # the others are encoded only if one of these answers the question
        close = _nearness(question, news, encode)
        if max(close.values(), default=0) < ANSWERING:
            return []
        close |= _nearness(question, [each.told for each in lines if each.told not in close], encode)
        best = [max(said, key=lambda each: close[each.told]) for said in near]
        told = [each for each in best if close[each.told] >= ANSWERING and not forms.TOLD_OF.search(each.told)]
        new = next(filter(_announces, told), None)
        old = next((each for each in told if not forms.ANNOUNCES.search(each.told)), None)
        if new is None or old is None or 2 * len(new.own & old.own) > min(len(new.own), len(old.own)):
            return []
        alike = cosines([(new.told, old.told)], encode)[0]
    except (EncoderError, TimeoutError) as error:
        log.warning("changes are not looked for: %s", error)
        return []
    pair = _Pair(new.number, _whole(new), old.number, _whole(old), POSSIBLE_FROM)
    is_other = are_of_two_cases(pair.one, pair.other, passages[pair.first], passages[pair.second])
    return [pair] if alike >= ANSWERING and not is_other else []


def _announces(said: Statement) -> bool:
    return said.setting is None and forms.ANNOUNCES.search(said.told) is not None


def _nearness(question: str, texts: Sequence[str], encode: SentenceEncoder) -> dict[str, float]:
    return dict(zip(texts, cosines([(question, text) for text in texts], encode), strict=True))


def _whole(said: Statement) -> Assertion:
    """Return what a sentence says as one value."""
    start = said.start + len(said.text) - len(said.text.lstrip())
    words, none = content(said.text), frozenset[str]()
    return Assertion("role", ASKED, frozenset(words), frozenset(words), none, none, words, " ".join(said.text.split()),
                     Span(start, said.start + len(said.text.rstrip())))  # fmt: skip


def _unsettled(
    alike: Iterable[tuple[AlikePair, bool, bool]],
    read: Mapping[AlikePair, tuple[Sequence[Answering], Sequence[Answering]]],
    pairs: Mapping[AlikePair, Sequence[_Pair]],
) -> Iterator[_Pair]:
    """Yield the differing pairs, the most alike first.

    A pair is left out if one of its sentences agrees with a sentence to which it is closer. The confidence of a pair
    about something else than the question is 0.
    """
    agreed: set[Statement] = set()
    for each, is_alike, is_asked in alike:
        mine, theirs = read[each]
        if any(_states(mine, answer.assertion) for answer in theirs):
            agreed |= {each.one, each.other}
        if agreed.isdisjoint((each.one, each.other)):  # any two names differ
            yield from (
                pair._replace(confidence=SURE * (is_asked or pair.one.kind == "presence"))
                for pair in pairs[each]
                if is_alike or pair.one.key != ASKED or pair.one.kind == "presence"
            )


class _Wording(NamedTuple):
    """The stems of a sentence and of its passage's topic, and those that are written as names and are not its value."""

    said: frozenset[str]
    names: frozenset[str]


def _word_both(pair: _Pair, passages: Sequence[AssertingPassage]) -> tuple[_Wording, _Wording]:
    here, there = passages[pair.first], passages[pair.second]
    texts = here.text + there.text
    return _word(here, pair.one, texts), _word(there, pair.other, texts)


def _word(passage: AssertingPassage, said: Assertion, texts: str) -> _Wording:
    read = read_words(passage.text[said.span.start : said.span.end].replace("-", " "))
    names = frozenset(
        form for at, (form, sort, written) in enumerate(zip(read.forms, read.sorts, read.written, strict=True))
        if at not in read.dates
        and (sort == NAME or (written[0].isupper() and (at or _may_be_name(written, texts))))
    )  # fmt: skip
    return _Wording(passage.topic.union(read.forms, said.about), names - said.values)


def _may_be_name(first: str, texts: str) -> bool:
    """Tell whether the first word of a sentence may be a name: not a plural or a gerund, and not in ``texts``."""
    return first.lower() not in texts and not re.search(r"[^'’]s$|ing$", first)


def _one_each(
    pairs: Iterable[_Pair], passages: Sequence[AssertingPassage], *, per_sentence: bool = False
) -> Iterator[_Pair]:
    """Yield the first pair of each passage, or of each sentence if ``per_sentence``, with each other domain."""
    taken: set[tuple[int, int, str]] = set()
    for pair in pairs:
        ends = {
            (number, said.span.start if per_sentence else -1, passages[there].domain)
            for number, said, there in ((pair.first, pair.one, pair.second), (pair.second, pair.other, pair.first))
        }
        if taken.isdisjoint(ends):
            taken |= ends
            yield pair


def _read_both(
    alike: AlikePair, asked: Asked, passages: Sequence[AssertingPassage]
) -> tuple[list[Answering], list[Answering]]:
    """Return for each of two sentences what it states about the words that both share.

    Only kinds of answer that the question asks for are read.
    """
    subject = _subject_of(alike, asked)
    one, other = (list(_read_statement(each, subject, passages)) for each in (alike.one, alike.other))
    return one, other


def _about(alike: AlikePair) -> frozenset[str]:
    """Return the stems that say what two sentences are about, which are the stems that both have."""
    shared = alike.one.own & alike.other.own or alike.shared
    return shared - forms.COMMON or shared


def _subject_of(alike: AlikePair, asked: Asked) -> Asked:
    """Return a question about the words that two sentences share. It asks for the kinds of ``asked``."""
    return Asked(asked.kinds or OPEN_KINDS, _about(alike), alike.shared, frozenset(), asked.how, is_shared=True)


def _differing(
    alike: AlikePair, mine: Sequence[Answering], theirs: Sequence[Answering], passages: Sequence[AssertingPassage]
) -> Iterator[_Pair]:
    """Yield the values that two sentences state differently, unless one sentence is only about a part of the thing."""
    here, there = passages[alike.one.number], passages[alike.other.number]
    kinds = frozenset("who" for each in mine if each.assertion.kind == "owner")
    subject = Asked(kinds, _about(alike), alike.shared, is_shared=True)
    for one in mine:
        for other in theirs:
            first, second = one.assertion, other.assertion
            if (
                _may_be_compared(one, other, here, there)
                and first.kind == second.kind
                and first.key == second.key
                and differ(first, second)
                and _measure_one_thing(one, other)
                and not are_of_two_cases(first, second, here, there, alike.shared)
                and are_of_one_subject(
                    one.context, other.context, subject, (here.near, there.near), is_tabled=True
                )
            ):  # fmt: skip
                yield _Pair(alike.one.number, first, alike.other.number, second)


def _states(answers: Sequence[Answering], said: Assertion) -> bool:
    """Tell whether one of the answers agrees with an assertion."""
    return any(
        (each.assertion.kind, each.assertion.key) == (said.kind, said.key) and not differ(each.assertion, said)
        for each in answers
    )


def _read_statement(statement: Statement, subject: Asked, passages: Sequence[AssertingPassage]) -> Iterator[Answering]:
    passage = passages[statement.number]
    if statement.setting is not None:
        return read_settings((statement.setting,), subject, statement.words)
    topic = passage.topic
    return read_answers(statement.text, statement.start, passage.domain, statement.before, subject, topic)


def _may_be_compared(one: Answering, other: Answering, here: AssertingPassage, there: AssertingPassage) -> bool:
    """Tell whether two answers may contradict each other.

    Comments of a program and the pages of its product describe its parts in similar words. Therefore a name, a state, a
    place or a denial in such a comment is compared with a page only if the two sentences have most words in common.
    Figures, dates and versions are always compared.
    """
    is_comment = any(place.domain == "code" and not said.context.names for said, place in ((one, here), (other, there)))
    if one.assertion.kind not in STANDING or not is_comment or {here.domain, there.domain} != {"code", "documentation"}:
        return True
    said = (one.context.said, other.context.said)
    return len(said[0] & said[1]) >= COMMENT_ALIKE * len(said[0] | said[1])


def _measure_one_thing(one: Answering, other: Answering) -> bool:
    """Tell whether two numbers without a unit, or two durations, are of the same thing: two *tries*, *tried* twice.

    A setting's number is of what its name says. The sentence must say more of these words than it leaves out.
    """
    for each, rest in ((one, other), (other, one)):
        left = each.context.telling - rest.context.said - rest.context.topic
        if left and each.assertion.key in {"count", "s"} and 2 * len(left) >= len(each.context.telling):
            return False
    if one.assertion.key != "count":
        return True
    sides = [(each.assertion.beside | each.context.names, each) for each in (one, other)]
    if any(each.context.names for each in (one, other)):
        is_named = any(len(each.context.names) > 1 and each.context.names <= rest.context.said
                       for each, rest in ((one, other), (other, one)))  # fmt: skip
        return is_named or not sides[0][0].isdisjoint(sides[1][0])
    return any(not beside.isdisjoint(there | said.assertion.about)
               for (beside, _), (there, said) in (sides, sides[::-1]))  # fmt: skip


def _answer_differently(
    one: Answering, other: Answering, here: AssertingPassage, there: AssertingPassage, asked: Asked
) -> bool:
    first, second = one.assertion, other.assertion
    return (
        here.domain != there.domain
        and _may_be_compared(one, other, here, there)
        and (first.kind, first.key) == (second.kind, second.key)
        and differ(first, second)
        and _measure_one_thing(one, other)
        and are_of_one_subject(one.context, other.context, asked, (here.near, there.near))
        and not are_of_two_cases(first, second, here, there, asked.words)
    )


def are_of_one_subject(
    one: Context,
    other: Context,
    asked: Asked,
    near: tuple[Collection[str], Collection[str]],
    *,
    is_tabled: bool = False,
) -> bool:
    """Tell whether two sentences speak of the same part of what is asked about.

    Args:
        near: the stems of the passage of each sentence.
        is_tabled: whether both are known to be about one thing. Then only its parts are compared.
    """
    shared = asked.about & (one.said | one.topic) & (other.said | other.topic)
    if one.years != other.years or _are_numbered_apart(one, other):
        return False
    is_same = one.subject == other.subject and not one.subject.isdisjoint(asked.about)
    named = bool(shared & asked.names)
    if not is_tabled:
        is_set = bool(one.names or other.names)
        is_said = is_set or not asked.about.isdisjoint(one.said & other.said)
        if not is_said or not (named or is_set or _outweighs(shared, asked.words, 0.5, is_same)):
            return False
    unsaid = one.subject - other.said - asked.about and other.subject - one.said - asked.about
    if unsaid and ("who" not in asked.kinds or one.subject & other.subject):
        return False  # a failed mail, a failed letter; ask Ulla, talk to Ulla
    for here, there, known in ((one, other, near[1]), (other, one, near[0])):
        told = asked.about | there.said
        replaced, unknown = (asked.about & there.said) - here.said, here.subject - told
        missed, is_named = replaced - here.topic, named or bool(here.names)
        if not is_tabled:
            setting = here.names - forms.STATES - forms.COMMON
            is_its = not here.names or bool(setting and setting <= told) or len(asked.about & here.said) > 1
            is_missed = "who" in asked.kinds and not (asked.words & there.said) <= here.said | here.topic
            if is_missed or not is_its or not (is_named or _outweighs(shared, missed, 1, is_same)):
                return False
        if unknown and replaced:
            return False
        if not there.names and any(each.isdisjoint(told | set(known)) for each in here.scopes):
            return False
    return True


def _are_numbered_apart(one: Context, other: Context) -> bool:
    """Tell whether both have the same word with different numbers: ``homework 3`` and ``homework 4``."""
    numbers = other.numbers()
    return any(
        numbers[noun].isdisjoint(figures)
        for before, figures in one.numbers().items()
        for noun in numbers
        if noun.startswith(before) or before.startswith(noun)
    )


def _outweighs(words: Collection[str], others: Collection[str], share: float, is_same: bool) -> bool:
    """Tell whether words weigh more than a share of others, or as much if ``is_same`` (both have one asked subject)."""
    surplus = weigh(words) - share * weigh(others)
    return surplus > 0 or (surplus == 0 and is_same)


def weigh(words: Iterable[str]) -> float:
    """Return the weight of words. Common words, which are said of everything, weigh less."""
    return sum(forms.COMMON_WEIGHT if each in forms.COMMON else 1.0 for each in words)


def differ(one: Assertion, other: Assertion) -> bool:
    """Tell whether two assertions of one kind and key have different values."""
    if one.kind == "date":
        parts = [dict(value.split() for value in each.values) for each in (one, other)]
        return any(parts[0][part] != parts[1][part] for part in parts[0].keys() & parts[1].keys())
    if one.kind == "quantity":
        sizes = [[float(value) for value in each.values] for each in (one, other)]
        tolerance = 0.08 if one.key.startswith("byte") else 0.0 if one.key == "count" else 0.03
        return not any(abs(a - b) <= tolerance * max(abs(a), abs(b)) for a in sizes[0] for b in sizes[1])
    if one.kind == "version":
        numbers = [[value.lstrip("~^>=<v ") for value in each.values] for each in (one, other)]
        return not any(
            f"{a}.".startswith(f"{b}.") or f"{b}.".startswith(f"{a}.") for a in numbers[0] for b in numbers[1]
        )
    if one.key == "who may":
        (sign, who), (other_sign, others) = (next(iter(each.values)).split(" ", 1) for each in (one, other))
        if "not" in {sign, other_sign}:
            return sign != other_sign and (who == others or "all" in {sign, other_sign})
        return who != others and (sign != other_sign or sign == "only")
    if one.key == "path":
        return not any(a.endswith(b) or b.endswith(a) for a in one.values for b in other.values)
    return one.values.isdisjoint(other.values)


def are_of_two_cases(
    one: Assertion,
    other: Assertion,
    here: AssertingPassage,
    there: AssertingPassage,
    asked: frozenset[str] = frozenset(),
) -> bool:
    """Tell whether one of two assertions has a condition or an environment that the other assertion does not have."""
    known = one.condition <= other.about | there.near | asked and other.condition <= one.about | here.near | asked
    said = [place.text[each.span.start : each.span.end] for each, place in ((one, here), (other, there))]
    is_case = not known and bool(one.condition) != bool(other.condition)
    seasons = [months(text) for text in said]
    is_case |= all(seasons) and seasons[0].isdisjoint(seasons[1])
    return is_case or are_of_two_environments(*said, there.text, here.text)


def _conflict(pair: _Pair, passages: Sequence[AssertingPassage]) -> FactConflict:
    sides = sorted(
        ((passages[pair.first], pair.one, pair.other), (passages[pair.second], pair.other, pair.one)),
        key=lambda side: SIDES.index(_side(side[0])),
    )
    shared = pair.one.about & pair.other.about
    told = (sides[0][1].subject, sides[1][1].subject, *(content(passage.text) for passage, *_ in sides))
    words = next(filter(None, ([written for form, written in each.items() if form in shared] for each in told)), shared)
    name = " ".join(words).lower()
    first, second = (_located(passage, assertion, name) for passage, assertion, _ in sides)
    said_by = "; ".join(f"{side.path} says “{side.fact.statement}”" for side in (second, first))
    return FactConflict(first=first, second=second, confidence=round(pair.confidence, 4), name=name,
                        attribute=first.fact.attribute, explanation=f"{name}: {said_by}")  # fmt: skip


def _side(passage: AssertingPassage) -> Side:
    return _SIDES.get(passage.domain, "documentation")


def _located(passage: AssertingPassage, assertion: Assertion, name: str) -> LocatedFact:
    start, end = assertion.span.start, assertion.span.end
    attribute = _ATTRIBUTES.get(assertion.kind, "value")
    line = (passage.line or 0) + passage.text.count("\n", 0, start)
    fact = Fact(
        name=name, owner="", attribute=attribute, kind="boolean" if attribute == "holds" else "string",
        value="true" if attribute == "holds" else assertion.shown, side=_side(passage), form="sentence",
        negated=assertion.values == {"no"}, span=Span(passage.start + start, passage.start + end), line=line,
        statement=" ".join(passage.text[start:end].split()),
    )  # fmt: skip
    return LocatedFact(
        fact=fact, domain=passage.domain, source_id=passage.source_id, path=passage.path, section=passage.section,
        title=passage.title, updated_at=passage.updated_at, revision=passage.revision, chunk_id=passage.place,
        line_range=None if passage.line is None else (line + 1, line + 1),
    )  # fmt: skip
