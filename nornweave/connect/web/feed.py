"""Read the pages of a website that lie below a prefix.

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

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, cast

from nornweave.connect.connectors import WebSettings
from nornweave.connect.mirror.api_client import ApiClient, Limits
from nornweave.connect.mirror.feed import LEFT_OUT, Body, Feed, FeedRecord, Known, Pass, PositionLostError, RecordPage
from nornweave.connect.web.addresses import (
    BATCH,
    AddressScope,
    CrawlProgress,
    ListedPage,
    Robots,
    SitemapReader,
    identity,
    scope_of,
)
from nornweave.connect.web.page import PageOutcome, PageReader, changed_at, is_page
from nornweave.core.errors import DocumentSkipped, SourceUnavailableError
from nornweave.core.files.paths import PathFilter
from nornweave.core.types import JsonValue
from nornweave.read.web_page import document_version, web_document, write_page

# After this many consecutive failures the site counts as down.
_FAILURES = 5

# Generated lists of a whole site: all of their words are on other pages.
_INDEXES = ("genindex*.html", "py-modindex.html", "search.html", "index-all.html", "allclasses*.html", "_sources/")
_TOO_MANY = f"{LEFT_OUT}!"
# A pass for changes requests this many pages again, or as many as fit into this time with the pauses of robots.txt.
AGAIN, _AGAIN_S = 200, 300.0
# The longest chain of pages that lead to other addresses.
_HOPS = 5


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
