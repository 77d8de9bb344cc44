"""Source code → claims: constants, fields, defaults, arguments with a literal value, and HTTP status codes.

Literals are found by their looks, and only where the line names something worth a claim; the syntax tree then says
whether such a literal is code at all, which expression it belongs to and what encloses it. The name that gets the
value is read from the text before the expression, which works in all thirteen languages and in broken code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tree_sitter import Node

from nornweave.chunking.languages import Grammar, grammar_of
from nornweave.chunking.parsing import mask, parse
from nornweave.claims.code_literals import COMPONENT, DEFAULT_NAMES, HANDS_ON, KEYED, literals
from nornweave.claims.code_names import Place, name_before, place_of, surroundings
from nornweave.claims.code_status import speaks_of_status, status_claims
from nornweave.claims.comments import opening_remark, remark_at
from nornweave.claims.literals import UNIT_NAMES, quantity
from nornweave.claims.named import WEAK_ATTRIBUTES, Named, claim_of
from nornweave.claims.passage import Passage
from nornweave.claims.vocabulary import attribute_of, split_name, topics_of, unit_in_name
from nornweave.types import Claim, Span

MAX_CHARACTERS = 20_000
"""Of a passage that are looked at: more is no chunk but a file."""
MAX_CLIMB = 14

_CALLS = re.compile(r"call|invocation|creation|new_expression")
_CHOICES = frozenset({"||", "??", "or", "?:"})
# What a value may stand in before the name is reached: arithmetic, a choice, a default, a call that hands it on.
_CLIMBED = re.compile(
    r"string|literal|integer|float|number|parenthesized|unary|prefix_expression|binary|multiplicative|additive|"
    r"conditional|ternary|elvis|boolean_operator|expression_list|argument|call|invocation|creation|new_expression|cast|"
    r"as_expression|navigation|field_access|member|^attribute$|selector|keyed_element|nil_coalescing|await|try_exp|"
    r"equals_value|^pair$|preproc_arg|ERROR|infix|^true$|^false$|boolean|initializer_list|element_value_pair"
)
_LEFTMOST = re.compile(r"binary|additive|multiplicative|infix|comparison|boolean_operator|conjunction|disjunction")
_NOT_CLIMBED = re.compile(
    r"lambda|arrow_function|function_expression|closure|subscript|comparison|assignment_exp|block"
)
_DECLARES = frozenset({"field", "option", "argument", "str", "string", "literal", "final", "value", "int", "float"})
_OPTION = re.compile(r"(?:add_argument|option|add_option|flag)\s*\([^\n]{0,80}?[\"']--([\w-]{2,40})", re.IGNORECASE)
REACH_OF_FLAG = 240
_FLAG_CALL = re.compile(
    r"\b(?:flag\.|\w*Flags\(\)\.|fs\.|f\.)?(?:Int|Int64|Uint|Float64|String|Bool|Duration)(?:Var)?P?\($|(?:Int|Int64|Uint|Float64|String|Bool|Duration)VarP?\("
)
_FLAG = re.compile(r"[\"']--([\w-]{2,40})[\"'],")
_DEFAULT = re.compile(r"\bdefault\s?=\s?$")
_SPLIT_CALLEE = re.compile(r"[.:>\s@#\[&!=(]")
_TIMERS = frozenset({"settimeout", "setinterval", "sleep", "usleep", "nanosleep", "delay", "wait", "pause"})
# What an argument of a single call says of how it reads or connects, not of how the system is set up.
_INCIDENTAL = frozenset({"encoding", "host", "locale"})
_SET_BY_CALL = frozenset(
    {"timeout", "retries", "rate_limit", "concurrency", "pool_size", "lifetime", "interval", "page_size", "batch_size"}
    | {"size_limit", "port", "threshold", "keep_alive", "buffer_size", "replicas", "window"}
)
_SETTER = re.compile(r"[\w.:>\s-]{1,120}\(\s*(?:[\w.]{1,40},\s*){0,2}$")
_GETTERS = re.compile(
    r"^(?:get|is|has|assert|expect|check|test|compute|parse|format|log|print|min|max|range|len)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class _Given:
    """A value and the name that it is given to; ``node`` is the expression that stands behind the name."""

    name: str
    value: tuple[int, int]
    node: Node
    by_call: bool = False


def code_claims(passage: Passage, language: str) -> list[Claim]:
    """Return the claims of a passage of source code.

    Args:
        passage: may be cut anywhere, may be broken.
        language: one of ``chunking.languages.LANGUAGES``.
    """
    if len(passage.text) > MAX_CHARACTERS:
        passage = replace(passage, text=passage.text[:MAX_CHARACTERS])
    found_literals = list(literals(passage.text, language))
    statuses = speaks_of_status(passage.text)
    grammar = grammar_of(language, passage.path, passage.text) if found_literals or statuses else None
    tree = parse(grammar, mask(passage.text)) if grammar else None
    if grammar is None or tree is None:
        return []
    found = list(_settings(passage, language, grammar, tree.root_node, found_literals))
    if statuses:
        found.extend(status_claims(passage, language, grammar, tree.root_node))
    return found


def _settings(
    passage: Passage, language: str, grammar: Grammar, root: Node, places: list[tuple[int, int]]
) -> Iterator[Claim]:
    seen: set[tuple[int, int]] = set()
    for start, end in places:
        node = root.descendant_for_byte_range(start, end)
        if node is None or "comment" in node.type or _inside_string(node, start, end):
            continue
        given = _given(node, (start, end), passage.text, language)
        if given is None or given.value in seen:
            continue
        seen.add(given.value)
        claim = _claim(given, passage, language, grammar)
        if claim is not None:
            yield claim


def _inside_string(node: Node, start: int, end: int) -> bool:
    """Tell whether a literal is only part of what a string says."""
    return ("string" in node.type or "fragment" in node.type) and (
        node.start_byte < start - 1 or node.end_byte > end + 1
    )


def _claim(given: _Given, passage: Passage, language: str, grammar: Grammar) -> Claim | None:
    text = passage.text
    name = given.name.strip("\"'@$ ")
    own = COMPONENT.split(name)[-1]
    attribute = attribute_of(split_name(own))
    around = surroundings(given.node, grammar, text, name)
    place = Place.ARGUMENT if given.by_call else place_of(given.node, name, around, text)
    value = text[given.value[0] : given.value[1]]
    if attribute == "http_status" or not _worth(place, attribute, value, own):
        return None
    named = Named(
        name=own,
        value=value,
        span=_span(given, text),
        around=(*around.names, *_owners(name)),
        calls=around.calls,
        remarks=_remarks(text, given.value[0], own, attribute, around.in_function, language),
        constant=place is not Place.LOCAL,
        unit=_customary_unit(language, attribute, value),
    )
    return claim_of(named, passage)


def _worth(place: Place, attribute: str | None, value: str, own: str = "") -> bool:
    """Arguments and defaults are worth a claim only for what they name: most are flags and counts of their own."""
    if place is not Place.ARGUMENT and place is not Place.DEFAULT:
        return True
    if value[:1] in "tTfF":
        return attribute == "enabled"
    if value[:1] in "\"'" and quantity(value) is None and attribute in _INCIDENTAL:
        return False
    if attribute is None:
        return place is Place.DEFAULT and unit_in_name(split_name(own)) is not None and value[:1].isdigit()
    return attribute not in WEAK_ATTRIBUTES


def _owners(name: str) -> tuple[str, ...]:
    """Return what a dotted name belongs to: ``client`` of ``client.timeout``."""
    parts = COMPONENT.split(name)[:-1]
    return tuple(part for part in parts if part not in {"self", "this", "cls"})


def _remarks(text: str, at: int, own: str, attribute: str | None, in_function: bool, language: str) -> str:
    """Return comments that tell what a constant is about; the passage's first one where its name does not."""
    remark = remark_at(text, at, language)
    if remark or in_function or topics_of(own, without=(attribute or "",)):
        return remark
    return opening_remark(text, language)


def _span(given: _Given, text: str) -> Span:
    start, end = given.value
    at = text.rfind(given.name, max(0, start - 400), start)
    return Span(at if at >= 0 else start, end)


def _customary_unit(language: str, attribute: str | None, value: str) -> str | None:
    """Return the unit that a language's libraries agree on: seconds in Python, milliseconds in JavaScript."""
    found = quantity(value) if attribute in {"timeout", "delay", "interval"} else None
    if found is None or "unit" in value:
        return None
    number = float(found.number)
    if language == "python":
        return "seconds" if number < 1000 else None
    return "ms" if language in {"javascript", "typescript"} and number >= 100 else None


def _given(node: Node, literal: tuple[int, int], text: str, language: str) -> _Given | None:
    """Climb from a literal to the expression that a name is given.

    The largest expression on the way that is a number stands for the value (``10 * 1024``); beyond it only choices,
    defaults and calls that hand it on may follow.
    """
    value = literal
    current = node
    flag = _flag_above(text, literal[0])
    if flag:
        return _Given(flag, literal, node, by_call=True)
    if node.type == "preproc_arg":
        whole = _as_value(node, (literal[0], literal[0]), text)
        if whole is None and quantity(text[node.start_byte : node.end_byte].strip()) is None:
            return None
        value = whole or literal
    for _ in range(MAX_CLIMB):
        parent = current.parent
        larger = _as_value(parent, value, text) if parent is not None else None
        name = None if larger else name_before(text, min(current.start_byte, value[0]), language)
        if name and name.lower() not in UNIT_NAMES and name.lower() not in DEFAULT_NAMES:
            return None if _goes_on(current, text) else _Given(name, value, current)
        if parent is None or not _CLIMBED.search(parent.type) or _NOT_CLIMBED.search(parent.type):
            return None
        if not larger and not _passes_operator(parent, text):
            return None
        if not larger and _CALLS.search(parent.type) and parent.start_byte < value[0]:
            by_call = _by_call(parent, value, text)
            if by_call is not None:
                return _Given(by_call, value, parent, by_call=True) if by_call else None
        value = larger or value
        current = parent
    return None


def _flag_above(text: str, at: int) -> str | None:
    """Return the flag whose default stands at ``at``, where a cut has taken the call away that declares it."""
    head = text[max(0, at - REACH_OF_FLAG) : at]
    flags = _FLAG.findall(head) if _DEFAULT.search(head) else []
    return flags[-1] if flags and "(" not in text[:at].rpartition(f"--{flags[-1]}")[0].rpartition(")")[2] else None


def _goes_on(node: Node, text: str) -> bool:
    """Tell whether an expression is only the beginning of what the name is given: ``30 * factor``, ``"a" | "b"``."""
    parent = node.parent
    if parent is None or parent.start_byte != node.start_byte or parent.end_byte == node.end_byte:
        return parent is not None and "literal_type" in parent.type
    return bool(_LEFTMOST.search(parent.type)) and not _passes_operator(parent, text)


def _as_value(node: Node, value: tuple[int, int], text: str) -> tuple[int, int] | None:
    """Return a node's place, if all of it is one number."""
    start, end = node.start_byte, node.end_byte
    if (start, end) == value or start > value[0] or end < value[1] or end - start > 120:
        return None
    expression = text[start:end]
    if quantity(expression) is None:
        return None
    start += len(expression) - len(expression.lstrip())
    return start, start + len(expression.strip())


def _passes_operator(node: Node, text: str) -> bool:
    """Tell whether a value stays what it is in an expression: alternatives leave it, arithmetic with names does not."""
    if "binary" not in node.type and node.type not in {"boolean_operator", "infix_expression", "additive_expression"}:
        return "unary" not in node.type and "multiplicative" not in node.type
    operator = node.child_by_field_name("operator")
    return operator is not None and text[operator.start_byte : operator.end_byte] in _CHOICES


def _by_call(call: Node, value: tuple[int, int], text: str) -> str | None:
    """Judge a call that a value is an argument of.

    Returns:
        The name that the call gives the value (``get("timeout", 30)``, ``--retries``, ``setReadTimeout(30)``);
        ``None`` when the call hands it on; the empty string when it does something else with it.
    """
    head = text[call.start_byte : value[0]]
    option = _OPTION.search(head)
    if option:
        return option[1]
    keyed = KEYED.search(head)
    if keyed and (attribute_of(split_name(keyed[1])) or _FLAG_CALL.search(head)):
        return keyed[1]
    last = _SPLIT_CALLEE.split(head.rsplit("(", 1)[0].rstrip())[-1]
    first = _SPLIT_CALLEE.split(head.split("(", 1)[0].rstrip())[-1]
    if last.lower() in HANDS_ON or first.lower() in HANDS_ON:
        return "" if _looked_up(last, head, text[value[0] : value[1]]) else None
    return _by_setter(last, call, value, text)


def _looked_up(callee: str, head: str, value: str) -> bool:
    """Tell whether a string is the key that a call looks up, not the value that it falls back to."""
    return value[:1] in "\"'" and head.rstrip().endswith("(") and callee.lower() not in _DECLARES


def _by_setter(last: str, call: Node, value: tuple[int, int], text: str) -> str:
    attribute = attribute_of(split_name(last))
    is_last = text[value[1] : call.end_byte].lstrip(" \t\n,") in {")", ""}
    head = text[call.start_byte : value[0]].rpartition(")")[2]
    if attribute not in _SET_BY_CALL or not is_last or last.lower() in _TIMERS or not _SETTER.fullmatch(head):
        return ""
    return "" if _GETTERS.match(last) or text[value[0]] in "tTfF\"'" else last
