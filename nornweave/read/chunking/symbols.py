"""Describe functions and classes: qualified names, signatures, parameters, results."""

from __future__ import annotations

from dataclasses import dataclass

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
