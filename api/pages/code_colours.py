"""Colours of code: Pygments' tokens as marks of a handful of kinds; the style sheet has a colour for each."""

from __future__ import annotations

from collections.abc import Iterator

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Keyword, Name, Number, Operator, String
from pygments.util import ClassNotFound

from api.pages.text_runs import Mark

# Lexers are regular expressions, which hold the interpreter while they run: only so much text at once, and only of
# languages whose lexers keep to that (HTML's does not: `<?` over 27,000 characters took it 2 s).
MAX_COLOURED_CHARACTERS = 50_000
MAX_COLOURED_LINE = 1_000
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
# The most special first: a docstring is a string, and reads like a comment.
_KINDS = (
    (Comment, "comment"),
    (String.Doc, "comment"),
    (String, "string"),
    (Number, "number"),
    (Keyword.Constant, "number"),
    (Keyword, "keyword"),
    (Operator.Word, "keyword"),
    (Name.Function, "definition"),
    (Name.Class, "definition"),
    (Name.Decorator, "definition"),
    (Name.Tag, "keyword"),
    (Name.Attribute, "definition"),
)


def colours_of(text: str, language: str) -> list[Mark]:
    """Return the coloured parts of a text, in order and apart; none for an unknown language or a long text."""
    lexer = _lexer(language)
    if lexer is None or len(text) > MAX_COLOURED_CHARACTERS or max(map(len, text.split("\n"))) > MAX_COLOURED_LINE:
        return []
    return list(_marks(lexer, text))


def _marks(lexer: Lexer, text: str) -> Iterator[Mark]:
    # Not `get_tokens`, which changes line ends and blank space: positions would be those of another text.
    for start, token, value in lexer.get_tokens_unprocessed(text):
        if value and (kind := _kind(token)):
            yield Mark(start, start + len(value), kind)


def _kind(token: object) -> str:
    return next((kind for type_, kind in _KINDS if token in type_), "")


def _lexer(language: str) -> Lexer | None:
    if language not in _LEXERS:
        return None
    try:
        return get_lexer_by_name(_LEXERS[language], stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
