"""Read values in prose: ``30 seconds``, ``1800000 (30 minutes)``, ``an empty list``."""

from __future__ import annotations

import re
from functools import lru_cache

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.expressions import read_value
from nornweave.disagree.facts.values import FALSE, NONE, TRUE, UNITS, UNLIMITED, Value, measured_in

_UNIT_WORDS = "|".join(sorted((re.escape(word) for word in UNITS if len(word) > 1), key=len, reverse=True))
_UNIT_AFTER = lazy_pattern(rf"[\s-]?({_UNIT_WORDS}|s)\b|\s?%", re.IGNORECASE)
_NUMBER = lazy_pattern(
    r"[-+]?(?:0[xX][0-9a-fA-F_]{1,20}|[1-9]\d{0,2}(?:[ \u00a0\u202f]000){1,4}(?!\d)"
    r"|\d[\d_]{0,20}(?:,\d{3}){0,6}(?:\.\d{1,20})?|\.\d{1,20})(?:[eE][+-]?\d{1,3})?"
    r"(?:\s?(?:\\?\*\*?|<<|\^|×)\s?\d{1,10}){0,4}"
)
_GROUPED = lazy_pattern(r"(?<=\d)[ \u00a0\u202f](?=000)")
_ATTACHED = lazy_pattern(r"(?:[a-zA-Zµ]{1,4}|%)(?:\d{1,4}[a-zµ]{1,3}){0,3}(?![\w])")
# What makes a figure something else: a date, a version with three parts, a range, an ordinal, a factor.
_NO_NUMBER_AFTER = lazy_pattern(
    r"\.\d|/\d|[-–—]\d|(?:st|nd|rd|th|x|×)\b|\s?(?:-|–|—|to)\s?\d|\s?times\b|\.x\b|[:]\d|\^|-per-"
)
_NO_PART_AFTER = lazy_pattern(r"\.\d|/\d|(?:st|nd|rd|th|x|×)\b|[:]\d|\^")
_SKIP = lazy_pattern(
    r"[\s*_]*(?:(?:set to|set as|the value|values? of|equal to|currently|always|now|just|simply|either|the number|"
    r"about|around|approximately|roughly|only|an?|the|is|be|to|at|[:=(])(?![\w-])[\s*_]*){0,4}",
    re.IGNORECASE,
)
_THOUSANDS = lazy_pattern(r"[-+]?\d{1,3}(?:,\d{3})+$")
_CODE_SPAN = lazy_pattern(r"(`{1,2})(?!`)([^`\n]{1,200})\1(?!`)")
_QUOTED = lazy_pattern(r"\"([^\"\n]{0,80})\"|'([^'\n]{0,80})'(?!\w)|“([^”\n]{0,80})”|‘([^’\n]{0,80})’")
_BRACKETED = lazy_pattern(r"\[[^\[\]\n]{0,300}\]|\{\s*\}")
_WORDS = (
    (lazy_pattern(r"(?:no limit|no maximum|no timeout|unlimited|infinite(?:ly)?|infinity|unbounded"
                r"|forever)(?![\w-])", re.I), UNLIMITED),
    (lazy_pattern(r"(?:true|enabled|turned on|switched on|yes|on)(?![\w-]|\s+(?:the|a|an|your|which|each|its"
                r"|every)\b)", re.I), TRUE),
    (lazy_pattern(r"(?:false|disabled|not enabled|turned off|switched off|off)(?![\w-])", re.I), FALSE),
    (lazy_pattern(r"(?:none|null|nil|undefined|unset|not set)(?![\w-]|\s+of\b)", re.I), NONE),
    (lazy_pattern(r"empty string(?![\w-])", re.I), Value("string", "")),
    (lazy_pattern(r"empty (?:list|array|set|tuple)(?![\w-])|\[\]", re.I), Value("list", "[]")),
)  # fmt: skip
_NUMBER_WORD = lazy_pattern(
    r"(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|fifteen|twenty|thirty|sixty|ninety)"
    rf"(?:[\s-](?:{_UNIT_WORDS})\b|(?=[\s.,;)]))(?!\s+(?:of|or|more|can|that|which|who)\b)",
    re.IGNORECASE,
)
_PLAIN_STRING = lazy_pattern(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*$|[A-Z]{2,12}$|:[a-z]+:?$|[./~][\w./~-]{1,80}$|\w+://\S+$|"
                           r"[a-z][\w.-]*:\d{2,5}$|[a-z]+/[a-z0-9.+-]+$|\d+(?:\.\d+){2,3}(?::\d+)?$|\*$"
                           r"|[A-Z][a-z]+$")  # fmt: skip


@lru_cache(maxsize=1 << 14)
def value_of_code(written: str, *, strings: bool = True) -> Value | None:
    """Read what a code span holds in the place of a value; plain words are strings, identifiers are not known."""
    text = written.strip()
    if text[:1] == "~" and text[1:2].isalpha():  # a reference, see ``surface``
        text, strings = text[1:], False
    value = read_value(text.replace(",", "") if _THOUSANDS.match(text) else text)
    if value is not None and value.is_literal:
        return value
    if strings and _PLAIN_STRING.match(text):
        return Value("string", text)
    return None


def value_at(text: str, at: int, end: int, *, words: bool = True) -> tuple[Value, int, int] | None:
    """Read the value that begins here, behind blanks, marks of emphasis and words such as ``set to``.

    Args:
        words: ``enabled``, ``none``, ``five`` are values too.

    Returns:
        The value, where it begins and where it ends; ``None`` if something else stands here.
    """
    skipped = _SKIP.match(text, at, end)
    at = skipped.end() if skipped else at
    if at >= end:
        return None
    character = text[at]
    found: tuple[Value, int] | None = None
    if character == "`":
        found = _code(text, at, end)
    elif character in "\"'“‘":
        found = _quoted(text, at, end)
    elif character.isdigit() or character in "-+.":
        found = number_at(text, at, end)
    elif character in "[{":
        match = _BRACKETED.match(text, at, end)
        value = read_value(match[0]) if match else None
        found = (value, match.end()) if match and value and value.is_literal else None
    if found is None and words:
        found = _word(text, at, end)
    if found is None:
        return None
    value, stop = found
    return value, at, stop


def number_at(text: str, at: int, end: int, *, in_range: bool = False) -> tuple[Value, int] | None:
    """Read a number with its unit; ``None`` for a part of a date, a version, a range or a multiple."""
    match = _NUMBER.match(text, at, end)
    if match is None or not any(character.isdigit() for character in match[0]):
        return None
    stop = match.end()
    attached = _ATTACHED.match(text, stop, end)
    if attached:
        value = read_value(match[0] + attached[0])
        return (value, attached.end()) if value is not None and value.kind == "number" else None
    if stop < end and (text[stop].isalpha() or text[stop] in "_`"):
        return None
    if (_NO_NUMBER_AFTER if not in_range else _NO_PART_AFTER).match(text, stop, end):
        return None
    unit = _UNIT_AFTER.match(text, stop, end)
    written = _GROUPED.sub("", match[0]).replace("^", "**").replace("×", "*").replace("\\", "")
    value = read_value(written)
    if value is None or value.kind != "number":
        return None
    if unit:
        return measured_in(value, (unit[1] or "%").lower()), unit.end()
    return value, stop


def _code(text: str, at: int, end: int) -> tuple[Value, int] | None:
    match = _CODE_SPAN.match(text, at, end)
    if match is None:
        return None
    value = value_of_code(match[2])
    if value is None:
        return None
    stop = match.end()
    unit = _UNIT_AFTER.match(text, stop, end)
    if unit and value.kind == "number" and value.unit is None:
        return measured_in(value, (unit[1] or "%").lower()), unit.end()
    return value, stop


def _quoted(text: str, at: int, end: int) -> tuple[Value, int] | None:
    match = _QUOTED.match(text, at, end)
    if match is None:
        return None
    return Value("string", next((one for one in match.groups() if one is not None), "")), match.end()


def _word(text: str, at: int, end: int) -> tuple[Value, int] | None:
    for pattern, value in _WORDS:
        match = pattern.match(text, at, end)
        if match:
            return value, match.end()
    match = _NUMBER_WORD.match(text, at, end)
    if match:
        read = read_value(match[0].replace("-", " "))
        if read is not None and read.kind == "number":
            return read, match.end()
    return None


_END_VALUE = lazy_pattern(
    rf"(?:(?P<code>`{{1,2}}[^`\n]{{1,80}}`{{1,2}})|(?P<number>(?<![\w.,-])[-+]?\d[\d_,.]{{0,14}}(?:[eE][+-]?\d+)?"
    rf"(?:[\s-]?(?:{_UNIT_WORDS}|[smhdkKMG%])\b|%)?)"
    r"|\b(?P<word>(?:not )?enabled|disabled|(?:(?:turned|switched) )?(?:on|off)|true|false|none|null|unlimited|infinite"
    r"|unset|not set|zero|one|two|three|four|five|six|seven|eight|nine|ten))\s*$",
    re.IGNORECASE,
)


def value_before(text: str, start: int, at: int) -> tuple[Value, int, int] | None:
    """Read the value that ends here: ``is set to 1 MB`` before ``by default``."""
    begin = max(start, at - 90)
    match = _END_VALUE.search(text[begin:at])
    if match is None:
        return None
    found = value_at(text, begin + match.start(), at)
    if found is None or text[found[2] : at].strip(" ,("):
        return None
    return found


_NOTHING = frozenset({"", "-", "--", "—", "–", "n/a", "na", "...", "…", "?", "varies", "see below", "required"})
_SIMPLE = lazy_pattern(r"[\w./:@*+~-]{1,60}$")
_MULTIPLE = lazy_pattern(r"\s*[*×]\s*`?[A-Za-z_]")


def whole_value(text: str) -> Value | None:
    """Read a cell of a table or the rest of a line behind ``Default:``; ``None`` if it tells no single value."""
    bare = text.strip().strip("*_").strip()
    has_footnote = text.count("*") == 1 and text.rstrip().endswith("*")
    if bare.lower().strip("`. ") in _NOTHING or len(bare) > 300 or has_footnote:
        return None
    found = value_at(bare, 0, len(bare))
    if found is not None and _MULTIPLE.match(bare, found[2]):  # ``2 * RelaxedTimeout``
        return None
    if found is not None and _closes(bare[found[2] :]):
        return found[0]
    bare = re.sub(r"\s*\([^()]*\)\s*$", "", bare) or bare
    value = read_value(bare.strip("`").rstrip("."))
    if value is not None and value.is_literal:
        return value
    if "`" not in bare and _SIMPLE.match(bare) and "_" not in bare and not re.search(r"[a-z][A-Z]", bare):
        return Value("string", bare.rstrip("."))
    return None


def _closes(rest: str) -> bool:
    """Tell whether what follows a value in a cell only explains it."""
    return (
        not rest.strip() or rest.lstrip()[0] in ".,;(–—-*_" or bool(re.match(r"\s+(?:for|if|when|on|in|since)\b", rest))
    )
