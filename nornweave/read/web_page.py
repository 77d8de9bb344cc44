"""Read a page of a website: content, links and rules for robots; and build a document from a stored page."""

from __future__ import annotations

import base64
import json
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from bs4 import BeautifulSoup, Tag
from bs4.exceptions import ParserRejectedMarkup

from nornweave.core.errors import DocumentError
from nornweave.core.text.decode import decode
from nornweave.core.text.inline_markup import without_long_references
from nornweave.core.types import NO_METADATA, Document, Domain, Entry, Metadata, SourceId
from nornweave.read.blocks.html import is_sound
from nornweave.read.file import assemble, parse_version
from nornweave.read.front_matter import describe
from nornweave.read.isolated import metadata_from
from nornweave.read.parsed import Parsed
from nornweave.read.pdf.document import parse_pdf
from nornweave.read.web_content import attribute_values, length, main_content, plain, title_of

VERSION = "web-page-1"
"""Raise it when the same page comes out as other content."""
# Raise it when the same page comes out as another document.
_DOCUMENT_VERSION = "web-1"

MAX_LINKS = 10_000
_AGENT = "nornweave"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPage:
    """The content of a web page.

    Attributes:
        content: the main content as HTML.
        links: the links in the order of the page, as they are written, without repetitions and fragments. Links that
            the page asks not to follow are left out.
        base: the address to which links are relative, if it is not the address of the page; else ``None``.
        canonical: the address that the page names as its own, as it is written.
        refresh: the address to which the page redirects browsers immediately.
    """

    content: str
    has_text: bool = True
    title: str | None = None
    updated_at: datetime | None = None
    canonical: str | None = None
    refresh: str | None = None
    base: str | None = None
    links: tuple[str, ...] = ()
    no_index: bool = False
    metadata: Metadata = field(default_factory=lambda: NO_METADATA)


def read_web_page(values: Mapping[str, Any], raw: bytes) -> WebPage:
    """Read a page.

    Args:
        values: ``charset`` as the server names it, or ``None`` if the server does not name it.

    Raises:
        DocumentError: the page is too large, empty or binary.
    """
    text = _decoded(raw, values.get("charset"))
    facts = describe(text, "html")
    page = WebPage(content=text, title=facts.title, updated_at=facts.updated_at, metadata=facts.metadata)
    if not is_sound(text):
        return page
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            soup = BeautifulSoup(text, "html.parser")
    except (ParserRejectedMarkup, AssertionError) as error:
        raise DocumentError(f"no HTML that can be read ({error}); exclude the page") from error
    robots = _robots(soup)
    links = () if "nofollow" in robots else tuple(filter(None, dict.fromkeys(_links(soup))))
    canonical, refresh, base = _canonical(soup), _refresh(soup), _base(soup)
    root = main_content(soup)
    return replace(
        page,
        content=plain(root),
        has_text=length(root) > 0,
        title=title_of(root, facts.title),
        canonical=canonical,
        refresh=refresh,
        base=base,
        links=links,
        no_index="noindex" in robots,
    )


def robots_rules(content: str) -> frozenset[str]:
    """Return the rules in a robots meta tag or an ``X-Robots-Tag``.

    ``none`` stands for ``noindex`` and ``nofollow``.
    """
    rules = {word.strip().lower() for word in content.split(",")}
    return frozenset(rules | ({"noindex", "nofollow"} if "none" in rules else set()))


def _decoded(raw: bytes, charset: str | None) -> str:
    declared = charset or _declared(raw)
    if declared and declared.lower() not in ("utf-8", "utf8"):
        with suppress(LookupError, UnicodeDecodeError, ValueError):
            raw = raw.decode(declared).encode()
    return without_long_references(decode(raw).replace("\r\n", "\n"))


def _declared(raw: bytes) -> str | None:
    match = re.search(rb"<meta[^<>]{0,200}?charset=[\"']?([\w-]{1,40})", raw[:4_096], re.I)
    return match[1].decode("ascii") if match else None


def _robots(soup: BeautifulSoup) -> frozenset[str]:
    rules: set[str] = set()
    for meta in soup.find_all("meta", limit=1_000):
        if str(meta.get("name", "")).strip().lower() in ("robots", _AGENT):
            rules |= robots_rules(str(meta.get("content", "")))
    return frozenset(rules)


def _links(soup: BeautifulSoup) -> Iterator[str]:
    for link in soup.find_all(["a", "area", "frame"], limit=MAX_LINKS):
        target = link.get("src" if link.name == "frame" else "href")
        if isinstance(target, str) and "nofollow" not in attribute_values(link, "rel"):
            yield target.strip().partition("#")[0]


def _canonical(soup: BeautifulSoup) -> str | None:
    for link in soup.find_all("link", limit=1_000):
        if "canonical" in attribute_values(link, "rel") and link.get("href"):
            return str(link["href"]).strip()
    return None


def _refresh(soup: BeautifulSoup) -> str | None:
    """Return the target of ``<meta http-equiv=refresh>`` if the page redirects within a few seconds, else ``None``."""
    for meta in soup.find_all("meta", limit=1_000):
        if str(meta.get("http-equiv", "")).lower() == "refresh":
            match = re.match(
                r"\s*[0-5]?(?:\.\d+)?\s*[;,]\s*(?:url\s*=)?\s*['\"]?([^'\"]+)", str(meta.get("content", "")), re.I
            )
            if match:
                return match[1].strip()
    return None


def _base(soup: BeautifulSoup) -> str | None:
    base = soup.find("base")
    return str(base["href"]).strip() if isinstance(base, Tag) and base.get("href") else None


def document_version() -> str:
    """Return a version that changes whenever the same page may become another document."""
    return f"{_DOCUMENT_VERSION},{VERSION},{parse_version()}"


def write_page(body: Mapping[str, Any], changed_at: str | None) -> bytes:
    """Return the bytes of a page: a line of JSON with its properties, such as the time ``changed_at``, and its content.

    ``changed_at`` is ``None`` if the time is unknown.
    """
    known = {key: body.get(key) for key in ("url", "format", "title", "metadata")}
    content = base64.b64decode(body["raw"]) if "raw" in body else str(body["content"]).encode("utf-8", "replace")
    line = json.dumps({**known, "updated_at": changed_at}, sort_keys=True)
    return line.encode() + b"\n" + content


def web_document(source_id: SourceId, entry: Entry, raw: bytes, *, domain: Domain) -> Document:
    """Build the document of a page.

    Raises:
        DocumentError: the content of the page is broken or empty.
    """
    line, _, content = raw.partition(b"\n")
    try:
        known = json.loads(line)
        kind, address = str(known["format"]), str(known["url"])
    except (ValueError, KeyError, TypeError) as error:
        raise DocumentError(f"a stored page of another form ({error!r}); sync again") from error
    parsed = _parsed(kind, content)
    stated = known.get("updated_at")
    parsed = replace(
        parsed,
        title=known.get("title") or parsed.title,
        url=address,
        updated_at=parsed.updated_at or (datetime.fromisoformat(stated) if stated else None),
        metadata=metadata_from(known.get("metadata") or dict(parsed.metadata)),
    )
    return assemble(source_id, domain, entry, raw, parsed, kind, is_dated=False)


def _parsed(kind: str, content: bytes) -> Parsed:
    if kind == "pdf":
        return parse_pdf(content)
    text = decode(content)
    return Parsed(text=text) if kind == "html" else describe(text, kind)
