"""Negation in questions: words to leave out, and statements to look for in the negative.

``-redis`` and ``NOT redis`` leave out passages that hold the word. "Which endpoints do not require a token" leaves out
nothing: what says that they do require one comes below what does not say so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from nornweave.core.text.analyzer import sequence
from nornweave.core.text.function_words import FUNCTION_WORDS

MOST_LEFT_OUT, MOST_CHARACTERS, NEAR_WORDS = 8, 300, 3
"""Words that a question leaves out; longer ones are pasted; words that a negation reaches."""
_SHORT_WORDS = 6

_MINUS = re.compile(r"(?<!\S)-(?:\"([^\"\n]{2,64})\"|([A-Za-z][\w.]{2,63}))(?!\S)")
_NOT = re.compile(r"\b(?:AND\s+)?NOT\s+(?:\"([^\"\n]{2,64})\"|([\w.-]{2,64}))")
_WORDED = re.compile(
    r"\b(?:except(?:\s+for)?|excluding|other\s+than|apart\s+from|but\s+not(?:\s+(?:of|for|in|on|with))?|without)\s+"
    r"(?:an?\s+|the\s+)?([\w.+-]{2,64})",
    re.IGNORECASE,
)
_WORD = re.compile(r"[\w’'-]+|[.,;:!?()]")
NEGATIONS = frozenset({"not", "no", "never", "without", "cannot", "neither", "nor", "except", "excluding"})
"""They say nothing of a subject."""
_NEGATES = re.compile(rf"{'|'.join(sorted(NEGATIONS))}|\w+n['’]t", re.IGNORECASE)
_ASKS_WITHOUT = re.compile(
    r"\b(?:which|what|who|list|show|name|find|all|any|are there)\b(?:\s+[\w’'-]+){0,3}?"
    rf"\s+(?:{_NEGATES.pattern}|other than|apart from)\b",
    re.IGNORECASE,
)
_IN_TWO_WORDS = re.compile(r"\b(?:other than|apart from)\b", re.IGNORECASE)
_ENDS = frozenset({"and", "or", "but", "with", "when", "if", "because", "while", *".,;:!?()"})
_SYMPTOM = re.compile(
    r"\b(?:why|how\s+come|yet|no longer|if|when|cannot|can['’]t|couldn['’]t|could\s+not|can\s+not|won['’]t)\b",
    re.IGNORECASE,
)
"""What does not work is asked for by what it says."""
_ASKS = re.compile(r"\s*(?:which|what|who|where|list|show|name|find|are|is|does|do|any|all|how)\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n\s*\n|\n(?=\s*(?:[-*#|]|\d+[.)]))")
_UN = ("un", "non", "in", "dis")


def left_out(text: str) -> tuple[str, tuple[str, ...]]:
    """Return a question without the words that it excludes, and these words.

    If no other words are left, the question is unchanged and there are no excluded words.
    """
    if text.isupper() or len(text) > MOST_CHARACTERS or "\n" in text.strip():
        return text, ()
    words = [next(filter(None, found)) for each in (_MINUS, _NOT) for found in each.findall(text)]
    asked = " ".join(_NOT.sub(" ", _MINUS.sub(" ", text)).split())
    return (asked, tuple(dict.fromkeys(words))[:MOST_LEFT_OUT]) if words and asked else (text, ())


def not_left_out(text: str) -> str:
    """Return the name after "without" or a similar word, which does not exclude passages; empty if there is none."""
    worded = _WORDED.search(text)
    if worded is None or (worded[0].lower().startswith("without") and not re.search(r"[A-Z_\d]", worded[1])):
        return ""
    return worded[1]


def is_question(text: str) -> bool:
    """Tell whether a text is a question in words, not a name, phrase or message."""
    return text.rstrip().endswith("?") or _ASKS.match(text) is not None


@lru_cache(maxsize=256)
def negated_terms(text: str) -> frozenset[str]:
    """Return the terms that a question negates; empty if it describes something that does not work.

    The negation must closely follow the subject, as in "which endpoints do not". A later negation is about something
    else and is ignored.
    """
    is_asked = _ASKS_WITHOUT.search(text) is not None or len(text.split()) <= _SHORT_WORDS
    return frozenset(_negated(text)) if is_asked and not _SYMPTOM.search(text) else frozenset()


def affirms(passage: str, negated: frozenset[str]) -> bool:
    """Tell whether a passage states the negated terms and never negates them."""
    says = False
    for unit in _SENTENCE_END.split(passage):
        terms = frozenset(sequence(unit))
        if {f"{prefix}{term}" for term in negated for prefix in _UN} & terms or negated & {*_negated(unit)}:
            return False
        says = says or bool(negated & terms)
    return says


def _negated(text: str) -> Iterator[str]:
    """Yield the terms between a negation and the end of its clause."""
    words = _WORD.findall(_IN_TWO_WORDS.sub("except", text))
    for place, word in enumerate(words):
        if not _NEGATES.fullmatch(word):
            continue
        count = 0
        for following in words[place + 1 :]:
            if following.lower() in _ENDS or count == NEAR_WORDS:
                break
            if following.lower() not in FUNCTION_WORDS:
                yield from sequence(following)
                count += 1
