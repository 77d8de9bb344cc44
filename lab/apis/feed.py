"""A server of one feed, as RSS or Atom, with an ETag.

Source: rssboard.org/rss-specification, RFC 4287 (Atom), RFC 9110 (conditional requests).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from xml.sax.saxutils import escape

from lab.apis.server import Api, Reply, Request
from nornweave.core.types import digest

BASE = datetime(2026, 1, 1, tzinfo=UTC)
PATH = "/feed.xml"


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """An entry; ``changed`` counts hours since ``BASE``."""

    title: str
    html: str
    changed: int


class FeedServer(Api):
    """A feed; every change moves its clock by an hour.

    Attributes:
        is_atom: it is Atom, else RSS 2.0.
        listed: how many of the newest entries it lists.
    """

    def __init__(self, *, is_atom: bool = False, listed: int = 1_000) -> None:
        super().__init__()
        self.entries: dict[int, FeedEntry] = {}
        self.is_atom = is_atom
        self.listed = listed
        self.hours = 0

    def write(self, title: str, html: str) -> int:
        self.hours += 1
        number = len(self.entries) + 1
        self.entries[number] = FeedEntry(title, html, self.hours)
        return number

    def edit(self, number: int, html: str) -> None:
        self.hours += 1
        self.entries[number] = replace(self.entries[number], html=html, changed=self.hours)

    def handle(self, request: Request) -> Reply:
        if request.path != PATH:
            return Reply(b"<h1>Not found</h1>", 404, {"content-type": "text/html"})
        content = self.document()
        headers = {"content-type": "application/xml", "etag": f'"{digest(content)[:12]}"'}
        if request.headers.get("if-none-match") == headers["etag"]:
            return Reply(status=304, headers=headers)
        return Reply(content, headers=headers)

    def document(self) -> bytes:
        newest = sorted(self.entries, reverse=True)[: self.listed]
        rendered = "".join(map(self._atom if self.is_atom else self._rss, newest))
        if self.is_atom:
            return f'<feed xmlns="http://www.w3.org/2005/Atom"><title>News</title>{rendered}</feed>'.encode()
        return f'<rss version="2.0"><channel><title>News</title>{rendered}</channel></rss>'.encode()

    def _rss(self, number: int) -> str:
        entry = self.entries[number]
        moment = format_datetime(BASE + timedelta(hours=entry.changed))
        return (
            f"<item><title>{escape(entry.title)}</title><link>{_url(number)}</link><guid>{number}</guid>"
            f"<author>ann@example.org</author><pubDate>{moment}</pubDate>"
            f"<description>{escape(entry.html)}</description></item>"
        )

    def _atom(self, number: int) -> str:
        entry = self.entries[number]
        moment = (BASE + timedelta(hours=entry.changed)).isoformat()
        return (
            f'<entry><title>{escape(entry.title)}</title><link href="{_url(number)}"/><id>{number}</id>'
            f"<author><name>ann@example.org</name></author><updated>{moment}</updated>"
            f'<content type="html">{escape(entry.html)}</content></entry>'
        )


def _url(number: int) -> str:
    return f"https://news.example.org/{number}"


def large(entries: int) -> FeedServer:
    """Return a feed of so many entries, deterministic."""
    server = FeedServer(listed=entries)
    for number in range(entries):
        server.write(f"Topic {number}", f"<p>Topic {number} is about subject {number * 7919 % 1013}.</p>")
    return server
