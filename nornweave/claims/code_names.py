"""What a value in source code is given to, and what is around it: names, read the same way in thirteen languages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from tree_sitter import Node

from nornweave.chunking.languages import Grammar

REACH = 160
"""Characters before a value in which the name that it is given to must stand."""
REACH_OF_NAME = 84
MAX_AROUND = 6
MAX_LEVELS = 40
MAX_DECLARATORS = 6
MAX_LABEL = 80

# ``"key"``, ``name``, ``self.name``, ``$this->name``, ``config["name"]``
_NAME = re.compile(
    r"(?:[\"'](?P<quoted>[^\"'\n]{1,80})[\"']\]?|(?P<plain>[A-Za-z_$@][\w$]*(?:(?:\.|->|::)[\w$]+){0,4}))[?!]?$"
)
_TYPED = re.compile(
    r"(?P<plain>[A-Za-z_$@][\w$]*)[?!]?\s*:\s*[&*]?[\w.:]{1,60}(?:\[[^\]\n]{0,40}\]|<[^>\n]{0,40}>)*(?:\s*\|\s*[\w.]{1,40}){0,3}\??$"
)
_GO_TYPED = re.compile(r"(?:^|[\n(,]|\bvar|\bconst)[ \t]*(?P<plain>[A-Za-z_]\w*)[ \t]+[\w.*\[\]]{1,60}$")
_GO_KEYWORDS = frozenset({"var", "const", "return"})
_DEFINE = re.compile(r"#[ \t]*define[ \t]+(?P<plain>\w+)[ \t]+\(?$")
_NO_ASSIGNMENT = ("==", "!=", "<=", ">=", "+=", "-=", "*=", "/=", "%=", "|=", "&=", "^=", "<<=", "~=", "::")
_BEFORE_KEY = frozenset("{,([;\n")

_LABELLED = re.compile(
    r"function|method|class|struct|impl|interface|enum|module|object|trait|protocol|pair|keyed|declarator|assignment|"
    r"const_spec|var_spec|property"
)
_CALLED = re.compile(r"call|invocation|composite|creation|new_expression|macro_invocation")
_LABEL_FIELDS = ("name", "key", "left", "function", "type", "constructor", "method", "macro")
_PARAMETER = re.compile(r"parameter")
_GIVEN = re.compile(r"argument|pair|keyed_element|literal_element|field_initializer|element_value_pair|array_element")
_FIELD = re.compile(r"^(?:self|this|cls|@@?|\$this)(?:\.|->|::)?\w")
CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]+$|k[A-Z][A-Za-z0-9]+$")


class Place(Enum):
    """How a name gets its value."""

    CONSTANT = "constant"
    DEFAULT = "default"
    ARGUMENT = "argument"
    LOCAL = "local"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The names around a place, outermost first; the calls, innermost first; whether it is in a function or a class."""

    names: tuple[str, ...]
    calls: tuple[str, ...]
    in_function: bool
    in_class: bool


def name_before(text: str, at: int, language: str) -> str | None:
    """Return the name that the expression at ``at`` is given to: by ``=``, ``:=``, ``:``, ``=>`` or ``#define``."""
    before = text[max(0, at - REACH) : at]
    head = before.rstrip(" \t\n\\")
    if head.endswith("=>") or head.endswith(":="):
        return _plain_name(head[:-2])
    if head.endswith("=") and not head.endswith(_NO_ASSIGNMENT):
        left = head[:-1].rstrip()
        typed = _typed(left, language)
        if typed and typed["plain"] not in _GO_KEYWORDS:
            return typed["plain"]
        return _plain_name(left)
    if head.endswith(":") and not head.endswith("::"):
        return _key(head[:-1], language)
    define = _DEFINE.search(before) if "define" in before else None
    return define["plain"] if define else None


def _typed(left: str, language: str) -> re.Match[str] | None:
    """Look for a name with its type before ``=``."""
    line = left[left.rfind("\n") + 1 :]
    if language == "go":
        return _GO_TYPED.search(line) if " " in line.strip() else None
    return _TYPED.search(line) if ":" in line else None


def _plain_name(left: str) -> str | None:
    match = _NAME.search(left.rstrip()[-REACH_OF_NAME:])
    return (match["quoted"] or match["plain"]) if match else None


def _key(left: str, language: str) -> str | None:
    """Return the key before a colon, if it is one and not the second branch of ``a ? b : c``."""
    left = left.rstrip()[-REACH_OF_NAME:]
    match = _NAME.search(left)
    if match is None:
        return None
    before = left[: match.start()].rstrip(" \t")
    if not before or before[-1] in _BEFORE_KEY or (language == "ruby" and before[-1] != "?"):
        return match["quoted"] or match["plain"]
    return None


def surroundings(node: Node, grammar: Grammar, text: str, own: str) -> Surroundings:
    """Collect the names of functions, classes, keys, variables and calls around a node."""
    names: list[str] = []
    calls: list[str] = []
    in_function = in_class = False
    current = node.parent
    for _ in range(MAX_LEVELS):
        if current is None:
            break
        kind = current.type
        in_function = in_function or (kind in grammar.functions and "arrow" not in kind)
        in_class = in_class or kind in grammar.classes
        if _CALLED.search(kind):
            calls.append(_label(current, text))
        elif kind == "decorated_definition":
            current_name = current.child_by_field_name("definition")
            names.append(_label(current_name, text) if current_name is not None else "")
        elif _LABELLED.search(kind):
            names.append(_label(current, text))
        current = current.parent
    kept = [name for at, name in enumerate(names) if name and name != own and name not in names[:at]]
    return Surroundings(tuple(reversed(kept[:MAX_AROUND])), tuple(calls[:2]), in_function, in_class)


def _label(node: Node, text: str) -> str:
    current: Node | None = node
    for _ in range(MAX_DECLARATORS):
        if current is None:
            break
        for field in _LABEL_FIELDS:
            child = current.child_by_field_name(field)
            if child is not None:
                label = text[child.start_byte : min(child.end_byte, child.start_byte + MAX_LABEL)]
                return label.split("\n", 1)[0].split("(", 1)[0].strip("\"'@$ ")
        node, current = current, current.child_by_field_name("declarator")
    return _first_name(node, text)


def _first_name(node: Node, text: str) -> str:
    """Return the first identifier of a node whose grammar has no fields (Kotlin) or names its declarator (C)."""
    if node.type.endswith("identifier"):
        return text[node.start_byte : node.end_byte]
    for child in node.named_children[:3]:
        if child.type.endswith("identifier"):
            return text[child.start_byte : child.end_byte]
    return ""


def place_of(node: Node, name: str, around: Surroundings, text: str) -> Place:
    """Tell how ``name`` gets the value ``node``."""
    parent = node.parent
    kind = parent.type if parent is not None else ""
    if _PARAMETER.search(kind) or (kind in {"function_declaration", "optional_parameter"} and around.in_function):
        return Place.DEFAULT
    if _GIVEN.search(kind):
        return Place.ARGUMENT
    if kind == "ERROR" and not CONSTANT.fullmatch(name):
        return Place.LOCAL
    if CONSTANT.fullmatch(name.rsplit(".", 1)[-1]) or _FIELD.match(name):
        return Place.CONSTANT
    if around.in_function:
        return Place.LOCAL
    line = text[text.rfind("\n", 0, node.start_byte) + 1 : node.start_byte]
    indented = (
        line[:1] in {" ", "\t"} and not around.in_class and not re.match(r"\s*(?:const|static|final|val|let)\b", line)
    )
    return Place.LOCAL if indented else Place.CONSTANT
