"""Read one syntax node: the function or class that it declares, its name, parameters and return type."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from nornweave.read.chunking.languages import Grammar

MAX_WRAPPERS = 12
"""How many wrappers (``export default @decorated …``) are looked through before a node counts as a statement."""
MAX_SIGNATURE = 120

_REQUIRE = re.compile(r"\w+\s+[^=;]{1,400}=\s*(?:await\s+)?(?:require|import)\s*\(")
_RUBY_REQUIRE = re.compile(r"(?:require|require_relative|load|autoload)\b")
_PHP_INCLUDE = re.compile(r"(?:require|include)(?:_once)?\b")
_PLAIN_NAME = re.compile(r"[\w$]+")


@dataclass(frozen=True, slots=True)
class Definition:
    """A function or a class and the outermost node around it alone (decorators, ``export``, ``template<…>``)."""

    node: Node
    named_by: Node
    is_class: bool


def definition(node: Node, grammar: Grammar) -> Definition | None:
    """Look through wrappers for the one function or class that ``node`` defines."""
    named_by = node
    inner: Node | None = node
    for _ in range(MAX_WRAPPERS):
        if inner is None or not inner.is_named:
            return None
        kind = inner.type
        if kind in grammar.functions:
            if inner is node:
                named_by = inner
            return Definition(inner, named_by, is_class=False) if _has_body(inner, grammar) else None
        if kind in grammar.classes:
            return Definition(inner, named_by, is_class=True) if _is_class(inner, grammar) else None
        if kind not in grammar.wrappers:
            return None
        named_by = inner
        inner = _wrapped(inner, grammar)
    return None


def _wrapped(node: Node, grammar: Grammar) -> Node | None:
    for field in ("definition", "declaration", "value", "right", "type"):
        child = node.child_by_field_name(field)
        if child is not None:
            return child
    inside = [child for child in node.named_children if child.type not in grammar.comments | grammar.attributes]
    if node.type in {"lexical_declaration", "variable_declaration", "argument_list"} and len(inside) != 1:
        return None
    return inside[-1] if inside else None


def _has_body(node: Node, grammar: Grammar) -> bool:
    if node.type in grammar.bodiless or node.child_by_field_name("body") is not None:
        return True
    return any(child.type == "function_body" or child.type in grammar.bodies for child in node.children)


def _is_class(node: Node, grammar: Grammar) -> bool:
    if node.type in grammar.needs_body:
        return node.child_by_field_name("body") is not None
    if grammar.name == "go":
        specs = [child for child in node.named_children if child.type == "type_spec"]
        shape = specs[0].child_by_field_name("type") if len(specs) == 1 else None
        return shape is not None and shape.type in {"struct_type", "interface_type"}
    return True


def is_import(node: Node, grammar: Grammar, text: str) -> bool:
    """Tell whether a statement brings in other files."""
    kind = node.type
    if kind in grammar.imports:
        return True
    if grammar.name in {"javascript", "typescript", "tsx"}:
        if kind == "export_statement":
            return node.child_by_field_name("source") is not None
        return kind in {"lexical_declaration", "variable_declaration"} and bool(_REQUIRE.match(text, node.start_byte))
    if grammar.name == "rust":
        return kind == "mod_item" and node.child_by_field_name("body") is None
    pattern = {"ruby": _RUBY_REQUIRE, "php": _PHP_INCLUDE}.get(grammar.name)
    return (
        pattern is not None and kind in {"call", "expression_statement"} and bool(pattern.match(text, node.start_byte))
    )


def members(node: Node, grammar: Grammar) -> Iterator[Node]:
    """Yield the named children of a container that stand for members or hold them, in order."""
    if node.type in grammar.bodies or node.type == "ERROR":
        yield from node.named_children
    elif node.type.startswith("preproc"):
        named = node.child_by_field_name("name") or node.child_by_field_name("condition")
        yield from (child for child in node.named_children if child != named)
    else:
        body = node.child_by_field_name("body")
        within = grammar.bodies | grammar.branches | grammar.comments
        yield from (child for child in node.named_children if child == body or child.type in within)


def name_of(found: Definition, grammar: Grammar, text: str) -> str | None:
    """Return the name that a function or a class is called by; ``None`` when it has none."""
    node = found.node
    if grammar.name in {"c", "cpp"}:
        return _c_name(found, text)
    named = _name_node(node) or (_name_node(found.named_by) if found.named_by != node else None)
    if node.type == "impl_item":
        named = node.child_by_field_name("type")
    if named is None:
        return _unnamed(found, text)
    name = _shorten(text[named.start_byte : named.end_byte])
    if node.type in {"impl_item", "class_declaration"}:
        return re.split(r"[<\[]", name)[0].strip().lstrip("&*").rsplit("::", 1)[-1]
    return f"~{name}" if node.type == "destructor_declaration" else name.strip("'\"")


def _name_node(node: Node) -> Node | None:
    """Find the node that names ``node``: most grammars have a field for it, Go has a child with one."""
    for field in ("name", "property", "key"):
        child = node.child_by_field_name(field)
        if child is not None:
            return child
    left = node.child_by_field_name("left")
    if left is not None:
        return left.child_by_field_name("property") or left
    spec = next((child for child in node.named_children if child.type == "type_spec"), None)
    return spec and spec.child_by_field_name("name")


def _unnamed(found: Definition, text: str) -> str | None:
    kind = found.node.type
    fixed = {"init_declaration": "init", "deinit_declaration": "deinit", "secondary_constructor": "constructor"}
    if kind in fixed:
        return fixed[kind]
    if kind in {"operator_declaration", "conversion_operator_declaration"}:
        parameters = found.node.child_by_field_name("parameters")
        end = parameters.start_byte if parameters is not None else found.node.end_byte
        match = re.search(r"\boperator\b.*", text[found.node.start_byte : end], re.DOTALL)
        return _shorten(match[0]) if match else None
    return "default" if found.named_by.type == "export_statement" else None


def _c_name(found: Definition, text: str) -> str | None:
    node = found.node
    named = node.child_by_field_name("name") if found.is_class else _declared(node)
    if named is None and found.named_by.type == "type_definition":
        named = found.named_by.child_by_field_name("declarator")
    if named is None:
        return None
    name = _shorten(text[named.start_byte : named.end_byte])
    return name if "operator" in name else re.sub(r"<.*>", "", name).rsplit("::", 1)[-1]


def _declared(node: Node) -> Node | None:
    """Descend through pointers, references and parameter lists to the declared name of a C or C++ function."""
    function = _declarator(node)
    named = function.child_by_field_name("declarator") if function is not None else None
    while named is not None and named.type == "qualified_identifier":
        named = named.child_by_field_name("name")
    return named


def _declarator(node: Node) -> Node | None:
    current = node.child_by_field_name("declarator")
    while current is not None and current.type != "function_declarator":
        inner = current.child_by_field_name("declarator")
        current = inner or next((child for child in current.named_children if child.type.endswith("declarator")), None)
    return current


def owner_of(found: Definition, grammar: Grammar, text: str) -> str | None:
    """Name the class that a function belongs to although it stands outside of it (Go, C++, ``A.prototype.b = …``)."""
    node = found.node
    if grammar.name == "go":
        receiver = node.child_by_field_name("receiver")
        words = _PLAIN_NAME.findall(text[receiver.start_byte : receiver.end_byte].split("[")[0]) if receiver else []
        return words[-1] if words else None
    if grammar.name == "cpp" and not found.is_class:
        function = _declarator(node)
        named = function.child_by_field_name("declarator") if function is not None else None
        if named is not None and named.type == "qualified_identifier":
            scope = text[named.start_byte : named.end_byte].split("operator")[0]
            parts = re.sub(r"<.*>", "", scope).split("::")
            return parts[-2].strip() or None if len(parts) > 1 else None
    left = found.named_by.child_by_field_name("left") if found.named_by.type == "assignment_expression" else None
    if left is not None:
        match = re.match(r"([\w$]+)\.prototype\.", text[left.start_byte : left.end_byte])
        return match[1] if match else None
    return None


def parameter_count(found: Definition, grammar: Grammar, text: str, *, in_class: bool) -> int | None:
    """Count a function's parameters without receivers (``self``, ``this``); ``None`` when it has no parameter list."""
    node = _declarator(found.node) if grammar.name in {"c", "cpp"} else found.node
    if node is None or node.type == "macro_definition":
        return None
    listed = node.child_by_field_name("parameters") or next(
        (child for child in node.named_children if child.type == "function_value_parameters"), None
    )
    if listed is None:
        inside = [child for child in node.named_children if child.type == "parameter"]
        return 1 if node.child_by_field_name("parameter") is not None else len(inside)
    ignored = grammar.receivers | grammar.comments
    given = [child for child in listed.named_children if child.type not in ignored]
    if grammar.name == "go":
        return sum(max(1, len(child.children_by_field_name("name"))) for child in given)
    if grammar.name in {"kotlin", "csharp"}:  # C# leaves ``params T[] rest`` without a node of its own
        rest = 1 if listed.child_by_field_name("type") is not None else 0
        given = [child for child in given if child.type == "parameter"]
        return rest + len(given) - _receives(given, grammar, text, in_class=in_class)
    return len(given) - _receives(given, grammar, text, in_class=in_class)


def _receives(given: list[Node], grammar: Grammar, text: str, *, in_class: bool) -> int:
    """Return 1 when the first parameter is the receiver or the ``void`` of C."""
    if not given:
        return 0
    first = text[given[0].start_byte : min(given[0].end_byte, given[0].start_byte + 200)]
    words = _PLAIN_NAME.findall(first)
    word = words[0] if words else ""
    if grammar.name == "python":
        return int(in_class and word in {"self", "cls"})
    if grammar.name in {"c", "cpp"}:
        return int(first == "void")
    return int(grammar.name in {"typescript", "tsx", "csharp"} and word == "this")


def return_type(found: Definition, grammar: Grammar, text: str) -> str | None:
    """Return what a function says it returns, on one line."""
    node = found.node
    if grammar.name in {"c", "cpp"}:
        return _c_return_type(node, text)
    if grammar.name in {"swift", "kotlin"}:
        typed = _after_arrow(node, "->" if grammar.name == "swift" else ":")
    else:
        fields = ("return_type", "returns", "result") if grammar.name != "java" else ("type",)
        fields = (*fields, "type") if grammar.name == "csharp" else fields
        typed = next((child for field in fields if (child := node.child_by_field_name(field)) is not None), None)
    return _shorten(text[typed.start_byte : typed.end_byte].lstrip(":")) if typed is not None else None


def _after_arrow(node: Node, arrow: str) -> Node | None:
    """Return the type behind ``->`` (Swift) or behind the ``:`` after the parameters (Kotlin)."""
    children = node.children
    closed = False
    for here, following in zip(children, children[1:], strict=False):
        closed = closed or here.type in {"function_value_parameters", ")"}
        if closed and here.type == arrow and following.type != "constructor_delegation_call":
            return following
    return None


def _c_return_type(node: Node, text: str) -> str | None:
    function = _declarator(node)
    trailing = [child for child in function.named_children if child.type == "trailing_return_type"] if function else []
    if trailing:
        return _shorten(text[trailing[0].start_byte : trailing[0].end_byte].removeprefix("->"))
    typed = node.child_by_field_name("type")
    if typed is None or function is None:
        return None
    words = [c for c in node.children if c.start_byte < function.start_byte and c.type == "type_qualifier"] + [typed]
    base = " ".join(text[word.start_byte : word.end_byte] for word in sorted(words, key=lambda word: word.start_byte))
    declarator = node.child_by_field_name("declarator")
    between = text[declarator.start_byte : function.start_byte] if declarator is not None else ""
    stars = re.sub(r"[^*&]", "", between)
    return _shorten(f"{base} {stars}" if stars else base)


def signature(found: Definition, grammar: Grammar, text: str) -> str:
    """Return the line on which a function or a class is named."""
    node = found.node
    named = _declared(node) if grammar.name in {"c", "cpp"} and not found.is_class else _name_node(node)
    at = (named or node).start_byte
    start = max(text.rfind("\n", 0, at) + 1, at - MAX_SIGNATURE)
    end = text.find("\n", at)
    return _shorten(text[start : min(end if end >= 0 else len(text), at + MAX_SIGNATURE)])


def _shorten(text: str) -> str:
    return " ".join(text[: 4 * MAX_SIGNATURE].split())[:MAX_SIGNATURE]
