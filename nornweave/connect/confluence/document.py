"""Read a page of Confluence as its feed wrote it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from nornweave.connect.confluence.storage import html_of_storage
from nornweave.connect.conversation import as_is, clean_name, load_stored, parse_time
from nornweave.core.errors import DocumentSkipped
from nornweave.core.types import Document, Domain, Entry, SourceId, freeze
from nornweave.read.file import assemble
from nornweave.read.parsed import Parsed


def confluence_document(source_id: SourceId, entry: Entry, raw: bytes) -> Document:
    """Build the document of a page: HTML under its title, with authors, date, space and the titles above it.

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
            "ancestors": tuple(_texts(page.get("trail"))) or None,
        }
    )


def _texts(value: object) -> Iterator[str]:
    for each in value if isinstance(value, list) else ():
        if isinstance(each, str) and each.strip():
            yield clean_name(each)


def _names(value: object) -> Mapping[str, str]:
    pairs = value.items() if isinstance(value, dict) else ()
    return {key: clean_name(name) for key, name in pairs if isinstance(name, str)}
