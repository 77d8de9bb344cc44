"""The blocks of Markdown, with what its dialects add: MkDocs, MDX, Jekyll, Hugo, PHP Markdown Extra."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile

from nornweave.core.text.inline_markup import front_matter, plain_line
from nornweave.core.types import Span
from nornweave.read.blocks.block import (
    Block,
    Blocks,
    Found,
    Kind,
    Reading,
    Stretch,
    blanked,
    end_of,
    even_line_ends,
    indent_of,
    indented_end,
    read_lines,
    united,
)
from nornweave.read.blocks.unseen import UnseenParts, is_unseen_directive, raw_tags, unseen_front

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+([^\n]*))?$")
_CLOSING_HASHES = re.compile(r"(?:^|[ \t])#+$")
_SETEXT = re.compile(r" {0,3}(=+|-+)$")
_HTML_HEADING = re.compile(r"\s*<h([1-6])\b[^<>]*>(.*)</h\1\s*>\Z", re.I)
_RULE = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}$")
_ITEM = re.compile(r"( {0,3}(?:([-*+])|\d{1,9}([.)]))(?:[ \t]+(?=\S)|$)| {0,3}>)")
_COLUMNS = re.compile(r" {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?$")
_TAG = re.compile(r" {0,3}<(?:(/?[A-Za-z][\w-]*)(?=[\s/>]|$)|!--|[?!])")
_WHOLE = {"table": "</table", "pre": "</pre", "script": "</script", "style": "</style", "!--": "-->"}
_INLINE_TAGS = frozenset(
    {"a", "abbr", "b", "br", "code", "em", "i", "img", "kbd", "small", "span", "strong", "sub", "sup"}
)
_PRE = re.compile(r" {0,3}<pre\b", re.I)
_LONGEST = 2_000
_PREFIX = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?[ \t>]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)")
# ``{% highlight ruby %}`` of Jekyll, ``{% codeblock %}`` of Hexo, ``{{< highlight go >}}`` of Hugo.
_HIGHLIGHT = re.compile(r" {0,3}\{[%{]\s*[-<%]?\s*(highlight|codeblock)\b\s*([\w+#.-]*)")
# A tab, or an admonition that may be folded: ``=== "Linux"``, ``!!! note``, ``??? tip "Title"``.
_NOTE = re.compile(r" {0,3}(?:={3}[!+]{0,2}|!{3}|\?{3}\+?)[ \t]++(?:[\w-][\w -]*+)?(?:\"([^\"]*)\"|'([^']*)')?$")
_COLONS, _DIRECTIVE = (
    re.compile(r" {0,3}(:{3,})[ \t]*\{"),
    re.compile(r"(?<![`~:])(?:`{3,}+|~{3,}+|:{3,}+)[ \t]*\{([\w-]+)\}[ \t]*(.*)"),
)
_FOOTNOTE = re.compile(r" {0,3}\[\^([^\]\s]{1,200})\]:")
_REFERRED = re.compile(r"^ {0,3}\[\^[^\]\s]{1,200}\]:|\[\^([^\]\s]{1,200})\]", re.MULTILINE)
_ANCHOR = re.compile(
    r"(?<=[^#\s])[ \t]+\[((?=[^\]\s]*[_-])[#_]?[a-z0-9]+(?:[_-][a-z0-9]+)*)\](?=[ \t]*$)", re.MULTILINE
)
"""The name that a heading gives to its place: ``## Set the port [set-the-port]``."""
_OWN_ANCHOR = re.compile(r"(?<=[^#\s])[ \t]+\[([a-z0-9]+)\](?=[ \t]*$)", re.MULTILINE)
"""A name of one word, if the title says it: ``## Lists [list]``."""
# Where nothing else is of MyST, a line of this kind on its own is a sentence; ``% make install`` is a command.
_MYST = re.compile(
    r"^ {0,3}(?:`{3,}|~{3,}|:{3,})\{[\w:-]+\}|\{[\w:-]+\}`[^`\n]+`|^jupytext:|^myst:"
    rf"|^#{{1,6}}[ \t][^\n]*?{_ANCHOR.pattern}"
    r"|^[ \t]*\n%[ \t]+(?:[^a-z\W]|[^\w\s./~$-]|(?:[\w'’]+[,:;]? ){5}|[^\n]*\w[.!?:]$)",
    re.MULTILINE,
)
_REMARK = re.compile(r"^[ \t]*%(?=[ \t])[^\n]*", re.MULTILINE)
_DEFINITION = re.compile(r" {0,3}[:~][ \t]+\S")
_CONTRIBUTORS = re.compile(
    r"<!--\s*(?P<name>[\w-]*contributors?[\w-]*)\s*:?\s*(?:start|begin)\b[^>]*-->", re.IGNORECASE
)
"""Where a tool lists who wrote something, with their portraits."""
# A definition of a link that leads nowhere is a comment: ``[//]: # (not shown)``.
_COMMENT_LINK = re.compile(
    r" {0,3}\[[^\[\]\n]{1,200}\]:[ \t]*(?:#|<>|-)[ \t]*(?:$|(?=[(\"'])(?P<open>[(\"']))", re.MULTILINE
)
_LABEL = re.compile(r"\[([^\[\]\n]{1,200})\]")
_LINK = re.compile(
    r"^ {0,3}\[([^\[\]\n]{1,200})\]:[ \t]*(?:<[^<>\n]*>|\S+)"
    r"(?P<title>[ \t]*\n?[ \t]+(?:\"[^\"]*\"|'[^']*'|\([^()]*\)))[ \t]*$",
    re.MULTILINE,
)
_CLOSES = {"(": ")", '"': '"', "'": "'"}
# What MDX imports and exports, and its components, are no text; a paragraph may begin with these words.
_MODULE = re.compile(
    r"import\s+(?:type\s+)?(?:(?:[\w*{][^;\"'\n]*\sfrom\s+)?[\"'][^\"'\n]*[./][^\"'\n]*[\"'];?|\{[^}]*)$"
    r"|import\s+(?:type\s+)?(?:[A-Z]\w*|\{[^}]*\}|\*\s+as\s+\w+|[a-z]\w*(?=.*;$))(?:\s*,\s*\{[^}]*\})?\s+from\s+[\"'][\w@-]+[\"'];?$|export\s+(?:\{|\*\s+from)"
    r"|export\s+(?:const|let|var)\s+[\w{\[][^=]*=|export\s+(?:default\s+)?(?:async\s+)?(?:function|class)\b.*[({]$"
    r"|export\s+default\s+[\w({].*[;({]$"
)
_COMPONENT = re.compile(r" {0,3}</?[A-Z]\w*[a-z]\w*(?:\.\w+)?(?:[\s/>]|$)")


@dataclass(slots=True)
class _Markdown:
    """Reads one Markdown text.

    Attributes:
        notes: the names of the footnotes to which the text refers, in lower case. Other footnotes are not shown.
        labels: how often each text stands in brackets. The title of a link that is defined and not used is not shown.
        is_myst: whether the text is MyST, in which a line that begins with ``%`` is a comment.
        is_mdx: whether the text is MDX. In MDX a component contains Markdown at any indentation, and indented text is
            not code.
    """

    unseen: UnseenParts
    notes: frozenset[str] = frozenset()
    labels: Mapping[str, int] = field(default_factory=dict)
    is_myst: bool = False
    is_mdx: bool = False

    def block_at(self, reading: Reading, stretch: Stretch, at: int, _above: str) -> Found:
        """Return the block that begins at the line ``at``. Hidden text that begins inside the block extends it."""
        found = self._found(stretch, at)
        if found.kind == "paragraph" and stretch.rows[at].lstrip().startswith("["):
            defined = _LINK.finditer(reading.text, stretch.spans[at].start, stretch.spans[found.end - 1].end)
            reading.hidden += [Span(*link.span("title")) for link in defined if self.labels.get(_label(link[1])) == 1]
        if found.kind in {"hidden", "note", "term"} or (found.kind == "code" and not _PRE.match(stretch.rows[at])):
            return found
        parts = _parts(stretch, at, found.end) if found.kind == "list" else ()
        spans = [part.span for part in parts if part.kind != "code"] or [stretch.span(at, found.end)]
        end, hidden = found.end, [span for each in spans for span in self._hidden(each, found.kind)]
        while hidden and end < len(stretch.rows) and hidden[-1].end > stretch.spans[end - 1].end:
            end += 1
            if hidden[-1].end <= stretch.spans[end - 1].end:
                hidden += self.unseen.within(Span(hidden[-1].end, stretch.spans[end - 1].end))
        if hidden:
            reading.hidden += hidden
            shown = Blocks(reading.text, (), hidden).shown(stretch.span(at, end))
            if not shown.strip():
                return Found("hidden", end)
            if found.kind == "heading":
                rows = [row.strip() for row in shown.strip().split("\n")]
                return self._found(Stretch(rows, stretch.spans[at:end]), 0)._replace(end=end)
        return found._replace(end=end, parts=_parts(stretch, at, end) if end > found.end else parts)

    def _hidden(self, span: Span, kind: str) -> list[Span]:
        """Return the hidden parts of a block: comments and elements, and the name of a heading's place."""
        text, hidden = self.unseen.text, self.unseen.within(span)
        if self.is_myst:
            hidden += [Span(*remark.span()) for remark in _REMARK.finditer(text, span.start, span.end)]
        if kind == "heading" and (anchor := _ANCHOR.search(text, span.start, span.end)):
            hidden += [Span(*anchor.span())] if self.labels.get(_label(anchor[1])) == 1 else []
        elif kind == "heading" and self.is_myst and (own := _OWN_ANCHOR.search(text, span.start, span.end)):
            title = text[span.start : own.start()].lower().lstrip("# ")
            is_said = own[1] in title or own[1] == "".join(word[0] for word in title.split())
            hidden += [Span(*own.span())] if is_said else []
        return sorted(hidden, key=lambda part: part.start)

    def _found(self, stretch: Stretch, at: int) -> Found:
        rows = stretch.rows
        row = rows[at]
        if fence := opened_fence(row):
            end = min(end_of(rows, at, lambda row: not closes_fence(row, fence)) + 1, len(rows))
            return Found("hidden" if _is_conditional(rows, at) else "code", end, info=_language(row))
        if (colons := _COLONS.match(row)) and _is_conditional(rows, at):
            end = end_of(rows, at, lambda row: row.strip() != colons[1])
            return Found("hidden", min(end + 1, len(rows)))
        if row.startswith(("    ", "\t")):
            end = indented_end(rows, at, 4)
            return Found("note", end, body=at, margin=indent_of(row)) if self.is_mdx else Found("code", end)
        if (atx := _ATX.match(row[:_LONGEST])) and (
            title := plain_line(_CLOSING_HASHES.sub("", (atx[2] or "").strip()))
        ):
            return Found("heading", at + 1, len(atx[1]), title)
        if _RULE.match(row[:_LONGEST]):
            return Found("paragraph", at + 1)
        if "<" in row[:4] and (html := _html_block(rows, at)):
            self.is_mdx |= _COMPONENT.match(row) is not None
            if self.is_mdx and html.kind == "paragraph":
                # MDX reads what stands directly below a component.
                inside = end_of(rows, at, lambda row: not _ends_component(row.lstrip()))
                return html._replace(end=min(inside, html.end))
            return html
        if row[0] in "ie" and _MODULE.match(row):
            self.is_mdx = True
            return Found("hidden", _module_end(rows, at))
        if item := _ITEM.match(row):
            return Found("list", _container_end(rows, at, item))
        if "|" in row and at + 1 < len(rows) and "-" in rows[at + 1] and _COLUMNS.match(rows[at + 1][:_LONGEST]):
            return Found("table", end_of(rows, at + 1, lambda row: bool(row) and not _interrupts(row)), 1, "pipe")
        return self._unseen_note(rows, at) or _of_dialect(rows, at, row) or _paragraph(rows, at)

    def _unseen_note(self, rows: Sequence[str], at: int) -> Found | None:
        """Return the unused footnote or MyST comment that begins at a line; ``None`` if neither begins there."""
        note = _FOOTNOTE.match(rows[at])
        if note and note[1].lower() not in self.notes:
            end = end_of(rows, at, lambda row: row and not _interrupts(row))
            return Found("hidden", indented_end(rows, end, 4))
        is_remark = self.is_myst and rows[at][0] == "%"
        return Found("hidden", end_of(rows, at, lambda row: row[:1] == "%")) if is_remark else None


def read_markdown(text: str) -> Blocks:
    """Read Markdown: front matter, headings (ATX, setext, HTML), code, tables, lists and quotes, notes, paragraphs."""
    front_of_page = front_matter(text)
    start = front_of_page.end
    listed = list(_lists_of_contributors(text, start))
    text = blanked(text, listed)
    even = even_line_ends(text)
    notes = frozenset(note.lower() for note in _REFERRED.findall(even))
    labels = Counter(map(_label, _LABEL.findall(even)))
    is_myst = _MYST.search(even) is not None
    read = read_lines(text, start, _Markdown(UnseenParts(even, is_prose=True), notes, labels, is_myst).block_at)
    read = replace(read, hidden=sorted((*read.hidden, *listed), key=lambda span: span.start))
    if not start:
        return read
    front = Block(Span(0, start), "front", range(even.count("\n", 0, start)))
    hidden = tuple(united((*unseen_front(text, front_of_page), *read.hidden, *raw_tags(even))))
    return Blocks(blanked(read.text, hidden), (front, *read.blocks), hidden)


def _lists_of_contributors(text: str, start: int) -> Iterator[Span]:
    while opening := _CONTRIBUTORS.search(text, start):
        ends = re.compile(rf"<!--\s*{re.escape(opening['name'])}\s*:?\s*end\b[^>]*-->", re.IGNORECASE)
        closing = ends.search(text, opening.end())
        if closing is None:
            return
        yield Span(opening.start(), closing.end())
        start = closing.end()


def _label(text: str) -> str:
    return " ".join(text.casefold().split())


def _is_conditional(rows: Sequence[str], at: int) -> bool:
    """Tell whether a directive of MyST begins at a line whose text no page shows, such as ``{only} internal``."""
    named = _DIRECTIVE.match(rows[at].lstrip())
    options = takewhile(lambda row: row.lstrip().startswith(":"), islice(rows, at + 1, None))
    return named is not None and is_unseen_directive(named[1], named[2], "\n".join(options))


def _ends_component(row: str) -> bool:
    return opened_fence(row) is not None or _ATX.match(row[:_LONGEST]) is not None


def _of_dialect(rows: Sequence[str], at: int, row: str) -> Found | None:
    """Return the block at a line if only a dialect of Markdown has such blocks; ``None`` for any other line.

    Such blocks are notes, terms, comments written as links, and code between tags.
    """
    first = row.lstrip()[:1]
    if first in "=!?" and (note := _NOTE.match(row)):
        end = indented_end(rows, at + 1, 4)
        name = note[1] or note[2] or ""
        return Found("note", end, info=plain_line(name), body=at + 1, margin=4) if end > at + 1 else None
    if first == "[" and (end := _comment_end(rows, at)):
        return Found("hidden", end)
    if first == "{" and (highlight := _HIGHLIGHT.match(row)):
        ends = re.compile(rf"(?:end|/ ?){highlight[1]}")
        end = end_of(rows, at, lambda row: not ends.search(row))
        return Found("code", min(end + 1, len(rows)), info=highlight[2])
    below = at + 1 if rows[at + 1 : at + 2] != [""] else at + 2
    if below < len(rows) and rows[below][:4].lstrip()[:1] in {":", "~"} and (mark := _DEFINITION.match(rows[below])):
        return Found("term", _definitions_end(rows, below), info=plain_line(row), body=below, lead=mark.end() - 1)
    return None


def _module_end(rows: Sequence[str], at: int) -> int:
    """Return the end of the imports and exports of a module: the first blank line that is not inside brackets."""
    is_open = 0
    for end in range(at, len(rows)):
        if not rows[end] and is_open <= 0:
            return end
        is_open += sum(map(rows[end].count, "{[(")) - sum(map(rows[end].count, "}])"))
    return end_of(rows, at, bool) if is_open > 0 else len(rows)


def _definitions_end(rows: Sequence[str], at: int) -> int:
    """Return the number of the line after the definitions of a term. The first definition begins at line ``at``."""
    end = at
    while at < len(rows):
        if _DEFINITION.match(rows[at]):
            at = end_of(rows, at, lambda row: row and not _DEFINITION.match(row))
        elif rows[at] and indent_of(rows[at]) >= 2:
            at = indented_end(rows, at, 2)
        elif rows[at]:
            break
        else:
            at += 1
            continue
        end = at
    return end


def _comment_end(rows: Sequence[str], at: int) -> int:
    """Return the end of a link definition that is used as a comment; 0 if no such definition begins at the line."""
    found = _COMMENT_LINK.match(rows[at])
    if found is None:
        return 0
    closes = _CLOSES.get(found["open"] or "")
    if closes is None:
        return at + 1
    end = at
    while end < len(rows) and rows[end] and not rows[end].endswith(closes):
        end += 1
    return end + 1 if end < len(rows) and rows[end] else 0


def _paragraph(rows: Sequence[str], at: int) -> Found:
    end = at + 1
    while end < len(rows) and rows[end]:
        if underline := _SETEXT.match(rows[end][:_LONGEST]):
            title = plain_line(" ".join(row.strip() for row in rows[at:end]))
            return Found("heading", end + 1, 1 if underline[1][0] == "=" else 2, title)
        if _interrupts(rows[end]):
            break
        end += 1
    return Found("paragraph", end)


def _interrupts(row: str) -> bool:
    """Tell whether a line ends the paragraph above it without a blank line."""
    if not (body := row.lstrip()) or body[0].isalpha():
        return False
    item = _ITEM.match(row)
    opens = item is not None and (item[3] is None or body.startswith("1")) and len(item[0]) < len(row)
    tag = _TAG.match(row)
    return bool(
        opens
        or (item is not None and ">" in item[0])
        or _FOOTNOTE.match(row)
        or _ATX.match(row[:_LONGEST])
        or opened_fence(row)
        or _RULE.match(row[:_LONGEST])
        or (tag is not None and (tag[1] or "").strip("/").lower() not in _INLINE_TAGS)
    )


def _html_block(rows: Sequence[str], line: int) -> Found | None:
    row = rows[line]
    if (heading := _HTML_HEADING.match(row[:_LONGEST])) and (title := plain_line(heading[2])):
        return Found("heading", line + 1, int(heading[1]), title)
    tag = _TAG.match(row)
    if tag is None:
        return None
    name = (tag[1] or "!--").lower()
    if name.strip("/") in _INLINE_TAGS:
        return None
    info = "html" if name == "table" else ""
    kind: Kind = "table" if name == "table" else "code" if name == "pre" else "paragraph"
    if closing := _WHOLE.get(name):
        end = line
        while end < len(rows) and closing not in rows[end].lower():
            end += 1
            if end < len(rows) and name == "table" and _ATX.match(rows[end][:_LONGEST]):
                return Found(kind, end, info=info)
        return Found(kind, min(end + 1, len(rows)), info=info)
    return Found(kind, end_of(rows, line, bool))


def _container_end(rows: Sequence[str], line: int, item: re.Match[str]) -> int:
    """Return the number of the line after the list or quotation that begins at ``line``.

    Indented lines, further items of the same kind and continued paragraphs belong to it.
    """
    mark, depth = _mark(item), len(item[0].rstrip()) + 1
    end = at = line + 1
    fence: str | None = None
    while at < len(rows):
        row, follows = rows[at], at == end
        inside = mark != ">" and indent_of(row) >= depth
        if fence is not None and (inside or not row):
            fence = None if closes_fence(row, fence) else fence
            end = at + 1 if row else end
        elif inside:
            fence = opened_fence(row.lstrip())
            end = at + 1 if row else end
        elif row:
            fence = None
            other = _ITEM.match(row)
            same = other is not None and _mark(other) == mark and not _RULE.match(row)
            if other and same and (follows or mark != ">"):
                depth = len(other[0].rstrip()) + 1
            elif not follows or _interrupts(row):
                break
            end = at + 1
        at += 1
    return end


def _mark(item: re.Match[str]) -> str:
    return item[2] or item[3] or ">"


def _parts(stretch: Stretch, at: int, end: int) -> tuple[Block, ...]:
    """Divide the list or quotation between two lines into text, fenced code and pipe tables.

    The result is empty if there is surely no code and no table.
    """
    if not any("```" in row or "~~~" in row or "|" in row for row in stretch.rows[at:end]):
        return ()
    runs: list[tuple[Kind, int, str]] = []
    fence: str | None = None
    for place in range(at, end):
        body = _PREFIX.sub("", stretch.rows[place], count=1)
        kind, fence, joins = _line_kind(body, fence, runs[-1][0] if runs else "")
        if not joins:
            info = "pipe" if kind == "table" else _language(body) if kind == "code" else ""
            runs.append((kind, place, info))
    ends = [*(first for _, first, _ in runs[1:]), end]
    return tuple(
        Block(
            stretch.span(first, last), kind, range(stretch.first + first, stretch.first + last), kind == "table", info
        )
        for (kind, first, info), last in zip(runs, ends, strict=True)
    )


def _line_kind(body: str, fence: str | None, last: str) -> tuple[Kind, str | None, bool]:
    """Return the kind of a line in a list, the fence that is open after it, and whether it continues the part above.

    ``fence`` is the fence of the code block around the line; ``None`` outside of code. ``last`` is the kind of the line
    above; empty for the first line.
    """
    if fence is not None:
        return "code", (None if closes_fence(body, fence) else fence), True
    if opened := opened_fence(body):
        return "code", opened, False
    if body.startswith("|") and body.count("|") > 1:
        return "table", None, last == "table"
    return "list", None, last == "list" or bool(last and not body)


def opened_fence(line: str) -> str | None:
    """Return the fence with which ``line`` opens a code block; ``None`` if it opens none.

    A fence is three or more backticks or tildes.
    """
    opening = _FENCE.match(line)
    return opening[1] if opening and not (opening[1][0] == "`" and "`" in opening[2]) else None


def closes_fence(line: str, fence: str) -> bool:
    """Tell whether ``line`` ends the code block that ``fence`` opened."""
    stripped = line.strip()
    return len(stripped) >= len(fence) and not stripped.strip(fence[0])


def _language(row: str) -> str:
    return (row.strip().lstrip("`~").strip("{}. \t").split() or [""])[0]
