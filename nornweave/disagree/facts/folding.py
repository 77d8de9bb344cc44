"""Fold operators over constants within limits; nothing is executed."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from nornweave.disagree.facts.values import MAX_BITS, UNKNOWN, Value, number

COMPARISONS = frozenset(("==", "===", "!=", "!==", "<", ">", "<=", ">=", "is", "in", "instanceof"))


def negative(value: Value) -> Value:
    """Apply a minus sign."""
    if value.kind == "number":
        return replace(value, text=str(-Fraction(value.text)))
    return value if value.kind == "unlimited" else UNKNOWN


def either(first: Value, second: Value) -> Value:
    """Return the one branch of a choice that is known; two known ones are no single value."""
    if first.is_literal and not second.is_literal:
        return replace(first, is_fallback=True)
    if second.is_literal and not first.is_literal:
        return replace(second, is_fallback=True)
    return first if first == second else UNKNOWN


def fold(operator: str, left: Value, right: Value) -> Value:
    """Apply an operator; ``UNKNOWN`` where its result cannot be known, or is no value that anybody documents.

    Raises:
        OverflowError, ZeroDivisionError: the result is no number of ``MAX_BITS`` bits.
    """
    if operator in COMPARISONS or operator in {"&&", "and"}:
        return UNKNOWN
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
