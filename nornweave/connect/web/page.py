"""Request a page of a website and return the outcome."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import PurePosixPath
from typing import Any, Literal, TypeAlias, cast
from urllib.parse import urlsplit

import httpx

from nornweave.connect.mirror.api_client import AnswerError, ApiAnswer, ApiClient, OtherHostError
from nornweave.connect.mirror.feed import Body
from nornweave.connect.web.addresses import AGENT, AddressScope, Robots, identity, normalized
from nornweave.core.errors import DocumentError, TransientDocumentError
from nornweave.core.sandbox import run_apart
from nornweave.core.text.dates import iso_moment
from nornweave.read.time_limits import seconds_for
from nornweave.read.web_page import VERSION, read_web_page, robots_rules

MAX_BYTES = {"pdf": 20 * 1024 * 1024}
"""Of a page, by format; of any other format ``_MAX_TEXT_BYTES``."""
_MAX_TEXT_BYTES = 10 * 1024 * 1024
FORMAT_OF_TYPE: Mapping[str, str] = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "text/markdown": "markdown",
    "text/x-markdown": "markdown",
    "text/x-rst": "rst",
    "text/prs.fallenstein.rst": "rst",
    "text/plain": "text",
    "application/pdf": "pdf",
}
# Servers send these as plain text, or as bytes of no type.
_FORMAT_OF_SUFFIX = {".md": "markdown", ".markdown": "markdown", ".rst": "rst", ".pdf": "pdf"}
ACCEPT = "text/html,application/xhtml+xml,text/markdown;q=0.9,text/plain;q=0.8,application/pdf;q=0.7,*/*;q=0.1"
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_GONE = frozenset({404, 410})
_HOPS = 5
# Addresses that no text can be read from; they are not asked for.
_BINARY = re.compile(
    r"\.(?:png|jpe?g|gif|svgz?|webp|avif|ico|bmp|tiff?|css|m?js|map|json|xml|rss|atom|woff2?|ttf|otf|eot|zip|t?gz|tar|"
    r"t?bz2|t?xz|zst|7z|rar|jar|war|whl|deb|rpm|dmg|exe|msi|iso|apk|mp[34]|m4[av]|webm|og[gv]|wav|mov|avi|epub|mobi|"
    r"docx?|xlsx?|pptx?|od[tsp]|csv|tsv|parquet|ipynb|inv|ics|wasm|so|dll|bin|pyc?|cc?|cpp|h|java|go|rs|sh|ya?ml|toml)$",
    re.I,
)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.I)
_AGENTS_RULE = re.compile(r"\s*([\w-]+)\s*:\s*(.*)", re.S)
_DIRECTIVES = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})

Kind: TypeAlias = Literal["stored", "same", "moved", "left", "gone", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOutcome:
    """The outcome of requesting a page.

    Attributes:
        kind: the page is a document, is unchanged, has moved to ``target``, is left out, is gone, or cannot be read
            now.
        body: the content of a document in the form in which it is stored.
        links: the links on the page that belong to the source; ``None`` if they are unknown.
        canonical: another page of the source that the page names as its canonical address; ``None`` if there is none.
        reason: why the page is left out or failed; empty if this is not reported.
    """

    kind: Kind
    body: Body | None = None
    links: tuple[str, ...] | None = None
    target: str | None = None
    canonical: str | None = None
    reason: str = ""


def is_page(address: str) -> bool:
    """Tell whether the suffix of an address allows that it is a page of text."""
    return not _BINARY.search(urlsplit(address).path)


class PageReader:
    """Requests pages one by one, in accordance with robots.txt."""

    def __init__(
        self, client: ApiClient, robots: Robots, scope: AddressScope, sleep: Callable[[float], None] = time.sleep
    ):
        self._client = client
        self._robots = robots
        self._scope = scope
        self._sleep = sleep

    def read(self, address: str, before: Body | None, *, needs_links: bool) -> PageOutcome:
        """Request a page.

        Args:
            address: a normalized address.
            before: the stored version of the page, for a conditional request; ``None`` if there is none.
            needs_links: whether the page is read anew if its stored version has no links.

        Raises:
            SourceUnavailableError: the site must not be asked now, because its robots.txt cannot be read.
        """
        if not self._robots.allows(address):
            return PageOutcome(kind="left", reason=f"robots.txt does not allow {AGENT!r} to read it")
        self._sleep(self._robots.delay_s(address))
        try:
            answer = self._ask(address, _conditions(before, needs_links=needs_links))
        except OtherHostError:
            return PageOutcome(kind="left", reason="it leads to another host")
        except AnswerError as error:
            if error.status == 429:
                raise
            return PageOutcome(kind="failed", reason=str(error))
        if answer.status == 304:
            known = (before or {}).get("links")
            links = None if known is None else tuple(map(str, known))
            return PageOutcome(kind="same", links=links)
        if answer.status in _GONE:
            return PageOutcome(kind="gone")
        if answer.status in _REDIRECTS:
            return self._moved(answer.headers.get("location", ""), answer.url)
        return self._content(answer, before)

    def _ask(self, address: str, conditions: Mapping[str, str]) -> ApiAnswer:
        """Request a page. A redirect is followed only to another spelling of the same address."""
        for _ in range(_HOPS):
            answer = self._client.get(
                address,
                headers={"Accept": ACCEPT, **conditions},
                allowed=_REDIRECTS | _GONE | {304},
                follow=False,
                wanted=_is_wanted,
            )
            target = normalized(answer.headers.get("location", ""), address) if answer.status in _REDIRECTS else None
            if target is None or target == address or identity(target) != identity(address):
                return answer
            address = target
        return answer

    def _moved(self, location: str, address: str) -> PageOutcome:
        target = self._scope.address(location, address)
        if target is None:
            return PageOutcome(kind="left", reason=f"redirected to {location[:200]!r}, which is outside prefix")
        if identity(target) == identity(_spelled(address)):
            return PageOutcome(kind="left", reason="redirected to itself")
        return PageOutcome(kind="moved", target=target)

    def _content(self, answer: ApiAnswer, before: Body | None) -> PageOutcome:
        address = _spelled(answer.url)
        kind = format_of(answer)
        rules = _header_rules(answer.headers)
        if kind is None:
            return PageOutcome(kind="left", reason=f"content of type {_type(answer.headers)!r}; no reader for it")
        if len(answer.content) > MAX_BYTES.get(kind, _MAX_TEXT_BYTES) or not _is_wanted(answer):
            return PageOutcome(
                kind="left", reason=f"more than {MAX_BYTES.get(kind, _MAX_TEXT_BYTES):,} bytes; exclude it"
            )
        stored = {
            "url": address,
            "format": kind,
            "etag": answer.headers.get("etag"),
            "modified": answer.headers.get("last-modified"),
            "reader": VERSION,
        }
        if kind != "html":
            content = base64.b64encode(answer.content).decode()
            if "noindex" in rules:
                return PageOutcome(kind="left", reason="it asks not to be indexed")
            return PageOutcome(
                kind="stored", body=_add_change_time({**stored, "raw": content, "links": []}, before), links=()
            )
        return self._html(answer, stored, rules, before)

    def _html(
        self, answer: ApiAnswer, stored: dict[str, Any], rules: frozenset[str], before: Body | None
    ) -> PageOutcome:
        try:
            named = _CHARSET.search(answer.headers.get("content-type", ""))
            values = {"charset": named[1] if named else None}
            page = cast(
                dict[str, Any], run_apart(read_web_page, values, answer.content, cpu_s=seconds_for(len(answer.content)))
            )
        except TransientDocumentError as error:
            return PageOutcome(kind="failed", reason=str(error))
        except DocumentError as error:
            return PageOutcome(kind="left", reason=str(error))
        address = str(stored["url"])
        base = normalized(page["base"], address) if page["base"] else address
        if page["refresh"]:
            moved = self._moved(page["refresh"], base or address)
            if moved.kind == "moved":
                return moved
        found = (self._scope.link(link, base or address) for link in page["links"])
        links = () if "nofollow" in rules else tuple(dict.fromkeys(each for each in found if each and is_page(each)))
        if page["no_index"] or "noindex" in rules:
            return PageOutcome(kind="left", links=links, reason="it asks not to be indexed")
        if not page["has_text"]:
            reason = "no text in its HTML; a site that is put together in the browser cannot be read"
            return PageOutcome(kind="left", links=links, reason=reason)
        canonical = self._scope.address(page["canonical"], base) if page["canonical"] else None
        if canonical and identity(canonical) == identity(address):
            stored["url"], canonical = canonical, None
        facts = {key: page[key] for key in ("title", "updated_at", "metadata", "content")}
        body = _add_change_time({**stored, **facts, "links": links}, before)
        return PageOutcome(kind="stored", body=body, links=links, canonical=canonical)


def format_of(answer: ApiAnswer) -> str | None:
    """Return the format of an answer by its content type. If the type is vague, the suffix of the address decides.

    ``None`` if the format is not supported.
    """
    suffix = PurePosixPath(urlsplit(answer.url).path.lower()).suffix
    kind = _type(answer.headers)
    if kind in ("text/plain", "application/octet-stream", "binary/octet-stream", ""):
        return _FORMAT_OF_SUFFIX.get(suffix) or FORMAT_OF_TYPE.get(kind) or ("html" if not kind else None)
    return FORMAT_OF_TYPE.get(kind)


def _is_wanted(answer: ApiAnswer) -> bool:
    kind = format_of(answer)
    length = answer.headers.get("content-length", "0")
    limit = MAX_BYTES.get(kind or "", _MAX_TEXT_BYTES)
    return 200 <= answer.status < 300 and kind is not None and (not length.isdigit() or int(length[:18]) <= limit)


def _conditions(before: Body | None, *, needs_links: bool) -> dict[str, str]:
    """Return the headers of a conditional request for a stored page; empty if the page must be read anew."""
    if before is None or before.get("reader") != VERSION or (needs_links and before.get("links") is None):
        return {}
    known = {"If-None-Match": before.get("etag"), "If-Modified-Since": before.get("modified")}
    return {name: str(value) for name, value in known.items() if value}


def _add_change_time(body: dict[str, Any], before: Body | None) -> dict[str, Any]:
    """Return a page with the time of its file. If the content did not change, the stored version's time is kept."""
    shown = ("content", "raw", "title")
    if before is not None and all(before.get(key) == body.get(key) for key in shown):
        return {**body, "file_at": before.get("file_at")}
    return {**body, "file_at": _iso(body.get("modified"))}


def _iso(modified: Any) -> str | None:
    try:
        return parsedate_to_datetime(str(modified)).isoformat() if modified else None
    except (ValueError, TypeError, OverflowError):
        return None


def changed_at(body: Body) -> str | None:
    """Return the time at which a stored page last changed, in ISO 8601.

    It comes from the sitemap, from the page itself, or from the HTTP header of its file; ``None`` if it is unknown.
    """
    listed = iso_moment(body.get("lastmod"))
    return listed.isoformat() if listed else body.get("updated_at") or body.get("file_at")


def _type(headers: httpx.Headers) -> str:
    return str(headers.get("content-type", "")).partition(";")[0].strip().lower()[:100]


def _header_rules(headers: httpx.Headers) -> frozenset[str]:
    """Parse the header ``X-Robots-Tag``. A rule with the name of a crawler applies only to that crawler."""
    rules: set[str] = set()
    for value in headers.get_list("x-robots-tag"):
        named = _AGENTS_RULE.fullmatch(value)
        if named is None or named[1].lower() in _DIRECTIVES:
            rules |= robots_rules(value)
        elif named[1].lower() in (AGENT, "*"):
            rules |= robots_rules(named[2])
    return frozenset(rules)


def _spelled(address: str) -> str:
    return normalized(address) or address
