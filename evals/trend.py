"""Draw Recall@10 and MRR of a judged set over its evaluations as an SVG. Pure and deterministic.

Colours are of middle lightness on no background, so that the picture can be read on a light page and on a dark one.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from nornweave.core.text.dates import utc

LAST = 60
"""Evaluations shown, the newest ones."""
LONGEST_INLINE = 999
"""Characters of Markdown that dagster-webserver 1.13 shows in its place; of more it shows a link to a dialog."""

_WIDTH, _HEIGHT = 380, 76
_GREY, _BLUE, _ORANGE = "#888", "#48f", "#e71"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendPoint:
    """One evaluation.

    Attributes:
        recall: mean of Recall@10, in [0, 1]; ``mrr`` likewise.
        refused: whether the gate held it back; it stands beside the line of those that were published.
    """

    at: datetime
    generation: str
    recall: float
    mrr: float
    refused: bool = False


def trend(points: Sequence[TrendPoint]) -> str:
    """Return the two lines as a Markdown image, which Dagster's UI shows without a click.

    It holds the picture itself and needs neither a file nor the network. It has the newest evaluations only (as many as
    fit, some twenty), refused candidates as dots beside the line; empty where nothing was evaluated. The text is never
    longer than ``LONGEST_INLINE``.

    Args:
        points: in any order; they are shown by time, then generation.

    Raises:
        ValueError: a figure is not in [0, 1].
    """
    for point in points:
        if not all(0 <= value <= 1 for value in (point.recall, point.mrr)):
            raise ValueError(f"{point.generation}: recall {point.recall}, MRR {point.mrr}; expected figures in [0, 1]")
    shown = sorted(points, key=lambda point: (utc(point.at), point.generation, point.recall, point.mrr, point.refused))
    shown = shown[-LAST:]
    while shown:
        image = (
            f"![Recall@10 and MRR](data:image/svg+xml;base64,{base64.b64encode(_draw_lines(shown)).decode('ascii')})"
        )
        if len(image) <= LONGEST_INLINE:
            return image
        shown = shown[1:]
    return ""


def _draw_lines(points: Sequence[TrendPoint]) -> bytes:
    """Draw two lines in few bytes: whole coordinates in relative steps."""
    means = [mean for point in points for mean in (point.recall, point.mrr)]
    low, high = math.floor(min(means) * 10 + 1e-9) / 10, math.ceil(max(means) * 10 - 1e-9) / 10
    scale, step = 44 / max(high - low, 0.1), 330 // max(len(points) - 1, 1)
    lines = []
    for colour, values in ((_BLUE, [point.recall for point in points]), (_ORANGE, [point.mrr for point in points])):
        spots = [(40 + place * step, round(72 - (value - low) * scale)) for place, value in enumerate(values)]
        line = [spot for spot, point in zip(spots, points, strict=True) if not point.refused]
        beside = [spot for spot, point in zip(spots, points, strict=True) if point.refused]
        # A line of no length is a dot, its ends being round; so is the newest value.
        dots = "".join(f"M{x} {y}h0" for x, y in (*beside, *line[-1:]))
        moves = [(x - old_x, y - old_y) for (old_x, old_y), (x, y) in zip(line[:-1], line[1:], strict=True)]
        steps = "l" + " ".join(f"{right} {down}" for right, down in moves).replace(" -", "-") if moves else ""
        start = f"M{line[0][0]} {line[0][1]}" if line else ""
        lines.append(f'<path d="{start}{steps}" stroke="{colour}"/>')
        lines.append(f'<path d="{dots}" stroke="{colour}" stroke-width="5"/>' if dots else "")
    newest = ([point for point in points if not point.refused] or list(points))[-1]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
        f'style="font:11px sans-serif"><g fill="{_GREY}"><text x="6" y="32">{high:.1f}</text>'
        f'<text x="6" y="75">{low:.1f}</text></g>'
        f'<text x="40" y="12" fill="{_BLUE}">Recall@10 {newest.recall:.3f}</text>'
        f'<text x="160" y="12" fill="{_ORANGE}">MRR {newest.mrr:.3f}</text>'
        f'<g fill="none" stroke-linecap="round">{"".join(lines)}</g></svg>'
    ).encode()
