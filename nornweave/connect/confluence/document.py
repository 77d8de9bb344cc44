"""A page of Confluence: what lists say about it, what stands above it, and the document that it becomes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from nornweave.connect.confluence.storage import html_of_storage, mentioned_accounts
from nornweave.connect.conversation import as_is, clean_name, load_stored, parse_time
from nornweave.connect.mirror.atlassian import id_of
from nornweave.connect.mirror.feed import Body, FeedRecord, Known
from nornweave.core.errors import DocumentSkipped
from nornweave.core.types import Document, Domain, Entry, JsonValue, SourceId, freeze
from nornweave.read.file import assemble
from nornweave.read.parsed import Parsed


def page_of(content: Mapping[str, Any], space: Body, base: str, kind: str) -> FeedRecord:
    """Return what a list says about a page or a blog post.

    Args:
        base: what its links are relative to.
        kind: of the list.
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
        ValueError: the API sent none.
    """
    storage = as_is((as_is(content.get("body"), dict) or {}).get("storage"), dict) or {}
    value = as_is(storage.get("value"), str)
    if value is None:
        raise ValueError(f"no body of {page.document}")
    return FeedRecord(key=page.key.replace("meta", "body"), document=page.document, body={"value": value})


def accounts_of(records: Iterable[FeedRecord]) -> Iterator[str]:
    """Yield the accounts of those who wrote pages or are mentioned in them."""
    for each in records:
        yield from (str(each.body[key]) for key in ("author", "editor") if each.body.get(key))
        yield from mentioned_accounts(each.body.get("value", ""))


def spaces_of(known: Known) -> dict[str, Body]:
    """Return the spaces that are read, by id."""
    return {key.split("/")[1]: body for key, body in known.under("space/")}


def confluence_document(source_id: SourceId, entry: Entry, raw: bytes) -> Document:
    """Build the document of a page: HTML under its title, with authors, date and space.

    Raises:
        DocumentSkipped: nothing stands on the page.
        DocumentError: too large, or not what the feed wrote.
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
