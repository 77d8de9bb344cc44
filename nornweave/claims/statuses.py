"""HTTP status codes in prose: a three-digit number is one only where its surroundings say so.

``returns HTTP 400``, ``answers 422``, ``404 Not Found``, ``503 or 502`` after a status, ``a 500 error`` are;
``200 items``, ``waits 400 ms`` and ``room 404`` are none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from http import HTTPStatus

STATUS_CODES = frozenset(str(status.value) for status in HTTPStatus)

_CODE = rf"(?P<code>{'|'.join(sorted(STATUS_CODES))})"
_PHRASES = "|".join(
    sorted({status.phrase.replace("-", "[- ]") for status in HTTPStatus}, key=lambda one: (-len(one), one))
)
# What may stand around a code: quotes, backticks, the colon and backticks of a role, bold.
_QUOTE = r"[`'\"*]{0,3}"
_NO_UNIT = r"(?![\w%€$£¥]|[.,]\d|\s?(?:%|ms\b|s\b|MB\b|KB\b|kB\b|GB\b|EUR\b|USD\b|percent\b|x\b))"
_BEFORE = r"(?<![\w.,#$€£:/-])"
_VERBS = (
    r"(?:return|respond|answer|repl(?:y|ie)|send|give|get|got|receive|throw|raise|yield|produce|emit|reject|refuse|den(?:y|ie)|fail|result|see|saw"
    r"|returned|sent|gave|threw|turned|becomes?|become|translate[sd]?|map(?:s|ped)?|means?|is|was|be)(?:e?s|ed|ing)?"
)
_LABEL = r"(?:https?(?:/\d(?:\.\d)?)?|status(?:[ _-]?codes?)?|(?:response|error|status)[ _-]codes?)"
_MARKED = re.compile(
    rf"\b{_LABEL}[`'\"*:=]{{0,4}}\s{{0,2}}(?:(?:is|of|was|as|with|are|a|an)\s{{1,2}}){{0,2}}{_QUOTE}{_CODE}{_NO_UNIT}",
    re.IGNORECASE,
)
_NAMED = re.compile(rf"{_BEFORE}{_CODE}{_QUOTE}[ :(–—-]{{1,3}}{_QUOTE}(?:{_PHRASES})\b", re.IGNORECASE)
_AFTER = (
    r"(?:for|when|if|unless|on|and|or|to|with|in|instead|because|as|but|once|whenever|while|then|not|from|"
    r"until|error|response|status|reply|answer)"
)
_ANSWERED = re.compile(
    rf"\b{_VERBS}\s{{1,2}}(?:(?:with|an?|the|back|as|only|always|by|to|in)\s{{1,2}}){{0,3}}{_QUOTE}{_CODE}{_NO_UNIT}{_QUOTE}"
    rf"(?=\s{{0,2}}(?:$|[.,;:/)\]!?–—]|\s-|{_AFTER}\b|(?:{_PHRASES})\b))",
    re.IGNORECASE,
)
_KIND = re.compile(
    rf"\b(?:an?|the|every|each|any)\s{{1,2}}{_QUOTE}{_CODE}{_QUOTE}\s{{1,2}}(?:errors?|responses?|status|repl(?:y|ies)|answers?)\b(?!\s+per\b)",
    re.IGNORECASE,
)
_NEXT = re.compile(
    rf"{_QUOTE}(?:\s{{0,2}},?\s{{0,2}}(?:or|and|/|,)\s{{0,2}}|/){_QUOTE}{_CODE}{_NO_UNIT}{_QUOTE}(?!\s{{1,2}}(?!{_AFTER}\b)[a-z])",
    re.IGNORECASE,
)
# "503 when a retry is safe, 502 when not": two codes that are told apart by their conditions.
_CONDITION = re.compile(rf"{_BEFORE}{_CODE}{_QUOTE}\s{{1,2}}(?:when|if|for|means|on)\b", re.IGNORECASE)
_ANY = re.compile(rf"{_BEFORE}{_CODE}(?!\d)")
# "is" and "means" say a status only where the text speaks of HTTP at all.
_WEAK = re.compile(
    r"\b(?:is|was|be|means?|becomes?|become|see|saw|get|gets|got|getting|give|gives|gave|turned|maps?|mapped|translated?|translates?)\b",
    re.IGNORECASE,
)
_HTTP = re.compile(
    r"\bhttp|\bstatus\b|\bresponse|\banswer|\bendpoint|\bapi\b|\brequest|\berror|\bserver|\bclient|\bretur",
    re.IGNORECASE,
)


def status_spans(text: str) -> list[tuple[int, int, str]]:
    """Find the HTTP status codes of a text by what stands around them.

    Returns:
        Start, end and code, in order; each place once.
    """
    if not _ANY.search(text):
        return []
    found = {match.span("code"): match["code"] for match in _certain(text)}
    for _, end in sorted(found):  # lists: "400, 404 or 422"
        following = _NEXT.match(text, end)
        while following:
            found[following.span("code")] = following["code"]
            following = _NEXT.match(text, following.end("code"))
    return [(start, end, code) for (start, end), code in sorted(found.items())]


def _certain(text: str) -> Iterator[re.Match[str]]:
    yield from _MARKED.finditer(text)
    yield from _NAMED.finditer(text)
    yield from _KIND.finditer(text)
    speaks_of_http = bool(_HTTP.search(text))
    yield from (match for match in _ANSWERED.finditer(text) if speaks_of_http or not _WEAK.match(match[0]))
    conditions = list(_CONDITION.finditer(text))
    if len({match["code"] for match in conditions}) > 1:
        yield from conditions


def http_status(text: str) -> str | None:
    """Return the first HTTP status code of a text, ``None`` if nothing in it says that a number is one."""
    return next((code for _, _, code in status_spans(text)), None)
