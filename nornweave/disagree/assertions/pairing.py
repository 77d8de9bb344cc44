"""Find assertions of two domains that are about one thing and contradict each other."""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

from nornweave.core.errors import EncoderError
from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.text.words import find_words
from nornweave.core.types import Attribute, Fact, Side, Span, ValueKind
from nornweave.disagree.assertions import forms
from nornweave.disagree.assertions.alike import (
    ALIKE,
    ALIKE_IN_CORPORA,
    AlikePair,
    SentenceEncoder,
    Statement,
    alike_pairs,
    choose_pairs,
    choose_pairs_of_corpora,
    cosines,
)
from nornweave.disagree.assertions.asked import (
    OPEN_KINDS,
    SURE,
    Answering,
    Asked,
    Context,
    are_of_one_subject,
    read_answers,
    read_context,
    read_question,
    read_settings,
)
from nornweave.disagree.assertions.passage import AssertingPassage
from nornweave.disagree.assertions.reading import NO_PROSE, Assertion, content, read_plain, stems
from nornweave.disagree.conflicts.apart import are_of_two_environments
from nornweave.disagree.conflicts.comparable import SIDES
from nornweave.disagree.conflicts.decision import DEMOTE_FROM
from nornweave.disagree.conflicts.model import shipped
from nornweave.disagree.conflicts.records import FactConflict, LocatedFact

log = logging.getLogger(__name__)

HIGHEST = DEMOTE_FROM - 0.01
"""Confidence of such a conflict at most: it is shown and settles nothing (docs/decisions/0033-assertions.md)."""
LEAST, LEAST_OF_CORPORA, LEAST_OF_COUNTS = 0.8, 0.9, 0.95
"""Probability of a conflict of an answer; of corpora, where every sentence meets thousands; of their plain counts."""
LEAST_OF_ALIKE = 0.4
"""The same of corpora where the sentences must be alike in meaning too."""
LEAST_PLAIN = 0.5
"""Probability where both are about what was asked, and neither says anything by which it may be about a part of it."""
MAX_ALIKE = 200
"""Assertions that share a word: of a word of more nothing is looked up."""
LEAST_SHARED = 1.3
"""Weight of the words that two assertions have in common: one is not enough, unless it is all that one of them says."""
ASKED, AS_CLOSE = 1 / 3, 3 / 4
"""Share of a question's words that one of the two has to say; and of those that the sentence closest to it says."""
LARGE = 100_000
"""From which people round a count: 4.2 million are 4 million."""
HEAD = 5
"""Letters by which a denied verb is looked up before a sentence is read: stems differ in their ends."""
# A domain of another name, which ``/fuse`` takes, speaks as documentation does.
_SIDES: Mapping[str, Side] = {"code": "code", "conversations": "conversation", "research": "research"}
_ATTRIBUTES: Mapping[str, Attribute] = {
    "status": "status", "date": "date", "presence": "holds", "denial": "holds", "version": "requires",
}  # fmt: skip
_NARROWING = ("foreign_one", "scope_one", "siblings")
"""Features of two assertions of which one may be about a part, or another thing of that kind."""
_LONG_WORD = lazy_pattern(r"\w{3,}")
_HOW = lazy_pattern(r"\bhow \w+", re.IGNORECASE)


class _Pair(NamedTuple):
    """Two assertions that may contradict each other, with the indices of their passages."""

    first: int
    one: Assertion
    second: int
    other: Assertion


def find_contradictions(
    passages: Sequence[AssertingPassage], *, question: str | None = None, encode: SentenceEncoder | None = None
) -> list[FactConflict]:
    """Return pairs of sentences of two domains that probably contradict each other about one thing.

    Args:
        question: if given, a conflict about something else is left out, and one about its subject may be less likely.
        encode: if given, sentences that are alike in meaning are compared as well, in whatever words they say it.
            Without a question only sentences that are alike contradict each other then.

    Returns:
        At most one pair for each sentence and other domain, the most confident one, in order of the passages.
    """
    if len({passage.domain for passage in passages}) < 2:
        return []
    model = shipped("nornweave.disagree.assertions")
    weighed: list[tuple[float, _Pair]] = []
    pairs = candidates(passages)
    for pair in pairs if question is None else _asked_about(question, list(pairs), passages):
        here, there = passages[pair.first], passages[pair.second]
        shown = {pair.one.shown.lower(), pair.other.shown.lower()}
        if question is None and forms.LOOSE & shown and "conversations" not in {here.domain, there.domain}:
            continue
        described = features(pair.one, pair.other, here, there)
        confidence = model.probability(described)
        is_plain = question is not None and not any(described[each] for each in _NARROWING)
        needed = LEAST_PLAIN if is_plain else LEAST_OF_CORPORA if described["siblings"] else LEAST
        if question is None:
            is_set = any(_is_setting(place, each) for place, each in ((here, pair.one), (there, pair.other)))
            is_told = encode is not None and (is_set or _is_of_people(here, there))
            needed = LEAST_OF_COUNTS if pair.one.key == "count" else LEAST_OF_ALIKE if is_told else LEAST_OF_CORPORA
            if LEAST <= confidence < needed and not described["siblings"] and _are_of_one_subject(pair, passages):
                needed = LEAST
        if confidence >= needed:
            weighed.append((confidence, pair))
    if encode and question is None:
        weighed = _alike_in_corpora(weighed, passages, encode)
    taken: set[tuple[int, int, str]] = set()
    found: list[tuple[_Pair, FactConflict]] = []
    for confidence, pair in sorted(weighed, key=lambda each: -each[0]):
        ends = {
            (pair.first, pair.one.span.start, passages[pair.second].domain),
            (pair.second, pair.other.span.start, passages[pair.first].domain),
        }
        if taken.isdisjoint(ends):
            taken |= ends
            found.append((pair, _conflict(pair, passages, min(confidence, HIGHEST))))
    if question is not None:
        asked = read_question(question)
        found = [each for each in found if not asked.kinds or _are_of_one_subject(each[0], passages, asked)]
        told = {(pair.first, pair.second) for pair, _ in found}
        answered = [pair for pair in _answered(asked, passages) if (pair.first, pair.second) not in told]
        if encode and not (found or answered):
            answered = list(_answered_alike(question, asked, passages, encode))
        found += ((pair, _conflict(pair, passages, SURE)) for pair in answered)
    return [conflict for _, conflict in sorted(found, key=lambda each: (each[0].first, each[0].second))]


def _alike_in_corpora(
    weighed: Sequence[tuple[float, _Pair]], passages: Sequence[AssertingPassage], encode: SentenceEncoder
) -> list[tuple[float, _Pair]]:
    """Return the pairs whose sentences are alike, and those that only their meaning shows to be about one thing."""
    told = [(_text_of(passages[pair.first], pair.one), _text_of(passages[pair.second], pair.other))
            for _, pair in weighed]  # fmt: skip
    alike = [each for each, cosine in zip(weighed, cosines(told, encode), strict=True) if cosine >= ALIKE]
    known = {(pair.first, pair.second) for _, pair in alike}
    nothing = Asked(OPEN_KINDS, frozenset())
    differing = [(each, pair) for each in choose_pairs_of_corpora(passages)
                 for pair in _differing(each, *_read_both(each, nothing, passages), passages)
                 if (pair.first, pair.second) not in known and _may_meet(each, pair, passages)]  # fmt: skip
    texts = [(each.one.told, each.other.told) for each, _ in differing]
    return alike + [(cosine, pair) for (_, pair), cosine in zip(differing, cosines(texts, encode), strict=True)
                    if cosine >= ALIKE_IN_CORPORA]  # fmt: skip


def _is_setting(passage: AssertingPassage, said: Assertion) -> bool:
    """Tell whether an assertion is a number that a line of a program sets."""
    return passage.domain == "code" and said.kind == "quantity" and "=" in _text_of(passage, said)


def _is_of_people(here: AssertingPassage, there: AssertingPassage) -> bool:
    """Tell whether one of two passages is of a conversation or a paper."""
    return not {here.domain, there.domain}.isdisjoint(("conversations", "research"))


def _may_meet(alike: AlikePair, pair: _Pair, passages: Sequence[AssertingPassage]) -> bool:
    """Tell whether two statements of corpora may contradict each other.

    Code and documentation of one product describe its parts in like words, so of a program only settings are compared
    with its pages, and only their numbers and versions.
    """
    if alike.one.is_setting != alike.other.is_setting and pair.one.kind in {"quantity", "version"}:
        return True
    is_plain = pair.one.key != "count" and pair.one.kind != "version"  # ISO 4217 is no version
    return is_plain and _is_of_people(passages[pair.first], passages[pair.second])


def _text_of(passage: AssertingPassage, said: Assertion) -> str:
    return " ".join(passage.text[said.span.start : said.span.end].split())


def _are_of_one_subject(pair: _Pair, passages: Sequence[AssertingPassage], asked: Asked | None = None) -> bool:
    """Tell whether neither side of a pair is about a part; without a question, both must be about one thing too."""
    contexts = []
    words = pair.one.about | pair.other.about
    subject = asked or Asked(frozenset(), words, words)
    for number, each in ((pair.first, pair.one), (pair.second, pair.other)):
        passage = passages[number]
        sentence = passage.text[each.span.start : each.span.end]
        if passage.domain == "code" and NO_PROSE.search(sentence):
            contexts.append(Context(each.about, passage.topic, names=each.about if asked else frozenset()))
            continue
        context = read_context(sentence, passage.domain, subject, passage.topic)
        scopes = frozenset(scope for scope in context.scopes if scope.isdisjoint(each.values))
        own = context.subject - each.values
        contexts.append(replace(context, topic=context.topic | each.about, subject=own, scopes=scopes))
    near = (passages[pair.first].near, passages[pair.second].near)
    no = _denier(pair.one, pair.other)
    return are_of_one_subject(contexts[0], contexts[1], subject, near, no, is_tabled=asked is not None)


def _denier(one: Assertion, other: Assertion) -> int:
    """Return the index, 0 or 1, of the assertion that denies the other one; -1 if neither is a denial."""
    return 0 if one.values == {"no"} else 1 if other.values == {"no"} else -1


def _answered(asked: Asked, passages: Sequence[AssertingPassage]) -> Iterator[_Pair]:
    """Yield pairs of sentences of two domains that answer a question differently; one per passage and other domain."""
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
            settings = read_settings(passage.text, asked, topic, with_words=passage.is_configuration)
            answers += ((len(asked.about & (each.context.said | topic)), number, each) for each in settings)
    best = max((count for count, *_ in answers), default=0)
    pairs = [
        (count + other_count, _Pair(first, one.assertion, second, other.assertion))
        for (count, first, one), (other_count, second, other) in combinations(answers, 2)
        if max(count, other_count) >= AS_CLOSE * best
        and _answer_differently(one, other, passages[first], passages[second], asked)
    ]  # fmt: skip
    yield from _one_a_passage((pair for _, pair in sorted(pairs, key=lambda each: -each[0])), passages)


def _answered_alike(
    question: str, asked: Asked, passages: Sequence[AssertingPassage], encode: SentenceEncoder
) -> Iterator[_Pair]:
    """Yield pairs of sentences that say something else of one thing; one per passage and other domain.

    A sentence contradicts nobody if one that it is closer to says the same.
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
    yield from _one_a_passage(_unsettled(alike, read, pairs), passages)


def _unsettled(
    alike: Iterable[AlikePair],
    read: Mapping[AlikePair, tuple[Sequence[Answering], Sequence[Answering]]],
    pairs: Mapping[AlikePair, Sequence[_Pair]],
) -> Iterator[_Pair]:
    """Yield what differs, unless a sentence says the same as one that it is closer to; the closest pairs come first."""
    agreed: set[Statement] = set()
    for each in alike:
        mine, theirs = read[each]
        if any(_states(mine, answer.assertion) for answer in theirs):
            agreed |= {each.one, each.other}
        if agreed.isdisjoint((each.one, each.other)):
            yield from pairs[each]


def _one_a_passage(pairs: Iterable[_Pair], passages: Sequence[AssertingPassage]) -> Iterator[_Pair]:
    """Yield the first pair of each passage and other domain."""
    taken: set[tuple[int, str]] = set()
    for pair in pairs:
        ends = {(pair.first, passages[pair.second].domain), (pair.second, passages[pair.first].domain)}
        if taken.isdisjoint(ends):
            taken |= ends
            yield pair


def _read_both(
    alike: AlikePair, asked: Asked, passages: Sequence[AssertingPassage]
) -> tuple[list[Answering], list[Answering]]:
    """Return what each of two sentences states of what they share, of the kinds that were asked for."""
    subject = _subject_of(alike, asked)
    one, other = (list(_read_statement(each, subject, passages)) for each in (alike.one, alike.other))
    return one, other


def _about(alike: AlikePair) -> frozenset[str]:
    """Return what two sentences are about: the words that both have."""
    return (alike.one.own & alike.other.own or alike.shared) - forms.COMMON


def _subject_of(alike: AlikePair, asked: Asked) -> Asked:
    """Return what two sentences are about as if it was asked for."""
    kinds = asked.kinds if asked.kinds.isdisjoint(("name", "may")) else asked.kinds | OPEN_KINDS - {"answer"}
    return Asked(kinds or OPEN_KINDS, _about(alike), alike.shared, frozenset(), asked.how, is_shared=True)


def _differing(
    alike: AlikePair, mine: Sequence[Answering], theirs: Sequence[Answering], passages: Sequence[AssertingPassage]
) -> Iterator[_Pair]:
    """Yield what two sentences state differently, unless one of them is about a part of the thing."""
    here, there = passages[alike.one.number], passages[alike.other.number]
    subject = Asked(frozenset(), _about(alike), alike.shared, is_shared=True)
    for one in mine:
        for other in theirs:
            first, second = one.assertion, other.assertion
            if (
                not _states(mine, second)
                and not _states(theirs, first)
                and first.kind == second.kind
                and first.key.partition(" ")[0] == second.key.partition(" ")[0]
                and differ(first, second)
                and (first.key != "count" or _count_one_thing(one, other))
                and not are_of_two_cases(first, second, here, there, alike.shared)
                and not _are_two_things(one.context, other.context, alike.shared, here, there)
                and are_of_one_subject(
                    one.context, other.context, subject, (here.near, there.near), _denier(first, second),
                    is_tabled=True,
                )
            ):  # fmt: skip
                yield _Pair(alike.one.number, first, alike.other.number, second)


def _states(answers: Sequence[Answering], said: Assertion) -> bool:
    """Tell whether one of some answers says what an assertion says."""
    return any(
        (each.assertion.kind, each.assertion.key) == (said.kind, said.key) and not differ(each.assertion, said)
        for each in answers
    )


def _read_statement(statement: Statement, subject: Asked, passages: Sequence[AssertingPassage]) -> Iterator[Answering]:
    passage = passages[statement.number]
    if not statement.is_setting:
        topic = passage.topic
        return read_answers(statement.text, statement.start, passage.domain, statement.before, subject, topic)
    within = Span(statement.start, statement.start + len(statement.text))
    return read_settings(
        passage.text, subject, statement.words, within, owner=statement.before, with_words=passage.is_configuration
    )


def _count_one_thing(one: Answering, other: Answering) -> bool:
    """Tell whether two numbers without a unit stand beside a word that both have; a setting's name counts too."""
    beside = [each.assertion.beside | each.context.names for each in (one, other)]
    return not beside[0].isdisjoint(beside[1])


def _are_two_things(
    one: Context, other: Context, shared: frozenset[str], here: AssertingPassage, there: AssertingPassage
) -> bool:
    """Tell whether both qualify a shared word by another word, which the other's passage lacks: a ranked lobby."""
    left = [
        {(noun, word) for noun, word in each.before if noun in shared and word not in shared | rest.said | place.near}
        for each, rest, place in ((one, other, there), (other, one, here))
    ]
    return bool({noun for noun, _ in left[0]} & {noun for noun, _ in left[1]})


def _answer_differently(
    one: Answering, other: Answering, here: AssertingPassage, there: AssertingPassage, asked: Asked
) -> bool:
    first, second = one.assertion, other.assertion
    return (
        here.domain != there.domain
        and (first.kind, first.key) == (second.kind, second.key)
        and differ(first, second)
        and (first.key != "count" or _count_one_thing(one, other))
        and not _are_two_things(one.context, other.context, asked.words, here, there)
        and are_of_one_subject(one.context, other.context, asked, (here.near, there.near), _denier(first, second))
        and not are_of_two_cases(first, second, here, there, asked.words)
    )


def candidates(passages: Sequence[AssertingPassage]) -> Iterator[_Pair]:
    """Yield pairs of assertions of two domains that share words and differ, unless one passage states both."""
    held = [passage.assertions for passage in passages]
    groups: dict[tuple[str, str], list[tuple[int, Assertion]]] = defaultdict(list)
    for place, each in (*_said(held), *_affirmations(passages, held)):
        groups[each.kind, "" if each.kind == "role" else each.key].append((place, each))
    for asserted in groups.values():
        holders: dict[str, list[int]] = defaultdict(list)
        for number, (_, each) in enumerate(asserted):
            for stem in each.about:
                holders[stem].append(number)
        for number, (first, one) in enumerate(asserted):
            here = passages[first]
            alike = (holders[stem] for stem in one.about if len(holders[stem]) <= MAX_ALIKE)
            met = {other for others in alike for other in others if other > number}
            for second, other in (asserted[each] for each in sorted(met)):
                there = passages[second]
                if (
                    here.domain != there.domain
                    and are_comparable(one, other)
                    and differ(one, other)
                    and not are_apart(one, other, here, there)
                    and not _says(held[first], other)
                    and not _says(held[second], one)
                ):
                    yield _Pair(first, one, second, other)


def _said(held: Sequence[Sequence[Assertion]]) -> Iterator[tuple[int, Assertion]]:
    return ((place, each) for place, said in enumerate(held) for each in said)


def _affirmations(
    passages: Sequence[AssertingPassage], held: Sequence[Sequence[Assertion]]
) -> Iterator[tuple[int, Assertion]]:
    """Yield statements that affirm what a passage of another domain denies. They are found by the denied verb."""
    denied: dict[str, set[str]] = defaultdict(set)
    subjects: dict[str, set[str]] = defaultdict(set)
    for _, each in _said(held):
        if each.kind == "denial" and each.key not in forms.COMMON and each.about:
            denied[each.key[:HEAD]].add(each.key)
            subjects[each.key[:HEAD]].update(stem[:HEAD] for stem in each.about - forms.COMMON)
    for place, passage in enumerate(passages) if denied else ():
        if not _is_about(passage.text, denied.keys(), subjects):
            continue
        for said in passage.sentences:
            for head in _is_about(said.text, denied.keys(), subjects):
                found = (read_plain(said.text, said.start, verb) for verb in sorted(denied[head]))
                yield from ((place, each) for each in found if each is not None)


def _is_about(text: str, verbs: Collection[str], subjects: Mapping[str, Collection[str]]) -> list[str]:
    """Return those of some verbs, cut to their beginnings, that a text holds together with one of their subjects."""
    heads = {found[:HEAD] for found in _LONG_WORD.findall(text.lower())}
    return sorted(head for head in heads.intersection(verbs) if not heads.isdisjoint(subjects[head]))


def _asked_about(question: str, pairs: Sequence[_Pair], passages: Sequence[AssertingPassage]) -> Iterator[_Pair]:
    """Yield the pairs whose sides share a word of the question, and of which one side is close to the question.

    A side is close if no sentence of the passages has many more of the question's words.
    """
    if not pairs:
        return
    content_words = stems(_HOW.sub(" ", question))
    asked = content_words - forms.COMMON or content_words

    counts = (len(asked & (said.stems | each.topic)) for each in passages for said in each.sentences)
    wanted = max(ASKED * len(asked), AS_CLOSE * max(counts, default=0))
    told = frozenset(find_words(question.lower()))
    for pair in pairs:
        if pair.one.kind == "quantity" and told & {pair.one.shown.lower(), pair.other.shown.lower()}:
            continue  # the press with four units: what the question says is not what it asks for
        sides = ((passages[pair.first], pair.one), (passages[pair.second], pair.other))
        shares = [
            len(
                asked
                & (stems(passage.text[each.span.start : each.span.end]) | passage.topic | each.about | each.values)
            )
            for passage, each in sides
        ]
        is_counted = pair.one.key != "count" or min(shares) > ASKED * len(asked)  # such a number may count anything
        if wanted <= max(shares) and is_counted and not asked.isdisjoint(pair.one.about & pair.other.about):
            yield pair


def _says(held: Iterable[Assertion], other: Assertion) -> bool:
    """Tell whether the assertions of a passage include one that agrees with another assertion."""
    return any(
        are_comparable(each, other) and not differ(each, other) and (each.key != "there" or each.head & other.about)
        for each in held
    )


def _weight(words: Iterable[str], names: Collection[str] = ()) -> float:
    return sum(forms.COMMON_WEIGHT if stem in forms.COMMON else 1.5 if stem in names else 1.0 for stem in words)


def _share(part: AbstractSet[str], of: AbstractSet[str], names: Collection[str] = ()) -> float:
    whole = _weight(of, names)
    return _weight(part, names) / whole if whole else 0.0


def features(one: Assertion, other: Assertion, here: AssertingPassage, there: AssertingPassage) -> dict[str, float]:
    """Return the features of two assertions of one kind with different values, each in [0, 1].

    ``said`` is the share of an assertion's words that the other assertion has too, ``head`` the same share of its
    subject's words, ``known`` the share of its words that the other passage or its headings have. ``more`` is the
    larger value of the two sides, ``less`` the smaller one.
    """
    names = one.names | other.names
    shared = one.about & other.about
    sides = ((one, other, there), (other, one, here))
    said = [_share(shared, each.about, names) for each, _, _ in sides]
    head = [_share(each.head & rest.about, each.head, names) for each, rest, _ in sides]
    unknown = [each.about - rest.about - place.near for each, rest, place in sides]
    counts = one.kind == "quantity" and one.key.startswith("count")
    return {
        "said_more": max(said),
        "said_less": min(said),
        "head_more": max(head),
        "head_less": min(head),
        "known_less": min(
            1 - _share(part, each.about, names) for part, each in zip(unknown, (one, other), strict=True)
        ),
        "shared": min(4.0, _weight(shared, names)) / 4,
        "foreign_one": float(any(part & names for part in unknown)),
        "foreign_both": float(all(part & names for part in unknown)),
        "scope_one": float(any(part & each.scope for part, each in zip(unknown, (one, other), strict=True))),
        "scope_both": float(all(part & each.scope for part, each in zip(unknown, (one, other), strict=True))),
        "siblings": float(all(_narrows(each, shared, part) for part, each in zip(unknown, (one, other), strict=True))),
        "same_key": float(one.key == other.key),
        "same_counted": float(counts and bool(one.beside & other.beside)),
        "value_named": (one.is_named + other.is_named) / 2 if one.kind == "role" else 0.0,
        "topic": _share(here.topic & there.near, here.topic),
        "topic_back": _share(there.topic & here.near, there.topic),
        f"kind_{one.kind}": 1.0,
    }


def _narrows(one: Assertion, shared: Collection[str], unknown: Collection[str]) -> bool:
    """Tell whether an assertion qualifies one of the shared words by an unknown one: ``the admin manual``."""
    return any(
        (left in shared and right in unknown) or (right in shared and left in unknown) for left, right in one.pairs
    )


def differ(one: Assertion, other: Assertion) -> bool:
    """Tell whether two assertions of one kind and key have different values."""
    if one.kind == "date":
        parts = [dict(value.split() for value in each.values) for each in (one, other)]
        return any(parts[0][part] != parts[1][part] for part in parts[0].keys() & parts[1].keys())
    if one.kind == "quantity":
        sizes = [[float(value) for value in each.values] for each in (one, other)]
        is_rounded = one.key.startswith("byte") or (one.key == "count" and min(map(max, sizes)) >= LARGE)
        tolerance = 0.08 if is_rounded else 0.0 if one.key == "count" else 0.03
        return not any(abs(a - b) <= tolerance * max(abs(a), abs(b)) for a in sizes[0] for b in sizes[1])
    if one.kind == "version":
        numbers = [[value.lstrip("~^>=<v ") for value in each.values] for each in (one, other)]
        return not any(
            f"{a}.".startswith(f"{b}.") or f"{b}.".startswith(f"{a}.") for a in numbers[0] for b in numbers[1]
        )
    if one.key == "who may":
        (sign, who), (other_sign, others) = (next(iter(each.values)).split(" ", 1) for each in (one, other))
        return sign != other_sign and ("all" in {sign, other_sign} or who != others)
    if one.key == "path":
        return not any(a.endswith(b) or b.endswith(a) for a in one.values for b in other.values)
    if one.key == "may":  # only keepers and trainees; trainees and not trainees
        signs = [value.rpartition(" ")[::2] for each in (one, other) for value in each.values]
        return any(
            (a == b)
            if (sign, other_sign) in {("", "not"), ("not", "")}
            else a != b and {sign, other_sign} == {"only", ""}
            for sign, a in signs[:1]
            for other_sign, b in signs[1:]
        )
    if one.kind == "owner" and any(value.startswith("not ") for value in one.values | other.values):
        names = [{value.removeprefix("not ") for value in each.values} for each in (one, other)]
        return one.values.isdisjoint(other.values) and not names[0].isdisjoint(names[1])
    return one.values.isdisjoint(other.values)


def are_comparable(one: Assertion, other: Assertion) -> bool:
    """Tell whether two assertions have the same kind and key, share words, and count the same thing."""
    if one.kind != other.kind:
        return False
    if one.kind == "role" and one.key != other.key:
        if {"move", "is"}.isdisjoint((one.key, other.key)) and one.key[-3:] != other.key[-3:]:
            return False
    elif one.key != other.key:
        return False
    if one.beside and not (one.beside & other.beside or one.beside & other.about or other.beside & one.about):
        return False
    shared = one.about & other.about
    weight = _weight(shared)
    if shared in (one.about, other.about) or one.head <= other.head or other.head <= one.head:
        return weight >= 1
    return weight >= LEAST_SHARED or bool(one.names & other.names)


def are_apart(one: Assertion, other: Assertion, here: AssertingPassage, there: AssertingPassage) -> bool:
    """Tell whether two assertions are of two cases or two versions of a thing, or one is of a named part of it."""
    numbers = [{stem for stem in each.about if stem[0].isdigit()} for each in (one, other)]
    if are_of_two_cases(one, other, here, there):
        return True
    if all(numbers) and numbers[0].isdisjoint(numbers[1]):
        return True
    if one.doer and other.doer and one.doer.isdisjoint(other.about) and other.doer.isdisjoint(one.about):
        return True
    if one.kind == "presence" and _are_parts(one, other, here, there):
        return True
    is_duty = one.key == "required"  # whose it is counts as much as a name
    return any(
        each.scope & (each.about if is_duty else each.names) - rest.about - rest.values - place.near
        for each, rest, place in ((one, other, there), (other, one, here))
    )


def are_of_two_cases(
    one: Assertion,
    other: Assertion,
    here: AssertingPassage,
    there: AssertingPassage,
    asked: frozenset[str] = frozenset(),
) -> bool:
    """Tell whether one of two assertions holds only under a condition or in an environment that the other lacks."""
    known = one.condition <= other.about | there.near | asked and other.condition <= one.about | here.near | asked
    said = [place.text[each.span.start : each.span.end] for each, place in ((one, here), (other, there))]
    is_case = not known and bool(one.condition) != bool(other.condition)
    return is_case or are_of_two_environments(*said, there.text, here.text)


def _are_parts(one: Assertion, other: Assertion, here: AssertingPassage, there: AssertingPassage) -> bool:
    """Tell whether two sentences are about different places, times or named kinds of a thing."""
    own = [each.about - rest.about for each, rest in ((one, other), (other, one))]
    tails = [words - each.head - each.doer for words, each in zip(own, (one, other), strict=True)]
    names = [words & each.names - rest.near for words, each, rest in zip(own, (one, other), (there, here), strict=True)]
    return all(tails) or all(names)


def _conflict(pair: _Pair, passages: Sequence[AssertingPassage], confidence: float) -> FactConflict:
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
    return FactConflict(first=first, second=second, confidence=round(confidence, 4), name=name,
                        attribute=first.fact.attribute, explanation=f"{name}: {said_by}")  # fmt: skip


def _side(passage: AssertingPassage) -> Side:
    return _SIDES.get(passage.domain, "documentation")


def _located(passage: AssertingPassage, assertion: Assertion, name: str) -> LocatedFact:
    start, end = assertion.span.start, assertion.span.end
    attribute = _ATTRIBUTES.get(assertion.kind, "value")
    kinds: Mapping[str, ValueKind] = {"holds": "boolean", "status": "status"}
    line = (passage.line or 0) + passage.text.count("\n", 0, start)
    fact = Fact(
        name=name, owner="", attribute=attribute, kind=kinds.get(attribute, "string"),
        value="true" if attribute == "holds" else assertion.shown, side=_side(passage), form="sentence",
        negated=assertion.values == {"no"}, span=Span(passage.start + start, passage.start + end), line=line,
        statement=" ".join(passage.text[start:end].split()),
    )  # fmt: skip
    return LocatedFact(
        fact=fact, domain=passage.domain, source_id=passage.source_id, path=passage.path, section=passage.section,
        title=passage.title, updated_at=passage.updated_at, revision=passage.revision, chunk_id=passage.place,
        line_range=None if passage.line is None else (line + 1, line + 1),
    )  # fmt: skip
