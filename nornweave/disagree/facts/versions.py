"""Normalise version requirements (``>=16``, ``3.9 or newer``, ``^1.4``), and decide whether two agree.

A requirement names the least version (``>=3.8``). A bare ``3.8`` does not say whether newer versions are accepted. A
pin (``==3.11``) is not a requirement: it is the version that somebody chose, not the least one needed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType

from nornweave.core.text.patterns import lazy_pattern

MAX_REQUIREMENT = 120

_PRODUCTS = {
    "python": "python python3 cpython py",
    "node": "node nodejs node.js",
    "go": "go golang",
    "rust": "rust rustc msrv",
    "ruby": "ruby jruby mri",
    "java": "java jdk openjdk jre javase temurin eclipse-temurin corretto",
    "php": "php",
    "postgresql": "postgresql postgres pg pgsql",
    "dotnet": "dotnet .net net",
    "kubernetes": "kubernetes k8s kube",
    "typescript": "typescript",
    "mysql": "mysql",
    "mongodb": "mongodb mongo",
    "rabbitmq": "rabbitmq",
    "elasticsearch": "elasticsearch",
}
PRODUCTS = MappingProxyType({word: name for name, words in _PRODUCTS.items() for word in words.split()})
"""What people call a language, runtime or service → its name in facts (``nodejs``: ``node``)."""

_VERSION = r"v?\d{1,5}(?:\.(?:\d{1,6}|[xX*])){0,4}"
_CLAUSE = lazy_pattern(
    rf"(?P<operator>>=|=>|<=|=<|===?|!=|~=|~>|\^|~|>|<|=|≥|≤)?[ ]?(?P<version>{_VERSION})"
    r"(?P<rest>[-.+]?(?:a|b|rc|alpha|beta|dev|post|pre|preview|snapshot|final)[-.]?\d{0,6}\b)?(?P<plus>\+(?!\w))?",
    re.IGNORECASE,
)
_NEWER = lazy_pattern(
    r"(?:or|and|&)?[ ]?(?:newer|later|higher|above|greater|up(?:wards?)?|onwards?|more recent)\b|(?:or|and) up\b",
    re.IGNORECASE,
)
_OLDER = lazy_pattern(r"(?:or|and) (?:older|earlier|lower|below)\b", re.IGNORECASE)
_AT_LEAST = lazy_pattern(
    r"(?:at least|minimum|min\.?|since|from|newer than or equal to)[ ]?(?:version[ ]?)?$", re.IGNORECASE
)
_NEWER_THAN = lazy_pattern(r"(?:newer|later|higher|greater) than[ ]?(?:version[ ]?)?$", re.IGNORECASE)
_RANGE = lazy_pattern(r"[ ]?(?:-|–|—|to|through)[ ]?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Requirement:
    """Which versions will do.

    Attributes:
        least: the lowest, as numbers; ``None`` if only a highest is named.
        is_open: newer versions than ``least`` will do, as is said (``>=``, ``+``, ``^``); a plain ``3.8`` is neither.
        below: the first version that is too new, if one is named.
    """

    least: tuple[int, ...] | None
    is_open: bool = False
    below: tuple[int, ...] | None = None

    def __str__(self) -> str:
        if self.least is None:
            return f"<{_written(self.below or ())}"
        return (
            (">=" if self.is_open else "") + _written(self.least) + (f",<{_written(self.below)}" if self.below else "")
        )


def _written(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def read_requirement(text: str) -> Requirement | None:
    """Read a version or a requirement, as manifests and people write them.

    Args:
        text: ``>=16``, ``3.8+``, ``^20.1 || >=22``, ``~> 2.7``, ``3.9 or newer``, ``at least 1.21``, ``18.x``.

    Returns:
        Of alternatives (``16 || 18``) the lowest; ``None`` if no version is named (``*``, ``latest``), and for pins.
    """
    text = " ".join(text[:MAX_REQUIREMENT].strip(" `'\"()").split())
    found = [one for part in text.split("||") if (one := _conjunction(part)) is not None]
    if not found:
        return None
    lowest = min(found, key=lambda one: one.least or ())
    if len(found) == 1:
        return lowest
    is_open = any(one.is_open and one.below is None for one in found)
    return Requirement(
        lowest.least, is_open=True, below=None if is_open else max(one.below or () for one in found) or None
    )


def _conjunction(text: str) -> Requirement | None:
    least: tuple[int, ...] | None = None
    below: tuple[int, ...] | None = None
    is_open = False
    end = 0
    for match in _CLAUSE.finditer(text):
        between, end = text[end : match.start()], match.end()
        version = _numbers(match["version"])
        operator = match["operator"] or ""
        is_last_of_range = least is not None and not operator and _RANGE.fullmatch(between) is not None
        if operator in {"<", "<=", "=<", "≤"} or is_last_of_range or (not operator and _OLDER.match(text, end + 1)):
            below = version if operator == "<" else _after(version)
            is_open = is_open or is_last_of_range
        elif operator != "!=" and least is None:
            if operator in {"=", "==", "==="}:
                return None
            least = version
            is_open = operator in {">=", "=>", "≥", ">", "~=", "~>", "^", "~"} or bool(match["plus"])
            is_open = is_open or _means_newer(text[: match.start()], text[end:])
            below = _ceiling(operator, version) or below
    return Requirement(least, is_open, below) if least or below else None


def _means_newer(before: str, after: str) -> bool:
    return bool(_NEWER.match(after.lstrip(" ,(")) or _AT_LEAST.search(before) or _NEWER_THAN.search(before))


def _ceiling(operator: str, version: tuple[int, ...]) -> tuple[int, ...] | None:
    if operator == "^":
        at = next((index for index, number in enumerate(version) if number), len(version) - 1)
        return (*version[:at], version[at] + 1)
    if operator in {"~=", "~>"} and len(version) > 1:
        return (*version[:-2], version[-2] + 1)
    return (*version[:1], version[1] + 1) if operator == "~" and len(version) > 1 else None


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.lstrip("vV").split(".") if part.isdigit())


def _after(version: tuple[int, ...]) -> tuple[int, ...]:
    return (*version[:-1], version[-1] + 1)


def agree(a: str, b: str) -> bool | None:
    """Tell whether two requirements of one thing can both be true.

    Returns:
        ``None`` if it cannot be known: the requirements speak of different ends, or one of them is none.
    """
    left, right = read_requirement(a), read_requirement(b)
    if left is None or right is None:
        return None
    if left.least is None or right.least is None:
        return (
            (_same(left.below, right.below) or False)
            if left.below and right.below and left.least == right.least
            else None
        )
    same = _same(left.least, right.least)
    if same is None:  # ``3.8`` beside ``3.8.1``: fine where the short one is no exact minimum
        short = left if len(left.least) < len(right.least) else right
        return None if short.is_open else True
    if same and left.below and right.below:
        return True if _same(left.below, right.below) else None
    return same


def _same(a: tuple[int, ...] | None, b: tuple[int, ...] | None) -> bool | None:
    """Compare as far as both go; ``None`` if one goes further and does not end in zeros."""
    a, b = a or (), b or ()
    length = min(len(a), len(b))
    if a[:length] != b[:length]:
        return False
    return None if any(a[length:]) or any(b[length:]) else True
