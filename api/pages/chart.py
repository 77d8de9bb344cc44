"""Measures over time as points of an SVG: a line of means within a band of their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 260, 92
_LEFT, _RIGHT, _TOP, _BOTTOM = 28, 10, 8, 18


@dataclass(frozen=True, slots=True)
class ChartPoint:
    """A mean with its interval, all in [0, 1], and when and of what it was measured."""

    mean: float
    low: float
    high: float
    day: str
    generation: str


@dataclass(frozen=True, slots=True)
class Point:
    """A measured mean, in the picture's coordinates."""

    x: float
    y: float
    low: float
    high: float
    label: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture of one measure: points from old to new, a line through them, the band of the intervals."""

    width: int
    height: int
    points: tuple[Point, ...]
    line: str
    band: str
    rules: tuple[tuple[float, str], ...]
    left: int
    right: int
    first_day: str
    last_day: str
    description: str


def chart_of(measured: Sequence[ChartPoint], name: str) -> Chart:
    """Draw a series, oldest first; there is at least one value. The axis goes from 0 to 1: nothing looks larger."""
    step = (WIDTH - _LEFT - _RIGHT) / max(1, len(measured) - 1)
    points = tuple(
        Point(
            x=round(_LEFT + (place * step if len(measured) > 1 else (WIDTH - _LEFT - _RIGHT) / 2), 1),
            y=_height(value.mean),
            low=_height(value.low),
            high=_height(value.high),
            label=f"{value.day} {value.generation}: {value.mean:.3f} ({value.low:.3f} to {value.high:.3f})",
        )
        for place, value in enumerate(measured)
    )
    last = measured[-1]
    upper = [f"{point.x},{point.high}" for point in points]
    lower = [f"{point.x},{point.low}" for point in reversed(points)]
    return Chart(
        width=WIDTH,
        height=HEIGHT,
        points=points,
        line=" ".join(f"{point.x},{point.y}" for point in points),
        band=" ".join([*upper, *lower]) if len(points) > 1 else "",
        rules=tuple((_height(value), f"{value:g}") for value in (0, 0.5, 1)),
        left=_LEFT,
        right=WIDTH - _RIGHT,
        first_day=measured[0].day,
        last_day=last.day,
        description=f"{name}: {len(measured)} measurements, the last {last.mean:.3f} "
        f"(95 % interval {last.low:.3f} to {last.high:.3f}) on {last.day}",
    )


def _height(value: float) -> float:
    return round(_TOP + (1 - min(max(value, 0.0), 1.0)) * (HEIGHT - _TOP - _BOTTOM), 1)
