"""Read the sitemaps of a website: those of robots.txt, those at the usual places, and those that they name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from nornweave.connect.mirror.addresses import AddressScope, normalized
from nornweave.connect.mirror.answers import AnswerError, ApiAnswer, OtherHostError
from nornweave.connect.mirror.api_client import ApiClient
from nornweave.connect.mirror.known import Known
from nornweave.connect.web.queue import BATCH, CrawlProgress
from nornweave.connect.web.sitemaps import ListedPage, NoSitemapError, Robots, read_sitemap
from nornweave.core.errors import SourceUnavailableError
from nornweave.core.types import digest

MAX_SITEMAPS = 1_000
_GUESSES = ("sitemap.xml", "/sitemap.xml")
# Sites date a sitemap by its newest page, which says nothing of pages that are gone: of so many sitemaps each is asked
# for, if it changed; of more, those whose dates did.
_ASKED = 50
LISTED = "listed/"


def listed_by(sitemap: str) -> str:
    """Return what the keys of the pages that a sitemap names start with."""
    return f"{LISTED}{digest(sitemap)[:16]}/"


@dataclass(frozen=True, slots=True)
class SitemapReader:
    """The sitemaps of one pass.

    Attributes:
        progress: holds those that are left to read.
        before: what the last pass left: ``roots`` and ``sitemaps``.
    """

    scope: AddressScope
    client: ApiClient
    robots: Robots
    progress: CrawlProgress
    before: dict[str, Any]
    known: Known
    is_full: bool

    def roots(self) -> list[str]:
        """Return the sitemaps to begin with: those of robots.txt, and those at the usual places."""
        named = list(self.robots.sitemaps(self.scope.start))
        named += _GUESSES if self.is_full else self.before.get("roots", ())
        whole = (normalized(address, self.scope.prefix) for address in named)
        ours = dict.fromkeys(address for address in whole if address and self.scope.is_ours(address))
        read = self.before.get("sitemaps", {})
        return [address for address in ours if self.is_full or address in read][:MAX_SITEMAPS]

    def read(self, address: str, changed_at: str) -> Iterator[list[ListedPage]]:
        """Yield the pages that a sitemap names, some at a time, and remember the sitemaps that it names."""
        known = {} if self.is_full else self.before.get("sitemaps", {})
        before = known.get(address, {})
        if changed_at and changed_at == before.get("lastmod") and len(known) > _ASKED:
            yield from self._as_before(address, before)
            return
        answer = self._ask(address, before)
        if answer is None:
            return
        if answer.status == 304:
            yield from self._as_before(address, {**before, "lastmod": changed_at})
            return
        sitemaps: list[list[str]] = []
        pages: list[ListedPage] = []
        try:
            for listed in read_sitemap(answer.content):
                if listed.is_sitemap:
                    sitemaps.append([listed.address, listed.changed_at])
                else:
                    pages.append(listed)
                if len(pages) >= BATCH:
                    yield pages
                    pages = []
        except NoSitemapError as error:
            if address in self.before.get("sitemaps", {}):
                raise SourceUnavailableError(f"{address}: no sitemap any more: {error}; try again later") from error
            return
        yield pages
        read = {"validators": answer.validators, "lastmod": changed_at, "sitemaps": sitemaps[:MAX_SITEMAPS]}
        self._remember(address, read)

    def _as_before(self, address: str, read: dict[str, Any]) -> Iterator[list[ListedPage]]:
        self._remember(address, read)
        bodies = [body for _, body in self.known.under(listed_by(address))]
        pages = [ListedPage(str(body["url"]), changed_at=str(body["lastmod"])) for body in bodies]
        yield from (pages[at : at + BATCH] for at in range(0, len(pages), BATCH))

    def _ask(self, address: str, before: dict[str, Any]) -> ApiAnswer | None:
        """Return the answer; ``None`` where there is no sitemap."""
        headers = {"Accept": "application/xml,text/xml,text/plain,*/*;q=0.5", **before.get("validators", {})}
        try:
            answer = self.client.get(address, headers=headers, allowed=frozenset({304, 404, 410}))
        except OtherHostError:
            return None
        except AnswerError as error:
            if error.status is not None and 400 <= error.status < 500 and error.status != 429:
                return None
            raise
        return None if answer.status in (404, 410) else answer

    def _remember(self, address: str, read: dict[str, Any]) -> None:
        """Note that a sitemap was read; those that it names come next."""
        progress = self.progress
        progress.read[address] = read
        pending = progress.pending or []
        waiting = {each[0] for each in pending} | progress.read.keys()
        for target, changed_at in read.get("sitemaps", ()):
            whole = normalized(target, address)
            if whole and self.scope.is_ours(whole) and whole not in waiting and len(waiting) < MAX_SITEMAPS:
                pending.append([whole, changed_at])
                waiting.add(whole)
