"""Clean the glyph runs of a PDF page into upright text fragments.

Coordinates are those of ``port``.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from operator import attrgetter

from nornweave.read.pdf.port import GlyphLine, GlyphRun, PageGlyphs

_BOLD_NAME = re.compile(r"bold|black|heavy|demi|semibold|CMBX|SFBX", re.IGNORECASE)
_MONO_NAME = re.compile(r"mono|courier|CMTT|SFTT|typewriter|consol|lettergothic|menlo|monaco|nimbusmon", re.IGNORECASE)

_LIGATURES = {0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl", 0xFB05: "st", 0xFB06: "st"}
_SPACES = dict.fromkeys([0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0xA0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000], " ")
_INVISIBLE = {code: None for code in [*range(0x20), *range(0x7F, 0xA0), 0x200B, 0x2060, 0xFEFF] if code not in _SPACES}
_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
_CLEAN: Mapping[int, str | None] = {**_INVISIBLE, **_SPACES, **_LIGATURES, **_SURROGATES}

# Old TeX fonts print an accent and a letter: "Ros´e".
_COMBINING = dict(zip("´¨ˆ˜ˇ˚˘˝", "\u0301\u0308\u0302\u0303\u030c\u030a\u0306\u030b", strict=True))
_ACCENTED = re.compile(r"([´¨ˆ˜ˇ˚˘˝]) ?([A-Za-z])")

_FAR = 100_000.0  # points; further out nobody has seen a page
_UNKNOWN = "\ufffd"
_LOGO = re.compile(r"L\^A ?T(?= ?E ?X)")
"""TeX raises a letter of LaTeX, which is no exponent."""
_FIRST_MARK, _LARGER = re.compile(r"\d{1,3}|[a-z]"), 1.1  # of a footnote: its line is set so much larger, at least
_BULLET_GLYPH = re.compile(r"^\s*[\ufffd\ue000-\uf8ff]{1,2}(?=\s|\w|$)")  # symbol fonts give bullets no Unicode value
_LEADERS = re.compile(r"(?:\s?[.·]){5,}")  # dots between a table of contents' entry and its page

_WIDE_GAP = 1.5  # em between fragments of one row, from which they are cells rather than words


@dataclass(frozen=True, slots=True)
class GlyphFragment:
    """A run of glyphs on one baseline, without a wide gap between them.

    ``size``, ``bold`` and ``mono`` are those of most letters. ``turned`` means that the text is not horizontal on the
    page.
    """

    x0: float
    y0: float
    x1: float
    y1: float
    baseline: float
    size: float
    bold: bool
    mono: bool
    text: str
    turned: bool = False


@dataclass(frozen=True, slots=True)
class GlyphBlock:
    """Neighbouring fragments that the PDF library groups."""

    fragments: tuple[GlyphFragment, ...]
    x0: float
    y0: float
    x1: float
    y1: float

    @classmethod
    def of(cls, fragments: Sequence[GlyphFragment]) -> GlyphBlock:
        """Return the block that consists of ``fragments``. There must be at least one fragment."""
        return cls(
            tuple(fragments),
            min(f.x0 for f in fragments),
            min(f.y0 for f in fragments),
            max(f.x1 for f in fragments),
            max(f.y1 for f in fragments),
        )


@dataclass(frozen=True, slots=True)
class PdfPage:
    """A page as the PDF library reads it. Its columns are not found yet.

    ``unseen`` is the number of hidden runs, which are left out.
    """

    number: int
    width: float
    height: float
    blocks: tuple[GlyphBlock, ...]
    images: int = 0
    letters: int = 0
    unreadable: int = 0
    unseen: int = 0


def read_page(number: int, glyphs: PageGlyphs) -> PdfPage:
    """Turn a page's glyphs into blocks of cleaned fragments.

    Letters without a Unicode value in their font are left out. ``unreadable`` counts them.
    """
    blocks: list[GlyphBlock] = []
    letters = unreadable = 0
    printed: set[tuple[int, int, str]] = set()
    for lines in glyphs.blocks:
        fragments = []
        for line in lines:
            # Printing twice, a fraction of a point apart, is how some programs make letters bold.
            x, y = (_bounded(value, -_FAR, _FAR) for value in line.box[:2])
            text = "".join(run.text for run in line.runs)
            place = (round(x / 2), round(y / 2), text)
            if place in printed:
                continue
            printed.add(place)
            letters += len(text) - text.count(" ")
            unreadable += text.count(_UNKNOWN)
            fragment = _fragment(line)
            if fragment is not None:
                fragments.append(fragment)
        for _, same in groupby(fragments, attrgetter("turned")):
            blocks.append(GlyphBlock.of(_join_neighbours(list(same))))
    size = (_bounded(glyphs.width, 1.0, _FAR), _bounded(glyphs.height, 1.0, _FAR))
    return PdfPage(number, *size, tuple(blocks), letters=letters, unreadable=unreadable, unseen=glyphs.unseen)


def is_wide_gap(left: GlyphFragment, right: GlyphFragment) -> bool:
    """Tell whether the gap between two fragments of one row separates cells and not just words."""
    return right.x0 - left.x1 > _WIDE_GAP * max(left.size, right.size)


def _fragment(line: GlyphLine) -> GlyphFragment | None:
    runs = line.runs
    parts = [_clean(run.text) for run in runs]
    raised = list(map(_raise, runs, parts, range(len(runs))))
    if len(runs) > 1 and _FIRST_MARK.fullmatch(parts[0]) and _LARGER * runs[0].size < runs[1].size:
        raised[0] = f"{parts[0]} "
    text = _readable("".join(raised))
    if not text:
        return None
    weights: dict[tuple[float, bool, bool], int] = {}
    for run, part in zip(runs, parts, strict=True):
        style = (round(_bounded(run.size, 1.0, 2000.0) * 2) / 2, _is_bold(run), _is_mono(run))
        weights[style] = weights.get(style, 0) + len(part.strip())
    size, _, mono = max(weights, key=weights.__getitem__)
    longest = max(range(len(parts)), key=lambda position: len(parts[position]))
    x0, y0, x1, y1, baseline, turned = _upright(line.box, line.direction, runs[longest].origin)
    bold = sum(n for (_, bold, _), n in weights.items() if bold) > 0.8 * sum(weights.values())
    return GlyphFragment(x0, y0, x1, y1, baseline, size, bold, mono, text, turned)


def _is_bold(run: GlyphRun) -> bool:
    return run.bold or _names(_BOLD_NAME, run.font)


def _is_mono(run: GlyphRun) -> bool:
    return run.mono or _names(_MONO_NAME, run.font)


@lru_cache(maxsize=8192)
def _names(style: re.Pattern[str], font: str) -> bool:
    return style.search(font) is not None


def _raise(run: GlyphRun, part: str, position: int) -> str:
    """Return the text of a run with superscripts marked: an exponent as "10^5", not "105".

    The mark of a footnote is also separated from the word before it.
    """
    if not run.raised or not part.strip().isalnum():
        return part
    return f"^{part}" if position else f"{part} "


def _clean(text: str) -> str:
    return text if text.isascii() and text.isprintable() else text.translate(_CLEAN)


def _readable(text: str) -> str:
    if not text.isascii():
        text = _ACCENTED.sub(lambda match: match[2] + _COMBINING[match[1]], _BULLET_GLYPH.sub("• ", text))
        text = unicodedata.normalize("NFC", text)
        if text.count(_UNKNOWN) * 2 > len(text.replace(" ", "")):
            return ""
    return " ".join(_LEADERS.sub(" ... ", _LOGO.sub("LAT", text)).split())


def _bounded(value: float, least: float, most: float) -> float:
    """Return a number between ``least`` and ``most``. Numbers in a damaged file may be 0, infinite or NaN."""
    return min(max(value, least), most) if math.isfinite(value) else least


def _upright(
    box: Sequence[float], direction: Sequence[float], origin: Sequence[float]
) -> tuple[float, float, float, float, float, bool]:
    """Rotate a line's box by quarter turns until its text runs from left to right.

    Return the four sides of the box, the baseline, and whether the text was turned.
    """
    x0, y0, x1, y1, left, base = (_bounded(value, -_FAR, _FAR) for value in (*box, *origin))
    across, down = (_bounded(part, -1.0, 1.0) for part in direction[:2])
    quarter = round(math.atan2(down, across) / (math.pi / 2)) % 4
    if quarter == 0:
        return x0, y0, x1, y1, base, abs(direction[1]) > 0.1
    if quarter == 1:
        return y0, -x1, y1, -x0, -left, True
    if quarter == 2:
        return -x1, -y1, -x0, -y0, -base, True
    return -y1, x0, -y0, x1, left, True


def _join_neighbours(fragments: list[GlyphFragment]) -> list[GlyphFragment]:
    """Join fragments of one line that were separated at the wide spaces of justified text."""
    joined: list[GlyphFragment] = []
    for fragment in fragments:
        if joined and _continues(joined[-1], fragment):
            last = joined[-1]
            joined[-1] = replace(
                max(last, fragment, key=lambda f: len(f.text)),
                x0=last.x0,
                x1=fragment.x1,
                y0=min(last.y0, fragment.y0),
                y1=max(last.y1, fragment.y1),
                bold=last.bold and fragment.bold,
                text=f"{last.text} {fragment.text}",
            )
        else:
            joined.append(fragment)
    return joined


def _continues(left: GlyphFragment, right: GlyphFragment) -> bool:
    level = abs(left.baseline - right.baseline) < 1 and left.size == right.size
    if left.text.isdecimal() or right.text.isdecimal():  # it may be the number of a line
        return False
    return level and right.x0 > left.x1 - 1 and not is_wide_gap(left, right)
