"""Tokens of a line of documentation, in any notation: names, literals, words and punctuation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.expressions import read_value
from nornweave.disagree.facts.values import UNITS, Value

MAX_LINE = 2_000
_NUMBER = r"\d{1,3}(?:[ ,_]\d{3})+(?!\d|\.\d)|0x[0-9a-fA-F]+|\d[\d_]*(?:\.\d+)?(?:[eE][-+]?\d+)?"
_UNIT_WORDS = "|".join(sorted((word for word in UNITS if len(word) > 1), key=len, reverse=True))
_UNIT = rf"(?:[KMGTkmg]i?B|[smhdwKMGk%])(?!\w)|[ -]?(?i:{_UNIT_WORDS})(?!\w)"
_COUNTED = "one|two|three|four|five|six|seven|eight|nine|ten|fifteen|twenty|thirty|sixty|ninety"
_FACTOR = r" ?(?:\\?\*\*?|<<|×|\^) ?(?:\d[\d_]*|time\.[A-Z]\w+)(?!\w|\.\w)"
_TOKEN = lazy_pattern(
    r"``[^`\n]{1,200}``|`[^`\n]{1,200}`|\"[^\"\n]{0,80}\"|(?<!\w)'[^'\n]{0,80}'(?!\w)|“[^”\n]{1,80}”"
    r"|\[[^\[\]\n]{0,300}\](?:\w+\{[^{}\n]{0,200}\})?(?![\w(])|\{ ?\}"
    r"|--?[a-zA-Z][\w.-]{0,60}\w|(?<=[ (]):[a-z]\w{1,40}(?![\w:])"
    r"|(?i:no (?:limit|maximum|timeout)|not (?:set|enabled)|(?:turned|switched) o(?:n|ff)|empty (?:string|list))\b"
    rf"|(?i:{_COUNTED})[ -](?i:{_UNIT_WORDS})(?!\w)|[A-Za-z_]\w{{0,60}}(?:[._-]\w{{1,60}}){{0,8}}"
    rf"|\d+(?:\.\d+){{2,}}|(?:\d+(?:ms|[hms])){{2,6}}(?!\w)|-?(?:{_NUMBER})(?:(?:{_FACTOR}){{1,4}}|(?: ?{_UNIT})?)"
    r"|(?<![\w*])\\\*(?![\w*\\])|[^\s*]"
)
_IDENTIFIER = lazy_pattern(r"^--?[a-zA-Z]|[a-z0-9][A-Z]|\w_\w|\w\.\w|\w-\w|^[A-Z]{3,}$")
_LITERAL = lazy_pattern(
    r"-?\d|[\[{\"'“]|:\w|(?:true|false|none|null|nil|undefined|unset|(?:not )?enabled|disabled|\w+ o(?:n|ff)|unlimited"
    r"|infinit[ey]|not set|no [mlt]\w+|empty \w+|[a-z]+[ -][a-z]+s?)$", 2
)  # fmt: skip
_GROUPED = lazy_pattern(r"\d{1,3}(?: \d{3})+(?!\d)")
_WORDS = {"turned on": "on", "switched on": "on", "turned off": "off", "switched off": "off", "not enabled": "off",
          "empty string": '""', "empty list": "[]"}  # fmt: skip
_PLAIN = lazy_pattern(
    r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*$|[A-Z]{2,12}$|:[a-z]+:?$|[./~][\w./~-]{1,80}$|\w+://\S+$|[a-z][\w.-]*:\d{2,5}$"
    r"|[a-z]+/[a-z0-9.+-]+$|\d+(?:\.\d+){2,3}(?::\d+)?$|\*$|[A-Z][a-z]+$"
)
"""A string without quotes that is no name."""


QUOTES = ('"', "'", "“")
"""What a string begins with; a mark of code is none."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token. ``text`` is without backticks, ``start`` and ``end`` include them. Code and strings are ``quoted``."""

    text: str
    start: int
    end: int
    quoted: bool = False

    @property
    def name(self) -> str:
        """Return the token's text as a name, without the quotes of a JSON key."""
        return self.text.strip("\"'") if self.quoted else self.text

    @property
    def is_identifier(self) -> bool:
        """Tell whether only names are spelt like this: ``max_size``, ``--max-size``, ``maxSize``, ``a.b``."""
        return bool(_IDENTIFIER.search(self.text))

    @property
    def value(self) -> Value | None:
        """The value of the token if it is a literal; ``None`` otherwise. A quoted word is a string."""
        return value_of(self.text, is_quoted=self.quoted)

    @property
    def is_plain(self) -> bool:
        """Tell whether a quoted token is a string and not a name: ``gzip``, ``/var/log``."""
        return self.text.startswith(QUOTES) or bool(_PLAIN.match(self.text))

    @property
    def shape(self) -> str:
        """The token in a template: ``#`` for a literal, ``Q`` for a quotation, ``N`` for a name, else its own word."""
        if value_of(self.text) is not None:
            return "#"
        if self.quoted:
            return "Q"
        return "N" if self.is_identifier else self.text.lower()


def tokens_of(line: str, start: int = 0) -> Iterator[Token]:
    """Yield the tokens of a line that begins at ``start``. Code of several words and most brackets are split."""
    for match in _TOKEN.finditer(line[:MAX_LINE]):
        text, at = match[0], start + match.start()
        if text[0] == "[" and len(text) > 2 and value_of(text) is None:
            yield Token("[", at, at + 1)
            yield from tokens_of(text[1:], at + 1)
        elif text == r"\*":
            yield Token("*", at, at + 2, quoted=True)
        elif text[0] not in "`\"'“" or len(text) < 3:
            yield Token(text, at, at + len(text))
        else:
            yield from _quoted(text, at)


def _quoted(text: str, at: int) -> Iterator[Token]:
    inner = text.strip(text[0])
    is_code = text[0] == "`"
    if is_code and (" " in inner.strip() or "=" in inner) and value_of(inner) is None:
        yield from tokens_of(inner, at + text.index(inner))
    elif inner.strip():
        yield Token(inner.strip() if is_code else text, at, at + len(text), quoted=True)


@lru_cache(1 << 15)
def value_of(text: str, *, is_quoted: bool = False) -> Value | None:
    """Return a token's number, boolean, list or null, or its string if it is quoted; ``None`` if it is a mere word."""
    if not (_LITERAL.match(text) or is_quoted):
        return None
    if text[0] == ":":  # a symbol of Ruby
        return Value("string", text[1:])
    if _GROUPED.match(text):
        text = text.replace(" ", "")
    if is_quoted and not _LITERAL.match(text):
        word = read_value(text) if text.islower() else None
        if word is not None and word.kind in {"boolean", "none", "unlimited"}:
            return word
        return Value("string", text) if len(text) <= 40 and " " not in text else None
    text = _WORDS.get(text.lower(), text).replace("^", "**").replace("×", "*").replace("\\*", "*")
    value = read_value(text.replace(",", "") if text[0].isdigit() else text)
    return value if value is not None and value.is_literal else None
