"""The definitions of a source file: qualified names, signatures, parameters, results, the place of every name."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import NamedTuple

from tree_sitter import Node

from nornweave.core.text.spans import Lines, strip
from nornweave.core.types import JsonValue, Span
from nornweave.read.chunking import syntax
from nornweave.read.chunking.languages import C_FAMILY, Grammar, code_format_of, grammar_of
from nornweave.read.chunking.parsing import mask, parse


@dataclass(frozen=True, slots=True)
class Symbol:
    """The name and the description of a region.

    Attributes:
        node_type: the type of the node in the grammar.
        names: the names of all definitions around it, outermost first, then its own name.
        signature: the line with its name.
        class_signature: the line with the name of the class around it; ``None`` if there is no class.
    """

    node_type: str
    names: tuple[str, ...]
    signature: str
    function_name: str | None = None
    class_name: str | None = None
    parameter_count: int | None = None
    return_type: str | None = None
    class_signature: str | None = None

    @property
    def title(self) -> str | None:
        """Return the qualified name; ``None`` if the region has no name.

        The names are joined by dots, or by ``>`` if one of them has blanks.
        """
        is_said = any((" " in name and not name.startswith("operator")) or name.startswith(".") for name in self.names)
        return (" > " if is_said else ".").join(self.names) or None


@dataclass(frozen=True, slots=True)
class SymbolScope:
    """The scope around a node: the class, if any, and the path of names."""

    names: tuple[str, ...] = ()
    symbol: Symbol | None = None


NO_SCOPE = SymbolScope()


def describe(found: syntax.Definition, scope: SymbolScope, grammar: Grammar, text: str) -> Symbol:
    """Describe a definition inside ``scope``."""
    own = syntax.names_of(found, grammar, text)
    is_elsewhere = found.node.type in grammar.packages or syntax.is_given_to(found, text)
    outer = () if is_elsewhere else scope.names
    names, name = (*outer, *own), own[-1] if own else None
    line = syntax.signature(found, grammar, text)
    around = scope.symbol
    if found.is_class:
        return Symbol(found.node.type, names, line, class_name=name)
    return Symbol(
        node_type=found.node.type,
        names=names,
        signature=line,
        function_name=name,
        class_name=own[-2] if len(own) > 1 else (around.class_name if around else None),
        parameter_count=syntax.parameter_count(found, grammar, text, in_class=around is not None),
        return_type=syntax.return_type(found, grammar, text),
        class_signature=around.signature if around else None,
    )


def describe_value(name: str, node: Node, scope: SymbolScope, text: str) -> Symbol:
    """Describe a named value, such as a table."""
    line = text[node.start_byte : node.end_byte].partition("\n")[0]
    around = scope.symbol
    return Symbol(
        node.type,
        (*scope.names, name),
        line[: syntax.MAX_SIGNATURE],
        class_name=around.class_name if around else None,
        class_signature=around.signature if around else None,
    )


def joined(symbols: Sequence[Symbol]) -> Symbol:
    """Return one symbol for several definitions in one chunk. Its name has as many of their names as fit on a line."""
    if len(symbols) == 1:
        return symbols[0]
    names = shorten(
        ", ".join(dict.fromkeys(symbol.title or "" for symbol in symbols)), syntax.MAX_SIGNATURE, placeholder=" …"
    )
    return Symbol(symbols[0].node_type, (names,), symbols[0].signature)


def scope_of(symbol: Symbol, scope: SymbolScope) -> SymbolScope:
    """Return the scope inside a definition that lies in ``scope``."""
    return SymbolScope(symbol.names, symbol if symbol.function_name is None and symbol.class_name else scope.symbol)


MAX_NAMES = 128
"""Names of one chunk; one with more is a table."""
_PLAIN = re.compile(r"~?[A-Za-z_$@%][\w$]*[!?=]?|[A-Za-z_][\w-]*|(?:[A-Z]\w*\.)+\w+|(?:\w+:)+|operator\b.*")
"""Names in code; what tests and routes are called is none."""


class DefinedName(NamedTuple):
    """The place and the qualified name of a definition. ``end`` is where the body of the definition ends."""

    start: int
    name: str
    is_declared: bool
    end: int
    is_class: bool


class Definitions:
    """The definitions in a file, in order of their places."""

    def __init__(self, root: Node | None, grammar: Grammar | None, text: str) -> None:
        """Walk through the syntax tree. If there is no tree, there are no definitions."""
        self.all = sorted(_found(root, grammar, text)) if root is not None and grammar is not None else []
        self._starts = [found.start for found in self.all]
        self._names = [found.name for found in self.all]
        self._declared = [found.is_declared for found in self.all]

    def within(self, span: Span) -> tuple[str, ...]:
        """Return the qualified names that a part of the file defines or declares, each once, in order."""
        return tuple(self._are_declared(span))[:MAX_NAMES]

    def declared_within(self, span: Span) -> tuple[str, ...]:
        """Return the names that a part of the file declares but does not define."""
        return tuple(name for name, is_declared in self._are_declared(span).items() if is_declared)[:MAX_NAMES]

    def _are_declared(self, span: Span) -> dict[str, bool]:
        first, last = bisect_left(self._starts, span.start), bisect_left(self._starts, span.end)
        names, declared = self._names[first:last], self._declared[first:last]
        defined = {name for name, is_declared in zip(names, declared, strict=True) if not is_declared}
        return {name: name not in defined for name in names}


def definition_lines(values: Mapping[str, JsonValue], raw: bytes) -> list[tuple[int, int, str]] | None:
    """Return the first line, last line and name of each definition in a file; ``None`` if it cannot be parsed.

    Lines are counted from 1, and the name is without those of the definitions around it.
    """
    path, text = str(values["path"]), raw.decode("utf-8", "replace")
    grammar = grammar_of(code_format_of(path, text) or "", path, text)
    tree = parse(grammar, mask(text)) if grammar else None
    if tree is None:
        return None
    lines = Lines(text.replace("\r", " "))  # git ends a line at ``\n`` alone
    return [
        (*lines.range(strip(text, Span(each.start, each.end))), each.name.rpartition(".")[2])
        for each in Definitions(tree.root_node, grammar, text).all
        if not each.is_declared
    ]


def _found(root: Node, grammar: Grammar, text: str) -> list[DefinedName]:
    """Return all definitions and declarations, in any order.

    A stack is used instead of recursion, because code may be nested without limit.
    """
    found: list[DefinedName] = []
    open_nodes: list[tuple[Node, tuple[str, ...], bool]] = [(root, (), False)]
    scopes = grammar.modules | grammar.namespaces
    while open_nodes:
        node, around, in_function = open_nodes.pop()
        kind = node.type
        is_looked_at = kind in grammar.defining or (kind in grammar.calls and not in_function)
        definition = syntax.definition(node, grammar, text, with_calls=not in_function) if is_looked_at else None
        if definition is not None:
            own = syntax.names_of(definition, grammar, text)
            outer = around if definition.node.type not in grammar.packages else ()
            names = (*outer, *(name for name in own if _PLAIN.fullmatch(name)))
            if names != around:
                inner = definition.node
                found.append(DefinedName(inner.start_byte, ".".join(names), False, inner.end_byte, definition.is_class))
            node, around, in_function = definition.node, names, in_function or not definition.is_class
        elif kind in scopes:
            name = syntax.value_name(node, grammar, text)
            around = (*around, name) if name and _PLAIN.fullmatch(name) else around
        elif not in_function:
            name = syntax.value_name(node, grammar, text)
            # Go's ``type A struct`` holds a specification of ``A``.
            if name and _PLAIN.fullmatch(name) and (name,) != around[-1:]:
                found.append(DefinedName(node.start_byte, ".".join((*around, name)), False, node.end_byte, False))
            if (announced := syntax.prototype(node, grammar)) is not None and announced.named_by == node:
                own = tuple(name for name in syntax.names_of(announced, grammar, text) if _PLAIN.fullmatch(name))
                announcement = DefinedName(node.start_byte, ".".join((*around, *own)), True, node.end_byte, False)
                found += [announcement] if own else []
        # A leaf has no name, and functions of C hold none.
        if kind not in grammar.announcements and not (in_function and grammar.name in C_FAMILY):
            for child in node.named_children:
                if child.named_child_count:
                    open_nodes.append((child, around, in_function))
                if names := syntax.package(child, grammar, text) if grammar.packages else ():
                    around = names
                    found.append(DefinedName(child.start_byte, ".".join(names), False, child.end_byte, False))
    return found
