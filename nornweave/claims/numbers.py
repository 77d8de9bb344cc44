"""Numbers, times of day and status codes of a sentence → claims."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nornweave.claims import phrases, quantities
from nornweave.claims.quantities import Quantity
from nornweave.claims.reading import Reading
from nornweave.claims.statuses import status_spans
from nornweave.claims.vocabulary import attribute_of, split_name
from nornweave.types import Claim, Mood

MAX_VALUES = 12
"""Values in one sentence: more is data, not a statement."""

_DIGIT = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|thirty|forty|fifty|sixty"
    r"|ninety|hundred|half)\b",
    re.IGNORECASE,
)
_STATUS_CUE = re.compile(r"[1-5]\d\d")
_NOT_THAT = re.compile(r"\b(?:not|instead of|rather than|no longer|never)\s(?:an?\s)?(?:HTTP\s)?$")


def number_claims(reading: Reading, taken: Sequence[tuple[int, int]]) -> Iterator[Claim]:
    """Return the claims of a sentence's numbers; those at places that are taken have been read otherwise."""
    text = reading.text
    statuses = status_spans(text)[:MAX_VALUES] if _STATUS_CUE.search(text) else []
    places = [(start, end) for start, end, _ in statuses]
    for start, end, code in statuses:
        claim = _status(reading, start, end, code, [place for place in places if place != (start, end)])
        if claim is not None:
            yield claim
    if quantities.quantities(text) or ":" in text:
        yield from _numbers(reading, [*taken, *places])
        yield from _clock_times(reading)


def _status(reading: Reading, start: int, end: int, code: str, others: Sequence[tuple[int, int]]) -> Claim | None:
    text = reading.text
    low, high = phrases.clause_around(text, start, end, others)
    if (
        phrases.is_quoted(text, start)
        or quantities.is_conditional(text[low:start])
        or _NOT_THAT.search(text[max(0, start - 24) : start])
    ):
        return None
    subjects = (phrases.subject_of(text[low:high]), phrases.subject_of(text))
    own = f"{text[low:start]} {text[end:high]}"
    if not any(phrases.content_words(phrase, "http_status") for phrase in (*subjects, own)):
        return None
    entity = phrases.entity_of((*subjects, *reading.headings(), own), "http_status")
    mood = reading.mood(clause=text[low:high])
    place = (start, end)
    return reading.claim("http_status", "http_status", code, None, entity=entity, place=place, others=others, mood=mood)


def _numbers(reading: Reading, taken: Sequence[tuple[int, int]]) -> Iterator[Claim]:
    text = reading.text
    found = [one for one in quantities.quantities(text) if not any(start <= one.start < end for start, end in taken)]
    if len(found) > MAX_VALUES:
        return
    places = [(one.start, one.end) for one in found]
    last: tuple[str, str] | None = None
    for one in found:
        others = [place for place in places if place != (one.start, one.end)]
        low, high = phrases.clause_around(text, one.start, one.end, others)
        attribute = _attribute(reading, one, low, high, last)
        if attribute is None:
            continue
        last = (attribute, quantities.dimension(one.unit))
        claim = _number(reading, one, attribute, (low, high), others)
        if claim is not None:
            yield claim


def _clock_times(reading: Reading) -> Iterator[Claim]:
    """Read until when something is possible: ``the cut-off is 18:00 UTC``."""
    text = reading.text
    for one in quantities.clock_times(text):
        low, high = phrases.clause_around(text, one.start, one.end, ())
        attribute = quantities.attribute_near(text[low : one.start], "", one)
        if attribute in {"cut_off", "deadline"} and not quantities.is_conditional(text[: one.start]):
            claim = _number(reading, one, attribute, (low, high), ())
            if claim is not None:
                yield claim


def _attribute(reading: Reading, one: Quantity, low: int, high: int, last: tuple[str, str] | None) -> str | None:
    text = reading.text
    before, after = text[low : one.start], text[one.end : high]
    if not quantities.is_tied(before, after, one) or (one.unit is None and not one.noun and "," in before[-40:]):
        return None
    if quantities.is_conditional(text[max(0, one.start - 120) : one.start]) or phrases.is_quoted(text, one.start):
        return None
    found = quantities.attribute_near(before, after, one)
    if found is not None and found not in quantities.WEAK:
        return found
    if last is not None and last[1] == quantities.dimension(one.unit) and len(before.split()) < 5:
        return last[0]
    tied = one.bound or re.search(r"\b(?:within|for|after)\s$", before)
    if tied and one.unit is not None:
        for heading in reading.headings()[:1]:
            family = quantities.attribute_near(heading, "", one)
            if family is not None and family not in quantities.WEAK:
                return family
    if reading.passage.domain == "conversations" and not phrases.content_words(phrases.subject_of(text[low:high])):
        return None
    return one.bound or None if one.unit is not None else None


def _number(
    reading: Reading, one: Quantity, attribute: str, bounds: tuple[int, int], others: Sequence[tuple[int, int]]
) -> Claim | None:
    text = reading.text
    clause = text[bounds[0] : bounds[1]]
    noun = one.noun if attribute in quantities.WEAK else ""
    subjects = (
        phrases.nearest_noun(text[bounds[0] : one.start]),
        phrases.subject_of(clause),
        phrases.subject_of(text),
        *reading.antecedents(clause),
    )
    if not any(phrases.content_words(phrase, attribute) for phrase in (*subjects, clause)) and not (
        subjects[1] and attribute_of(split_name(subjects[1])) == attribute
    ):
        return None  # "Maximum length of 64.": of what, another sentence says; "The rate limit is 60" says it
    entity = phrases.entity_of((*subjects, *reading.headings(), clause), attribute)
    if one.bound == "minimum" and attribute != "minimum":
        entity = f"minimum {entity}"
    unit = one.unit if quantities.dimension(one.unit) != "count" or noun else None
    mood: Mood = "range" if one.is_span else reading.mood(clause=clause)
    place = (one.start, one.end)
    return reading.claim("number", attribute, one.value, unit, entity=entity, place=place, others=others, mood=mood)
