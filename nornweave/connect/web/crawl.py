"""One pass over a website: find addresses, queue them, ask for their pages.

The queue and what was seen of the site are records of the mirror like the pages themselves, so that a pass that was
interrupted goes on with the next address, and memory does not grow with the site:

- ``queue/00000012`` is an address to ask for, with the ``lastmod`` of its sitemap.
- ``seen/DIGEST`` says that an address is in the queue of this pass.
- ``page/DIGEST`` is a document.
- ``left out/DIGEST`` is an address that was asked for and is no document, or could not be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, cast

from nornweave.connect.mirror.addresses import AddressScope, identity, normalized
from nornweave.connect.mirror.api_client import AnswerError, ApiClient, OtherHostError
from nornweave.connect.mirror.feed import LEFT_OUT, Body, FeedRecord, Known, Pass, PositionLostError, RecordPage
from nornweave.connect.web.page import PageOutcome, PageReader, is_page
from nornweave.connect.web.robots import Robots
from nornweave.connect.web.sitemaps import ListedPage, NoSitemapError, read_sitemap
from nornweave.core.errors import SourceUnavailableError
from nornweave.core.files.paths import PathFilter
from nornweave.core.types import JsonValue

MAX_SITEMAPS = 1_000
_GUESSES = ("sitemap.xml", "/sitemap.xml")
_BATCH = 1_000
# So many pages that fail one after another mean that the site does.
_FAILURES = 5
# Lists that generators make of a whole site: every word in them stands on another page as well.
_INDEXES = ("genindex*.html", "py-modindex.html", "search.html", "index-all.html", "allclasses*.html", "_sources/")
_MAX_ALIASES = 100
_TOO_MANY = f"{LEFT_OUT}!"


@dataclass(frozen=True)
class Reach:
    """Which pages of a site are read.

    Attributes:
        include: globs of the paths of documents; links are followed on other pages too.
        exclude: globs of paths that are not asked for.

    Raises:
        ConfigError: a glob has the wrong form.
    """

    scope: AddressScope
    max_pages: int
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._included.matches("")
        self._excluded.matches("")

    def asks_for(self, address: str) -> bool:
        """Say whether an address of the source may be a document or lead to one."""
        return is_page(address) and self._excluded.matches(self.scope.path(address))

    def is_included(self, address: str) -> bool:
        """Say whether a page may become a document."""
        return self._included.matches(self.scope.path(address))

    @cached_property
    def _included(self) -> PathFilter:
        return PathFilter(self.include)

    @cached_property
    def _excluded(self) -> PathFilter:
        return PathFilter((), (*self.exclude, *(() if self.include else _INDEXES)))


@dataclass(slots=True)
class _Progress:
    """How far a pass came; it is the position that is stored with each page.

    Attributes:
        stage: ``sitemaps``, then ``pages``.
        by_links: pages are found by following links.
        pending: sitemaps that are not read yet, and their ``lastmod``.
        roots: the sitemaps that the reading began with.
        read: what is known of the sitemaps that were read: ETag, date, ``lastmod`` and the sitemaps that they name.
        next: number of the next address in the queue.
        queued: addresses in the queue, those included that were asked for.
        stored: pages that are documents.
        missed: addresses that ``max_pages`` left out.
    """

    stage: str = "sitemaps"
    by_links: bool = False
    pending: list[list[str]] | None = None
    roots: list[str] = field(default_factory=list)
    read: dict[str, dict[str, Any]] = field(default_factory=dict)
    next: int = 0
    queued: int = 0
    stored: int = 0
    missed: int = 0


class Crawl:
    """One pass; see the module."""

    def __init__(
        self, reach: Reach, client: ApiClient, robots: Robots, reader: PageReader, state: Pass, known: Known
    ) -> None:
        """Store the parameters; nothing is asked yet."""
        self._reach = reach
        self._scope = reach.scope
        self._client = client
        self._robots = robots
        self._reader = reader
        self._state = state
        self._known = known
        self._before: dict[str, Any] = state.since or {}
        self._progress = _Progress(**state.position) if state.position else _Progress()
        self._failures = 0

    def pages(self) -> Iterator[RecordPage]:
        """Go on with the pass; see ``Feed.pages``."""
        progress = self._progress
        if self._state.position is None:
            self._robots.allows(self._scope.start)  # a site that is down is known before anything is stored
            progress.stored = 0 if self._state.is_full else self._known.count("page/")
            yield self._page(gone=("queue/", "seen/"))
        if progress.stage == "sitemaps":
            yield from self._find()
        yield from self._read_queue()
        if self._state.is_full and not progress.stored:
            raise PositionLostError(self._nothing())
        yield self._page(self._too_many(), gone=("queue/", "seen/"))

    def _page(
        self,
        records: Iterable[FeedRecord] = (),
        *,
        confirmed: tuple[str, ...] = (),
        gone: tuple[str, ...] = (),
        since: dict[str, Any] | None = None,
    ) -> RecordPage:
        progress, records = self._progress, tuple(records)
        return RecordPage(
            records=records,
            confirmed=confirmed,
            gone=gone,
            position=cast(JsonValue, asdict(progress)),
            since=cast(JsonValue, since),
            expected=min(progress.queued, self._reach.max_pages) if self._state.is_full else None,
        )

    def _nothing(self) -> str:
        left = self._known.body(f"{LEFT_OUT}{identity(self._scope.start)}") or {}
        reason = f" ({left['reason']})" if left.get("reason") else ""
        return (
            f"{self._scope.start}: no page was found below {self._scope.prefix}{reason}; check url, prefix, include "
            "and exclude, and what robots.txt allows"
        )

    # Addresses: sitemaps, or the start page.

    def _find(self) -> Iterator[RecordPage]:
        """Queue the pages that the sitemaps name; the start page if they name none."""
        progress = self._progress
        if progress.pending is None:
            progress.roots = self._roots()
            progress.pending = [[address, ""] for address in progress.roots]
        while progress.pending:
            address, changed_at = progress.pending[0]
            yield from self._read_sitemap(address, changed_at)
            progress.pending.pop(0)
            yield self._page()
        progress.by_links = not progress.queued if self._state.is_full else bool(self._before.get("by_links"))
        progress.stage = "pages"
        again = [] if self._state.is_full else list(self._failed_before())
        start = [ListedPage(self._scope.start)] if progress.by_links else []
        since = {"by_links": progress.by_links, "roots": progress.roots, "sitemaps": progress.read}
        progress.roots, progress.read = [], {}  # they need not be written with every page
        yield self._page(self._queue([*start, *again], always=True), since=since)

    def _roots(self) -> list[str]:
        """Return the sitemaps to begin with: those of robots.txt, and those at the usual places."""
        named = list(self._robots.sitemaps(self._scope.start))
        named += _GUESSES if self._state.is_full else self._before.get("roots", ())
        whole = (normalized(address, self._scope.prefix) for address in named)
        ours = dict.fromkeys(address for address in whole if address and self._scope.is_ours(address))
        read = self._before.get("sitemaps", {})
        return [address for address in ours if self._state.is_full or address in read][:MAX_SITEMAPS]

    def _read_sitemap(self, address: str, changed_at: str) -> Iterator[RecordPage]:
        """Queue the pages that a sitemap names, and remember the sitemaps that it names."""
        before = {} if self._state.is_full else self._before.get("sitemaps", {}).get(address, {})
        if changed_at and changed_at == before.get("lastmod"):
            self._remember(address, before)
            return
        answer = self._ask_for_sitemap(address, before)
        if answer is None:
            return
        if answer.status == 304:
            self._remember(address, {**before, "lastmod": changed_at})
            return
        sitemaps: list[list[str]] = []
        pages: list[ListedPage] = []
        try:
            for listed in read_sitemap(answer.content):
                if listed.is_sitemap:
                    sitemaps.append([listed.address, listed.changed_at])
                else:
                    pages.append(listed)
                if len(pages) >= _BATCH:
                    yield self._page(self._queue(pages))
                    pages = []
        except NoSitemapError as error:
            if address in self._before.get("sitemaps", {}):
                raise SourceUnavailableError(f"{address}: no sitemap any more: {error}; try again later") from error
            return
        yield self._page(self._queue(pages))
        etag, modified = answer.headers.get("etag", ""), answer.headers.get("last-modified", "")
        sitemaps = sitemaps[:MAX_SITEMAPS]
        self._remember(address, {"etag": etag, "modified": modified, "lastmod": changed_at, "sitemaps": sitemaps})

    def _ask_for_sitemap(self, address: str, before: dict[str, Any]) -> Any:
        """Return the answer; ``None`` where there is no sitemap."""
        headers = {"Accept": "application/xml,text/xml,text/plain,*/*;q=0.5"}
        if before.get("etag"):
            headers["If-None-Match"] = before["etag"]
        if before.get("modified"):
            headers["If-Modified-Since"] = before["modified"]
        try:
            answer = self._client.get(address, headers=headers, allowed=frozenset({304, 404, 410}))
        except OtherHostError:
            return None
        except AnswerError as error:
            if error.status is not None and 400 <= error.status < 500 and error.status != 429:
                return None
            raise
        return None if answer.status in (404, 410) else answer

    def _remember(self, address: str, read: dict[str, Any]) -> None:
        """Note that a sitemap was read; those that it names come next."""
        progress = self._progress
        progress.read[address] = read
        pending = progress.pending or []
        waiting = {each[0] for each in pending} | progress.read.keys()
        for target, changed_at in read.get("sitemaps", ()):
            whole = normalized(target, address)
            if whole and self._scope.is_ours(whole) and whole not in waiting and len(waiting) < MAX_SITEMAPS:
                pending.append([whole, changed_at])
                waiting.add(whole)

    def _failed_before(self) -> Iterator[ListedPage]:
        """Yield the pages that could not be read when they were asked for last."""
        for _, body in self._known.under(LEFT_OUT):
            if body.get("again"):
                yield ListedPage(str(body["url"]), changed_at=str(body.get("lastmod") or ""))

    # The queue.

    def _queue(self, listed: Sequence[ListedPage], *, always: bool = False, **marks: Any) -> list[FeedRecord]:
        """Return the records that queue addresses: those of the source, each once in a pass, and only if they are due.

        Args:
            always: ask for them even if nothing says that they changed.
            marks: joins what is stored of each address.
        """
        records: list[FeedRecord] = []
        here: set[str] = set()
        for each in listed:
            address = self._scope.address(each.address) or (each.address if always else None)
            if address is None or not (always or self._may_be_document(address)):
                continue
            key = identity(address)
            is_seen = key in here or self._known.body(f"seen/{key}") is not None
            if (is_seen and not marks.get("as_it_is")) or not (always or self._is_due(key, each)):
                continue
            if self._progress.queued >= 2 * self._reach.max_pages + _BATCH:
                self._progress.missed += 1
                continue
            here.add(key)
            number = self._progress.queued
            body = {"url": address, "lastmod": each.changed_at, **marks}
            records += [_record(f"queue/{number:08d}", body), _record(f"seen/{key}", {"number": number})]
            self._progress.queued += 1
        return records

    def _may_be_document(self, address: str) -> bool:
        is_wanted = self._reach.asks_for(address)
        return is_wanted and (self._progress.stage == "pages" or self._reach.is_included(address))

    def _is_due(self, key: str, listed: ListedPage) -> bool:
        """Say whether a page has to be asked for in this pass."""
        if self._state.is_full:
            return True
        before = self._known.body(f"page/{key}") or self._known.body(f"{LEFT_OUT}{key}")
        return before is None or bool(listed.changed_at and listed.changed_at != before.get("lastmod"))

    def _read_queue(self) -> Iterator[RecordPage]:
        """Ask for the pages in the queue, one at a time."""
        progress = self._progress
        while (queued := self._known.body(f"queue/{progress.next:08d}")) is not None:
            if progress.stored >= self._reach.max_pages and self._is_new(queued):
                progress.missed += 1
                progress.next += 1
                if self._state.is_full:
                    progress.missed += progress.queued - progress.next
                    return
                continue
            yield self._read(queued)

    def _is_new(self, queued: Body) -> bool:
        return self._state.is_full or self._known.body(f"page/{identity(str(queued['url']))}") is None

    # Pages.

    def _read(self, queued: Body) -> RecordPage:
        """Ask for the next page of the queue."""
        address = str(queued["url"])
        key = identity(address)
        before = self._known.body(f"page/{key}")
        outcome = self._reader.read(address, before, needs_links=self._progress.by_links)
        self._count_failures(outcome)
        self._progress.next += 1
        if outcome.kind == "failed":
            return self._failed(queued, key, before, outcome)
        if outcome.kind == "same" and before is not None:
            self._count(before=before)
            body = {**before, "lastmod": queued["lastmod"]}
            records = [] if body == before else [_record(f"page/{key}", body, self._scope.path(address))]
            records += self._queue_links(_links(before))
            return self._page(records, confirmed=(f"page/{key}",), gone=(f"{LEFT_OUT}{key}",))
        if outcome.kind == "stored" and outcome.body is not None and not self._is_alias(outcome, queued):
            if not self._scope.holds(address) or not self._reach.is_included(address):
                return self._left(queued, key, PageOutcome(kind="left", links=outcome.links))
            return self._store(queued, key, before, outcome)
        return self._left(queued, key, outcome)

    def _count_failures(self, outcome: PageOutcome) -> None:
        self._failures = self._failures + 1 if outcome.kind == "failed" else 0
        if self._failures >= _FAILURES:
            raise SourceUnavailableError(f"{_FAILURES} pages one after another cannot be read: {outcome.reason}")

    def _count(self, before: Body | None) -> None:
        self._progress.stored += self._state.is_full or before is None

    def _failed(self, queued: Body, key: str, before: Body | None, outcome: PageOutcome) -> RecordPage:
        """Keep what is stored of a page that cannot be read now; the next pass asks again."""
        left = self._known.body(f"{LEFT_OUT}{key}") or {}
        links = _links(before) or _links(left)
        reason = outcome.reason if before is None else f"{outcome.reason}; the page read earlier stays"
        records = [self._left_record(queued, key, reason, links, again=True), *self._queue_links(links)]
        if before is not None:
            self._count(before)
        return self._page(records, confirmed=(f"page/{key}",))

    def _store(self, queued: Body, key: str, before: Body | None, outcome: PageOutcome) -> RecordPage:
        self._count(before)
        links = outcome.links if self._progress.by_links else None
        body = {**(outcome.body or {}), "lastmod": queued["lastmod"], "links": links}
        records = [_record(f"page/{key}", body, self._scope.path(str(queued["url"])))]
        records += self._queue_links(outcome.links or ())
        return self._page(records, gone=(f"{LEFT_OUT}{key}",))

    def _left(self, queued: Body, key: str, outcome: PageOutcome) -> RecordPage:
        """Remember an address that is no document, so that it is not asked for before it changes."""
        records = [self._left_record(queued, key, outcome.reason, outcome.links or ())]
        records += self._queue_links(outcome.links or ())
        if outcome.canonical is not None:
            records += self._queue_canonical(outcome.canonical, queued)
        elif outcome.target is not None:
            records += self._queue([ListedPage(outcome.target, changed_at=str(queued["lastmod"]))])
        # Pages that called this one their own address count themselves now.
        records += self._queue(
            [ListedPage(str(each)) for each in queued.get("instead", ())], always=True, as_it_is=True
        )
        return self._page(records, gone=(f"page/{key}",))

    def _queue_canonical(self, canonical: str, queued: Body) -> list[FeedRecord]:
        """Queue the page that another one calls its own address, and remember that one in case it is none."""
        seen = self._known.body(f"seen/{identity(canonical)}")
        if seen is None:
            return self._queue([ListedPage(canonical, changed_at=str(queued["lastmod"]))], instead=[queued["url"]])
        number = int(seen["number"])
        waiting = self._known.body(f"queue/{number:08d}")
        if waiting is None or number < self._progress.next:
            return []
        instead = [*waiting.get("instead", ()), queued["url"]][:_MAX_ALIASES]
        return [_record(f"queue/{number:08d}", {**waiting, "instead": instead})]

    def _is_alias(self, outcome: PageOutcome, queued: Body) -> bool:
        """Say whether a page is another spelling of one that is a document itself, or will be asked for."""
        if outcome.canonical is None or queued.get("as_it_is"):
            return False
        if not self._reach.asks_for(outcome.canonical) or not self._reach.is_included(outcome.canonical):
            return False
        key = identity(outcome.canonical)
        if key == identity(self._scope.start) or self._known.body(f"page/{key}") is not None:
            # Sites whose every page calls the first one its address are wrong about it.
            return key != identity(self._scope.start)
        seen = self._known.body(f"seen/{key}")
        return seen is None or int(seen["number"]) >= self._progress.next

    def _queue_links(self, links: Iterable[str]) -> list[FeedRecord]:
        """Queue the pages that a page leads to, where pages are found by their links."""
        if not self._progress.by_links:
            return []
        return self._queue([ListedPage(link) for link in links])

    def _left_record(
        self, queued: Body, key: str, reason: str, links: Iterable[str], *, again: bool = False
    ) -> FeedRecord:
        url = str(queued["url"])
        body = {"url": url, "path": self._scope.path(url), "reason": reason, "lastmod": queued["lastmod"]}
        if self._progress.by_links:
            body["links"] = list(links)
        return _record(f"{LEFT_OUT}{key}", {**body, "again": again})

    def _too_many(self) -> list[FeedRecord]:
        """Return the record that tells what ``max_pages`` left out."""
        missed = self._progress.missed
        if not missed:
            return []
        reason = (
            f"max_pages {self._reach.max_pages:,} is reached and {missed:,} more addresses are known; raise it, or "
            "narrow prefix, include or exclude"
        )
        return [_record(_TOO_MANY, {"path": "…", "reason": reason})]


def _record(key: str, body: Body, document: str = "") -> FeedRecord:
    return FeedRecord(key=key, document=document, body=body)


def _links(body: Body | None) -> tuple[str, ...]:
    return tuple(map(str, (body or {}).get("links") or ()))
