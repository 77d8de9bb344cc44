"""A question that follows others: what is searched for it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nornweave.core.text.analyzer import FUNCTION_TERMS, query_terms
from nornweave.core.text.checked_values import MAX_QUERY_CHARACTERS

FEW_TERMS = 2
"""With less than these a question says nothing by itself: "and in production?"."""
SHORT_TERMS = 5
"""With less than these a pronoun stands for something that was named before: "how long does it wait?"."""
_PRONOUN = re.compile(r"\b(?:it|its|they|them|theirs?|these|those)\b|\b(?:this|that|there)\W*\Z", re.IGNORECASE)


def in_thread(question: str, before: Sequence[str]) -> str:
    """Return what is searched for a question after others: those that it leans on, and then itself.

    A question leans on the one before if it says less than two words of its own, or is short and has a pronoun.

    Args:
        before: what was asked before it, oldest first.
    """
    asked = question
    for earlier in reversed(before):
        room = MAX_QUERY_CHARACTERS - len(asked) - 1
        if room <= 0 or not leans(asked):
            break
        asked = f"{earlier[:room]}\n{asked}"
    return asked


def leans(question: str) -> bool:
    """Tell whether a question needs the one before it."""
    terms = len(set(query_terms(question)) - FUNCTION_TERMS)
    return terms < FEW_TERMS or (terms < SHORT_TERMS and bool(_PRONOUN.search(question)))
