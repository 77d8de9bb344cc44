"""Tokens of a line of documentation, in any notation: names, literals, words and punctuation.

The surface of a text has its markup blanked out; offsets stay the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.expressions import read_value
from nornweave.disagree.facts.names import words_of
from nornweave.disagree.facts.values import UNITS, Value

MAX_LINE = 2_000
MAX_TEXT = 60
"""Characters of a string without quotes."""
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
_GIVEN = lazy_pattern(
    r"(?i:\bdefault(?:s|ed|ing)?(?: value)?|\bby default,? it)(?P<sign>(?: is| to)?[*_ ]*[:=])?"
    r"(?(sign)|(?: is| to)(?: set(?: up)? to)?(?: be)?)[ *_]*"
    r"(?:(?=`)(?P<code>`[^`\"\n]{1,60} [^`\"\n]{1,60}`)|(?P<bare>(?:[a-z]+://[^\s\"'`,;()<>\\]+"
    r"|(?:[A-Za-z][\w.-]*|\d+(?:\.\d+){3}):\d{2,5}|[~/$.%]?[A-Za-z~/$][\w./~$%{}@-]*)(?<![.*_-]))"
    r"(?=[.*_]*\s*(?:$|[,;()\]]|[.*_]\s)))"
)
"""What is given as a default: code of several words, or a word without marks at the end of its clause."""
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

_MARKER = lazy_pattern(
    r"^[ \t]*(?:/\*+[!*]?|//[/!]?|#[:!|]?|\*+/|\*(?!\*)|--[|!]?(?=\s)|;+|%+|'(?=\s))[ \t]?"
    r"|\*+/[ \t]*$|\"{3}|'{3}",
    re.MULTILINE,
)
_TAGS = (
    "a|abbr|b|big|blockquote|br|c|center|code|dd|details|div|dl|dt|em|font|h[1-6]|hr|i|img|kbd|li|ol|p|pre|samp|section|"
    "small|span|strong|sub|summary|sup|table|tbody|td|tfoot|th|thead|tr|tt|u|ul|var|html|body|head|nav|main|article|"
    "script|style|link|meta|input|button|label|svg|path|g|footer|header|aside|figure|caption|col|colgroup"
)
_TAG = lazy_pattern(rf"<(/?)({_TAGS})(?:\s[^<>]{{0,500}})?/?>", re.IGNORECASE)
_COMMENT = lazy_pattern(r"<!--[\s\S]{0,5000}?-->")
_ROLE = lazy_pattern(r"(?<![\w`]):[\w:+-]{1,40}:(?=`)|`__?(?!\w)")
_JAVADOC = lazy_pattern(r"\{@(?:code|link|linkplain|literal|value)\s+([^{}\n]{1,200})\}")
# ``<see cref="RetryOptions.Delay"/>`` of comments in C#.
_SEE = lazy_pattern(
    r"<(?:see|seealso|paramref|typeparamref) (?:cref|name|langword)=\"(?:[A-Z]:)?(-?[\w.]{1,120})\" ?/>"
)
# Fenced code, which is left as it is; a code span; a run with an escaped character: ``worker\\_count``.
_ESCAPES = lazy_pattern(
    r"^[ \t]*(?P<fence>```+|~~~+)[\s\S]*?(?:^[ \t]*(?P=fence)|\Z)"
    r"|(?P<code>(?P<ticks>`{1,2})(?!`)[^`\n]{1,400}(?P=ticks)(?!`))|(?<![^\s`])[^\s`]{0,200}\\[!-)+-/:-@\[\]^_{}~][^\s`]*",
    re.MULTILINE,
)
_ESCAPED = lazy_pattern(r"\\([\\!-)+-/:-@\[\]^_{}~])")
_TABLE = lazy_pattern(r"<table\b(?:(?!<table\b)[\s\S]){0,100000}?</table\s*>", re.IGNORECASE)
_HOLDS_BLOCKS = lazy_pattern(r"<(?:pre|h[1-6]|ul|ol|dl|blockquote)\b|```|~~~", re.IGNORECASE)
_TABLE_TAG = lazy_pattern(r"<(/?)(table|tr|t[dh])\b[^<>]*>", re.IGNORECASE)
_MARKS_OF_TABLES = {"table": "¦===", "tr": "¦-", "th": "¦!", "td": "¦"}
"""What a table of HTML is drawn with, for ``tables``."""
_STARTS = lazy_pattern(r"\\[#+=>-]")
_SYMBOL = lazy_pattern(
    r"^([ \t]*(?:[-*+][ \t]+)?)(?:&#x?[0-9A-Fa-f]{1,6};|:\w+:(?=[ \t]*`)|[\u2600-\u27bf\ufe0f\U0001f000-\U0001faff])+",
    re.MULTILINE,
)
"""A picture before what a line says."""
_QUOTE = lazy_pattern(r"^[ \t]{0,3}(?:>[ \t]?)+(?:\[![A-Z]+\])?", re.MULTILINE)
_TITLE = lazy_pattern(
    r"^(?:#{1,6}[ \t]+(?P<marked>)|)(?P<title>[A-Z]\w*(?:[ -]\w+){1,4})[ \t#]*"
    r"(?(marked)$|(?=\n([=~^-])\3{2,}$))", re.MULTILINE
)  # fmt: skip
_SPELT = lazy_pattern(r"`-{0,2}([a-z]\w*(?:[_-]\w+)+|[a-z]+(?:[A-Z]\w*)+)\b")
_UNDERSCORE = lazy_pattern(r"(?<=\w)\\_(?=\w)")
_CHECKBOX = lazy_pattern(r"^([ \t]*[-*+][ \t]+)\[[ xX]\](?=[ \t])", re.MULTILINE)
# A link, or a code span, in which none is looked for: ``[$path]($style)``.
_LINK = lazy_pattern(
    r"`[^`\n]{1,400}`(?!`)|!?\[([^\[\]]{1,200})\](?:\([^()\s]{0,500}(?:\s\"[^\"\n]{0,200}\")?\)|\[[^\[\]\n]{1,100}\])"
)


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
    """Yield the tokens of a line that begins at ``start``. Code of several words and most brackets are split.

    What a line announces as a default is one token, a string if it is no other literal: ``Default: /var/lamp``.
    """
    given = {one.start(one.lastgroup or 0): one for one in _GIVEN.finditer(line)} if "efault" in line[:MAX_LINE] else {}
    behind = 0
    for match in _TOKEN.finditer(line[:MAX_LINE]):
        text, at = match[0], start + match.start()
        said = given.get(match.start())
        word = said[said.lastgroup or 0].strip("`") if said is not None else ""
        if (
            said
            and (said["sign"] or word == "empty" or not (word.isalpha() and word.islower()))
            and value_of(word) is None
        ):
            behind = said.end(said.lastgroup or 0)
            yield Token(f'"{word}"' if word != "empty" else '""', at, start + behind, quoted=True)
        elif match.start() < behind:
            continue
        elif text[0] == "[" and len(text) > 2 and value_of(text) is None:
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
    if not _LITERAL.match(text):
        value = read_value(text) if text.islower() else None
        value = value if value is not None and value.kind in {"boolean", "none", "unlimited"} else None
    else:
        plain = _WORDS.get(text.lower(), text).replace("^", "**").replace("×", "*").replace("\\*", "*")
        value = read_value(plain.replace(",", "") if plain[0].isdigit() else plain)
    if value is None and is_quoted and len(text) <= MAX_TEXT and " " not in text:
        return Value("string", text)  # a word, an address, a template such as {{.Data}}
    return value if value is not None and value.is_literal else None


def surface_of(text: str, *, comment: bool, talk: bool = False) -> str:
    """Return a text of the same length and lines with only words, code spans and punctuation.

    Args:
        comment: whether ``#`` and ``*`` before a line are comment marks and not Markdown.
        talk: whether ``>`` before a line marks what somebody else said.
    """
    if comment:
        text = _MARKER.sub(_blank, text)
    for sign, pattern, replacement in _STEPS:
        if sign in text and not (talk and pattern is _QUOTE):
            text = _replaced(text, pattern, replacement)
    if comment:
        return text
    spelt = {"".join(words_of(one)) for one in _SPELT.findall(text)}
    text = _TITLE.sub(lambda match: _as_spelt(match, spelt), text)
    return text if "\\" not in text else _replaced(text, _ESCAPES, _unescaped)


def _as_spelt(match: re.Match[str], spelt: Collection[str]) -> str:
    """Return a heading as one name if the page spells it so elsewhere: *Slow row size* for ``slow_row_size``."""
    title = match["title"]
    return match[0].replace(title, title.replace(" ", "_")) if "".join(words_of(title)) in spelt else match[0]


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _replaced(text: str, pattern: re.Pattern[str], replacement: _Replacement) -> str:
    """Replace the matches of a pattern. Line breaks stay."""

    def made(match: re.Match[str]) -> str:
        new = replacement(match)
        if "\n" not in match[0]:
            return new
        return "".join("\n" if old == "\n" else one for old, one in zip(match[0], new, strict=True))

    return pattern.sub(made, text)


def _tag(match: re.Match[str]) -> str:
    """Return blanks in place of a tag, with a backtick if it marks code, or ``- `` if it begins a list entry."""
    closing, tag = match[1], match[2].lower()
    if tag in {"c", "code", "tt", "kbd", "samp", "var"}:
        return "`".ljust(len(match[0])) if closing else "`".rjust(len(match[0]))
    return ("- " if tag == "li" and not closing else "").ljust(len(match[0]))


def _drawn(table: re.Match[str]) -> str:
    """Return a table of HTML with marks for its cells; unchanged if its cells contain blocks such as lists."""
    return table[0] if _HOLDS_BLOCKS.search(table[0]) else _replaced(table[0], _TABLE_TAG, _drawn_tag)


def _drawn_tag(match: re.Match[str]) -> str:
    is_drawn = not match[1] or match[2].lower() == "table"
    return (_MARKS_OF_TABLES[match[2].lower()] if is_drawn else "").ljust(len(match[0]))


def _javadoc(match: re.Match[str]) -> str:
    return f"`{match[1].strip()}`".rjust(len(match[0]))


def _link(match: re.Match[str]) -> str:
    if match[1] is None:
        return match[0]
    return match[1].rjust(match.end(1) - match.start()).ljust(len(match[0]))


def _unescaped(match: re.Match[str]) -> str:
    """Return a word without its escapes, padded with blanks. A sign that would begin a block stays escaped."""
    if match["fence"] or (_STARTS.match(match[0]) and not match.string[: match.start()].rpartition("\n")[2].strip()):
        return match[0]
    shown = _UNDERSCORE.sub("_", match[0]) if match["code"] else _ESCAPED.sub(_character, match[0])
    return shown.ljust(len(match[0]))


def _character(match: re.Match[str]) -> str:
    return match[0] if match[1] == "\\" else match[1]


def _entry(match: re.Match[str]) -> str:
    return match[1].ljust(len(match[0]))


_Replacement = Callable[[re.Match[str]], str]
_STEPS: tuple[tuple[str, re.Pattern[str], _Replacement], ...] = (
    ("<!--", _COMMENT, _blank),
    ("{@", _JAVADOC, _javadoc),
    ('="', _SEE, _javadoc),
    ("</t", _TABLE, _drawn),
    ("<", _TAG, _tag),
    (":`", _ROLE, _blank),
    ("](", _LINK, _link),
    ("] ", _CHECKBOX, _entry),
    (">", _QUOTE, _blank),
    ("", _SYMBOL, _entry),
)
