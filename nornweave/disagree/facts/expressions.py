"""Parse expressions of any language, and their spellings in documentation, into values.

``read_value`` reads the right side of ``=`` in any of the languages, and its form in documentation:
the same text means the same value on both sides. Constant expressions are folded within limits; nothing is executed.

Evaluate operators and calls over constants, within limits; nothing is executed: ``Duration.ofMillis(5)``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Fact
from nornweave.disagree.facts.names import words_of
from nornweave.disagree.facts.values import (
    ATTACHED,
    FALSE,
    MAX_BITS,
    NONE,
    OCTAL,
    TRUE,
    UNITS,
    UNKNOWN,
    UNLIMITED,
    Value,
    list_of,
    measured,
    number,
    show,
    stated,
)

MAX_EXPRESSION = 2_000
"""Characters of an expression that is read; longer ones are no value that anybody documents."""
MAX_DEPTH = 24
MAX_WRITTEN = 40
"""Characters of a value that readers are shown as it is written."""

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
    (lazy_pattern(r"^(?:none|not set|unset|empty|no default|n/?a|not specified|undefined|-|—|–)$", re.I), NONE),
    (lazy_pattern(r"^(?:no limit|no timeout|no maximum|unlimited|infinite(?:ly)?|never|forever|unbounded)$", re.I),
     UNLIMITED),
)  # fmt: skip
_NUMBER_WORDS = {
    word: count
    for count, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen".split()  # noqa: SIM905
    )
} | {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "ninety": 90, "hundred": 100}
_OCTAL = lazy_pattern(r"0[oO]?[0-7]{2,4}")
_ESCAPED = lazy_pattern(r"\\([\\\"'`/])")
_LITERAL_SUFFIX = lazy_pattern(
    r"(?:[uUiIlLfFdDn]|[uif](?:8|16|32|64|128|size)|usize|isize|[uU][lL]{1,2}|[lL]{1,2}[uU]?)$"
)

COMPARISONS = frozenset(("==", "===", "!=", "!==", "<", ">", "<=", ">=", "is", "in", "instanceof"))

_TOKEN = lazy_pattern(
    r"""
    (?P<string>(?:[bBrRuUfF@$]{0,2}(?:\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`[^`\n]*`)))
    |(?P<number>0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|(?:\d[\d_]*(?:,\d{3}(?!\d))*(?:\.\d[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d+)?)
      (?P<suffix>[a-zA-Zµ%][a-zA-Z0-9]*)?
    |(?P<name>[@$:]?[A-Za-z_][\w]*(?:(?:\.|::|->|\?\.|!\.)[A-Za-z_]\w*)*(?:!(?!=)|\?(?=[ ]\?))?)
    |(?P<op>\*\*|<<|>>|\|\||&&|\?\?|\?:|===?|!==?|<=|>=|=>|->|::|\.\.\.|[-+*/%()\[\]{}<>,;:?=!&|.~^@#])
    |(?P<other>\S)
    """,
    re.VERBOSE,
)


def read_value(text: str, resolve: Resolve | None = None) -> Value | None:
    """Read a value as code or documentation writes it.

    Args:
        text: an expression (``30 * time.Second``, ``Option('json')``, ``[500, 502]``), or words (``20 seconds``,
            ``(none)``, ``no limit``).
        resolve: looks up constants by name.

    Returns:
        A literal, or a ``symbol`` for an expression with an unknown value; ``None`` if it is not an expression.
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


_WRITTEN_NUMBER = lazy_pattern(r"(?<![\w.,])(?P<number>[-+]?\.?\d[\d_.,]*\d|[-+]?\d)(?:[ -]?[A-Za-zµ%]+)?")


def as_written(fact: Fact, place: str = "") -> str:
    """Return a fact's value as its statement writes it (``8 MiB``); if the statement lacks it, in our own form.

    A denied value gets ``not`` before it.

    Args:
        place: the text at the fact's span, which may be the value itself.
    """
    written = show(fact.kind, fact.value, fact.unit)
    said = place.strip("`*_ ")
    if len(said) <= MAX_WRITTEN and fact.kind in {"number", "boolean"} and _is_value(said, fact):
        written = said
    elif fact.kind == "number":
        for match in _WRITTEN_NUMBER.finditer(fact.statement):
            if _is_value(match[0], fact):
                written = match[0] if fact.unit else match["number"]
                break
    return stated(replace(fact, value=written)) if fact.negated else written


def _is_value(written: str, fact: Fact) -> bool:
    if fact.kind == "boolean" and written in {"0", "1"}:
        return (written == "1") == (fact.value == "true")
    value = read_value(written)
    return value is not None and (value.kind, value.text, value.unit) == (fact.kind, fact.value, fact.unit)


_BINARY = {
    **dict.fromkeys(("||", "??", "or", "?:"), 1), **dict.fromkeys(("&&", "and"), 2), **dict.fromkeys(COMPARISONS, 3),
    "|": 4, "<<": 5, ">>": 5, "+": 6, "-": 6, "*": 7, "/": 7, "**": 9,
}  # fmt: skip
"""Operator with two sides → how strongly it binds."""


_PREFIXES = frozenset(
    ("-", "+", "!", "not", "~", "&", "*", "...", "await", "new", "typeof", "@", "#", "ref", "mut", "const")
)
_CLOSING = {"(": ")", "[": "]", "{": "}"}


class _UnreadableError(ValueError):
    """The text is not an expression."""


class _Reader:
    """A precedence-climbing reader of expressions in any language."""

    def __init__(self, text: str, resolve: Resolve | None) -> None:
        self._tokens = tokens(text)
        self._at = 0
        self._resolve = resolve
        self._depth = 0

    def _peek(self) -> str:
        return self._tokens[self._at].text if self._at < len(self._tokens) else ""

    def _next(self) -> Token:
        if self._at >= len(self._tokens):
            raise _UnreadableError
        self._at += 1
        return self._tokens[self._at - 1]

    def _accept(self, text: str) -> bool:
        if self._peek() == text:
            self._at += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise _UnreadableError

    def _skip_index(self) -> None:
        """Skip the rest of an index, including the bracket that closes it."""
        depth = 1
        while depth:
            text = self._next().text
            depth += (text == "[") - (text == "]")

    def read(self) -> Value:
        value = self._ternary()
        if self._at < len(self._tokens):
            raise _UnreadableError
        return value

    def _ternary(self) -> Value:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _UnreadableError
        value = self._binary(1)
        if self._accept("?"):
            value = self._ternary()
            self._expect(":")
            value = either(value, self._ternary())
        elif self._accept("if"):
            self._binary(1)
            self._expect("else")
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
        if token not in _PREFIXES:
            return self._postfix(self._primary())
        self._next()
        value = self._unary()
        if token == "-":  # noqa: S105 - a token of an expression
            return negative(value)
        return {TRUE: FALSE, FALSE: TRUE}.get(value, UNKNOWN) if token in {"!", "not", "~"} else value

    def _primary(self) -> Value:
        token = self._next()
        if token.kind == "number":
            return self._number(token)
        if token.kind == "string":
            return self._string(token.text)
        if token.kind == "name":
            return self._name(token.text)
        if token.text not in _CLOSING:
            raise _UnreadableError
        items, named = self._items(_CLOSING[token.text])
        if token.text == "(" and len(items) == 1:
            return items[0]
        is_go = token.text == "[" and not items and self._peek() and self._tokens[self._at].kind == "name"
        if is_go:  # ``[]string{…}``
            self._next()
            items, named = self._items("}") if self._accept("{") else (items, named)
        return UNKNOWN if named else list_of(items)

    def _number(self, token: Token) -> Value:
        digits, suffix = token.text.replace("_", ""), token.suffix
        if not suffix and self._peek().lower() not in UNITS and _OCTAL.fullmatch(digits):  # the mode of a file
            return number(Fraction(int(digits, 8)), OCTAL)
        value = Fraction(int(digits, 0)) if digits[:2].lower() in {"0x", "0o", "0b"} else _decimal(digits)
        if suffix and not _LITERAL_SUFFIX.match(suffix):
            return _with_suffix(value, suffix)
        unit = self._peek().lower()
        if suffix in {"d", "f", ""} and unit in UNITS and (unit.isalpha() or not suffix):
            self._next()
            return measured(value, unit)
        return measured(value, suffix) if suffix in {"s", "d"} else number(value)

    def _string(self, text: str) -> Value:
        prefix = text[: len(text) - len(text.lstrip("bBrRuUfF@$"))].lower()
        if ("{" in text and ("f" in prefix or "$" in prefix)) or (text[0] == "`" and "${" in text):
            return UNKNOWN  # what is put in is not known
        text = text.lstrip("bBrRuUfF@$")
        quotes = 3 if text[:3] in {'"""', "'''"} else 1
        return Value("string", _ESCAPED.sub(r"\1", text[quotes:-quotes]))

    def _name(self, name: str) -> Value:
        following, low = self._peek(), name.lower()
        if following == "(" or (name.endswith("!") and following in {"[", "{"}):
            self._next()
            return value_of_call(name, *self._items(_CLOSING[following]))
        last = re.split(r"[.:>]+", low)[-1]
        if low in _WORD_VALUES:
            return _WORD_VALUES[low]
        if last in _UNLIMITED_NAMES or ("." in name and _WORD_VALUES.get(last) is UNLIMITED):
            return UNLIMITED
        if last in UNITS and ("." in name or name.isupper() or len(name) == 2) and len(last) > 1:
            return measured(Fraction(1), last)
        if low in _NUMBER_WORDS:
            return self._number(Token("number", str(_NUMBER_WORDS[low])))
        return (self._resolve(name) if self._resolve else None) or Value("symbol", name)

    def _postfix(self, value: Value) -> Value:
        while True:
            if self._accept("."):
                method = self._next().text.split(".")
                for part in method:
                    value = with_method(value, part.lower().strip("_"))
                if self._accept("("):
                    arguments, _ = self._items(")")
                    if value.kind == "string" and arguments:  # ``"{}".format(x)``
                        value = UNKNOWN
                    is_default = method[-1] == "default"  # ``array().items(…).default([…])``
                    if arguments and (is_default or (not value.is_literal and GETTERS.search(method[-1]))):
                        value = replace(arguments[-1], is_fallback=True)
            elif self._accept("["):
                self._skip_index()
                value = UNKNOWN if value.kind == "symbol" else value
            elif value.kind == "symbol" and self._accept("("):
                value = value_of_call(value.text, *self._items(")"))
            elif self._accept("as"):
                self._next()
            elif not self._accept("!"):
                return value

    def _items(self, end: str) -> tuple[list[Value], dict[str, Value]]:
        """Read values up to a closing bracket, and named values by lower-case name."""
        values: list[Value] = []
        named: dict[str, Value] = {}
        while self._peek() != end:
            key, value = self._tokens[self._at] if self._at < len(self._tokens) else None, self._ternary()
            if key is not None and (self._accept("=") or self._accept(":") or self._accept("=>")):
                named[key.text.lower()] = self._ternary()
            else:
                values.append(value)
            if not (self._accept(",") or self._accept(";")):
                break
        self._expect(end)
        return values, named


def _decimal(digits: str) -> Fraction:
    plain = digits.replace(",", "")
    exponent = re.search(r"[eE]([+-]?\d+)$", plain)
    if exponent and abs(int(exponent[1])) > 40:
        raise _UnreadableError
    return Fraction(plain)


def _with_suffix(value: Fraction, suffix: str) -> Value:
    """Return a number with attached units: ``30s``, ``1h30m``. ``value`` is the first number, ``suffix`` the rest."""
    total, base = Fraction(0), ""
    for digits, word in re.findall(r"(\d*)(\D+)", suffix):
        unit = ATTACHED.get(word) or ATTACHED.get(word.lower() if len(word) > 1 else word)
        if unit is None or base not in {"", unit[0]}:
            raise _UnreadableError
        base = unit[0]
        total += (Fraction(digits) if digits else value) * unit[1]
    if not base or suffix[-1].isdigit():
        raise _UnreadableError
    return number(total, base)


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


@dataclass(frozen=True, slots=True)
class Token:
    """A word of an expression. ``suffix`` is the text directly after the digits of a number."""

    kind: str
    text: str
    suffix: str = ""


def tokens(text: str) -> list[Token]:
    """Split an expression into its words, without blank space."""
    found = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or ""
        if match["number"] is not None:
            found.append(Token("number", match["number"], match["suffix"] or ""))
        elif match["string"] is not None:
            found.append(Token("string", match["string"]))
        elif match["name"] is not None:
            found.append(Token("name", match["name"]))
        else:
            found.append(Token(kind, match[0]))
    return found
