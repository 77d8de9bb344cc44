"""Leave out text of a PDF page that nobody sees.

Text may be transparent, as white as the page, covered by a box, outside its clip, on a layer that is off, or smaller
than a point. Only text that its colour, its mode or a filled box beside it makes doubtful is looked up in a picture of
the page: it is hidden where the picture has one colour. The text layer of a scanned page lies over an image, and stays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from nornweave.read.pdf.port import Box, GlyphLine, GlyphRun, PageGlyphs, Picture, around

LEAST_SIZE = 1.0
"""Points; smaller letters are not seen."""
FAINT = 26  # of 255: less than a tenth of a letter is painted
_LIGHT = 200  # of 255 for each of red, green and blue, from which text may be as light as its page
_CONTRAST = 14  # of 255 between the darkest and the lightest pixel; less is not seen
_ABOVE, _BELOW = 0.7, 0.1  # of the font's size: where letters stand above and below the baseline
_SCALE, _MOST_PIXELS = 1.0, 2_000_000
_LEAST_DRAWN = 3.0  # pixels of a letter's height; smaller ones may leave no mark in the picture
_MOST_FILLS = 100
_LEAST_LETTERS = 2  # of a run that may be hidden


def is_light(colour: int) -> bool:
    """Tell whether a colour (0xRRGGBB) is so light that a text in it may not be visible on the page."""
    return min(colour >> 16 & 255, colour >> 8 & 255, colour & 255) >= _LIGHT


def without_unseen(
    page: PageGlyphs, fills: Sequence[Box], images: Sequence[Box], draw: Callable[[float], Picture]
) -> PageGlyphs:
    """Return the page without hidden runs. Its ``unseen`` is their number.

    Args:
        fills, images: the boxes of the filled areas and of the images on the page.
        draw: a function that draws the page, not rotated, at a number of pixels per point.
    """
    scale = min(_SCALE, math.sqrt(_MOST_PIXELS / max(page.width * page.height, 1.0)))
    drawn: list[Picture] = []

    def is_unseen(run: GlyphRun, direction: tuple[float, float]) -> bool:
        if sum(map(str.isalnum, run.text)) < _LEAST_LETTERS or not run.box or not all(map(math.isfinite, run.box)):
            return False
        if run.size < LEAST_SIZE and run.box[2] - run.box[0] < LEAST_SIZE * len(run.text):
            return True
        band = _band(run, direction)
        is_scanned = run.is_uncertain and any(_encloses(image, band) for image in images)
        is_doubtful = run.is_uncertain or any(_encloses(fill, band) for fill in fills)
        if is_scanned or not is_doubtful or run.size * scale < _LEAST_DRAWN:
            return False
        if not drawn:
            drawn.append(draw(scale))
        return not _has_ink(drawn[0], band, scale)

    unseen = 0
    blocks: list[list[GlyphLine]] = []
    for block in page.blocks:
        blocks.append([])
        for line in block:
            hidden = [is_unseen(run, line.direction) for run in line.runs]
            unseen += sum(hidden)
            runs = [run for run, is_hidden in zip(line.runs, hidden, strict=True) if not is_hidden]
            if len(runs) == len(line.runs):
                blocks[-1].append(line)
            elif runs:
                blocks[-1].append(
                    replace(line, runs=runs, box=around([run.box for run in runs if run.box] or [line.box]))
                )
    return replace(page, blocks=[block for block in blocks if block], unseen=unseen) if unseen else page


def filled_areas(boxes: Iterable[Box]) -> list[Box]:
    """Return the boxes that may cover text or have the colour of the text.

    The result is empty for a page with many boxes, because such a page is a drawing.
    """
    areas = [box for box in boxes if box[2] - box[0] > LEAST_SIZE and box[3] - box[1] > LEAST_SIZE]
    return areas if len(areas) <= _MOST_FILLS else []


def covering(areas: Sequence[Box], box: Box, baseline: float, size: float) -> tuple[int, ...]:
    """Return the numbers of the areas in which the middle of a letter lies. A run ends where these numbers change."""
    x, y = (box[0] + box[2]) / 2, baseline - size / 4
    return tuple(at for at, (x0, y0, x1, y1) in enumerate(areas) if x0 <= x <= x1 and y0 <= y <= y1)


def _band(run: GlyphRun, direction: tuple[float, float]) -> Box:
    """Return a box around the letters of a run that is low enough not to touch the neighbouring lines."""
    x0, y0, x1, y1 = run.box or (0.0, 0.0, 0.0, 0.0)
    if abs(direction[0] - 1) > 0.01:
        return x0, y0, x1, y1
    return x0, run.origin[1] - _ABOVE * run.size, x1, run.origin[1] + _BELOW * run.size


def _encloses(outer: Box, inner: Box) -> bool:
    return around([outer, (inner[0] + 1, inner[1] + 1, inner[2] - 1, inner[3] - 1)]) == tuple(outer)


def _has_ink(picture: Picture, box: Box, scale: float) -> bool:
    """Tell whether a picture has more than one colour inside a box. Outside of the page the result is ``False``."""
    left, right = (min(max(round(x * scale), 0), picture.width) for x in (box[0], box[2]))
    top, bottom = (min(max(round(y * scale), 0), picture.height) for y in (box[1], box[3]))
    low, high = [255] * 3, [0] * 3
    for row in range(top, bottom if left < right else top):
        start = row * picture.width
        pixels = picture.pixels[(start + left) * 3 : (start + right) * 3]
        for colour in range(3):
            part = pixels[colour::3]
            low[colour], high[colour] = min(low[colour], *part), max(high[colour], *part)
            if high[colour] - low[colour] >= _CONTRAST:
                return True
    return False
