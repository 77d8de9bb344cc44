"""Addresses of pages: their normal form, the scope of a source, paths of documents, robots.txt, and sitemaps.

``yarl`` spells them: host in lower case, no default port, no ``..``, percent-encoding only where it is needed.
``protego`` reads robots.txt by RFC 9309: wildcards, the longest rule decides. The standard library's parser knows no
wildcards and takes the first rule that fits.

Sitemaps are XML, indexes of sitemaps, compressed or not. They are those of robots.txt, those at the usual places, and
those that they name. Source: sitemaps.org/protocol.html (0.9).
"""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit
from xml.etree.ElementTree import ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import iterparse
from protego import Protego
from yarl import URL

from nornweave.connect.mirror.api_client import AnswerError, ApiAnswer, ApiClient, OtherHostError
from nornweave.core.errors import ConfigError, SourceUnavailableError
from nornweave.core.files.paths import MAX_PATH_CHARACTERS
from nornweave.core.types import digest

MAX_ADDRESS = 2_000
_TRACKING = re.compile(
    r"utm_\w+|[gfym]clid|msclkid|gbraid|wbraid|dclid|mc_[ce]id|_ga|_gl|_hs\w+|igshid|phpsessid|jsessionid|highlight",
    re.I,
)
_SESSION = re.compile(r";(?:jsessionid|phpsessid|sid)=[^/;]*", re.I)
_INDEX = re.compile(r"/(?:index|default)\.(?:x?html?)$", re.I)
_WEB = frozenset({"http", "https"})
_PORTS = {"http": 80, "https": 443}
# Characters that stay encoded in a document's path, because they would change its meaning.
_UNSAFE = re.compile(r"[/\\%\x00-\x1f\x7f]")

MAX_BYTES = 64 * 1024 * 1024
"""Of one sitemap, unpacked; the protocol allows 50 MiB."""
MAX_ENTRIES = 100_000
"""Of one sitemap; the protocol allows 50,000."""
_GZIP = b"\x1f\x8b"


def normalized(address: str, base: str | None = None) -> str | None:
    """Return the normal form of an address: absolute, without fragment and tracking parameters.

    Args:
        base: the address of the page that contains the address.

    Returns:
        The normal form. ``None`` for an address that is not a page's, such as ``mailto:`` or ``javascript:``, one with
        a password or a broken one.
    """
    if len(address) > MAX_ADDRESS or (address[:1].isalpha() and not _has_web_scheme(address)):
        return None
    try:
        url = URL(address.strip())
        url = (URL(base).join(url) if base else url).with_fragment(None)
        if url.scheme not in _WEB or not url.host or url.user or url.password or (url.port or 1) <= 0:
            return None
        kept = sorted((name, value) for name, value in url.query.items() if not _TRACKING.fullmatch(name))
        url = url.with_path(_SESSION.sub("", url.raw_path) or "/", encoded=True).with_query(kept)
        spelled = str(url)
    except (ValueError, TypeError, UnicodeError):
        return None
    return spelled if len(spelled) <= MAX_ADDRESS else None


def _has_web_scheme(address: str) -> bool:
    scheme, colon, _ = address.partition(":")
    return not colon or not re.fullmatch(r"[A-Za-z][\w+.-]*", scheme) or scheme.lower() in _WEB


def without_query(address: str) -> str:
    """Return a normalized address without its query."""
    return address.partition("?")[0]


def identity(address: str) -> str:
    """Return a key that is equal for addresses of one page: http and https, with and without ``index.html``."""
    url = URL(address, encoded=True)
    port = "" if url.port in (None, _PORTS.get(url.scheme)) else str(url.port)
    return digest(url.raw_host or "", port, _INDEX.sub("/", url.raw_path), url.raw_query_string)


@dataclass(frozen=True, slots=True)
class AddressScope:
    """The addresses that belong to a source.

    Attributes:
        prefix: the text with which addresses of the source begin, with http or https.
        keeps_queries: whether addresses that differ in their query lead to different pages.
    """

    start: str
    prefix: str
    keeps_queries: bool = False

    def holds(self, address: str) -> bool:
        """Tell whether a normalized address belongs to the source."""
        url, prefix = URL(address, encoded=True), URL(self.prefix, encoded=True)
        if not self.is_ours(address):
            return False
        wanted = prefix.raw_path if prefix.raw_path.startswith("/") else "/"
        return f"{url.raw_path}/".startswith(wanted) and (url.raw_path.startswith(wanted) or wanted.endswith("/"))

    def is_ours(self, address: str) -> bool:
        """Tell whether a normalized address is on the source's host. The scheme must be the source's or https."""
        url, prefix = URL(address, encoded=True), URL(self.prefix, encoded=True)
        is_same = (url.raw_host, _port(url)) == (prefix.raw_host, _port(prefix))
        return is_same and url.scheme in (prefix.scheme, "https")

    def link(self, target: str, page: str) -> str | None:
        """Return the normalized address of a link; ``None`` if the linked page does not belong to the source."""
        address = self.address(target, page)
        return address if address is None or self.keeps_queries else without_query(address)

    def address(self, target: str, page: str | None = None) -> str | None:
        """Return the normalized address of a page; ``None`` if the page does not belong to the source.

        The scheme is https if the source uses https.
        """
        address = normalized(target, page)
        if address is not None and self.prefix.startswith("https:") and address.startswith("http:"):
            address = f"https:{address.removeprefix('http:')}"
        return address if address is not None and self.holds(address) else None

    def path(self, address: str) -> str:
        """Return the document path of a page. It is readable, and different pages have different paths."""
        url = URL(address, encoded=True)
        path = "/".join(_parts(_INDEX.sub("/", url.raw_path)))
        if url.raw_query_string:
            path += f"~{digest(url.raw_query_string)[:10]}"
        if len(path) > MAX_PATH_CHARACTERS:
            path = f"{path[: MAX_PATH_CHARACTERS - 40]}~{digest(address)}"
        return path


def scope_of(url: str, prefix: str | None) -> AddressScope:
    """Return the scope of a source with this start address. Without a ``prefix`` the folder of the address is used.

    Raises:
        ConfigError: an address has the wrong form, or the prefix is on another host.
    """
    start = normalized(url)
    if start is None:
        raise ConfigError(f"url: {url!r}; expected the address of a page, such as 'https://docs.example.org/'")
    beginning = normalized(prefix) if prefix else str(URL(start, encoded=True).join(URL(".")).with_query(None))
    if beginning is None:
        raise ConfigError(f"prefix: {prefix!r}; expected an address such as 'https://docs.example.org/guide/'")
    keeps_queries = "?" in start or "?" in beginning
    scope = AddressScope(start, without_query(beginning), keeps_queries)
    if not scope.is_ours(start):
        raise ConfigError(f"prefix: {beginning!r} is on another host than url")
    return scope


def _port(url: URL) -> int | None:
    """Return the port of an address; ``None`` for the default port of http or https."""
    return None if url.port in _PORTS.values() else url.port


def _parts(path: str) -> Iterator[str]:
    *folders, name = path.removeprefix("/").split("/")
    for folder in folders:
        yield _readable(folder) if folder else "%2F"
    yield _readable(name) if name else "index.html"


def _readable(part: str) -> str:
    """Return a part of a path in decoded form. It stays encoded if the decoded form would be unsafe or ambiguous."""
    try:
        decoded = unquote(part, errors="strict")
    except UnicodeDecodeError:
        return part
    is_same = not _UNSAFE.search(decoded) and decoded.isprintable() and decoded.strip(" .") == decoded
    return decoded if is_same else part


AGENT = "nornweave"
MAX_DELAY_S = 10.0
"""The longest pause between two requests that a site may ask for; of a longer one this much is kept."""
# RFC 9309, 2.5: at least 500 KiB have to be read.
_MAX_BYTES = 512 * 1024
# A refusal means that there are no rules (2.3.1.3); a rate limit is none.
_REFUSALS = frozenset(range(400, 500)) - {429}


class Robots:
    """The robots.txt rules of a source's hosts. Each file is requested once, when it is first needed."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._rules: dict[str, Protego] = {}

    def allows(self, address: str) -> bool:
        """Tell whether a page may be requested.

        Raises:
            SourceUnavailableError: robots.txt cannot be read now, so no page may be requested.
        """
        return bool(self._of(address).can_fetch(address, AGENT))

    def delay_s(self, address: str) -> float:
        """Return the site's minimum pause between requests, at most ``MAX_DELAY_S``."""
        delay = self._of(address).crawl_delay(AGENT) or 0.0
        return min(max(float(delay), 0.0), MAX_DELAY_S)

    def sitemaps(self, address: str) -> tuple[str, ...]:
        """Return the addresses of sitemaps in robots.txt, as they are written."""
        return tuple(self._of(address).sitemaps)

    def _of(self, address: str) -> Protego:
        parts = urlsplit(address)
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin not in self._rules:
            self._rules[origin] = Protego.parse(self._read(f"{origin}/robots.txt"))
        return self._rules[origin]

    def _read(self, address: str) -> str:
        try:
            answer = self._client.get(address, headers={"Accept": "text/plain,*/*;q=0.5"}, allowed=_REFUSALS)
        except OtherHostError:
            return ""
        if not 200 <= answer.status < 300:
            return ""
        return answer.content[:_MAX_BYTES].decode("utf-8", "replace")


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
