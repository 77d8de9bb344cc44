"""One domain's storage: its generations, its working file, and the one writer of them.

A build is planned first: which published segments stay, which of their documents are gone, which new segments to write.
Sizes of segments are tiers: each is larger than all newer ones together, so there are few, and a document is written
again a few times in its life, not at every publication.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple, Protocol, Self

import duckdb
from pydantic import ValidationError

from nornweave.config import StorageSettings
from nornweave.core.deletion import Deleted
from nornweave.core.errors import PublicationError, StoreError
from nornweave.core.files.lock import Lock, WriterLock
from nornweave.core.files.writing import write_whole
from nornweave.core.types import GenerationId, canonical_json
from nornweave.index.connection import Connection, explain, quote
from nornweave.index.generations.checksums import checksum_of
from nornweave.index.generations.kept import Elsewhere, number_of, segment_build_path
from nornweave.index.generations.publish import GenerationFiles
from nornweave.index.manifest import Manifest, QueryMap, SegmentFile, named, read_manifest
from nornweave.index.outcomes import write_outcomes
from nornweave.index.port import Candidate, Publication, Writer
from nornweave.index.searching.generation_file import TEXTS_OF, DataFile, read_rows
from nornweave.index.writing.build import (
    NO_DECLARED_FILTERS,
    DeclaredFilters,
    Layout,
    build_generation,
    insert_publication,
)
from nornweave.index.writing.moving import WORKING_FILE, MovingTables, facts_ahead
from nornweave.index.writing.working_tables import VERSIONS, overwrite
from nornweave.models.encoders.port import same_space

logger = logging.getLogger(__name__)

SMALLEST = 1_000
"""A domain of so few chunks is one segment without anything that is gone: to write it takes no time."""
NEGLIGIBLE_SHARE = 32
"""A segment of less than this part of ``SMALLEST`` is always written anew: to be a file costs more than it holds."""
LARGEST = 1_000_000
"""Chunks of one segment; more are written as several."""
WORN_SHARE = 0.3
"""A segment of which more is gone is written anew."""

# The segment of every document after publication; null for documents that will be written.
_PLACED = f"""
create or replace temp table placed as
select
  v.document_id,
  d.source_id,
  d.path,
  coalesce(c.chunks, 0) as chunks,
  case
    when v.version = p.version and v.stale = p.stale and p.segment in (select unnest(?::varchar[])) then p.segment
  end as segment
from ({VERSIONS}) v
join documents d using (document_id)
left join (select document_id, count(*) as chunks from chunks group by document_id) c using (document_id)
left join published p using (document_id)
"""
# Those of one place in the order of sources and paths lie together.
_DIVIDED = """
create or replace temp table placed as
with written as (
  select document_id, coalesce(sum(chunks) over before, 0) // ? as number
  from placed
  where segment is null
  window before as (order by source_id, path rows between unbounded preceding and 1 preceding)
)
select p.* replace (coalesce(p.segment, ? || '-' || lpad(w.number::bigint::varchar, 3, '0') || '.duckdb') as segment)
from placed p
left join written w using (document_id)
"""
_GONE = """
select d.document_no, count(c.chunk_no)
from held.documents d
left join held.chunks c using (document_no)
where d.document_id not in (select document_id from placed where segment = ?)
group by d.document_no
"""


class DuckDBWriter(MovingTables):
    """The only writer of a working file. Implements ``port.Writer``."""

    def __init__(self, file: Path, files: GenerationFiles, lock: Lock, layout: Layout) -> None:
        """Store the arguments. ``lock`` is the lock of the working file, which must be held already."""
        super().__init__(file, lock, layout)
        self._files = files

    def __enter__(self) -> Self:
        self._begin()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            write_outcomes(self._file.parent, self.outcomes())
        except StoreError as unwritten:
            logger.warning("%s", unwritten)
        finally:
            self._end()

    def unpublished(self, facts: Mapping[str, str]) -> bool:
        return not self._is_published_sound() or self._is_unrecorded() or self.is_changed(facts)

    def _is_unrecorded(self) -> bool:
        """Tell whether a generation is published but not recorded, because its writer was killed."""
        current = self._files.current()
        recorded = [number_of(name) for (name,) in self._rows("select generation from publications")]
        return current is not None and number_of(current) > max(recorded, default=0)

    def is_changed(self, facts: Mapping[str, str]) -> bool:
        """Tell whether the working file, or the way to build a generation, has changed since the last publication."""
        unplaced = "select count(*) from published where segment is null"
        return not self._is_made_so(facts) or self._has_changes() or self._integer(unplaced) > 0

    def _is_made_so(self, facts: Mapping[str, str]) -> bool:
        """Tell whether the last publication was made with these facts."""
        return self._meta().get("published_facts") == canonical_json(self._facts(facts))

    def _meta(self) -> Mapping[str, str]:
        return dict(self._rows("select key, value from meta"))

    def _is_published_sound(self) -> bool:
        """Tell whether the published generation exists and is undamaged."""
        current = self._files.current()
        if current is None:
            return False
        try:
            self._files.check(current)
        except StoreError as error:
            logger.warning("%s; it is built again", error)
            return False
        return True

    def current(self) -> GenerationId | None:
        return self._files.current()

    def build(self, run_id: str, facts: Mapping[str, str]) -> Candidate:
        recorded = self._last_manifest()
        known = recorded.query_map if recorded else None
        kept = known if known and same_space(known.encoder, facts.get("encoder")) else None
        return self._build_with(kept, run_id, facts)

    def _build_with(self, query_map: QueryMap | None, run_id: str, facts: Mapping[str, str]) -> Candidate:
        generation = self._files.next()
        publication = self._publication(generation, run_id)
        published = self._sound_segments() if self._is_made_so(facts) else []
        try:
            made = plan(self._connection, generation, published, self._files)
            built = [self._build_segment(name, publication, facts) for name in made.written]
            manifest = Manifest(
                generation=generation,
                built_at=publication.created_at.isoformat(),
                segments=(*made.kept, *built),
                query_map=query_map,
            )
            write_whole(self._files.build_path(generation), manifest.to_json())
        except BaseException as error:
            self._files.remove_candidate(generation)  # a full disk has room again
            if isinstance(error, (duckdb.Error, OSError)):
                raise StoreError(
                    f"{generation} could not be built from {self._file}, the published one stays: {explain(error)}"
                ) from error
            raise
        return Candidate(
            generation=generation,
            counts=manifest.counts,
            vector_index=self._layout.built_with,
            size_bytes=self._files.of_candidate(generation).size_bytes(generation),
            publication=publication,
            facts=self._facts(facts),
        )

    def _sound_segments(self) -> list[SegmentFile]:
        """Return the last publication's segments that exist and are undamaged."""
        recorded = self._last_manifest()
        return [segment for segment in recorded.segments if self._is_sound(segment)] if recorded else []

    def _last_manifest(self) -> Manifest | None:
        """Return the manifest of the last publication; ``None`` if it is unknown or cannot be read."""
        try:
            return Manifest.model_validate_json(self._meta().get("published_manifest", ""))
        except ValidationError as error:
            logger.info("all segments are built again: %s", error)
            return None

    def _is_sound(self, segment: SegmentFile) -> bool:
        try:
            self._files.check_segment(self._files.folder / segment.name)
        except StoreError as error:
            logger.warning("a segment is built again: %s", error)
            return False
        return True

    def _build_segment(self, name: str, publication: Publication, facts: Mapping[str, str]) -> SegmentFile:
        """Build a segment from the documents that are assigned to its name. Return its entry for the manifest."""
        file = segment_build_path(self._files.folder, name)
        picked = f"select document_id from placed where segment = {quote(name)}"
        built = build_generation(self._connection, file, publication, self._layout, self._facts(facts), picked)
        try:
            checksum = checksum_of(file)
        except OSError as error:
            raise StoreError(f"{file}: cannot be read: {error}") from error
        return SegmentFile(name=name, checksum=checksum, **asdict(built.counts))

    def publish(self, candidate: Candidate) -> Publication:
        before = self._files.current()
        self._lock.confirm()
        try:
            manifest = read_manifest(self._files.build_path(candidate.generation))
            self._files.publish(candidate.generation, candidate.publication.created_at)
        except OSError as error:
            raise StoreError(f"{candidate.generation} could not be published, the old one stays: {error}") from error
        # Killed between the pointer and this transaction, the next sync publishes the same content once more.
        self._record_publication(candidate, manifest)
        self._files.prune(self._layout.settings.keep_generations, self._layout.settings.keep)
        self._hand_over(before)
        return candidate.publication

    def publish_map(self, query_map: QueryMap | None, run_id: str) -> GenerationId | None:
        recorded, facts = self._last_manifest(), json.loads(self._meta().get("published_facts", "{}"))
        current = self._files.current()
        if recorded is None or recorded.generation != current or self.unpublished(facts):
            return None
        if query_map == recorded.query_map:
            return current
        return self.publish(self._build_with(query_map, run_id, facts)).generation

    def write_again(self, deleted: Deleted) -> bool:
        current, facts = self._files.current(), self._meta().get("published_facts")
        values = [deleted.source_id, deleted.path]
        files = self._files.data_files(current) if current else ()
        holding = [file for file in files if read_rows(DataFile(file.path), TEXTS_OF, values)]
        if not holding or facts is None or any(read_rows(file, TEXTS_OF, values) for file in holding):
            return False
        is_due = self.unpublished(json.loads(facts))
        with self._transaction() as connection:
            connection.execute(
                "update published set segment = null where segment in (select unnest(?))",
                [[file.path.name for file in holding]],
            )
        if is_due:
            return False
        self.publish(self.build("receipt", json.loads(facts)))
        return True

    def _hand_over(self, before: GenerationId | None) -> None:
        """Upload the files for other machines. If that fails, point local readers back to ``before``.

        ``before`` is the generation that was published before; ``None`` if there was none.

        Raises:
            StoreError: the lease is lost, or the server does not answer.
            PublicationError: object storage did not take the files.
        """
        if not self._lock.shares_files:
            return
        with self._closed():
            try:
                self._lock.commit()
            except (PublicationError, StoreError):
                if before and self._files.path(before).is_file():
                    self._files.point_at(before)
                raise

    def _overwrite(self) -> None:
        with self._closed():
            overwrite(self._file)
            self._lock.commit(overwriting=True)

    def _record_publication(self, candidate: Candidate, manifest: Manifest) -> None:
        """Record a publication, and for each document the segment that holds it."""
        with self._transaction() as connection:
            insert_publication(connection, candidate.publication)
            self._record(connection, candidate)
            connection.execute(
                "update published set segment = placed.segment from placed "
                "where published.document_id = placed.document_id and published.segment is distinct from placed.segment"
            )
            connection.execute("delete from meta where key = 'published_manifest'")
            connection.execute("insert into meta values ('published_manifest', ?)", [manifest.to_json()])

    def discard(self, candidate: Candidate) -> None:
        self._files.remove_candidate(candidate.generation)


class SegmentFill(NamedTuple):
    """A segment with its number of chunks, and the number of those that the new generation still has (``live``)."""

    name: str
    chunks: int
    live: int


def joining(held: Sequence[SegmentFill], changed: int) -> set[str]:
    """Return the names of the segments to rewrite.

    If 50 of 60,000 documents change on each of 365 days, this keeps at most 10 segments. Together they are 1.3 times as
    large as a single segment, and a document is written 4 times (``python -m lab.bench --only segments``).

    Args:
        held: the segments of the last publication.
        changed: the number of chunks of documents that must be written.
    """
    if changed + sum(each.live for each in held) <= SMALLEST:
        is_whole = not changed and all(each.live == each.chunks for each in held)
        return set() if is_whole else {each.name for each in held}
    worn = [each for each in held if each.chunks - each.live > each.chunks * WORN_SHARE]
    joined, building = {each.name for each in worn}, changed + sum(each.live for each in worn)
    for each in sorted(held, key=lambda each: each.live):
        is_light = each.live <= max(building, SMALLEST // NEGLIGIBLE_SHARE)
        if not building or not is_light or building + each.live > LARGEST:
            break
        if each.name not in joined:
            joined.add(each.name)
            building += each.live
    return joined


@dataclass(frozen=True, slots=True)
class Plan:
    """The segments of the candidate.

    Attributes:
        kept: the segments that stay, with their newly gone documents.
        written: the names of the segments to build. The temporary table ``placed`` has the documents of each.
    """

    kept: tuple[SegmentFile, ...]
    written: tuple[str, ...]


def plan(
    connection: Connection, generation: GenerationId, published: Sequence[SegmentFile], files: GenerationFiles
) -> Plan:
    """Decide which segments a candidate keeps, and which are built for it.

    Args:
        connection: a connection to the working file. The temporary table ``placed`` is created in it.
        generation: the name of the candidate.
        published: the undamaged segments of the last publication that were built with the same settings.
        files: the files of the domain. A segment with newly gone documents is downloaded.

    Raises:
        StoreError: a segment cannot be downloaded.
        duckdb.Error: the working file or a segment is damaged.
    """
    connection.execute(_PLACED, [[segment.name for segment in published]])
    sizes = connection.execute("select segment, count(*), sum(chunks) from placed group by segment").fetchall()
    there = {segment: (documents, int(chunks)) for segment, documents, chunks in sizes}
    changed = max(there.pop(None, (0, 0)))
    held = [each for each in published if each.name in there]
    joined = joining([SegmentFill(each.name, each.chunks, there[each.name][1]) for each in held], changed)
    kept = [each for each in held if each.name not in joined]
    connection.execute(
        "update placed set segment = null where segment in (select unnest(?::varchar[]))", [sorted(joined)]
    )
    connection.execute(_DIVIDED, [LARGEST, generation])
    written = connection.execute(
        "select distinct segment from placed where segment not in (select unnest(?::varchar[])) order by segment",
        [[each.name for each in kept]],
    ).fetchall()
    names = tuple(name for (name,) in written) or (() if kept else (named(generation, 0),))
    return Plan(tuple(_with_gone_marked(connection, each, there[each.name][0], files) for each in kept), names)


def _with_gone_marked(
    connection: Connection, segment: SegmentFile, documents: int, files: GenerationFiles
) -> SegmentFile:
    """Return a segment with the documents marked that are gone since the last publication.

    Args:
        documents: the number of its documents that still exist. If none has gone, the segment is returned unchanged.
    """
    if documents == segment.documents - segment.gone_documents:
        return segment
    file = files.folder / segment.name
    files.bring(file)
    connection.execute(f"attach {quote(str(file))} as held (read_only)")
    try:
        gone = connection.execute(_GONE, [segment.name]).fetchall()
    finally:
        connection.execute("detach held")
    return segment.without([number for number, _ in gone], sum(chunks for _, chunks in gone))


class SharedFiles(Elsewhere, Protocol):
    """The folder of a domain that several machines share."""

    def lock(self, purpose: str, wait_s: float) -> Lock:
        """Return the writer's lock. It waits for other writers, downloads the files, and uploads them at the end."""


class DuckDBStore:
    """One domain's storage in one folder. Implements ``port.Store``."""

    def __init__(
        self,
        folder: Path,
        settings: StorageSettings,
        *,
        dimensions: int,
        declared: DeclaredFilters = NO_DECLARED_FILTERS,
        token_vectors: str = "",
        shared: SharedFiles | None = None,
    ) -> None:
        self.folder = folder
        self._shared = shared
        self.files = GenerationFiles(folder / "generations", shared)
        self._layout = Layout(settings, dimensions, declared, token_vectors)

    def _lock(self, purpose: str, wait_s: float) -> Lock:
        if self._shared:
            return self._shared.lock(purpose, wait_s)
        return WriterLock(self.folder / "writer.lock", purpose=purpose, wait_s=wait_s)

    @contextmanager
    def writer(self, *, wait_s: float = 0, purpose: str = "sync") -> Iterator[Writer]:
        """Open the domain for writing under its lock.

        Raises:
            DomainBusyError: another process still writes it after ``wait_s`` seconds. The message says which process.
        """
        with ExitStack() as stack:
            lock = stack.enter_context(self._lock(purpose, wait_s))
            self.files.folder.mkdir(parents=True, exist_ok=True)
            self.files.clear_builds()
            yield stack.enter_context(DuckDBWriter(self.folder / WORKING_FILE, self.files, lock, self._layout))

    def current(self) -> GenerationId | None:
        return self.files.current()

    def generations(self) -> tuple[GenerationId, ...]:
        return self.files.all()

    def published_facts(self) -> Mapping[str, str]:
        try:
            current = self.current()
            if current is None:
                return {}
            ahead = None if (self.folder / WORKING_FILE).exists() else facts_ahead(self.folder, current)
            return ahead or self.files.facts(current)
        except StoreError as error:
            logger.warning("%s: how it was made cannot be told: %s", self.folder, error)
            return {}

    def texts_of(self, generation: GenerationId, deleted: Deleted, *, also_gone: bool = False) -> list[str]:
        """Return the texts of a document's chunks in a generation; empty if it does not have the document.

        Args:
            also_gone: include documents that are gone from the generation but still in its files.
        """
        files = self.files.data_files(generation)
        values = [deleted.source_id, deleted.path]
        return [
            text
            for file in ([DataFile(each.path) for each in files] if also_gone else files)
            for (text,) in read_rows(file, TEXTS_OF, values)
        ]

    def remove_generations(self, generations: Sequence[GenerationId]) -> None:
        """Remove generations except the published one. The caller holds the domain's lock."""
        self.files.remove(generations)

    def data_files(self, generation: GenerationId) -> tuple[DataFile, ...]:
        """Return the local files with a generation's documents, chunks and facts.

        If the manifest cannot be read, return only the manifest.
        """
        return self.files.named_files(generation)

    def rollback(self, generation: GenerationId | None = None) -> GenerationId:
        with self._lock("rollback", 0) as lock:
            target = generation or self.files.previous()
            self.files.point_at(target)
            lock.commit()
        return target
