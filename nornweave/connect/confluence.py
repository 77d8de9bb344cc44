"""Read the pages and blog posts of Confluence Cloud through its REST API, and the documents that they become.

A pass asks for the spaces, then for pages, then for blog posts. Everything is listed without bodies, 250 pages a
request; only the bodies whose version changed are asked for: so a pass sees whatever came, changed, moved or went, and
needs no list of changes and none of the trash.

A body is in Confluence's storage format, XHTML with elements of its own: macros (``ac:structured-macro``), links and
images whose target is an element (``ri:page``), task lists, layouts. It becomes plain HTML, which the HTML outline cuts
at headings. What a reader sees stays; parameters, ids and colours go. Each element is written when what is inside it
is; of markup that is broken or nested beyond what people write, only the text stays.

Sources: developer.atlassian.com/cloud/confluence/rest/v2;
confluence.atlassian.com/doc/confluence-storage-format-790796544.html; ``ac:adf-extension`` as Cloud writes it.
"""

from __future__ import annotations

import html
import json
import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString, PageElement
from bs4.exceptions import ParserRejectedMarkup

from nornweave.connect.connectors import SPACE_KEY, ConfluenceSettings
from nornweave.connect.conversation import as_is, clean_name, load_stored, mappings, parse_time
from nornweave.connect.mirror.api_client import AnswerError, Limits, listed
from nornweave.connect.mirror.atlassian import REFUSED, AtlassianSite, group_named, id_of, user_named, with_people
from nornweave.connect.mirror.feed import Body, Feed, FeedRecord, Known, Pass, RecordPage, pages_of, staged
from nornweave.core.access import RIGHTS
from nornweave.core.errors import DocumentSkipped, SourceUnavailableError
from nornweave.core.membership import Grant
from nornweave.core.text.inline_markup import unescaped, without_long_references
from nornweave.core.types import Document, Domain, Entry, JsonValue, SourceId, freeze
from nornweave.read.blocks.html import VOID_TAGS, is_sound
from nornweave.read.file import assemble
from nornweave.read.parsed import Parsed

# Tags that are written as they are, without their attributes.
_PLAIN = frozenset(
    {
        *("p", "br", "hr", "ul", "ol", "li", "dl", "dt", "dd", "blockquote", "pre", "code", "div", "section"),
        *("table", "thead", "tbody", "tfoot", "tr", "th", "td", "caption", "strong", "em", "b", "i", "u", "s", "del"),
        *("sub", "sup", "small", "kbd", "samp", "var", "q", "cite", "details", "summary", "figure", "figcaption"),
    }
)
_RENAMED = {
    "ac:task-list": "ul",
    "ac:task": "li",
    "ac:layout": "div",
    "ac:layout-section": "div",
    "ac:layout-cell": "div",
    "ac:rich-text-body": "div",
    "ac:adf-content": "div",
    "ac:caption": "div",
}
# Elements whose content no reader sees.
_SILENT = frozenset(
    {
        *("script", "style", "template", "ac:placeholder", "ac:task-id", "ac:task-uuid", "ac:adf-attribute"),
        *("ac:adf-parameter", "ac:default-parameter"),
    }
)
_MACROS = frozenset({"ac:structured-macro", "ac:macro"})
# Macros whose body is markup or code of the page's own workings.
_UNSEEN_MACROS = frozenset({"html", "html-bobswift", "style", "css", "javascript", "html-include"})
# Macros without a body of which a reader sees one parameter.
_SHOWN_PARAMETER = {"status": "title", "jira": "key", "jiraissues": "key", "roadmap": "title", "view-file": "name"}
_TARGETS = {
    "ri:page": "ri:content-title",
    "ri:blog-post": "ri:content-title",
    "ri:attachment": "ri:filename",
    "ri:space": "ri:space-key",
    "ri:url": "ri:value",
}
_EMOTICONS = {"tick": "✓", "cross": "✗", "yes": "✓", "no": "✗"}
_LANGUAGE = re.compile(r"[a-z][\w+#.-]{0,30}")
_LINK = re.compile(r"(?:https?|mailto):[^\s\"'<>]{1,2000}", re.I)
_TAG = re.compile(r"<[^<>]*>")
_NAMED_ACCOUNT = re.compile(r'ri:account-id="([\w:.-]{1,200})"')
_HEADINGS = {f"h{level}": f"h{min(level + 1, 6)}" for level in range(1, 7)}
_ANCHOR_CHARACTERS = 200
# Every level copies its content once more.
_MAX_DEPTH = 300
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def page_of(content: Mapping[str, Any], space: Body, base: str, kind: str) -> FeedRecord:
    """Return the record of a page or blog post, given its item in a list of the API.

    Args:
        base: the address to which the links in the list are relative.
        kind: the kind of content in the list.
    """
    identity = id_of(content["id"])
    version = as_is(content.get("version"), dict) or {}
    place = as_is((as_is(content.get("_links"), dict) or {}).get("webui"), str)
    path = f"{space['key']}/{identity}"
    if not isinstance(version["number"], int):
        raise TypeError(f"{str(version['number'])[:40]!r} is not a version")
    body: dict[str, JsonValue] = {
        "title": as_is(content.get("title"), str) or "",
        "kind": kind,
        "path": path,
        "author": as_is(content.get("authorId"), str),
        "editor": as_is(version.get("authorId"), str),
        "created": as_is(content.get("createdAt"), str),
        "updated": as_is(version.get("createdAt"), str),
        "version": version["number"],
        "url": f"{base}{place}" if place else f"{base}/pages/viewpage.action?pageId={identity}",
    }
    return FeedRecord(key=f"meta/{identity}/", document=path, body=body)


def body_of(content: Mapping[str, Any], page: FeedRecord) -> FeedRecord:
    """Return the text of a page.

    Raises:
        ValueError: the API sent no text.
    """
    storage = as_is((as_is(content.get("body"), dict) or {}).get("storage"), dict) or {}
    value = as_is(storage.get("value"), str)
    if value is None:
        raise ValueError(f"no body of {page.document}")
    return FeedRecord(key=page.key.replace("meta", "body"), document=page.document, body={"value": value})


def accounts_of(records: Iterable[FeedRecord]) -> Iterator[str]:
    """Yield the accounts of a page's authors and of the people whom the page mentions."""
    for each in records:
        yield from (str(each.body[key]) for key in ("author", "editor") if each.body.get(key))
        yield from mentioned_accounts(each.body.get("value", ""))


def spaces_of(known: Known) -> dict[str, Body]:
    """Return the stored records of the spaces to read, by space id."""
    return {key.split("/")[1]: body for key, body in known.under("space/")}


def confluence_document(source_id: SourceId, entry: Entry, raw: bytes) -> Document:
    """Build the document of a page: HTML under its title, with authors, date and space.

    Raises:
        DocumentSkipped: the page is empty.
        DocumentError: the content is too large, or the feed did not write it.
    """
    page = load_stored(raw, entry.path)
    title = clean_name(as_is(page.get("title"), str) or "")
    text = html_of_storage(as_is(page.get("storage"), str) or "", title, _names(page.get("names")))
    if not text:
        raise DocumentSkipped("no text on the page")
    parsed = Parsed(
        text=text,
        title=title or None,
        updated_at=parse_time(page.get("updated")),
        url=as_is(page.get("url"), str),
        metadata=_metadata(page),
    )
    document = assemble(source_id, Domain.DOCUMENTATION, entry, raw, parsed, "html", is_dated=False)
    return replace(document, revision=str(page["version"]) if isinstance(page.get("version"), int) else None)


def _metadata(page: Mapping[str, Any]) -> Mapping[str, Any]:
    created = parse_time(page.get("created"))
    people = (as_is(page.get(key), str) for key in ("author", "editor"))
    authors = tuple(dict.fromkeys(clean_name(name) for name in people if name))
    return freeze(
        {
            "source_type": "confluence",
            "authors": authors or None,
            "publication_date": created.date().isoformat() if created else None,
            "space": as_is(page.get("space"), str),
        }
    )


def _names(value: object) -> Mapping[str, str]:
    pairs = value.items() if isinstance(value, dict) else ()
    return {key: clean_name(name) for key, name in pairs if isinstance(name, str)}


# Of a list without bodies: as many as the API gives. Of one with bodies: a body may have megabytes.
WITHOUT_BODIES = 250
WITH_BODIES = 50
MAX_PEOPLE = 100
"""Names of one request."""
RESTRICTIONS = 100
GROUP_MEMBERS = 200
_OF_ONE = "restrictions.user,restrictions.group"
_EXPAND = "ancestors,restrictions.read.restrictions.user,restrictions.read.restrictions.group"
_API = "wiki/api/v2"
_SPACE_KEY = re.compile(SPACE_KEY, re.ASCII)
_ACCOUNT = re.compile(r"[\w:.-]{1,200}", re.ASCII)


class ConfluenceFeed(Feed):
    """The pages and blog posts of some spaces, or of all that the account may read."""

    domain = Domain.DOCUMENTATION
    version = "confluence-3"
    parser = staticmethod(confluence_document)

    def __init__(self, settings: ConfluenceSettings, *, limits: Limits | None = None) -> None:
        self._spaces = tuple(dict.fromkeys(settings.spaces))
        self._has_rights = RIGHTS in settings.restricted_to
        self.client = self._site = AtlassianSite(settings, "Confluence", "view the spaces", limits)
        self._asks_for_names = True
        self.scope = json.dumps(["confluence", 2, self._site.address, sorted(self._spaces)])

    def pages(self, state: Pass, known: Known) -> Iterator[RecordPage]:
        self._asks_for_names = True
        kinds = ("pages", "blogposts")
        stages = {kind: partial(self._contents, kind, known) for kind in kinds}
        if self._has_rights:
            stages["restrictions"] = partial(self._restrictions, known)
        yield from staged(state, {"spaces": self._read_spaces, **stages}, {})

    def assemble(self, path: str, records: Iterable[tuple[str, Body]], known: Known) -> bytes:
        """Return a page as JSON, with its body and the names of its authors and of the people whom it mentions."""
        bodies = {key.partition("/")[0]: body for key, body in records}
        if "meta" not in bodies or "body" not in bodies:
            raise DocumentSkipped(f"{path}: not read completely; the next sync brings the rest")
        page, storage = bodies["meta"], str(bodies["body"]["value"])
        names = {account: _name(account, known) for account in mentioned_accounts(storage)}
        content = {
            **page,
            "author": _name(page.get("author"), known),
            "editor": _name(page.get("editor"), known),
            "space": path.partition("/")[0],
            "storage": storage,
            "names": {account: name for account, name in names.items() if name},
        }
        return json.dumps(content, ensure_ascii=False, sort_keys=True).encode("utf-8", "replace")

    def origin(self, known: Known) -> str:  # noqa: ARG002
        """Return the address of the site. Several sources may read spaces of the same site."""
        return self._site.site

    def readers(self, path: str, known: Known) -> Sequence[Collection[str]]:
        """Return the readers of a page: the readers of its space, and those of each restricted page above it.

        If the page itself is restricted, its own readers are included too. A page without known restrictions counts as
        restricted.
        """
        key, _, identity = path.partition("/")
        chain = known.body(f"above/{identity}/")
        if chain is None:
            return []
        above = [identity, *(str(each) for each in chain["pages"])]
        closed = [each for each in above if self._is_closed(known, each)]
        return [(f"confluence:space:{key}",), *((f"confluence:page:{each}",) for each in closed)]

    @staticmethod
    def _is_closed(known: Known, identity: str) -> bool:
        is_known = known.body(f"above/{identity}/") or known.body(f"alone/{identity}/")
        return is_known is None or known.body(f"readers/{identity}/") is not None

    def members(self, known: Known) -> Iterator[Grant]:
        """Yield grants that say who may read the spaces and who is in the groups.

        The readers of restricted pages are those that the last pass stored. The grants of a space get no later date
        than that pass, because a page that was restricted after it must not stay open for long.
        """
        return with_people(self._readers(known), self._in_group, self._about)

    def _readers(self, known: Known) -> Iterator[Grant]:
        at = known.state().listed_at
        for identity, space in spaces_of(known).items():
            principal = f"confluence:space:{space['key']}"
            try:
                asked = partial(self._list, f"spaces/{identity}/permissions", {"limit": WITHOUT_BODIES})
                permissions = [each for (_, results), _ in pages_of(asked, None, principal) for each in results]
            except AnswerError as error:
                if error.status not in REFUSED:
                    raise
                yield Grant(principal=principal, unread=f"status {error.status}: its permissions cannot be read")
                continue
            readers = frozenset(name for each in permissions if (name := _reader(each)))
            yield Grant(principal=principal, members=readers, verified_at=at)
        for key, body in known.under("readers/"):
            readers = frozenset(map(str, body["members"]))
            yield Grant(principal=f"confluence:page:{key.split('/')[1]}", members=readers, verified_at=at)

    def _restrictions(self, known: Known, cursor: str | None) -> Iterator[RecordPage]:
        """Read the parents of each page, and the readers of restricted pages."""
        keys = ", ".join(f'"{space["key"]}"' for space in spaces_of(known).values())
        asked: dict[str, str | int] = {
            "cql": f"space in ({keys}) and type in (page, blogpost)",
            "expand": _EXPAND,
            "limit": RESTRICTIONS,
        }
        place = "wiki/rest/api/content/search"
        unseen: set[str] = set()
        for (_, results), following in pages_of(partial(self._list, place, asked), cursor, "restrictions"):
            records = []
            for each in results:
                above = [id_of(one.get("id")) for one in mappings(each.get("ancestors"))]
                unseen.update(above)
                records += _restrictions_of("above", id_of(each.get("id")), above, each.get("restrictions"))
            yield RecordPage(records=tuple(records), position=following)
        unnamed = set(known.unnamed("above/", "above/"))
        others = (each for each in sorted(unseen) if f"above/{each}/" in unnamed or not known.body(f"above/{each}/"))
        found = [self._restriction(each) for each in others]
        yield RecordPage(records=tuple(record for records in found for record in records))

    def _restriction(self, identity: str) -> list[FeedRecord]:
        """Ask for the readers of a parent that is not a page, such as a folder. Return no records if the API refuses.

        The API's answer does not name the parents of a folder. The records of the pages in the folder name them.
        """
        address = f"wiki/rest/api/content/{identity}/restriction/byOperation/read"
        answer = self._site.get(address, {"expand": _OF_ONE}, allowed=frozenset(REFUSED))
        return [] if answer.status in REFUSED else _restrictions_of("alone", identity, [], {"read": answer.mapping()})

    def _in_group(self, identity: str) -> Iterator[Mapping[str, Any]]:
        address = f"wiki/rest/api/group/{identity}/membersByGroupId"

        def ask(start: int | None) -> tuple[list[dict[str, Any]], int | None]:
            at = start or 0
            content = self._site.get(address, {"start": at, "limit": GROUP_MEMBERS}).mapping()
            found = listed(content, "results", address)
            return found, at + len(found) if len(found) >= (as_is(content.get("limit"), int) or GROUP_MEMBERS) else None

        return (each for found, _ in pages_of(ask, None, address) for each in found)

    def _about(self, accounts: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        for start in range(0, len(accounts), MAX_PEOPLE):
            answer = self._site.post(f"{_API}/users-bulk", {"accountIds": accounts[start : start + MAX_PEOPLE]})
            yield from mappings(answer.mapping().get("results"))

    def _read_spaces(self, _: None) -> Iterator[RecordPage]:
        """Read the spaces.

        Raises:
            SourceUnavailableError: a configured space does not exist, or there is no space at all.
        """
        parameters = {"keys": ",".join(self._spaces)} if self._spaces else {"status": "current"}
        pages = pages_of(partial(self._list, "spaces", {**parameters, "limit": WITHOUT_BODIES}), None, "spaces")
        records = tuple(_space(each) for (_, results), _ in pages for each in results)
        found = {str(record.body["key"]).casefold() for record in records}
        missing = [key for key in self._spaces if key.casefold() not in found]
        if missing:
            raise SourceUnavailableError(
                f"{self._site.address}: no space {', '.join(missing)}; check the key, and that the account may read it"
            )
        if not records:
            raise SourceUnavailableError(
                f"{self._site.address}: no space at all; check 'user' and the token, and that the account may read one"
            )
        yield RecordPage(gone=("space/",), records=records, confirmed=("user/",))

    def _contents(self, kind: str, known: Known, cursor: str | None) -> Iterator[RecordPage]:
        """List all pages by id from ``cursor`` on; ``None`` means the start of the list. A new page comes last."""
        spaces = spaces_of(known)
        asked: dict[str, str | int] = {"status": "current", "sort": "id", "limit": WITHOUT_BODIES}
        if self._spaces:
            asked["space-id"] = ",".join(spaces)
        for (base, results), following in pages_of(partial(self._list, kind, asked), cursor, kind):
            same, changed = list[FeedRecord](), list[str]()
            for each in _current(results, spaces):
                page = page_of(each, spaces[str(each["spaceId"])], base, kind)
                if _is_as_stored(page, known):
                    same.append(page)
                else:
                    changed.append(page.document.rpartition("/")[2])
            for start in range(0, len(changed), WITH_BODIES):
                yield self._with_bodies(kind, changed[start : start + WITH_BODIES], known, cursor)
            confirmed = tuple(f"body/{each.key.split('/')[1]}/" for each in same)
            yield RecordPage(records=tuple(same), confirmed=confirmed, position=following)
            cursor = following

    def _with_bodies(self, kind: str, asked: Sequence[str], known: Known, cursor: str | None) -> RecordPage:
        """Return pages with their bodies and the names of people in them. ``cursor`` becomes their position."""
        spaces = spaces_of(known)
        parameters: dict[str, str | int] = {"id": ",".join(asked), "limit": WITH_BODIES, "status": "current"}
        (base, results), _ = self._list(kind, {**parameters, "body-format": "storage"}, None)
        records = []
        for each in _current(results, spaces):
            page = page_of(each, spaces[str(each["spaceId"])], base, kind)
            records += [page, body_of(each, page)]
        given = {each.key.split("/")[1] for each in records}
        # A listed page that is not returned stays as stored: the next pass decides.
        kept = tuple(f"{part}/{each}/" for each in asked if each not in given for part in ("meta", "body"))
        people = self._people(accounts_of(records), known)
        return RecordPage(records=(*records, *people), kept=kept, position=cursor)

    def _list(
        self, address: str, parameters: Mapping[str, str | int], cursor: str | None
    ) -> tuple[tuple[str, list[dict[str, Any]]], str | None]:
        """Return one page of a list (the base address of its links, and its results) and the next cursor, if any."""
        asked = {**parameters, "cursor": cursor} if cursor else parameters
        whole = address if address.startswith("wiki/") else f"{_API}/{address}"
        content = self._site.get(whole, asked).mapping()
        links = as_is(content.get("_links"), dict) or {}
        base, following = (as_is(links.get(key), str) or "" for key in ("base", "next"))
        base = base.rstrip("/") if re.match(r"https?://", base) else f"{self._site.address}/wiki"
        # Only the cursor is taken from the address that an answer names.
        return (base, listed(content, "results", address)), dict(parse_qsl(urlsplit(following).query)).get("cursor")

    def _people(self, accounts: Iterable[str], known: Known) -> Iterator[FeedRecord]:
        """Yield the names of accounts that are new.

        Yield no names if the account of the source may not ask for them.
        """
        unknown = [
            each for each in dict.fromkeys(accounts) if _ACCOUNT.fullmatch(each) and known.body(f"user/{each}/") is None
        ]
        for start in range(0, len(unknown), MAX_PEOPLE):
            if not self._asks_for_names:
                return
            try:
                answer = self._site.post(f"{_API}/users-bulk", {"accountIds": unknown[start : start + MAX_PEOPLE]})
                people = mappings(answer.mapping().get("results"))
            except SourceUnavailableError:
                self._asks_for_names = False
                return
            for each in people:
                account, name = str(each.get("accountId")), as_is(each.get("displayName"), str)
                if name and _ACCOUNT.fullmatch(account):
                    yield FeedRecord(key=f"user/{account}/", body={"name": name})


def _reader(permission: Mapping[str, Any]) -> str | None:
    """Return the principal that may read a space by a permission; ``None`` for any other permission."""
    operation, principal = (as_is(permission.get(key), dict) or {} for key in ("operation", "principal"))
    if (operation.get("key"), operation.get("targetType")) != ("read", "space"):
        return None
    named = {"user": user_named, "group": group_named}.get(str(principal.get("type")))
    return named(principal.get("id")) if named else None


def _restrictions_of(kind: str, identity: str, above: Sequence[str], restrictions: object) -> list[FeedRecord]:
    """Return two records: a page's parents and its readers. Return no records if the answer lacks the restrictions.

    Args:
        kind: the first part of the key under which the parents are stored.
    """
    read = as_is((as_is(restrictions, dict) or {}).get("read"), dict) or {}
    lists = as_is(read.get("restrictions"), dict)
    if lists is None or not all(isinstance(lists.get(kind), dict) for kind in ("user", "group")):
        return []
    users, groups = (mappings(lists[kind].get("results")) for kind in ("user", "group"))
    names = [*(user_named(each.get("accountId")) for each in users), *(group_named(each.get("id")) for each in groups)]
    records = [FeedRecord(key=f"{kind}/{identity}/", body={"pages": list(above)})]
    if names:
        members = sorted(name for name in names if name)
        records.append(FeedRecord(key=f"readers/{identity}/", body={"members": members}))
    return records


def _space(content: Mapping[str, Any]) -> FeedRecord:
    key, identity = str(content["key"]), id_of(content["id"])
    return FeedRecord(key=f"space/{identity}/", body={"key": key if _SPACE_KEY.fullmatch(key) else identity})


def _current(results: Iterable[Mapping[str, Any]], spaces: Mapping[str, Body]) -> list[Mapping[str, Any]]:
    """Return the results in known spaces that are neither drafts nor in the trash."""
    return [
        each for each in results if each.get("status", "current") == "current" and str(each.get("spaceId")) in spaces
    ]


def _is_as_stored(page: FeedRecord, known: Known) -> bool:
    before = known.body(page.key) or {}
    return all(before.get(key) == page.body[key] for key in ("version", "path"))


def _name(account: object, known: Known) -> str | None:
    body = known.body(f"user/{account}/") if isinstance(account, str) else None
    return as_is(body.get("name"), str) if body else None


def mentioned_accounts(storage: str) -> Sequence[str]:
    """Return the ids of the accounts that a body mentions, without repetition."""
    return tuple(dict.fromkeys(_NAMED_ACCOUNT.findall(storage)))


def html_of_storage(storage: str, title: str, names: Mapping[str, str]) -> str:
    """Return a page as HTML: its title as the first heading, its own headings one level lower.

    Args:
        storage: the body as the API gives it.
        names: account id → name, for mentions.

    Returns:
        HTML with Confluence's ids of headings; empty if the body has no text.
    """
    source = without_long_references(_without_cdata(_CONTROL.sub(" ", storage.replace("\r\n", "\n"))))
    try:
        body = _StorageWriter(names).write(source) if is_sound(source) else _text_alone(source)
    except (ParserRejectedMarkup, _TooDeepError):
        body = _text_alone(source)
    if not _says(body):
        return ""
    return f"<h1>{html.escape(' '.join(_CONTROL.sub(' ', title).split()), quote=False)}</h1>\n{body}"


def _text_alone(source: str) -> str:
    return f"<p>{html.escape(unescaped(_TAG.sub(' ', source)), quote=False)}</p>"


def _without_cdata(source: str) -> str:
    """Write CDATA sections as escaped text, which means the same."""
    first, *rest = source.split("<![CDATA[")
    pieces = [first]
    for piece in rest:
        text, _, after = piece.partition("]]>")
        pieces += (html.escape(text, quote=False), after)
    return "".join(pieces)


def _text_of(written: str) -> str:
    return unescaped(_TAG.sub("", written))


def _says(written: str) -> bool:
    return bool(_text_of(written).strip())


class _TooDeepError(Exception):
    """Elements are nested beyond ``_MAX_DEPTH``."""


class _StorageWriter:
    """Writes the elements of one body as HTML, from the inside out."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self._anchors: Counter[str] = Counter()
        # What was written of an element whose place is decided by the one around it.
        self._kept: dict[int, str] = {}

    def write(self, source: str) -> str:
        """Return the HTML of a body.

        Raises:
            ParserRejectedMarkup: html.parser cannot read the body.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it looks like XML, or like an address
            soup = BeautifulSoup(source, "html.parser")
        open_tags: list[tuple[Tag, Iterator[PageElement], list[str]]] = [(soup, iter(soup.contents), [])]
        while True:
            tag, contents, written = open_tags[-1]
            child = next(contents, None)
            if isinstance(child, Tag):
                if len(open_tags) > _MAX_DEPTH:
                    raise _TooDeepError
                open_tags.append((child, iter(child.contents), []))
            elif child is not None:
                written.append(html.escape(child, quote=False) if type(child) is NavigableString else "")
            elif len(open_tags) == 1:
                return "".join(written)
            else:
                open_tags.pop()
                open_tags[-1][2].append(self._element(tag, "".join(written)))

    def _element(self, tag: Tag, inner: str) -> str:
        name = tag.name
        if name in _SILENT:
            return ""
        if write := _WRITERS.get(name):
            return write(self, tag, inner)
        if name.startswith("ri:"):
            return self._target(tag)
        if name in _HEADINGS:
            return self._heading(name, inner)
        if name in VOID_TAGS:
            return f"<{name}>" if name in _PLAIN else ""
        written_as = _RENAMED.get(name) or (name if name in _PLAIN else "")
        return f"<{written_as}>{inner}</{written_as}>" if written_as else inner

    def _keep(self, tag: Tag, inner: str) -> str:
        self._kept[id(tag)] = inner
        return ""

    def _parameter(self, macro: Tag | None, name: str) -> str:
        """Return a parameter of a macro as text."""
        given = macro.find("ac:parameter", {"ac:name": name}, recursive=False) if macro and name else None
        return _text_of(self._kept.get(id(given), "")).strip()

    def _macro(self, tag: Tag, inner: str) -> str:
        """Return the content of a macro. If the content is empty, return the one parameter that Confluence displays."""
        shown = _SHOWN_PARAMETER.get(str(tag.get("ac:name", "")), "")
        return inner if _says(inner) else inner + html.escape(self._parameter(tag, shown), quote=False)

    def _titled(self, tag: Tag, body: str) -> str:
        title = self._parameter(tag.find_parent(list(_MACROS)), "title")
        return f"<p><strong>{html.escape(title, quote=False)}</strong></p>{body}" if title else body

    def _code(self, tag: Tag, inner: str) -> str:
        """Write the body of a code macro.

        In a table, a body of one line becomes inline code, so that it stays in its cell.
        """
        macro = tag.find_parent(list(_MACROS))
        if macro is None:
            return inner
        text = inner.strip("\n")
        if macro.get("ac:name") in _UNSEEN_MACROS or not text.strip():
            return ""
        if tag.find_parent("table") and "\n" not in text:
            return self._titled(tag, f"<code>{text}</code>")
        language = self._parameter(macro, "language").lower()
        named = f' class="language-{language}"' if _LANGUAGE.fullmatch(language) else ""
        return self._titled(tag, f"<pre><code{named}>{text}</code></pre>")

    def _target(self, tag: Tag) -> str:
        """Return the name of the page, person or file to which ``tag`` points; empty outside of a parameter.

        Inside a link or an image the name is not returned but stored as the label of that link or image.
        """
        name = self._names.get(str(tag.get("ri:account-id", "")))
        label = (f"@{name}" if name else "") if tag.name == "ri:user" else str(tag.get(_TARGETS.get(tag.name, ""), ""))
        around = tag.find_parent(["ac:parameter", "ac:link", "ac:image"])
        if around is None or around.name == "ac:parameter":
            return html.escape(label, quote=False) if around else ""
        self._kept.setdefault(id(around), label)
        return ""

    def _labelled(self, tag: Tag, inner: str) -> str:
        if _says(inner):
            return inner
        label = tag.get("ac:alt") or tag.get("ac:title") or self._kept.get(id(tag)) or tag.get("ac:anchor") or ""
        return inner + html.escape(str(label), quote=False)

    def _heading(self, name: str, inner: str) -> str:
        """Return a heading with the id that Confluence gives it.

        The id has hyphens in place of blanks. If several headings have the same text, all but the first get a number.
        """
        anchor = "-".join(_text_of(inner).split())[:_ANCHOR_CHARACTERS]
        count = self._anchors[anchor]
        self._anchors[anchor] += 1
        numbered = f' id="{html.escape(f"{anchor}.{count}" if count else anchor)}"' if anchor else ""
        return f"<{_HEADINGS[name]}{numbered}>{inner}</{_HEADINGS[name]}>"

    def _fallback(self, tag: Tag, inner: str) -> str:
        extension = tag.find_parent("ac:adf-extension")
        return self._keep(extension, inner) if extension else inner

    def _extension(self, tag: Tag, inner: str) -> str:
        """Write an extension's content, or its fallback if the content is empty."""
        return inner if _says(inner) else inner + self._kept.get(id(tag), "")


_WRITERS: Mapping[str, Callable[[_StorageWriter, Tag, str], str]] = {
    **dict.fromkeys(_MACROS, _StorageWriter._macro),
    "ac:parameter": _StorageWriter._keep,
    "ac:adf-fallback": _StorageWriter._fallback,
    **dict.fromkeys(("ac:link", "ac:image"), _StorageWriter._labelled),
    "ac:rich-text-body": lambda writer, tag, inner: writer._titled(tag, f"<div>{inner}</div>"),
    "ac:plain-text-body": _StorageWriter._code,
    "ac:adf-extension": _StorageWriter._extension,
    "ac:task-status": lambda _, __, inner: "[x] " if inner.strip() == "complete" else "[ ] ",
    "ac:emoticon": lambda _, tag, inner: html.escape(_emoticon(tag.attrs), quote=False) + inner,
    "time": lambda _, tag, inner: html.escape(str(tag.get("datetime", "")), quote=False) + inner,
    "img": lambda _, tag, __: html.escape(str(tag.get("alt", "")), quote=False),
    "a": lambda _, tag, inner: _link(str(tag.get("href", "")), inner),
}


def _link(target: str, inner: str) -> str:
    return f'<a href="{html.escape(target)}">{inner}</a>' if _LINK.fullmatch(target) else inner


def _emoticon(values: Mapping[str, Any]) -> str:
    sign = str(values.get("ac:emoji-fallback", ""))
    return _EMOTICONS.get(str(values.get("ac:name", ""))) or ("" if re.fullmatch(r":[\w+-]*:", sign) else sign)
