"""Colours of code: Pygments' tokens as marks of a few kinds. The style sheet has a colour for each kind."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from api.pages.text_runs import Mark

if TYPE_CHECKING:
    from pygments.lexer import Lexer

# Lexers are regular expressions, some of them of more than quadratic cost (Pygments 2.21: 24,000 lines `x` take that of
# C# 200 s), and they hold the interpreter. A single match of 20,000 hostile characters took at most 16 ms; between two
# matches the time is looked at.
MAX_COLOURED_CHARACTERS = 40_000
MAX_COLOURED_LINE = 1_000
COLOURED_WITHIN_S = 0.15
_LEXERS = {
    "bash": "bash",
    "c": "c",
    "cpp": "cpp",
    "csharp": "csharp",
    "dockerfile": "docker",
    "go": "go",
    "java": "java",
    "javascript": "javascript",
    "json": "json",
    "kotlin": "kotlin",
    "php": "php",
    "python": "python",
    "ruby": "ruby",
    "rust": "rust",
    "shell": "bash",
    "sql": "sql",
    "swift": "swift",
    "terraform": "terraform",
    "toml": "toml",
    "typescript": "typescript",
    "tsx": "tsx",
    "yaml": "yaml",
}
# Pygments' types of tokens; the most special first: a docstring is a string, and reads like a comment.
_KINDS = (
    ("Comment", "comment"),
    ("Literal.String.Doc", "comment"),
    ("Literal.String", "string"),
    ("Literal.Number", "number"),
    ("Keyword.Constant", "number"),
    ("Keyword", "keyword"),
    ("Operator.Word", "keyword"),
    ("Name.Function", "definition"),
    ("Name.Class", "definition"),
    ("Name.Decorator", "definition"),
    ("Name.Tag", "keyword"),
    ("Name.Attribute", "definition"),
)


def colours_of(text: str, language: str, within_s: float = COLOURED_WITHIN_S) -> list[Mark]:
    """Return the coloured parts of a text, in order and without overlaps.

    Args:
        text: the code; a long text gets no colours.
        language: as chunks name it; code in an unknown language gets no colours.
        within_s: CPU seconds of this thread; the code after that gets no colours.
    """
    lexer = _lexer(language)
    if lexer is None or len(text) > MAX_COLOURED_CHARACTERS or max(map(len, text.split("\n"))) > MAX_COLOURED_LINE:
        return []
    return list(_marks(lexer, text, time.thread_time() + within_s))


def _marks(lexer: Lexer, text: str, end_s: float) -> Iterator[Mark]:
    # Not `get_tokens`, which changes line ends and blank space: positions would be those of another text.
    for start, token, value in lexer.get_tokens_unprocessed(text):
        if time.thread_time() > end_s:
            return
        if value and (kind := _kind(token)):
            yield Mark(start, start + len(value), kind)


@cache
def _kind(token: object) -> str:
    name = f"{token}.".removeprefix("Token.")
    return next((kind for type_, kind in _KINDS if name.startswith(f"{type_}.")), "")


def _lexer(language: str) -> Lexer | None:
    if language not in _LEXERS:
        return None
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(_LEXERS[language], stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
