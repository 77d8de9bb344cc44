"""Regions of a source file, in order: its functions, class headers, imports, and the statements between them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import takewhile

from tree_sitter import Node

from nornweave.core.types import Span
from nornweave.read.chunking import syntax
from nornweave.read.chunking.languages import Grammar
from nornweave.read.chunking.symbols import NO_SCOPE, Symbol, SymbolScope, describe, describe_value, scope_of

SMALL_CLASS = 60
"""Tokens up to which a class stays in one piece with its methods."""
SHORT_COMMENT = 24
"""Tokens up to which a comment with blank lines around it introduces what follows; a longer one stands alone."""
HEAD_COMMENT = 64
"""Tokens of a comment above a definition and a blank line from which on it is about the file, at the file's head."""
LARGE_VALUE = 128
"""Tokens above which a value stands alone, under its name."""
FEW_FUNCTIONS, WHOLE_OPTION = 3, 512
"""Functions and tokens up to which an option of an object stays in one piece: its default, its validator."""
NESTED = 8
"""Branches in branches from which on they are; each is looked through so many times."""

_STRICT = re.compile(r"""['"]use strict['"]""")
_WORDS = re.compile(r"\w+")
_RULE = re.compile(r"([-=#*~_/])\1{9}")
"""Of a banner, which begins a section."""
_MACRO = re.compile(r"^[ \t]*\w+(?:\([^\n]*\))?[ \t]*\n?[ \t]*\Z", re.MULTILINE)
_HEADED = re.compile(r"^=head\d[ \t]+(.{1,100})", re.MULTILINE)
_INDENT = 200
"""Characters that are looked back over to tell whether a statement begins its line."""


class Kind(StrEnum):
    """The kinds of a region, which decide how regions are grouped and divided."""

    IMPORT = "import_block"
    PREAMBLE = "preamble"
    HEADER = "header"
    WHOLE = "whole"
    VALUE = "value"
    PROTOTYPE = "prototype"
    GLUE = "glue"


@dataclass(slots=True)
class Region:
    """A part of a file, from its ``start`` to the start of the next region."""

    start: int
    kind: Kind
    nodes: list[Node]
    scope: SymbolScope
    symbol: Symbol | None = None
    bare: bool = False


@dataclass(slots=True)
class _Pending:
    """Comments and attributes that may belong to the next node."""

    start: int
    end: int
    nodes: list[Node]
    attribute: bool = False


@dataclass(slots=True)
class _Frame:
    """A container whose members are being read. ``kind`` is the type of its node."""

    kind: str
    members: Iterator[Node]
    scope: SymbolScope
    end: int


@dataclass(slots=True)
class Regions:
    """Walks over the upper levels of a syntax tree once. The bodies of functions are not read."""

    text: str
    grammar: Grammar
    count: Callable[[Span], int]
    found: list[Region] = field(default_factory=list)
    _frames: list[_Frame] = field(default_factory=list)
    _pending: _Pending | None = None
    _end: int = 0

    def walk(self, root: Node, scope: SymbolScope = NO_SCOPE) -> list[Region]:
        """Return the regions below ``root``, in order. The first one includes everything before it."""
        if not self.grammar.defines:
            return [Region(root.start_byte, self._rest(scope), [root], scope)]
        self._frames.append(_Frame(root.type, iter(root.named_children), scope, root.end_byte))
        while self._frames:
            frame, scope = self._frames[-1], self._frames[-1].scope
            node = next(frame.members, None)
            if node is None:
                self._end = max(self._end, self._frames.pop().end)
            elif node.type in self.grammar.comments or node.type in self.grammar.attributes:
                self._wait(node, scope)
            else:
                self._visit(node, scope)
                if self._frames[-1] is frame:  # of what was entered the last member keeps them
                    self._wait_behind(node, scope)
        self._flush(scope)
        return self.found

    def _enter(self, node: Node, scope: SymbolScope) -> None:
        self._frames.append(_Frame(node.type, syntax.members(node, self.grammar), scope, node.end_byte))

    def _visit(self, node: Node, scope: SymbolScope) -> None:
        grammar = self.grammar
        kind = node.type
        inner = node.named_children[0] if node.named_child_count == 1 else node
        if syntax.is_heredoc(node) and self.found and self._pending is None:
            self._end = max(self._end, node.end_byte)
            self.found[-1].nodes.append(node)
            return
        if inner.type in grammar.closers or (kind == "directive" and not self.text.startswith("#if", node.start_byte)):
            self._end = max(self._end, node.end_byte)
            return
        found = syntax.definition(node, grammar, self.text)
        if names := syntax.package(node, grammar, self.text):
            self._frames[-1].scope = SymbolScope(names)
            self._add(Kind.GLUE, node, self._frames[-1].scope)
        elif found is not None:
            self._define(node, found, scope)
        elif kind in grammar.bodies:
            self._enter(node, scope)
        elif syntax.is_import(node, grammar, self.text):
            self._add(Kind.IMPORT, node, scope)
        elif kind in grammar.namespaces or kind in grammar.modules:
            self._namespace(node, scope)
        elif (kind in grammar.branches or kind == "ERROR") and self._branch(node, scope):
            return
        elif (announced := syntax.prototype(node, grammar)) is not None and self._is_documented(node, scope):
            self._add(Kind.PROTOTYPE, node, scope, describe(announced, scope, grammar, self.text))
        elif self._is_glue(node):
            self._add(Kind.GLUE, node, scope)
        elif (
            self.count(Span(node.start_byte, self._end_of(node))) > LARGE_VALUE
            and (value := syntax.lone_value(node, grammar, self.text)) is not None
        ):
            self._add(Kind.VALUE, node, scope, describe_value(value[1], value[0], scope, self.text))
        else:
            self._add(self._rest(scope), node, scope)

    def _end_of(self, node: Node) -> int:
        """Return the end of a statement with its here-documents, which some grammars put behind it."""
        following = node.next_named_sibling
        return following.end_byte if following is not None and syntax.is_heredoc(following) else node.end_byte

    def _define(self, node: Node, found: syntax.Definition, scope: SymbolScope) -> None:
        symbol = describe(found, scope, self.grammar, self.text)
        if not found.is_class:
            self._add(Kind.WHOLE, node, scope, symbol)
            return
        tokens = self.count(Span(node.start_byte, node.end_byte))
        defines = "definition" in self._holds(found.node)
        if tokens <= SMALL_CLASS or not defines:
            self._add(Kind.WHOLE, node, scope, symbol)
        else:
            inner = scope_of(symbol, scope)
            # Swift calls an extension a class_declaration; only its keyword tells.
            bare = found.node.type in self.grammar.bare | self.grammar.calls
            bare |= any(child.type == "extension" for child in found.node.children[:3])
            self._add(Kind.HEADER, node, inner, symbol, bare=bare, opens=found.node)
            self._enter(found.node, inner)

    def _namespace(self, node: Node, scope: SymbolScope) -> None:
        if node.child_by_field_name("body") is None:
            self._add(Kind.GLUE, node, scope)
            return
        self._add(Kind.GLUE, node, scope, opens=node)
        name = node.child_by_field_name("name") if node.type in self.grammar.modules else None
        if name is not None:
            scope = SymbolScope((*scope.names, self.text[name.start_byte : name.end_byte]), scope.symbol)
        self._enter(node, scope)

    def _branch(self, node: Node, scope: SymbolScope) -> bool:
        """Add a branch that holds imports or definitions. Return ``False`` for other branches, which are statements."""
        held = self._holds(node)
        if held == {"import"} or (held == {"import", "other"} and not node.type.startswith("preproc")):
            self._add(Kind.IMPORT, node, scope)
        elif not held.isdisjoint(("import", "definition")) or node.type == "ERROR":
            if (name := self._option(node)) is not None:
                symbol = describe_value(name, node, scope, self.text)
                if self._is_one(node):
                    self._add(Kind.WHOLE, node, scope, symbol)
                    return True
                scope = SymbolScope(symbol.names, scope.symbol)
            self._add(Kind.GLUE, node, scope, opens=node)
            self._enter(node, scope)
        else:
            return False
        return True

    def _option(self, node: Node) -> str | None:
        """Return the key of a pair in an object that is itself the value of a pair; ``None`` for other nodes.

        The outer pair only gathers: ``methods: {save() {…}}``. In ``props: {width: {validator() {…}}}`` the function
        says less than the key around it.
        """
        pairs = self.grammar.pairs
        if node.type not in pairs or len(self._frames) < 2 or self._frames[-2].kind not in pairs:
            return None
        return syntax.value_name(node, self.grammar, self.text, with_pairs=True)

    def _is_one(self, node: Node) -> bool:
        """Tell whether a pair stays in one piece: it is not large, and its object holds few functions."""
        value = node.child_by_field_name("value")
        members = value.named_children if value is not None and value.type in self.grammar.holders else []
        functions = sum(syntax.definition(member, self.grammar, self.text) is not None for member in members)
        return 0 < functions <= FEW_FUNCTIONS and self.count(Span(node.start_byte, node.end_byte)) <= WHOLE_OPTION

    def _holds(self, node: Node) -> set[str]:
        """Return the kinds of statements inside ``node`` and its branches: ``definition``, ``import``, ``other``.

        Reading ends at the first definition, or at a limit of nodes and levels. ``definition`` is then included.
        """
        grammar = self.grammar
        held: set[str] = set()
        waiting = [syntax.members(node, grammar)]
        for _ in range(syntax.LOOKED_AT):
            member = next(waiting[-1], None)
            if member is None:
                waiting.pop()
                if not waiting:
                    return held
            elif syntax.definition(member, grammar, self.text) or syntax.prototype(member, grammar):
                return held | {"definition"}
            elif member.type in grammar.branches | grammar.bodies | grammar.namespaces or member.type == "ERROR":
                if len(waiting) > NESTED:
                    break
                waiting.append(syntax.members(member, grammar))
            elif member.type not in grammar.comments:
                held.add("import" if syntax.is_import(member, grammar, self.text) else "other")
        return held | {"definition"}

    def _is_documented(self, node: Node, scope: SymbolScope) -> bool:
        """Tell whether a comment is directly above a statement, or above the prototypes before it."""
        if scope.symbol is not None:
            return False
        if (pending := self._pending) is not None:
            return self._newlines(pending.end, node.start_byte) < 2
        is_next = bool(self.found) and self._newlines(self._end, node.start_byte) < 2
        return is_next and self.found[-1].kind is Kind.PROTOTYPE

    def _rest(self, scope: SymbolScope) -> Kind:
        return Kind.PREAMBLE if scope.symbol is None else Kind.HEADER

    def _is_glue(self, node: Node) -> bool:
        if (
            node.type in self.grammar.glue
            or node.type == "directive"
            or syntax.is_overload(node, self.grammar, self.text)
        ):
            return True
        return node.type == "expression_statement" and bool(_STRICT.match(self.text, node.start_byte))

    def _wait(self, node: Node, scope: SymbolScope) -> None:
        """Keep a comment until the next node shows whether the comment belongs to it."""
        attribute = node.type in self.grammar.attributes
        pending = self._pending
        if pending is None:
            if not attribute and self.found and not self._newlines(self._end, node.start_byte):
                self._end = max(self._end, node.end_byte)  # behind a statement, on its line
                return
        elif pending.attribute or attribute or self._newlines(pending.end, node.start_byte) < 2:
            pending.end = node.end_byte
            pending.nodes.append(node)
            pending.attribute |= attribute
            return
        else:
            self._flush(scope)
        self._pending = _Pending(node.start_byte, node.end_byte, [node], attribute)

    def _wait_behind(self, node: Node, scope: SymbolScope) -> None:
        """Keep comments on separate lines at the end of a node, because they may belong to the next node."""
        last = node
        for _ in range(syntax.MAX_WRAPPERS):
            if not last.children or last.children[-1].type in self.grammar.comments:
                break
            last = last.children[-1]
        if not last.children or last.children[-1].type not in self.grammar.comments:
            return
        behind = list(takewhile(lambda child: child.type in self.grammar.comments, reversed(last.children)))[::-1]
        before = last.children[-len(behind) - 1].end_byte if len(behind) < len(last.children) else last.start_byte
        if self._frames[-1].scope is scope and begins_line(self.text, behind[0].start_byte):
            self._end = before
            for comment in behind:
                self._wait(comment, scope)

    def _flush(self, scope: SymbolScope) -> None:
        """Make a region of the pending comments, which belong to no node.

        Short comments join the next region instead.
        """
        pending, self._pending = self._pending, None
        if pending is not None:
            # A line of signs is many tokens and says nothing.
            words = len(_WORDS.findall(self.text, pending.start, pending.end))
            is_banner = bool(self.found) and _RULE.search(self.text, pending.start, pending.end) is not None
            short = (
                is_banner
                or words <= SHORT_COMMENT // 4
                or self.count(Span(pending.start, pending.end)) <= SHORT_COMMENT
            )
            kind, symbol = Kind.GLUE if short else self._rest(scope), None
            if pending.nodes[0].type in self.grammar.documents and (headed := _HEADED.search(self.text, pending.start)):
                symbol = describe_value(headed[1], pending.nodes[0], scope, self.text)
            self.found.append(Region(indented(self.text, pending.start), kind, pending.nodes, scope, symbol))
            self._end = max(self._end, pending.end)

    def _newlines(self, start: int, end: int) -> int:
        """Count the line breaks between two nodes.

        Some grammars make the line break after a comment a part of the comment.
        """
        start -= start > 0 and self.text[start - 1] == "\n"
        return self.text.count("\n", start, end)

    def _add(
        self,
        kind: Kind,
        node: Node,
        scope: SymbolScope,
        symbol: Symbol | None = None,
        *,
        bare: bool = False,
        opens: Node | None = None,
    ) -> None:
        """Start a region at ``node``, or at the comments that belong to it."""
        pending = self._pending
        is_apart = pending is not None and self._newlines(pending.end, node.start_byte) > 1
        if pending is not None and pending.nodes[-1].type in self.grammar.documents:
            is_apart = kind is not Kind.WHOLE
        elif is_apart and symbol is not None and kind in {Kind.WHOLE, Kind.HEADER}:
            is_apart = not self._introduces(node)
        if pending is not None and not pending.attribute and is_apart:
            self._flush(scope)
            pending = None
        self._pending = None
        start = pending.start if pending is not None else node.start_byte
        last = self.found[-1] if self.found else None
        line = self.text.rfind("\n", 0, start) + 1
        if pending is None and self._end < line and start - line < _INDENT and (last is None or last.start < line):
            start = line  # a macro that the parser was not shown stands before it
        if pending is None and self.grammar.name == "objc" and (macro := _MACRO.search(self.text, self._end, start)):
            start = macro.start()
        self._end = max(self._end, opens.start_byte if opens is not None else node.end_byte)
        if last is not None and pending is None and self._continues(last, kind, symbol, scope, start):
            last.nodes.append(node)
            return
        if last is not None and pending is None and self._opens(last, start):
            last.kind, last.scope, last.symbol, last.bare = kind, scope, symbol, bare
            last.nodes.append(node)
            return
        nodes = [*pending.nodes, node] if pending is not None else [node]
        self.found.append(Region(indented(self.text, start), kind, nodes, scope, symbol, bare=bare))

    def _introduces(self, node: Node) -> bool:
        """Tell whether the pending comment belongs to the next definition although a blank line is between them."""
        pending = self._pending
        if pending is None or self._newlines(pending.end, node.start_byte) > 2:
            return False
        if not self.found:
            return self.count(Span(pending.start, pending.end)) <= HEAD_COMMENT
        return self._newlines(self._end, pending.start) > 1

    def _opens(self, last: Region, start: int) -> bool:
        """Tell whether the region ``last`` is only an unknown word before a statement on the same line.

        The statement begins at ``start``.
        """
        begin = self.text.rfind("\n", 0, start) + 1
        return (
            last.symbol is None
            and last.kind in {Kind.PREAMBLE, Kind.HEADER}
            and begin <= last.start + _INDENT
            and last.start - _INDENT <= begin
            and start - begin < _INDENT
            and not self.text[last.start : start].strip().endswith((";", "}"))
            and bool(self.text[begin:start].strip())
            and "\n" not in self.text[last.start : start].strip()
        )

    def _continues(self, last: Region, kind: Kind, symbol: Symbol | None, scope: SymbolScope, start: int) -> bool:
        """Tell whether a statement begins on the line on which the region ``last`` ends, and belongs to that region."""
        if symbol is not None or last.kind is not kind or last.scope is not scope:
            return False
        return not begins_line(self.text, start)


def begins_line(text: str, at: int) -> bool:
    """Tell whether only blanks stand between ``at`` and the start of its line."""
    before = text[max(0, at - _INDENT) : at].rstrip(" \t")
    return before.endswith("\n") or (not before and at <= _INDENT)


def follows_blank_line(text: str, at: int) -> bool:
    """Tell whether a blank line stands above the line of ``at``."""
    before = text[max(0, at - _INDENT) : at]
    return before[len(before.rstrip()) :].count("\n") > 1


def indented(text: str, at: int) -> int:
    """Return ``at`` moved before the blanks that end there, so that code keeps its indentation.

    If ``at`` is inside a word, it is first moved to the start of the word.
    """
    while inside_word(text, at):
        at -= 1
    while at > 0 and text[at - 1] in " \t":
        at -= 1
    return at


def inside_word(text: str, at: int) -> bool:
    """Tell whether a cut at ``at`` would split a word. A confused parser makes such cuts, as in ``1x``."""
    return 0 < at < len(text) and _is_word(text[at - 1]) and _is_word(text[at])


def _is_word(character: str) -> bool:
    return character == "_" or character.isalnum()
