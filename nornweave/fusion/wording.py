"""Claims in words: values with their units as people write them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from nornweave.fusion.compatible import number
from nornweave.types import Claim

_TIMES = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))
_SIZES = (("GiB", 1024**3), ("GB", 1000**3), ("MiB", 1024**2), ("MB", 1000**2), ("KiB", 1024), ("KB", 1000))
_NAMED_UNITS = {"percent": "%", "month": "months", "byte": "bytes"}
# Values are listed up to here; whoever wants all looks at the source.
MAX_LISTED = 4


def words_of(attribute: str) -> str:
    """Return an attribute's name in words."""
    return attribute.replace("_", " ")


def shown_all(claims: Sequence[Claim]) -> str:
    """List values: ``400 and 500``."""
    values = sorted({shown(claim) for claim in claims})[:MAX_LISTED]
    return " and ".join(values) if len(values) < 3 else f"{', '.join(values[:-1])} and {values[-1]}"


def shown(claim: Claim) -> str:
    """Return a value with its unit: ``48 hours``, ``64 KiB``, ``60 request/min``."""
    value = number(claim.value)
    if value is None or claim.unit is None or claim.kind not in {"number", "default"}:
        return claim.value
    if claim.unit == "s":
        return _time(value)
    if claim.unit == "byte":
        return next(
            (f"{value / size} {name}" for name, size in _SIZES if value and value % size == 0), f"{value} bytes"
        )
    per_second = claim.unit.endswith("/s") and value and (value * 60).denominator == 1 and value.denominator != 1
    if per_second:
        return f"{value * 60} {claim.unit.removesuffix('s')}min"
    return f"{claim.value} {_NAMED_UNITS.get(claim.unit, claim.unit)}"


def _time(value: Fraction) -> str:
    for name, seconds in _TIMES:
        if value and value % seconds == 0:
            count = value / seconds
            return f"{count} {name}{'' if count == 1 else 's'}"
    return f"{float(value):g} seconds"
