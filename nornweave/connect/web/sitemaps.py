"""What a site says of itself: robots.txt, and sitemaps: XML, lists of addresses, indexes of sitemaps, packed or not.

``protego`` reads robots.txt by RFC 9309: wildcards, the longest rule decides. The standard library's parser knows no
wildcards and takes the first rule that fits.

Source: RFC 9309, sitemaps.org/protocol.html (0.9).
"""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import iterparse
from protego import Protego

from nornweave.connect.mirror.answers import OtherHostError
from nornweave.connect.mirror.api_client import ApiClient

AGENT = "nornweave"
MAX_DELAY_S = 10.0
"""The longest pause between two requests that a site may ask for; of a longer one this much is kept."""
# RFC 9309, 2.5: at least 500 KiB have to be read.
_MAX_BYTES = 512 * 1024
# A refusal means that there are no rules (2.3.1.3); a rate limit is none.
_REFUSALS = frozenset(range(400, 500)) - {429}


class Robots:
    """The rules of the hosts of one source; each robots.txt is asked for once, when it is needed first."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._rules: dict[str, Protego] = {}

    def allows(self, address: str) -> bool:
        """Say whether a page may be asked for.

        Raises:
            SourceUnavailableError: robots.txt cannot be read now, so that nothing may be asked for.
        """
        return bool(self._of(address).can_fetch(address, AGENT))

    def delay_s(self, address: str) -> float:
        """Return the pause that the site asks for between two requests, at most ``MAX_DELAY_S``."""
        delay = self._of(address).crawl_delay(AGENT) or 0.0
        return min(max(float(delay), 0.0), MAX_DELAY_S)

    def sitemaps(self, address: str) -> tuple[str, ...]:
        """Return the sitemaps that robots.txt names, as it names them."""
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
