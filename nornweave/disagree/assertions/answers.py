"""Read what a sentence or a setting answers to a question.

A sentence is read word by word, by the tables of ``forms``. An *assertion* has a kind, a key (of one kind only those of
one key are compared), values, and what it is about: the stems of the sentence's other content words. If a sentence only
asks, proposes, reports, supposes or remembers something, that is no assertion.

No table of verbs is needed. *How long is a seat kept?* asks for a quantity and is about seats: of the sentences that
say most of its words the quantities are read, whether a seat *is released* after them or *let go of*.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise, takewhile
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

from nornweave.core.text.index_fields import MONTHS
from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.text.words import CONTENT, FUNCTION, NAME, TURN, VALUE, word
from nornweave.core.types import Span
from nornweave.disagree.assertions import forms
from nornweave.disagree.assertions.asked import Asked
from nornweave.disagree.assertions.reading import (
    DOCSTRING,
    NO_PROSE,
    REMEMBERED,
    REMEMBERED_CHARACTERS,
    content,
    is_clock,
    read_words,
    stems,
)
from nornweave.disagree.facts.expressions import read_value
from nornweave.disagree.facts.names import is_generic, read_name, words_of
from nornweave.disagree.facts.values import UNITS, Value, measured_in

Kind: TypeAlias = Literal["quantity", "date", "version", "owner", "presence", "role"]
STANDING = frozenset(("owner", "role", "presence"))
"""Kinds of which what will be says nothing of what is."""
ASKED = "asked"
"""Key of what a question asks for and no table knows."""
SENTENCE_UNITS: Mapping[str, tuple[str, Fraction]] = {
    **UNITS,
    **{word: (base, Fraction(factor)) for base, factor, words in (
        ("gram", "1", "gram grams"), ("gram", "1000", "kg kilo kilos kilogram kilograms"),
        ("gram", "1000000", "tonne tonnes"),
        ("metre", "1", "metre metres meter meters"), ("metre", "1/100", "cm centimetre centimetres"),
        ("metre", "1/1000", "mm millimetre millimetres"), ("metre", "1000", "km kilometre kilometres"),
        ("litre", "1", "litre litres liter liters"), ("litre", "1000", "m3"), ("litre", "1/1000", "ml"),
        ("watt", "1", "watt watts"), ("watt", "1000", "kw kilowatt kilowatts"),
        ("metre/s", "1", "m/s mps"), ("metre/s", "5/18", "km/h kmh kph"), ("metre/s", "0.44704", "mph"),
        ("degree", "1", "degree degrees celsius c"),
        ("hertz", "1", "hz hertz"), ("hertz", "1000", "khz"), ("hertz", "1000000", "mhz"),
    ) for word in words.split()},
}  # fmt: skip
"""Units of sentences, which name more than those of programs: word → base unit, and how many of it one is."""
LONGEST_FIGURE = 24
TOLD = 2 / 3
"""Share of the words of a question that a sentence has to say, to say so or not so without a word for a state."""
LONGEST_LINE, LONGEST_COMMENT = 200, 400
QUOTES = "\"'"
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
_YEAR = lazy_pattern(r"(?:1\d|20)\d\d")
_NUMBERED = lazy_pattern(r"([a-z]+)_?(\d+)(?![a-z])")
_DOCSTRING = lazy_pattern(DOCSTRING)
_EXAMPLE = lazy_pattern(r"\b(?:examples?|for instance|e\.g\.)", re.IGNORECASE)
_COMMENT_ABOVE = lazy_pattern(r"(?:^[ \t]*(?:#(?!!)|//)[^\n]*\n){1,4}\Z", re.MULTILINE)
_MARKS = lazy_pattern(r"[#/\s]+")
_SECTION = lazy_pattern(r"^[ \t]*\[+([^\]\n]+)\]|^([ \t]*)([\w.-]+):[ \t]*$", re.MULTILINE)
_SAYS_KIND = frozenset("max min maximum minimum limit size default per every in of at".split())  # noqa: SIM905
"""Words of a setting's name that say what kind of value it is."""
_CURRENCIES = frozenset("eur usd nok sek dkk chf gbp euro euros dollar dollars pound pounds kroner".split())  # noqa: SIM905
_PER = lazy_pattern(r"_per_(second|minute|hour|day)$", re.IGNORECASE)
_SWITCHED_BY = {"on": True, "true": True, "yes": True, "enabled": True,
                "off": False, "false": False, "no": False, "disabled": False}  # fmt: skip
"""Value of a setting → whether what it sets is so."""
_IF = "if"
"""Part of the condition of what is itself supposed: nobody else says that."""


@dataclass(frozen=True, slots=True)
class Assertion:
    """A value that one sentence states.

    Attributes:
        key: the unit of a quantity or the kind of a date. Only assertions with equal keys are compared.
        values: the values in canonical form. Two assertions differ if they have no value in common.
        about: the stems of the other content words.
        beside: the stems next to a number: of the things that are counted, or of the thing that has the number.
        condition: the stems of the words after ``if`` and ``when``.
        subject: stem in ``about`` → the word as it is written, in the order of the sentence.
        shown: the value as it is written.
        span: the range of the sentence in the text.
    """

    kind: Kind
    key: str
    values: frozenset[str]
    about: frozenset[str]
    beside: frozenset[str]
    condition: frozenset[str]
    subject: Mapping[str, str]
    shown: str
    span: Span


class Found(NamedTuple):
    """A value and its place."""

    kind: Kind
    key: str
    values: frozenset[str]
    beside: frozenset[str]
    at: int
    end: int


@dataclass(frozen=True, slots=True)
class Context:
    """What a sentence is about.

    Attributes:
        said: the stems of all its words.
        topic: the stems of its heading. If the sentence begins with a pronoun, those of the sentence before are added.
        subject: the stems before its auxiliary verb; only its first stem if it has no auxiliary verb.
        scopes: the stems of each phrase that says for whom or where the sentence holds.
        before: pairs of a stem and the stem directly before it.
        years: the years in which the sentence holds, from words such as ``in 2024``.
        names: the stems of a setting's name; empty for a sentence.
        telling: those of ``names`` that say of what it is the setting, not what kind of value it has.
    """

    said: frozenset[str]
    topic: frozenset[str] = frozenset()
    subject: frozenset[str] = frozenset()
    scopes: frozenset[frozenset[str]] = frozenset()
    before: frozenset[tuple[str, str]] = frozenset()
    names: frozenset[str] = frozenset()
    telling: frozenset[str] = frozenset()
    years: frozenset[str] = frozenset()

    def numbers(self) -> Mapping[str, set[str]]:
        """Return a mapping from a word to the numbers directly after it: ``homework 3`` → ``{"homework": {"3"}}``."""
        numbers: dict[str, set[str]] = {}
        for form, before in self.before:
            if form[0].isdigit():
                numbers.setdefault(before, set()).add(form)
        return numbers


class Answering(NamedTuple):
    """An answer to a question: what a sentence asserts, and what the sentence is about."""

    assertion: Assertion
    context: Context


def read_answers(
    sentence: str, start: int, domain: str, before: str, asked: Asked, topic: frozenset[str]
) -> Iterator[Answering]:
    """Yield the answers that a sentence gives to a question.

    ``before`` is the sentence before it, and ``topic`` has the stems of its heading.
    """
    if not NO_PROSE.search(sentence):
        yield from Sentence(sentence, start, domain, before, asked, topic).answers()


class Sentence:
    """A sentence in which the answers to a question are searched.

    ``taken`` has the indices of words that belong to a value and therefore do not say what the sentence is about.
    """

    def __init__(self, text: str, start: int, domain: str, before: str, asked: Asked, topic: frozenset[str]) -> None:
        self.written, self.forms, self.sorts, self.clauses, self.dates = read_words(text)
        self.lower = [token.lower() for token in self.written]
        self.text, self.domain, self.before, self.asked, self.topic = text, domain, before, asked, topic
        stripped = text.strip()
        begin = start + text.index(stripped) if stripped else start
        self.span = Span(begin, begin + len(stripped))
        self.taken: set[int] = set()
        self.years = frozenset(
            year for before, year in pairwise(self.lower) if before in forms.IN_YEAR and _YEAR.fullmatch(year)
        )
        self.found: list[Found] = []
        self.said = stems(text) | {form for at, form in enumerate(self.forms) if self._tells(at)}
        if self.lower and self.lower[0] in forms.PRONOUNS:
            self.topic = topic | stems(before)

    def answers(self) -> Iterator[Answering]:
        """Yield the answers that the sentence gives to the question."""
        if not self.forms:
            return
        self._read_all()
        found = [each for each in self.found if each.kind in self.asked.kinds and self._is_measure(each)]
        readers = {
            "version": self._versions, "place": self._places, "who": self._people,
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

    def context(self, value: Sequence[int], values: frozenset[str]) -> Context:
        """Return what the sentence is about, apart from a value with word indices ``value`` and stems ``values``."""
        zone = self._zone
        clauses = {self.clauses[at] for at in (*value[:1], *zone[:1])}
        near = [at for at in range(len(self.forms)) if self.clauses[at] in clauses]
        own = set(value) | {at for at, form in enumerate(self.forms) if form in values}
        pairs = (at for at in range(1, len(self.forms)) if self._tells(at) and self._tells(at - 1))
        scopes = self._scopes(near, value)
        return Context(
            self.said, self.topic, self._subject(zone) - values - {self.forms[at] for at in value}, scopes,
            frozenset((self.forms[at], self.forms[at - 1]) for at in pairs if own.isdisjoint((at, at - 1))),
            years=self.years - {self.lower[at] for at in value},
        )  # fmt: skip

    def _read_all(self) -> None:
        """Read the numbers, dates and rates of the sentence."""
        for at, token in enumerate(self.lower):
            if at in self.dates:
                self._read_date(at)
            elif self.sorts[at] == VALUE:
                if at not in self.taken:
                    self._read_number(at, self.forms[at])
            elif token in forms.EVERY:
                self._add("quantity", "s", {_number(UNITS[forms.EVERY[token]][1])}, at, at + 1)
            elif token in {"every", "each"} and (period := self._period(at + 1)):
                self._add("quantity", "s", {_number(UNITS[period][1])}, at, at + 2)
            elif (
                token in forms.ONE
                and at not in self.taken
                and not forms.WHOLE_UNITS.isdisjoint(self.lower[at + 1 : at + 2])
            ):
                self._read_number(at, "1")

    def _is_sure(self, at: int) -> bool:
        """Tell whether nothing makes what is said at a place a guess. In a later clause a reason is none: *I think*."""
        for place, token in enumerate(self.lower):
            is_reason = token in forms.WISHES or (
                token in {"think", "thinks"} and self.clauses[place + 1 : place + 2] == [self.clauses[place]]
            )
            if token in forms.UNSURE and not (is_reason and self.clauses[place] > self.clauses[at]):
                return False
        return True

    def _lasts(self, found: Found) -> bool:
        """Tell whether a value holds for longer than *today*, *this week* or *last year*."""
        for at, (once, following) in enumerate(pairwise((*self.lower, ""))):
            is_day = at + 1 in self.dates and not is_clock(self.dates[at + 1])
            is_once = once in forms.THIS_ONCE and (is_day or following in UNITS)
            lasts = found.kind == "presence" if once == "last" else found.key == "date" and following in forms.LONG
            is_fleeting = (once in forms.FLEETING or is_once) and not lasts
            is_fleeting |= following == "only" and at != found.at and (at in self.dates or once in UNITS)
            before = self.lower[at - 1 : at]  # the next day; from this week on
            is_begun = before == ["the"] or not forms.BEGINS.isdisjoint(before)
            words = [each for each in range(len(self.lower)) if self.clauses[each] == self.clauses[at]]
            is_apart = found.at not in words and any(self._tells(each) for each in words if each not in (at, at + 1))
            if is_fleeting and not is_begun and not is_apart:
                return False
        return True

    def _assertion(self, alike: Sequence[Found], about: Mapping[str, tuple[int, str]]) -> Assertion:
        first = alike[0]
        at, own = first.at, {self.forms[each] for each in range(first.at, first.end)}
        subject = {
            form: written
            for form, (place, written) in about.items()
            if form not in own and self.clauses[place] <= self.clauses[at]
        }
        told = frozenset(subject)
        begun = (each for each in self._conditions() if self.clauses[each.start] <= self.clauses[at])
        supposed = {place for each in begun for place in each}
        condition = {form for form, (place, _) in about.items() if place in supposed}
        condition = condition - forms.SEEKS | ({_IF} if at in supposed else set())
        return Assertion(
            first.kind, first.key, frozenset().union(*(each.values for each in alike)), told, first.beside,
            frozenset(condition), MappingProxyType(subject), self._shown(alike), self.span,
        )  # fmt: skip

    def _shown(self, alike: Sequence[Found]) -> str:
        """Return a value as it is written, with all words of a name."""
        begin, end = alike[0].at, alike[0].end
        for each in alike[1:]:
            end = each.end if each.at == end else end
        return " ".join(self.written[begin:end])

    def _conditions(self) -> Iterator[range]:
        """Yield the indices of the words of each condition, from ``if`` or ``when`` to the end of the condition."""
        for place, token in enumerate(self.lower):
            if token in forms.CONDITIONS:
                end = (each for each in range(place, len(self.lower)) if self.lower[each] in {",", ";", ":", "then"})
                yield range(place, next(end, len(self.lower)))

    def _about(self) -> dict[str, tuple[int, str]]:
        """Return a mapping from each stem of the subject to the index of its first word and this word as written."""
        about: dict[str, tuple[int, str]] = {}
        for at, form in enumerate(self.forms):
            is_state = self.lower[at] in forms.THERE
            if at not in self.taken and not is_state and self.sorts[at] in {CONTENT, NAME} and self._tells(at):
                about.setdefault(form, (at, self.written[at]))
        return about

    def _is_now(self, found: Found) -> bool:
        """Tell whether the clause of a value is about the present, not about the past, the future or a quotation."""
        at = found.at
        if not self._is_sure(at) or not self._lasts(found):
            return False
        modals = (
            modal
            for modal, clause in zip(self.written, self.clauses, strict=True)
            if modal != "May" and modal.lower() in forms.MODALS and clause <= self.clauses[at]  # May is a month
        )
        is_doubt = found.kind == "presence" and ("may", "not") in pairwise(self.lower) and self.asked.how != "may"
        may = self.asked.permits or found.key == "who may" or (found.key == ASKED and not is_doubt)
        if any(modal != "may" or not may for modal in modals):
            return False
        said = next((place for place, token in enumerate(self.lower[:at]) if token in forms.REPORTS), None)
        if said is not None and forms.BUT.isdisjoint(self.lower[said:at]):
            return False
        plans = found.kind in STANDING or (self.domain == "conversations" and found.kind != "date")
        if plans and not forms.FUTURE.isdisjoint(self.lower[:at]):
            return False
        clause = [token for token, number in zip(self.lower, self.clauses, strict=True) if number == self.clauses[at]]
        used = any(
            (token, following) == ("used", "to") and before not in forms.COPULA
            for before, token, following in zip(("", *clause), clause, clause[1:], strict=False)
        )
        was = max((place for place, token in enumerate(clause) if token in forms.PAST), default=-1)
        if used or "had" in clause or (was >= 0 and not {"until", "during"}.isdisjoint(clause)):
            return False
        ended = not forms.PAST_ENDS.isdisjoint((clause[0], clause[-1]))
        told = self.domain == "research" and not self.dates
        is_past = not told and (ended or (was >= 0 and forms.COPULA.isdisjoint(clause[was:])))
        return not is_past or (not forms.EVENTS.isdisjoint(clause) and forms.BACK.isdisjoint(self.lower))

    def _tells(self, at: int) -> bool:
        return self.sorts[at] not in {FUNCTION, TURN} and self.lower[at] not in forms.FILLERS

    def _is_name(self, at: int) -> bool:
        return self.sorts[at] == NAME or self.written[at][0].isupper()

    def _add(self, kind: Kind, key: str, values: Iterable[str], at: int, end: int, beside: Iterable[str] = ()) -> None:
        self.found.append(Found(kind, key, frozenset(values), frozenset(beside), at, end))
        self.taken.update(range(at, end))

    def _is_measure(self, found: Found) -> bool:
        """Tell whether a quantity suits the question: *how often* needs a rate, *how long* and *when* a duration."""
        every = self.lower[max(0, found.at - 2) : found.at + 1]
        is_rate = "/" in found.key or every[-1] in forms.EVERY or "every" in every
        is_rate |= found.end > found.at + 2 and self.lower[found.end - 2] in forms.PER
        if found.kind != "quantity" or not self.asked.how.startswith(("how", "when")):
            return True
        is_amount = found.key.partition("/")[0] not in {"count", "percent", "s" * is_rate}
        if is_amount and self.asked.how.startswith("how many ") and self.asked.how.split()[-1] not in SENTENCE_UNITS:
            return False  # how many falcons: not 35 km/h
        if found.key == "count" and self.asked.how.startswith("how many ") and not (is_rate or self.asked.is_shared):
            return word(self.asked.how.rpartition(" ")[2])[0] in found.beside
        is_duration = found.key.startswith("s") and not is_rate
        return (
            is_duration
            if re.search("long|when", self.asked.how)
            else not is_duration or bool(_OF_TIME.search(self.asked.how))
        )

    def _period(self, at: int) -> str:
        """Return ``week`` if a weekday is at a place, ``day`` if a time of day is, and an empty text otherwise."""
        is_weekday = any(part.startswith("weekday") for part in self.dates.get(at, ()))
        is_day = not forms.TIMES_OF_DAY.isdisjoint(self.lower[at : at + 1])
        return "week" if is_weekday else "day" if is_day else ""

    def _read_date(self, at: int) -> None:
        """Add the date at a place if it is the only one in the clause that the question asks about.

        If that clause has no date, it must be the only date of the sentence.
        """
        of_day = is_clock(self.dates[at])
        alike = {each for each, parts in self.dates.items() if is_clock(parts) == of_day}
        since = self.lower[at - 1] if at and self.lower[at - 1] in forms.SINCE else ""
        if (alike.intersection(self._zone) or alike) == {at} and (not since or (of_day and since == "from")):
            self._add("date", f"clock {since}".strip() if of_day else "date", self.dates[at], at, at + 1)
        self.taken.add(at)

    def _read_number(self, at: int, figure: str) -> None:  # noqa: C901 (one case after the other)
        """Add the quantity, the date or the version that a number states."""
        following = [*self.lower[at + 1 : at + 4], "", ""]
        before = self.lower[max(0, at - 3) : at]
        if not forms.IN_YEAR.isdisjoint(before[-1:]) and _YEAR.fullmatch(figure):
            if self.asked.how.startswith(("when", "what year")) and before[-1] == "in":
                self._add("date", "date", {f"year {figure}"}, at, at + 1)
            return
        if before[-1:] == ["between"] and "and" in following:  # a range is no single value
            self.taken.update(range(at, at + following.index("and") + 3))
            return
        amount = None if self.lower[at][0] == "v" else _amount_of(figure)
        if amount is None:
            return
        end = at + 1
        if not forms.LEAST.isdisjoint(before):  # at least three may be four
            self.taken.update(range(at, end + 1))
            return
        measure = SENTENCE_UNITS.get(following[0]) if len(following[0]) > 1 or following[0] in {"s", "h", "%"} else None
        if measure is not None:
            halves = 2 if "half" in self.lower[max(0, at - 2) : at + 1] else 1
            if self.lower[end + 1 : end + 4] == ["and", "a", "half"]:
                amount, end = amount + Fraction(1, 2), end + 3
            key, period, last = self._rate(end + 1)
            self._add("quantity", measure[0] + key, {_number(amount * measure[1] / halves / period)}, at, last)
            return
        per, period, last = self._rate(end + (following[0] in {"time", "times"}))
        if per and amount and (last > end + 2 or self.lower[at] in {"once", "twice"}):  # three times a day
            self._add("quantity", "s", {_number(period / amount)}, at, last)
            return
        counted, previous = self._counted(end), self._previous(at)
        begun = next((each for each in range(at, 0, -1) if self.sorts[each - 1] != CONTENT), 0)
        led = self.lower[begun - 1] if begun else "the"
        is_subject = led in forms.DETERMINERS and following[0] in forms.AUXILIARIES | forms.ROLE_VERBS
        values = self.dates.keys() | {each for each, sort in enumerate(self.sorts) if sort == VALUE}
        is_other = any(self.clauses[each] == self.clauses[at] for each in values - {at})
        is_named = 0 < at - begun < 3 and (is_subject or led in forms.PLACES)
        if is_named and is_other and not counted and len(figure) < 3:
            return  # shed two
        if at and self._is_name(at - 1) and (at > 1 or not counted or self.written[at].istitle()):
            if not forms.NEEDS.isdisjoint(self.lower) and (not counted or "." in figure):
                self._add("version", self.forms[at - 1], {figure}, at, end, {self.forms[at - 1]})
        elif counted:
            behind = self.lower[end + len(counted) : end + len(counted) + 2]
            is_version = "." in figure and at > 0 and self.sorts[at - 1] in {CONTENT, NAME}  # istio 1.24 ends
            is_version &= following[0] not in _CURRENCIES
            if is_version or (behind[:1] == ["of"] and not forms.DETERMINERS.isdisjoint(behind)):  # four of the team
                return
            key, period, last = self._rate(end + len(counted))
            unit, amount = ("count", amount / period) if key else _plain(amount)
            self._add("quantity", unit + key, {_number(amount)}, at, end, counted)
            if key:
                self.taken.update(range(last - 2, last))
        elif previous and forms.HELPERS.isdisjoint(self.lower[end : end + 1]):
            unit, amount = _plain(amount)
            self._add("quantity", unit, {_number(amount)}, at, end, previous)

    def _counted(self, at: int) -> list[str]:
        """Return the stems of the words after a number that say what it counts: ``10 concurrent parts``."""
        counted = []
        for place in range(at, min(at + 3, len(self.forms))):
            if self.sorts[place] == VALUE or not self._tells(place) or self.lower[place] in forms.ROLE_VERBS:
                break
            counted.append(self.forms[place])
        return counted

    def _previous(self, at: int) -> list[str]:
        """Return the stems of the nearest words before a number: ``a batch size of 8``, ``listens on 8000``."""
        near = (place for place in range(max(0, at - 5), at) if self.sorts[place] != VALUE and self._tells(place))
        return [self.forms[place] for place in near][-2:]

    def _rate(self, at: int) -> tuple[str, Fraction, int]:
        """Return ``/s``, the seconds of the unit, and the place after a rate such as ``per minute`` at ``at``.

        If no rate is there, return an empty text, 1 and ``at``.
        """
        if at + 1 < len(self.lower) and self.lower[at] in forms.PER:
            base, factor = UNITS.get(self.lower[at + 1], ("", Fraction(1)))
            if base == "s":
                return "/s", factor, at + 2
        return "", Fraction(1), at

    @cached_property
    def _zone(self) -> Sequence[int]:
        """The indices of the words in the clause with the most words of the question, and after its colon."""
        asked = Counter(self.clauses[at] for at, form in enumerate(self.forms) if form in self.asked.about)
        best = max(sorted({*self.clauses}), key=lambda clause: (asked[clause], -clause), default=0)
        return [at for at in range(len(self.forms)) if self.clauses[at] == best]

    def _subject(self, places: Sequence[int]) -> frozenset[str]:
        verb = next((at for at in places if self.lower[at] in forms.AUXILIARIES and self.written[at] != "May"), None)
        begun = [at for at in places if self.lower[at] not in forms.DETERMINERS | forms.BREAKS]
        before = begun[:1] if verb is None else [at for at in places if at < verb]
        return frozenset(self.forms[at] for at in before if self._tells(at) and self.sorts[at] != VALUE)

    def _scopes(self, places: Sequence[int], value: Sequence[int]) -> frozenset[frozenset[str]]:
        """Return the stems of each phrase that says where or for whom the sentence holds: *of old machines*."""
        scopes = set()
        for at in places:
            _, place, end = self._thing(at + 1) if self.lower[at] in forms.NARROWS else (None, at, at)
            told = list(takewhile(lambda each: self.forms[each] not in self.asked.about, range(place, end)))
            is_other = any(self.lower[each] in UNITS or "/" in self.lower[each] or each in value for each in told)
            is_other |= self.sorts[end : end + 1] == [VALUE]  # in release 12
            is_other |= forms.OWNS.issuperset(self.lower[place:end])  # in the hands of
            is_other |= at > 0 and self.lower[at] == "for" and self.lower[at - 1] in forms.THERE  # closed for repairs
            if told and not is_other and self.sorts[place] != VALUE:
                scopes.add(frozenset(self.forms[each] for each in told))
        return frozenset(scopes)

    def _versions(self) -> Iterator[Found]:
        for at, token in enumerate(self.lower):
            figure = (
                _VERSION.match(token if token[0] == "v" else self.forms[at])
                if self.sorts[at] == VALUE and at not in self.dates
                else None
            )
            is_named = at > 0 and (self.lower[at - 1] in {"version", "release"} or self._is_name(at - 1))
            if figure and (is_named or "." in figure[1]):
                yield Found("version", ASKED, frozenset((figure[1],)), frozenset(), at, at + 1)

    def _places(self) -> Iterator[Found]:
        """Yield the paths; if there are none, the first thing after *in* or *at* that follows the question's words."""
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
            if held - self.asked.about
            and UNITS.keys().isdisjoint(self.lower[place:end])
            and forms.OWNS.isdisjoint(self.lower[place:end])  # in charge of it
            and not any(each in self.dates or self.sorts[each] == VALUE for each in range(place, end))
        ]  # fmt: skip
        last = max((at for at in zone if self.forms[at] in self.asked.about), default=-1)
        yield from ([each for each in found if each.at > last] or found[-1:])[:1]

    def _people(self) -> Iterator[Found]:
        """Yield the names in the clause that the question asks about; if it has no names, those in other clauses."""
        zone = self._zone
        yield from list(self._named(zone)) or self._named([at for at in range(len(self.forms)) if at not in zone])

    def _named(self, zone: Sequence[int]) -> Iterator[Found]:
        first = zone[0] + 2 if zone and self.lower[zone[0]] in forms.NARROWS else -1  # at Globex it is theirs
        if self.asked.owns and forms.OWNS.isdisjoint(self.lower):
            return
        for at in zone:
            acts = (
                not self.asked.is_shared
                and (  # Agnes tunes it, Agnes takes care of it
                    not self.asked.about.isdisjoint(self.forms[1:2]) or not forms.OWNS.isdisjoint(self.lower[1:2])
                )
            )
            is_led = len(self.forms) > 1 and (self._is_name(1) or self.lower[1] in {"is", "has"})
            is_begun = at == 0 and not (acts or is_led)
            is_name = self.written[at][0].isupper() and len(self.written[at]) > 1 and self._tells(at)
            is_name &= self.sorts[at] != VALUE and not is_begun
            is_name &= at not in self.dates and self.lower[at] not in MONTHS  # as of January
            if is_name and at > first and self.lower[at] not in forms.TEAMS | forms.GLUE | self.asked.about:
                yield Found("owner", ASKED, frozenset((self.forms[at],)), frozenset(), at, at + 1)

    def _names(self) -> Iterator[Found]:
        for at in self._zone:
            is_name = at > 0 and self._is_name(at) and len(self.written[at]) > 1 and self._tells(at)
            is_name &= self.sorts[at] != VALUE
            if is_name and self.forms[at] not in self.asked.about:
                yield Found("role", ASKED, frozenset((self.forms[at],)), frozenset(), at, at + 1)

    def _who_may(self) -> Iterator[Found]:
        zone = self._zone
        asked = (at for at in zone if self.forms[at] in self.asked.about and not self.asked.is_shared)
        verb = next((at for at in zone if self.lower[at] in {"may", "can", "must"}), next(asked, None))
        if verb is None:
            return
        before = [at for at in zone if at < verb and self.clauses[at] == self.clauses[verb]]
        by = next((at for at in zone if at > verb and self.lower[at] == "by"), None)
        if by and self.lower[verb + 1] == "be":  # may be opened only by the cashier
            before = [at for at in zone if at > by or self.lower[at] == "only"]
        words = {self.lower[at] for at in before}
        told = [at for at in before if self._tells(at)]
        who = sorted(self.forms[at] for at in told)
        is_denied = not forms.NOT.isdisjoint(self.lower[at] for at in zone)
        is_all = not words.isdisjoint(forms.EVERYBODY)
        sign = "not" if is_denied else "only" if "only" in words else "all" if is_all else "some"
        if who or sign == "all":
            values = frozenset((f"{sign} {' '.join(who)}",))
            yield Found("role", "who may", values, frozenset(), *_range_of(told or zone))

    def _yes_or_no(self) -> Iterator[Found]:
        """Yield *yes* or *no*, by the states and negations in the clauses that name the subject of the question."""
        clauses = {self.clauses[at] for at, form in enumerate(self.forms) if form in self.asked.about}
        supposed = {at for condition in self._conditions() for at in condition}
        zone = [at for at in range(len(self.forms)) if self.clauses[at] in clauses and at not in supposed]
        states = [at for at in zone if self.lower[at] in forms.THERE]
        told = len(self.asked.about & self.said)
        is_told = self.asked.is_shared or (told > 1 and told >= TOLD * len(self.asked.about))
        if not zone or not (states or is_told):
            return
        no = {at for at in states
              if forms.THERE[self.lower[at]] in {"no", "done"} and self.forms[at] not in self.asked.about}  # fmt: skip
        signs = [at for at in zone if self.lower[at] in forms.NOT]
        denied = {clause for clause in clauses
                  if (sum(self.clauses[at] == clause for at in signs)
                      + any(self.clauses[at] == clause for at in no)) % 2}  # fmt: skip
        named = [at for at in zone if self.forms[at] in self.asked.about]
        at = (*sorted(no), *signs, *states, *named[-1:], *zone)[0]
        said = "no" if denied else "yes"
        yield Found("presence", ASKED, frozenset((said,)), frozenset(), at, at + 1)

    def _thing(self, at: int) -> tuple[frozenset[str], int, int]:
        """Return the stems of the name at a place, and its start and end; no stems if no name is there."""
        while at < len(self.lower) and self.lower[at] in forms.DETERMINERS:
            at += 1
        end = at
        while end < min(at + 5, len(self.lower)) and (
            self._tells(end) and (self.sorts[end] != VALUE or (end > at and self._is_name(end - 1)))
        ):
            end += 1
        held = frozenset(self.forms[each] for each in range(at, end) if self.sorts[each] != FUNCTION)
        return held, at, end if held else at


def _range_of(places: Sequence[int]) -> tuple[int, int]:
    return places[0], places[-1] + 1


def _plain_path(path: str) -> str:
    return path.strip("./~").lower()


class Setting(NamedTuple):
    """A line of a program or a configuration file that gives a name a value.

    Attributes:
        start: the offset of the line in the text.
        name: the name as it is written.
        section: the section or the parent key in a configuration file; empty if there is none.
        above: the comment directly above the line.
        value: the value as it is written.
    """

    start: int
    line: str
    name: str
    value: str
    section: str
    above: str

    @property
    def words(self) -> tuple[str, ...]:
        """The words of its section and its name, in order."""
        return words_of(f"{self.section} {self.name}")


def _read_settings_of(text: str, *, with_words: bool) -> tuple[Setting, ...]:
    prose = [found.span() for found in _DOCSTRING.finditer(text)]
    settings = []
    for found in SETTING.finditer(text):
        begin = text.rfind("\n", 0, found.start()) + 1
        line = text[begin : begin + LONGEST_LINE].partition("\n")[0]
        comment = _COMMENT_ABOVE.search(text, max(0, begin - LONGEST_COMMENT), begin)
        above = " ".join(_MARKS.sub(" ", comment[0]).split()) if comment else ""
        is_said = any(first < found.start() < last for first, last in prose) or _EXAMPLE.search(f"{above} {line}")
        if not is_said and (with_words or not _is_word(found["value"])):
            settings.append(Setting(begin, line, found["name"], found["value"], _section_of(text, begin), above))
    return tuple(settings)


_remembered_settings = lru_cache(REMEMBERED)(_read_settings_of)


def settings_of(text: str, *, with_words: bool) -> tuple[Setting, ...]:
    """Return the settings of a passage of code or configuration. Docstrings and examples have no settings.

    The settings of short passages are cached.

    Args:
        with_words: whether a value may be a word without quotation marks, as in configuration files.
    """
    read = _remembered_settings if len(text) <= REMEMBERED_CHARACTERS else _read_settings_of
    return read(text, with_words=with_words)


def _is_word(value: str) -> bool:
    """Tell whether the value of a setting is a word without quotation marks, which is a name in a program."""
    return value[0].isalpha() and value.lower() not in {"true", "false"}


def _section_of(text: str, at: int) -> str:
    indent = len(text[at:]) - len(text[at:].lstrip(" \t"))
    found = [each for each in _SECTION.finditer(text, 0, at) if each[1] or len(each[2]) < indent]
    return (found[-1][1] or found[-1][3]).replace("_", " ") if found else ""


def read_settings(settings: Iterable[Setting], asked: Asked, topic: frozenset[str]) -> Iterator[Answering]:
    """Yield the values of settings whose line, section, comment or topic names what was asked about."""
    for setting in settings:
        named = content(" ".join(each for each in setting.words if each not in _CURRENCIES))
        said = frozenset((*named, *stems(" ".join(words_of(f"{setting.line} {setting.above}")))))
        if asked.about.isdisjoint(said | topic):
            continue
        before = {
            (one, left)
            for part in (setting.section, setting.name)
            for left, one in pairwise(word(each)[0] for each in words_of(part) if each not in _SAYS_KIND)
        }
        before |= {(number, noun) for noun, number in _NUMBERED.findall(f"{setting.section} {setting.name}".lower())}
        indent = len(setting.line) - len(setting.line.lstrip())
        span = Span(setting.start + indent, setting.start + len(setting.line.rstrip()))
        about, none = frozenset(named), frozenset[str]()
        own = _without_unit([each for each in words_of(setting.name) if each not in _CURRENCIES])
        names = stems(" ".join(own))
        telling = [each for each in own if each not in _SAYS_KIND | UNITS.keys()]
        while telling and is_generic(telling[-1]):  # of SHIFT_LENGTH, SHIFT
            telling.pop()
        for kind, key, values in _held(setting, asked):
            unit = name.unit if kind == "quantity" and (name := read_name(setting.name)) else ""
            shown = f"{setting.value.strip(QUOTES)} {unit or ''}".strip()
            assertion = Assertion(kind, key, values, about, none, none, named, shown, span)
            context = Context(said, topic, before=frozenset(before), names=names, telling=stems(" ".join(telling)))
            yield Answering(assertion, context)


def _without_unit(words: Sequence[str]) -> Sequence[str]:
    """Return the words of a setting's name without a unit of sentences at its end: ``SPEED_LIMIT_KMH``."""
    units = SENTENCE_UNITS.keys() - UNITS.keys()
    length = 1 if not units.isdisjoint(words[-1:]) else 2 if "/".join(words[-2:]) in units else 0
    return words[:-length] if 0 < length < len(words) else words


def _held(setting: Setting, asked: Asked) -> Iterator[tuple[Kind, str, frozenset[str]]]:
    """Yield each answer that a setting may give to the question, as kind, key and values of an ``Assertion``."""
    text, name = setting.value.strip(QUOTES), read_name(setting.name)
    version = _VERSION.fullmatch(text)
    is_named = bool(_RELEASED.search(setting.name)) or text.count(".") > 1 or text[:1] in "~^"
    value = read_value(setting.value) if "quantity" in asked.kinds else None
    is_on = _SWITCHED_BY.get(text.lower())
    if asked.kinds == {"answer"} and is_on is not None:  # else any line of code would deny what a page says
        yield "presence", ASKED, frozenset(("yes" if is_on else "no",))
    elif "version" in asked.kinds and version and (is_named or (len(asked.kinds) == 1 and "." in text)):
        yield "version", ASKED, frozenset((version[1],))
    elif "place" in asked.kinds and _PATH.fullmatch(text):
        yield "role", "path", frozenset((_plain_path(text),))
    elif value is not None and name is not None and value.kind == "number":
        per = _PER.search(setting.name)
        words = words_of(setting.name)
        last = next(filter(SENTENCE_UNITS.get, ("/".join(words[-2:]), words[-1])), "")
        is_measured = value.unit is None and not per and last and (name.unit is None or "/" in last)
        if is_measured:
            base, factor = SENTENCE_UNITS[last]
            yield "quantity", base, frozenset((_number(Fraction(value.text) * factor),))
        if not is_measured or last == "min":  # minutes, or a minimum
            key, held = measure_of(measured_in(value, None if per else name.unit), per and per[1])
            yield "quantity", key, frozenset((held,))


def measure_of(value: Value, per: str | None = None) -> tuple[str, str]:
    """Return the unit of a number in a program, and its amount in decimals.

    Args:
        per: the unit of time, such as ``minute``, if the number is a rate; ``None`` otherwise.
    """
    rate = UNITS[per.lower()][1] if per else None
    amount = Fraction(value.text) / (rate or 1)
    unit, amount = (value.unit or "count", amount) if value.unit or rate else _plain(amount)
    return unit + ("/s" if rate else ""), _number(amount)


def _amount_of(figure: str) -> Fraction | None:
    try:
        return Fraction(figure.replace(",", "")) if len(figure) <= LONGEST_FIGURE else None
    except ValueError:  # 0.7.0
        return None


def _plain(amount: Fraction) -> tuple[str, Fraction]:
    """Return the unit and amount of a number without a unit. A number below 1 is a share: 0.1 is ten per cent."""
    return ("percent", amount * 100) if 0 < amount < 1 else ("count", amount)


def _number(value: Fraction) -> str:
    return f"{float(value):.6g}"
