"""Normalise version requirements (``>=16``, ``3.9 or newer``, ``^1.4``), and decide whether two agree.

A requirement is the least version (``>=3.8``); upper limits are not compared. A bare ``3.8`` does not say whether
newer versions are accepted. A pin (``==3.11``) is not a requirement: it is the version that somebody chose.
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
    "cmake": "cmake",
    "dotnet": "dotnet .net net netcore",
    "api level": "api minsdk minsdkversion",  # of Android, whose own versions are counted otherwise
    "swift": "swift",
    "elixir": "elixir",
    "dart": "dart",
}
PRODUCTS = MappingProxyType({word: name for name, words in _PRODUCTS.items() for word in words.split()})
"""What people call a language → its name in facts (``nodejs``: ``node``)."""

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
    r"(?:at least|minimum|min\.?|since|from|(?:newer|later|higher|greater) than)[ ]?(?:version[ ]?)?$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Requirement:
    """The versions that a requirement accepts.

    Attributes:
        least: the lowest version, as numbers.
        is_open: newer versions are explicitly accepted (``>=``, ``+``, ``^``); a plain ``3.8`` is not open.
    """

    least: tuple[int, ...]
    is_open: bool = False

    def __str__(self) -> str:
        return (">=" if self.is_open else "") + ".".join(map(str, self.least))


def read_requirement(text: str) -> Requirement | None:
    """Read a version or a requirement, as manifests and people write them.

    Args:
        text: ``>=16``, ``3.8+``, ``^20.1 || >=22``, ``~> 2.7``, ``3.9 or newer``, ``at least 1.21``, ``18.x``.

    Returns:
        The requirement, or the lowest of alternatives (``16 || 18``); ``None`` for a pin (``==3.8``), and if no least
        version is named (``*``, ``<4``).
    """
    text = " ".join(text[:MAX_REQUIREMENT].strip(" `'\"()").split())
    found = [one for part in text.split("||") if (one := _least(part)) is not None]
    lowest = min(found, key=lambda one: one.least, default=None)
    return lowest if len(found) < 2 or lowest is None else Requirement(lowest.least, is_open=True)


def _least(text: str) -> Requirement | None:
    for match in _CLAUSE.finditer(text):
        operator, before, after = match["operator"] or "", text[: match.start()], text[match.end() :]
        if operator in {"=", "==", "==="}:
            return None
        if operator in {"<", "<=", "=<", "≤", "!="} or (not operator and _OLDER.match(after.lstrip())):
            continue
        is_newer = _NEWER.match(after.lstrip(" ,(")) or _AT_LEAST.search(before)
        version = tuple(int(part) for part in match["version"].lstrip("vV").split(".") if part.isdigit())
        return Requirement(version, is_open=bool(operator or match["plus"] or is_newer))
    return None


def agree(a: str, b: str) -> bool | None:
    """Tell whether two requirements of one thing can both be true; ``None`` if that cannot be known."""
    left, right = read_requirement(a), read_requirement(b)
    if left is None or right is None:
        return None
    length = min(len(left.least), len(right.least))
    if left.least[:length] != right.least[:length]:
        return False
    if not any(left.least[length:]) and not any(right.least[length:]):
        return True
    short = left if len(left.least) < len(right.least) else right
    return None if short.is_open else True  # ``3.8`` beside ``3.8.1``: fine if the short one is no exact minimum
