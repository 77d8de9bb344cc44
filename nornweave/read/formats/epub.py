"""Read .epub: the chapters in the order of the book, each HTML, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from posixpath import dirname, join, normpath
from typing import Any
from urllib.parse import unquote
from zipfile import ZipFile

from nornweave.core.errors import DocumentError
from nornweave.core.text.dates import iso_moment
from nornweave.core.text.inline_markup import one_line
from nornweave.core.types import freeze
from nornweave.read.blocks.styles import MAX_OWN_BYTES, with_own_files
from nornweave.read.formats.archive import open_archive, read_xml
from nornweave.read.formats.html import markdown_of
from nornweave.read.formats.markdown import heading, joined
from nornweave.read.parsed import Parsed

MAX_CHAPTERS = 5_000
_CONTAINER = "{urn:oasis:names:tc:opendocument:xmlns:container}"
_OPF = "{http://www.idpf.org/2007/opf}"
_DC = "{http://purl.org/dc/elements/1.1/}"
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
