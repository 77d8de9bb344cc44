"""Values of what has no family: ``a baud rate of 9600``, ``the probation is six months``, ``in region eu-west-1``.

What ``quantities.py`` finds by the attribute's family is not looked for here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from nornweave.claims.findings import Finding
from nornweave.claims.lexicon import holds, tokens_of, words_in
from nornweave.claims.quantities import WEAK, Quantity, dimension, fits, is_conditional, quantities
from nornweave.claims.values import canonical_number
from nornweave.claims.vocabulary import attribute_of, split_name, topics_of

MAX_NAME_WORDS = 4
_TIMES = frozenset({"s", "working day"})

_NAME = r"(?P<name>(?:[A-Za-z][\w-]*\s){0,3}?[A-Za-z][\w-]*)"
# "a baud rate of", "the probation is", "with a lookback of at most": the name of a number stands before its link.
_BEFORE = re.compile(
    rf"(?:^|[,;:(]\s?|\b(?:[Tt]he|[Aa]n?|[Oo]ur|[Yy]our|[Mm]y|[Ii]ts|[Tt]heir|with|[Ee]very|[Ee]ach|uses?|has|have|needs?)\s){_NAME}\s"
    r"(?:of|is|are|lasts?|equals?)\s(?:only\s|exactly\s|set\sto\s|now\s|at\smost\s|up\sto\s)?[`\"]?$"
)
# "28 days of annual leave", "50 GB of storage": what is measured stands behind.
_AFTER = re.compile(
    r"\sof\s(?!the\b|an?\b|this\b|that\b|it\b)(?P<name>(?:[a-z][\w-]*\s){0,2}?[a-z][\w-]*)(?=\s*(?:$|[.,;:)]|\s(?:for|per|in|on|and|or|to|at|with|before|after|each|every|a|by)\b))"
)
# "300 requests per minute" says by itself that it is a rate of requests.
_REQUESTS = re.compile(r"(?:request|call|query|operation|api call|message)/.+")
_EVERY = re.compile(
    r"\b(?:(?:re)?fresh\w*|poll\w*|sync\w*|updat\w*|run\w*|check\w*|sen[dt]\w*|scan\w*|sampl\w*|rotat\w*|rebuil\w*"
    r"|backed up)\s"
    r"(?:\w+\s){0,3}?(?:every|each|once\s(?:an?|per|every))\s(?P<unit>second|minute|hour|day|week|month)\b(?!\s\w+\sof)"
)
_POINTER = re.compile(r"^.*[.,;:]\s|\b(?:you|they|we|it)\s(?:can|may|must|will|should|have to|could)?\b", re.IGNORECASE)
_LOG_LEVEL = re.compile(r"\blog(?:s|ged|ging)?\b[^.;]{0,40}?\b(?P<value>DEBUG|INFO|WARN(?:ING)?|ERROR|TRACE)\b")
_WITHIN = re.compile(r"\b(?P<how>within|after|up to)\s(?:at most\s|the first\s|the next\s)?$", re.IGNORECASE)
_ATTRIBUTES = {
    "region": r"regions?|data\scent(?:er|re)",
    "algorithm": r"algorithm|cipher|hash\sfunction",
    "compression": r"compression|codec",
    "log_level": r"log(?:ging)?\slevel",
    "encoding": r"encoding|charset|character\sset",
    "timezone": r"time\s?zone",
    "locale": r"locale",
    "format": r"(?:file|output|export)\sformat",
}
_WORD = (
    rf"\b(?:{'|'.join(f'(?P<{name}>{words})' for name, words in _ATTRIBUTES.items())})"
    r"(?:\s(?:is|are|set\sto|=)|:|\s=)?\s[`\"]?(?P<value>[A-Za-z][\w./+-]{1,30}\w)[`\"]?(?=\s*(?:$|[.,;:)]|\s(?:with|and|for|by|in|on)\b))"
)
_TEXT = re.compile(_WORD, re.IGNORECASE)
_TEXT_WORDS = words_in(
    """
    region regions center centre algorithm cipher function compression codec level encoding charset set zone timezone
    locale format
    """
)
_LEVELS = ("DEBUG", "INFO", "WARN", "ERROR", "TRACE")
# Words that follow such a name and are no value of it.
_NO_VALUES = words_in(
    """
    is are was be of for in on at to and or the that which used names name code codes settings setting string strings
    list listing table tables values value level levels only itself support option options
    """
)


def named_values(text: str) -> Iterator[Finding]:
    """Find numbers and words that a phrase without a family names, in order of their kind, then place."""
    yield from _numbers(text)
    tokens = tokens_of(text)
    for match in _EVERY.finditer(text) if holds(text, ("every ", "each ", "once ", "every\xa0")) else ():
        value, unit = canonical_number("1", match["unit"]) or ("1", None)
        place = match.span("unit")
        yield Finding(kind="number", attribute="interval", value=value, unit=unit, start=place[0], end=place[1])
    for match in _LOG_LEVEL.finditer(text) if holds(text, _LEVELS) else ():
        start, end = match.span("value")
        yield Finding(kind="default", attribute="log_level", value=match["value"].lower(), start=start, end=end)
    for match in _TEXT.finditer(text) if not _TEXT_WORDS.isdisjoint(tokens) else ():
        value = match["value"].lower()
        marked = (
            any(sign.isdigit() or sign in "-_./" for sign in value)
            or match["value"][:1].isupper()
            or _ends(text, match)
        )
        if marked and value not in _NO_VALUES and topics_of(value):
            attribute = next(name for name in _ATTRIBUTES if match[name])
            before = text[: match.start()]
            yield Finding(
                kind="default",
                attribute=attribute,
                value=value,
                start=match.start("value"),
                end=match.end("value"),
                about=(before,) if topics_of(before) else (),
            )


def _ends(text: str, match: re.Match[str]) -> bool:
    return not text[match.end() :].strip(" .`\"'*)")


def _numbers(text: str) -> Iterator[Finding]:
    for one in quantities(text):
        before = text[max(0, one.start - 80) : one.start]
        if one.is_span or is_conditional(text[max(0, one.start - 120) : one.start]):
            continue
        found = _named_before(before, one) or _named_after(text, one) or _timed(before, one) or _rate(one)
        if found:
            yield found


def _named_before(before: str, one: Quantity) -> Finding | None:
    named = _BEFORE.search(before)
    if named is None:
        return None
    words = split_name(named["name"])
    family = attribute_of(words)
    name = topics_words(words, family)
    plain = (family or "").removeprefix("max_").removeprefix("min_")
    if family is not None and plain not in WEAK:
        if not fits(plain, replace(one, noun="")):
            return None
        unit = one.unit if dimension(one.unit) != "count" else None
        return _finding(one, family, unit, (" ".join(name),) if name else ())
    if not name or (one.noun and family is None) or family in {"limit", "minimum", "threshold", "default", "date"}:
        return None
    attribute = family or " ".join(name[-MAX_NAME_WORDS:])
    return _finding(one, attribute, one.unit, (" ".join(name),) if family else ())


def _named_after(text: str, one: Quantity) -> Finding | None:
    named = _AFTER.match(text, one.end) if one.unit is not None and dimension(one.unit) in {"time", "size"} else None
    name = topics_words(split_name(named["name"]), None) if named else []
    if named is None or not name or attribute_of(split_name(named["name"])) is not None:
        return None
    return _finding(one, " ".join(name), one.unit, ())


def _timed(before: str, one: Quantity) -> Finding | None:
    """Read ``within 30 days`` where no family is near: a window, or a delay."""
    within = _WITHIN.search(before)
    if within is None or one.unit not in _TIMES:
        return None
    family = attribute_of(split_name(before[: within.start()]))
    if family is not None and fits(family, one):
        return None
    attribute = "delay" if within["how"].lower() == "after" else "window"
    about = _POINTER.sub("", before[: within.start()])
    return _finding(one, attribute, one.unit, (about,) if topics_of(about) else ())


def _rate(one: Quantity) -> Finding | None:
    return _finding(one, "rate_limit", one.unit, ()) if one.unit and _REQUESTS.fullmatch(one.unit) else None


def _finding(one: Quantity, attribute: str, unit: str | None, about: tuple[str, ...]) -> Finding:
    return Finding(
        kind="number", attribute=attribute, value=one.value, unit=unit, start=one.start, end=one.end, about=about
    )


def topics_words(words: tuple[str, ...], family: str | None) -> list[str]:
    """Return the words of a name that say something, without those of its family."""
    return [word for word in words if topics_of(word, without=(family,) if family else ())]
