"""Evaluate operators and calls over constants, within limits; nothing is executed: ``Duration.ofMillis(5)``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.names import words_of
from nornweave.disagree.facts.values import MAX_BITS, NONE, UNITS, UNKNOWN, UNLIMITED, Value, list_of, measured, number

COMPARISONS = frozenset(("==", "===", "!=", "!==", "<", ">", "<=", ">=", "is", "in", "instanceof"))


def negative(value: Value) -> Value:
    """Return a number with a minus sign; ``UNKNOWN`` for a value that is neither a number nor unlimited."""
    if value.kind == "number":
        return replace(value, text=str(-Fraction(value.text)))
    return value if value.kind == "unlimited" else UNKNOWN


def either(first: Value, second: Value) -> Value:
    """Return the value of an expression with two branches: the only known one, or both if they are equal.

    If both are known and differ, return ``UNKNOWN``.
    """
    if first.is_literal and not second.is_literal:
        return replace(first, is_fallback=True)
    if second.is_literal and not first.is_literal:
        return replace(second, is_fallback=True)
    return first if first == second else UNKNOWN


def fold(operator: str, left: Value, right: Value) -> Value:
    """Return the result of an operator; ``UNKNOWN`` if it cannot be known or nobody would document it.

    Raises:
        OverflowError, ZeroDivisionError: the result is infinite or has more than ``MAX_BITS`` bits.
    """
    if operator in {"||", "??", "or", "?:"}:
        if left.is_literal and left.kind != "none":
            return left
        return replace(right, is_fallback=True) if right.is_literal else right
    if operator == "+" and left.kind == right.kind == "string":
        return Value("string", left.text + right.text)
    if left.kind != "number" or right.kind != "number":
        return UNKNOWN
    a, b = Fraction(left.text), Fraction(right.text)
    unit = left.unit or right.unit
    if operator in {"+", "-"}:
        if left.unit != right.unit:
            return UNKNOWN
        return number(a + b if operator == "+" else a - b, unit)
    if operator == "*":
        return number(a * b, unit) if not (left.unit and right.unit) else UNKNOWN
    if operator == "/":
        return number(a / b, None if right.unit == left.unit else unit)
    if operator in {"<<", ">>", "**"} and b.denominator == 1 and 0 <= b <= MAX_BITS and abs(a) <= 2**64:
        if operator == "**":
            return number(a ** int(b)) if abs(a) <= 10 or b <= 16 else UNKNOWN
        return number(a * 2 ** int(b) if operator == "<<" else Fraction(int(a) >> int(b)), unit)
    return UNKNOWN


# What calls with these in their name do is to hand back their last argument where a key is missing.
GETTERS = lazy_pattern(
    r"(?:^|[._])(?:get\w*|fetch|getenv|env|unwrap_or|or_?else|value_?or|getordefault|default)$", re.I
)
_LOOKUPS = lazy_pattern(r"(?:^|[._:>])(?:get\w*|fetch|env\w*)$", re.I)
_LIST_MAKERS = frozenset(
    """list set tuple frozenset of aslist listof setof arrayof mutablelistof vec array newset hashset immutablelist
    immutableset sets strings""".split()  # noqa: SIM905
)
_TEXT_WRAPPERS = frozenset("of from some ptr pointer pointerof pointerto string str just".split())  # noqa: SIM905
# These make something else of the text: a unique object, a place, a pattern, an error.
_TEXT_NAMES = frozenset("Symbol URL URI Path File Regex RegExp Pattern Error Exception".split())  # noqa: SIM905


def _unit_of_call(name: str) -> str | None:
    """Return the unit of ``from_secs``, ``ofMillis``, ``FromSeconds``, ``minutes``; ``None`` for other calls."""
    last = words_of(re.split(r"[.:>]+", name.rstrip("!"))[-1])
    if last and last[-1] in UNITS and (len(last) == 1 or last[0] in {"from", "of", "in", "to", "duration"}):
        return last[-1] if len(last[-1]) > 1 else None
    return None


def value_of_call(name: str, positional: list[Value], named: dict[str, Value]) -> Value:
    """Return the value of a call: a duration, a list, or the only value that it wraps."""
    parts = [part for part in re.split(r"[.:>!?]+", name) if part]
    last = parts[-1].lower() if parts else ""
    made = _duration(name, parts, positional, named) or _collection(parts, positional, named)
    if made:
        return made
    if _LOOKUPS.search(name) and len(positional) == 1 and positional[0].kind == "string":
        return Value("symbol", name)
    if GETTERS.search(name) and len(positional) == 2:
        return replace(positional[1], is_fallback=True)
    if last == "float" and len(positional) == 1 and positional[0].text.lstrip("+").lower() in {"inf", "infinity"}:
        return UNLIMITED
    for key in ("default", "default_value", "defaultvalue", "value"):
        if key in named and named[key].is_literal:
            return named[key]
    if "to" in words_of(name)[1:]:  # ``lufs_to_db(-23)`` is another number
        return Value("symbol", name)
    if positional and positional[0].is_literal and not any(one.is_literal for one in positional[1:]):
        return positional[0] if positional[0].kind != "string" or _wraps_text(parts) else Value("symbol", name)
    if len(named) == 1 and not positional and len(parts) == 1 and name[:1].isupper() and "type" not in named:
        return next(iter(named.values()))
    return Value("symbol", name)


def _duration(name: str, parts: Sequence[str], positional: list[Value], named: dict[str, Value]) -> Value | None:
    """Return the duration or size that a call makes (``timedelta(hours=1)``); ``None`` for other calls."""
    last = parts[-1].lower() if parts else ""
    if last in {"timedelta", "duration", "relativedelta"} and named:
        total = sum((Fraction(v.text) * UNITS[k][1] for k, v in named.items() if k in UNITS and v.kind == "number"),
                    Fraction(0))  # fmt: skip
        return number(total, "s") if all(k in UNITS for k in named) else Value("symbol", name)
    if len(positional) != 1 or positional[0].kind != "number":
        return None
    unit = _unit_of_call(name)
    if unit and positional[0].unit is None:
        receiver = parts[-2].lower() if len(parts) > 1 else ""
        if words_of(parts[-1])[0] == "to" and receiver in UNITS:  # SECONDS.toMillis(30)
            unit = receiver
        return measured(Fraction(positional[0].text), unit)
    return measured(Fraction(positional[0].text), "days") if last == "timedelta" else None


def _collection(parts: Sequence[str], positional: list[Value], named: dict[str, Value]) -> Value | None:
    """Return the list or empty value that a call makes (``List.of(1)``, ``Optional.empty()``); ``None`` for others."""
    last = parts[-1].lower() if parts else ""
    if last in {"absent", "empty", "none", "nothing", "emptylist", "emptyset"} and not positional:
        return Value("list", "[]") if "list" in last or "set" in last else NONE
    if last in _LIST_MAKERS and not named and (last != "of" or (len(parts) > 1 and parts[-2].lower() in _LIST_MAKERS)):
        return positional[0] if len(positional) == 1 and positional[0].kind == "list" else list_of(positional)
    return None


def _wraps_text(parts: Sequence[str]) -> bool:
    """Tell whether a call returns its text: ``Option('json')``, ``String::from("x")``; not ``require('http')``."""
    last = parts[-1] if parts else ""
    return last.lower() in _TEXT_WRAPPERS or (last[:1].isupper() and last not in _TEXT_NAMES)


def with_method(value: Value, method: str) -> Value:
    """Return the value of a property or method: ``5.minutes``, ``10.megabytes``, ``"x".freeze``."""
    if value.kind == "number" and value.unit is None and method in UNITS and len(method) > 1:
        return measured(Fraction(value.text), method)
    return value
