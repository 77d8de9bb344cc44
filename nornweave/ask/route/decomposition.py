"""Split a compound question into independent clauses; in doubt a question stays whole.

``what is the retry limit and who owns the payment service?`` asks for two things in two places. A clause is recalled
alone, so it must make sense alone. A clause that needs the other (``and who wrote it?``), says little by itself (``when
and why``) or holds another clause (``who decides what is due and what is late``) keeps the question in one piece.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from nornweave.core.text.function_words import FUNCTION_WORDS

MAX_CLAUSES = 3
# What is longer was pasted (a log, a page), not asked.
MAX_COMPOUND_CHARACTERS = 600
# "indoor air quality and are the doors locked": a topic instead of a question may stand first, if it is short.
MAX_TOPIC_WORDS = 5


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_AUXILIARIES = _words(
    "is are was were do does did can could should shall will would has have had may might must isn't aren't wasn't"
    " weren't don't doesn't didn't can't couldn't shouldn't won't wouldn't hasn't haven't"
)
_QUESTION_WORDS = _words("what how where when why who whose whom which whether")
_DETERMINERS = _words("the a an my our your any all some every each no")
# Words that point at something said before: a clause with one of them does not stand alone.
_POINTERS = _words(
    "it its itself they them their theirs he him his she her hers this that these those one ones same former latter"
    " both other others another such else instead too respectively there so then again above below"
)
# Words that say nothing without what they are of.
_GENERIC = _words(
    "default defaults maximum minimum max min value values limit limits version name names type types kind difference"
    " reason purpose cause effect result time size number way best status use used work works mean means many much"
    " long happen happens get need know go make exactly currently example examples rest"
)
_AUXILIARY = f"(?:{'|'.join(sorted(_AUXILIARIES))})"
_QUESTION = re.compile(
    rf"who\s+[\w./#-]+|(?:what|how|where|when|why|whose|whom|which)(?:'s|(?:\s+(?!to\b)[\w./#-]+){{0,3}}?\s+{_AUXILIARY})\b"
    rf"|which\s+[\w./#-]+\s+[\w./#-]+|{_AUXILIARY}\s+(?:the|a|an|my|our|your|there|any|all|some|we|i|you)\b",
    re.IGNORECASE,
)
_OPENING = re.compile(
    rf"(?:please\s+)?(?:show|list|find|explain|describe|give|tell|name|compare)\b|{_AUXILIARY}\s", re.IGNORECASE
)
_CONNECTOR = re.compile(
    r"(?<=\?)\s+(?:(?:and|also|plus)\s+)?|[,;]?\s+(?:and\s+also|and|also|plus|&)\s+|;\s+", re.IGNORECASE
)
_QUOTED = re.compile(r"\"[^\"]*\"|`[^`]*`|“[^”]*”|«[^»]*»|\([^()]*\)|\[[^\[\]]*\]|(?<!\w)'[^']+'(?!\w)")
_CODE = re.compile(r"[{}=<>|\\]|::|->|\n[ \t]|^Traceback", re.MULTILINE)
_WORD = re.compile(r"[\w'./#-]*\w")


def split_clauses(text: str) -> tuple[str, ...]:
    """Split a compound question into clauses that can be asked one by one.

    If one of the clauses makes no sense alone, or there are more than three, the question stays whole.
    Quoted text, brackets and code are never cut. Deterministic, linear in the length of the text.

    Returns:
        Two or three parts of ``text`` in order, without the words that join them; or ``text`` as it is.
        A part does not split again.
    """
    if len(text) > MAX_COMPOUND_CHARACTERS or _CODE.search(text):
        return (text,)
    parts = _cut(text)
    clauses = [[word.lower() for word in _WORD.findall(part)] for part in parts]
    is_compound = (
        1 < len(parts) <= MAX_CLAUSES
        and _opens(parts[0], clauses[0])
        and not any(_QUESTION_WORDS.intersection(words[1:]) for words in clauses[:-1])
        and all(_stands_alone(words) for words in clauses[1:])
        and not any(_names(one) & _names(other) for one, other in pairwise(parts))
    )
    return tuple(parts) if is_compound else (text,)


def _cut(text: str) -> list[str]:
    """Return the parts of a text between connectors that are outside quotes and brackets and before a question."""
    protected = [match.span() for match in _QUOTED.finditer(text)]
    parts: list[str] = []
    start = 0
    for connector in _CONNECTOR.finditer(text):
        inside = any(low < connector.end() <= high for low, high in protected)
        if not inside and _QUESTION.match(text, connector.end()):
            parts.append(text[start : connector.start()].strip())
            start = connector.end()
    return [*parts, text[start:].strip()]


def _opens(text: str, words: Sequence[str]) -> bool:
    """Tell whether a compound question may begin with this text: a question, a request, or a short topic."""
    if not words or words[-1] in _AUXILIARIES | _DETERMINERS | {"of", "to", "and", "or", "between"}:
        return False
    is_topic = len(words) <= MAX_TOPIC_WORDS and not any(
        word in FUNCTION_WORDS - _DETERMINERS or word.endswith(("s", "ed")) for word in words
    )
    is_asked = _QUESTION.match(text) or _OPENING.match(text)
    return len([word for word in words if word not in FUNCTION_WORDS]) > 1 and (is_topic or bool(is_asked))


def _stands_alone(words: Sequence[str]) -> bool:
    specific = [word for word in words if word not in FUNCTION_WORDS | _AUXILIARIES | _QUESTION_WORDS | _GENERIC]
    return len(specific) > 1 and not _POINTERS.intersection(words)


def _names(text: str) -> set[str]:
    """Return the capitalised words after the first. Clauses that share such a name stay together."""
    words = [match[0].removesuffix("'s") for match in _WORD.finditer(text)]
    return {word for word in words[1:] if word[0].isupper() and word.lower() not in FUNCTION_WORDS}
