"""Values in prose that are followed by their flag: *Hooks time out after 15s. `-hook-timeout` changes this*."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.documentation.tokens import Token, tokens_of
from nornweave.disagree.facts.names import read_name

Stretch = tuple[int, int]

_CHANGES = lazy_pattern(r"(?:default|chang|overrid|overrul|configur|adjust|customi[sz]|unless)", 2)
"""Says that there is a value which the flag replaces."""
BACK = 2
"""Sentences before that of a flag in which its value may stand."""
BEFORE, BEHIND = 4, 1
"""Tokens between a number and what it is a number of, at most: *timeout of hooks is 15s*, *5 retries*."""
STEM = 4
"""Letters that forms of one word have in common: *retries*, *retried*."""


def flagged(text: str, said: Sequence[Stretch]) -> Iterator[tuple[Token, Token, Stretch]]:
    """Yield each number with the flag that is named after it, and the number's sentence: *20 turns … ``--max-turns``*.

    Args:
        said: the sentences of a paragraph, in order.
    """
    rows = [list(tokens_of(text[start:end], start)) for start, end in said]
    for at, row in enumerate(rows):
        first = at if any(map(_is_number, row)) else max(0, at - BACK)
        for flag in row:
            name = read_name(flag.name) if flag.quoted and flag.text.startswith("-") and flag.is_identifier else None
            if name is None or not _CHANGES.search(text, said[first][0], said[at][1]):
                continue
            word = name.name.split()[-1]
            found = [(one, said[place]) for place in range(first, at + 1) for one in _numbers_by(rows[place], word)]
            if len(found) == 1 and found[0][0].end < flag.start:
                yield found[0][0], flag, found[0][1]


def _numbers_by(row: Sequence[Token], word: str) -> Iterator[Token]:
    for at, one in enumerate(row):
        around = (*row[max(0, at - BEFORE) : at], *row[at + 1 : at + 1 + BEHIND])
        if _is_number(one) and any(_is_form_of(other.text.lower(), word) for other in around):
            yield one


def _is_number(token: Token) -> bool:
    return token.value is not None and token.value.kind == "number"


def _is_form_of(said: str, word: str) -> bool:
    return said == word or (len(said) >= STEM and said[:STEM] == word[:STEM])
