"""Code that no grammar reads: its sections with their titles, and pieces that are cut at sections.

Lines at the margin open sections: ``[section]``, the target of a Makefile, a stage of a Dockerfile, a block in braces,
a function; so do banners, which are comments drawn as headings, in code of any language.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from pathlib import PurePosixPath
from textwrap import shorten

from nornweave.core.text.spans import LINE, PARAGRAPH, WORD, TokenIndex, pack, split
from nornweave.core.types import Span

TEXT_CUTS = (PARAGRAPH, LINE, WORD)
"""Where code is cut when its syntax does not help."""

_MARK = r"(?://+|--|/?\*+|dnl\b|[#;%!\"])"
_RULE = r"[-=#*~_+/]{3,}"
_RULED = rf"[ \t]*{_MARK}?[ \t]*{_RULE}[^\w\n]*"
_BANNER = (
    rf"[ \t]*{_MARK}[ \t]*{_RULE}[ \t]*(?P<banner>\w[^\n]{{1,78}}?)[ \t]*{_RULE}[^\w\n]*$"
    rf"|{_RULED}\n[ \t]*{_MARK}[ \t]*(?P<boxed>\w[^\n]{{1,78}}?)[^\w\n]*\n{_RULED}$"
)
_LINES = {
    "make": r"(?P<target>(?![.#])[^\s:=#][^:=#\n]{0,200}?)[ \t]*::?(?![=:])(?:[ \t][^=\n]*)?$",
    "dockerfile": r"(?i:FROM)[ \t]+(?:--\S+[ \t]+)*(?P<image>\S+)(?:[ \t]+(?i:AS)[ \t]+(?P<stage>\S+))?",
    "jsonnet": (
        r" {0,2}(?:local[ \t]+)?['\"]?(?P<key>[\w-]+)['\"]?(?:\([^()\n]*\))?[ \t]*(?:\+?:{1,3}|=)"
        r"(?:[^\n]*[{\[(])?[ \t]*$"
    ),
    "": (
        r"\[{1,2}(?P<section>[^\[\]\n]{1,120})\]{1,2}[ \t]*(?:[#;].*)?$"
        r"|\{\{-?[ \t]*define[ \t]+\"(?P<template>[^\"\n]+)\""
        r"|(?i:(?:export[ \t]+)?(?:function|macro|sub))[ \t(]+(?P<function>[\w:.-]+)"
        r"|(?!(?:if|for|while|else|elif|switch|do|try|catch|return|case|with)\b)"
        r"(?:(?P<keyword>[a-z]\w*)[ \t]+(?P<name>[^\s{}=();]+)|(?P<head>[\w.@$*/~\"'#-][^{}=();\n]{0,100}?))"
        r"[ \t]*(?:\([^()\n]*\))?[ \t]*=?[ \t]*\{[ \t]*(?:(?:#|//).*)?$"
    ),
}
_PATTERNS = {kind: re.compile(f"^(?:{_BANNER}|{line})", re.MULTILINE) for kind, line in _LINES.items()}
_ONLY_BANNERS = re.compile(f"^(?:{_BANNER})", re.MULTILINE)
_ABOVE = re.compile(
    r"(?:^[ \t]*(?:#|//|;|--|/?\*|dnl\b)[^\n]*\n|^(?:\{\{-?[ \t]*)?/\*(?:(?!\*/).)*+\*/(?:[ \t]*-?\}\})?[ \t]*\n)+\Z",
    re.MULTILINE | re.DOTALL,
)
_MAKE = frozenset({".mk", ".am", ".make"})
_MOST = 2_000
"""Characters of comments that stand above a section."""


class Sections:
    """The sections of a text, in order."""

    def __init__(self, text: str, path: str, *, language: str = "", has_grammar: bool = False) -> None:
        """Find the sections. If a grammar names everything else, only banners are sections."""
        name = PurePosixPath(path.lower()).name
        is_make = PurePosixPath(name).suffix in _MAKE or "makefile" in name or name == "justfile"
        kind = "make" if is_make else "dockerfile" if language == "dockerfile" else ""
        kind = "jsonnet" if name.endswith((".jsonnet", ".libsonnet")) else kind
        pattern = _ONLY_BANNERS if has_grammar and kind != "dockerfile" else _PATTERNS[kind]
        found = [(match.start(), _name(match)) for match in pattern.finditer(text)]
        self._starts = [start for start, _ in found]
        self._names = [name for _, name in found]
        self._text = text

    def title(self, span: Span) -> str | None:
        """Return the title of a part of the text: all sections that begin in it, or the one that it continues."""
        first, last = bisect_left(self._starts, span.start), bisect_left(self._starts, span.end)
        goes_on = first == last or self._text[span.start : self._begin(self._starts[first], span.start)].strip()
        names = self._names[first - 1 if first and goes_on else first : last]
        return shorten(", ".join(dict.fromkeys(names)), 120, placeholder=" …") or None

    def pieces(self, span: Span, index: TokenIndex, limit: int) -> list[Span]:
        """Cut a part of the text at its sections, and long ones at blank lines and lines, without gaps."""
        inner = self._starts[bisect_right(self._starts, span.start) : bisect_left(self._starts, span.end)]
        cuts = [span.start, *(self._begin(start, span.start) for start in inner), span.end]
        whole = [Span(start, end) for start, end in zip(cuts, cuts[1:], strict=False) if start < end]
        return list(pack((part for each in whole for part in split(each, index, limit, TEXT_CUTS)), index, limit))

    def _begin(self, start: int, least: int) -> int:
        """Return the start of the comments above a section."""
        above = _ABOVE.search(self._text, max(least, start - _MOST), start)
        return above.start() if above else start


def _name(match: re.Match[str]) -> str:
    found = {group: value for group, value in match.groupdict().items() if value}
    found.pop("keyword", "")
    named = found.get("stage") or next(iter(found.values()), "")
    return " ".join(named.strip("\"' ").split())
