"""What is searched for a question that follows others."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nornweave.ask.search.pasted import SEARCHED_CHARACTERS
from nornweave.core.text.analyzer import FUNCTION_WORDS
from nornweave.core.text.index_fields import is_identifier

FEW_WORDS = 2
"""With less than these a question says nothing by itself: "and in production?"."""
SHORT = 5
"""With less than these a question may only replace the subject, and a pronoun stands for something named before."""
COMPLETE = 4
"""Words from which a question to somebody is one by itself, whatever it says: "when are you open"."""

_WORD = re.compile(r"[\w$]+(?:[-.'’][\w$]+)*")
_OTHER_SUBJECT = re.compile(
    r"\A\W*(?:(?:and|or|but|so|ok|okay)\b\W*)?(?:what|how)\s+about\b|\A\W*(?:and|or|but)\b", re.IGNORECASE
)
_ADDS = re.compile(
    r"(?:in|on|at|for|with(?:out)?|by|from|to|during|before|after|since|until|if|is|are|does|do|did|can"
    r"|wh(?:en|ere|y|at|o|ich)|how)\Z",
    re.IGNORECASE,
)
"""Words after "and" that add to what was asked, or ask something else of it."""
_PRONOUN = re.compile(
    r"\b(?:it|its|they|them|theirs?|these|those|he|she|him|her|his|hers)\b|\b(?:the|that|this) (?:one|same)\b"
    r"|\b(?:this|that|there)\W*\Z",
    re.IGNORECASE,
)
_SPEAKER = re.compile(r"\b(?:you|i|we|one)\b", re.IGNORECASE)
_NAME = re.compile(r"[A-Z]|.*\d")


def in_thread(question: str, before: Sequence[str]) -> str:
    """Return what is searched for a question after others: what it leans on, and then itself.

    A question that only says what it is about now ("and the Falcon?", "what about a service?") takes the place of the
    last subject: of a name, if it says one, otherwise of what was asked of the names.

    Args:
        before: what was asked before it, oldest first.
    """
    asked = question
    for earlier in reversed(before):
        room = SEARCHED_CHARACTERS - len(asked) - 1
        if room <= 0 or not leans(asked):
            break
        kept = _without_subject(earlier, asked) if _replaces_subject(asked) else earlier
        asked = f"{kept[:room]}\n{asked}"
    return asked


def leans(question: str) -> bool:
    """Tell whether a question needs the one before it, by its words as they are written."""
    words = _WORD.findall(question)
    said = [word for word in words if word.lower() not in FUNCTION_WORDS]
    if _OTHER_SUBJECT.match(question) or _PRONOUN.search(question):
        return len(said) < SHORT
    is_complete = (len(words) >= COMPLETE and _SPEAKER.search(question)) or any(map(is_identifier, said))
    return len(said) < FEW_WORDS and not is_complete


def _replaces_subject(question: str) -> bool:
    found = _OTHER_SUBJECT.match(question)
    following = _WORD.search(question, found.end()) if found else None
    return following is not None and not _ADDS.match(following[0]) and not _PRONOUN.search(question)


def _without_subject(earlier: str, question: str) -> str:
    """Return a question without what the next one replaces: its names, or else its other words."""
    replaces_name = any(_names(question))
    words = _WORD.findall(earlier)
    names = frozenset(_names(earlier))
    kept = [word for word in words if (word in names) is not replaces_name or word.lower() in FUNCTION_WORDS]
    return " ".join(kept) if names else earlier


def _names(text: str) -> list[str]:
    """Return the words that name something: identifiers, numbers, and those with a capital but for the first."""
    first, *rest = _WORD.findall(text) or [""]
    return [word for word in rest if _NAME.match(word) or is_identifier(word)] + [first] * is_identifier(first)
