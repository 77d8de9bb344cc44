"""Read one syntax node: the function or class that it declares, its name, parameters and return type."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from nornweave.read.chunking import parsing
from nornweave.read.chunking.languages import C_FAMILY, Grammar

MAX_WRAPPERS = 12
"""How many wrappers (``export default @decorated …``) are looked through before a node counts as a statement."""
MAX_SIGNATURE = 120
LOOKED_AT = 300
"""Members of a branch or a class from which it is taken for one that has definitions."""

_REQUIRE = re.compile(r"\w+\s+[^=;]{1,400}=\s*(?:await\s+)?(?:require|import)\s*\(")
_RUBY_REQUIRE = re.compile(r"(?:require|require_relative|load|autoload)\b")
_PERL_USE = re.compile(r"(?:use|no|require)\b(?!\s+constant\b)")
_PHP_INCLUDE = re.compile(r"(?:require|include)(?:_once)?\b")
_PLAIN_NAME = re.compile(r"[\w$]+")

_CALLEE = re.compile(r"#?[A-Za-z_$@][\w$]*(?:(?:\.|::|->|\?\.)[\w$]+)*[!?]?")
_STRING = r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|`[^`]*`'
_ESCAPED = re.compile(r"\\([\"'`])")
# Of ``const { a, b } = …``: several names.
_PATTERNS = frozenset({"object_pattern", "array_pattern"})
_LITERAL = re.compile(
    rf"[\s,]*(?:(?P<said>{_STRING})|:(?P<symbol>\w+)|(?P<key>[a-z]\w*):(?=\s+[\[:%])"
    r"|(?P<constant>[A-Z]\w*(?:(?:\.|::)\w+)*)(?![\w(.:]))(?=\s*(?:[,)\]{|]|do\b|=>|\Z))"
)
_ONLY_A_FUNCTION = re.compile(r"[(\s]*(?:async\b\s*)?(?:func(?:tion)?\b|\([^()]*\)\s*=>|[\w$]*\s*=>|do\b|\{|\Z)")
_OPENING = re.compile(rf"{_STRING}|[()\[\]{{}}]")
_HEAD = 600
"""Characters of a call that its callee and what names it are looked for in."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A function or a class. ``node`` is the outermost node with only this definition, such as a decorated function.

    Attributes:
        named_by: the node with the name.
        said: for a call that makes a definition, its names; empty if ``named_by`` has the name. ``None`` if the
            definition is not made by a call.
        is_callee: whether the name is only that of the called function.
    """

    node: Node
    named_by: Node
    is_class: bool
    said: tuple[str, ...] | None = None
    is_callee: bool = False


def definition(node: Node, grammar: Grammar, text: str, *, with_calls: bool = True) -> Definition | None:
    """Return the only function or class that ``node`` defines, even inside wrappers; ``None`` if there is none.

    Args:
        with_calls: whether a call may be a definition too, as ``describe("a ledger", () => {`` is.
    """
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
        if with_calls and kind in grammar.calls and (called := _called(inner, named_by, grammar, text)) is not None:
            return called
        if kind not in grammar.wrappers:
            return None
        named_by = inner
        inner = _wrapped(inner, grammar)
    return None


def prototype(node: Node, grammar: Grammar) -> Definition | None:
    """Return the C or C++ function that ``node`` declares without a body; ``None`` if it declares none.

    Members of a class do not count. Variables that point to functions do not count either.
    """
    inner: Node | None = node
    while inner is not None and inner.type in grammar.wrappers:
        inner = _wrapped(inner, grammar)
    if inner is None or inner.type not in grammar.prototypes or inner.child_by_field_name("type") is None:
        return None
    named = _declared(inner)
    is_function = named is not None and named.type.endswith(("identifier", "operator_name"))
    return Definition(inner, node, is_class=False) if is_function else None


_RUN = frozenset({"it", "specify", "example", "scenario", "test", "subtest", "bench", "fit", "xit", "xtest"})
"""One test: what it defines to be tested is no test of its own, unless it has the same word."""


def _called(node: Node, named_by: Node, grammar: Grammar, text: str) -> Definition | None:
    """Return the definition that a call makes if a function is its argument; ``None`` for other calls.

    Its name consists of the first arguments that are literals: ``it("adds", () => {``, ``describe Ledger, "#post" do``.
    For a method call the object and the method come before them (``app.get /users``). If the function is the only
    argument, the name is that of the called function (``beforeEach``). If the result of the call is assigned, the name
    is that of the variable.
    """
    block = block_of(node, grammar)
    word, arguments = _callee(node, block, text)
    if word in grammar.function_words or word in grammar.class_words:
        named = re.match(r"[\s(]*([\w.]+[!?]?)", arguments)
        return Definition(node, named_by, word in grammar.class_words, (named[1],)) if named else None
    said = _said(word, arguments, grammar)
    if block is None or not (word or said):
        return None
    if named_by != node and (_name_node(named_by, grammar) is not None or named_by.type == "export_statement"):
        return Definition(node, named_by, is_class=False, said=())
    on_something = "." in word or "::" in word
    if said:
        runs = frozenset({word}) if word in _RUN else None
        is_suite = any(_names_what_it_runs(part, grammar, text, runs) for part in block.named_children[:LOOKED_AT])
        return Definition(
            node, named_by, is_suite, (f"{word} {said}" if on_something or word.startswith("#") else said,)
        )
    only = not on_something and _ONLY_A_FUNCTION.match(arguments) is not None
    return Definition(node, named_by, is_class=False, said=(word,), is_callee=True) if only else None


def _names_what_it_runs(node: Node, grammar: Grammar, text: str, words: Collection[str] | None) -> bool:
    """Tell whether a statement is a call that names the block that it runs: ``it("adds", () => {``.

    Args:
        words: the names of the called functions that count; ``None`` if all of them count.
    """
    inner: Node | None = node
    while inner is not None and inner.type in grammar.wrappers - grammar.calls:
        inner = _wrapped(inner, grammar)
    block = block_of(inner, grammar) if inner is not None and inner.type in grammar.calls else None
    if inner is None or block is None:
        return False
    word, arguments = _callee(inner, block, text)
    return "." not in word and (words is None or word in words) and bool(_said(word, arguments, grammar))


def _callee(call: Node, block: Node | None, text: str) -> tuple[str, str]:
    """Return the name of the called function. Return also its arguments as they are written, up to the block."""
    end = block.start_byte if block is not None else call.end_byte
    head = text[call.start_byte : min(end, call.start_byte + _HEAD)]
    callee = _CALLEE.match(head)
    return (callee[0], head[callee.end() :]) if callee is not None else ("", head)


def _said(word: str, arguments: str, grammar: Grammar) -> str:
    """Return the literals at the beginning of a call's arguments, up to the first string; empty if there are none.

    For ``each(table)("adds %i", …)`` the last list of arguments is used. In Scala ``word`` is empty if the call stands
    between strings: ``"a ledger" should "keep" in {``.
    """
    if not word:
        sentence = arguments[: arguments.rfind('"') + 1] if "infix_expression" in grammar.calls else ""
        return _shorten(sentence.replace('"', " ")) if sentence.startswith('"') else ""
    depth, starts = 0, [0]
    for sign in _OPENING.finditer(arguments):
        if sign[0] in "([{":
            starts += [sign.end()] if sign[0] == "(" and not depth else []
            depth += 1
        elif sign[0] in ")]}":
            depth -= 1
    for at in reversed(starts):
        names, start = list[str](), at
        while (match := _LITERAL.match(arguments, start)) is not None:
            if match["constant"] and grammar.class_words:  # ``if Some.module do`` is a call as well
                break
            name = match["said"][1:-1] if match["said"] else match["symbol"] or match["key"] or match["constant"]
            names.append(_shorten(_ESCAPED.sub(r"\1", name)))
            start = match.end()
            if match["said"] or not arguments.startswith(",", start):
                break
        if any(names):
            return " ".join(names)
    return ""


def block_of(call: Node, grammar: Grammar) -> Node | None:
    """Return the block that a call runs: the body of the last function in its arguments or after them.

    ``None`` if there is no such block.
    """
    found: Node | None = None
    current = call
    for _ in range(MAX_WRAPPERS):
        inner = next((child for child in reversed(current.named_children) if child.type in grammar.running), None)
        if inner is None:
            return found
        current = inner
        if current.type in grammar.bodies:
            return current
        if current.type in grammar.functions:
            found = current
    return found


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
        return _has_body(node, grammar)
    if grammar.name == "go":
        specs = [child for child in node.named_children if child.type == "type_spec"]
        shape = specs[0].child_by_field_name("type") if len(specs) == 1 else None
        return shape is not None and shape.type in {"struct_type", "interface_type"}
    return True


def is_import(node: Node, grammar: Grammar, text: str) -> bool:
    """Tell whether a statement imports other files."""
    kind = node.type
    if kind in grammar.imports:
        return True
    if grammar.name in {"javascript", "typescript", "tsx"}:
        if kind == "export_statement":
            return node.child_by_field_name("source") is not None
        return kind in {"lexical_declaration", "variable_declaration"} and bool(_REQUIRE.match(text, node.start_byte))
    if grammar.name == "rust":
        return kind == "mod_item" and node.child_by_field_name("body") is None
    pattern = {"ruby": _RUBY_REQUIRE, "php": _PHP_INCLUDE, "perl": _PERL_USE}.get(grammar.name)
    may_be = kind in {"call", "expression_statement", "use_statement"}
    if node.next_named_sibling is not None and is_heredoc(node.next_named_sibling):  # what it is given says more
        return False
    return pattern is not None and may_be and bool(pattern.match(text, node.start_byte))


def is_overload(node: Node, grammar: Grammar, text: str) -> bool:
    """Tell whether a signature of TypeScript stands above another one, or the function, of the same name."""
    inner, following = node.child_by_field_name("declaration") or node, node.next_named_sibling
    if inner.type != "function_signature":
        return False
    while following is not None and following.type in grammar.comments:
        following = following.next_named_sibling
    named = inner.child_by_field_name("name")
    below = (following.child_by_field_name("declaration") or following) if following is not None else None
    other = below.child_by_field_name("name") if below is not None else None
    if named is None or other is None:
        return False
    return text[named.start_byte : named.end_byte] == text[other.start_byte : other.end_byte]


def is_heredoc(node: Node) -> bool:
    """Tell whether a node is the text of a here-document, which belongs to the statement before it."""
    return node.type in {"heredoc_content", "heredoc_body"}


def package(node: Node, grammar: Grammar, text: str) -> tuple[str, ...]:
    """Return the names of the package to which ``node`` assigns all following code; empty if it assigns none."""
    if node.type not in grammar.packages or _has_body(node, grammar):
        return ()
    named = _name_node(node, grammar)
    return tuple(text[named.start_byte : named.end_byte].split("::")) if named is not None else ()


def members(node: Node, grammar: Grammar) -> Iterator[Node]:
    """Yield the named children of a container that are members or contain members, in order."""
    if node.type in grammar.bodies or node.type in grammar.holders or node.type == "ERROR":
        yield from node.named_children
    elif node.type in grammar.calls:
        block = block_of(node, grammar)
        yield from block.named_children if block is not None else ()
    elif node.type.startswith("preproc"):
        named = node.child_by_field_name("name") or node.child_by_field_name("condition")
        yield from (child for child in node.named_children if child != named)
    else:
        body = node.child_by_field_name("body")
        yield from (child for child in node.named_children if child == body or child.type in grammar.holding)


def names_of(found: Definition, grammar: Grammar, text: str) -> tuple[str, ...]:  # noqa: C901 - one language after another
    """Return the names of a function or a class. For a method that is defined outside of its class, the class is first.

    Some definitions have several names: ``TEST(Suite, name)``, ``resource "aws_instance" "web"``.
    """
    node = found.node
    if found.said:
        return found.said
    if grammar.name in C_FAMILY and node.type not in grammar.bodies | grammar.bodiless:
        return (*_owner(found, grammar, text), *_c_names(found, text))
    named = _name_node(node, grammar) if found.said is None else None
    if named is None and found.named_by != node:
        named = _name_node(found.named_by, grammar)
    if node.type == "impl_item":
        named = node.child_by_field_name("type")
    if named is None or named.type in _PATTERNS:
        name = _unnamed(found, text)
        return (name,) if name else ()
    if grammar.name == "hcl":
        labels = [child for child in node.named_children if child.type in grammar.names]
        return tuple(text[child.start_byte : child.end_byte].strip('"') for child in labels)
    name = _shorten(text[named.start_byte : named.end_byte])
    if node.type in {"impl_item", "class_declaration"}:
        name = re.split(r"[<\[]", name)[0].strip().lstrip("&*").rsplit("::", 1)[-1]
    elif node.type == "destructor_declaration":
        name = f"~{name}"
    elif grammar.name == "objc" and (category := node.child_by_field_name("category")) is not None:
        name = f"{name}({text[category.start_byte : category.end_byte]})"
    elif node.type == "method_definition" and grammar.name == "objc":
        name = _selector(node, text)
    elif name.startswith("@test"):  # of bats
        name = name.removeprefix("@test").strip("\"' ")
    elif grammar.name in {"lua", "sql", "perl"}:
        return tuple(re.split(r"::|[.:]", name.replace('"', "").replace("`", "")))
    return (*_owner(found, grammar, text), name.strip("'\""))


def _selector(method: Node, text: str) -> str:
    """Return the name of an Objective-C method: ``initWithName:retryLimit:``."""
    taken = any(child.type == "method_parameter" for child in method.named_children)
    words = (text[child.start_byte : child.end_byte] for child in method.named_children if child.type == "identifier")
    return "".join(f"{word}:" for word in words) if taken else next(words, "")


def _name_node(node: Node, grammar: Grammar) -> Node | None:
    """Return the node with the name of ``node``; ``None`` if it has no name.

    In most grammars it is in a field, in others it is a child of a certain type.
    """
    for field in ("name", "property", "key"):
        child = node.child_by_field_name(field)
        if child is not None:
            return child
    left = node.child_by_field_name("left")
    if left is not None:
        return left.child_by_field_name("property") or left.child_by_field_name("variable") or left
    if grammar.names:
        return next((child for child in node.named_children if child.type in grammar.names), None)
    spec = next((child for child in node.named_children if child.type == "type_spec"), None)
    return spec and spec.child_by_field_name("name")


_VALUE = re.compile(r"(?:assignment|declarator|_spec|_item|_definition|_declaration|_constant|_variant|_def)$")
"""What names a value, in all grammars: ``assignment``, ``const_spec``, ``enum_variant``."""


def value_name(node: Node, grammar: Grammar, text: str, *, with_pairs: bool = False) -> str | None:
    """Return the name that ``node`` gives to a value; ``None`` if it gives none or several.

    Args:
        with_pairs: whether the keys of tables count as names too.
    """
    kind = node.type
    is_value = _VALUE.search(kind) or kind in grammar.values or (with_pairs and kind in grammar.pairs)
    if not is_value or kind in grammar.announcements or kind in grammar.imports:
        return None
    named = _item_name(node, text) if kind == "block_sequence_item" else _name_node(node, grammar)
    if named is None and grammar.name in C_FAMILY:
        named = node.child_by_field_name("declarator")
        while named is not None and (inner := named.child_by_field_name("declarator")) is not None:
            if named.type in grammar.announcements:
                return None
            named = inner
    # C# calls an accessor by its keyword; a pattern gives several names.
    if named is None or not named.is_named or named.type in _PATTERNS:
        return None
    return _shorten(text[named.start_byte : named.end_byte]).strip("'\"") or None


_NAMING = ("name", "title", "id", "hosts")
"""Keys whose values say what an item of a list of YAML is called: the first that stands among its first keys."""
_KEYS = 16


def _item_name(item: Node, text: str) -> Node | None:
    """Return the node with the name of a list's item; ``None`` if it has no name.

    The name is the value of a key such as ``name``. It may also be the value of the first key if all neighbouring items
    have that key.
    """
    scalars = _scalars(item, text)
    if named := next((scalars[key] for key in _NAMING if key in scalars), None):
        return named
    key, value = next(iter(scalars.items()), ("", None))
    beside = [_scalars(each, text) for each in (item.prev_named_sibling, item.next_named_sibling) if each is not None]
    said = [text[each[key].start_byte : each[key].end_byte] for each in beside if next(iter(each), "") == key != ""]
    is_name = value is not None and len(said) == len(beside) > 0
    return value if value and is_name and text[value.start_byte : value.end_byte] not in said else None


def first_key(item: Node, text: str) -> str | None:
    """Return the first key of a list's item; ``None`` if the item is not a mapping."""
    inner: Node | None = item
    for _ in range(MAX_WRAPPERS):
        named = inner.child_by_field_name("key") if inner is not None and inner.type.endswith("_pair") else None
        if inner is None or named is not None:
            break
        inner = next((child for child in inner.named_children if child.type != "comment"), None)
    return _shorten(text[named.start_byte : named.end_byte]).strip(_QUOTES) if named is not None else None


def resource(pairs: Sequence[Node], text: str) -> str | None:
    """Return the kind and the name that the pairs of a YAML document state; ``None`` without a kind."""
    stated: dict[str, str] = {}
    for pair in pairs:
        key, value = pair.child_by_field_name("key"), pair.child_by_field_name("value")
        word = text[key.start_byte : key.end_byte] if key is not None else ""
        if word in {"kind", "name", "metadata"} and value is not None:
            said = text[value.start_byte : value.end_byte]
            inner = _NAMED_BELOW.search(f"\n{said}") if word == "metadata" else None
            stated[word] = inner[1] if inner else "" if word == "metadata" else said
    name = stated.get("metadata") or stated.get("name", "")
    return _shorten(f"{stated['kind']} {name.strip(_QUOTES)}".strip()) if stated.get("kind") else None


_NAMED_BELOW = re.compile(r"\n[ ]*name:[ \t]*(\S.*?)[ \t]*(?:#.*)?(?=\n|\Z)")
_QUOTES = "\"' "


def _scalars(item: Node, text: str) -> dict[str, Node]:
    """Return a mapping from the first keys of an item to the nodes of their values. Only scalar values are included.

    If the value of the very first key is not a scalar, the mapping has an empty key.
    """
    mapping: Node | None = item
    while mapping is not None and mapping.type not in {"block_mapping", "flow_mapping"}:
        mapping = next((child for child in mapping.named_children if child.type.endswith(("_node", "_mapping"))), None)
    pairs = [mapping.named_child(at) for at in range(min(_KEYS, mapping.named_child_count))] if mapping else []
    named: dict[str, Node] = {}
    for number, pair in enumerate(filter(None, pairs)):
        key, value = pair.child_by_field_name("key"), pair.child_by_field_name("value")
        is_scalar = value is not None and value.named_child_count and value.named_children[-1].type.endswith("_scalar")
        if key is not None and value is not None and is_scalar and value.type == "flow_node":
            named[text[key.start_byte : key.end_byte].strip("'\"")] = value
        elif not number:
            named[""] = item
    return named


def lone_value(node: Node, grammar: Grammar, text: str) -> tuple[Node, str] | None:
    """Return the value that a statement names, with its name; ``None`` if it names no value or several."""
    inner: Node | None = node
    for _ in range(MAX_WRAPPERS):
        if inner is None:
            return None
        name = value_name(inner, grammar, text, with_pairs=True)
        if name is not None:
            return inner, name
        fields = (inner.child_by_field_name(field) for field in ("declaration", "declarator"))
        inside = [child for child in inner.named_children if child.type not in grammar.comments | grammar.attributes]
        inner = next((child for child in fields if child is not None), inside[0] if len(inside) == 1 else None)
    return None


def given_values(node: Node, grammar: Grammar, text: str) -> list[tuple[Node, str]]:
    """Return the values that a statement names, each with its name. ``a = 1, b = 2`` has several such values."""
    if (lone := lone_value(node, grammar, text)) is not None:
        return [lone]
    inner = node.named_children[0] if node.named_child_count == 1 else node
    named = [
        (each, value_name(each, grammar, text))
        for each in inner.named_children
        if each.type.endswith(("_spec", "_declarator"))
    ]
    return [(each, name) for each, name in named if name]


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


def _c_names(found: Definition, text: str) -> tuple[str, ...]:
    node = found.node
    if not found.is_class and (called := parsing.defined_by(node, text)):
        return called
    named = node.child_by_field_name("name") if found.is_class else _declared(node)
    if named is None and found.named_by.type == "type_definition":
        named = found.named_by.child_by_field_name("declarator")
    if named is None:
        return ()
    name = _shorten(text[named.start_byte : named.end_byte])
    return (name if "operator" in name else re.sub(r"<.*>", "", name).rsplit("::", 1)[-1],)


def _declared(node: Node) -> Node | None:
    """Return the node with the declared name of a C or C++ function; ``None`` if there is none.

    The name is below pointers, references and parameter lists.
    """
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


_ASSIGNED = re.compile(r"(?!(?:module|exports|this|self|that|_this)\b)([\w$]+)\.(?:prototype\.)?[\w$]+\Z")
"""To what JavaScript gives a function: ``A.prototype.b``, ``window.open``."""


def _owner(found: Definition, grammar: Grammar, text: str) -> tuple[str, ...]:
    """Return the class of a method that is defined outside of its class (Go, C++, ``A.b = …``).

    The result is empty if the function has no class.
    """
    node = found.node
    if found.is_class:
        return ()
    if grammar.name == "go":
        receiver = node.child_by_field_name("receiver")
        words = _PLAIN_NAME.findall(text[receiver.start_byte : receiver.end_byte].split("[")[0]) if receiver else []
        return tuple(words[-1:])
    if grammar.name == "cpp":
        function = _declarator(node)
        named = function.child_by_field_name("declarator") if function is not None else None
        if named is not None and named.type == "qualified_identifier":
            scope = text[named.start_byte : named.end_byte].split("operator")[0]
            parts = re.sub(r"<.*>", "", scope).split("::")
            owner = parts[-2].strip() if len(parts) > 1 else ""
            return (owner,) if owner else ()
    match = _given_to(found, text)
    return (match[1],) if match else ()


def _given_to(found: Definition, text: str) -> re.Match[str] | None:
    left = found.named_by.child_by_field_name("left") if found.named_by.type == "assignment_expression" else None
    return _ASSIGNED.match(text, left.start_byte, left.end_byte) if left is not None else None


def is_given_to(found: Definition, text: str) -> bool:
    """Tell whether a function becomes a member of an object that stands before the name: ``window.open = …``."""
    return _given_to(found, text) is not None


def parameter_count(found: Definition, grammar: Grammar, text: str, *, in_class: bool) -> int | None:
    """Count a function's parameters without receivers such as ``self``; ``None`` if it has no parameter list."""
    node = _declarator(found.node) if grammar.name in C_FAMILY else found.node
    if node is None or node.type == "macro_definition" or found.said is not None:
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
    """Return 1 if the first parameter is a receiver or C's ``void``, else 0. Python has receivers only ``in_class``."""
    if not given:
        return 0
    first = text[given[0].start_byte : min(given[0].end_byte, given[0].start_byte + 200)]
    words = _PLAIN_NAME.findall(first)
    word = words[0] if words else ""
    if grammar.name == "python":
        return int(in_class and word in {"self", "cls"})
    if grammar.name in C_FAMILY:
        return int(first == "void")
    return int(grammar.name in {"typescript", "tsx", "csharp"} and word == "this")


def return_type(found: Definition, grammar: Grammar, text: str) -> str | None:
    """Return the declared return type of a function on one line; ``None`` if it declares none."""
    node = found.node
    if grammar.name in C_FAMILY:
        return _c_return_type(node, text)
    if grammar.name in {"swift", "kotlin"}:
        typed = _after_arrow(node, "->" if grammar.name == "swift" else ":")
    else:
        fields = ("return_type", "returns", "result") if grammar.name != "java" else ("type",)
        fields = (*fields, "type") if grammar.name == "csharp" else fields
        typed = next((child for field in fields if (child := node.child_by_field_name(field)) is not None), None)
    return _shorten(text[typed.start_byte : typed.end_byte].lstrip(":")) if typed is not None else None


def _after_arrow(node: Node, arrow: str) -> Node | None:
    """Return the type after ``->`` in Swift or after the parameters' ``:`` in Kotlin; ``None`` if there is none."""
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
    """Return the line with the name of a function or a class."""
    node = found.node
    named = _declared(node) if grammar.name in C_FAMILY and not found.is_class else _name_node(node, grammar)
    at = (named or node).start_byte if found.said is None else node.start_byte
    start = max(text.rfind("\n", 0, at) + 1, at - MAX_SIGNATURE)
    end = text.find("\n", at)
    return _shorten(text[start : min(end if end >= 0 else len(text), at + MAX_SIGNATURE)])


def _shorten(text: str) -> str:
    return " ".join(text[: 4 * MAX_SIGNATURE].split())[:MAX_SIGNATURE]
