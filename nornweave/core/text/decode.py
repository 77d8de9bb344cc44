"""Decode bytes into text, or say why they are not text."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from types import MappingProxyType
from typing import TypeVar, cast

from nornweave.core.errors import DocumentError

T = TypeVar("T")

MAX_BYTES = 10 * 1024 * 1024
ENCODING = "encoding"
"""Metadata: in which encoding a file was read that says nothing of it; see ``likeliest``."""

# PEP 263 and what editors read in a comment of the first two lines; XML, CSS; HTML.
_DECLARED = re.compile(
    rb"\A(?:[^\n]*\n)?[ \t]*(?:#|//|/\*|--|;|%|\"|\.\.)[^\n]{0,60}?\b(?:file)?(?:en)?coding[:=][ \t]*([\w.-]+)"
    rb"|\A\s*<\?xml[^>]*\bencoding=[\"']([\w.-]+)|\A@charset \"([\w.-]+)",
    re.IGNORECASE,
)
_DECLARED_IN_PAGE = re.compile(rb"<meta[^>]+charset=[\"']?([\w.-]+)", re.IGNORECASE)
_DECLARED_WITHIN = 2_048
_BEYOND = bytes(range(128, 256))
_LETTERS_TO_GUESS = 64
_ODD, _VERY_ODD = 0.05, 0.3
# Signs in a word, a capital after a small letter, three accents in a row, or misread Turkish and Hungarian letters.
_NO_WORD = re.compile(
    "[^\\W\\d_][\xa1-\xb4\xb6\xb8-\xbf\xd7\xf7]+[^\\W\\d_]|[a-z\xdf-\xff][\xc0-\xde]|[\xc0-\xff]{3}"
    "|[\xd0\xdd\xde\xf0\xfd\xfe\ufffd]|\xf5(?!e)"
)
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
    """Refuse a document of more than ``limit`` bytes.

    Raises:
        DocumentError: the document is larger. The message has its size and the limit.
    """
    if size > limit:
        raise DocumentError(f"too large: {size:,} bytes, allowed are {limit:,}; split the file or exclude it")


_HALF = re.compile("[\ud800-\udfff]")
_DECOMPOSED = re.compile(r"\w[\u0300-\u036f]{1,8}")


def decode(raw: bytes, likely: str = "") -> str:
    """Decode a text file by its byte order mark, its declared encoding, as UTF-8, or by a guess.

    Line ends are unchanged. A byte order mark is removed, and a letter and its accent become one character.

    Args:
        likely: the result of ``likeliest`` for all files of the source. If it is empty, the guess uses only this file.

    Raises:
        DocumentError: the file is too large, empty, or binary.
    """
    check_size(len(raw))
    text = _decode(raw, likely)
    if not text or text.isspace():
        raise DocumentError(f"empty: {len(raw)} bytes and none but blank space; fill the file or exclude it")
    return composed(text)


def composed(text: str) -> str:
    """Return a text whose accents are joined with their letters (NFC) where Unicode has such a character."""
    return text if text.isascii() else _DECOMPOSED.sub(lambda found: unicodedata.normalize("NFC", found[0]), text)


def whole_characters(value: T) -> T:
    """Replace lone surrogates by U+FFFD in a text, a record or a collection, because no store accepts them.

    Escapes in JSON and mail can produce lone surrogates.
    """
    return cast(T, _with_whole_characters(value))


def _with_whole_characters(value: object) -> object:
    if isinstance(value, str):
        return value if value.isascii() else _HALF.sub("\ufffd", value)
    if isinstance(value, Mapping):
        return MappingProxyType({whole_characters(key): whole_characters(each) for key, each in value.items()})
    if type(value) is list:
        return list(map(_with_whole_characters, value))
    if type(value) is tuple:
        return tuple(map(_with_whole_characters, value))
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value, **{each.name: _with_whole_characters(getattr(value, each.name)) for each in fields(value)}
        )
    return value


def _decode(raw: bytes, likely: str) -> str:
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            return _decode_marked(raw[len(mark) :], encoding)
    _refuse_binary(raw)
    known = _decode_known(raw)
    if known is not None:
        return known
    for encoding in (likely or likeliest([raw]), "cp1252"):
        try:
            return raw.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            continue
    return raw.decode("latin-1")


def _decode_known(raw: bytes) -> str | None:
    """Decode by the declared encoding, or as UTF-8 with at most a few broken bytes; ``None`` if neither is possible."""
    try:
        text: str | None = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = None
    head = raw[:_DECLARED_WITHIN]
    declared = _DECLARED.search(head) or (_DECLARED_IN_PAGE.search(head) if head.lstrip().startswith(b"<") else None)
    if declared:
        encoding = next(group for group in declared.groups() if group).decode("ascii")
        try:
            found = codecs.lookup(encoding).name
            # Browsers read a declared Latin 1 as Windows-1252. Valid UTF-8 wins over a declared one-byte encoding.
            is_of_one_byte = found.startswith(("iso8859", "cp12", "ascii", "koi8", "mac"))
            if text is None or not is_of_one_byte:
                return raw.decode("cp1252" if found in {"iso8859-1", "ascii"} else found)
        except (LookupError, UnicodeDecodeError):
            pass
    return text or _decode_damaged(raw)


def is_unknown(raw: bytes) -> bool:
    """Tell whether a file is text whose encoding can only be guessed."""
    try:
        _refuse_binary(raw)
    except DocumentError:
        return False
    return not raw.startswith(tuple(mark for mark, _ in _MARKS)) and _decode_known(raw) is None


def likeliest(files: Iterable[bytes]) -> str:
    """Guess the common encoding of some files.

    If there are too few letters, or Windows-1252 turns them into words, the guess is Windows-1252.
    """
    sample = _sample(files)
    odd = _odd_share(sample.decode("cp1252", "replace"))
    if len(sample) - len(sample.translate(None, _BEYOND)) < _LETTERS_TO_GUESS and odd <= _VERY_ODD:
        return "cp1252"
    from charset_normalizer import from_bytes

    found = from_bytes(sample, cp_isolation=_CANDIDATES, preemptive_behaviour=False, enable_fallback=False)
    best = found.best()
    is_among = any(
        "cp1252" in each.could_be_from_charset for each in found
    )  # encodings that give the same text are one match
    return best.encoding if best and not (is_among and odd <= _ODD) else "cp1252"


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
    """Decode UTF-8 with a few broken bytes; ``None`` if there are too many."""
    text = raw.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    sound = len(raw) - len(raw.decode("ascii", "ignore")) - broken
    return text if sound > 8 * broken else None


def _sample(files: Iterable[bytes]) -> bytes:
    """Return the first lines that are not ASCII, as many as are needed to guess the encoding."""
    lines: list[bytes] = []
    size = 0
    for raw in files:
        for line in raw.splitlines(keepends=True):
            if not line.isascii() and size < _SAMPLE:
                lines.append(line)
                size += len(line)
    return b"".join(lines)[: 2 * _SAMPLE]


def _odd_share(text: str) -> float:
    """Return which share of the non-ASCII words does not look like a Western language."""
    beyond = [word for word in text.split() if not word.isascii()]
    return sum(bool(_NO_WORD.search(word)) for word in beyond) / (len(beyond) or 1)
