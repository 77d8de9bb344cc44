"""Read values in prose: ``30 seconds``, ``1800000 (30 minutes)``, ``an empty list``."""

from __future__ import annotations

import re
from functools import lru_cache

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.expressions import read_value
from nornweave.disagree.facts.values import FALSE, TRUE, UNITS, Value, measured_in

_UNIT_WORDS = "|".join(sorted((re.escape(word) for word in UNITS if len(word) > 1), key=len, reverse=True))
_UNIT_AFTER = lazy_pattern(rf"[\s-]?({_UNIT_WORDS}|s)\b|\s?%", re.IGNORECASE)
_COUNTED = "zero|one|two|three|four|five|six|seven|eight|nine|ten|fifteen|twenty|thirty|sixty|ninety"
# A number with what is attached to it; not a part of a date, a version, a range, an ordinal or a multiple.
_NUMBER = (
    r"[-+]?(?:0[xX][0-9a-fA-F_]{1,20}|[1-9]\d{0,2}(?:[ \u00a0\u202f]000){1,4}(?!\d)"
    r"|\d[\d_]{0,20}(?:,\d{3}){0,6}(?:\.\d{1,20})?|\.\d{1,20})(?:[eE][+-]?\d{1,3})?"
    r"(?:(?:[a-zA-Zµ]{1,4}|%)(?:\d{1,4}[a-zµ]{1,3}){0,3}(?!\w)"
    r"|(?:\s?(?:\\?\*\*?|<<|\^|×)\s?\d{1,10}|\s/\s\d[\d.]{0,9}){0,4}(?![\w`]))"
    r"(?!\.\d|[/:]\d|\s?(?:[-–—]|to)\s?\d|\.x\b|\^|-per-|\s[+*/]\s)"
)
_VALUE = lazy_pattern(
    r"(?P<tick>`{1,2})(?!`)(?P<code>[^`\n]{1,200})(?P=tick)(?!`)"
    r"|(?P<quoted>\"[^\"\n]{0,80}\"|'[^'\n]{0,80}'(?!\w)|“[^”\n]{0,80}”|‘[^’\n]{0,80}’)"
    r"|(?P<list>\[[^\[\]\n]{0,300}\](?:\w+\{[^{}\n]{0,200}\})?(?!\w)|\{\s*\})"
    rf"|(?P<number>(?<![\w.,-]){_NUMBER})"
    r"|\b(?P<word>(?:no (?:limit|maximum|timeout)|unlimited|infinite(?:ly)?|infinity|unbounded|forever|true|yes|false"
    r"|(?:not )?enabled|disabled|(?:(?:turned|switched) )?(?:on|off)|none|null|nil|undefined|unset|not set"
    rf"|empty (?:string|list|array|set|tuple)|(?:{_COUNTED})(?:[\s-](?:{_UNIT_WORDS})|(?=[\s.,;)]|$)))(?![\w-])"
    r"(?![ \t]+(?:the|an?|your|which|each|its|every|of|or|more|can|that|who)\b))",
    re.IGNORECASE,
)
_SKIP = lazy_pattern(
    r"[\s*_]*(?:(?:set to|set as|the value|values? of|equal to|currently|always|now|just|simply|either|the number|"
    r"about|around|approximately|roughly|only|an?|the|is|be|to|at|[:=(])(?![\w-])[\s*_]*){0,4}",
    re.IGNORECASE,
)
_WORDS = {
    "turned on": TRUE, "switched on": TRUE, "turned off": FALSE, "switched off": FALSE, "not enabled": FALSE,
    "empty string": Value("string", ""),
    **dict.fromkeys(("empty list", "empty array", "empty set", "empty tuple"), Value("list", "[]")),
}  # fmt: skip
_THOUSANDS = lazy_pattern(r"[-+]?\d{1,3}(?:,\d{3})+$")
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
    match = _VALUE.match(text, skipped.end() if skipped else at, end)
    if match is None or (match["word"] and not words):
        return None
    return _read(text, match, end)


def value_before(text: str, start: int, at: int) -> tuple[Value, int, int] | None:
    """Read the value that ends here: ``is set to 1 MB`` before ``by default``."""
    found = None
    for match in _VALUE.finditer(text, max(start, at - 90), at):
        if not match["quoted"] and not match["list"] and (read := _read(text, match, at)):
            found = read
    return found if found is not None and not text[found[2] : at].strip(" ,(") else None


def number_at(text: str, at: int, end: int) -> tuple[Value, int] | None:
    """Read a number with its unit; ``None`` for a part of a date, a version, a range or a multiple."""
    match = _VALUE.match(text, at, end)
    found = _read(text, match, end) if match and match["number"] else None
    return (found[0], found[2]) if found else None


def _read(text: str, match: re.Match[str], end: int) -> tuple[Value, int, int] | None:
    """Read what was matched, with a unit behind it."""
    stop = match.end()
    if match["quoted"]:
        value: Value | None = Value("string", match["quoted"][1:-1])
    elif match["code"]:
        value = value_of_code(match["code"])
    elif match["number"]:
        written = re.sub(r"(?<=\d)[ \u00a0\u202f](?=000)", "", match["number"])
        value = read_value(written.replace("^", "**").replace("×", "*").replace("\\", ""))
        value = value if value is not None and value.kind == "number" else None
    else:
        written = (match["word"] or match["list"]).lower() if match["word"] else match["list"]
        value = _WORDS.get(written) or read_value(written.replace("-", " ") if match["word"] else written)
    if value is None or not value.is_literal:
        return None
    unit = _UNIT_AFTER.match(text, stop, end) if value.kind == "number" and value.unit is None else None
    if unit is not None and not match["word"]:
        return measured_in(value, (unit[1] or "%").lower()), match.start(), unit.end()
    return value, match.start(), stop


_NOTHING = frozenset({"", "-", "--", "—", "–", "n/a", "na", "...", "…", "?", "varies", "see below", "required"})
_SIMPLE = lazy_pattern(r"[\w./:@*+~-]{1,60}$")
_MULTIPLE = lazy_pattern(r"\s*[*×]\s*`?[A-Za-z_]")
_CLOSES = lazy_pattern(r"\s*(?:$|[.,;(–—*_-])|\s+(?:for|if|when|on|in|since)\b")
"""What follows a value in a cell and only explains it."""


def whole_value(text: str) -> Value | None:
    """Read a cell of a table or the rest of a line behind ``Default:``; ``None`` if it tells no single value."""
    bare = text.strip().strip("*_").strip()
    has_footnote = text.count("*") == 1 and text.rstrip().endswith("*")
    if bare.lower().strip("`. ") in _NOTHING or len(bare) > 300 or has_footnote:
        return None
    found = value_at(bare, 0, len(bare))
    if found is not None and _MULTIPLE.match(bare, found[2]):  # ``2 * RelaxedTimeout``
        return None
    if found is not None and _CLOSES.match(bare, found[2]):
        return found[0]
    bare = re.sub(r"\s*\([^()]*\)\s*$", "", bare) or bare
    value = read_value(bare.strip("`").rstrip("."))
    if value is not None and value.is_literal:
        return value
    if "`" not in bare and _SIMPLE.match(bare) and "_" not in bare and not re.search(r"[a-z][A-Z]", bare):
        return Value("string", bare.rstrip("."))
    return None
