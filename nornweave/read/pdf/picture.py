"""A page of a PDF as a picture, with the lines of a passage marked; drawn in the sandbox."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from collections.abc import Iterator, Mapping

from nornweave.core.types import JsonValue
from nornweave.read.pdf.port import Box, PageGlyphs, Picture, load_library

WIDTH = 760
HEIGHT = 2_000
"""Pixels, at most."""
FEW_CHARACTERS = 6
"""A line with fewer letters and digits may stand anywhere, and is not marked."""
_MARK = bytes(value * 3 // 5 for value in range(256))
"""What becomes of the blue of a marked pixel: white turns yellow, black stays."""
_NOT_SAID = re.compile(r"[\W_]+")


def page_picture(values: Mapping[str, JsonValue], raw: bytes) -> str | None:
    """Draw a page and mark the lines of a passage.

    Args:
        values: ``page`` is the number of the page, from 1. ``text`` is the text of the passage.

    Returns:
        A PNG image in base64. ``None`` if the passage is not on the page, as after the file was replaced, or if its
        text is turned.
    """
    number, text = int(str(values["page"])) - 1, _said(str(values["text"]))
    with load_library().opened(raw) as file:
        if not 0 <= number < file.page_count:
            return None
        glyphs = file.page(number)
        boxes = tuple(_boxes(glyphs, text))
        if not boxes:
            return None
        scale = min(WIDTH / glyphs.width, HEIGHT / glyphs.height)
        picture = file.picture(number, scale)
    if abs(picture.width - glyphs.width * scale) > 2:  # a page that is turned has its lines elsewhere
        return None
    for box in boxes:
        _mark(picture, box, scale)
    return base64.b64encode(_png(picture)).decode("ascii")


def _boxes(glyphs: PageGlyphs, text: str) -> Iterator[Box]:
    for line in (line for block in glyphs.blocks for line in block):
        said = _said("".join(run.text for run in line.runs))
        if len(said) >= FEW_CHARACTERS and said in text:
            yield line.box


def _said(text: str) -> str:
    """Return only the letters and digits of a text, because hyphens and blanks at line ends may differ."""
    return _NOT_SAID.sub("", text).casefold()


def _mark(picture: Picture, box: Box, scale: float) -> None:
    left, right = (min(max(int(x * scale), 0), picture.width) for x in (box[0], box[2]))
    top, bottom = (min(max(int(y * scale), 0), picture.height) for y in (box[1], box[3]))
    for row in range(top, bottom):
        start = row * picture.width * 3
        blue = slice(start + left * 3 + 2, start + right * 3, 3)
        picture.pixels[blue] = picture.pixels[blue].translate(_MARK)


def _png(picture: Picture) -> bytes:
    """Return a picture as a PNG with eight bits per colour and unfiltered rows (ISO/IEC 15948)."""
    size = picture.width * 3
    rows = b"".join(b"\0" + picture.pixels[at : at + size] for at in range(0, len(picture.pixels), size))
    header = struct.pack("!IIBBBBB", picture.width, picture.height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 6)), (b"IEND", b""))
    chunks = (
        struct.pack("!I", len(data)) + kind + data + struct.pack("!I", zlib.crc32(kind + data)) for kind, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
