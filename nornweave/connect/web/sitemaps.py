"""The sitemaps of a site: XML, indexes of sitemaps, compressed or not.

They are those of robots.txt, those at the usual places, and those that they name.

Source: sitemaps.org/protocol.html (0.9).
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.etree.ElementTree import ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import iterparse

from nornweave.connect.mirror.answers import AnswerError, ApiAnswer, OtherHostError
from nornweave.connect.mirror.api_client import ApiClient
from nornweave.connect.web.addresses import AddressScope, Robots, normalized
from nornweave.core.errors import SourceUnavailableError

MAX_BYTES = 64 * 1024 * 1024
"""Of one sitemap, unpacked; the protocol allows 50 MiB."""
MAX_ENTRIES = 100_000
"""Of one sitemap; the protocol allows 50,000."""
_GZIP = b"\x1f\x8b"


class NoSitemapError(ValueError):
    """The content is not a sitemap."""


@dataclass(frozen=True, slots=True)
class ListedPage:
    """An entry of a sitemap.

    Attributes:
        is_sitemap: whether the entry is another sitemap and not a page.
        changed_at: the date that the sitemap states; empty if there is none.
    """

    address: str
    is_sitemap: bool = False
    changed_at: str = ""


def read_sitemap(content: bytes) -> Iterator[ListedPage]:
    """Yield the entries of a sitemap in order.

    Raises:
        NoSitemapError: the content is not a sitemap, is broken, or is larger than ``MAX_BYTES`` when unpacked.
    """
    return _in_xml(_decompress(content).lstrip(b"\xef\xbb\xbf \t\r\n"))


def _decompress(content: bytes) -> bytes:
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


def _in_xml(content: bytes) -> Iterator[ListedPage]:
    number = 0
    path: list[str] = []
    fields: dict[str, str] = {}
    try:
        for event, element in iterparse(io.BytesIO(content), events=("start", "end"), forbid_dtd=False):
            name = str(element.tag).rpartition("}")[2].lower()
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


BATCH = 1_000
MAX_SITEMAPS = 1_000
_GUESSES = ("sitemap.xml", "/sitemap.xml")


@dataclass(slots=True)
class CrawlProgress:
    """The progress of a pass. It is stored as the position of each page of records.

    Attributes:
        stage: ``sitemaps`` first, then ``pages``.
        by_links: whether pages are found by following links.
        pending: sitemaps that are not read yet.
        roots: the sitemaps with which the reading began.
        read: the sitemaps that have been read.
        next: the number of the next address to request in the queue.
        queued: the number of addresses in the queue, including those that were requested.
        stored: the number of pages that became documents.
        missed: the number of addresses that ``max_pages`` left out.
        is_listed: whether the pass is for changes and the sitemaps name every page.
    """

    stage: str = "sitemaps"
    by_links: bool = False
    pending: list[str] | None = None
    roots: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    next: int = 0
    queued: int = 0
    stored: int = 0
    missed: int = 0
    is_listed: bool = False


@dataclass(frozen=True, slots=True)
class SitemapReader:
    """The sitemaps of one pass.

    Attributes:
        progress: the progress of the pass, with the sitemaps that are left to read.
        before: the values ``roots`` and ``sitemaps`` that the last pass stored.
    """

    scope: AddressScope
    client: ApiClient
    robots: Robots
    progress: CrawlProgress
    before: dict[str, Any]
    is_full: bool

    def roots(self) -> list[str]:
        """Return the sitemaps to read first: those in robots.txt and those at the usual places.

        A pass for changes returns only sitemaps that the last pass read.
        """
        named = list(self.robots.sitemaps(self.scope.start))
        named += _GUESSES if self.is_full else self.before.get("roots", ())
        whole = (normalized(address, self.scope.prefix) for address in named)
        ours = dict.fromkeys(address for address in whole if address and self.scope.is_ours(address))
        read = self.before.get("sitemaps", ())
        return [address for address in ours if self.is_full or address in read][:MAX_SITEMAPS]

    def read(self, address: str) -> Iterator[list[ListedPage]]:
        """Yield the pages of a sitemap in batches, and remember its nested sitemaps."""
        answer = self._ask(address)
        if answer is None:
            return
        sitemaps: list[str] = []
        pages: list[ListedPage] = []
        try:
            for listed in read_sitemap(answer.content):
                if listed.is_sitemap:
                    sitemaps.append(listed.address)
                else:
                    pages.append(listed)
                if len(pages) >= BATCH:
                    yield pages
                    pages = []
        except NoSitemapError as error:
            if address in self.before.get("sitemaps", ()):
                raise SourceUnavailableError(f"{address}: no sitemap any more: {error}; try again later") from error
            return
        yield pages
        self._remember(address, sitemaps)

    def _ask(self, address: str) -> ApiAnswer | None:
        """Request a sitemap; ``None`` if it does not exist."""
        headers = {"Accept": "application/xml,text/xml,*/*;q=0.5"}
        try:
            answer = self.client.get(address, headers=headers, allowed=frozenset({404, 410}))
        except OtherHostError:
            return None
        except AnswerError as error:
            if error.status is not None and 400 <= error.status < 500 and error.status != 429:
                return None
            raise
        return None if answer.status in (404, 410) else answer

    def _remember(self, address: str, sitemaps: list[str]) -> None:
        """Record that a sitemap was read and queue its nested ones."""
        progress = self.progress
        progress.read.append(address)
        pending = progress.pending or []
        waiting = {*pending, *progress.read}
        for target in sitemaps:
            whole = normalized(target, address)
            if whole and self.scope.is_ours(whole) and whole not in waiting and len(waiting) < MAX_SITEMAPS:
                pending.append(whole)
                waiting.add(whole)
