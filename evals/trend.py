"""Draw how Recall@10 and MRR of a judged set went over its evaluations: an SVG, by hand. Pure and deterministic.

Colours are of middle lightness on no background, so that the picture can be read on a light page and on a dark one.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import NamedTuple

from nornweave.core.text.dates import utc

LAST = 60
"""Evaluations shown, the newest ones."""
LONGEST_INLINE = 999
"""Characters of Markdown that dagster-webserver 1.13 shows in its place; of more it shows a link to a dialog."""

_WIDTH, _HEIGHT = 760, 270
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 700, 56, 218
_INDENT = 40
_LABEL_WIDTH = 112
_LONGEST_LABEL = 16
_GREY, _RED, _BLUE, _ORANGE = "#7d8590", "#e5484d", "#3b82f6", "#e07a10"
_SMALL_WIDTH, _SMALL_HEIGHT = 380, 76
_SMALL_GREY, _SMALL_BLUE, _SMALL_ORANGE = "#888", "#48f", "#e71"
_STYLE = f"text{{font:11px system-ui,sans-serif;fill:{_GREY}}}.h{{font-size:13px;font-weight:600}}"
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Range(NamedTuple):
    """A measure's mean and its interval, each in [0, 1]."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendPoint:
    """One evaluation.

    Attributes:
        at: when it ran; shown in UTC if it has a time zone.
        refused: whether the gate held it back; it stands beside the line of those that were published.
    """

    at: datetime
    generation: str
    recall: Range
    mrr: Range
    refused: bool = False


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where a value stands in the picture."""

    count: int
    low: float
    high: float

    @classmethod
    def around(cls, points: Sequence[TrendPoint]) -> _Frame:
        ranges = [mean_range for point in points for mean_range in (point.recall, point.mrr)]
        low = math.floor(min(min(mean_range) for mean_range in ranges) * 10 + 1e-9) / 10
        high = math.ceil(max(max(mean_range) for mean_range in ranges) * 10 - 1e-9) / 10
        return cls(len(points), min(low, max(0.0, high - 0.2)), max(high, min(1.0, low + 0.2)))

    def x(self, place: int) -> float:
        if self.count == 1:
            return (_LEFT + _RIGHT) / 2
        return _LEFT + _INDENT + place * (_RIGHT - _LEFT - 2 * _INDENT) / (self.count - 1)

    def y(self, value: float) -> float:
        return _BOTTOM - (value - self.low) / (self.high - self.low) * (_BOTTOM - _TOP)


def trend_svg(points: Sequence[TrendPoint], title: str = "") -> bytes:
    """Draw the newest evaluations from left to right, evenly spaced whenever they ran.

    Lines join the published generations, bands are their intervals; a cross is a candidate that was refused. The
    vertical axis shows only the part of [0, 1] that is needed, and says which.

    Args:
        points: in any order; they are shown by time, then generation.
        title: what was evaluated.

    Returns:
        UTF-8, the same bytes for the same points.

    Raises:
        ValueError: a figure is not in [0, 1].
    """
    shown = _newest(points)
    body = _drawn(shown) if shown else [_text(_WIDTH / 2, _HEIGHT / 2, "not evaluated yet", "middle")]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" '
            f'height="{_HEIGHT}" role="img">',
            f"<style>{_STYLE}</style>",
            _text(_LEFT, 18, title, extra=' class="h"'),
            *body,
            "</svg>\n",
        ]
    ).encode()


def as_markdown_image(svg: bytes, alternative: str = "trend") -> str:
    """Return Markdown that holds the picture itself: it needs no file and no network.

    Dagster's UI shows it (dagster-webserver 1.13 lets ``data:`` through its sanitiser), in a dialog behind the link
    *[Show Markdown]* if it is longer than ``LONGEST_INLINE``, as a whole trend is. ``small_trend`` is shorter.
    """
    shown = re.sub(r"[^\w .,:-]", " ", alternative)
    return f"![{shown}](data:image/svg+xml;base64,{base64.b64encode(svg).decode('ascii')})"


def small_trend(points: Sequence[TrendPoint]) -> str:
    """Return the two lines as a Markdown image that Dagster's UI shows at once, without a click.

    It has no intervals and no names, the newest evaluations only (as many as fit, some twenty), refused candidates as
    dots beside the line; empty where nothing was evaluated. The text is never longer than ``LONGEST_INLINE``.

    Raises:
        ValueError: a figure is not in [0, 1].
    """
    shown = _newest(points)
    while shown:
        image = as_markdown_image(_small(shown), "Recall@10 and MRR")
        if len(image) <= LONGEST_INLINE:
            return image
        shown = shown[1:]
    return ""


def _newest(points: Sequence[TrendPoint]) -> list[TrendPoint]:
    for point in points:
        if not all(0 <= value <= 1 for value in (*point.recall, *point.mrr)):
            raise ValueError(f"{point.generation}: recall {point.recall}, MRR {point.mrr}; expected figures in [0, 1]")
    return sorted(points, key=lambda point: (utc(point.at), point.generation, point.recall, point.mrr, point.refused))[
        -LAST:
    ]


def _small(points: Sequence[TrendPoint]) -> bytes:
    """Draw two lines in as few bytes as possible: whole coordinates, in relative steps."""
    means = [mean_range.mean for point in points for mean_range in (point.recall, point.mrr)]
    low, high = math.floor(min(means) * 10 + 1e-9) / 10, math.ceil(max(means) * 10 - 1e-9) / 10
    scale, step = 44 / max(high - low, 0.1), 330 // max(len(points) - 1, 1)
    lines = []
    for colour, ranges in (
        (_SMALL_BLUE, [point.recall for point in points]),
        (_SMALL_ORANGE, [point.mrr for point in points]),
    ):
        spots = [
            (40 + place * step, round(72 - (mean_range.mean - low) * scale)) for place, mean_range in enumerate(ranges)
        ]
        line = [spot for spot, point in zip(spots, points, strict=True) if not point.refused]
        beside = [spot for spot, point in zip(spots, points, strict=True) if point.refused]
        # A line of no length is a dot, its ends being round; so is the newest value.
        dots = "".join(f"M{x} {y}h0" for x, y in (*beside, *line[-1:]))
        moves = [(x - old_x, y - old_y) for (old_x, old_y), (x, y) in zip(line[:-1], line[1:], strict=True)]
        steps = "l" + " ".join(f"{right} {down}" for right, down in moves).replace(" -", "-") if moves else ""
        start = f"M{line[0][0]} {line[0][1]}" if line else ""
        lines.append(f'<path d="{start}{steps}" stroke="{colour}"/>')
        lines.append(f'<path d="{dots}" stroke="{colour}" stroke-width="5"/>' if dots else "")
    published = [point for point in points if not point.refused][-1:] or points[-1:]
    recall, mrr = published[0].recall.mean, published[0].mrr.mean
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_SMALL_WIDTH}" height="{_SMALL_HEIGHT}" '
        f'style="font:11px sans-serif"><g fill="{_SMALL_GREY}"><text x="6" y="32">{high:.1f}</text>'
        f'<text x="6" y="75">{low:.1f}</text></g><text x="40" y="12" fill="{_SMALL_BLUE}">Recall@10 {recall:.3f}</text>'
        f'<text x="160" y="12" fill="{_SMALL_ORANGE}">MRR {mrr:.3f}</text>'
        f'<g fill="none" stroke-linecap="round">{"".join(lines)}</g></svg>'
    ).encode()


def _drawn(points: Sequence[TrendPoint]) -> list[str]:
    frame = _Frame.around(points)
    refused = [point.refused for point in points]
    return [
        *_axes(frame),
        *_labels(points, frame),
        *_curve("Recall@10", _BLUE, [point.recall for point in points], refused, frame, _LEFT),
        *_curve("MRR", _ORANGE, [point.mrr for point in points], refused, frame, _LEFT + 150),
        *([_cross(_LEFT + 304, 36, _GREY), _text(_LEFT + 314, 40, "refused by the gate")] if any(refused) else []),
    ]


def _axes(frame: _Frame) -> list[str]:
    step = 0.1 if frame.high - frame.low < 0.55 else 0.2
    drawn = []
    for number in range(round((frame.high - frame.low) / step) + 1):
        value = frame.low + number * step
        if value <= frame.high + 1e-9:
            y = frame.y(value)
            drawn.append(f'<path d="M{_LEFT} {y:.1f}H{_RIGHT}" stroke="{_GREY}" stroke-opacity=".3"/>')
            drawn.append(_text(_LEFT - 8, y + 4, f"{value:.1f}", "end"))
    return drawn


def _labels(points: Sequence[TrendPoint], frame: _Frame) -> list[str]:
    """Name the generations, as many as have room; the newest always."""
    every = math.ceil(len(points) * _LABEL_WIDTH / (_RIGHT - _LEFT - 2 * _INDENT))
    drawn = []
    for place in range(len(points) - 1, -1, -max(every, 1)):
        point, x = points[place], frame.x(place)
        name = point.generation
        name = name if len(name) <= _LONGEST_LABEL else f"{name[: _LONGEST_LABEL - 1]}…"
        red = f' style="fill:{_RED}"' if point.refused else ""
        drawn.append(f'<path d="M{x:.1f} {_BOTTOM}v4" stroke="{_GREY}"/>')
        drawn.append(_text(x, _BOTTOM + 20, name, "middle", red))
        drawn.append(_text(x, _BOTTOM + 36, f"{utc(point.at):%Y-%m-%d %H:%M}", "middle"))
    return drawn


def _curve(
    name: str, colour: str, ranges: Sequence[Range], refused: Sequence[bool], frame: _Frame, legend_at: int
) -> list[str]:
    places = [place for place, out in enumerate(refused) if not out]
    spots = [(frame.x(place), frame.y(mean_range.mean), frame.y(mean_range.low), frame.y(mean_range.high))
             for place, mean_range in enumerate(ranges)]  # fmt: skip
    drawn = [
        f'<path d="M{legend_at} 36h18" stroke="{colour}" stroke-width="2"/>',
        _text(legend_at + 24, 40, f"{name} {ranges[places[-1]].mean:.3f}" if places else name),
    ]
    if len(places) > 1:
        upper = [f"{spots[place][0]:.1f} {spots[place][3]:.1f}" for place in places]
        lower = [f"{spots[place][0]:.1f} {spots[place][2]:.1f}" for place in reversed(places)]
        line = [f"{spots[place][0]:.1f} {spots[place][1]:.1f}" for place in places]
        drawn.append(f'<path d="M{"L".join(upper + lower)}Z" fill="{colour}" fill-opacity=".16"/>')
        drawn.append(f'<path d="M{"L".join(line)}" fill="none" stroke="{colour}" stroke-width="2"/>')
    for out, (x, y, low, high) in zip(refused, spots, strict=True):
        if out or len(places) == 1:
            drawn.append(f'<path d="M{x:.1f} {low:.1f}V{high:.1f}" stroke="{colour}" stroke-opacity=".5"/>')
        drawn.append(_cross(x, y, colour) if out else f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')
    return drawn


def _cross(x: float, y: float, colour: str) -> str:
    return f'<path d="M{x - 4:.1f} {y - 4:.1f}l8 8m0-8l-8 8" stroke="{colour}" stroke-width="2"/>'


def _text(x: float, y: float, text: str, anchor: str = "start", extra: str = "") -> str:
    shown = escape(_NOT_XML.sub("�", text))
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{shown}</text>'
