"""Open the ZIP archives that office documents and books are, within bounds; read .epub, chapter by chapter."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from datetime import datetime
from posixpath import dirname, join, normpath
from typing import Any
from urllib.parse import unquote
from zipfile import BadZipFile, ZipFile

from defusedxml import ElementTree
from defusedxml.common import DefusedXmlException

from nornweave.core.errors import DocumentError
from nornweave.core.text.dates import iso_moment
from nornweave.core.text.inline_markup import one_line
from nornweave.core.types import JsonValue, freeze
from nornweave.read.blocks.styles import MAX_OWN_BYTES, with_own_files
from nornweave.read.blocks.unseen import colour
from nornweave.read.formats.html import markdown_of
from nornweave.read.formats.markdown import heading, joined
from nornweave.read.parsed import Parsed

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


MAX_CHAPTERS = 5_000
_CONTAINER = "{urn:oasis:names:tc:opendocument:xmlns:container}"
_OPF = "{http://www.idpf.org/2007/opf}"
_NCX = "{http://www.daisy.org/z3986/2005/ncx/}"
_HTML = frozenset({"application/xhtml+xml", "text/html", "application/x-dtbook+xml"})


def read_epub(raw: bytes) -> Parsed:
    """Turn a book into Markdown. A chapter without a heading is named by the table of contents.

    Raises:
        DocumentError: the book has no package, or its chapters are protected.
    """
    with open_archive(raw) as archive:
        place = _package_path(archive)
        package = read_xml(archive, place)
        if package is None:
            raise DocumentError(f"broken: the book's package {place[:100]!r} is missing; download it again")
        text = joined(_chapters(archive, package, dirname(place)))
    authors = tuple(filter(None, (one_line(creator.text or "") for creator in package.iter(f"{_DC}creator"))))
    changed = package.find(f".//{_OPF}meta[@property='dcterms:modified']")
    dates = [changed.text if changed is not None else None, *(date.text for date in package.iter(f"{_DC}date"))]
    return Parsed(
        text=text,
        title=one_line(package.findtext(f".//{_DC}title") or "") or None,
        updated_at=next((at for date in dates if (at := iso_moment(date))), None),
        metadata=freeze({"authors": authors or None}),
    )


def _package_path(archive: ZipFile) -> str:
    container = read_xml(archive, "META-INF/container.xml")
    found = container.find(f".//{_CONTAINER}rootfile") if container is not None else None
    if found is None or not found.get("full-path"):
        raise DocumentError("not a book: META-INF/container.xml does not name its package; download it again")
    return str(found.get("full-path"))


def _chapters(archive: ZipFile, package: Any, folder: str) -> Iterator[str]:
    """Yield the chapters in reading order. Chapters that are not in the archive are left out."""
    items = {item.get("id"): item for item in package.iter(f"{_OPF}item")}
    names = _names(archive, items, folder)
    present = frozenset(archive.namelist())

    def beside(path: str) -> bytes | None:
        return archive.read(path) if path in present and archive.getinfo(path).file_size <= MAX_OWN_BYTES else None

    chapters = [items[ref.get("idref")] for ref in package.iter(f"{_OPF}itemref") if ref.get("idref") in items]
    if len(chapters) > MAX_CHAPTERS:
        raise DocumentError(f"too long: {len(chapters):,} chapters, at most {MAX_CHAPTERS:,} are read; split the file")
    for item in chapters:
        path = _path(folder, str(item.get("href") or ""))
        if item.get("media-type") not in _HTML or path not in present or "nav" in str(item.get("properties") or ""):
            continue
        text = markdown_of(with_own_files(f"{path}.html", archive.read(path), beside))
        has_heading = any(line.startswith("#") for line in text.splitlines())
        yield text if has_heading or not text else joined((heading(1, names.get(path, "")), text))


def _names(archive: ZipFile, items: Mapping[str | None, Any], folder: str) -> dict[str, str]:
    """Return the names of chapters in the table of contents (NCX), by the path of the chapter."""
    ncx = next((item for item in items.values() if item.get("media-type") == "application/x-dtbncx+xml"), None)
    place = _path(folder, str(ncx.get("href") or "")) if ncx is not None else ""
    contents = read_xml(archive, place) if place else None
    names: dict[str, str] = {}
    for point in contents.iter(f"{_NCX}navPoint") if contents is not None else ():
        target = point.find(f"{_NCX}content")
        label = one_line(point.findtext(f"{_NCX}navLabel/{_NCX}text") or "")
        if target is not None and label:
            names.setdefault(_path(dirname(place), str(target.get("src") or "").partition("#")[0]), label)
    return names


def _path(folder: str, reference: str) -> str:
    return normpath(join(folder, unquote(reference)))
