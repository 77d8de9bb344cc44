"""Divide a region of code that exceeds the token limit: at statements, inner scopes or sections, else at lines.

Code that no grammar reads has sections, with titles. Lines at the margin open them: ``[section]``, the target of a
Makefile, a stage of a Dockerfile, a block in braces, a function; so do banners, which are comments drawn as headings,
in code of any language.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby, pairwise
from pathlib import PurePosixPath
from textwrap import shorten

from tree_sitter import Node

from nornweave.core.text.spans import LINE, PARAGRAPH, SHORT_PART, WORD, TokenIndex, cut, pack, pack_outermost, split
from nornweave.core.types import Span
from nornweave.read.chunking import syntax
from nornweave.read.chunking.languages import Grammar, node_types
from nornweave.read.chunking.parsing import BRANCH
from nornweave.read.chunking.regions import Region, begins_line, follows_blank_line, indented, inside_word
from nornweave.read.chunking.symbols import Symbol, SymbolScope, describe, describe_value, joined, scope_of

TEXT_CUTS = (PARAGRAPH, re.compile(r"\n[ \t]*(?://[/!]?|\*|#+|--)[ \t]*(?=\n)"), LINE, WORD)
"""Where code is cut when its syntax does not help."""

_MARK = r"(?://+|--|/?\*+|dnl\b|[#;%!\"])"
_RULE = r"[-=#*~_+/]{3,}"
_RULED = rf"[ \t]*+(?>{_MARK})?[ \t]*+{_RULE}+[^\w\n]*+"
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
        r"(?P<block>[\w.@$*/~\"'#-][^{}\n]{0,200}?)[ \t]*+(?:=[ \t]*+)?@?\{[ \t]*(?:(?:#|//).*)?$)"
    ),
}
_PATTERNS = {kind: re.compile(f"^(?:{_BANNER}|{line})", re.MULTILINE) for kind, line in _LINES.items()}
BANNERS = re.compile(f"^(?:{_BANNER})", re.MULTILINE)
_ABOVE = re.compile(
    r"(?:^(?:\{\{-?[ \t]*)?/\*(?:(?!\*/).)*+\*/(?:[ \t]*-?\}\})?[ \t]*\n|^[ \t]*(?:#|//|;|--|/?\*|dnl\b)[^\n]*\n)++\Z",
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


# Children of these may be parted although they stand on one line, as they do in minified files.
LISTS = node_types(
    "program module source_file translation_unit compilation_unit block statement_block compound_statement "
    "body_statement statements statement_list declaration_list class_body field_declaration_list switch_body array "
    "object initializer_list list dictionary arguments argument_list sequence_expression export_clause object_type "
    "interface_body union_type enum_body enum_variant_list enumerator_list"
)
_INDENT = re.compile(r"[ \t]*")
_COMMENT_ABOVE = re.compile(rf"(?P<indent>[ \t]*)(?:#(?!!)|{BRANCH})")
_HEAD = re.compile(
    r"^(?P<indent>[ \t]*)\}[ \t]*(?:else\b[^{};\n]*(?:\n[ \t]*[^{};\s][^{};\n]*){0,8}|[A-Za-z][^\n]*)\{[ \t]*(?://[^\n]*)?\n",
    re.MULTILINE,
)
"""What ends a branch of a language with braces and begins the next one: ``} else if (a) {``, ``} catch {``."""
SHORT_HEAD = 4
"""Of what is shorter than the limit by so many times, a scope's beginning, more than its first line has to follow."""
_OPERATOR = re.compile(r"[|&+*/%^?:.=-]{1,3}")
"""A sign that begins a line joins the operand behind it to the expression above: ``| "a"``, ``&& b``."""
_ITEM = "block_sequence_item"
_KEPT_WHOLE = frozenset({_ITEM, "block_scalar"})
_LEVELS = 100
"""Of nodes that are looked through for the name of a part; code nests as deep as it likes."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a divided region.

    Attributes:
        symbol: the innermost definition to which more than half of the part belongs.
        continues: whether the part begins inside this definition, not at its start.
    """

    span: Span
    symbol: Symbol | None
    continues: bool


@dataclass(frozen=True, slots=True)
class _Task:
    """A span that may be cut between its ``nodes``.

    Attributes:
        nodes: pairs of a node and whether it is in a list. A node in a list may be separated from its neighbours within
            a line.
        opens: whether the span opens the next part, as ``def inner():`` does. It then stays together with that part.
    """

    span: Span
    nodes: Sequence[tuple[Node, bool]]
    opens: bool = False


@dataclass(frozen=True, slots=True)
class Division:
    """Divides regions of one file. In data, ``most`` is the limit of a part that ends where an item ends."""

    text: str
    grammar: Grammar
    index: TokenIndex
    limit: int
    most: int = 0

    def parts(self, region: Region, span: Span) -> list[Part]:
        """Divide ``region``, which covers ``span``, into parts of at most ``limit`` tokens.

        There are no gaps between parts.
        """
        atoms = list(self._atoms(_Task(span, [(node, True) for node in region.nodes])))
        spans = self._packed(atoms, self.limit, region)
        rest = self.index.count(spans[-1])
        if rest < self.limit // SHORT_PART:  # the parts are made about even, if that does not part inner statements
            about_even = self.index.count(span) // len(spans) + self.limit // 8
            smaller = (self._packed(atoms, most, region) for most in (about_even, self.limit - self.limit // 8))
            even = min((each for each in smaller if len(each) == len(spans)), key=self._torn, default=spans)
            is_deeper = self._depth(even) > self._depth(spans)
            spans = spans if is_deeper and rest >= self.limit // (SHORT_PART * SHORT_PART) else even
        return [self._part(each, region, is_first=each.start == span.start) for each in spans]

    def _torn(self, spans: Sequence[Span]) -> int:
        return sum(not follows_blank_line(self.text, each.start) for each in spans[1:])

    def _depth(self, spans: Sequence[Span]) -> int:
        return max((depth_of(self.text, each.start) for each in spans[1:]), default=0)

    def _packed(self, atoms: Sequence[Span], most: int, region: Region) -> list[Span]:
        """Join atoms to spans of at most ``most`` tokens.

        In data, an item that does not fit into the current span begins the next one, so that it is not divided. If the
        current span would then be very short, the item stays in it, or is divided if it is far too long.
        """
        if self.grammar.functions:
            return self._packed_branches(atoms, most)
        spans: list[Span] = []
        starts = [atom.start for atom in atoms]
        at = 0
        while at < len(atoms):
            part = next(pack(atoms[at:], self.index, most))
            cursor = region.nodes[-1].walk()
            for _ in range(_LEVELS if part.end < atoms[-1].end else 0):
                node = cursor.node
                begin = starts[bisect_right(starts, node.start_byte) - 1] if node is not None else 0
                if node is not None and part.start <= begin < part.end < node.end_byte:
                    before, end = Span(part.start, begin), starts[bisect_left(starts, node.end_byte) :][:1]
                    whole = Span(part.start, end[0] if end else atoms[-1].end)
                    if self.index.count(before) >= most // SHORT_PART and begins_line(self.text, node.start_byte):
                        part = before
                        break
                    most_whole = min(most + most // SHORT_PART, self.most)
                    if node.type in _KEPT_WHOLE and self.index.count(whole) <= most_whole:
                        part = whole
                        break
                if cursor.goto_first_child_for_byte(part.end) is None:
                    break
            spans.append(part)
            at = bisect_left(starts, part.end)
        return spans

    def _packed_branches(self, atoms: Sequence[Span], most: int) -> list[Span]:
        """Join atoms to spans of at most ``most`` tokens. Spans are cut between outer statements, if possible.

        The head of a branch, such as ``else``, stays with the text below it, if both fit into one chunk.
        """
        heads = list(_HEAD.finditer(self.text, atoms[0].start, atoms[-1].end))
        behind = {head.end(): head.start() for head in heads}
        cuts = sorted({*behind.values(), *(atom.start for atom in atoms)})
        starts = [
            cut
            for above, cut, end in zip([-1, *cuts], cuts, [*cuts[1:], atoms[-1].end], strict=False)
            if behind.get(cut) != above or self.index.count(Span(above, end)) > self.limit
        ]
        whole = [Span(start, end) for start, end in pairwise([*starts, atoms[-1].end])]
        depth, apart = partial(depth_of, self.text), partial(follows_blank_line, self.text)
        return list(pack_outermost(whole, self.index, most, depth, apart))

    def _atoms(self, whole: _Task) -> Iterator[Span]:
        """Yield pieces that fit into a part. A node that is too long is divided into its children.

        The beginning of a scope is joined with its first content. If all of that content is too much, a short beginning
        is joined with a part of it. A stack is used instead of recursion, because code may be nested without limit.
        """
        waiting, opened = [whole], whole.span.start
        while waiting:
            task = waiting.pop()
            head, joined = Span(opened, task.span.start), Span(opened, task.span.end)
            if self.index.count(joined) > self.limit and self.index.count(head) > self.limit // SHORT_HEAD:
                yield head
                joined = task.span
            if self.index.count(joined) <= self.limit:
                if not task.opens:
                    yield joined
                opened = joined.start if task.opens else joined.end
                continue
            opened = joined.start
            groups = self._groups(task)
            above = [node.type in self.grammar.comments for node, _ in task.nodes]
            if len(groups) == 1 and self.grammar.functions and above[0] and not all(above):
                groups = [[*task.nodes[: above.index(False)]], [*task.nodes[above.index(False) :]]]
            if len(groups) > 1:
                waiting.extend(reversed(self._tasks(task, groups)))
                continue
            # A header region's node is the whole class, most of which lies in other regions.
            inside = [
                (child, node.type in LISTS)
                for node, _ in task.nodes
                for child in node.children
                if child.start_byte < task.span.end and not all(above)
            ]
            if inside:
                waiting.append(_Task(task.span, inside))
            else:
                yield from split(joined, self.index, self.limit, TEXT_CUTS)
                opened = joined.end
        if opened < whole.span.end:
            yield Span(opened, whole.span.end)

    def _tasks(self, task: _Task, groups: Sequence[list[tuple[Node, bool]]]) -> list[_Task]:
        starts = [task.span.start]
        for group in groups[1:]:
            starts.append(self._with_lines_above(indented(self.text, group[0][0].start_byte), starts[-1]))
        starts.append(task.span.end)
        first, listed = groups[0][0]
        opens = not (first.is_named and listed)
        return [
            _Task(Span(start, end), group, opens=opens and start == task.span.start)
            for start, end, group in zip(starts, starts[1:], groups, strict=False)
        ]

    def _with_lines_above(self, start: int, least: int) -> int:
        """Return ``start`` moved up to the comments directly above an item of data or a branch of a template.

        The move is necessary because grammars make such comments a part of the previous node if that node is indented
        deeper.
        """
        if self.grammar.functions or not (spaces := _INDENT.match(self.text, start)):
            return start
        indent = len(spaces[0])
        while start > least:
            line = self.text.rfind("\n", 0, start - 1) + 1
            found = _COMMENT_ABOVE.match(self.text, line, start)
            if line <= least or not found or len(found["indent"]) > indent:
                break
            start = line
        return start

    def _groups(self, task: _Task) -> list[list[tuple[Node, bool]]]:
        """Group nodes so that each group may start a piece. Comments and ``#else`` join the next node."""
        groups: list[list[tuple[Node, bool]]] = []
        held = False
        is_line = "\n" not in self.text[task.span.start : task.span.end].strip()
        for node, listed in task.nodes:
            comment = node.type in self.grammar.comments or node.type in self.grammar.attributes
            at = node.start_byte
            parts = begins_line(self.text, at) or (
                is_line and listed and not comment and not inside_word(self.text, at)
            )
            is_directive, ends = node.type == "directive", self.text.startswith("#endif", at)
            joins = not node.is_named and parts and _OPERATOR.fullmatch(node.type) is not None
            cuts = (joins or node.is_named) and not held and parts and not (is_directive and ends)
            cuts = cuts and not syntax.is_heredoc(node)
            if not groups or cuts:
                groups.append([])
            groups[-1].append((node, listed))
            held = (comment or joins or (is_directive and not ends)) and (held or cuts)
        return groups

    def _part(self, span: Span, region: Region, *, is_first: bool) -> Part:
        """Return a part of ``region``, named by the definitions and values that hold more than half of the part."""
        symbol, start = region.symbol, region.start
        scope = scope_of(symbol, region.scope) if symbol is not None else region.scope
        seen, holder, several = self._own(region), region.nodes[-1], list[tuple[Node, str]]()
        for node in self._around(span, holder):
            is_outside = node.start_byte > span.start or node.end_byte < span.end
            is_whole, is_item = span.start <= node.start_byte and node.end_byte <= span.end, node.type == _ITEM
            several = self._items(span, holder) if is_outside else []
            if several and not self.text[span.start : several[0][0].start_byte].strip():
                break
            if (beside := self._siblings(span, holder, scope)) is not None:
                return Part(span, beside, continues=False)
            holder = node
            found, inner, begin = syntax.definition(node, self.grammar, self.text), None, node.start_byte
            if found is not None and found.node.id not in seen and not found.is_callee:
                seen.add(found.node.id)
                inner, begin = describe(found, scope, self.grammar, self.text), found.node.start_byte
            elif found is None and node.id not in seen and (symbol is None or symbol.function_name is None):
                name = syntax.value_name(node, self.grammar, self.text, with_pairs=True)
                if name is None and is_whole and is_item:
                    name = syntax.first_key(node, self.text)
                inner = describe_value(name, node, scope, self.text) if name is not None else None
            if inner is not None and inner.names != scope.names:
                symbol, start, scope = inner, begin, scope_of(inner, scope)
                is_begin = not self.text[span.start : node.start_byte].strip()
                if found is None and is_whole and (is_begin or is_item):
                    break  # it is all of the value, whatever the largest thing in that is
        else:
            if (beside := self._siblings(span, holder, scope)) is not None:
                return Part(span, beside, continues=False)
            several = self._items(span, holder)
        if several:
            first, last = several[0][1], several[-1][1]
            between = ", " if len(several) == 2 else " … "
            name = first if first == last else f"{first}{between}{last}"
            symbol, start = describe_value(name, several[0][0], scope, self.text), span.start
        return Part(span, symbol, not is_first if symbol is region.symbol else span.start > start)

    def _siblings(self, span: Span, holder: Node, scope: SymbolScope) -> Symbol | None:
        """Return the symbol of a part that holds whole functions or classes of ``holder`` and nothing else."""
        if holder.type not in self.grammar.bodies:
            return None
        nodes = [node for node in holder.named_children if span.start < node.end_byte and node.start_byte < span.end]
        nodes = [node for node in nodes if node.type not in self.grammar.comments]
        found = [syntax.definition(node, self.grammar, self.text) for node in nodes]
        if len(nodes) < 2 or nodes[0].start_byte < span.start or nodes[-1].end_byte > span.end:
            return None
        symbols = [describe(each, scope, self.grammar, self.text) for each in found if each and not each.is_callee]
        return joined(symbols) if len(symbols) == len(nodes) else None

    def _items(self, span: Span, holder: Node) -> list[tuple[Node, str]]:
        """Return the list items or the keys of data that begin in a part, each with its name.

        An item that began before the part comes first, unless it is most of the part. The result is empty for code, for
        fewer than two items, and if one of them has no name.
        """
        if self.grammar.functions:
            return []
        cursor = holder.walk()
        items: list[tuple[Node, str]] = []
        is_inside = cursor.goto_first_child_for_byte(span.start) is not None
        while is_inside and (node := cursor.node) is not None and node.start_byte < span.end:
            is_most = 2 * (node.end_byte - span.start) > len(span)
            if (
                node.is_named
                and node.type not in self.grammar.comments
                and (node.start_byte >= span.start or not is_most)
            ):
                name = syntax.value_name(node, self.grammar, self.text, with_pairs=True)
                if node.type not in self.grammar.pairs or name is None:
                    return []
                items.append((node, name))
            is_inside = cursor.goto_next_sibling()
        above = self.text[span.start : items[0][0].start_byte].strip() if items else ""
        is_key = bool(above) and items[0][0].type != _ITEM  # what they stand below is its name
        return items if len(items) > 1 and not is_key else []

    def _own(self, region: Region) -> set[int]:
        """Return a set with the id of the node that names a region. The set is empty if the region has no name."""
        if region.symbol is None:
            return set()
        own = syntax.definition(region.nodes[-1], self.grammar, self.text)
        if own is not None:
            return {own.node.id}
        value = syntax.lone_value(region.nodes[-1], self.grammar, self.text)
        return {value[0].id} if value is not None else set()

    def _around(self, span: Span, outermost: Node) -> Iterator[Node]:
        """Yield the nodes that contain more than half of a part, outermost first."""
        middle = (span.start + span.end) // 2
        cursor = outermost.walk()
        for _ in range(_LEVELS):
            node = cursor.node
            if node is None or 2 * (min(span.end, node.end_byte) - max(span.start, node.start_byte)) <= len(span):
                return
            yield node
            if cursor.goto_first_child_for_byte(middle) is None:
                return
