"""Open the ZIP archives that office documents and books are, within bounds."""

from __future__ import annotations

import io
from datetime import datetime
from typing import Any
from zipfile import BadZipFile, ZipFile

from defusedxml import ElementTree
from defusedxml.common import DefusedXmlException

from nornweave.core.errors import DocumentError
from nornweave.core.text.dates import iso_moment
from nornweave.core.text.inline_markup import one_line
from nornweave.core.types import JsonValue
from nornweave.read.blocks.unseen import colour

MAX_MEMBERS = 10_000
MAX_UNPACKED_BYTES = 400_000_000
"""Of all members together, pictures and films included."""
MAX_MARKUP_BYTES = 100_000_000
"""Of all members together that are XML or HTML."""

_OLE = b"\xd0\xcf\x11\xe0"
_MARKUP = (".xml", ".rels", ".html", ".xhtml", ".htm", ".opf", ".ncx", ".svg", ".vml")
_ENCRYPTED = 0x1
# A document type declares entities; Office Open XML forbids it (ECMA-376 part 2, 8.1.4).
_DOCTYPES = (b"<!DOCTYPE", "<!DOCTYPE".encode("utf-16-le"), "<!DOCTYPE".encode("utf-16-be"))
_CORE = "docProps/core.xml"
_DC = "{http://purl.org/dc/elements/1.1/}"
_TERMS = "{http://purl.org/dc/terms/}"
_CP = "{http://schemas.openxmlformats.org/package/2006/metadata/core-properties}"


def open_archive(raw: bytes) -> ZipFile:
    """Open an archive after checking its table of contents.

    ``zipfile`` never reads more of a member than the table says. The sizes checked here are therefore reliable.

    Raises:
        DocumentError: the bytes are not an archive, the archive is encrypted, or it is larger than
            ``MAX_UNPACKED_BYTES`` when unpacked.
    """
    if raw.startswith(_OLE):
        raise DocumentError(
            "encrypted or of the formats before 2007 (.doc, .xls, .ppt): save it without a password as .docx, .xlsx or "
            ".pptx"
        )
    try:
        archive = ZipFile(io.BytesIO(raw))
    except (BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise DocumentError(f"broken: {error}; expected a ZIP archive, save or download the file again") from error
    _check(archive)
    return archive


def _check(archive: ZipFile) -> None:
    members = archive.infolist()
    if len(members) > MAX_MEMBERS:
        raise DocumentError(f"too large: {len(members):,} parts, at most {MAX_MEMBERS:,} are read; split the file")
    if any(member.flag_bits & _ENCRYPTED for member in members):
        raise DocumentError("encrypted: save a copy without a password and ingest that")
    _check_size(sum(member.file_size for member in members), MAX_UNPACKED_BYTES)
    markup = (member.file_size for member in members if member.filename.lower().endswith(_MARKUP))
    _check_size(sum(markup), MAX_MARKUP_BYTES)


def _check_size(size: int, allowed: int) -> None:
    if size > allowed:
        raise DocumentError(f"too large: {size:,} bytes unpacked, allowed are {allowed:,}; split the file")


def open_office_archive(raw: bytes) -> ZipFile:
    """Open a .docx, .pptx or .xlsx file. A file with a document type declaration is refused.

    Raises:
        DocumentError: as ``open_archive`` raises it, or because a part of the file declares a document type.
    """
    archive = open_archive(raw)
    for member in archive.infolist():
        if member.filename.lower().endswith((".xml", ".rels")):
            part = archive.read(member)
            if any(doctype in part for doctype in _DOCTYPES):
                raise DocumentError(f"{member.filename[:100]!r} declares a document type, which office files may not")
    return archive


def read_xml(archive: ZipFile, name: str) -> Any | None:
    """Return the root element of an XML file in an archive; ``None`` if the archive has no such file.

    Raises:
        DocumentError: the member is not XML, or it declares entities.
    """
    try:
        return ElementTree.fromstring(archive.read(name))
    except KeyError:
        return None
    except (ElementTree.ParseError, DefusedXmlException, ValueError) as error:
        raise DocumentError(f"broken: {name[:100]!r} is not well-formed XML ({error}); save the file again") from error


def properties(archive: ZipFile) -> tuple[str | None, datetime | None, dict[str, JsonValue]]:
    """Return the title, the time of the last change, and authors and tags of an office file; ``None`` if unknown."""
    core = read_xml(archive, _CORE)
    if core is None:
        return None, None, {}
    author = one_line(core.findtext(f"{_DC}creator") or "")
    tags = tuple(tag for tag in map(one_line, (core.findtext(f"{_CP}keywords") or "").split(",")) if tag)
    stated = core.findtext(f"{_TERMS}modified") or core.findtext(f"{_TERMS}created") or ""
    authors = tuple(filter(None, map(one_line, author.split(";"))))
    return (
        one_line(core.findtext(f"{_DC}title") or "") or None,
        iso_moment(stated),
        {"authors": authors or None, "tags": tags or None},
    )


def theme_colours(theme: bytes | None) -> dict[str, tuple[int, int, int] | None]:
    """Return the colours of an office file's theme by their names (``lt1``, ``dk1``); empty without a theme.

    A colour is ``None`` if it is in no form that is known.
    """
    try:
        root = ElementTree.fromstring(theme or b"<none/>")
    except (ElementTree.ParseError, DefusedXmlException, ValueError):
        return {}
    scheme = root.find(".//{*}clrScheme")
    stated = ((each.tag.rpartition("}")[2], next(iter(each), None)) for each in (scheme if scheme is not None else ()))
    return {
        name: colour(f"#{told.get('lastClr') or told.get('val') or ''}") for name, told in stated if told is not None
    }
