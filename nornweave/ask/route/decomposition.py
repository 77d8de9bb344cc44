"""Split a compound question into independent clauses; in doubt a question stays whole.

``what is the retry limit and who owns the payment service?`` asks two things that live in two places. A clause is
recalled alone, so it must make sense alone. What leans on the other half (``and who wrote it?``, ``and what is the
default?``, ``how to … and how to … in python``), a shared predicate (``when and why``), an embedded or relative clause
(``who decides what is due and what is late``) and a joint phrase (``search and replace``) keep it in one piece.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

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
_DETERMINERS = _words("the a an my our your their any all some every each no")
_PRONOUNS = _words("i we you he she they it this that these those there one")
_FUNCTION_WORDS = (
    _AUXILIARIES
    | _QUESTION_WORDS
    | _DETERMINERS
    | _PRONOUNS
    | _words("of in on at to for from by with about into over under as than and or but not if be been me us")
)
# Words that point at something said before: a clause with one of them does not stand alone.
_POINTERS = _words(
    "it its itself they them their theirs he him his she her hers this these those one ones same former latter both"
    " other others another such else instead too respectively there so then again above below"
)
# Words that say nothing without what they are of.
_GENERIC = _words(
    "default defaults maximum minimum max min value values limit limits version name names type types kind difference"
    " reason purpose cause effect result time size number way best status use used work works mean means many much"
    " long happen happens get need know go make exactly currently example examples rest"
)

_AUXILIARY = f"(?:{'|'.join(sorted(_AUXILIARIES))})"
_NOUN = r"(?!(?:to|the|a|an|i|we|you|he|she|they|it|this|that|of|in|on|for|and|or)\b)[\w./#-]+"
# Questions with the verb where a question has it. "what the limit is" and "which is required" are parts of other
# sentences; so is "are the cause of", after a subject.
_QUESTION = re.compile(
    rf"""
      (?:what|how|where|when|why|who|whose|whom)(?:'s|\s+{_AUXILIARY})\b
    | (?:what|which|whose)\s+(?!{_AUXILIARY}\b){_NOUN}(?:\s+{_NOUN}){{0,2}}?\s+{_AUXILIARY}\b
    | how\s+(?:many|much|long|often|far|big|large|fast|old)\b(?:\s+{_NOUN}){{0,4}}?\s+{_AUXILIARY}\b
    | who\s+(?!{_AUXILIARY}\b){_NOUN}
    | which\s+(?!{_AUXILIARY}\b){_NOUN}\s+{_NOUN}
    | {_AUXILIARY}\s+(?:the|a|an|my|our|your|there|any|all|some|we|i|you)\b
    """,
    re.VERBOSE | re.IGNORECASE,
)
_REQUEST = re.compile(r"(?:please\s+)?(?:show|list|find|explain|describe|give|tell|name|compare)\b", re.IGNORECASE)
_YES_NO = re.compile(rf"{_AUXILIARY}\s", re.IGNORECASE)
_CONNECTOR = re.compile(
    r"(?<=\?)\s+(?:(?:and|also|plus)\s+)?|[,;]?\s+(?:and\s+also|and|also|plus|&)\s+|;\s+", re.IGNORECASE
)
_QUOTED = re.compile(r"\"[^\"]*\"|`[^`]*`|“[^”]*”|«[^»]*»|\([^()]*\)|\[[^\[\]]*\]|(?<!\w)'[^']+'(?!\w)")
_CODE = re.compile(r"[{}=<>|\\]|::|->|\n[ \t]|^Traceback", re.MULTILINE)
_WORD = re.compile(r"[\w'./#-]*\w")


@dataclass(frozen=True, slots=True)
class _Clause:
    """A part of a question and its words, in lower case."""

    text: str
    words: tuple[str, ...]

    @property
    def content(self) -> list[str]:
        """The words that say what the clause is about."""
        return [word for word in self.words if word not in _FUNCTION_WORDS and word not in _POINTERS]

    @property
    def specific(self) -> list[str]:
        return [word for word in self.content if word not in _GENERIC]


def split_clauses(text: str) -> tuple[str, ...]:
    """Split a compound question into clauses that can be asked one by one.

    All or nothing: if one of the clauses would not stand alone, or there are more than three, the question stays whole.
    Quoted text, brackets and code are never cut. Deterministic, linear in the length of the text.

    Returns:
        Two or three parts of ``text`` in order, which leave out only the words that join them; or ``text`` as it is.
        A part does not split again.
    """
    whole = (text,)
    if len(text) > MAX_COMPOUND_CHARACTERS or _CODE.search(text):
        return whole
    parts = _cut(text)
    if not 1 < len(parts) <= MAX_CLAUSES:
        return whole
    clauses = [_Clause(part, tuple(word.lower() for word in _WORD.findall(part))) for part in parts]
    return tuple(parts) if _independent(clauses) else whole


def _cut(text: str) -> list[str]:
    """Cut wherever a question follows a connector outside quotes and brackets."""
    protected = [match.span() for match in _QUOTED.finditer(text)]
    parts: list[str] = []
    start = 0
    for connector in _CONNECTOR.finditer(text):
        inside = any(low < connector.end() <= high for low, high in protected)
        if not inside and _QUESTION.match(text, connector.end()):
            parts.append(text[start : connector.start()].strip())
            start = connector.end()
    return [*parts, text[start:].strip()]


def _independent(clauses: Sequence[_Clause]) -> bool:
    first, rest = clauses[0], clauses[1:]
    return (
        _opens(first)
        and len(first.content) > 1
        and all(_complete(clause) for clause in clauses[:-1])
        and all(_stands_alone(clause) for clause in rest)
        and not any(_names(one.text) & _names(other.text) for one, other in pairwise(clauses))
    )


def _opens(clause: _Clause) -> bool:
    """Whether a compound question may begin like this: with a question, a request, or a short topic."""
    if any(pattern.match(clause.text) for pattern in (_QUESTION, _REQUEST, _YES_NO)):
        return True
    is_topic = not any(word in _FUNCTION_WORDS - _DETERMINERS or word.endswith(("s", "ed")) for word in clause.words)
    return len(clause.words) <= MAX_TOPIC_WORDS and is_topic


def _complete(clause: _Clause) -> bool:
    """Whether nothing of the clause runs on into the next one: no open end, no question word inside."""
    last = clause.words[-1] if clause.words else ""
    open_ended = {*_AUXILIARIES, *_QUESTION_WORDS, *_DETERMINERS, "of", "to", "and", "or", "between"}
    return last not in open_ended and not _QUESTION_WORDS.intersection(clause.words[1:])


def _stands_alone(clause: _Clause) -> bool:
    return len(clause.specific) > 1 and not _POINTERS.intersection(clause.words) and not _points_with_that(clause.words)


def _points_with_that(words: Sequence[str]) -> bool:
    """Whether some "that" is no relative pronoun (``the service that handles refunds``)."""
    return any(
        word == "that" and (position in {0, len(words) - 1} or words[position - 1] in _FUNCTION_WORDS)
        for position, word in enumerate(words)
    )


def _names(text: str) -> set[str]:
    """Return the capitalised words after the first: two clauses about the same person or product stay together."""
    words = [match[0].removesuffix("'s") for match in _WORD.finditer(text)]
    return {word for word in words[1:] if word[0].isupper() and word.lower() not in _FUNCTION_WORDS}
