"""Tokens of a line of documentation, in any notation: names, literals, words and punctuation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.expressions import read_value
from nornweave.disagree.facts.values import Value

MAX_LINE = 2_000
_NUMBER = r"\d{1,3}(?:[ ,_]\d{3})+(?!\d|\.\d)|0x[0-9a-fA-F]+|\d[\d_]*(?:\.\d+)?(?:[eE][-+]?\d+)?"
_UNIT = (
    r"(?:ns|[µu]s|ms|[KMGTkmg]i?B|[smhdwKMGk%])(?!\w)"
    r"|\s(?:milli|micro)?(?:seconds?|minutes?|hours?|days?|bytes?|percent)\b"
)
_TOKEN = lazy_pattern(
    r"``[^`\n]{1,80}``|`[^`\n]{1,80}`|\"[^\"\n]{1,40}\"|(?<!\w)'[^'\n]{1,40}'(?!\w)"
    r"|--?[a-zA-Z][\w.-]{0,60}\w|[A-Za-z_]\w{0,60}(?:[._-]\w{1,60}){0,8}"
    rf"|(?:\d+(?:ms|[hms])){{2,6}}(?!\w)|-?(?:{_NUMBER})(?: ?{_UNIT})?|[^\s*]"
)
_IDENTIFIER = lazy_pattern(r"^--?[a-zA-Z]|[a-z0-9][A-Z]|\w_\w|\w\.\w|\w-\w|^[A-Z]{3,}$")
_LITERAL = lazy_pattern(r"-?\d|[\"']|(?:true|false|none|null|nil)$", 2)
_GROUPED = lazy_pattern(r"\d{1,3}(?: \d{3})+(?!\d)")


@dataclass(frozen=True, slots=True)
class Token:
    """A token; ``start`` counts from the beginning of its line, ``quoted`` it was marked as code or a string."""

    text: str
    start: int
    quoted: bool = False

    @property
    def is_identifier(self) -> bool:
        """Tell whether it is spelt as only names are: ``max_size``, ``--max-size``, ``maxSize``, ``a.b``."""
        return bool(_IDENTIFIER.search(self.text))

    @property
    def value(self) -> Value | None:
        """The literal that it is; a quoted word is a string."""
        return value_of(self.text, is_quoted=self.quoted)

    @property
    def shape(self) -> str:
        """What it is in a template: a literal, a name, something quoted, or its own word."""
        if value_of(self.text) is not None:
            return "#"
        if self.quoted:
            return "Q"
        return "N" if self.is_identifier else self.text.lower()


def tokens_of(line: str, start: int = 0) -> Iterator[Token]:
    """Yield the tokens of a line; code of several words is taken apart."""
    for match in _TOKEN.finditer(line[:MAX_LINE]):
        text = match[0]
        if text[0] not in "`\"'" or len(text) < 3:
            yield Token(text, start + match.start())
            continue
        inner = text.strip(text[0])
        if text[0] == "`" and " " in inner.strip() and value_of(inner) is None:
            yield from tokens_of(inner, start + match.start() + text.index(inner))
        elif inner.strip():
            yield Token(inner.strip() if text[0] == "`" else text, start + match.start(), quoted=True)


@lru_cache(1 << 15)
def value_of(text: str, *, is_quoted: bool = False) -> Value | None:
    """Return the literal that a token is: a number, a switch, nothing, or a string if it is quoted."""
    if not (_LITERAL.match(text) or is_quoted):
        return None
    if _GROUPED.match(text):
        text = text.replace(" ", "")
    if is_quoted and not _LITERAL.match(text):
        return Value("string", text) if len(text) <= 40 and " " not in text else None
    value = read_value(text.replace(",", "") if text[0].isdigit() else text)
    return value if value is not None and value.is_literal and value.kind in _KINDS else None


_KINDS = frozenset(("number", "boolean", "string", "none"))
