"""Read the pages of a website that lie below a prefix: request each, and follow links or sitemaps.

A pass finds addresses first: in the site's sitemaps, or, where they name no page below the prefix, by following links
from the start page, the nearest ones first. The queue and what was seen of the site are records of the mirror like the
pages themselves, so that a pass that was interrupted goes on with the next address, and memory does not grow with the
site:

- ``queue/00000012`` is an address to ask for, with the ``lastmod`` of its sitemap.
- ``seen/DIGEST`` says that an address is in the queue of this pass.
- ``page/DIGEST`` is a document.
- ``left out/DIGEST`` is an address that was asked for and is no document, or could not be read.

A full pass asks for every page, if it changed. A pass for changes asks for those whose ``lastmod`` in the sitemap
changed, for new ones, and for those that failed; pages that the sitemaps do not name any more go at its end. Of pages
whose dates no sitemap tells it asks for some again, those that were confirmed longest ago. Where there is no sitemap,
it asks for the start page and for what that newly links to.

Source: sitemaps.org/protocol.html, RFC 9309 (robots.txt), RFC 6596 (canonical links), RFC 9110 (conditional requests).
"""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from email.utils import parsedate_to_datetime
from pathlib import PurePosixPath
from typing import Any, Literal, TypeAlias, cast
from urllib.parse import urlsplit

import httpx

from nornweave.connect.connectors import WebSettings
from nornweave.connect.mirror.api_client import AnswerError, ApiAnswer, ApiClient, Limits, OtherHostError
from nornweave.connect.mirror.feed import LEFT_OUT, Body, Feed, FeedRecord, Known, Pass, PositionLostError, RecordPage
from nornweave.connect.web.addresses import (
    AGENT,
    BATCH,
    AddressScope,
    CrawlProgress,
    ListedPage,
    Robots,
    SitemapReader,
    identity,
    normalized,
    scope_of,
)
from nornweave.core.errors import DocumentError, DocumentSkipped, SourceUnavailableError, TransientDocumentError
from nornweave.core.files.paths import PathFilter
from nornweave.core.sandbox import run_apart
from nornweave.core.text.dates import iso_moment
from nornweave.core.types import JsonValue
from nornweave.read.parsed import seconds_for
from nornweave.read.web_page import VERSION, document_version, read_web_page, robots_rules, web_document, write_page

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


# After this many consecutive failures the site counts as down.
_FAILURES = 5

# Generated lists of a whole site: all of their words are on other pages.
_INDEXES = ("genindex*.html", "py-modindex.html", "search.html", "index-all.html", "allclasses*.html", "_sources/")
_TOO_MANY = f"{LEFT_OUT}!"
# A pass for changes requests this many pages again, or as many as fit into this time with the pauses of robots.txt.
AGAIN, _AGAIN_S = 200, 300.0
# The longest chain of pages that lead to other addresses.


class Crawl:
    """One pass over a website: it finds the addresses of pages, and then requests the pages one by one."""

    def __init__(
        self, reach: Reach, client: ApiClient, robots: Robots, reader: PageReader, state: Pass, known: Known
    ) -> None:
        self._reach = reach
        self._scope = reach.scope
        self._robots = robots
        self._reader = reader
        self._state = state
        self._known = known
        self._before: dict[str, Any] = state.since or {}
        self._progress = CrawlProgress(**state.position) if state.position else CrawlProgress()
        self._queue = CrawlQueue(reach, self._progress, known, is_full=state.is_full)
        self._sitemaps = SitemapReader(reach.scope, client, robots, self._progress, self._before, is_full=state.is_full)
        self._client = client
        self._asked_before, self._brought = client.requests, 0
        self._failures = 0

    def pages(self) -> Iterator[RecordPage]:
        """Continue the pass, and yield a page of records after each step. The errors are those of ``Feed.pages``."""
        progress = self._progress
        if self._state.position is None:
            self._robots.allows(self._scope.start)  # fails if the site is down, before anything is stored
            progress.stored = 0 if self._state.is_full else self._known.count("page/")
            yield self._page(gone=("queue/", "seen/"))
        if progress.stage == "sitemaps":
            yield from self._find()
        yield from self._read_queue()
        if self._state.is_full and not progress.stored:
            raise PositionLostError(_nothing_found(self._scope, self._known))
        listed = ("page/",) if progress.is_listed else ()
        yield self._page(self._queue.too_many(), gone=("queue/", "seen/"), listed=listed)

    def _page(self, records: Iterable[FeedRecord] = (), **fields: Any) -> RecordPage:
        """Return a page of records that also stores the progress of the pass."""
        expected = min(self._progress.queued, self._reach.settings.max_pages) if self._state.is_full else None
        position = cast(JsonValue, asdict(self._progress))
        return RecordPage(records=tuple(records), position=position, expected=expected, **fields)

    # Addresses: sitemaps, or the start page.

    def _find(self) -> Iterator[RecordPage]:
        """Queue the pages that the sitemaps name. If there are no pages in sitemaps, queue the start page."""
        progress = self._progress
        if progress.pending is None:
            progress.roots = self._sitemaps.roots()
            progress.pending = list(progress.roots)
        while progress.pending:
            self._check_budget()
            for pages in self._sitemaps.read(progress.pending[0]):
                self._brought += bool(pages)
                yield self._queue_sitemap(pages)
            progress.pending.pop(0)
            yield self._page()
        progress.by_links = not progress.queued if self._state.is_full else bool(self._before.get("by_links"))
        progress.stage = "pages"
        progress.is_listed = not self._state.is_full and not progress.by_links and bool(progress.read)
        again: list[ListedPage] = []
        if not self._state.is_full:
            delay_s = self._robots.delay_s(self._scope.start)
            again = [*self._queue.failed_before(), *self._queue.unconfirmed(self._state.began_at, delay_s)]
        start = [ListedPage(self._scope.start)] if progress.by_links else []
        since = {"by_links": progress.by_links, "roots": progress.roots, "sitemaps": progress.read}
        progress.roots, progress.read = [], []  # they need not be written with every page
        yield self._page(self._queue.records([*start, *again], always=True), since=since)

    def _queue_sitemap(self, pages: Sequence[ListedPage]) -> RecordPage:
        """Queue those pages of a sitemap that must be requested.

        The other pages count as existing. If the sitemap has a date for such a page, the page also counts as unchanged.
        """
        records = self._queue.records(pages)
        queued = {each.key.rpartition("/")[2] for each in records if each.key.startswith("seen/")}
        confirmed: list[str] = []
        kept: list[str] = []
        for each in pages:
            address = self._scope.address(each.address)
            if address is None or not self._reach.asks_for(address):
                continue
            key = identity(address)
            if key not in queued and not self._state.is_full:
                (confirmed if each.changed_at else kept).append(f"page/{key}")
                kept += self._queue.leads_to(key)
        return self._page(records, confirmed=tuple(confirmed), kept=tuple(kept))

    def _read_queue(self) -> Iterator[RecordPage]:
        """Request the queued pages one by one."""
        progress = self._progress
        while (queued := self._known.body(f"queue/{progress.next:08d}")) is not None:
            if progress.stored >= self._reach.settings.max_pages and self._queue.is_new(queued):
                progress.missed += 1
                progress.next += 1
                if self._state.is_full:
                    progress.missed += progress.queued - progress.next
                    return
                continue
            yield self._read(queued)

    # Pages.

    def _read(self, queued: Body) -> RecordPage:
        """Request the next queued page."""
        self._check_budget()
        address = str(queued["url"])
        key = identity(address)
        before = self._known.body(f"page/{key}")
        outcome = self._reader.read(address, before, needs_links=self._progress.by_links)
        self._count_failures(outcome)
        self._progress.next += 1
        if outcome.kind == "failed":
            return self._record_failure(queued, key, before, outcome)
        if outcome.kind == "same" and before is not None:
            self._count(before=before)
            body = {**before, "lastmod": queued["lastmod"]}
            records = [] if body == before else [record(f"page/{key}", body, self._scope.path(address))]
            records += self._queue.links(_links(before))
            return self._page(records, confirmed=(f"page/{key}",), gone=(f"{LEFT_OUT}{key}",))
        if outcome.kind == "stored" and outcome.body is not None and not self._queue.is_alias(outcome):
            if not self._scope.holds(address) or not self._reach.is_included(address):
                return self._record_left_out(queued, key, PageOutcome(kind="left", links=outcome.links))
            return self._store(queued, key, before, outcome)
        return self._record_left_out(queued, key, outcome)

    def _check_budget(self) -> None:
        """Stop a pass if many requests bring no pages.

        Raises:
            SourceUnavailableError: the pass stops. The next sync continues here, and pages that were read are kept.
        """
        in_vain = self._client.requests - self._asked_before - self._brought
        if in_vain > (most := self._reach.settings.max_requests):
            raise SourceUnavailableError(
                f"{in_vain:,} requests brought no page in this sync (max_requests {most:,}); the next sync "
                "goes on here; check prefix, include and exclude"
            )

    def _count_failures(self, outcome: PageOutcome) -> None:
        self._failures = self._failures + 1 if outcome.kind == "failed" else 0
        self._brought += outcome.kind in ("same", "stored")
        if self._failures >= _FAILURES:
            raise SourceUnavailableError(f"{_FAILURES} pages one after another cannot be read: {outcome.reason}")

    def _count(self, before: Body | None) -> None:
        self._progress.stored += self._state.is_full or before is None

    def _record_failure(self, queued: Body, key: str, before: Body | None, outcome: PageOutcome) -> RecordPage:
        """Keep the stored version of a page that cannot be read now. The next pass tries to read it again."""
        left = self._known.body(f"{LEFT_OUT}{key}") or {}
        links = _links(before) or _links(left)
        reason = outcome.reason if before is None else f"{outcome.reason}; the page read earlier stays"
        records = [self._left_record(queued, key, reason, links, again=True), *self._queue.links(links)]
        if before is not None:
            self._count(before)
        return self._page(records, kept=(f"page/{key}",))

    def _store(self, queued: Body, key: str, before: Body | None, outcome: PageOutcome) -> RecordPage:
        self._count(before)
        links = outcome.links if self._progress.by_links else None
        body = {**(outcome.body or {}), "lastmod": queued["lastmod"], "links": links}
        records = [record(f"page/{key}", body, self._scope.path(str(queued["url"])))]
        records += self._queue.links(outcome.links or ())
        return self._page(records, gone=(f"{LEFT_OUT}{key}",))

    def _record_left_out(self, queued: Body, key: str, outcome: PageOutcome) -> RecordPage:
        """Record that an address is not a document. It is requested again only after a change."""
        leads_to = outcome.canonical or outcome.target
        records = [self._left_record(queued, key, outcome.reason, outcome.links or (), leads_to=leads_to)]
        records += self._queue.links(outcome.links or ())
        if leads_to is not None:
            records += self._queue.records([ListedPage(leads_to, changed_at=str(queued["lastmod"]))])
        return self._page(records, gone=(f"page/{key}",))

    def _left_record(
        self,
        queued: Body,
        key: str,
        reason: str,
        links: Iterable[str],
        *,
        again: bool = False,
        leads_to: str | None = None,
    ) -> FeedRecord:
        url = str(queued["url"])
        body = {"url": url, "path": self._scope.path(url), "reason": reason, "lastmod": queued["lastmod"]}
        if leads_to:
            body["leads_to"] = identity(leads_to)
        if self._progress.by_links:
            body["links"] = list(links)
        return record(f"{LEFT_OUT}{key}", {**body, "again": again})


def _nothing_found(scope: AddressScope, known: Known) -> str:
    left = known.body(f"{LEFT_OUT}{identity(scope.start)}") or {}
    reason = f" ({left['reason']})" if left.get("reason") else ""
    return (
        f"{scope.start}: no page was found below {scope.prefix}{reason}; check url, prefix, include and exclude, and "
        "what robots.txt allows"
    )


def _links(body: Body | None) -> tuple[str, ...]:
    return tuple(map(str, (body or {}).get("links") or ()))


class WebFeed(Feed):
    """The pages of one website."""

    parser = staticmethod(web_document)

    def __init__(
        self, settings: WebSettings, *, limits: Limits | None = None, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        """Store the parameters. No request is made.

        Args:
            sleep: waits for a number of seconds, as robots.txt demands between requests.

        Raises:
            ConfigError: an address or a glob has the wrong form.
        """
        self.domain = settings.domain
        self.options = {"domain": settings.domain}
        self._reach = Reach(settings)
        scope = self._reach.scope
        self.client = self._client = ApiClient(
            scope.prefix,
            token_name="nothing else",  # noqa: S106 - what raises a rate limit; there is no token
            limits=limits,
            public_only=settings.public_addresses_only,
        )
        self._sleep = sleep
        self.version = document_version()
        of_site = ["2", scope.start, scope.prefix]
        self.scope = json.dumps([of_site, settings.max_pages, settings.chosen, settings.exclude])

    def pages(self, state: Pass, known: Known) -> Iterator[RecordPage]:
        robots = Robots(self._client)
        reader = PageReader(self._client, robots, self._reach.scope, self._sleep)
        return Crawl(self._reach, self._client, robots, reader, state, known).pages()

    def assemble(self, path: str, records: Iterable[tuple[str, Body]], known: Known) -> bytes:  # noqa: ARG002
        body = next((body for _, body in records), None)
        if body is None:
            raise DocumentSkipped("no page")
        return write_page(body, changed_at(body))


class Reach:
    """The rules that decide which pages of a site are read. Links are followed even on pages outside ``include``."""

    def __init__(self, settings: WebSettings) -> None:
        """Read the settings of a source.

        Raises:
            ConfigError: an address or a glob has the wrong form.
        """
        self.settings = settings
        self.scope = scope_of(settings.url or "", settings.prefix)
        self._included = PathFilter(settings.chosen)
        self._excluded = PathFilter((), (*settings.exclude, *(() if settings.chosen else _INDEXES)))

    def asks_for(self, address: str) -> bool:
        """Tell whether an address is requested, because it may be a document or lead to one."""
        return is_page(address) and self._excluded.matches(self.scope.path(address))

    def is_included(self, address: str) -> bool:
        """Tell whether a page may become a document."""
        return self._included.matches(self.scope.path(address))


class CrawlQueue:
    """The queue of addresses in one pass. Each address is queued once."""

    def __init__(self, reach: Reach, progress: CrawlProgress, known: Known, *, is_full: bool) -> None:
        self._reach = reach
        self._scope = reach.scope
        self._progress = progress
        self._known = known
        self._is_full = is_full

    def records(self, listed: Sequence[ListedPage], *, always: bool = False) -> list[FeedRecord]:
        """Return queue records for those addresses that are new, belong to the source and must be requested.

        Args:
            always: request the addresses even if no sign shows that they changed.
        """
        records: list[FeedRecord] = []
        here: set[str] = set()
        for each in listed:
            address = self._scope.address(each.address) or (each.address if always else None)
            if address is None or not (always or self._may_be_document(address)):
                continue
            key = identity(address)
            is_seen = key in here or self._known.body(f"seen/{key}") is not None
            if is_seen or not (always or self._is_due(key, each)):
                continue
            if self._progress.queued >= 2 * self._reach.settings.max_pages + BATCH:
                self._progress.missed += 1
                continue
            here.add(key)
            number = self._progress.queued
            body = {"url": address, "lastmod": each.changed_at}
            records += [record(f"queue/{number:08d}", body), record(f"seen/{key}", {"number": number})]
            self._progress.queued += 1
        return records

    def _may_be_document(self, address: str) -> bool:
        is_wanted = self._reach.asks_for(address)
        return is_wanted and (self._progress.stage == "pages" or self._reach.is_included(address))

    def _is_due(self, key: str, listed: ListedPage) -> bool:
        """Tell whether a page must be requested in this pass."""
        if self._is_full:
            return True
        before = self._known.body(f"page/{key}") or self._known.body(f"{LEFT_OUT}{key}")
        return before is None or bool(listed.changed_at and listed.changed_at != before.get("lastmod"))

    def is_new(self, queued: Body) -> bool:
        """Tell whether a queued page would be an additional document."""
        return self._is_full or self._known.body(f"page/{identity(str(queued['url']))}") is None

    def is_alias(self, outcome: PageOutcome) -> bool:
        """Tell whether a page names another page as its canonical address, and that page is or will be a document."""
        if (
            outcome.canonical is None
            or not self._reach.asks_for(outcome.canonical)
            or not self._reach.is_included(outcome.canonical)
        ):
            return False
        key = identity(outcome.canonical)
        if key == identity(self._scope.start) or self._known.body(f"page/{key}") is not None:
            # On some sites every page wrongly names the first one as its canonical address.
            return key != identity(self._scope.start)
        seen = self._known.body(f"seen/{key}")
        return seen is None or int(seen["number"]) >= self._progress.next

    def links(self, links: Iterable[str]) -> list[FeedRecord]:
        """Return queue records for the links of a page. They are empty unless the pass finds pages by links."""
        if not self._progress.by_links:
            return []
        return self.records([ListedPage(link) for link in links])

    def leads_to(self, key: str) -> Iterator[str]:
        """Yield the keys of the pages to which an address leads, if the address itself is not a document."""
        for _ in range(_HOPS):
            left = self._known.body(f"{LEFT_OUT}{key}") or {}
            if not left.get("leads_to"):
                return
            key = str(left["leads_to"])
            yield f"page/{key}"

    def unconfirmed(self, before: float, delay: float) -> Iterator[ListedPage]:
        """Yield some pages that this pass has not confirmed. The pages with the oldest confirmation come first."""
        limit = min(AGAIN, max(1, int(_AGAIN_S / delay))) if delay else AGAIN
        is_named = self._progress.is_listed
        for _, body in self._known.oldest("page/", before=before, limit=limit, is_named=is_named):
            yield ListedPage(str(body["url"]), changed_at=str(body.get("lastmod") or ""))

    def failed_before(self) -> Iterator[ListedPage]:
        """Yield the pages whose last request failed."""
        for _, body in self._known.under(LEFT_OUT):
            if body.get("again"):
                yield ListedPage(str(body["url"]), changed_at=str(body.get("lastmod") or ""))

    def too_many(self) -> list[FeedRecord]:
        """Return a record about the pages that ``max_pages`` left out. The list is empty if no page was left out."""
        missed, most = self._progress.missed, self._reach.settings.max_pages
        if not missed:
            return []
        reason = (
            f"max_pages {most:,} is reached and {missed:,} more addresses are known; raise it, or "
            "narrow prefix, include or exclude"
        )
        return [record(_TOO_MANY, {"path": "…", "reason": reason})]


def record(key: str, body: Body, document: str = "") -> FeedRecord:
    """Return a record of the crawl. If it belongs to a document, ``document`` is the document's path."""
    return FeedRecord(key=key, document=document, body=body)
