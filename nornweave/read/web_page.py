"""Read a page of a website: content, links and rules for robots; and build a document from a stored page.

Find the main content of a web page, without navigation and the like, and write it as plain HTML.

The content is the element in which generators of documentation put it (``article``, ``main``, one of their own).
Every heading gets the ``id`` that the page's own links use for it, so that a section can be cited.
``docs/decisions/0023-websites.md`` has the comparison with extractors of articles, which lose code and anchors.
"""

from __future__ import annotations

import base64
import json
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import Any

from bs4 import BeautifulSoup, Tag
from bs4.element import Comment, Doctype, PreformattedString, ProcessingInstruction
from bs4.exceptions import ParserRejectedMarkup

from nornweave.core.errors import DocumentError
from nornweave.core.text.decode import decode
from nornweave.core.text.inline_markup import without_long_references
from nornweave.core.types import NO_METADATA, Document, Domain, Entry, Metadata, SourceId
from nornweave.read.blocks.html import is_sound
from nornweave.read.blocks.unseen import is_hidden
from nornweave.read.file import assemble, parse_version
from nornweave.read.front_matter import describe
from nornweave.read.isolated import metadata_from
from nornweave.read.parsed import Parsed
from nornweave.read.pdf.document import parse_pdf

VERSION = "web-page-1"
"""Raise it when the same page comes out as other content."""
# Raise it when the same page comes out as another document.
_DOCUMENT_VERSION = "web-1"

MAX_LINKS = 10_000
_AGENT = "nornweave"

_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_NAMED = (*_HEADINGS, "dt", "summary", "caption")
# How far the anchor of a heading is looked for: elements above it, and nodes inside it.
_ABOVE = 4
_INSIDE = 50


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


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Never content, wherever it stands.
_NOISE_TAGS = _words("script style template noscript iframe object svg nav form dialog button")
_NOISE_ROLES = _words("navigation search contentinfo banner dialog")
_NOISE_IDS = _words("menu-bar sidebar side-nav nav-path MSearchSelectWindow toc copy-path")
# Links to a heading itself, line numbers, names of icons; then what themes call their navigation.
_NOISE_CLASSES = _words("""
    headerlink header-anchor hash-link anchorjs-link sl-anchor-link viewcode-link srclink src linenos linenodiv
    sr-only visually-hidden material-icons md-icon copybtn
    sphinxsidebar related rst-footer-buttons wy-nav-side wy-breadcrumbs prev-next-area bd-sidebar-primary
    bd-sidebar-secondary bd-header toc-drawer
    md-sidebar md-source-file md-header theme-doc-toc-mobile theme-doc-toc-desktop theme-doc-breadcrumbs
    theme-doc-footer theme-edit-this-page pagination-nav table-of-contents
    nav-wide-wrapper nav-wrapper VPDocFooter vp-doc-footer edit-link
    navheader navfooter navpath topNav bottomNav subNav fixedNav sub-nav-list breadcrumb breadcrumbs
    skip-nav skipNav skip-link
""")
# Asides that are part of the text: notes, warnings, footnotes.
_NOTE = re.compile(
    r"admonition|note|warning|tip|caution|callout|hint|topic|starlight-aside|alert|important|citation", re.I
)
# Where generators put the text; the first that a page has once and that holds enough of it is taken.
_CONTAINERS: tuple[tuple[str, str], ...] = (
    ("class", "theme-doc-markdown"),
    ("class", "md-content__inner"),
    ("class", "theme-default-content"),
    ("class", "vp-doc"),
    ("class", "bd-article"),
    ("itemprop", "articleBody"),
    ("id", "doc-content"),
    ("class", "td-content"),
    ("name", "article"),
    ("role", "main"),
    ("name", "main"),
    ("class", "body"),
    ("id", "main-content"),
    ("id", "content"),
)
_KEPT_ATTRIBUTES = frozenset({"id", "colspan", "rowspan", "start"})
_LEAST_SHARE = 0.5
_BLANK = re.compile(r"\s+")


def main_content(soup: BeautifulSoup) -> Tag:
    """Return the element with the main content, without navigation and similar parts.

    Headings get their anchors as ids.
    """
    body = soup.body or soup
    _name_headings(body)
    _drop_noise(body)
    return _container(body)


def _drop_noise(body: Tag) -> None:
    around = _around(body, ("main", "article"))
    titled = _around(body, ("h1",))
    waiting = [body]
    while waiting:
        for tag in [child for child in waiting.pop().contents if isinstance(child, Tag)]:
            is_aside = tag.name in ("footer", "aside")
            if is_aside and _is_note(tag):
                tag.name = "div"
            elif tag.name == "form" and id(tag) in titled:
                tag.name = "div"  # some servers wrap the whole page in a form
            elif id(tag) not in around and (is_aside or _is_noise(tag)):
                tag.extract()
                continue
            waiting.append(tag)


def _around(body: Tag, names: Sequence[str]) -> set[int]:
    """Return the ``id()`` of each element with one of these names, and of all elements around it."""
    around: set[int] = set()
    for tag in body.find_all(list(names)):
        for above in (tag, *tag.parents):
            if id(above) in around:
                break
            around.add(id(above))
    return around


def _is_note(tag: Tag) -> bool:
    return bool(_NOTE.search(" ".join(attribute_values(tag, "class")))) or tag.get("role") in (
        "note",
        "doc-footnote",
        "doc-tip",
    )


def _is_noise(tag: Tag) -> bool:
    if tag.name in _NOISE_TAGS:
        return True
    if not tag.attrs:
        return False
    return (
        tag.get("role") in _NOISE_ROLES
        or tag.get("id") in _NOISE_IDS
        or is_hidden([(name, tag.get(name)) for name in ("hidden", "style", "role") if name in tag.attrs])
        or not _NOISE_CLASSES.isdisjoint(attribute_values(tag, "class"))
        or (tag.name == "table" and "navigation" in attribute_values(tag, "class"))
    )


def _container(body: Tag) -> Tag:
    whole = length(body)
    candidates: dict[tuple[str, str], list[Tag]] = {mark: [] for mark in _CONTAINERS}
    for tag in body.find_all(True):
        marks = [("name", tag.name), *(("class", name) for name in attribute_values(tag, "class"))]
        marks += [(key, str(tag[key])) for key in ("id", "role", "itemprop") if key in tag.attrs]
        for mark in marks:
            if mark in candidates:
                candidates[mark].append(tag)
    for tags in candidates.values():
        if len(tags) == 1 and length(tags[0]) >= _LEAST_SHARE * whole:
            return tags[0]
    return body


def length(tag: Tag) -> int:
    """Count the characters of an element's text."""
    return sum(len(text.strip()) for text in tag.strings)


def title_of(root: Tag, named: str | None) -> str | None:
    """Return the text of the first heading; without a heading ``named``, the page's title, which may be ``None``."""
    heading = root.find("h1")
    said = _BLANK.sub(" ", heading.get_text()).strip() if isinstance(heading, Tag) else ""
    return said[:500] or named


def attribute_values(tag: Tag, attribute: str) -> list[str]:
    """Return the values of an attribute. Some attributes have several values."""
    value: Any = tag.get(attribute) or []
    return value.split() if isinstance(value, str) else value


def plain(root: Tag) -> str:
    """Return the content as HTML, without elements that only styles or scripts need."""
    for text in root.find_all(string=lambda text: isinstance(text, PreformattedString)):
        if isinstance(text, Comment | Doctype | ProcessingInstruction):
            text.extract()
    for tag in [root, *root.find_all(True)]:
        kept = {name: value for name, value in tag.attrs.items() if name in _KEPT_ATTRIBUTES}
        if tag.name not in _NAMED:
            kept.pop("id", None)
        if tag.name in ("pre", "code") and (language := _language(tag)):
            kept["class"] = language
        tag.attrs = kept
    for span in root.find_all(["span", "font"]):  # those of coloured code make up half of some pages
        span.unwrap()
    return str(root)


def _language(tag: Tag) -> str | None:
    marks: Iterable[str] = attribute_values(tag, "class")
    return next((mark for mark in marks if mark.startswith(("language-", "lang-", "highlight-"))), None)


def _name_headings(body: Tag) -> None:
    """Give every heading the id under which the page links to it."""
    opened: set[int] = set()
    for heading in body.find_all(_HEADINGS):
        anchor = _own_anchor(heading) or _of_parent(heading, opened) or _of_sibling(heading)
        opened.update(id(parent) for parent in islice(heading.parents, _ABOVE))
        if anchor:
            heading["id"] = anchor


def _own_anchor(heading: Tag) -> str | None:
    if own := heading.get("id"):
        return str(own)
    for inner in islice(_inside(heading), _INSIDE):
        if inner.name not in ("a", "span"):
            continue
        if name := inner.get("id") or inner.get("name"):
            return str(name)
        target = str(inner.get("href") or "")
        if len(target) > 1 and target.startswith("#"):
            return target[1:]
    return None


def _inside(heading: Tag) -> Iterator[Tag]:
    """Yield the elements inside of a heading, in order. ``Tag.descendants`` would be slower."""
    waiting = heading.contents[_INSIDE::-1]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, Tag):
            yield inner
            waiting += inner.contents[_INSIDE::-1]


def _of_parent(heading: Tag, opened: set[int]) -> str | None:
    """Return the id of the section that a heading opens; ``None`` if the heading opens no section.

    ``opened`` has the ``id()`` of the elements around earlier headings.
    """
    for parent in islice(heading.parents, _ABOVE):
        if parent.name in ("body", "main", "article", "html", "[document]") or id(parent) in opened:
            return None
        if parent.get("id"):
            return str(parent["id"])
    return None


def _of_sibling(heading: Tag) -> str | None:
    """Return the name of a link target directly before the heading; ``None`` if there is none."""
    before = heading.find_previous_sibling()
    if isinstance(before, Tag) and before.name in ("a", "span") and not before.contents:
        name = before.get("id") or before.get("name")
        return str(name) if name else None
    return None
