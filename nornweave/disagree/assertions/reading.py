"""Read the assertions of a sentence: a quantity, a date, a status, a version, an owner, a role, an existence.

A sentence is read word by word, by the tables of ``forms``. An *assertion* has a kind, a key (of one kind only those of
one key are compared), values, and a subject (``about``): the stems of the sentence's other content words. If a sentence
only asks, proposes, reports, supposes or remembers something, that is no assertion.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from http import HTTPStatus
from itertools import pairwise, zip_longest
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.text.words import CONTENT, FUNCTION, NAME, TURN, VALUE, find_words, word
from nornweave.core.types import Span
from nornweave.disagree.assertions import forms
from nornweave.disagree.facts.documentation.qualifiers import sentences
from nornweave.disagree.facts.expressions import read_value
from nornweave.disagree.facts.names import read_name
from nornweave.disagree.facts.values import UNITS, Value, measured_in

Kind: TypeAlias = Literal["quantity", "date", "status", "version", "owner", "presence", "role", "denial"]
ASKED = "asked"
"""Key of what a question asks for and no table knows."""
STANDING = frozenset(("owner", "role", "presence", "denial"))
"""Kinds of which what will be says nothing of what is."""

LONGEST = 300
"""Characters of a sentence that is read: longer ones are tables, lists or generated."""
LONGEST_FIGURE = 24
REMEMBERED, REMEMBERED_CHARACTERS = 2_048, 4_000
"""Passages that were read, and characters of each, at most: some 10 MB."""
_I = re.IGNORECASE
# Questions, code, tables (of a PDF's text, whose cells are numbers side by side), directives, advice.
NO_PROSE = lazy_pattern(
    r"\?|[|{}=<]|>(?!\s\W*[A-Z])|^\s*>|;$|```|://|\\|::|^\s*\.\.\s|\d\s\d(?s:.*)\d\s\d"
    r"|^\W*(?:check|verify|ensure|please|do not|don['’]t|never|make sure|better|set your)\b(?!-)", _I,
)  # fmt: skip
# What tells quickly that a sentence holds nothing that is compared.
HINT = lazy_pattern(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|[a-z]+teen|[a-z]+ty|hundred|once|twice"
    r"|half|can|may|must|took|taken?|ask|ping"
    r"|(?:day|week|month|year|hour|minute|second)s?|not?|never|cannot|off|on|(?:is|are) (?:[A-Z]|by|in|at)|default"
    rf"|{'|'.join(sorted({*forms.ROLES, *forms.THERE, *forms.OWNS, *forms.OWNERS, *forms.EVERY, *forms.PHRASES}))})\b"
    r"|n['’]t\b",
    _I,
)
_MONTH = (
    "Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:t(?:ember)?)?|Oct(?:ober)?"
    "|Nov(?:ember)?|Dec(?:ember)?"
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAY = "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
_TOKEN = lazy_pattern(
    rf"(?P<date>(?:(?P<weekday2>{_WEEKDAY}),? (?:the )?)?(?:"
    r"(?P<year>(?:19|20)\d\d)-(?P<month>[01]\d)-(?P<day>[0-3]\d)(?!\d)"
    rf"|(?P<month2>{_MONTH})\.? (?P<day2>[0-3]?\d)(?:st|nd|rd|th)?\b(?:,? (?P<year2>(?:19|20)\d\d)\b)?"
    rf"|(?P<day3>[0-3]?\d)(?:st|nd|rd|th)?(?: of)? (?P<month3>{_MONTH})\b(?:,? (?P<year3>(?:19|20)\d\d)\b)?)"
    rf"|(?P<weekday>{_WEEKDAY})\b"
    r"|(?<![\d:.])(?:(?P<hour>[01]?\d|2[0-3]):(?P<minute>[0-5]\d)(?![\d:])(?: ?(?P<half>[ap])\.?m\b\.?)?"
    r"|(?P<hour2>1[0-2]|[1-9]) ?(?P<half2>[ap])\.?m\b\.?))"
    r"|(?<![-\w])\d+(?:,\d{3})+|(?<![-\w])(?:-(?=\d))?v?\d+(?:\.(?:\d+|x\b))*(?:e-?\d{1,2}\b)?"
    r"|[^\W\d]\w*(?:-\w+){0,4}-\d+\b|[^\W\d]\w*(?:[./]\w+)*(?:['’][a-z]{1,2}\b)?|[%,;:()–—]"
)
_CONTRACTED = lazy_pattern(r"(\w)n['’]t\b")
_PHRASE = lazy_pattern(rf"\b(?:{'|'.join(map(re.escape, forms.PHRASES))})\b")
_SINGLE = lazy_pattern(r"(?<=\b[A-Za-z])-(?=[a-z]{3})")  # e-mail
_YEAR = lazy_pattern(r"(?:19|20)\d\d")
_NAMED = lazy_pattern(r"(?!v\d)[^\W\d][\w-]*\d")
_TICKED = lazy_pattern(r"`([^`\n]{1,60})`")
_WORD = lazy_pattern(r"\w+")
_PHRASES = MappingProxyType(
    {str(each.value): {part.lower() for part in re.findall(r"\w+", each.phrase)} for each in HTTPStatus}
)
# Stems of verbs that say the same of an answer, and of what happened on a day.
_VERBS: Mapping[str, frozenset[str]] = {
    "status": frozenset(word(each)[0] for each in forms.ANSWERS),
    "date": frozenset(word(each)[0] for each in forms.EVENTS),
    "quantity": frozenset(word(each)[0] for each in forms.MEASURES),
}
_IF = "if"
"""Part of the condition of what is itself supposed: nobody else says that."""
_SAYING = frozenset(("default", "defaults", "need", "needs", "require", "requires"))
_VERBAL = forms.GLUE | forms.ANSWERS | forms.EVENTS | forms.THERE.keys() | forms.OWNS | _SAYING
_PART = lazy_pattern(r"(?:[^;?]|[;?](?!\s)){8,}\??")
_COMMENT = lazy_pattern(
    r"(?:^[ \t]*(?:#(?!!)|//|/\*|\*(?!/))[^\n]*\n?)+|\"\"\"(?:[^\"]|\"(?!\"\")){1,4000}\"\"\"", re.MULTILINE
)
_CONSTANT = lazy_pattern(
    r"(?P<comment>(?:^[ \t]*(?:#(?!!)|//)[^\n]*\n){0,4})^[ \t]*(?P<line>(?:[a-z]+ ){0,4}(?:[\w.<>]+ )?"
    r"(?P<name>[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*?(?:_PER_(?P<per>SECOND|MINUTE|HOUR|DAY))?)"
    r"(?:[ \t]*:[ \t]*[\w.]+)?[ \t]*=[ \t]*(?P<value>-?\d[\d_.]*|[Tt]rue|[Ff]alse))[ \t]*(?:;|[ \t](?:#|//)[^\n]*|$)",
    re.MULTILINE,
)
_SAYS_KIND = frozenset(word(each)[0] for each in "max min limit limits size enabled disabled default per is".split())  # noqa: SIM905
"""Words of a constant's name that say what kind of value it is."""
_MARK = lazy_pattern(r"^[ \t]*(?:#+|//+|/?\*+/?)|\"\"\"|\*/", re.MULTILINE)
# Who speaks in a thread, and code.
_MARKED = lazy_pattern(
    r"^[ \t]*@?\w[\w.-]{0,24}(?: \w[\w.-]{0,24})?:(?=[ \t])"
    r"|^(?:```|~~~)[^\n]*\n(?:[^\n]*\n){0,200}?(?:```|~~~)",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Assertion:
    """The content of one sentence: a value of something.

    Attributes:
        key: only equal keys are compared: the unit of a quantity, the product of a version, the kind of verb of a role.
        values: in canonical form; two assertions differ if they share none.
        about: stems of the other content words; if the sentence says ``it``, or very little, also of the one before.
        head: the stems before the value in its clause; in ``X supports Y``, the stems of Y.
        doer: in ``X supports Y``, the stems of X; otherwise empty.
        names: the stems that name a single thing: identifiers, acronyms, words with a capital, versions.
        scope: the stems after ``for``, ``of``, ``on``: the group or the part of a thing for which it holds.
        pairs: pairs of neighbouring stems.
        beside: stems next to a number: of what is counted, or of what has the number.
        is_named: the value is a name.
        condition: the stems of the words after ``if`` and ``when``.
        subject: words of ``about`` in their order, for people.
        shown: the value as it is written.
        span: the range of the sentence in the text.
    """

    kind: Kind
    key: str
    values: frozenset[str]
    about: frozenset[str]
    head: frozenset[str]
    doer: frozenset[str]
    names: frozenset[str]
    scope: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    beside: frozenset[str]
    is_named: bool
    condition: frozenset[str]
    subject: Mapping[str, str]
    shown: str
    span: Span


def stems(text: str) -> frozenset[str]:
    """Return the stems of the content words of a text."""
    return frozenset(content(text))


def content(text: str) -> dict[str, str]:
    """Return the stems of the content words of a text, in order → the words as written."""
    read = ((word(written), written) for written in find_words(text))
    return {form: written for (form, sort), written in read if sort in {CONTENT, NAME}}


def read_text(text: str, domain: str) -> tuple[Assertion, ...]:
    """Return the assertions in a text, in order; of a program those in its comments and docstrings."""
    found = list(_constants(text)) if domain == "code" else []
    before = ""
    for start, sentence in stretches(text, code=domain == "code"):
        found += read(sentence, start, domain, before)
        before = sentence
    return tuple(found)


def _constants(text: str) -> Iterator[Assertion]:
    """Yield assertions from constants of a program, by their names and the comments above: ``MAX_HOLDS = 10``."""
    for found in _CONSTANT.finditer(text):
        name, value = read_name(found["name"]), read_value(found["value"])
        if name is None or value is None:
            continue
        told = content(_MARK.sub(" ", found["comment"] or "")) | content(name.name)
        value = measured_in(value, name.unit)
        kind: Kind
        if value.kind == "boolean":
            kind, key, held = "presence", "there", "yes" if value.text == "true" else "no"
        elif value.kind == "number":
            kind, (key, held) = "quantity", measure_of(value, found["per"])
        else:
            continue
        subject = {form: written for form, written in told.items() if form not in _SAYS_KIND}
        about = frozenset(subject)
        beside = about if key.startswith("count") else frozenset()
        yield Assertion(
            kind, key, frozenset((held,)), about, about, frozenset(), frozenset(), frozenset(), frozenset(), beside,
            False, frozenset(), MappingProxyType(subject), f"{found['value']} {name.unit or ''}".strip(),
            Span(found.start("line"), found.end("value")),
        )  # fmt: skip


def measure_of(value: Value, per: str | None = None) -> tuple[str, str]:
    """Return the unit of a number in a program, and its amount in decimals.

    Args:
        per: the unit of time if the number is a rate: ``minute``.
    """
    rate = UNITS[per.lower()][1] if per else None
    amount = Fraction(value.text) / (rate or 1)
    unit, amount = (value.unit or "count", amount) if value.unit or rate else _plain(amount)
    return unit + ("/s" if rate else ""), _number(amount)


_remembered = lru_cache(REMEMBERED)(read_text)


def remembered_text(text: str, domain: str) -> tuple[Assertion, ...]:
    """Return what ``read_text`` returns, cached because good passages are read again for other questions."""
    return (_remembered if len(text) <= REMEMBERED_CHARACTERS else read_text)(text, domain)


class SaidSentence(NamedTuple):
    """A sentence of a text, where it starts, and the stems of its content words."""

    start: int
    text: str
    stems: frozenset[str]


def _read_sentences(text: str, *, code: bool) -> tuple[SaidSentence, ...]:
    return tuple(SaidSentence(start, said, stems(said)) for start, said in stretches(text, code=code))


_remembered_sentences = lru_cache(REMEMBERED)(_read_sentences)


def remembered_sentences(text: str, *, code: bool) -> tuple[SaidSentence, ...]:
    """Return the sentences of ``stretches`` with their stems, cached as those of ``remembered_text`` are."""
    return (_remembered_sentences if len(text) <= REMEMBERED_CHARACTERS else _read_sentences)(text, code=code)


def stretches(text: str, *, code: bool) -> Iterator[tuple[int, str]]:
    """Yield the start and the text of each sentence; in a program only of those in comments and docstrings."""
    for start, prose in _comments(text) if code else ((0, _MARKED.sub(_blanked, text)),):
        for first, last in sentences(prose, 0, len(prose)):
            if last - first <= LONGEST:
                for found in _PART.finditer(prose, first, last):
                    yield start + found.start(), found[0]


def _comments(text: str) -> Iterator[tuple[int, str]]:
    for found in _COMMENT.finditer(text):
        yield found.start(), _MARK.sub(_blanked, found[0])


def _blanked(found: re.Match[str]) -> str:
    """Return a match replaced by blanks. A speaker's name becomes a newline and blanks, to begin a paragraph."""
    blank = re.sub(r"[^\n]", " ", found[0])
    return "\n" + blank[1:] if found[0].endswith(":") else blank


def read(sentence: str, start: int, domain: str = "", before: str = "") -> list[Assertion]:
    """Return the assertions of a sentence; empty if the sentence asks, proposes, supposes or is not prose.

    Args:
        domain: in papers the past tense counts as present; in threads the future tense is only a plan.
        before: the sentence before it.
    """
    if not HINT.search(sentence) or NO_PROSE.search(sentence):
        return []
    return list(Sentence(sentence, start, domain, before).assertions())


def read_plain(sentence: str, start: int, denied: str) -> Assertion | None:
    """Return the assertion of a sentence that affirms the verb ``denied``; ``None`` if it does not."""
    if NO_PROSE.search(sentence):
        return None
    return Sentence(sentence, start, "", "").affirmation(denied)


class Found(NamedTuple):
    """A value and its place."""

    kind: Kind
    key: str
    values: frozenset[str]
    beside: frozenset[str]
    at: int
    end: int
    is_object: bool = False
    verb: int | None = None


class _Words(NamedTuple):
    """The words of a sentence as they are written, their stems, sorts and clauses, and the dates by place.

    All sentences of the same text share one object, so nobody may change it.
    """

    written: list[str]
    forms: list[str]
    sorts: list[int]
    clauses: list[int]
    dates: dict[int, frozenset[str]]


@lru_cache(REMEMBERED)
def _remembered_words(text: str) -> _Words:
    plain = _CONTRACTED.sub(r"\1 not", text) if "n't" in text or "n’t" in text else text
    plain = _PHRASE.sub(lambda found: forms.PHRASES[found[0]], plain)
    plain = _SINGLE.sub("", plain)
    words = _Words([], [], [], [], {})
    clause = 0
    tokens = list(_TOKEN.finditer(plain))
    for found, behind in zip_longest(tokens, tokens[1:]):
        form, sort = word(found[0])
        if found.lastgroup == "date":
            words.dates[len(words.written)] = _moment(found)
            sort = FUNCTION
        elif found[0].lower() in forms.BREAKS and not (found[0] == "as" and behind and behind[0][0].isupper()):
            clause += 1
            sort = FUNCTION
        elif (sort == VALUE and _NAMED.match(found[0])) or found[0] in {"US", "IT"}:
            sort = NAME
        words.written.append(found[0])
        words.forms.append(form)
        words.sorts.append(sort)
        words.clauses.append(clause)
    return words


class Sentence:
    """A sentence as words. ``taken`` holds the places of a value's words, which are not part of the subject."""

    def __init__(self, text: str, start: int, domain: str, before: str) -> None:
        self.written, self.forms, self.sorts, self.clauses, self.dates = _remembered_words(text)
        self.lower = [token.lower() for token in self.written]
        self.domain, self.before = domain, before
        stripped = text.strip()
        begin = start + text.index(stripped) if stripped else start
        self.span = Span(begin, begin + len(stripped))
        self.taken: set[int] = set()
        self.names: set[str] = set()
        self.ticked = {each for part in _TICKED.findall(text) for each in _WORD.findall(part)} if "`" in text else ()
        self.found: list[Found] = []

    def assertions(self) -> Iterator[Assertion]:
        """Yield the assertions of the sentence."""
        answers = self.domain == "conversations" and self.before.rstrip().endswith("?")
        has_verb = not _VERBAL.isdisjoint(self.lower) or (self.domain == "conversations" and bool(self.dates))
        if self.lower[:1] and self.lower[0] in forms.OWNERS and ":" in self.lower:  # Owner of the bell: Ann
            self._add_thing("owner", "owner", self.lower.index(":") + 1)
            has_verb = True
        if not self._is_sure() or not (has_verb or answers):
            return
        self._read_all()
        merged: dict[object, list[Found]] = {}
        for each in self.found:
            if self._is_now(each):
                standing = each.at if each.kind in STANDING else 0
                merged.setdefault((each.kind, each.key, each.beside, standing), []).append(each)
        if merged:
            about = self._about()
            for alike in merged.values():
                yield self._assertion(alike, about)

    def _read_all(self) -> None:
        """Read what the sentence holds, word by word."""
        for at, token in enumerate(self.lower):
            if at in self.dates:
                self._read_date(at)
            elif self.sorts[at] == VALUE:
                if at not in self.taken:
                    self._read_number(at, self.forms[at])
            elif token in forms.EVERY:
                self._add("quantity", "s", {_number(UNITS[forms.EVERY[token]][1])}, at, at + 1)
            elif token in forms.ONE and at not in self.taken and self._counts_one(at):
                self._read_number(at, "1")
            else:
                self._read_word(at, token)

    def affirmation(self, verb: str) -> Assertion | None:
        """Return an assertion that affirms a verb's stem; ``None`` if the sentence lacks it, denies it or is unsure."""
        if not self._is_sure() or verb not in self.forms:
            return None
        at = self.forms.index(verb)
        if any(
            token in forms.NOT and self.clauses[place] == self.clauses[at] for place, token in enumerate(self.lower)
        ):
            return None
        found = Found("denial", verb, frozenset(("yes",)), frozenset(), at, at + 1)
        return self._assertion([found], self._about()) if self._is_now(found) else None

    def _is_sure(self) -> bool:
        return forms.UNSURE.isdisjoint(self.lower)

    def _assertion(self, alike: Sequence[Found], about: Mapping[str, tuple[int, str]]) -> Assertion:
        first = alike[0]
        at, own = first.at, {self.forms[each] for each in range(first.at, first.end)}
        own |= set() if first.verb is None else {self.forms[first.verb]}
        verbs = _VERBS.get(first.kind, ())
        subject = {
            form: written
            for form, (place, written) in about.items()
            if form not in own
            and self.clauses[place] <= self.clauses[at]
            and (form not in verbs or (place and written[0].isupper()))
        }
        here = {form for form in subject if self.clauses[about[form][0]] == self.clauses[at]}
        head = {form for form in here if about[form][0] < at}
        head = head - first.beside or head
        doer: set[str] = set()
        if first.is_object:  # what something supports stands behind
            doer, head = head, here - head or head
        told = frozenset(subject)
        if self.before and (self.lower[0] in forms.PRONOUNS or len(told) < 1 + (self.domain == "conversations")):
            told |= stems(self.before)
        begun = (each for each in self._conditions() if self.clauses[each.start] <= self.clauses[at])
        supposed = {place for each in begun for place in each}
        condition = {form for form, (place, _) in about.items() if place in supposed}
        condition |= {_IF} if at in supposed else set()
        pairs = (at for at in range(len(self.forms) - 1) if self._tells(at) and self._tells(at + 1))
        return Assertion(
            first.kind, first.key, frozenset().union(*(each.values for each in alike)), told,
            frozenset(head) or told, frozenset(doer), frozenset(self.names & told), frozenset(self._scope(at) & told),
            frozenset((self.forms[at], self.forms[at + 1]) for at in pairs), first.beside,
            any(map(self._is_name, range(at, first.end))), frozenset(condition), MappingProxyType(subject),
            self._shown(alike), self.span,
        )  # fmt: skip

    def _shown(self, alike: Sequence[Found]) -> str:
        """Return a value as it is written: with the rest of a name, and with *half* before *an hour*."""
        begin, end = alike[0].at, alike[0].end
        for each in alike[1:]:
            end = each.end if each.at == end else end
        begin -= self.lower[begin - 1 : begin] == ["half"]
        return " ".join(self.written[begin:end])

    def _conditions(self) -> Iterator[range]:
        """Yield the range of places of each condition, from ``if`` or ``when`` to its end."""
        for place, token in enumerate(self.lower):
            if token in forms.CONDITIONS:
                end = (each for each in range(place, len(self.lower)) if self.lower[each] in {",", ";", ":", "then"})
                yield range(place, next(end, len(self.lower)))

    def _about(self) -> dict[str, tuple[int, str]]:
        """Return each stem of the subject → its first place, and the word as written there."""
        about: dict[str, tuple[int, str]] = {}
        for at, form in enumerate(self.forms):
            if at in self.taken or not self._tells(at) or "since" in self.lower[max(0, at - 2) : at]:
                continue
            if self.sorts[at] == VALUE and not (self._is_version(at) or (at and self.sorts[at - 1] in {CONTENT, NAME})):
                continue
            written = self.written[at]
            about.setdefault(form, (at, written))
            has_capital = written[0].isupper() and (at > 0 or written.isupper())
            if self.sorts[at] != CONTENT or has_capital or written in self.ticked:
                self.names.add(form)
        return about

    def _scope(self, claim: int) -> set[str]:
        scope: set[str] = set()
        behind = False
        for at, token in enumerate(self.lower):
            if self.clauses[at] != self.clauses[claim]:
                continue
            if token in forms.FOR:
                behind = at < claim or token in forms.BENEFIT
            elif self._tells(at):
                if behind or (self.sorts[at] == VALUE and at > claim):
                    scope.add(self.forms[at])
            elif token not in forms.DETERMINERS:
                behind = False
        return scope

    def _is_now(self, found: Found) -> bool:
        """Tell whether a clause is about the present, not about the past, the future or another's statement."""
        at = found.at
        is_allowed = any(pair in {("up", "to"), ("at", "most")} for pair in pairwise(self.lower))
        modals = (
            modal
            for modal, clause in zip(self.written, self.clauses, strict=True)
            if modal != "May" and modal.lower() in forms.MODALS and clause <= self.clauses[at]  # May is a month
        )
        own = {"required": "must", "may": "may", ASKED: "may", "who may": "may"}.get(found.key)
        if any(modal != "may" or not is_allowed for modal in modals if modal != own):
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
        ended = not forms.PAST_ENDS.isdisjoint((clause[0], clause[-1])) or (
            found.kind != "date" and self._is_then(clause)
        )
        told = self.domain == "research" and not self.dates
        is_past = not told and (ended or (was >= 0 and forms.COPULA.isdisjoint(clause[was:])))
        is_record = found.kind == "date" and {each.split()[0] for each in found.values} >= {"day", "month"}
        is_record &= was >= 0 and any(token.endswith(forms.PARTICIPLES) for token in clause[was + 1 :])
        return not is_past or ((is_record or not forms.EVENTS.isdisjoint(clause)) and forms.BACK.isdisjoint(self.lower))

    @staticmethod
    def _is_then(clause: Sequence[str]) -> bool:
        """Tell whether a clause is about a time in the past: ``in 2023``, ``back then``."""
        return any(pair in forms.THEN for pair in pairwise(clause)) or any(
            before in forms.IN_YEAR and _YEAR.fullmatch(token) for before, token in pairwise(clause)
        )

    def _tells(self, at: int) -> bool:
        return self.sorts[at] not in {FUNCTION, TURN} and self.lower[at] not in forms.FILLERS

    def _is_name(self, at: int) -> bool:
        return self.sorts[at] == NAME or self.written[at][0].isupper()

    def _are_names(self, *places: int) -> bool:
        return all(place < len(self.written) and self._is_name(place) for place in places)

    def _is_version(self, at: int) -> bool:
        return "." in self.forms[at] or self.lower[at][0] == "v"

    def _add(self, kind: Kind, key: str, values: Iterable[str], at: int, end: int, beside: Iterable[str] = (), *,
             is_object: bool = False, verb: int | None = None) -> None:  # fmt: skip
        self.found.append(Found(kind, key, frozenset(values), frozenset(beside), at, end, is_object, verb))
        if kind not in {"owner", "role", "denial"}:
            self.taken.update(range(at, end))

    def _counts_one(self, at: int) -> bool:
        end = at + 1 + len(self._counted(at + 1))
        if self.lower[at] == "one" and end > at + 1 and not forms.COPULA.isdisjoint(self.lower[end : end + 1]):
            return True
        at += self.lower[at + 1 : at + 2] in (["full"], ["whole"])
        following = self.lower[at + 1 : at + 2]
        is_ordinal = following == ["second"] and at + 2 < len(self.lower) and self._tells(at + 2)
        is_rate = at > 1 and self.lower[at - 1] in UNITS
        return not forms.WHOLE_UNITS.isdisjoint(following) and not is_ordinal and not is_rate

    def _read_date(self, at: int) -> None:
        days = [each for each, parts in self.dates.items() if not is_clock(parts)]
        if days == [at] and not (at and self.lower[at - 1] in forms.SINCE):
            self._add("date", "date", self.dates[at], at, at + 1)
        self.taken.add(at)

    def _read_number(self, at: int, figure: str) -> None:  # noqa: C901 (one case after the other)
        """Read what a number counts or measures, or the thing whose version it is."""
        at += self.lower[at] in forms.ONE and self.lower[at + 1 : at + 2] in (["full"], ["whole"])
        following = [*self.lower[at + 1 : at + 4], "", ""]
        before = self.lower[max(0, at - 3) : at]
        is_of = following[0] == "of" and before[-1:] in (["version"], ["release"]) and self._are_names(at + 2)
        if is_of and forms.SINCE.isdisjoint(before):
            self._add("version", self.forms[at + 2], {figure}, at, at + 1, {self.forms[at + 2]})
            return
        if before[-1:] == ["between"] and "and" in following:  # a range is no single value
            self.taken.update(range(at, at + following.index("and") + 3))
            return
        if self._is_since(before, figure):
            self.taken.add(at)
            return
        amount = None if self.lower[at][0] == "v" else _amount(figure)
        if amount is None or self._read_status(at, figure):
            return
        end = at + 1
        if following[0] in forms.SCALES and (following[0] != "m" or self.written[end].isupper()):
            amount *= forms.SCALES[following.pop(0)]
            end += 1
        # At least Android 11 is what is required; at least three of anything may be four.
        is_product = at > 0 and self._is_name(at - 1) and not forms.NEEDS.isdisjoint(self.lower)
        if not is_product and not forms.LEAST.isdisjoint(before):
            self.taken.update(range(at, end + 1))
            return
        measure = UNITS.get(following[0]) if len(following[0]) > 1 or following[0] in {"s", "h", "%"} else None
        if measure is not None:
            halves = 2 if "half" in self.lower[max(0, at - 2) : at + 1] else 1
            key, period, last = self._rate(end + 1)
            key += " before" if self.lower[last : last + 1] == ["before"] else ""  # three days before it ends
            self._add("quantity", measure[0] + key, {_number(amount * measure[1] / halves / period)}, at, last)
            return
        counted, previous = self._counted(end), self._previous(at)
        if at and self.lower[at - 1] in forms.ORDINALS:
            return
        if at and self._is_name(at - 1) and (at > 1 or not counted):
            is_there = at > 2 and (
                self.lower[at - 2] in {"has", "have"}
                or (
                    self.lower[at - 2] in {"on", "at"}
                    and not forms.COPULA.isdisjoint(self.lower[max(0, at - 4) : at - 2])
                )
            )
            if (is_there or not forms.NEEDS.isdisjoint(self.lower)) and (not counted or "." in figure):
                self._add("version", self.forms[at - 1], {figure}, at, end, {self.forms[at - 1]})
        elif counted:
            behind = self.lower[end + len(counted) : end + len(counted) + 2]
            is_version = "." in figure and at > 0 and self.sorts[at - 1] in {CONTENT, NAME}  # istio 1.24 ends
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

    def _is_since(self, before: Sequence[str], figure: str) -> bool:
        """Tell whether the words before a number make it an old value, or the version since which something holds."""
        last = before[-1] if before else ""
        if last == "from":  # raised from 30 seconds
            return not forms.EVENTS.isdisjoint(self.lower)
        if last == "in":
            return not forms.THERE.keys().isdisjoint(before)
        return last == "since" or (
            "." in figure and last in forms.SINCE_VERSION and (last != "of" or before[-2:-1] == ["as"])
        )

    def _read_status(self, at: int, figure: str) -> bool:
        phrase = _PHRASES.get(figure)
        if phrase is None:
            return False
        end = at + 1
        while end < len(self.lower) and self.lower[end] in phrase:
            end += 1
        if end == at + 1 and (forms.ANSWERS.isdisjoint(self.lower) or self._counted(end)):
            return False
        self._add("status", figure[0], {figure}, at, end)
        return True

    def _counted(self, at: int) -> list[str]:
        """Return the stems of the words counted by a number: ``10 concurrent parts``."""
        counted = []
        for place in range(at, min(at + 3, len(self.forms))):
            if self.sorts[place] == VALUE or not self._tells(place) or self.lower[place] in forms.ROLES:
                break
            counted.append(self.forms[place])
        return counted

    def _previous(self, at: int) -> list[str]:
        """Return the stems of the nearest words before a number: ``a batch size of 8``, ``listens on 8000``."""
        near = (place for place in range(max(0, at - 5), at) if self.sorts[place] != VALUE and self._tells(place))
        return [self.forms[place] for place in near][-2:]

    def _rate(self, at: int) -> tuple[str, Fraction, int]:
        """Return ``/s``, the unit's seconds and the end of ``per minute`` at a place; an empty text without a rate."""
        if at + 1 < len(self.lower) and self.lower[at] in forms.PER:
            base, factor = UNITS.get(self.lower[at + 1], ("", Fraction(1)))
            if base == "s":
                return "/s", factor, at + 2
        return "", Fraction(1), at

    def _read_word(self, at: int, token: str) -> None:
        if token in forms.OWNS:
            self._read_owner(at)
        elif token in forms.ASK and self.written[at + 1 : at + 2] and self.written[at + 1][0].isupper():
            self._add_thing("owner", "owner", at + 1, verb=at)
        elif token in {"can", "must"}:
            self._read_modal(at, at + 1)
        if token in {"may", "can", "cannot"}:
            self._read_permission(at)
        if token in {"have", "has", "need", "needs"} and self.lower[at + 1 : at + 2] == ["to"]:
            self._read_modal(at, at + 2)
        if token in forms.THERE and (self._is_said(at) or self._is_notice(at, token)):
            self._read_presence(at, forms.THERE[token])
        elif token in forms.APART and (verb := self._parted(at)) is not None:
            said = forms.SWITCH.get(token, False) != self._is_denied(verb)
            self._add("presence", "there", {"yes" if said else "no"}, verb, verb + 1, is_object=self._is_ours(verb))
        elif token in forms.SWITCH and self._is_switch(at):
            said = forms.SWITCH[token] != self._is_denied(at)
            first = at - (at > 0 and self.lower[at - 1] in forms.SWITCHED)
            self._add("presence", "there", {"yes" if said else "no"}, first, at + 1)
        has_moved = forms.ROLES.get(token) == "move" and self.lower[at + 1 : at + 2] in (["to"], ["over"])
        if token in forms.ROLES and (has_moved or self._is_said(at)):
            self._read_role(at, forms.ROLES[token])
        elif token in forms.COPULA:
            self._read_copula(at)
        elif token in {"not", "cannot", "never"} or self.lower[at : at + 2] == ["no", "longer"]:
            self._read_denial(at)

    def _is_said(self, at: int) -> bool:
        """Tell whether a verb is a statement (``is stored``), not only an attribute (``stored files``)."""
        token = self.lower[at]
        before = self.lower[at - 1] if at and self.clauses[at - 1] == self.clauses[at] else ""
        if token.endswith(forms.PARTICIPLES):
            if self.lower[at + 1 : at + 3] == ["by", "default"] or (token in forms.EVENTS and before in {"we", "they"}):
                return True
            near = [place for place in range(max(0, at - 4), at) if self.clauses[place] == self.clauses[at]]
            helpers = [place for place in near if self.lower[place] in forms.HELPERS]
            return bool(helpers) and not (helpers[-1] and self.lower[helpers[-1] - 1] in forms.RELATIVE)
        if token.endswith("ing"):
            return before in forms.COPULA
        if token.endswith("s"):  # ``Disables jobs`` says of a function what it does
            return before not in forms.RELATIVE and not (at == 0 and self.domain == "code")
        if token in forms.NOUNS:
            return before in forms.SUBJECTS or self._is_denied(at)
        return before in forms.SUBJECTS or (before != "" and self.sorts[at - 1] in {CONTENT, NAME})

    def _is_notice(self, at: int, token: str) -> bool:
        """Tell whether a sentence is a note without a verb: ``OAuth removed in v3``."""
        return forms.THERE[token] != "yes" and 0 < at <= 3 and all(map(self._tells, range(at)))

    def _is_denied(self, at: int) -> bool:
        clause = self.clauses[at]
        return any(
            token in forms.NOT and clause - self.clauses[place] <= (token in forms.BUT)
            for place, token in enumerate(self.lower[:at])
        )

    def _is_switch(self, at: int) -> bool:
        before = self.lower[at - 1] if at else ""
        behind = self.lower[at + 1 : at + 2]
        is_last = not behind or behind[0] in forms.UNTIL | forms.BREAKS | forms.FILLERS | forms.PLACES
        is_state = (before in forms.COPULA and is_last) or self.lower[max(0, at - 2) : at] == ["defaults", "to"]
        return self.lower[at + 1 : at + 3] == ["by", "default"] or before in forms.SWITCHED or is_state

    def _read_owner(self, at: int) -> None:
        if self.lower[at + 1 : at + 2] == ["by"] and self._is_said(at):
            self._add_thing("owner", "owner", at + 2, verb=at)
            return
        place = at - 1
        while place > 0 and self.lower[place] in forms.HELPERS | forms.TEAMS:
            place -= 1
        if place >= 0 and not self.lower[at].endswith("ed") and self.written[place][0].isupper():
            self._add("owner", "owner", {self.forms[place]}, place, at)

    def _read_presence(self, at: int, group: str) -> None:
        said = (group not in {"no", "open", "may"}) != self._is_denied(at)
        key = {"old": "old", "done": "done", "open": "done", "must": "required", "may": "required"}.get(group, "there")
        is_object = not self.lower[at].endswith(forms.PARTICIPLES) or self._is_ours(at)
        self._add("presence", key, {"yes" if said else "no"}, at, at + 1, is_object=is_object)
        if key == "required" and said:
            self._add("presence", "there", {"yes"}, at, at + 1)

    def _read_role(self, at: int, group: str) -> None:
        if self.lower[at] in forms.DIRECT:
            held, place, end = self._thing(at + 1)
            if held and (self.lower[end : end + 1] == ["as"] or any(map(self._is_name, range(place, end)))):
                self._add("role", "use by", held, place, end, verb=at)
                return
        if group == "own" or (
            self.lower[at + 1 : at + 2] == ["to"] and not forms.ENQUIRIES.isdisjoint(self.lower[:at])
        ):
            self._add_thing("owner", "owner", at + 2, verb=at)
            return
        for place in range(at + 1, min(at + 7, len(self.lower))):
            if self.clauses[place] != self.clauses[at]:
                return
            token = self.lower[place]
            if token in ({"to", "with", "by"} if group == "move" else forms.PLACES | forms.MEANS):
                key = group if group == "move" else f"{group} in" if token in forms.PLACES else f"{group} by"
                if self._add_thing("role", key, place + 1, verb=at):
                    return

    def _read_copula(self, at: int) -> None:
        """Read the place, owner or identity of a thing: ``is on S3``, ``the owner is Ann``."""
        if self.lower[at + 1 : at + 2] and self.lower[at + 1] in {"on", "in", "at"}:
            held, place, end = self._thing(at + 2)
            if any(map(self._is_name, range(place, end))):
                self._add("role", "store in", held, place, end)
            return
        held, place, end = self._thing(at + 1)
        before = [each for each in range(at) if self.clauses[each] == self.clauses[at] and self._tells(each)]
        if not before or not (held or forms.OWNERS & set(self.lower[at + 1 : at + 4])):
            return
        if not forms.OWNERS.isdisjoint(self.lower[each] for each in before):
            if self.domain == "conversations" or self.written[place][0].isupper():
                self._add("owner", "owner", held, place, end)
        elif not forms.OWNERS.isdisjoint(self.lower[at + 1 : at + 4]):
            if self._is_name(before[-1]):
                sign = "not " if self.lower[at + 1] in forms.NOT else ""
                first = before[-1]
                while first - 1 in before and self._is_name(first - 1):
                    first -= 1
                self._add(
                    "owner", "owner", {sign + self.forms[each] for each in range(first, before[-1] + 1)}, first, at
                )
        elif (
            end - place <= 2
            and not self.lower[at + 1].endswith(("ed", "ing"))
            and (end == len(self.lower) or not self._tells(end))
            and place == at + 1
            and ("default" in self.lower[:at] or all(map(self._is_name, range(place, end))))
        ):
            self._add("role", "is", held, place, end)

    def _add_thing(self, kind: Kind, key: str, at: int, *, verb: int | None = None) -> bool:
        held, place, end = self._thing(at, joined=kind == "owner")
        if not held or self.lower[end : end + 1] == ["of"]:
            return False
        if not forms.TEAMS.isdisjoint(self.lower[place:end]):
            kind, key = "owner", "owner"
        elif kind == "role" and self.lower[end : end + 1] in (["in"], ["at"]):  # on a machine in Graz
            where, _, last = self._thing(end + 1)
            if all(map(self._is_name, range(end + 1, last))):
                held, end = held | where, last
        self._add(kind, key, held, place, end, verb=verb)
        return True

    def _thing(self, at: int, *, joined: bool = False) -> tuple[frozenset[str], int, int]:
        """Return the stems of the thing named at a place, and the start and end of its name."""
        while at < len(self.lower) and self.lower[at] in forms.DETERMINERS:
            at += 1
        end = at
        while end < min(at + 5, len(self.lower)) and (
            (self._tells(end) and (self.sorts[end] != VALUE or (end > at and self._is_name(end - 1))))
            or (joined and self.lower[end] in {"and", "the"})
            or (joined and self.lower[end] == "of" and at < end and self._are_names(end - 1, end + 1))
        ):
            end += 1
        held = frozenset(self.forms[each] for each in range(at, end) if self.sorts[each] != FUNCTION) - forms.NOTHING
        return held, at, end if held else at

    def _read_modal(self, at: int, verb: int) -> None:
        """Read what can or must be done. A verb with a negation after it is left to ``_read_denial``."""
        behind, can = self.lower[verb : verb + 1], self.lower[at] == "can"
        if forms.NOT.isdisjoint(behind) and not (self.domain == "conversations" and self._is_ours(at)):
            said = can or not self._is_denied(at)
            self._add("presence", "there" if can else "required", {"yes" if said else "no"}, at, verb,
                      is_object=behind != ["be"])  # fmt: skip

    def _read_permission(self, at: int) -> None:
        """Read who may do something: ``only keepers may``, ``trainees may not``."""
        last = next((one for one in range(at - 1, -1, -1) if self.lower[one] not in forms.HELPERS | forms.SUBJECTS), -1)
        place = last
        while place > 0 and self.lower[place - 1] not in {*forms.DETERMINERS, "all"} and self._tells(place - 1):
            place -= 1
        following = self.lower[at + 1 : at + 2]
        if place < 0 or not self._tells(last) or self.clauses[place] != self.clauses[at] or following in ([], ["be"]):
            return
        is_denied = following == ["not"] or self.lower[at] == "cannot"
        sign = "only " if self.lower[max(0, place - 1)] == "only" else "not " if is_denied else ""
        who = self.forms[last]
        self._add("role", "may", {sign + who}, place, at)

    def _is_ours(self, at: int) -> bool:
        return self.lower[at - 1 : at] in (["we"], ["they"], ["i"], ["you"])

    def _parted(self, at: int) -> int | None:
        """Return the place of a verb whose second part follows its object: ``we turned the lamps off``."""
        near = (place for place in range(max(0, at - 6), at - 1) if self.clauses[place] == self.clauses[at])
        verbs = forms.APART[self.lower[at]]
        return next(
            (each for each in near if self.lower[each] in verbs and self.lower[each + 1] not in forms.APART), None
        )

    def _read_denial(self, at: int) -> None:
        place = next((each for each in range(at + 1, min(at + 5, len(self.lower))) if self._tells(each)), None)
        is_duty = self.lower[at + 1 : at + 3] in (["have", "to"], ["need", "to"])
        if place is not None and not is_duty and self.lower[place] not in {*forms.THERE, *forms.SWITCH}:
            self._add("denial", self.forms[place], {"no"}, place, place + 1)


def _amount(figure: str) -> Fraction | None:
    try:
        return Fraction(figure.replace(",", "")) if len(figure) <= LONGEST_FIGURE else None
    except ValueError:  # 0.7.0
        return None


def _plain(amount: Fraction) -> tuple[str, Fraction]:
    """Return the unit and amount of a number without a unit. A number below 1 is a share: 0.1 is ten per cent."""
    return ("percent", amount * 100) if 0 < amount < 1 else ("count", amount)


def _number(value: Fraction) -> str:
    return f"{float(value):.6g}"


def read_clock(text: str) -> frozenset[str] | None:
    """Return a time of day as the parts of a date; ``None`` if the text is none."""
    found = _TOKEN.fullmatch(text)
    parts = _moment(found) if found and found.lastgroup == "date" else frozenset[str]()
    return parts if parts and is_clock(parts) else None


def is_clock(parts: Collection[str]) -> bool:
    """Tell whether the parts of a date are a time of day."""
    return next(iter(parts)).startswith("clock")


def _moment(found: re.Match[str]) -> frozenset[str]:
    """Return the written parts of a date, ``{"day 3", "month 3"}``, or a time of day in minutes: ``{"clock 1080"}``."""
    parts: dict[str, str] = {}
    if hour := found["hour"] or found["hour2"]:
        half = found["half"] or found["half2"]
        late = 12 if half == "p" and int(hour) < 12 else -12 if half == "a" and hour == "12" else 0
        return frozenset((f"clock {(int(hour) + late) * 60 + int(found['minute'] or 0)}",))
    for name, text in found.groupdict().items():
        if text and name != "date":
            part = name.rstrip("23")
            month = part == "month" and not text.isdigit()
            parts[part] = str(_MONTHS.index(text[:3].lower()) + 1) if month else text.lstrip("0").lower()
    return frozenset(f"{part} {text}" for part, text in parts.items())
