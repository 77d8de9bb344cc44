"""Decode bytes into text, or say why they are not text."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

from nornweave.core.errors import DocumentError

MAX_BYTES = 10 * 1024 * 1024

# Guessing an encoding costs time per byte and gains nothing after some thousand letters.
_SAMPLE = 65_536
# The longer marks first: UTF-32 little endian starts like UTF-16 little endian.
_MARKS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Blank space, backspace (man pages) and escape (terminal colours) occur in texts.
_CONTROLS = bytes(set(range(32)) - {8, 9, 10, 11, 12, 13, 27}) + b"\x7f"
_CONTROL_SHARE = 0.02
# What charset-normalizer may choose from: the single- and multi-byte encodings that files still come in.
_CANDIDATES = [
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "koi8_r", "iso8859_2"),
    *("iso8859_15", "mac_roman", "cp932", "euc_jp", "gb18030", "big5", "euc_kr"),
]


def check_size(size: int, limit: int = MAX_BYTES) -> None:
    """Refuse documents of more than ``limit`` bytes.

    Raises:
        DocumentError: with the size found and the size allowed.
    """
    if size > limit:
        raise DocumentError(f"too large: {size:,} bytes, allowed are {limit:,}; split the file or exclude it")


def decode(raw: bytes) -> str:
    """Decode a text file: UTF-8, UTF-16 and UTF-32 by byte order mark, else the most likely encoding.

    Line ends stay as they are, so that offsets are those of the file; a byte order mark is left out.

    Raises:
        DocumentError: too large, empty, or binary content under a text's name.
    """
    check_size(len(raw))
    text = _decode(raw)
    if not text or text.isspace():
        raise DocumentError(f"empty: {len(raw)} bytes and none but blank space; fill the file or exclude it")
    return text


def _decode(raw: bytes) -> str:
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            return _decode_marked(raw[len(mark) :], encoding)
    _refuse_binary(raw)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return _decode_damaged(raw) or _decode_guessed(raw)


def _decode_marked(raw: bytes, encoding: str) -> str:
    text = raw.decode(encoding, "replace")
    broken = text.count("\ufffd") + text.count("\x00")
    if broken > _CONTROL_SHARE * len(text):
        raise DocumentError(_binary(f"{broken:,} of {len(text):,} characters are no {encoding}"))
    return text


def _refuse_binary(raw: bytes) -> None:
    if raw.startswith(b"%PDF-"):  # which may hold nothing but text
        raise DocumentError(_binary("it starts like a PDF"))
    if nul := raw.count(b"\x00"):
        raise DocumentError(_binary(f"{nul:,} NUL bytes, the first at {raw.index(0):,}"))
    controls = len(raw) - len(raw.translate(None, _CONTROLS))
    if controls > _CONTROL_SHARE * len(raw):
        raise DocumentError(_binary(f"{controls:,} of {len(raw):,} bytes are control characters"))


def _binary(found: str) -> str:
    return f"binary content in a file named as text; found: {found}; rename the file or exclude it"


def _decode_damaged(raw: bytes) -> str | None:
    """Decode UTF-8 with a few broken bytes in it, which is likelier than any other encoding that happens to fit."""
    text = raw.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    sound = len(raw) - len(raw.decode("ascii", "ignore")) - broken
    return text if sound > 8 * broken else None


def _decode_guessed(raw: bytes) -> str:
    for encoding in _guesses(raw):
        try:
            return raw.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            continue
    return raw.decode("latin-1")


def _guesses(raw: bytes) -> Iterator[str]:
    from charset_normalizer import from_bytes

    # Around the first byte that is not ASCII, in whole lines: a sample cut inside a character misleads the guess.
    first = re.search(rb"[\x80-\xff]", raw)
    at = first.start() if first else 0
    start = max(raw.rfind(b"\n", 0, at) + 1, at - 1_000)
    sample = raw[start : start + _SAMPLE]
    sample = sample[: sample.rfind(b"\n") + 1] or sample
    best = from_bytes(sample, cp_isolation=_CANDIDATES, preemptive_behaviour=False, enable_fallback=False).best()
    if best is not None:
        yield best.encoding
    yield "cp1252"
