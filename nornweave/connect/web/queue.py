"""The addresses of a pass over a website: which are requested, in which order, and the pass's progress."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from nornweave.connect.connectors import WebSettings
from nornweave.connect.mirror.feed import LEFT_OUT, Body, FeedRecord, Known
from nornweave.connect.web.addresses import identity, scope_of
from nornweave.connect.web.page import PageOutcome, is_page
from nornweave.connect.web.sitemaps import BATCH, CrawlProgress, ListedPage
from nornweave.core.files.paths import PathFilter

# Generated lists of a whole site: all of their words are on other pages.
_INDEXES = ("genindex*.html", "py-modindex.html", "search.html", "index-all.html", "allclasses*.html", "_sources/")
_TOO_MANY = f"{LEFT_OUT}!"
# A pass for changes requests this many pages again, or as many as fit into this time with the pauses of robots.txt.
AGAIN, _AGAIN_S = 200, 300.0
# The longest chain of pages that lead to other addresses.
_HOPS = 5


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
