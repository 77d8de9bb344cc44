"""The changes since the last sync: compare the sources' listings with the manifest. Nothing is read or written.

An entry's gate (size and time, or a blob id) decides whether the document is read. After reading, its content hash
decides whether it changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from nornweave.connect.files.skip import UNNAMED
from nornweave.core.types import Entry, Listing, digest, is_of_history
from nornweave.index.port import Stored, Tally

# The mass-delete brake: removing more than this share of a source needs a person. One document is what people remove by
# hand; a source that lists nothing needs a person however few it had.
BRAKE_SHARE = 1 / 3
BRAKE_DOCUMENTS = 1


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A source without a listing. The reason is ``None`` if the sync was not asked to list the source."""

    reason: str | None


@dataclass(frozen=True, slots=True)
class DueDocument:
    """A document to read, because it is new, it may have changed, or the cause of its last failure may have passed."""

    source_id: str
    entry: Entry
    stored: Stored | None


@dataclass(frozen=True, slots=True)
class HeldRemovals:
    """Removals of one source that a person must confirm."""

    source_id: str
    reason: str
    paths: tuple[str, ...]


def held_state(held: Sequence[HeldRemovals]) -> str:
    """Return a digest of the documents to remove. It is different for each set of documents."""
    return digest(*(part for each in held for part in (each.source_id, str(len(each.paths)), *each.paths)))


@dataclass(frozen=True, slots=True)
class Changes:
    """The work of one sync. Every tuple is sorted by source, then path."""

    due: tuple[DueDocument, ...]
    removed: tuple[Stored, ...]
    held: tuple[HeldRemovals, ...]
    unavailable: Mapping[str, str]
    unchanged: int
    """Documents that are stored and not read."""
    listed: int
    """Documents that the available sources list, and stored documents that stay though no source lists them now."""
    unlisted: tuple[tuple[str, str], ...] = ()
    """Source id and path of the latter."""


def diff(
    listings: Mapping[str, Listing | Unavailable],
    manifest: Mapping[tuple[str, str], Stored],
    pipelines: Mapping[str, str],
    *,
    tally: Sequence[Tally] = (),
    full: bool = False,
    confirm_deletes: bool = False,
) -> Changes:
    """Return the work of a sync, by comparing listings with the manifest.

    Args:
        listings: source id → its listing. A source of the manifest that is missing here was removed from the
            configuration, so its documents are removed.
        manifest: (source id, path) → the stored document.
        tally: the counts of all documents. It is needed if the manifest holds only the listed paths.
        pipelines: source id → digest of the versions and settings for its documents. A document that was read with
            another pipeline is read again.
        full: read all documents again.
        confirm_deletes: a person has confirmed the removals that the brake would hold.
    """
    lists = ((source_id, listing.entries) for source_id, listing in listings.items() if isinstance(listing, Listing))
    listed = {(source_id, entry.path): entry for source_id, entries in lists for entry in entries}
    changed = sorted(  # few of many: a sync that finds one change in 168,000 documents must not sort them all
        (key for key, entry in listed.items() if full or _is_due(entry, manifest.get(key), pipelines[key[0]])),
        key=lambda key: (_reading_order(manifest.get(key)), key),
    )
    due = tuple(DueDocument(key[0], listed[key], manifest.get(key)) for key in changed)
    tally = tally or _counted(manifest)
    gone, held = _split_removals(listings, listed.keys(), manifest, tally, confirm_deletes=confirm_deletes)
    missing = manifest.keys() - listed.keys()
    unlisted = tuple(missing - {(stored.source_id, stored.path) for stored in gone})
    worked_on = [*gone, *(wanted.stored for wanted in due if wanted.stored)]
    return Changes(
        due=due,
        removed=gone,
        held=held,
        unavailable={key: reason for key, value in listings.items() if (reason := _problem(value))},
        unchanged=sum(each.stored for each in tally) - sum(stored.content_hash is not None for stored in worked_on),
        listed=len(listed) + sum(each.known for each in tally) - (len(manifest) - len(missing)) - len(gone),
        unlisted=unlisted,
    )


def _problem(listing: Listing | Unavailable) -> str | None:
    return listing.reason if isinstance(listing, Unavailable) else listing.problem


def _is_due(entry: Entry, stored: Stored | None, pipeline: str) -> bool:
    return stored is None or stored.gate != entry.gate or stored.pipeline != pipeline or stored.outcome == "transient"


def _reading_order(stored: Stored | None) -> int:
    """Return a sort key for reading. Postponed documents are first, failed documents last. ``None`` is a new document.

    This order keeps a document that crashes its reader at every sync from delaying the other documents.
    """
    return {"transient": 0, "failed": 2}.get(stored.outcome, 1) if stored else 1


_MADE_WITH = {
    "encoder": "encoder", "token_vectors": "late_interaction", "chunker": "chunker", "analyzer": "analysis of words",
    "facts": "reading of facts",
}  # fmt: skip


def describe_repeated_work(
    changes: Changes, pipelines: Mapping[str, str], before: Mapping[str, str], now: Mapping[str, str], chunks: int
) -> str:
    """Return a sentence about unchanged documents that are read or encoded again, and why; empty if there are none.

    Args:
        before: the provenance of the published generation; empty if nothing is published.
        now: the provenance of a generation that is built now.
        chunks: the number of stored chunks.
    """
    others = [name for key, name in _MADE_WITH.items() if before and before.get(key, "") != now[key]]
    read = sum(
        due.stored is not None and due.stored.gate == due.entry.gate and due.stored.pipeline != pipelines[due.source_id]
        for due in changes.due
    )
    is_encoded = "encoder" in others or ("late_interaction" in others and now["token_vectors"] != "")
    said = [f"{read:,} documents are read again"] if read else []
    said += [f"{chunks:,} chunks are encoded again"] if is_encoded else []
    return f"{' and '.join(said)}: another {' and '.join(others) or 'parser'} than before" if said else ""


def _counted(manifest: Mapping[tuple[str, str], Stored]) -> tuple[Tally, ...]:
    known = Counter(source_id for source_id, _ in manifest)
    stored = Counter(source_id for (source_id, _), each in manifest.items() if each.content_hash is not None)
    past = Counter(source_id for (source_id, _), each in manifest.items() if is_of_history(each.gate))
    return tuple(Tally(source_id, "", count, stored[source_id], past[source_id]) for source_id, count in known.items())


def _split_removals(
    listings: Mapping[str, Listing | Unavailable],
    listed: Collection[tuple[str, str]],
    manifest: Mapping[tuple[str, str], Stored],
    tally: Sequence[Tally],
    *,
    confirm_deletes: bool,
) -> tuple[tuple[Stored, ...], tuple[HeldRemovals, ...]]:
    """Return the removals to do now, and the removals that a person must confirm; none with ``confirm_deletes``."""
    known: dict[str, list[Stored]] = {}
    for key, stored in manifest.items():
        known.setdefault(key[0], []).append(stored)
    gone: list[Stored] = []
    held: list[HeldRemovals] = []
    for source_id, documents in sorted(known.items()):
        listing = listings.get(source_id)
        if isinstance(listing, Unavailable) or (listing and listing.problem and not listing.listed_at):
            continue  # its missing documents are not gone
        missing = [stored for stored in documents if (source_id, stored.path) not in listed]
        missing.sort(key=lambda stored: stored.path)
        gone.extend(stored for stored in missing if is_of_history(stored.gate))  # needs no person: commits change
        missing = [stored for stored in missing if not is_of_history(stored.gate)]
        if listing is not None and listing.withdrawn:  # somebody wants these gone: nothing to ask about
            gone.extend(stored for stored in missing if stored.path in listing.withdrawn)
            missing = [stored for stored in missing if stored.path not in listing.withdrawn]
        reason = None
        if missing and listing and not confirm_deletes:
            reason = _removal_problem(
                missing, documents, listing, [each for each in tally if each.source_id == source_id]
            )
        if reason:
            held.append(HeldRemovals(source_id, reason, tuple(stored.path for stored in missing)))
        else:
            gone.extend(missing)
    return tuple(gone), tuple(held)


def _removal_problem(
    missing: Sequence[Stored], known: Sequence[Stored], listing: Listing, tally: Sequence[Tally]
) -> str | None:
    """Return why a person must confirm a source's removals; ``None`` if nobody must.

    Documents that were never stored do not count.
    """
    had, stored = (sum(each.known - each.past for each in tally), sum(each.stored - each.past for each in tally))
    if all(is_of_history(entry.gate) for entry in listing.entries) and (listing.within is None or len(missing) == had):
        return f"the source lists nothing, it had {had} documents"
    unnamed = {skip.path for skip in listing.skipped if skip.reason == UNNAMED}
    if gone := sum(document.content_hash is not None and document.path in unnamed for document in missing):
        return f"{gone} of {stored} documents are there, and `only` names others"
    lost = _count_lost(missing, known, listing)
    if lost > BRAKE_DOCUMENTS and lost > stored * BRAKE_SHARE:
        return f"{lost} of {stored} documents are gone"
    return None


def _count_lost(missing: Sequence[Stored], known: Sequence[Stored], listing: Listing) -> int:
    """Count the missing stored documents. A moved document, whose gate a new path has, is not counted."""
    paths, gates = {document.path for document in known}, Counter(_stable_gate(entry.gate) for entry in listing.entries)
    listed = ((entry.path, _stable_gate(entry.gate)) for entry in listing.entries)
    new = {gate for path, gate in listed if path not in paths and gates[gate] == 1}
    return sum(document.content_hash is not None and _stable_gate(document.gate) not in new for document in missing)


def _stable_gate(gate: str) -> str:
    """Return the part of a gate before its ``@``, which does not change when a file is moved."""
    return gate.partition("@")[0]
