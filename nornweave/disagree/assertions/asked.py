"""Compare what two passages answer: the question says of which kind that is, and what it is about.

No table of verbs is needed. *How long is a seat kept?* asks for a quantity and is about seats: of the sentences that
say most of its words the quantities are read, whether a seat *is released* after them or *let go of*.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import NamedTuple

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.text.words import VALUE, word
from nornweave.core.types import Span
from nornweave.disagree.assertions import forms
from nornweave.disagree.assertions.reading import (
    ASKED,
    NO_PROSE,
    Assertion,
    Found,
    Kind,
    Sentence,
    content,
    is_clock,
    measure_of,
    read_clock,
    stems,
)
from nornweave.disagree.facts.expressions import read_value
from nornweave.disagree.facts.names import read_name, words_of
from nornweave.disagree.facts.values import UNITS, measured_in

_VERBS = r"(?:is|are|am|was|were|do|does|did|can|may|must|has|have|will)"
_WHAT = r"\b(?:what|which|whose)(?: is| are)?(?: the| our)?(?: current)?"
# What is asked for, by the words that ask.
_ASKED_FOR: Sequence[tuple[str, re.Pattern[str]]] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        ("may", r"\bwho(?: else)? (?:may|can|is (?:allowed|permitted|entitled|authori[sz]ed) to)\b"
         rf"|{_WHAT} \w+ (?:may|can)\b"),
        ("version", rf"{_WHAT} (?:\w+ )?(?:versions?|release)\b|{_WHAT} (?-i:[A-Z]\w+)\b"),
        ("date", rf"\bwhen\b|{_WHAT} (?:week|due )?(?:day|date|deadline|month|year|time)\b"),
        ("state", rf"{_WHAT} (?:status|state|stage)\b|\bhow far\b"),
        ("quantity", rf"\bhow (?!{_VERBS}\b|should|would|could|to|come|about)\w+(?: \w+)?"
         rf"|{_WHAT} (?:\w+ ){{0,2}}(?:limit|number|size|rate|maximum|accuracy|price|timeout)\b"),
        ("place", rf"\bwhere\b|{_WHAT} (?:place|folder|directory|path|machine|host|room|bucket|region|city|server)\b"),
        ("who", rf"\bwho(?:m|se)?\b|{_WHAT} (?:team|person|group|squad|contact|owner)\b"),
        ("answer", rf"^\W*{_VERBS}\b|[,;:] ?{_VERBS}\b"),
        ("name", _WHAT),
    )
)  # fmt: skip
_PATH = lazy_pattern(r"(?<![\w/])(?:~|\.{1,2}|/)?(?:/[\w.@-]+){1,12}/?|(?<![\w/])[\w.-]+(?:/[\w.-]+){1,12}")
SETTING = lazy_pattern(
    r"(?P<name>[A-Za-z_][\w-]*)[\"']?[ \t]*(?::[ \t]*[\w.\[\]| ]{1,40}?)?[ \t]*[:=][ \t]*"
    r"(?P<value>\"[^\"\n]{1,80}\"|'[^'\n]{1,80}'|-?\d[\d_.]*\b|[Tt]rue\b|[Ff]alse\b|~?/[\w.@/-]{2,80}"
    r"|[A-Za-z][\w.@+-]{0,60}(?=[ \t]*(?:\n|#|$)))"
)
_OF_TIME = lazy_pattern(r"\b(?:much|many|soon|old|early|late|fast|quick(?:ly)?|slow|far)\b")
"""What a duration may answer, as well as *how long* and *when*."""
_VERSION = lazy_pattern(r"[~^>=<v ]*(\d+(?:\.(?:\d+|x))*)$")
_RELEASED = lazy_pattern(r"version|release|firmware|(?:^|_)tag$", re.IGNORECASE)
_UNSAID = forms.FILLERS | forms.SINCE | forms.MODALS | forms.THERE.keys() | forms.SWITCH.keys()
"""Words of a question that say how something is asked about it."""
_LABELS = frozenset(("status", "state", "stage"))
OPEN_KINDS = frozenset(("quantity", "date", "version", "status", "answer"))
"""What is compared of two sentences that are alike if the question does not tell what it asks for."""
_SWITCHED_BY = {**forms.SWITCH, "yes": True, "no": False, "enabled": True, "disabled": False}
"""Value of a setting → whether what it sets is so."""
TOLD = 2 / 3
"""Share of the words of a question that a sentence has to say, to say so or not so without a word for a state."""
LONGEST_LINE = 200
SURE = 0.6
"""Confidence: such a conflict is shown beside the answer and settles nothing."""


class Asked(NamedTuple):
    """What a question asks for, and what it is about.

    Attributes:
        kinds: the kinds of answer that it asks for; empty if it does not tell.
        about: the stems of the words that say what it is about, without common words.
        words: the stems in ``about`` and those of the common words.
        names: the stems in ``words`` that are written as names.
        how: the words that ask, in lower case: ``how often``.
        is_shared: ``about`` is what two sentences share, so both speak of it.
    """

    kinds: frozenset[str]
    about: frozenset[str]
    words: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    how: str = ""
    is_shared: bool = False


def read_question(question: str) -> Asked:
    """Return what a question asks for and what it is about; all fields are empty if no kind of answer is found."""
    matches = [(kind, found) for kind, pattern in _ASKED_FOR if (found := pattern.search(question))]
    if not matches:
        return Asked(frozenset(), frozenset())
    kind, found = min(matches, key=lambda each: each[1].start())  # whom do I call when it fails
    kinds = {"date": {kind, "quantity"}, "state": {kind, "status"}}.get(kind, {kind})
    told = {form: written for form, written in content(question).items() if written.lower() not in _UNSAID}
    words = frozenset(told) - forms.STATES
    names = frozenset(form for form in words if not told[form].islower() and not question.startswith(told[form]))
    return Asked(frozenset(kinds), words - forms.COMMON or words, words, names, found[0].lower())


@dataclass(frozen=True, slots=True)
class Context:
    """What a sentence is about, beside a question.

    Attributes:
        said: the stems of all its words.
        topic: the stems of its heading, and of the sentence before if it begins with a pronoun.
        subject: the stems before its auxiliary verb; without an auxiliary, only its first stem.
        scopes: for each phrase that says for whom or where the sentence holds, the set of its stems.
        before: pairs of a stem and the stem directly before it.
        names: the stems of a setting's name; empty for a sentence.
    """

    said: frozenset[str]
    topic: frozenset[str] = frozenset()
    subject: frozenset[str] = frozenset()
    scopes: frozenset[frozenset[str]] = frozenset()
    before: frozenset[tuple[str, str]] = frozenset()
    names: frozenset[str] = frozenset()

    def numbers(self, shared: Collection[str]) -> frozenset[str]:
        """Return the numbers directly after a shared word, which tell things of one name apart: ``homework 3``."""
        return frozenset(form for form, before in self.before if form[0].isdigit() and before in shared)


class Answering(NamedTuple):
    """An answer to a question: what a sentence asserts, and what the sentence is about."""

    assertion: Assertion
    context: Context


def read_answers(
    sentence: str, start: int, domain: str, before: str, asked: Asked, topic: frozenset[str]
) -> Iterator[Answering]:
    """Yield the answers that a sentence gives to a question."""
    if not NO_PROSE.search(sentence):
        yield from _AnsweringSentence(sentence, start, domain, before, asked, topic).answers()


def read_context(sentence: str, domain: str, asked: Asked, topic: frozenset[str]) -> Context:
    """Return what a sentence is about, beside a question."""
    return _AnsweringSentence(sentence, 0, domain, "", asked, topic).context()


class _AnsweringSentence(Sentence):
    """A sentence that is read only for the kinds of answer that a question asks for."""

    def __init__(self, text: str, start: int, domain: str, before: str, asked: Asked, topic: frozenset[str]) -> None:
        super().__init__(text, start, domain, before)
        self.text, self.asked, self.topic = text, asked, topic
        self.said = stems(text) | {form for at, form in enumerate(self.forms) if self._tells(at)}
        self.said |= {form[2:] for form in self.said if form.startswith("un")}  # an unpaid seat is not paid
        if self.lower and self.lower[0] in forms.PRONOUNS:
            self.topic = topic | stems(before)

    def answers(self) -> Iterator[Answering]:
        """Yield the answers that the sentence gives to the question."""
        if not self.forms or not self._is_sure():
            return
        self._read_all()
        found = [each for each in self.found if each.kind in self.asked.kinds and self._is_measure(each)]
        readers = {
            "version": self._versions, "place": self._places, "who": self._people, "state": self._states,
            "name": self._names, "may": self._who_may, "answer": self._yes_or_no,
        }  # fmt: skip
        found += (each for kind, read in readers.items() if kind in self.asked.kinds for each in read())
        merged: dict[tuple[str, str, frozenset[str]], list[Found]] = {}
        for each in filter(self._is_now, found):
            merged.setdefault((each.kind, each.key, each.beside), []).append(each)
        about = self._about() if merged else {}
        for alike in merged.values():
            values = frozenset[str]().union(*(each.values for each in alike))
            yield Answering(self._assertion(alike, about), self.context(range(alike[0].at, alike[0].end), values))

    def context(self, value: Sequence[int] = (), values: frozenset[str] = frozenset()) -> Context:
        """Return what the sentence is about, without a value (its places in the sentence, and its stems)."""
        zone = self._zone
        clauses = {self.clauses[at] for at in (*value[:1], *zone[:1])}
        near = [at for at in range(len(self.forms)) if self.clauses[at] in clauses]
        own = set(value) | {at for at, form in enumerate(self.forms) if form in values}
        pairs = (at for at in range(1, len(self.forms)) if self._tells(at) and self._tells(at - 1))
        return Context(
            self.said, self.topic, self._subject(zone) - values, self._scopes(near, value),
            frozenset((self.forms[at], self.forms[at - 1]) for at in pairs if own.isdisjoint((at, at - 1))),
        )  # fmt: skip

    def _is_measure(self, found: Found) -> bool:
        """Tell whether a quantity suits the question: *how often* needs a rate, *how long* and *when* a duration."""
        every = self.lower[max(0, found.at - 2) : found.at + 1]
        is_rate = "/" in found.key or every[-1] in forms.EVERY or "every" in every
        if found.kind != "quantity" or not self.asked.how.startswith(("how", "when")):
            return True
        if "often" in self.asked.how:
            return is_rate
        if found.key == "count" and self.asked.how.startswith("how many ") and not is_rate:
            return word(self.asked.how.rpartition(" ")[2])[0] in found.beside
        is_duration = found.key.startswith("s") and not is_rate
        return (
            is_duration
            if re.search("long|when", self.asked.how)
            else not is_duration or bool(_OF_TIME.search(self.asked.how))
        )

    def _read_date(self, at: int) -> None:
        """Read the only date of the clause that was asked about; of another clause, if that has none."""
        of_day = is_clock(self.dates[at])
        alike = {each for each, parts in self.dates.items() if is_clock(parts) == of_day}
        if (alike.intersection(self._zone) or alike) == {at} and not (at and self.lower[at - 1] in forms.SINCE):
            self._add("date", "clock" if of_day else "date", self.dates[at], at, at + 1)
        self.taken.add(at)

    @cached_property
    def _zone(self) -> Sequence[int]:
        """Return the places of the clause with the most words of the question, and of the text after its colon."""
        asked = Counter(self.clauses[at] for at, form in enumerate(self.forms) if form in self.asked.about)
        best = max(sorted({*self.clauses}), key=lambda clause: (asked[clause], -clause), default=0)
        zone = [at for at in range(len(self.forms)) if self.clauses[at] == best]
        last = zone[-1] + 1 if zone else 0
        if self.lower[last : last + 1] == [":"]:
            zone += (at for at in range(last, len(self.forms)) if self.clauses[at] == self.clauses[last])
        return zone

    def _subject(self, places: Sequence[int]) -> frozenset[str]:
        verb = next((at for at in places if self.lower[at] in forms.AUXILIARIES), None)
        begun = [at for at in places if self.lower[at] not in forms.DETERMINERS | forms.BREAKS]
        before = begun[:1] if verb is None else [at for at in places if at < verb]
        return frozenset(self.forms[at] for at in before if self._tells(at) and self.sorts[at] != VALUE)

    def _scopes(self, places: Sequence[int], value: Sequence[int]) -> frozenset[frozenset[str]]:
        """Return the stems of each phrase that says where or for whom the sentence holds: *of old machines*."""
        scopes = set()
        for at in places:
            _, place, end = self._thing(at + 1) if self.lower[at] in forms.NARROWS else (None, at, at)
            told = list(takewhile(lambda each: self.forms[each] not in self.asked.about, range(place, end)))
            if told and self.written[place][0].isupper():  # in Linz closes
                told = list(takewhile(lambda each: self.written[each][0].isupper(), told))
            is_unsigned = any(self.forms[each].removeprefix("un") in self.asked.about for each in told)
            is_other = any(self.lower[each] in UNITS or "/" in self.lower[each] or each in value for each in told)
            is_other |= forms.MOMENTS.issuperset(self.lower[each] for each in told)
            is_other |= self.sorts[end : end + 1] == [VALUE]  # in release 12
            is_other |= at > 0 and self.lower[at] == "for" and self.lower[at - 1] in forms.THERE  # closed for repairs
            if told and not is_unsigned and not is_other and self.sorts[place] != VALUE:
                scopes.add(frozenset(self.forms[each] for each in told))
        return frozenset(scopes)

    def _versions(self) -> Iterator[Found]:
        for at, token in enumerate(self.lower):
            figure = _VERSION.match(token) if self.sorts[at] == VALUE and at not in self.dates else None
            is_named = at > 0 and (self.lower[at - 1] in {"version", "release"} or self._is_name(at - 1))
            if figure and (is_named or "." in figure[1]):
                yield Found("version", ASKED, frozenset((figure[1],)), frozenset(), at, at + 1)

    def _places(self) -> Iterator[Found]:
        """Yield the paths; without paths, the first thing after *in* or *at* that follows the words of the question."""
        zone = self._zone
        if paths := frozenset(_plain_path(found[0]) for found in _PATH.finditer(self.text)):
            told = (at for at, token in enumerate(self.lower) if any(token in path for path in paths))
            at = max(told, key=lambda each: len(self.lower[each]), default=zone[0])
            yield Found("role", "path", paths, frozenset(), at, at + 1)
            return
        things = [self._thing(at + 1) for at in zone if self.lower[at] in forms.STANDS]
        found = [
            Found("role", "place", held - self.asked.about, frozenset(), place, end)
            for held, place, end in things
            if held - self.asked.about and UNITS.keys().isdisjoint(self.lower[place:end])
            and not any(each in self.dates or self.sorts[each] == VALUE for each in range(place, end))
        ]  # fmt: skip
        last = max((at for at in zone if self.forms[at] in self.asked.about), default=-1)
        yield from ([each for each in found if each.at > last] or found[-1:])[:1]

    def _people(self) -> Iterator[Found]:
        """Yield the names in the clause that was asked about; if it has none, those in the others."""
        zone = self._zone
        yield from list(self._named(zone)) or self._named([at for at in range(len(self.forms)) if at not in zone])

    def _named(self, zone: Sequence[int]) -> Iterator[Found]:
        first = zone[0] + 2 if zone and self.lower[zone[0]] in forms.NARROWS else -1  # at Globex it is theirs
        for at in zone:
            is_begun = at == 0 and not (len(self.written) > 1 and self.written[1][0].isupper())
            is_name = self.written[at][0].isupper() and self._tells(at) and self.sorts[at] != VALUE and not is_begun
            if is_name and at > first and self.lower[at] not in forms.TEAMS | forms.GLUE | self.asked.about:
                yield Found("owner", ASKED, frozenset((self.forms[at],)), frozenset(), at, at + 1)

    def _names(self) -> Iterator[Found]:
        for at in self._zone:
            is_name = at > 0 and self._is_name(at) and self._tells(at) and self.sorts[at] != VALUE
            if is_name and self.forms[at] not in self.asked.about:
                yield Found("role", ASKED, frozenset((self.forms[at],)), frozenset(), at, at + 1)

    def _states(self) -> Iterator[Found]:
        """Yield the state that follows *is* or a colon."""
        zone = self._zone
        colons = [at for at in zone if self.lower[at] == ":"]
        start = next(iter(colons), max((at for at in zone if self.lower[at] in forms.HELPERS), default=len(self.forms)))
        places = [at for at in zone if at > start]
        told = [at for at in places if self.lower[at] in forms.THERE or self._tells(at)][:3]
        if not told or (_LABELS.isdisjoint(self.lower) and self._subject(zone).isdisjoint(self.asked.about)):
            return
        sign = "" if forms.NOT.isdisjoint(self.lower[at] for at in places) else "not "
        known = [forms.THERE[self.lower[at]] for at in told if self.lower[at] in forms.THERE]
        held = known or [self.forms[at] for at in told if self.lower[at] not in forms.NOT]
        yield Found("role", ASKED, frozenset(sign + each for each in held), frozenset(), told[0], told[-1] + 1)

    def _who_may(self) -> Iterator[Found]:
        zone = self._zone
        asked = (at for at in zone if self.lower[at] in {"may", "can"} or self.forms[at] in self.asked.about)
        verb = next((at for at in zone if self.lower[at] in {"may", "can"}), next(asked, 0))
        words = {self.lower[at] for at in zone if at < verb}
        told = [at for at in zone if at < verb and self._tells(at)]
        who = sorted(self.forms[at] for at in told)
        sign = "only" if "only" in words else "some" if words.isdisjoint(forms.EVERYBODY) else "all"
        if (who or sign == "all") and forms.NOT.isdisjoint(self.lower[at] for at in zone):
            values = frozenset((f"{sign} {' '.join(who)}",))
            yield Found("role", "who may", values, frozenset(), *_range_of(told or zone))

    def _yes_or_no(self) -> Iterator[Found]:
        """Yield *yes* or *no*, as the states and negations say in the clauses that name what was asked about."""
        clauses = {self.clauses[at] for at, form in enumerate(self.forms) if form in self.asked.about}
        clauses |= {self.clauses[at] for at, token in enumerate(self.lower)
                    if token in {"it", "they"} and self.clauses[at] - 1 in clauses}  # fmt: skip
        supposed = {at for condition in self._conditions() for at in condition}
        zone = [at for at in range(len(self.forms)) if self.clauses[at] in clauses and at not in supposed]
        parted = [at for at in zone if self.lower[at] in forms.APART and self._parted(at) is not None]
        switches = [at for at in zone if self.lower[at] in forms.SWITCH and self._is_switch(at)] + parted
        states = [at for at in zone if self.lower[at] in forms.THERE]
        told = len(self.asked.about & self.said)
        is_told = self.asked.is_shared or (told > 1 and told >= TOLD * len(self.asked.about))
        if not zone or not (states or switches or is_told):
            return
        no = [
            at
            for at in states
            if forms.THERE[self.lower[at]] in {"no", "done"} and self.forms[at] not in self.asked.about
        ]
        no += (at for at in switches if not forms.SWITCH.get(self.lower[at], False))
        signs = [at for at in zone if self.lower[at] in forms.NOT]
        at = (*no, *signs, *zone)[0]
        said = "no" if (len(signs) + bool(no)) % 2 else "yes"
        yield Found("presence", ASKED, frozenset((said,)), frozenset(), at, at + 1)


def _range_of(places: Sequence[int]) -> tuple[int, int]:
    return places[0], places[-1] + 1


def _plain_path(path: str) -> str:
    return path.strip("./~").lower()


def read_settings(
    text: str,
    asked: Asked,
    topic: frozenset[str],
    within: Span | None = None,
    *,
    owner: str = "",
    with_words: bool = False,
) -> Iterator[Answering]:
    """Yield the values of settings, in code or configuration, whose line or topic names what was asked about.

    Args:
        within: the lines to read; ``None`` reads all.
        owner: the section or the parent key of these lines.
        with_words: read words without quotation marks too, as files of configuration have them.
    """
    start, end = (within.start, within.end) if within else (0, len(text))
    for found in SETTING.finditer(text, start, end):
        begin = text.rfind("\n", 0, found.start()) + 1
        line = text[begin : begin + LONGEST_LINE].partition("\n")[0]
        said, named = (content(" ".join(words_of(f"{owner} {part}"))) for part in (line, found["name"]))
        if (is_word(found) and not with_words) or asked.about.isdisjoint({*said, *topic}):
            continue
        about, none = frozenset(named), frozenset[str]()
        for kind, key, values in _held(found, asked, with_words=with_words):
            assertion = Assertion(
                kind, key, values, about, about, none, none, none, frozenset(), none, False, none, named,
                found["value"].strip("\"'"), Span(begin + len(line) - len(line.lstrip()), begin + len(line.rstrip())),
            )  # fmt: skip
            yield Answering(assertion, Context(frozenset(said), topic, names=about))


def is_word(setting: re.Match[str]) -> bool:
    """Tell whether the value of a setting is a word without quotation marks: in a program that is a name."""
    return setting["value"][0].isalpha() and setting["value"].lower() not in {"true", "false"}


def _held(found: re.Match[str], asked: Asked, *, with_words: bool) -> Iterator[tuple[Kind, str, frozenset[str]]]:
    """Yield the kind, the key and the values of a setting that may answer the question; at most one."""
    text, name = found["value"].strip("\"'"), read_name(found["name"])
    version = _VERSION.fullmatch(text)
    is_named = bool(_RELEASED.search(found["name"])) or text.count(".") > 1 or text[:1] in "~^"
    value = read_value(found["value"]) if "quantity" in asked.kinds else None
    is_on = _SWITCHED_BY.get(text.lower())
    if "answer" in asked.kinds and is_on is not None:
        yield "presence", ASKED, frozenset(("yes" if is_on else "no",))
    elif "date" in asked.kinds and (minutes := read_clock(text)) is not None:
        yield "date", "clock", minutes
    elif "version" in asked.kinds and version and (is_named or len(asked.kinds) == 1):
        yield "version", ASKED, frozenset((version[1],))
    elif "place" in asked.kinds and _PATH.fullmatch(text):
        yield "role", "path", frozenset((_plain_path(text),))
    elif "status" in asked.kinds and version and found["name"].lower().endswith(("status", "code")):
        yield "status", text[0], frozenset((text,))
    elif value is not None and name is not None and value.kind == "number":
        key, held = measure_of(measured_in(value, name.unit))
        yield "quantity", key, frozenset((held,))
    elif with_words and text[:1].isalpha() and not asked.kinds.isdisjoint(("who", "name")):
        kind: Kind = "owner" if "who" in asked.kinds else "role"
        yield kind, ASKED, stems(" ".join(re.split(r"[^\w]+", text)))


def are_of_one_subject(
    one: Context, other: Context, asked: Asked, near: tuple[Collection[str], Collection[str]], no: int = -1,
    *, is_tabled: bool = False,
) -> bool:  # fmt: skip
    """Tell whether two sentences speak of the same part of what is asked about.

    Args:
        near: the stems of the passage of each sentence.
        no: the index of the sentence that denies the other one; -1 if none does. A denial only for a part is an
            exception and no contradiction; an affirmation for a part does contradict a general denial.
        is_tabled: both are known to be about one thing, so this only tells whether one is about a part of it.
    """
    shared = asked.about & (one.said | one.topic) & (other.said | other.topic)
    numbers = [each.numbers(shared) for each in (one, other)]
    if all(numbers) and numbers[0].isdisjoint(numbers[1]):
        return False
    is_same = one.subject == other.subject != frozenset()
    named = bool(shared & asked.names)
    if not is_tabled:
        is_set = bool(one.names or other.names)
        is_said = is_set or not asked.about.isdisjoint(one.said & other.said)
        if not is_said or not (named or is_set or _outweighs(shared, asked.words, 0.5, is_same)):
            return False
    for number, (here, there, known) in enumerate(((one, other, near[1]), (other, one, near[0]))):
        told = asked.about | there.said
        replaced, unknown = (asked.about & there.said) - here.said, here.subject - told
        missed, is_named = replaced - here.topic, named or bool(here.names)
        if not is_tabled:
            setting = here.names - forms.STATES - forms.COMMON
            is_its = not here.names or bool(setting and setting <= told) or len(asked.about & here.said) > 1
            is_missed = "who" in asked.kinds and not (asked.words & there.said) <= here.said | here.topic
            if is_missed or not is_its or not (is_named or _outweighs(shared, missed, 1, is_same)):
                return False
        if (unknown and replaced) or (number == no and ((missed and not is_named) or not unknown <= set(known))):
            return False
        if no in {-1, number} and not there.names and any(each.isdisjoint(told | set(known)) for each in here.scopes):
            return False
        asked_left = {(noun, left) for noun, left in here.before if noun in shared and left in asked.about - there.said}
        left = {(noun, left) for noun, left in there.before if left not in asked.about | here.said}
        if {noun for noun, _ in asked_left} & {noun for noun, _ in left}:  # the small room, the big room
            return False
    return True


def _outweighs(words: Collection[str], others: Collection[str], share: float, is_same: bool) -> bool:
    """Tell whether words weigh more than a share of others; equal weight is enough if both have the same subject."""
    surplus = weigh(words) - share * weigh(others)
    return surplus > 0 or (surplus == 0 and is_same)


def weigh(words: Iterable[str]) -> float:
    """Return the weight of words. Common words, which are said of everything, weigh less."""
    return sum(forms.COMMON_WEIGHT if each in forms.COMMON else 1.0 for each in words)
