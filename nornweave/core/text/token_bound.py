"""How many tokens a text has at most, without a tokenizer: models differ, and none of theirs is loaded here."""

from __future__ import annotations

import re

# Longer runs of letters are seldom words: keys, encoded data.
LONGEST_WORD = 12
# From here on a character costs its bytes: tokenizers know few of them as a whole.
RARE = "\u1000"

_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^\sA-Za-z0-9]+| +|\s")


def bound_tokens(text: str) -> int:
    """Return an estimate of a text's tokens that is rather too high.

    Measured over prose, code, JSON, encoded data, digits, signs, blanks and rare scripts with the tokenizers of Claude
    2, cl100k and o200k: 1.3 to 1.6 times the tokens of prose and code, at least 0.75 times those of random characters
    (``tests/text/test_token_bound.py``).
    """
    return sum(_cost(match[0]) for match in _PIECE.finditer(text))


def _cost(piece: str) -> int:
    first, length = piece[0], len(piece)
    if not piece.isascii():
        return sum(1 if character < RARE else len(character.encode("utf-8", "replace")) for character in piece)
    if first.isalpha():
        return -(-length // 4) if length <= LONGEST_WORD else -(-length // 2)
    if first.isdigit():
        return -(-length // 2)
    if first == " ":
        return 0 if length == 1 else -(-length // 4)
    return length
