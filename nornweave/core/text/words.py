"""Words for comparison: find, normalise and classify them.

A word is a pair ``(form, sort)``. Two words are the same if their forms are equal. The sort says how much is lost with
the word: nothing (``FUNCTION``), little (``CONTENT``), the subject (``NAME``: written like an identifier), a figure
(``VALUE``), or the sense of the whole sentence (``TURN``: not, only, except).
"""

from __future__ import annotations

import re
from functools import lru_cache
from types import MappingProxyType

from nornweave.core.text import analyzer
from nornweave.core.text.function_words import FUNCTION_WORDS

FUNCTION, CONTENT, NAME, VALUE, TURN = range(5)

# The words of a field are Zipfian: these cover nearly every occurrence.
CACHED_WORDS = 1 << 16

_NOT = ("not", TURN)
# English negations, and those of neighbouring languages: copies are found in any language.
_NEGATION_LIST = """
not no never none neither nor without cannot cant nothing nobody nowhere hardly non nicht kein keine keinen keiner
keinem nie niemals ohne pas jamais sans aucun aucune nunca sin senza mai não
"""
_QUALIFIER_LIST = """
only except unless until but deprecated obsolete removed formerly previously anymore longer almost exclude excluding
optional optionally experimental unsupported disabled instead rarely
"""
_FILLER_LIST = """
please also simply just note very really quite basically actually currently now here thus hence therefore however etc
eg ie so indeed fyi btw hi hello hey thanks thank ok okay yes yeah may might shall us let lets via upon onto within
per each every any some own same like
"""
_NEGATIONS = frozenset(_NEGATION_LIST.split())
_QUALIFIERS = frozenset(_QUALIFIER_LIST.split())
_FILLERS = frozenset(_FILLER_LIST.split())
_FUNCTION = (FUNCTION_WORDS | _FILLERS) - _NEGATIONS - _QUALIFIERS
_TENS = {
    f"{one}ty": f"{number}0"
    for number, one in enumerate(("twen", "thir", "for", "fif", "six", "seven", "eigh", "nine"), start=2)
} | {"hundred": "100"}
_ONES = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
         "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")  # fmt: skip
_UNITS = {"%": "percent", "s": "second", "sec": "second", "secs": "second", "ms": "millisecond", "min": "minute"} | {
    "mins": "minute", "h": "hour", "hr": "hour", "hrs": "hour", "€": "eur", "$": "usd", "£": "gbp", "¥": "jpy"
}  # fmt: skip
_WRITTEN = MappingProxyType(
    {one: str(number) for number, one in enumerate(_ONES, start=2)} | _TENS | {"once": "1", "twice": "2"} | _UNITS
    | {"a11y": "accessibility", "i18n": "internationalization", "k8s": "kubernetes", "l10n": "localization"}
)  # fmt: skip
# Spellings and plain synonyms that change nothing: each group stands for its first word.
_GROUPS = """
use utilize employ | choose pick select | start begin commence | show display | large big | quick fast | create make
need require | error failure | document doc documentation | repository repo | configuration config | application app
parameter param argument arg | directory folder | get fetch retrieve obtain | help assist | often frequently
stop halt | send transmit | keep retain | happen occur | let allow permit | purchase buy | information info
whole entire | fix repair | about approximately roughly circa | maximum max | minimum min
"""
_SAME = MappingProxyType(
    {
        stem: analyzer.sequence(group.split()[0])[0]
        for group in _GROUPS.replace("\n", "|").split("|")
        for one in group.split()
        for stem in analyzer.sequence(one)
    }
)

_FIGURE = r"v?\d+(?:[.,:/-]\d+)*|(?<![\w.])-\d+(?:[.,:/-]\d+)*|[%€$£¥]|[<>≤≥]=?(?=\s*\d)"
# Chinese, Japanese and Korean put no blanks between words: every character counts as a word.
UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_SPACED = rf"(?:(?![{UNSPACED}])[^\W\d])(?:(?![{UNSPACED}])\w)*"
_ASCII_WORD = re.compile(rf"(?!v\d)[A-Za-z_]\w*(?:'[a-zA-Z]{{1,2}}\b)?|{_FIGURE}")
_WORD = re.compile(rf"[{UNSPACED}]|(?!v\d){_SPACED}(?:['’][a-zA-Z]{{1,2}}\b)?|{_FIGURE}")
_CONTRACTED = re.compile(r"(\w)n['’]t\b")
_DIGIT = re.compile(r"\d")
_THOUSANDS = re.compile(r",(?=\d{3}(?!\d))")
_ISE = re.compile(r"(?<=\w{3})is(e|es|ed|er|ers|ing|ation|ations)$")
_OUR = re.compile(r"(?<=\w{3})our(s|ed|ing|al|able|ful|ite)?$")


def find_words(text: str) -> list[str]:
    """Return the words of a text as they are written. Numbers keep their signs, such as ``%`` and ``<``."""
    if "n't" in text or "n’t" in text:
        text = _CONTRACTED.sub(r"\1 not", text)
    return (_ASCII_WORD if text.isascii() else _WORD).findall(text)


@lru_cache(maxsize=CACHED_WORDS)
def name(found: str) -> tuple[str, int]:
    """Return a word of code as ``(form, sort)``: in lower case, and ``VALUE`` if it has a digit, else ``NAME``."""
    form = found.lower()
    return form, VALUE if _DIGIT.search(form) else NAME


@lru_cache(maxsize=CACHED_WORDS)
def word(found: str) -> tuple[str, int]:
    """Return a word of prose as ``(form, sort)``. The form is its stem, the same for all spellings and synonyms.

    The sort is ``FUNCTION``, ``CONTENT``, ``NAME``, ``VALUE`` or, for a word that reverses the sense, ``TURN``.
    """
    plain = found.replace("’", "'").partition("'")[0].strip("_") or found
    lowered = plain.lower()
    if lowered in _NEGATIONS:
        return _NOT
    lowered = _WRITTEN.get(lowered, lowered)
    if _DIGIT.search(lowered):
        # A number without ``v`` and without separators of thousands.
        return _THOUSANDS.sub("", lowered.removeprefix("v") if lowered[1:2].isdigit() else lowered), VALUE
    if lowered in _QUALIFIERS:
        return lowered, TURN
    if lowered in _FUNCTION or lowered in {"ca", "wo", "sha"}:  # what contractions leave of can, will and shall
        return lowered, FUNCTION
    if "_" in plain or not (plain[1:].islower() or plain.isupper() or len(plain) == 1):
        return lowered, NAME
    stems = analyzer.sequence(_american(lowered))
    stem = stems[0] if len(stems) == 1 else lowered
    return _SAME.get(stem, stem), CONTENT


def _american(lowered: str) -> str:
    lowered = _ISE.sub(r"iz\1", _OUR.sub(r"or\1", lowered))
    return lowered[:-2] if lowered.endswith("mme") else lowered
