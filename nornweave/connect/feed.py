"""RSS and Atom feeds, from one conditional request or a file; the example of docs/write-a-connector.md."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast
from xml.etree.ElementTree import Element

from defusedxml.ElementTree import fromstring

from nornweave.connect.connectors import FeedSettings
from nornweave.connect.conversation import load_json, parse_time
from nornweave.connect.mirror.api_client import ApiClient, Limits
from nornweave.connect.mirror.feed import Body, Feed, FeedRecord, Known, Pass, RecordPage
from nornweave.core.errors import DocumentError, SourceUnavailableError
from nornweave.core.files.paths import read_regular
from nornweave.core.sandbox import run_apart
from nornweave.core.types import Document, Domain, Entry, JsonValue, SourceId, digest, freeze
from nornweave.read.file import assemble
from nornweave.read.parsed import Parsed, seconds_for

# The elements with content, the likeliest first.
_FIELDS = {
    **{"id": ("guid", "id", "link", "title"), "url": ("link",), "title": ("title",), "author": ("author", "creator")},
    "updated": ("updated", "pubDate", "date"),
    "html": ("encoded", "content", "summary", "description"),
}


def read_entries(values: Mapping[str, JsonValue], raw: bytes) -> list[Mapping[str, str]]:  # noqa: ARG001
    """Parse the entries of the RSS or Atom feed ``raw``. This function runs in the sandbox's process."""
    try:
        root = fromstring(raw)
    except (ValueError, SyntaxError) as error:
        raise DocumentError(f"expected RSS or Atom: {error}") from error
    if root.tag.rpartition("}")[2] not in {"rss", "RDF", "feed"}:
        raise DocumentError(f"expected RSS or Atom, found <{root.tag}>")
    elements = (*root.iterfind(".//{*}item"), *root.iterfind("{*}entry"))
    return [{key: _text(each, names) for key, names in _FIELDS.items()} for each in elements]


def _text(element: Element, names: tuple[str, ...]) -> str:
    children = (each for name in names for each in element.iterfind(f"{{*}}{name}"))
    return next(filter(None, ((each.get("href") or "".join(each.itertext())).strip() for each in children)), "")


def feed_document(source_id: SourceId, entry: Entry, raw: bytes, *, domain: Domain) -> Document:
    """Build the document of an entry from its title and its HTML."""
    stored = load_json(raw, entry.path)
    text = f"<h1>{html.escape(stored['title'])}</h1>\n{stored['html']}"
    known = {"source_type": "feed", "authors": (stored["author"],) if stored["author"] else None}
    title, url, updated = stored["title"] or None, stored["url"] or None, parse_time(stored["updated"])
    parsed = Parsed(text=text, title=title, updated_at=updated, url=url, metadata=freeze(known))
    return assemble(source_id, domain, entry, raw, parsed, "html", is_dated=False)


MAX_FILE_BYTES = 64 * 1024**2  # the limit of a requested feed


class SyndicationFeed(Feed):
    """The entries of one feed. Documents of entries that the feed no longer lists are kept."""

    version = "feed-1"
    parser = staticmethod(feed_document)

    def __init__(self, settings: FeedSettings, *, limits: Limits | None = None) -> None:
        self._place = place = settings.url or settings.required_path
        self.domain, self.scope = settings.domain, f"1,{place}"
        self.options = {"domain": settings.domain}
        if isinstance(place, str):
            only = settings.public_addresses_only
            self.client = ApiClient(place, headers={"Accept": "*/*"}, limits=limits, public_only=only)

    def pages(self, state: Pass, known: Known) -> Iterator[RecordPage]:  # noqa: ARG002
        before = state.since or {"validators": {}, "listed": []}
        try:
            raw, validators = self._read({} if state.is_full else before["validators"])
            read = [] if raw is None else run_apart(read_entries, {}, raw, cpu_s=seconds_for(len(raw)))
        except (DocumentError, OSError) as error:
            raise SourceUnavailableError(f"{self._place}: {error}") from error
        entries = {f"entries/{digest(each['id'])[:16]}": each for each in cast(list[dict[str, Any]], read)}
        records = tuple(FeedRecord(key=path, document=path, body=entry) for path, entry in entries.items())
        listed = before["listed"] if raw is None else list(entries)
        since = {"validators": validators, "listed": listed}
        yield RecordPage(records=records, confirmed=tuple(listed), kept=("entries/",), position=None, since=since)

    def assemble(self, path: str, records: Iterable[tuple[str, Body]], known: Known) -> bytes:  # noqa: ARG002
        return json.dumps(next(body for _, body in records), sort_keys=True).encode()

    def _read(self, validators: Mapping[str, str]) -> tuple[bytes | None, Mapping[str, str]]:
        """Return the feed (``None`` if unchanged) and the headers for the next request."""
        if self.client is None:
            return read_regular(self._place, MAX_FILE_BYTES), {}
        answer = self.client.get(str(self._place), headers=validators, allowed=frozenset({304}))
        return None if answer.status == 304 else answer.content, {**validators, **answer.validators}
