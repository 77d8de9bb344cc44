"""Suggest a corrected documentation line with the other side's value, if the value stands there exactly once."""

from __future__ import annotations

import json
import re
from fractions import Fraction

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Fact
from nornweave.disagree.facts.comparison import FactComparison, compare
from nornweave.disagree.facts.expressions import read_value
from nornweave.disagree.facts.values import UNITS, Value, show

MAX_LINE = 1_000
"""Characters of a line in which a value is looked for."""

_UNITS = "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True))
_LITERAL = lazy_pattern(
    r"(?P<list>\[[^\[\]\n]{0,400}\])"
    r"|(?P<mark>[\"']|`{1,2})(?P<quoted>(?!v?\d[\d_.,]*(?: ?\w{1,12})?(?P=mark))[^\"'`\n]{1,200})(?P=mark)"
    r"|(?<![\w.,-])(?P<number>v?\d[\d_]*(?:,\d{3}(?!\d))*(?:\.\d+)*)"
    rf"(?:(?P<blank> ?)(?P<unit>{_UNITS})(?!\w))?(?!\w)"
    r"|(?<![\w.-])[A-Za-z][\w./:-]{0,60}(?<![.:])",
    re.IGNORECASE,
)
_OPPOSITE = {"true": "false", "yes": "no", "on": "off", "enabled": "disabled"}
_OPPOSITES = {**_OPPOSITE, **{no: yes for yes, no in _OPPOSITE.items()}}
_IN_PLACE_OF = {
    "string": "string none unlimited", "status": "status", "none": "string number boolean unlimited",
    "unlimited": "number none", "number": "none unlimited boolean",
}  # fmt: skip
"""What may be written where such a value stood, beside another of its kind."""


def with_value(line: str, stated: Fact, wanted: Fact) -> str | None:
    """Return a line with its value replaced.

    Args:
        line: the line as it stands.
        stated: what it states.
        wanted: the fact whose value it should state.

    Returns:
        ``None`` if the value is not found in the line, is found twice, or cannot be written in its place.
    """
    if len(line) > MAX_LINE or stated.negated or wanted.negated:
        return None
    found = [match for match in _LITERAL.finditer(line) if _states(match, stated)]
    written = _written(found[0], stated, wanted) if len(found) == 1 else None
    if written is None:
        return None
    start, end = found[0].span("quoted" if found[0]["quoted"] else 0)
    changed = line[:start] + written + line[end:]
    return changed if changed != line else None


def _states(match: re.Match[str], stated: Fact) -> bool:
    bare = match["quoted"] or match[0]
    if stated.kind == "version":
        return bare.lstrip("v") == _least(stated)
    if stated.kind in {"string", "status"}:
        return bare == stated.value
    value = read_value(bare)
    is_same_kind = value is not None and value.is_literal and value.kind == stated.kind
    return (
        value is not None
        and is_same_kind
        and compare(value, Value(stated.kind, stated.value, stated.unit)) is FactComparison.AGREE
    )


def _least(required: Fact) -> str:
    found = re.search(r"\d[\d.]*", required.value)
    return found[0] if found else ""


def _written(match: re.Match[str], stated: Fact, wanted: Fact) -> str | None:
    """Return the wanted value in the spelling of the stated one."""
    if stated.kind == wanted.kind == "number":
        return _number(match, stated, wanted)
    if stated.kind == wanted.kind == "boolean":
        other = _OPPOSITES.get((match["quoted"] or match[0]).lower())
        return other and (other.upper() if match[0].isupper() else other.title() if match[0][0].isupper() else other)
    if stated.kind == wanted.kind == "version":
        return match[0].replace(_least(stated), _least(wanted)) if not match["quoted"] else _least(wanted)
    if stated.kind == wanted.kind == "list":
        quote = next((mark for mark in "\"'`" if mark in match[0]), "")
        return f"[{', '.join(f'{quote}{item}{quote}' for item in json.loads(wanted.value))}]"
    if wanted.kind not in _IN_PLACE_OF.get(stated.kind, "").split():
        return None
    text = wanted.value if wanted.kind in {"string", "status"} else show(wanted.kind, wanted.value, wanted.unit)
    return text if text and "\n" not in text else None


def _number(match: re.Match[str], stated: Fact, wanted: Fact) -> str | None:
    if (stated.unit and not wanted.unit) or not match["number"]:  # 0.05 beside 15 %: nobody says what it counts
        return None
    number, total = Fraction(re.sub("[_,]", "", match["number"])), Fraction(stated.value)
    # What one of the line's own unit is, by what the line is known to say: 20 with "20000 ms", 3600 with "2 hours".
    scaled = Fraction(wanted.value) * number / total if total else None
    if scaled is None or (scaled * 1000).denominator != 1 or stated.unit != wanted.unit:
        return show(wanted.kind, wanted.value, wanted.unit)
    written = f"{scaled.numerator:,}" if "," in match["number"] and scaled.denominator == 1 else f"{float(scaled):.12g}"
    return written + (match["blank"] + _plural(match["unit"], scaled) if match["unit"] else "")


def _plural(unit: str, number: Fraction) -> str:
    """Write ``1 hour`` and ``2 hours``; short units have no plural."""
    singular = unit[:-1] if unit.endswith("s") else unit
    if len(singular) < 3 or f"{singular.lower()}s" not in UNITS:
        return unit
    return singular if number == 1 else f"{singular}s"
