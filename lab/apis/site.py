"""A documentation site: pages with links, sitemaps, robots.txt, ETags and dates.

Source: sitemaps.org/protocol.html, RFC 9309 (robots.txt), RFC 9110 (conditional requests).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from xml.sax.saxutils import escape

from lab.apis.server import Api, Reply, Request
from nornweave.core.types import digest

BASE = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class SitePage:
    """A page; ``changed`` counts hours since ``BASE``."""

    title: str
    text: str = ""
    links: tuple[str, ...] = ()
    head: str = ""
    changed: int = 0
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    listed: bool = True


class SiteServer(Api):
    """A site; every change moves its clock by an hour.

    Attributes:
        has_sitemap: ``/sitemap.xml`` lists the pages that are ``listed``.
        dates: its sitemap says when pages changed.
        per_sitemap: pages of one sitemap; with more of them ``/sitemap.xml`` is an index.
        robots: content of robots.txt; ``None`` answers 404.
        validators: pages have an ETag and a date.
    """

    def __init__(self, *, has_sitemap: bool = True, dates: bool = True, per_sitemap: int = 1_000) -> None:
        super().__init__()
        self.pages: dict[str, SitePage] = {}
        self.other: dict[str, Reply] = {}
        self.has_sitemap = has_sitemap
        self.dates = dates
        self.per_sitemap = per_sitemap
        self.robots: str | None = None
        self.validators = True
        self.hours = 0

    def put(self, path: str, text: str = "", *, links: Iterable[str] = (), **more: object) -> str:
        self.hours += 1
        title = path.rstrip("/").rpartition("/")[2].removesuffix(".html").capitalize() or "Home"
        page = SitePage(title, text or f"{title} says something.", tuple(links), changed=self.hours)
        self.pages[path] = replace(page, **more)  # type: ignore[arg-type]
        return path

    def change(self, path: str, **more: object) -> None:
        self.hours += 1
        self.pages[path] = replace(self.pages[path], changed=self.hours, **more)  # type: ignore[arg-type]

    def delete(self, path: str) -> None:
        del self.pages[path]

    def asked(self) -> list[str]:
        """Return the paths of pages that were asked for."""
        return [each.path for each in self.requests if each.path not in ("/robots.txt",) and "sitemap" not in each.path]

    def handle(self, request: Request) -> Reply:
        if request.path in self.other:
            return self.other[request.path]
        if request.path == "/robots.txt":
            return Reply(status=404) if self.robots is None else _text(self.robots)
        if self.has_sitemap and request.path.startswith("/sitemap"):
            return self._sitemap(request)
        page = self.pages.get(request.path)
        return Reply(b"<h1>Not found</h1>", 404, _HTML) if page is None else self._page(page, request)

    def _page(self, page: SitePage, request: Request) -> Reply:
        if page.status != 200:
            return Reply(b"<h1>Hm</h1>", page.status, {**_HTML, **page.headers})
        content = page.raw if page.raw is not None else rendered(page)
        changed = format_datetime(BASE + timedelta(hours=page.changed), usegmt=True)
        validators = {"etag": f'"{digest(content)[:12]}"', "last-modified": changed} if self.validators else {}
        if self.validators and request.headers.get("if-none-match") == validators["etag"]:
            return Reply(status=304, headers=validators)
        return Reply(content, headers={**_HTML, **validators, **page.headers})

    def _sitemap(self, request: Request) -> Reply:
        paths = sorted(path for path, page in self.pages.items() if page.listed)
        parts = [paths[at : at + self.per_sitemap] for at in range(0, len(paths), self.per_sitemap)]
        number = request.path.removeprefix("/sitemap").removesuffix(".xml").removeprefix("-")
        if number and int(number) >= len(parts):
            return Reply(status=404)
        if number:
            return self._answer(_urlset(self._entry("url", path) for path in parts[int(number)]), request)
        if len(parts) <= 1:
            return self._answer(_urlset(self._entry("url", path) for path in paths), request)
        entries = []
        for at, part in enumerate(parts):
            changed = BASE + timedelta(hours=max(self.pages[path].changed for path in part))
            entries.append(
                f"<sitemap><loc>{self.url}/sitemap-{at}.xml</loc><lastmod>{changed.isoformat()}</lastmod></sitemap>"
            )
        return self._answer(_document("sitemapindex", entries), request)

    def _answer(self, content: bytes, request: Request) -> Reply:
        headers = {"content-type": "application/xml", "etag": f'"{digest(content)[:12]}"'}
        if request.headers.get("if-none-match") == headers["etag"]:
            return Reply(status=304, headers=headers)
        return Reply(content, headers=headers)

    def _entry(self, name: str, path: str) -> str:
        changed = BASE + timedelta(hours=self.pages[path].changed)
        date = f"<lastmod>{changed.isoformat()}</lastmod>" if self.dates else ""
        return f"<{name}><loc>{escape(self.url + path)}</loc>{date}</{name}>"


_HTML = {"content-type": "text/html; charset=utf-8"}


def rendered(page: SitePage) -> bytes:
    """Return a page as a theme would show it: navigation around the content."""
    links = "".join(f'<li><a href="{link}">{link}</a></li>' for link in page.links)
    return f"""<!doctype html><html><head><title>{page.title} - Docs</title>{page.head}</head><body>
<nav><ul>{links}</ul></nav>
<main><article><h1 id="{page.title.lower()}">{page.title}<a class="headerlink" href="#{page.title.lower()}">¶</a></h1>
<p>{page.text}</p></article></main>
<footer>Made with care</footer></body></html>""".encode()


def _urlset(entries: Iterable[str]) -> bytes:
    return _document("urlset", entries)


def _document(name: str, entries: Iterable[str]) -> bytes:
    start = f'<?xml version="1.0" encoding="UTF-8"?>\n<{name} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    return f"{start}{''.join(entries)}</{name}>".encode()


def _text(content: str) -> Reply:
    return Reply(content.encode(), headers={"content-type": "text/plain"})


def large(pages: int) -> SiteServer:
    """Return a site of so many pages below ``/guide/``, in sitemaps of a thousand pages, deterministic."""
    site = SiteServer()
    site.put("/guide/")
    for number in range(1, pages):
        site.put(f"/guide/topic-{number}.html", f"Topic {number} is about subject {number * 7919 % 1013}.")
    return site


def small() -> SiteServer:
    """Return a site of one page, which speaks of zebracorns."""
    site = SiteServer()
    site.put("/guide/", "Zebracorns live in the savannah.")
    return site
