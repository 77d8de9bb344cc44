"""Parse expressions of any language, and their spellings in documentation, into values.

``read_value`` reads what stands on the right of ``=`` in any of the languages, and what documentation writes for it:
the same text means the same value on both sides. Constant expressions are folded within limits; nothing is executed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.evaluation import COMPARISONS, GETTERS, either, fold, negative, value_of_call, with_method
from nornweave.disagree.facts.tokens import Token, TokenCursor, UnreadableError
from nornweave.disagree.facts.values import (
    ATTACHED,
    FALSE,
    NONE,
    TRUE,
    UNITS,
    UNKNOWN,
    UNLIMITED,
    Value,
    list_of,
    measured,
    number,
)

MAX_EXPRESSION = 2_000
"""Characters of an expression that is read; longer ones are no value that anybody documents."""
MAX_DEPTH = 24

Resolve: TypeAlias = "Callable[[str], Value | None]"
"""Name of a constant, as it is written → its value, if it is known."""

_WORD_VALUES = {
    **dict.fromkeys(["none", "null", "nil", "nullptr", "undefined", "unset", "nothing", "absent", "nan", "void"], NONE),
    **dict.fromkeys(["unlimited", "infinity", "infinite", "inf"], UNLIMITED),
    **dict.fromkeys(["true", "yes", "on", "enabled"], TRUE),
    **dict.fromkeys(["false", "no", "off", "disabled"], FALSE),
}
_UNLIMITED_NAMES = frozenset({"max_value", "max_safe_integer", "positive_infinity", "infinitetimespan", "forever"})
_PHRASES = (
    (lazy_pattern(r"^(?:no(?:ne)?|not set|unset|empty|no default|n/?a|not specified|undefined|-|—|–)$", re.I), NONE),
    (lazy_pattern(r"^(?:no limit|no timeout|no maximum|unlimited|infinite(?:ly)?|never|forever|unbounded)$", re.I),
     UNLIMITED),
)  # fmt: skip
_NUMBER_WORDS = {
    word: count
    for count, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen".split()  # noqa: SIM905
    )
} | {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "ninety": 90, "hundred": 100}
_OCTAL = lazy_pattern(r"0[0-7]{3}")
_ESCAPED = lazy_pattern(r"\\([\\\"'`/])")
_LITERAL_SUFFIX = lazy_pattern(
    r"(?:[uUiIlLfFdDn]|[uif](?:8|16|32|64|128|size)|usize|isize|[uU][lL]{1,2}|[lL]{1,2}[uU]?)$"
)


def read_value(text: str, resolve: Resolve | None = None) -> Value | None:
    """Read a value as code or documentation writes it.

    Args:
        text: an expression (``30 * time.Second``, ``Option('json')``, ``[500, 502]``), or words (``20 seconds``,
            ``(none)``, ``no limit``).
        resolve: looks up constants by name.

    Returns:
        A literal, or a ``symbol`` for what can be read but not known; ``None`` if it is no expression.
    """
    text = text.strip().rstrip(";").strip()
    if not text or len(text) > MAX_EXPRESSION:
        return None
    bare = text.strip("()*_ ").rstrip(".").strip()
    for pattern, value in _PHRASES:
        if pattern.match(bare):
            return value
    try:
        return _Reader(text, resolve).read()
    except (RecursionError, ZeroDivisionError, OverflowError, ValueError):
        return None


_BINARY = {
    **dict.fromkeys(("||", "??", "or", "?:"), 1), **dict.fromkeys(("&&", "and"), 2), **dict.fromkeys(COMPARISONS, 3),
    "|": 4, "<<": 5, ">>": 5, "+": 6, "-": 6, "*": 7, "/": 7, "**": 9,
}  # fmt: skip
"""Operator with two sides → how strongly it binds."""


class _Reader(TokenCursor):
    """A precedence-climbing reader of expressions, whatever language they are of."""

    def __init__(self, text: str, resolve: Resolve | None) -> None:
        super().__init__(text)
        self._resolve = resolve
        self._depth = 0

    def read(self) -> Value:
        value = self._ternary()
        if self._at < len(self._tokens):
            raise UnreadableError
        return value

    def _ternary(self) -> Value:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise UnreadableError
        value = self._binary(1)
        if self._accept("?"):
            first = self._ternary()
            if not self._accept(":"):
                raise UnreadableError
            value = either(first, self._ternary())
        elif self._peek() == "if":
            self._at += 1
            self._binary(1)
            if self._peek() != "else":
                raise UnreadableError
            self._at += 1
            value = either(value, self._ternary())
        self._depth -= 1
        return value

    def _binary(self, least: int) -> Value:
        left = self._unary()
        while (power := _BINARY.get(self._peek(), 0)) >= least:
            operator = self._next().text
            right = self._binary(power + (operator != "**"))
            left = fold(operator, left, right)
        return left

    def _unary(self) -> Value:
        token = self._peek()
        if token in {"-", "+"}:
            self._at += 1
            return negative(self._unary()) if token == "-" else self._unary()  # noqa: S105 - a token of an expression
        if token in {"!", "not", "~"}:
            self._at += 1
            value = self._unary()
            return {TRUE: FALSE, FALSE: TRUE}.get(value, UNKNOWN)
        if token in {"&", "*", "...", "await", "new", "typeof", "@", "#", "ref", "mut", "const"}:
            self._at += 1
            return self._unary()
        return self._postfix(self._primary())

    def _primary(self) -> Value:
        token = self._next()
        if token.kind == "number":
            return self._number(token)
        if token.kind == "string":
            return self._string(token.text)
        if token.kind == "name":
            return self._name(token.text)
        if token.text == "(":
            return self._parenthesis()
        if token.text in "[{":
            return self._collection("]" if token.text == "[" else "}")
        raise UnreadableError

    def _number(self, token: Token) -> Value:
        digits = token.text.replace("_", "")
        if _OCTAL.fullmatch(digits):  # the mode of a file, in C, Go and documentation
            digits = f"0o{digits}"
        value = Fraction(int(digits, 0)) if digits[:2].lower() in {"0x", "0o", "0b"} else _decimal(digits)
        suffix = token.suffix
        if suffix and not _LITERAL_SUFFIX.match(suffix):
            # ``1h30m`` comes as one suffix.
            return _with_suffix(value, suffix)
        following = self._tokens[self._at] if self._at < len(self._tokens) else None
        if suffix in {"d", "f", ""} and following and following.kind == "name" and following.text.lower() in UNITS:
            self._at += 1
            return measured(value, following.text.lower())
        if not suffix and self._accept("%"):
            return number(value, "percent")
        return measured(value, "s") if suffix == "s" else measured(value, "d") if suffix == "d" else number(value)

    def _string(self, text: str) -> Value:
        prefix = text[: len(text) - len(text.lstrip("bBrRuUfF@$"))].lower()
        if ("{" in text and ("f" in prefix or "$" in prefix)) or (text[0] == "`" and "${" in text):
            return UNKNOWN  # what is put in is not known
        text = text.lstrip("bBrRuUfF@$")
        quotes = 3 if text[:3] in {'"""', "'''"} else 1
        return Value("string", _ESCAPED.sub(r"\1", text[quotes:-quotes]))

    def _name(self, name: str) -> Value:
        following = self._peek()
        if following == "(" or (name.endswith("!") and following in {"(", "[", "{"}):
            self._at += 1
            return value_of_call(name, *self._arguments({"(": ")", "[": "]", "{": "}"}[following]))
        if following == "{" and name[:1].isupper():
            self._at += 1
            self._skip("}")
            return Value("symbol", name)
        last = re.split(r"[.:>]+", name)[-1].lower()
        if last in _UNLIMITED_NAMES or (last == "inf" and "." in name):
            return UNLIMITED
        if name.lower() in _WORD_VALUES:
            return _WORD_VALUES[name.lower()]
        if "." in name and last in _WORD_VALUES and _WORD_VALUES[last] is UNLIMITED:
            return UNLIMITED
        if last in UNITS and ("." in name or name.isupper() or len(name) == 2) and len(last) > 1:
            return measured(Fraction(1), last)
        if name.lower() in _NUMBER_WORDS:
            value = Fraction(_NUMBER_WORDS[name.lower()])
            if following.lower() in UNITS:
                self._at += 1
                return measured(value, following.lower())
            return number(value)
        known = self._resolve(name) if self._resolve else None
        return known or Value("symbol", name)

    def _postfix(self, value: Value) -> Value:
        while True:
            if self._accept("."):
                method = self._next().text.split(".")
                for part in method:
                    value = with_method(value, part.lower().strip("_"))
                if self._accept("("):
                    arguments, _ = self._arguments(")")
                    if value.kind == "string" and arguments:  # ``"{}".format(x)``
                        value = UNKNOWN
                    is_default = method[-1] == "default"  # ``array().items(…).default([…])``
                    if arguments and (is_default or (not value.is_literal and GETTERS.search(method[-1]))):
                        value = replace(arguments[-1], is_fallback=True)
            elif self._peek() == "[":
                self._at += 1
                self._skip("]")
                value = UNKNOWN if value.kind == "symbol" else value
            elif self._peek() == "(" and value.kind == "symbol":
                self._at += 1
                value = value_of_call(value.text, *self._arguments(")"))
            elif self._accept("as"):
                self._next()
            elif not self._accept("!"):
                return value

    def _parenthesis(self) -> Value:
        if self._accept(")"):
            return Value("list", "[]")
        first = self._ternary()
        if self._accept(")"):
            return first
        if not self._accept(","):
            raise UnreadableError
        items = [first]
        while self._peek() != ")":
            items.append(self._ternary())
            if not self._accept(","):
                break
        if not self._accept(")"):
            raise UnreadableError
        return list_of(items)

    def _collection(self, end: str) -> Value:
        items: list[Value] = []
        while self._peek() != end:
            items.append(self._ternary())
            if self._peek() in {":", "=>", "="}:  # a mapping: only the empty one is a value that is compared
                self._skip(end)
                return UNKNOWN
            if not (self._accept(",") or self._accept(";")):
                break
        if not self._accept(end):
            raise UnreadableError
        if end == "]" and not items and self._peek() and self._tokens[self._at].kind == "name":  # Go: []string{…}
            self._next()
            if self._accept("{"):
                return self._collection("}")
        return list_of(items)

    def _arguments(self, end: str) -> tuple[list[Value], dict[str, Value]]:
        positional: list[Value] = []
        named: dict[str, Value] = {}
        while self._peek() != end:
            token = self._tokens[self._at] if self._at < len(self._tokens) else None
            following = self._tokens[self._at + 1].text if self._at + 1 < len(self._tokens) else ""
            if token is not None and token.kind == "name" and following in {"=", ":"}:
                self._at += 2
                named[token.text.lower()] = self._ternary()
            else:
                positional.append(self._ternary())
            if not (self._accept(",") or self._accept(";")):
                break
        if not self._accept(end):
            raise UnreadableError
        return positional, named


def _decimal(digits: str) -> Fraction:
    plain = digits.replace(",", "")
    exponent = re.search(r"[eE]([+-]?\d+)$", plain)
    if exponent and abs(int(exponent[1])) > 40:
        raise UnreadableError
    return Fraction(plain)


def _with_suffix(value: Fraction, suffix: str) -> Value:
    """Read ``30s``, ``64KiB``, ``1h30m``."""
    parts = re.findall(r"\d+|[^\d]+", suffix)
    total, base = Fraction(0), None
    amount: Fraction | None = value
    for part in parts:
        if part.isdigit():
            amount = Fraction(int(part))
            continue
        found = ATTACHED.get(part) or ATTACHED.get(part.lower() if len(part) > 1 else part)
        if found is None or amount is None or (base and base != found[0]):
            raise UnreadableError
        base = found[0]
        total += amount * found[1]
        amount = None
    if amount is not None or base is None:
        raise UnreadableError
    return number(total, base)
