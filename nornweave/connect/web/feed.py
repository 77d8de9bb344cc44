"""Read the pages of a website that lie below a prefix.

A pass finds addresses first: in the site's sitemaps, or, where they name no page below the prefix, by following links
from the start page, the nearest ones first. Addresses wait in a queue inside the mirror, so that a pass that was
interrupted goes on with the next one, and memory does not grow with the site.

A full pass asks for every page, if it changed. A pass for changes asks for those whose ``lastmod`` in the sitemap
changed, for new ones, and for those that failed. Where there is no sitemap, it asks for the start page and for what
that newly links to.

Source: sitemaps.org/protocol.html, RFC 9309 (robots.txt), RFC 6596 (canonical links), RFC 9110 (conditional requests).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator

from nornweave.connect.mirror.addresses import scope_of
from nornweave.connect.mirror.answers import Limits
from nornweave.connect.mirror.api_client import ApiClient
from nornweave.connect.mirror.feed import Feed, RecordPage
from nornweave.connect.mirror.known import Body, Known, Pass
from nornweave.connect.web.connector import WebSettings
from nornweave.connect.web.crawl import Crawl
from nornweave.connect.web.page import PageReader, changed_at
from nornweave.connect.web.queue import Reach
from nornweave.connect.web.sitemaps import Robots
from nornweave.core.errors import DocumentSkipped
from nornweave.read.web_document import document_version, web_document, write_page


class WebFeed(Feed):
    """The pages of one website."""

    parser = staticmethod(web_document)

    def __init__(
        self, settings: WebSettings, *, limits: Limits | None = None, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        """Store the parameters; no request is made yet.

        Args:
            sleep: waits for so many seconds where robots.txt asks for it.

        Raises:
            ConfigError: an address, a host or a glob has the wrong form.
        """
        self.domain = settings.domain
        self.options = {"domain": settings.domain}
        scope = scope_of(settings.url or "", settings.prefix, settings.hosts)
        bounds = (settings.max_pages, settings.include, settings.exclude)
        self._reach = Reach(scope, *bounds, settings.max_minutes * 60, settings.max_requests)
        self._client = ApiClient(
            scope.prefix,
            hosts=scope.authorities,
            token_name="nothing else",  # noqa: S106 - what raises a rate limit; there is no token
            limits=limits,
        )
        self._sleep = sleep
        self.version = document_version()
        of_site = ["1", scope.start, scope.prefix, *sorted(scope.hosts)]
        self.scope = json.dumps([of_site, settings.max_pages, settings.include, settings.exclude])

    def pages(self, state: Pass, known: Known) -> Iterator[RecordPage]:
        robots = Robots(self._client)
        reader = PageReader(self._client, robots, self._reach.scope, self._sleep)
        return Crawl(self._reach, self._client, robots, reader, state, known).pages()

    def assemble(self, path: str, records: Iterable[tuple[str, Body]], known: Known) -> bytes:  # noqa: ARG002
        body = next((body for _, body in records), None)
        if body is None:
            raise DocumentSkipped("no page")
        return write_page(body, changed_at(body))
