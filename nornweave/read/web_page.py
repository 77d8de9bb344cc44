"""Read a page of a website: its main content as plain HTML, its links, and what it asks of robots.

The content is the element in which generators of documentation put it (``article``, ``main``, one of their own),
without navigation. Every heading gets the ``id`` that the page's own links use for it, so that a section can be cited.
``docs/decisions/0023-websites.md`` has the comparison with extractors of articles, which lose code and anchors.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from bs4 import BeautifulSoup, Tag
from bs4.element import Comment, Doctype, PreformattedString, ProcessingInstruction
from bs4.exceptions import ParserRejectedMarkup

from nornweave.core.errors import DocumentError
from nornweave.core.text.decode import decode
from nornweave.core.text.inline_markup import without_long_references
from nornweave.core.types import NO_METADATA, Metadata
from nornweave.read.chunking.outlines.html import is_sound
from nornweave.read.front_matter import describe
from nornweave.read.web_anchors import HEADINGS, name_headings

VERSION = "web-page-1"
"""Raise it when the same page comes out as other content."""

MAX_LINKS = 10_000
_AGENT = "nornweave"
_NAMED = (*HEADINGS, "dt", "summary", "caption")


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
_LANGUAGE = re.compile(r"(?:highlight-|language-|lang-|brush:\s*)?[A-Za-z][\w+#-]{0,30}")
_LEAST_SHARE = 0.5
_BLANK = re.compile(r"\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPage:
    """What a page says.

    Attributes:
        content: HTML of its main content.
        links: as they stand in the page, in order, each once, without fragments and without those that it asks not to
            follow.
        base: what links are relative to, where that is not the page.
        canonical: the address that the page gives for itself, as it stands.
        refresh: the address that it sends browsers on to at once.
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
        values: ``charset`` as its server names it, or ``None``.

    Raises:
        DocumentError: it is too large, empty or binary.
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
    root = _main_content(soup)
    return replace(
        page,
        content=_plain(root),
        has_text=_length(root) > 0,
        title=_title(root, facts.title),
        canonical=canonical,
        refresh=refresh,
        base=base,
        links=links,
        no_index="noindex" in robots,
    )


def robots_rules(content: str) -> frozenset[str]:
    """Read the value of a robots meta tag or an ``X-Robots-Tag``; ``none`` means both rules."""
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
        if isinstance(target, str) and "nofollow" not in _values(link, "rel"):
            yield target.strip().partition("#")[0]


def _canonical(soup: BeautifulSoup) -> str | None:
    for link in soup.find_all("link", limit=1_000):
        if "canonical" in _values(link, "rel") and link.get("href"):
            return str(link["href"]).strip()
    return None


def _refresh(soup: BeautifulSoup) -> str | None:
    """Return where ``<meta http-equiv=refresh>`` leads within a few seconds."""
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


def _values(tag: Tag, attribute: str) -> list[str]:
    value: Any = tag.get(attribute) or []
    return value.split() if isinstance(value, str) else value


def _main_content(soup: BeautifulSoup) -> Tag:
    """Return the element with the main content, without navigation and the like; headings know their anchors."""
    body = soup.body or soup
    name_headings(body)
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
    """Return the elements of these names and all that hold one."""
    around: set[int] = set()
    for tag in body.find_all(list(names)):
        for above in (tag, *tag.parents):
            if id(above) in around:
                break
            around.add(id(above))
    return around


def _is_note(tag: Tag) -> bool:
    return bool(_NOTE.search(" ".join(_values(tag, "class")))) or tag.get("role") in ("note", "doc-footnote", "doc-tip")


def _is_noise(tag: Tag) -> bool:
    if tag.name in _NOISE_TAGS:
        return True
    if not tag.attrs:
        return False
    return (
        tag.get("role") in _NOISE_ROLES
        or tag.get("id") in _NOISE_IDS
        or ("hidden" in tag.attrs and tag.get("role") != "tabpanel")
        or not _NOISE_CLASSES.isdisjoint(_values(tag, "class"))
        or (tag.name == "table" and "navigation" in _values(tag, "class"))
    )


def _container(body: Tag) -> Tag:
    whole = _length(body)
    candidates: dict[tuple[str, str], list[Tag]] = {mark: [] for mark in _CONTAINERS}
    for tag in body.find_all(True):
        marks = [("name", tag.name), *(("class", name) for name in _values(tag, "class"))]
        marks += [(key, str(tag[key])) for key in ("id", "role", "itemprop") if key in tag.attrs]
        for mark in marks:
            if mark in candidates:
                candidates[mark].append(tag)
    for tags in candidates.values():
        if len(tags) == 1 and _length(tags[0]) >= _LEAST_SHARE * whole:
            return tags[0]
    return body


def _length(tag: Tag) -> int:
    return sum(len(text.strip()) for text in tag.strings)


def _title(root: Tag, named: str | None) -> str | None:
    heading = root.find("h1")
    said = _BLANK.sub(" ", heading.get_text()).strip() if isinstance(heading, Tag) else ""
    return said[:500] or named


def _plain(root: Tag) -> str:
    """Write the content without what only styles or scripts need."""
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
    marks: Iterable[str] = _values(tag, "class")
    return next((mark for mark in marks if mark.startswith(("language-", "lang-", "highlight-"))), None)
