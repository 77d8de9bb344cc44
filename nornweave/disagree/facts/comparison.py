"""Decide whether two values can both be true of one thing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from enum import Enum
from fractions import Fraction

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import ValueKind
from nornweave.disagree.facts import versions
from nornweave.disagree.facts.expressions import read_value
from nornweave.disagree.facts.values import NONE, OCTAL, Value


class FactComparison(Enum):
    """The result of comparing two values of one thing."""

    AGREE = "agree"
    DIFFER = "differ"
    UNDECIDED = "undecided"


_SCALES = (Fraction(1), Fraction(1000), Fraction(10**6), Fraction(10**9), Fraction(1, 60), Fraction(1, 3600),
           Fraction(1, 86400))  # fmt: skip
# A size in bytes, in decimal and binary multiples, and decimal units that were meant to be binary.
_SIZE_STEPS = tuple(Fraction(1, base**power) for base in (1000, 1024) for power in range(4)) + tuple(
    Fraction(1024, 1000) ** power for power in range(1, 4)
)
_MEMBER = lazy_pattern(r"[A-Za-z]\w*(?:(?:\.|::)\w+)+$|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$")
"""A member of an enumeration, or a constant that stands for one: ``Level.INFO``, ``Size::Human``, ``HASH_MD5``."""
_VERSION = lazy_pattern(r"v?\d{1,4}(?:\.\d{1,4}){0,3}$")
_DECIMAL_SIZE = Fraction(1024, 1000)


def compare(a: Value, b: Value) -> FactComparison:
    """Compare two values of one thing.

    If one side has no unit, the two agree if some unit makes them equal.
    """
    a, b = _plain(a, b), _plain(b, a)
    if "symbol" in {a.kind, b.kind} and {a.kind, b.kind} != {"symbol", "string"}:
        return FactComparison.UNDECIDED
    if a.kind == b.kind:
        return _COMPARED[a.kind](a, b)
    kinds = {a.kind, b.kind}
    if kinds == {"symbol", "string"}:
        return _compare_strings(a, b)
    if kinds == {"boolean", "number"}:
        number, switch = (a, b) if a.kind == "number" else (b, a)
        return _agree_if(number.text == ("1" if switch.text == "true" else "0"))
    if kinds <= {"none", "unlimited"}:
        return FactComparison.AGREE
    if kinds & {"none", "unlimited"}:
        other = b if a.kind in {"none", "unlimited"} else a
        empty = other.text in {"", "[]", "0", "-1", "false"}
        return FactComparison.UNDECIDED if empty else FactComparison.DIFFER
    if kinds == {"status", "number"}:
        return _agree_if(a.text == b.text)
    if kinds == {"list", "string"}:
        listed, single = (a, b) if a.kind == "list" else (b, a)
        return _compare_lists(listed, Value("list", json.dumps(re.split(r"[,\s]+", single.text.strip()))))
    is_format = any(one.kind == "string" and ("%" in one.text or "{" in one.text) for one in (a, b))
    if "list" in kinds or "version" in kinds or is_format:
        return FactComparison.UNDECIDED
    return FactComparison.DIFFER if kinds in ({"boolean", "string"}, {"number", "string"}) else FactComparison.UNDECIDED


def compared_kinds(a: Value, b: Value) -> set[ValueKind]:
    """Return the kinds of two values as they are compared: a string ``"5"`` is a number if the other value is one."""
    return {_plain(a, b).kind, _plain(b, a).kind}


def _plain(value: Value, other: Value) -> Value:
    """Return a value to compare. A string such as ``"30s"`` or ``"true"`` is read if the other value is no string."""
    if value.kind == "string" and other.kind == "version" and _VERSION.match(value.text):
        return Value("version", value.text.lstrip("v"))
    is_empty = other.kind == "list" and value.text in {"{}", "[]", "()"}
    if value.kind == "string" and (is_empty or other.kind in {"number", "boolean", "none", "unlimited"}):
        read = read_value(value.text) if value.text.strip() else NONE
        if read is not None and read.is_literal and read.kind != "string":
            return read
    return value


def _agree_if(same: bool) -> FactComparison:
    return FactComparison.AGREE if same else FactComparison.DIFFER


def _compare_numbers(a: Value, b: Value) -> FactComparison:
    left, right = Fraction(a.text), Fraction(b.text)
    if left == right and (a.unit == b.unit or not (a.unit and b.unit)):
        return FactComparison.AGREE
    if a.unit and b.unit and a.unit != b.unit:
        return FactComparison.UNDECIDED
    units = {a.unit, b.unit} - {None}
    unit = next(iter(units), None)
    if len(units) == 1 and a.unit != b.unit:
        measured, plain = (left, right) if a.unit else (right, left)
        if unit == OCTAL:
            return _agree_if(f"{int(measured):o}" == str(plain))
        steps = {"s": _SCALES, "byte": _SIZE_STEPS, "percent": (Fraction(1), Fraction(1, 100))}
        return _agree_if(any(measured * step == plain for step in steps.get(unit or "", ())))
    if unit == "byte":  # many write KB for what is KiB
        return _agree_if(any(small * _DECIMAL_SIZE**power == large for power in range(4)
                             for small, large in ((left, right), (right, left))))  # fmt: skip
    return FactComparison.DIFFER


def _compare_strings(a: Value, b: Value) -> FactComparison:
    if a.text == b.text:
        return FactComparison.AGREE
    if _spelling(a.text) == _spelling(b.text) != "":
        return FactComparison.AGREE
    if any(_MEMBER.match(one) and _is_end_of(other, one) for one, other in ((a.text, b.text), (b.text, a.text))):
        return FactComparison.AGREE
    first, second = (read_value(one.text) if one.text.strip() else None for one in (a, b))
    if first and second and first.is_literal and second.is_literal and first.kind == second.kind != "string":
        return compare(first, second)
    if "..." in a.text + b.text or "{" in a.text + b.text or "<" in a.text + b.text:
        return FactComparison.UNDECIDED
    return FactComparison.DIFFER


def _is_end_of(text: str, member: str) -> bool:
    """Tell whether a text is the end of a symbol: ``info`` of ``Level.INFO``, ``fnv1a_64`` of ``HASH_FNV1A_64``."""
    last = re.split(r"[.:]+", member)[-1]
    parts = last.split("_") if last.isupper() else [last]
    return any(_spelling("_".join(parts[at:])) == _spelling(text) for at in range(len(parts)))


def _spelling(text: str) -> str:
    return re.sub(r"^\./+(?=.)|[\s/]+$|[\s_-]+", "", text.casefold())


def _compare_lists(a: Value, b: Value) -> FactComparison:
    left, right = (set(map(_member, json.loads(value.text))) - {""} for value in (a, b))
    return _agree_if(left == right)


def _member(text: str) -> str:
    """Return the form in which a member of a list is compared, such as the canonical number for ``2ms``."""
    value = read_value(text) if text[:1].isdigit() else None
    return value.text if value is not None and value.kind == "number" else _spelling(text)


def _compare_versions(a: Value, b: Value) -> FactComparison:
    """Compare version requirements: ``>=3.8`` and ``3.8`` are the same."""
    same = versions.agree(a.text, b.text)
    return FactComparison.UNDECIDED if same is None else _agree_if(same)


def _compare_statuses(a: Value, b: Value) -> FactComparison:
    """Compare status codes. A 422 and a 503 do not contradict each other: they answer different cases."""
    return _agree_if(a.text == b.text) if a.text[:1] == b.text[:1] else FactComparison.UNDECIDED


_COMPARED: dict[str, Callable[[Value, Value], FactComparison]] = {
    "number": _compare_numbers,
    "string": _compare_strings,
    "list": _compare_lists,
    "version": _compare_versions,
    "boolean": lambda a, b: _agree_if(a.text == b.text),
    "status": _compare_statuses,
    "none": lambda _a, _b: FactComparison.AGREE,
    "unlimited": lambda _a, _b: FactComparison.AGREE,
}
