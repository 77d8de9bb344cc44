"""Divide a region that exceeds the token limit: at statements, if possible between scopes, else at lines."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from tree_sitter import Node

from nornweave.core.text.spans import LINE, PARAGRAPH, WORD, TokenIndex, pack, split
from nornweave.core.types import Span
from nornweave.read.chunking import syntax
from nornweave.read.chunking.languages import Grammar, node_types
from nornweave.read.chunking.regions import Region, begins_line, indented, inside_word
from nornweave.read.chunking.symbols import Symbol, SymbolScope, describe, scope_of

TEXT_CUTS = (PARAGRAPH, LINE, WORD)
"""Where code is cut when its syntax does not help."""

# Children of these may be parted although they stand on one line, as they do in minified files.
LISTS = node_types(
    "program module source_file translation_unit compilation_unit block statement_block compound_statement "
    "body_statement statements statement_list declaration_list class_body field_declaration_list switch_body array "
    "object initializer_list list dictionary arguments argument_list sequence_expression export_clause"
)
_SCOPE_WORDS = node_types(
    "if for while loop do try with switch match case begin unless until select unsafe lock using function lambda "
    "closure method class struct guard when repeat synchronized foreach each interface trait impl enum"
)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a divided region.

    Attributes:
        symbol: what most of it belongs to.
        continues: it starts inside that.
    """

    span: Span
    symbol: Symbol | None
    continues: bool


@dataclass(frozen=True, slots=True)
class _Task:
    """A span to be divided between ``nodes``.

    Attributes:
        nodes: each with whether it stands in a list and so may be parted from its neighbours within a line.
        opens: what follows belongs to it (``def inner():``), so that it goes along.
    """

    span: Span
    nodes: list[tuple[Node, bool]]
    scope: SymbolScope
    opens: bool = False


@dataclass(frozen=True, slots=True)
class _Inner:
    """A named definition inside the divided region; it says its name at ``start``."""

    span: Span
    start: int
    symbol: Symbol


@dataclass(slots=True)
class Division:
    """Divides one region."""

    text: str
    grammar: Grammar
    index: TokenIndex
    limit: int
    _inner: dict[int, _Inner] = field(default_factory=dict)

    def parts(self, region: Region, span: Span) -> list[Part]:
        """Divide ``region``, which covers ``span``, into parts of at most ``limit`` tokens that tile it."""
        scope = scope_of(region.symbol, region.scope) if region.symbol is not None else region.scope
        own = syntax.definition(region.nodes[-1], self.grammar) if region.symbol is not None else None
        atoms = self._atoms(_Task(span, [(node, True) for node in region.nodes], scope), own)
        spans = list(pack(self._opened(atoms), self.index, self.limit))
        return self._named(spans, region)

    def _opened(self, atoms: Iterator[tuple[Span, bool]]) -> Iterator[Span]:
        """Join the beginning of a scope with what comes first in it."""
        opened: Span | None = None
        for span, opens in atoms:
            joined = Span(opened.start, span.end) if opened is not None else span
            if opened is not None and self.index.count(joined) > self.limit:
                yield opened
                joined = span
            opened = joined if opens else None
            if opened is None:
                yield joined
        if opened is not None:
            yield opened

    def _atoms(self, whole: _Task, own: syntax.Definition | None) -> Iterator[tuple[Span, bool]]:
        """Descend wherever a piece is still too long; a stack, because code nests as deep as it likes."""
        waiting = [whole]
        while waiting:
            task = waiting.pop()
            if self.index.count(task.span) <= self.limit:
                yield task.span, task.opens
                continue
            groups = self._groups(task)
            if len(groups) > 1:
                waiting.extend(reversed(self._tasks(task, groups, own)))
                continue
            # A header region's node is the whole class, most of which lies in other regions.
            inside = [
                (child, node.type in LISTS)
                for node, _ in task.nodes
                for child in node.children
                if child.start_byte < task.span.end
            ]
            if inside:
                scope = self._scope_inside(task, own)
                waiting.append(_Task(task.span, inside, scope))
            else:
                yield from ((span, False) for span in split(task.span, self.index, self.limit, TEXT_CUTS))

    def _scope_inside(self, task: _Task, own: syntax.Definition | None) -> SymbolScope:
        """Note the definitions among a task's nodes; return the scope of what the last one holds."""
        scope = task.scope
        for node, _ in task.nodes:
            found = syntax.definition(node, self.grammar) if node.is_named else None
            if found is None or found.node.id in self._inner or (own is not None and found.node.id == own.node.id):
                continue
            symbol = describe(found, task.scope, self.grammar, self.text)
            if symbol.function_name or symbol.class_name:
                self._inner[found.node.id] = _Inner(Span(node.start_byte, node.end_byte), found.node.start_byte, symbol)
                scope = scope_of(symbol, task.scope)
        return scope

    def _tasks(
        self, task: _Task, groups: Sequence[list[tuple[Node, bool]]], own: syntax.Definition | None
    ) -> list[_Task]:
        starts = [
            task.span.start,
            *(indented(self.text, group[0][0].start_byte) for group in groups[1:]),
            task.span.end,
        ]
        spans = [Span(start, end) for start, end in zip(starts, starts[1:], strict=False)]
        tasks = []
        for place, (span, group) in enumerate(zip(spans, groups, strict=True)):
            first, listed = group[0]
            part = _Task(span, group, task.scope, opens=place == 0 and not (first.is_named and listed))
            if self.index.count(span) <= self.limit:
                self._scope_inside(part, own)
            tasks.append(part)
        return list(self._runs(tasks))

    def _runs(self, tasks: Sequence[_Task]) -> Iterator[_Task]:
        """Join neighbouring plain statements, so that packing parts the code around scopes rather than inside a run.

        Half a chunk at most: what opens the scope (``def inner():``) has to fit in front of it.
        """
        run: _Task | None = None
        for task in tasks:
            plain = not task.opens and not any(_is_scope(node) for node, _ in task.nodes)
            if run is not None and plain:
                joined = Span(run.span.start, task.span.end)
                if self.index.count(joined) <= self.limit // 2:
                    run = _Task(joined, [*run.nodes, *task.nodes], run.scope)
                    continue
            if run is not None:
                yield run
                run = None
            if plain:
                run = task
            else:
                yield task
        if run is not None:
            yield run

    def _groups(self, task: _Task) -> list[list[tuple[Node, bool]]]:
        """Group nodes so that each group may start a piece; comments go with what follows them."""
        groups: list[list[tuple[Node, bool]]] = []
        held = False
        for node, listed in task.nodes:
            comment = node.type in self.grammar.comments or node.type in self.grammar.attributes
            at = node.start_byte
            parts = begins_line(self.text, at) or (listed and not comment and not inside_word(self.text, at))
            cuts = node.is_named and not held and parts
            if not groups or cuts:
                groups.append([])
            groups[-1].append((node, listed))
            held = comment and (held or cuts)
        return groups

    def _named(self, spans: Sequence[Span], region: Region) -> list[Part]:
        """Give each part the innermost definition that more than half of it belongs to."""
        starts = [span.start for span in spans]
        best: dict[int, _Inner] = {}
        for inner in self._inner.values():
            for place in range(bisect_right(starts, inner.span.start) - 1, bisect_left(starts, inner.span.end)):
                span = spans[max(place, 0)]
                shared = min(span.end, inner.span.end) - max(span.start, inner.span.start)
                if 2 * shared > len(span) and (place not in best or len(inner.span) < len(best[place].span)):
                    best[place] = inner
        parts = []
        for place, span in enumerate(spans):
            chosen = best.get(place)
            if chosen is None:
                parts.append(Part(span, region.symbol, place > 0))
            else:
                parts.append(Part(span, chosen.symbol, span.start > chosen.start))
        return parts


@lru_cache(maxsize=4096)
def _names_scope(kind: str) -> bool:
    return not _SCOPE_WORDS.isdisjoint(kind.split("_"))


def _is_scope(node: Node) -> bool:
    """Tell whether a node is a loop, a conditional, a ``try``, a nested function, … or a statement that is only one."""
    if not node.is_named:
        return False
    if node.type == "expression_statement" and node.named_child_count == 1:
        inner = node.named_child(0)
        return inner is not None and _names_scope(inner.type)
    return _names_scope(node.type)
