"""What a source file defines: qualified names, signatures, parameters, results, the place of every name."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from tree_sitter import Node

from nornweave.core.types import Span
from nornweave.read.chunking import syntax
from nornweave.read.chunking.languages import Grammar


@dataclass(frozen=True, slots=True)
class Symbol:
    """What a region is called and how it is described.

    Attributes:
        node_type: the grammar's own.
        title: the qualified name.
        signature: the line on which it is named.
        class_signature: the same of the class around it.
    """

    node_type: str
    title: str | None
    signature: str
    function_name: str | None = None
    class_name: str | None = None
    parameter_count: int | None = None
    return_type: str | None = None
    class_signature: str | None = None


@dataclass(frozen=True, slots=True)
class SymbolScope:
    """What is around a node: the class (or nothing) and the path of names."""

    names: tuple[str, ...] = ()
    symbol: Symbol | None = None


NO_SCOPE = SymbolScope()


def describe(found: syntax.Definition, scope: SymbolScope, grammar: Grammar, text: str) -> Symbol:
    """Describe a definition inside ``scope``."""
    name = syntax.name_of(found, grammar, text)
    line = syntax.signature(found, grammar, text)
    around = scope.symbol
    if found.is_class:
        return Symbol(found.node.type, ".".join((*scope.names, name or "")).strip(".") or None, line, class_name=name)
    owner = syntax.owner_of(found, grammar, text)
    names = (*scope.names, *((owner,) if owner else ()), *((name,) if name else ()))
    return Symbol(
        node_type=found.node.type,
        title=".".join(names) or None,
        signature=line,
        function_name=name,
        class_name=owner or (around.class_name if around else None),
        parameter_count=syntax.parameter_count(found, grammar, text, in_class=around is not None),
        return_type=syntax.return_type(found, grammar, text),
        class_signature=around.signature if around else None,
    )


def scope_of(symbol: Symbol, scope: SymbolScope) -> SymbolScope:
    """Return the scope inside a definition."""
    if symbol.title is None:
        return SymbolScope(scope.names, symbol if symbol.class_name else scope.symbol)
    return SymbolScope(tuple(symbol.title.split(".")), symbol if symbol.function_name is None else scope.symbol)


MAX_NAMES = 128
"""Names of one chunk; one with more is a table."""

# What names a value, in all grammars: ``assignment``, ``const_spec``, ``enum_variant``; signatures only announce one.
_VALUE = re.compile(r"(?:assignment|declarator|_spec|_item|_definition|_declaration|_constant|_variant|_def)$")
_NAME_FIELDS = ("name", "left", "property")
_PLAIN = re.compile(r"[A-Za-z_$][\w$]*")


class Definitions:
    """The names that a file defines, in order of their places."""

    def __init__(self, root: Node | None, grammar: Grammar | None, text: str) -> None:
        """Walk through the syntax tree; without one nothing is defined."""
        found = sorted(_found(root, grammar, text)) if root is not None and grammar is not None else []
        self._starts = [start for start, _ in found]
        self._names = [name for _, name in found]

    def within(self, span: Span) -> tuple[str, ...]:
        """Return the qualified names that are defined in a part of the file, each once, in order."""
        first, last = bisect_left(self._starts, span.start), bisect_left(self._starts, span.end)
        return tuple(dict.fromkeys(self._names[first:last]))[:MAX_NAMES]


def _found(root: Node, grammar: Grammar, text: str) -> list[tuple[int, str]]:
    """Return place and qualified name of all definitions, in no order; code nests as deep as it likes."""
    found: list[tuple[int, str]] = []
    open_nodes: list[tuple[Node, tuple[str, ...], bool]] = [(root, (), False)]
    scopes = grammar.modules | grammar.namespaces
    defining = grammar.functions | grammar.classes | grammar.wrappers
    while open_nodes:
        node, around, in_function = open_nodes.pop()
        kind = node.type
        definition = syntax.definition(node, grammar) if kind in defining else None
        if definition is not None:
            names = _qualified(definition, around, grammar, text)
            if names != around:
                found.append((definition.node.start_byte, ".".join(names)))
            node, around, in_function = definition.node, names, in_function or not definition.is_class
        elif kind in scopes:
            around = (*around, *_name(node, text))
        elif not in_function and _VALUE.search(kind):
            named = _name(node, text)
            if named != around[-1:]:  # Go's ``type A struct`` holds a specification of ``A``
                found.extend((node.start_byte, ".".join((*around, name))) for name in named)
        open_nodes.extend((child, around, in_function) for child in node.named_children)
    return found


def _qualified(definition: syntax.Definition, around: Sequence[str], grammar: Grammar, text: str) -> tuple[str, ...]:
    owner = None if definition.is_class else syntax.owner_of(definition, grammar, text)
    name = syntax.name_of(definition, grammar, text)
    return (*around, *((owner,) if owner else ()), *((name,) if name else ()))


def _name(node: Node, text: str) -> tuple[str, ...]:
    """Return the plain name of a declaration; none where it has none, or several."""
    for field in _NAME_FIELDS:
        named = node.child_by_field_name(field)
        if named is not None:
            name = text[named.start_byte : named.end_byte]
            return (name,) if _PLAIN.fullmatch(name) else ()
    return ()
