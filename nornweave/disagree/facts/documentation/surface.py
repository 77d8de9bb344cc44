"""Blank out the markup of a text; offsets stay the same."""

from __future__ import annotations

import re
from collections.abc import Callable

from nornweave.core.text.patterns import lazy_pattern

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
_UNDERSCORE = lazy_pattern(r"(?<=\w)\\_(?=\w)")
_CHECKBOX = lazy_pattern(r"^([ \t]*[-*+][ \t]+)\[[ xX]\](?=[ \t])", re.MULTILINE)
# A link, or a code span, in which none is looked for: ``[$path]($style)``.
_LINK = lazy_pattern(
    r"`[^`\n]{1,400}`(?!`)|!?\[([^\[\]]{1,200})\](?:\([^()\s]{0,500}(?:\s\"[^\"\n]{0,200}\")?\)|\[[^\[\]\n]{1,100}\])"
)


def surface_of(text: str, *, comment: bool) -> str:
    """Return a text of the same length and lines with only words, code spans and punctuation.

    Args:
        comment: whether ``#`` and ``*`` before a line are comment marks and not Markdown.
    """
    if comment:
        text = _MARKER.sub(_blank, text)
    for sign, pattern, replacement in _STEPS:
        if sign in text:
            text = _replaced(text, pattern, replacement)
    return text if comment or "\\" not in text else _replaced(text, _ESCAPES, _unescaped)


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
)
