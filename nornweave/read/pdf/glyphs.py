"""Clean the glyph runs of a PDF page into upright text fragments.

Coordinates are points, x to the right, y downwards, as PyMuPDF 1.28 gives them.
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
from typing import Any

_BOLD = 16  # span flags of MuPDF: 1 superscript, 2 italic, 4 serif, 8 monospaced, 16 bold
_MONO = 8
_ITALIC = 2
_SUPERSCRIPT = 1
_BOLD_NAME = re.compile(r"bold|black|heavy|demi|semibold|CMBX|SFBX", re.IGNORECASE)
_MONO_NAME = re.compile(r"mono|courier|CMTT|SFTT|typewriter|consol|lettergothic|menlo|monaco|nimbusmon", re.IGNORECASE)

_LIGATURES = {0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl", 0xFB05: "st", 0xFB06: "st"}
_SPACES = dict.fromkeys([0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0xA0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000], " ")
_INVISIBLE = {code: None for code in [*range(0x20), *range(0x7F, 0xA0), 0x200B, 0x2060, 0xFEFF] if code not in _SPACES}
_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
_CLEAN: Mapping[int, str | None] = {**_INVISIBLE, **_SPACES, **_LIGATURES, **_SURROGATES}

# Old TeX fonts print an accent and a letter: "Ros´e".
_COMBINING = {
    "´": "\u0301",
    "¨": "\u0308",
    "ˆ": "\u0302",
    "˜": "\u0303",
    "ˇ": "\u030c",
    "˚": "\u030a",
    "˘": "\u0306",
    "˝": "\u030b",
}
_ACCENTED = re.compile(r"(?P<accent>[´¨ˆ˜ˇ˚˘˝]) ?(?P<letter>[A-Za-zıȷ])|(?P<cedilla>[cCsStT])¸")

_FAR = 100_000.0  # points; further out nobody has seen a page
_UNKNOWN = "\ufffd"
_BULLET_GLYPH = re.compile(
    r"^\s*[\ufffd\ue000-\uf8ff]{1,2}(?=\s|\w|$)"
)  # bullets of symbol fonts have no Unicode value
_LEADERS = re.compile(r"(?:\s?[.·]){5,}")  # dots between a table of contents' entry and its page

_WIDE_GAP = 1.5  # em between fragments of one row, from which they are cells rather than words


@dataclass(frozen=True, slots=True)
class GlyphFragment:
    """A run of glyphs on one baseline, without a wide gap inside.

    ``name`` is the text without superscripts (footnote marks of authors); ``size`` and the styles are those of most of
    its letters; ``turned`` tells text that was not horizontal on the page.
    """

    x0: float
    y0: float
    x1: float
    y1: float
    baseline: float
    size: float
    bold: bool
    begins_bold: bool
    italic: bool
    mono: bool
    text: str
    name: str
    turned: bool = False


@dataclass(frozen=True, slots=True)
class GlyphBlock:
    """Neighbouring fragments that MuPDF holds together."""

    fragments: tuple[GlyphFragment, ...]
    x0: float
    y0: float
    x1: float
    y1: float

    @classmethod
    def of(cls, fragments: Sequence[GlyphFragment]) -> GlyphBlock:
        """Surround ``fragments`` (at least one)."""
        return cls(
            tuple(fragments),
            min(f.x0 for f in fragments),
            min(f.y0 for f in fragments),
            max(f.x1 for f in fragments),
            max(f.y1 for f in fragments),
        )

    @property
    def middle(self) -> float:
        """Half its height down."""
        return (self.y0 + self.y1) / 2


@dataclass(frozen=True, slots=True)
class PdfPage:
    """One page as MuPDF reads it, before columns are found."""

    number: int
    width: float
    height: float
    blocks: tuple[GlyphBlock, ...]
    images: int = 0
    letters: int = 0
    unreadable: int = 0


def read_page(number: int, width: float, height: float, content: Mapping[str, Any]) -> PdfPage:
    """Turn PyMuPDF's ``dict`` output into blocks of cleaned fragments.

    Letters whose font gives them no Unicode value are counted as ``unreadable`` and left out.
    """
    blocks: list[GlyphBlock] = []
    images = letters = unreadable = 0
    printed: set[tuple[int, int, str]] = set()
    for block in content["blocks"]:
        images += block["type"] == 1
        fragments = []
        for line in block.get("lines", ()):
            # Printing twice, a fraction of a point apart, is how some programs make letters bold.
            x, y = (_bounded(value, -_FAR, _FAR) for value in line["bbox"][:2])
            place = (round(x / 2), round(y / 2), "".join(s["text"] for s in line["spans"]))
            if place in printed:
                continue
            printed.add(place)
            raw = place[2]
            letters += len(raw) - raw.count(" ")
            unreadable += raw.count(_UNKNOWN)
            fragment = _fragment(line)
            if fragment is not None:
                fragments.append(fragment)
        for _, same in groupby(fragments, attrgetter("turned")):
            blocks.append(GlyphBlock.of(_join_neighbours(list(same))))
    size = (_bounded(width, 1.0, _FAR), _bounded(height, 1.0, _FAR))
    return PdfPage(number, *size, tuple(blocks), images, letters, unreadable)


def is_wide_gap(left: GlyphFragment, right: GlyphFragment) -> bool:
    """Tell whether two fragments of one row are cells rather than words."""
    return right.x0 - left.x1 > _WIDE_GAP * max(left.size, right.size)


def _fragment(line: Mapping[str, Any]) -> GlyphFragment | None:
    spans = line["spans"]
    parts = [_clean(span["text"]) for span in spans]
    raised = any(span["flags"] & _SUPERSCRIPT for span in spans)
    text = _readable("".join(map(_raise, spans, parts, range(len(spans))) if raised else parts))
    if not text:
        return None
    weights: dict[tuple[float, bool, bool, bool], int] = {}
    for span, part in zip(spans, parts, strict=True):
        style = (round(_bounded(span["size"], 1.0, 2000.0) * 2) / 2, *_style(span["flags"], span["font"]))
        weights[style] = weights.get(style, 0) + len(part.strip())
    size, _, italic, mono = max(weights, key=weights.__getitem__)
    letters = sum(weights.values())
    longest = max(range(len(parts)), key=lambda position: len(parts[position]))
    x0, y0, x1, y1, baseline, turned = _upright(line["bbox"], line["dir"], spans[longest]["origin"])
    first = next(span for span, part in zip(spans, parts, strict=True) if part.strip())
    return GlyphFragment(
        x0=x0,
        y0=y0,
        x1=x1,
        y1=y1,
        baseline=baseline,
        size=size,
        bold=sum(n for (_, bold, _, _), n in weights.items() if bold) > 0.8 * letters,
        begins_bold=_style(first["flags"], first["font"])[0],
        italic=italic,
        mono=mono,
        text=text,
        name=_without_raised(spans, parts, size) if raised or len(weights) > 1 else text,
        turned=turned,
    )


@lru_cache(maxsize=4096)
def _style(flags: int, font: str) -> tuple[bool, bool, bool]:
    """Return whether a font is bold, italic, monospaced, by MuPDF's flags or by its name."""
    return (
        bool(flags & _BOLD or _BOLD_NAME.search(font)),
        bool(flags & _ITALIC),
        bool(flags & _MONO or _MONO_NAME.search(font)),
    )


def _without_raised(spans: Sequence[Mapping[str, Any]], parts: Sequence[str], size: float) -> str:
    kept = [part for span, part in zip(spans, parts, strict=True) if not _is_raised(span, size)]
    return " ".join("".join(kept).split())


def _raise(span: Mapping[str, Any], part: str, position: int) -> str:
    """Keep "10^5" apart from 105, and a footnote's mark from the words beside it."""
    if not span["flags"] & _SUPERSCRIPT or not part.strip().isalnum():
        return part
    return f"^{part}" if position else f"{part} "


def _is_raised(span: Mapping[str, Any], size: float) -> bool:
    return bool(span["flags"] & _SUPERSCRIPT) or not span["size"] >= 0.8 * size


def _clean(text: str) -> str:
    return text if text.isascii() and text.isprintable() else text.translate(_CLEAN)


def _composed(match: re.Match[str]) -> str:
    if match["cedilla"]:
        return unicodedata.normalize("NFC", f"{match['cedilla']}\u0327")
    letter = {"ı": "i", "ȷ": "j"}.get(match["letter"], match["letter"])
    return unicodedata.normalize("NFC", letter + _COMBINING[match["accent"]])


def _readable(text: str) -> str:
    if not text.isascii():
        text = _ACCENTED.sub(_composed, _BULLET_GLYPH.sub("• ", text))
        if text.count(_UNKNOWN) * 2 > len(text.replace(" ", "")):
            return ""
    if ". ." in text or "...." in text or "· ·" in text:
        text = _LEADERS.sub(" ... ", text)
    return " ".join(text.split())


def _bounded(value: float, least: float, most: float) -> float:
    """Bring what a damaged file says (0, infinity, NaN) into a range that can be reckoned with."""
    return min(max(value, least), most) if math.isfinite(value) else least


def _upright(
    box: Sequence[float], direction: Sequence[float], origin: Sequence[float]
) -> tuple[float, float, float, float, float, bool]:
    """Turn a line's box by quarter turns until its text runs from left to right."""
    x0, y0, x1, y1, left, base = (_bounded(value, -_FAR, _FAR) for value in (*box, *origin))
    quarter = (
        round(math.atan2(*(_bounded(part, -1.0, 1.0) for part in (direction[1], direction[0]))) / (math.pi / 2)) % 4
    )
    if quarter == 0:
        return x0, y0, x1, y1, base, abs(direction[1]) > 0.1
    if quarter == 1:
        return y0, -x1, y1, -x0, -left, True
    if quarter == 2:
        return -x1, -y1, -x0, -y0, -base, True
    return -y1, x0, -y0, x1, left, True


def _join_neighbours(fragments: list[GlyphFragment]) -> list[GlyphFragment]:
    """Undo MuPDF's cuts at the wide spaces of justified lines."""
    joined: list[GlyphFragment] = []
    for fragment in fragments:
        if joined and _continues(joined[-1], fragment):
            last = joined[-1]
            main = max(last, fragment, key=lambda f: len(f.text))
            joined[-1] = replace(
                main,
                x0=last.x0,
                x1=fragment.x1,
                y0=min(last.y0, fragment.y0),
                y1=max(last.y1, fragment.y1),
                bold=last.bold and fragment.bold,
                begins_bold=last.begins_bold,
                text=f"{last.text} {fragment.text}",
                name=f"{last.name}; {fragment.name}",  # two authors side by side rather than one name
            )
        else:
            joined.append(fragment)
    return joined


def _continues(left: GlyphFragment, right: GlyphFragment) -> bool:
    level = abs(left.baseline - right.baseline) < 1 and left.size == right.size
    return level and right.x0 > left.x1 - 1 and not is_wide_gap(left, right)
