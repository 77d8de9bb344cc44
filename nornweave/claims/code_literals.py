"""Literals in source code that could be the value of a setting: found by what stands right before them.

Parsing costs more than everything else that is done to a piece of code, and most code has no such literal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from nornweave.claims.code_names import CONSTANT, REACH, name_before
from nornweave.claims.literals import UNIT_NAMES
from nornweave.claims.vocabulary import attribute_of, split_name, unit_in_name

MAX_LITERALS = 160
MINIFIED_LINE = 500
"""Characters of an average line from which on a text was not written for people."""

# Calls that hand a literal on: conversions, look-ups with a default, declarations of fields and options.
_HANDED_ON = """
    int float str bool number parseint parsefloat string boolean atoi integer decimal int64 int32 uint final literal
    get getenv env environ getordefault get_or getproperty getint getlong getinteger getstring getbool getboolean
    setdefault pop fetch envint getenvint env_int getenv_int unwrap_or some value cast field option argument setting
    config param query header body path form column attrib ib envvar intenv add_argument add_option flag
"""
HANDS_ON = frozenset(_HANDED_ON.split())
DEFAULT_NAMES = frozenset({"default", "default_value", "defaultvalue", "value", "fallback", "val"})
KEYED = re.compile(r"[\"']([\w.\-]{2,60})[\"']\s*,\s*[\"']?$")
COMPONENT = re.compile(r"\.|->|::")
_BEFORE_PARENTHESIS = re.compile(r"([A-Za-z_]\w*)(?:<[\w:, ]{0,40}>)?!?\s*[({]$")
_BEFORE_ARGUMENTS = re.compile(r"([A-Za-z_]\w*)\s*\([^()]{0,120}$")
_BEFORE_TIMES = re.compile(r"([A-Za-z]\w*)\s*\*$")
_IDENTIFIER = re.compile(r"[A-Za-z_][\w-]*")
_NUMBER = (
    r"(?<![\w.$#\\%])\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d{1,2})?(?:[uif](?:8|16|32|64|size)|[uUlLfFdDn]{1,2})?"
    r"(?:(?![\w.])|(?=\.[a-z]{3}))"
)
# The look ahead costs nothing and spares the engine three alternatives at every other character.
_LITERAL = re.compile(
    rf"(?=[\dTFtf\"'])(?:{_NUMBER}|\b(?:[Tt]rue|[Ff]alse)\b|"
    r"(?<=[=:(>,\s])(?P<quote>[\"'])[\w.+:/@ -]{1,60}(?P=quote))"
)


def literals(text: str, language: str) -> Iterator[tuple[int, int]]:
    """Find the literals that a claim could be read from: their starts and ends, in order; none in minified code."""
    if len(text) > MINIFIED_LINE * (text.count("\n") + 2):
        return
    count = 0
    for match in _LITERAL.finditer(text):
        if _promises(text, match.start(), match[0], language):
            yield match.span()
            count += 1
            if count >= MAX_LITERALS:
                return


def _promises(text: str, start: int, literal: str, language: str) -> bool:
    before = text[max(0, start - REACH) : start].rstrip()
    last = before[-1:]
    if last in {"=", ":", ">"}:
        name = name_before(text, start, language)
        if name is not None:
            return _is_cue(name) or name.lower() in DEFAULT_NAMES or name.lower() in UNIT_NAMES
        return last == ":" and "?" in before[-80:] and _line_promises(before)
    if literal[0] in "\"'" and not literal[1:3].strip("vV")[:1].isdigit():
        return last == "(" and bool(
            (found := _BEFORE_PARENTHESIS.search(before, len(before) - 48)) and _is_cue(found[1])
        )
    if last in {"(", "{"}:
        return bool((found := _BEFORE_PARENTHESIS.search(before, len(before) - 48)) and _is_cue(found[1]))
    if last == ",":
        keyed = KEYED.search(before, len(before) - 66)
        called = _BEFORE_ARGUMENTS.search(before, before.rfind("(") - 40) if "(" in before else None
        return bool((keyed and _is_cue(keyed[1])) or (called and _is_cue(called[1])))
    if last == "*":
        return bool((found := _BEFORE_TIMES.search(before, len(before) - 24)) and found[1].lower() in UNIT_NAMES)
    if literal[0].isdigit() and language in {"c", "cpp"} and "define" in before[-80:]:
        return True
    return (last in {"|", "?"} or before.endswith((" or", " else"))) and _line_promises(before)


def _line_promises(before: str) -> bool:
    return any(map(_is_cue, _IDENTIFIER.findall(before.rpartition("\n")[2])))


@lru_cache(maxsize=1 << 14)
def _is_cue(identifier: str) -> bool:
    """Tell whether an identifier could have a value worth a claim, or say of what kind such a value is."""
    last = COMPONENT.split(identifier)[-1]
    if (CONSTANT.fullmatch(last) and "_" in last) or last.lower() in HANDS_ON or last.lower() in UNIT_NAMES:
        return True
    words = split_name(last)
    return attribute_of(words) is not None or unit_in_name(words) is not None
