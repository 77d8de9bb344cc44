"""The table of all places that may still hold parts of a deleted document; a receipt searches each of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from nornweave.ask.feedback import feedback_of
from nornweave.carry.ledger_file import ledger_place
from nornweave.carry.publication import store_places
from nornweave.carry.wiring import INBOX, store_of, workspace_server
from nornweave.config import Settings
from nornweave.connect.connectors import open_source
from nornweave.connect.inbox.source import InboxSource
from nornweave.connect.mirror.mirrored import MirrorFile, mirror_file
from nornweave.connect.protocol import Copying, Source
from nornweave.core.deletion import Deleted, Place, Search, passages_of
from nornweave.core.errors import StoreError
from nornweave.core.files.writing import write_whole
from nornweave.core.types import GenerationId
from nornweave.index.corpus import DuckDBStore
from nornweave.index.port import Remains, Writer
from nornweave.index.searching.generation_file import read_rows

SYNC = "a sync removes it: run `nornweave sync`, then the receipt again"
_AGAIN = "`nornweave receipt --purge` writes them again; where a sync is due, that does"
# Words that are not of a language: of ids, codes and secrets.
_NAME = re.compile(r"(?=[\w-]*\d)[^\W\d][\w-]{5,}")
_ELSEWHERE = 'select 1 from documents where strpos("text", ?) > 0 and not (source_id = ? and path = ?) limit 1'
_SHOWN = 10


def places_of(settings: Settings, deleted: Deleted, writer: Writer | None) -> list[Place]:
    """Return every place that may have remains of a deleted document, in the order in which the places are purged.

    Args:
        writer: the locked writer of the domain; ``None`` for a replica, which writes nothing.
    """
    from orchestration.instance import runs_place

    store = store_of(settings, deleted.domain)
    return [
        *_generations(store),
        *([_working(writer, kind) for kind in Remains] if writer else []),
        *_copies(settings, deleted),
        _feedback(settings),
        _ledger(settings),
        _notes(settings),
        *([] if settings.replica_of else [runs_place(settings)]),
        *store_places(settings),
        Place(name=f"every file below {settings.data_dir.name}/", search=lambda each: _bytes(settings.data_dir, each)),
    ]


def known_text(settings: Settings, deleted: Deleted) -> Deleted:
    """Return the document with those parts of its text that no other document has.

    The text is read from kept generations. If none of them has the document, no parts are known.
    """
    stores = {domain: store_of(settings, domain) for domain in {*settings.served_domains, deleted.domain}}
    store = stores[deleted.domain]
    texts = [text for generation in store.generations() for text in _texts(store, generation, deleted)]
    published = [file for each in stores.values() if (now := each.current()) for file in each.data_files(now)]

    def is_elsewhere(passage: str) -> bool:
        values = [passage, deleted.source_id, deleted.path]
        return any(read_rows(file, _ELSEWHERE, values) for file in published)

    names = {name for text in texts for name in _NAME.findall(text)}

    def is_quoted_in(question: str) -> bool:
        quotes = [question] if any(question in text for text in texts) else _NAME.findall(question)
        return any(quote in names or quote == question for quote in quotes if not is_elsewhere(quote))

    return replace(deleted, passages=passages_of(texts, is_elsewhere), is_quoted_in=is_quoted_in)


def _texts(store: DuckDBStore, generation: GenerationId, deleted: Deleted) -> list[str]:
    try:
        return store.texts_of(generation, deleted, also_gone=True)
    except StoreError:
        return []


def _generations(store: DuckDBStore) -> list[Place]:
    def others() -> list[GenerationId]:
        return [generation for generation in store.generations() if generation != store.current()]

    def holding(deleted: Deleted) -> list[GenerationId]:
        return [generation for generation in others() if _may_hold(store, generation, deleted)]

    def kept(deleted: Deleted) -> Search:
        generations = holding(deleted)
        return Search(len(generations), ", ".join(others()) or "there are none", tuple(generations[:_SHOWN]))

    def published(deleted: Deleted, *, also_gone: bool) -> Search:
        current = store.current()
        chunks = store.texts_of(current, deleted, also_gone=also_gone) if current else []
        return Search(len(chunks), current or "nothing is published", (current,) if current and chunks else ())

    return [
        Place(name="published generation", search=partial(published, also_gone=False), remedy=SYNC),
        Place(name="kept generations", search=kept, purge=lambda deleted: store.remove_generations(holding(deleted))),
        Place(name="files of the published generation", search=partial(published, also_gone=True), remedy=_AGAIN),
    ]


def _may_hold(store: DuckDBStore, generation: GenerationId, deleted: Deleted) -> bool:
    """Tell whether a generation has the document. One that cannot be read counts as having it."""
    try:
        return bool(store.texts_of(generation, deleted, also_gone=True))
    except StoreError:
        return True


def _working(writer: Writer, kind: Remains) -> Place:
    return Place(
        name=kind.value,
        search=lambda deleted: Search(writer.remains(deleted)[kind], "the tables that syncs write"),
        # What a sync does not remove goes at once, with the last of them.
        purge=writer.erase if kind is Remains.DELETED else None,
        **({"remedy": SYNC} if kind is Remains.ROWS else {}),
    )


def _copies(settings: Settings, deleted: Deleted) -> Iterator[Place]:
    """Yield the copies that the document's source keeps; for a source that is not configured any more, its mirror."""
    source = _source(settings, deleted)
    if source is None:
        file = mirror_file(settings.data_dir, deleted.source_id)
        mirror = MirrorFile(file)
        yield Place(
            name=f"mirror of a former source: {deleted.source_id}",
            search=lambda each: Search(mirror.copies_of(each.path), file.name),
            purge=lambda each: mirror.forget(each.path),
        )
    elif isinstance(source, Copying):
        kept: Copying = source
        yield Place(
            name=f"copies of source {deleted.source_id}",
            search=lambda each: Search(kept.copies_of(each.path), type(kept).__name__),
            purge=lambda each: kept.forget(each.path) if kept.copies_of(each.path) else None,
        )


def _source(settings: Settings, deleted: Deleted) -> Source | None:
    for source in settings.sources_of(deleted.domain):
        if source.id == deleted.source_id and not settings.replica_of:
            return open_source(source, settings.own_files)
    if deleted.source_id == INBOX:
        return InboxSource(INBOX, deleted.domain, settings.inbox(deleted.domain))
    return None


def _feedback(settings: Settings) -> Place:
    book, server = feedback_of(settings), workspace_server(settings)

    def showing(deleted: Deleted) -> list[str]:
        place = (deleted.domain.value, deleted.source_id, deleted.path)
        # An earlier version kept feedback in PostgreSQL; docs/upgrading.md says how its tables go.
        left = server.rows_if_there("select query_id, text, items from shown") if server else []
        return [
            query_id
            for query_id, question, items in (*book.answers(), *left)
            if any((item["domain_id"], item["source_id"], item["source_path"]) == place for item in json.loads(items))
            or deleted.is_quoted_in(json.loads(question))
        ]

    def purge(deleted: Deleted) -> None:
        if answers := showing(deleted):
            book.remove(answers)

    return Place(
        name="feedback", search=lambda deleted: Search(len(showing(deleted)), "answers that were shown"), purge=purge
    )


def _ledger(settings: Settings) -> Place:
    place = ledger_place(settings)

    def is_of(entry: dict[str, Any], deleted: Deleted) -> bool:
        of = (deleted.domain.value, deleted.source_id, deleted.path)
        return any(
            (side["domain"], side["source_id"], side["path"]) == of for side in (*entry["sides"], *entry["also"])
        )

    def search(deleted: Deleted) -> Search:
        ledger = json.loads(place.read() or "{}")
        entries = [*ledger.get("open", ()), *ledger.get("settled", ())]
        return Search(sum(is_of(entry, deleted) for entry in entries), f"{len(entries)} conflicts")

    def purge(deleted: Deleted) -> None:
        with place.locked():
            ledger = json.loads(place.read() or "{}")
            if not ledger:
                return
            for state in ("open", "settled"):
                ledger[state] = [entry for entry in ledger[state] if not is_of(entry, deleted)]
            place.write(json.dumps(ledger, ensure_ascii=False))

    return Place(name="conflict ledger", search=search, purge=purge)


def _notes(settings: Settings) -> Place:
    """Return the place of small JSON files that name documents: reports, outcomes, alarms, waiting events, receipts."""

    def files(deleted: Deleted) -> list[Path]:
        data_dir, domain = settings.data_dir, deleted.domain.value
        patterns = (
            f"domains/{domain}/*.json",
            f"alarms/{domain}.json",
            "outbox*/*.json",
            f"idempotency/{domain}/*.json",
        )
        return [file for pattern in patterns for file in sorted(data_dir.glob(pattern))]

    def search(deleted: Deleted) -> Search:
        looked = files(deleted)
        naming = [file.name for file in looked if _without(_read(file), deleted)[1]]
        return Search(len(naming), f"{len(looked)} files of notes", tuple(naming[:_SHOWN]))

    def purge(deleted: Deleted) -> None:
        for file in files(deleted):
            rest, count = _without(_read(file), deleted)
            if count:
                write_whole(file, json.dumps(rest, ensure_ascii=False))

    return Place(name="notes of syncs", search=search, purge=purge)


def _read(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _without(value: Any, deleted: Deleted) -> tuple[Any, int]:
    """Return JSON without those list entries that name the document, and how many were left out.

    Lists under the key ``removed`` stay as they are.
    """
    if isinstance(value, list):
        rest = [_without(each, deleted) for each in value if not _names(each, deleted)]
        return [each for each, _ in rest], len(value) - len(rest) + sum(count for _, count in rest)
    if isinstance(value, dict):
        parts = {key: (each, 0) if key == "removed" else _without(each, deleted) for key, each in value.items()}
        return {key: each for key, (each, _) in parts.items()}, sum(count for _, count in parts.values())
    return value, 0


def _names(value: Any, deleted: Deleted) -> bool:
    if isinstance(value, dict):
        path = value.get("path", value.get("source_path"))
        return value.get("subject") == deleted.name or (path, value.get("source_id")) == (
            deleted.path,
            deleted.source_id,
        )
    return value == deleted.name or (isinstance(value, list) and value[:1] == [deleted.path])


def _bytes(data_dir: Path, deleted: Deleted) -> Search:
    """Search the bytes of all files in ``data_dir`` for a document. Return how many files have it, and their names."""
    looked = [file for file in sorted(data_dir.rglob("*")) if file.is_file() and not file.is_symlink()]
    holding = [file for file in looked if deleted.is_in_file(file)]
    names = tuple(str(file.relative_to(data_dir)) for file in holding[:_SHOWN])
    text = f"{len(deleted.passages)} passages" if deleted.passages else "nothing: its text is not known any more"
    return Search(len(holding), f"{len(looked)} files, byte by byte, for {text}", names)
