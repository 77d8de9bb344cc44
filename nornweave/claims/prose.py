"""Prose → claims: documentation, conversations, papers, comments.

Sentence by sentence: numbers with what they are the value of, HTTP status codes, defaults, switches, support, owners,
versions, days of events. Precision goes before recall: a number without an attribute that fits its unit is no claim.
Code blocks and tables are no prose (``code.py``, ``tables.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set

from nornweave.claims import defaults, phrases, quantities, relations, releases
from nornweave.claims.dates import MONTHS
from nornweave.claims.findings import Finding
from nornweave.claims.lexicon import holds, tokens_of, words_in
from nornweave.claims.named import Named, claim_of
from nornweave.claims.named_values import named_values
from nornweave.claims.numbers import number_claims
from nornweave.claims.passage import Passage
from nornweave.claims.quantities import Quantity
from nornweave.claims.reading import Reading
from nornweave.claims.sentences import sentences
from nornweave.claims.vocabulary import FAMILIES, attribute_of, split_name, topics_of
from nornweave.types import Claim, Span

_CONDITIONAL = frozenset({"switch", "support", "default"})
MAX_NUMERALS = 24
"""Groups of digits in one sentence, with those of dates, versions and names."""

_DIGIT = re.compile(r"\d")
# A sentence without a digit that holds none of these says nothing that a pattern here would read. To ask for words
# costs a tenth of what it costs to ask a pattern.
_CUE_PARTS: tuple[str, ...] = (
    "default",
    "support",
    "availab",
    "enabled",
    "disabled",
    "deprecated",
    "removed",
    "maintain",
    "per cent",
)
_CUE_PARTS += ("yesterday", "algorithm", "compression", "codec", "encoding", "time zone", "timezone", "locale", "on by")
_CUE_TOKENS = words_in(
    """
    owns owned owner owners off without second seconds minute minutes hour hours hourly day days daily week weeks weekly
    month months monthly year years yearly times region regions level levels format formats formatted
    one two three four five six seven eight nine ten twelve fifteen twenty thirty forty fifty sixty ninety hundred twice
    half
    """
)
_SWITCH_TOKENS = words_in("enabled disabled on off true false")
_VERSION_PARTS: tuple[str, ...] = (
    "version",
    "release",
    "requir",
    "need",
    "later",
    "newer",
    "higher",
    "+",
    "run",
    "built",
    "based",
)
_VERSION_PARTS += ("hosted", "powered", "deployed")
_OWNER_TOKENS = words_in(
    "own owns owned owner owners owning maintain maintains maintained maintainer maintainers responsible"
)
_MONTH_TOKENS = frozenset({name[:length] for name in MONTHS for length in (3, len(name))} | {"sept"})
_NUMERAL = re.compile(r"\d+")
_DEFAULT_CUE = re.compile(r"default|\b(?:without|omitted|unset|not (?:given|set|specified))", re.IGNORECASE)
_VERSION_CUE = re.compile(
    r"version|release|require|need|or (?:later|newer|higher)|\d\+|\b(?:run|built|based|hosted|powered|deployed)",
    re.IGNORECASE,
)
# A section that is called like a setting is about it.
_IDENTIFIER = re.compile(r"[`\-]{0,3}[A-Za-z][A-Za-z0-9]*(?:[_.-][A-Za-z0-9]+)+`?")
_EVENT_CUE = re.compile(
    r"shipp?|deploy|releas|launch|live|roll|until|expire|sunset|shut|ends|ended|retired|starts|started|begins"
    r"|began|effect|opens|off on|closes|deadline|happened|occurred|place|scheduled|due| on \w+day",
    re.IGNORECASE,
)
_ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_ASSIGNMENT = re.compile(
    r"(?<![\w.$/-])(?P<name>[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[a-z][a-z0-9]*(?:_[a-z0-9]+)+)`?\s?(?:=|:|\bis|\bis set"
    r" to|\bto)\s?`{0,2}"
    r"(?P<value>\d[\d_]*(?:\.\d+)?|[Tt]rue|[Ff]alse|\"[\w.+:/ -]{1,40}\")`?(?![\w.%/-]|\s?[A-Za-z%])"
)
_ASSIGNED_IN_WORDS = re.compile(
    r"`(?P<name>[A-Za-z][\w.-]{2,60})`\s(?:is|=|defaults to|is set to)\s(?:now |currently )?`?(?P<value>\d[\d_]*"
    r"(?:\.\d+)?|true|false)`?(?=[\s.,;)]|$)(?!\s(?:[a-z]+s|%|\())"
)


def prose_claims(passage: Passage) -> Iterator[Claim]:
    """Return what the sentences of a passage claim, in order.

    Reads everything but code blocks and tables. Never raises; linear in the length of the text.
    """
    text = passage.text
    if not _has_cue(text):
        return
    previous = ""
    for sentence in sentences(text, conversation=passage.domain == "conversations"):
        if _has_cue(sentence.text):
            yield from _distinct(_claims_of(Reading(passage, sentence, previous)))
        previous = sentence.text


def _has_cue(text: str) -> bool:
    """Tell whether a text may claim anything at all."""
    if _DIGIT.search(text):
        return True
    return not _CUE_TOKENS.isdisjoint(tokens_of(text)) or holds(text.lower(), _CUE_PARTS)


def _distinct(claims: Iterator[Claim]) -> Iterator[Claim]:
    seen = set()
    for claim in claims:
        key = (claim.attribute, claim.value, claim.unit, claim.entity)
        if key not in seen:
            seen.add(key)
            yield claim


def _claims_of(reading: Reading) -> Iterator[Claim]:
    text = reading.text
    if len(_NUMERAL.findall(text)) > MAX_NUMERALS:
        return
    taken: list[tuple[int, int]] = []
    known: set[tuple[str, str | None]] = set()
    for finding in _findings(reading):
        claim = _claim_of_finding(reading, finding)
        if claim is not None:
            taken.append((finding.start, finding.end))
            yield claim
    for claim in (*_assignments(reading, taken), *number_claims(reading, taken)):
        known.add((claim.value, claim.unit))
        yield claim
    yield from _named_values(reading, taken, known)


def _named_values(
    reading: Reading, taken: Sequence[tuple[int, int]], known: Set[tuple[str, str | None]]
) -> Iterator[Claim]:
    """Read what no family of attributes named: only values that nothing else has read, and outside conditions."""
    text = reading.text
    for finding in named_values(text):
        read = (finding.value, finding.unit) in known or any(low <= finding.start < high for low, high in taken)
        if read or phrases.is_quoted(text, finding.start) or quantities.is_conditional(text[: finding.start]):
            continue
        claim = _claim_of_finding(reading, finding)
        if claim is not None:
            yield claim


def _findings(reading: Reading) -> Iterator[Finding]:
    text = reading.text
    lowered, tokens = text.lower(), tokens_of(text)
    has_digits = _DIGIT.search(text) is not None
    if "default" in lowered or (holds(lowered, ("without", "omitted", "unset", "not ")) and _DEFAULT_CUE.search(text)):
        yield from defaults.defaults(text)
    if not _SWITCH_TOKENS.isdisjoint(tokens):
        yield from defaults.switches(text)
    if holds(lowered, ("support", "deprecat", "remove", "discontinu", "dropped", "available")):
        yield from relations.supports(text)
    if not _OWNER_TOKENS.isdisjoint(tokens):
        yield from relations.owners(text, reading.headings())
    if has_digits and holds(lowered, _VERSION_PARTS) and _VERSION_CUE.search(text):
        yield from releases.versions(text)
    dated = "day" in lowered or (has_digits and (_ISO_DAY.search(text) or not _MONTH_TOKENS.isdisjoint(tokens)))
    if dated and _EVENT_CUE.search(text):
        yield from releases.events(text, reading.said)


def _claim_of_finding(reading: Reading, finding: Finding) -> Claim | None:
    attribute = finding.attribute
    about = tuple(phrase for phrase in finding.about if phrase.strip())
    about = tuple(phrase for phrase in about if phrases.content_words(phrase) or finding.kind in {"date", "support"})
    text = reading.text
    low, high = phrases.clause_around(text, finding.start, finding.end, ())
    if finding.kind in _CONDITIONAL and (
        quantities.is_conditional(text[: finding.start]) or (about and phrases.is_pointer(about[0]))
    ):
        return None
    if finding.kind in {"number", "default", "version", "switch"} and not about:
        about = tuple(phrase for phrase in reading.subjects(finding.start) if phrases.content_words(phrase))
        about = about or tuple(heading for heading in reading.headings()[:1] if _IDENTIFIER.fullmatch(heading))
        if not about and finding.kind != "version":
            return None
        if finding.kind == "number" and not attribute and reading.antecedents(text) and not _is_family(about):
            return None
        if finding.kind == "default" and not finding.attribute and "`" not in text and not _is_family(about):
            return None
    if not attribute and finding.kind == "number":
        noun = finding.unit or "" if quantities.dimension(finding.unit) == "count" else ""
        quantity = Quantity(finding.start, finding.end, finding.value, finding.unit, noun)
        attribute = quantities.attribute_near(text[low : finding.start], text[finding.end : high], quantity) or ""
        attribute = "" if attribute in quantities.WEAK else attribute
    if not attribute:
        attribute = defaults.attribute_of_phrases(about)
    subjects = reading.subjects(finding.start)[:1] if finding.kind != "date" else reading.antecedents(text[low:])
    entity = phrases.entity_of((*about, *subjects, *reading.headings()), attribute)
    if finding.kind == "date" or (finding.kind == "support" and (not entity or re.search(r"\d", about[0]))):
        entity = _named(about) or entity
    if not attribute or (not entity and (attribute in FAMILIES or finding.kind != "number")):
        return None
    mood = reading.mood(clause=text[low:high], event=finding.event, day=finding.kind == "date")
    mood = "planned" if finding.planned and mood == "stated" else mood
    place = (finding.start, finding.end)
    return reading.claim(finding.kind, attribute, finding.value, finding.unit, entity=entity, place=place, mood=mood)


def _is_family(about: Sequence[str]) -> bool:
    return any((family := attribute_of(split_name(phrase))) and family not in quantities.WEAK for phrase in about)


def _named(about: Sequence[str]) -> str:
    """Keep versions in the name of what was released: ``payments 2.1.0``."""
    words = re.findall(r"[\w.]*\w", about[0].lower())[-4:] if about else []
    return " ".join(word for word in words if topics_of(word) or re.fullmatch(r"v?\d+(?:\.\d+)+", word))


def _assignments(reading: Reading, taken: list[tuple[int, int]]) -> Iterator[Claim]:
    """Read names that are given a value inside a sentence, as code would be."""
    text = reading.text
    for pattern in (_ASSIGNMENT, _ASSIGNED_IN_WORDS) if "_" in text or "`" in text else ():
        for match in pattern.finditer(text):
            if any(start <= match.start("value") < end for start, end in taken):
                continue
            taken.append(match.span())
            claim = _assignment(reading, match)
            if claim is not None:
                yield claim


def _assignment(reading: Reading, match: re.Match[str]) -> Claim | None:
    span = Span(reading.sentence.start, reading.sentence.end)
    read = claim_of(Named(name=match["name"], value=match["value"], span=span), reading.passage)
    text = reading.text
    if (
        read is None
        or not read.entity
        or quantities.is_conditional(text[: match.start()])
        or (read.attribute == "enabled" and read.kind == "number")
    ):
        return None
    low, high = phrases.clause_around(reading.text, *match.span(), ())
    mood = reading.mood(clause=reading.text[low:high])
    return reading.claim(
        read.kind, read.attribute, read.value, read.unit, entity=read.entity, place=match.span(), mood=mood
    )
