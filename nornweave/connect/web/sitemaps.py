"""Read sitemaps: XML, lists of addresses, and indexes of sitemaps; packed with gzip or not.

Source: sitemaps.org/protocol.html (0.9).
"""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import iterparse

from nornweave.core.text.dates import utc

MAX_BYTES = 64 * 1024 * 1024
"""Of one sitemap, unpacked; the protocol allows 50 MiB."""
MAX_ENTRIES = 100_000
"""Of one sitemap; the protocol allows 50,000."""
_GZIP = b"\x1f\x8b"
_LINES = re.compile(rb"[^\r\n]+")


class NoSitemapError(ValueError):
    """The content is no sitemap."""


@dataclass(frozen=True, slots=True)
class ListedPage:
    """An address that a sitemap names.

    Attributes:
        is_sitemap: it is another sitemap, not a page.
        changed_at: as the sitemap says it; empty where it says nothing.
    """

    address: str
    is_sitemap: bool = False
    changed_at: str = ""


def read_sitemap(content: bytes) -> Iterator[ListedPage]:
    """Yield what a sitemap lists, in its order.

    Raises:
        NoSitemapError: it is none, is broken, or unpacks to more than ``MAX_BYTES``.
    """
    content = _unpacked(content)
    beginning = content[:1_000].lstrip(b"\xef\xbb\xbf \t\r\n")
    if beginning.startswith(b"<"):
        return _in_xml(content.lstrip(b"\xef\xbb\xbf \t\r\n"))
    if beginning.lower().startswith((b"http://", b"https://")):
        return _in_lines(content)
    raise NoSitemapError("neither XML nor a list of addresses")


def moment(changed_at: str) -> datetime | None:
    """Read a ``lastmod``: a W3C date, with or without a time."""
    try:
        return utc(datetime.fromisoformat(changed_at.strip()))
    except (ValueError, OverflowError):
        return None


def _unpacked(content: bytes) -> bytes:
    if not content.startswith(_GZIP):
        return content
    unpacker = zlib.decompressobj(wbits=31)
    try:
        unpacked = unpacker.decompress(content, MAX_BYTES)
    except zlib.error as error:
        raise NoSitemapError(f"broken gzip ({error})") from error
    if unpacker.unconsumed_tail:
        raise NoSitemapError(f"it unpacks to more than {MAX_BYTES:,} bytes")
    return unpacked


def _in_lines(content: bytes) -> Iterator[ListedPage]:
    for number, line in enumerate(_LINES.finditer(content)):
        if number >= MAX_ENTRIES:
            return
        address = line[0].decode("utf-8", "replace").strip()
        if address.startswith(("http://", "https://")):
            yield ListedPage(address)


def _in_xml(content: bytes) -> Iterator[ListedPage]:
    number = 0
    path: list[str] = []
    fields: dict[str, str] = {}
    try:
        for event, element in iterparse(io.BytesIO(content), events=("start", "end"), forbid_dtd=False):
            name = _local(element)
            if event == "start":
                path.append(name)
                _check_root(path)
                continue
            path.pop()
            if len(path) == 2 and name in ("loc", "lastmod"):
                fields[name] = (element.text or "").strip()
            elif len(path) == 1:
                if fields.get("loc") and name in ("url", "sitemap"):
                    yield ListedPage(fields["loc"], name == "sitemap", fields.get("lastmod", "")[:40])
                    number += 1
                fields = {}
                element.clear()
            if number >= MAX_ENTRIES:
                return
    except NoSitemapError:
        raise
    except (ParseError, DefusedXmlException, ValueError, LookupError) as error:
        raise NoSitemapError(f"broken XML ({error})"[:200]) from error


def _check_root(path: list[str]) -> None:
    if len(path) == 1 and path[0] not in ("urlset", "sitemapindex"):
        raise NoSitemapError(f"an XML document of <{path[0][:40]}>; expected <urlset> or <sitemapindex>")


def _local(element: Element) -> str:
    return str(element.tag).rpartition("}")[2].lower()
