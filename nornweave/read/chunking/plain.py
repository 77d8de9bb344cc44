"""Code that no grammar reads: its sections with their titles, and pieces that are cut at sections.

Lines at the margin open sections: ``[section]``, the target of a Makefile, a stage of a Dockerfile, a block in braces,
a function; so do banners, which are comments drawn as headings, in code of any language.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, groupby, pairwise
from pathlib import PurePosixPath
from textwrap import shorten

from nornweave.core.text.spans import LINE, PARAGRAPH, WORD, TokenIndex, cut, pack, pack_outermost, split
from nornweave.core.types import Span

TEXT_CUTS = (PARAGRAPH, re.compile(r"\n[ \t]*(?://[/!]?|\*|#+|--)[ \t]*(?=\n)"), LINE, WORD)
"""Where code is cut when its syntax does not help."""

_MARK = r"(?://+|--|/?\*+|dnl\b|[#;%!\"])"
_RULE = r"[-=#*~_+/]{3,}"
_RULED = rf"[ \t]*{_MARK}?[ \t]*{_RULE}[^\w\n]*"
_BANNER = (
    rf"[ \t]*{_MARK}[ \t]*(?!-\*-){_RULE}[ \t]*(?P<banner>\w[^\n]{{1,78}}?)[ \t]*{_RULE}[^\w\n]*$"
    rf"|{_RULED}\n[ \t]*{_MARK}[ \t]*(?P<boxed>\w[^\n]{{1,78}}?)[^\w\n)\]?!]*\n{_RULED}$"
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
        r"|(?P<release>[\w.+-]+ \([\w.+:~-]+\)) [^;\n]*; *urgency="
        r"|\{\{-?[ \t]*define[ \t]+\"(?P<template>[^\"\n]+)\""
        r"|(?P<indent>[ \t]*)(?:(?i:(?:export[ \t]+)?(?:function|macro|sub))[ \t(]+(?P<function>[\w:.-]+)"
        r"|(?!#\s|(?i:if|for|foreach|while|else|elseif|elif|switch|do|try|catch|finally|return|case|with|begin|process)\b)"
        r"(?P<block>[\w.@$*/~\"'#-][^{}\n]{0,200}?)[ \t]*=?[ \t]*@?\{[ \t]*(?:(?:#|//).*)?$)"
    ),
}
_PATTERNS = {kind: re.compile(f"^(?:{_BANNER}|{line})", re.MULTILINE) for kind, line in _LINES.items()}
BANNERS = re.compile(f"^(?:{_BANNER})", re.MULTILINE)
_ABOVE = re.compile(
    r"(?:^[ \t]*(?:#|//|;|--|/?\*|dnl\b)[^\n]*\n|^(?:\{\{-?[ \t]*)?/\*(?:(?!\*/).)*+\*/(?:[ \t]*-?\}\})?[ \t]*\n)+\Z",
    re.MULTILINE | re.DOTALL,
)
_SAID = re.compile(r"^[\w.:-]+[ \t(]+(\"[^\"]+\"|'(?:[^']|'')+')")
_NAMED = re.compile(
    r"[a-z]\w*[ \t]+([^\s{}=();-][^\s{}=();]*)[ \t]*(?:\([^()]*\))?(?:[ \t]*:.*)?|([^{}=();]+?)[ \t]*(?:\([^()]*\))?",
    re.I,
)
"""What a block is called: what its head says in quotes, what follows its keyword, or all of its head."""
_FLAGS = re.compile(r"(?:^|\s)-|\w\$|[A-Za-z_]+[^\w]+\$")
_MAKE = frozenset({".mk", ".mak", ".am", ".make", ".just"})
_MOST = 2_000
"""Characters of comments that stand above a section."""


_CLOSING = re.compile(r"^(?P<indent>[ \t]*)(?:\}|end\w*\b)(?!.*\{[ \t]*$).*", re.MULTILINE | re.IGNORECASE)
"""The line that ends a block, and begins no other branch of it."""
_REMARK_LINES = re.compile(r"(?:[ \t]*(?:#|//|/?\*)[^\n]*\n|[ \t]*\n)+")
_GOES_ON = re.compile(r"[)\]}]|(?:else|elif|elsif|elseif|except|catch|finally|rescue|ensure|end\w*|fi|done|esac)\b")


def depth_of(text: str, at: int) -> int:
    """Return the depth of the line at ``at``, from its indentation. A line that continues the line above is deeper.

    A comment or a directive has the depth of the line below it. A place within a line is deepest of all.
    """
    before = text[max(0, at - _MOST) : at].rpartition("\n")[2]
    if before.strip():
        return _MOST
    line = at - len(before)
    remarks = _REMARK_LINES.match(text, line, line + _MOST)
    line = remarks.end() if remarks else line
    row = text[line : line + _MOST].expandtabs(4)
    indent = len(row) - len(row.lstrip(" "))
    return 2 * indent + (_GOES_ON.match(row, indent) is not None)


@dataclass(frozen=True, slots=True)
class _Section:
    """A named part of a text. A block ends at its closing brace, and any other section where the next one begins."""

    start: int
    end: int
    name: str


def _nested(heads: Iterable[re.Match[str]], text: str) -> Iterator[_Section]:
    """Yield the sections that begin at the ``heads``, in order.

    A block ends at a closing line of the same depth, or where another block of the same depth begins.
    """
    found: list[tuple[int, int, str, int]] = []
    for head in heads:
        indent = head.groupdict().get("indent")
        found.append((head.start(), head.end(), _name(head), -1 if indent is None else len(indent)))
    is_any = any(depth >= 0 for *_, depth in found)
    closings = [(each.end(), len(each["indent"])) for each in _CLOSING.finditer(text)] if is_any else []
    ends, opened, above = [len(text)] * len(found), list[int](), -1
    for at, number, depth in sorted(
        [(start, number, depth) for number, (start, _, _, depth) in enumerate(found)]
        + [(end, -1, indent) for end, indent in closings]
    ):
        while opened and depth <= found[opened[-1]][3]:
            ends[opened.pop()] = at
        if number >= 0 and depth < 0:
            ends[above] = at if above >= 0 else ends[above]
            above = number
        elif number >= 0:
            line = text[at : text.find("\n", at) % (len(text) + 1)]
            if line.count("{") == line.count("}") > 0:
                ends[number] = at + len(line)
            else:
                opened.append(number)
    for (start, _, name, _), end in zip(found, ends, strict=True):
        yield _Section(start, end, name)


def _outermost(sections: Iterable[_Section]) -> Iterator[_Section]:
    """Yield each section that is not inside another one of the ``sections``."""
    ends = -1
    for section in sections:
        if section.start >= ends:
            yield section
        ends = max(ends, section.end)


class Sections:
    """The sections of a text, in order."""

    def __init__(self, text: str, path: str, *, language: str = "", has_grammar: bool = False) -> None:
        """Find the sections.

        If there is a grammar, only banners are sections, because the grammar names everything else.
        """
        name = PurePosixPath(path.lower()).name
        is_make = PurePosixPath(name).suffix in _MAKE or "makefile" in name or name in {"justfile", ".justfile"}
        kind = "make" if is_make else "dockerfile" if language == "dockerfile" else ""
        kind = "jsonnet" if name.endswith((".jsonnet", ".libsonnet")) else kind
        pattern = BANNERS if has_grammar and kind != "dockerfile" else _PATTERNS[kind]
        self._text = text
        self._sections = list(_nested(pattern.finditer(text), text))
        self._starts = [section.start for section in self._sections]

    def title(self, span: Span) -> str | None:
        """Return a name for a part of the text; ``None`` if no named section touches it.

        The name consists of the names of all outer sections in the part. If the part continues a section, the name of
        this section comes first.
        """
        first, last = bisect_left(self._starts, span.start), bisect_left(self._starts, span.end)
        around = [each for each in self._sections[:first] if each.end > span.start and each.name]
        begun = list(_outermost(each for each in self._sections[first:last] if each.name))
        goes_on = not begun or self._text[span.start : self._begin(begun[0].start, span.start)].strip()
        named = dict.fromkeys(each.name for each in (*(around[-1:] if goes_on else ()), *begun))
        path = [each.name for each in around if each.end >= span.end and each.name not in named]
        return shorten(" > ".join((*path[-2:], ", ".join(named))), 120, placeholder=" …").removesuffix(" >") or None

    def pieces(self, span: Span, index: TokenIndex, limit: int) -> list[Span]:
        """Cut a part of the text at its outer sections. Cut longer sections at outer lines. The pieces have no gaps."""
        inner = (each.start for each in _outermost(self._sections) if span.start < each.start < span.end)
        cuts = [span.start, *(self._begin(start, span.start) for start in inner), span.end]
        whole = [Span(start, end) for start, end in pairwise(cuts) if start < end]
        pieces: list[Span] = []
        for is_long, run in groupby(whole, key=lambda each: index.count(each) > limit):
            parts = list(run)
            longer = chain.from_iterable(self._parts(each, index, limit) for each in parts if is_long)
            pieces += longer if is_long else pack(parts, index, limit)
        return pieces

    def _parts(self, span: Span, index: TokenIndex, limit: int) -> Iterator[Span]:
        lines = [part for line in cut(self._text, span, LINE) for part in split(line, index, limit, (WORD,))]
        return pack_outermost(lines, index, limit, self._depth)

    def _depth(self, at: int) -> int:
        """Return the depth of a line. A line below a blank line is less deep, and a line below a comment is deeper."""
        above = "".join(self._text[max(0, at - _MOST) : at].splitlines()[-1:])
        apart = (2 if _REMARK_LINES.match(f"{above}\n") else 1) if above.strip() else 0
        return 3 * depth_of(self._text, at) + apart

    def _begin(self, start: int, least: int) -> int:
        """Return where the comments above a section begin, not before ``least``; ``start`` if there are no comments."""
        above = _ABOVE.search(self._text, max(least, start - _MOST), start)
        return above.start() if above else start


def _name(match: re.Match[str]) -> str:
    found = {group: value for group, value in match.groupdict().items() if value and group != "indent"}
    named = found.get("stage") or next(iter(found.values()), "")
    if "block" in found and (said := _SAID.match(named)):
        named = said[1][1:-1].replace("''", "'")
    elif "block" in found:
        told = _NAMED.fullmatch(named)
        named = (told[1] or told[2]) if told else ""
        named = "" if _FLAGS.search(named) or not re.search(r"[^\W\d_]{2}", named) else named
    return " ".join(named.strip("\"' ").split())
