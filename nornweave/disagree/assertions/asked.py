"""Read what a question asks for, and what it is about."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from nornweave.disagree.assertions import forms
from nornweave.disagree.assertions.reading import content

_VERBS = r"(?:is|are|am|was|were|do|does|did|can|may|must|has|have|will)"
_WHAT = r"\b(?:what|which|whose)(?: is| are)?(?: the| our)?(?: current)?"
# What is asked for, by the words that ask.
_ASKED_FOR: Sequence[tuple[str, re.Pattern[str]]] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        ("may", r"\bwho(?: else)? (?:may|can|is (?:allowed|permitted|entitled|authori[sz]ed) to)\b"
         rf"|{_WHAT} \w+ (?:may|can)\b"),
        ("version", rf"{_WHAT} (?:\w+ )?(?:versions?|release)\b|{_WHAT} (?-i:[A-Z]\w+)\b"),
        ("date", rf"\bwhen\b|{_WHAT} (?:week|due )?(?:day|date|deadline|month|year|time)\b"),
        ("quantity", rf"\bhow (?!{_VERBS}\b|should|would|could|to|come|about)\w+(?: \w+)?"
         rf"|{_WHAT} (?:\w+ ){{0,2}}(?:limit|number|size|rate|maximum|accuracy|price|timeout)\b"),
        ("place", rf"\bwhere\b|{_WHAT} (?:place|folder|directory|path|machine|host|room|bucket|region|city|server)\b"),
        ("who", rf"\bwho(?:m|se)?\b|{_WHAT} (?:team|person|group|squad|contact|owner)\b"),
        ("answer", rf"^\W*{_VERBS}\b|[,;:] ?{_VERBS}\b"),
        ("name", _WHAT),
    )
)  # fmt: skip
_PERMITS = re.compile(r"\b(?:may|can|allowed|permitted)\b", re.IGNORECASE)
_UNSAID = forms.FILLERS | forms.SINCE | forms.MODALS | {"must"} | forms.THERE.keys()
"""Words of a question that say how something is asked about it."""
OPEN_KINDS = frozenset(("quantity", "date", "version", "answer"))
"""What is compared of two sentences that are alike if the question does not tell what it asks for."""
OPEN_KINDS_OF_CORPORA = OPEN_KINDS | {"may", "who"}
"""The same without a question."""
SURE = 0.6
"""Confidence: such a conflict is shown beside the answer and settles nothing."""


class Asked(NamedTuple):
    """What a question asks for, and what it is about.

    Attributes:
        kinds: the kinds of answer that it asks for; empty if they are unknown.
        about: the stems of the words that say what it is about, without common words.
        words: the stems in ``about`` and those of the common words.
        names: the stems in ``words`` that are written as names.
        how: the words that ask, in lower case: ``how often``.
        permits: whether the question asks what is permitted: ``how many may …``.
        owns: whether the question asks whose task something is: ``who is in charge of``.
        is_shared: whether ``about`` has the words that two sentences share, so that both sentences are about them.
    """

    kinds: frozenset[str]
    about: frozenset[str]
    words: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    how: str = ""
    permits: bool = False
    is_shared: bool = False
    owns: bool = False


def read_question(question: str) -> Asked:
    """Return what a question asks for and what it is about; all fields are empty if no kind of answer is found."""
    matches = [(kind, found) for kind, pattern in _ASKED_FOR if (found := pattern.search(question))]
    if not matches:
        return Asked(frozenset(), frozenset())
    kind, found = min(matches, key=lambda each: each[1].start())  # whom do I call when it fails
    kinds = {"date": {kind, "quantity"}, "name": {kind, *OPEN_KINDS - {"answer"}}}
    told = {form: written for form, written in content(question).items() if written.lower() not in _UNSAID}
    words = frozenset(told) - forms.STATES
    tasks = {form for form in words if told[form].lower() in forms.OWNS} if kind == "who" else set()
    words -= tasks if words > tasks else set()
    names = frozenset(form for form in words if not told[form].islower() and not question.startswith(told[form]))
    about, how = words - forms.COMMON or words, found[0].lower()
    return Asked(
        frozenset(kinds.get(kind, {kind})),
        about,
        words,
        names,
        how,
        _PERMITS.search(question) is not None,
        owns=bool(tasks),
    )
