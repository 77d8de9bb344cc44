"""Plan a build: which published segments stay, which of their documents are gone, which new segments to write.

Sizes of segments are tiers: each is larger than all newer ones together, so there are few, and a document is written
again a few times in its life, not at every publication.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nornweave.core.types import GenerationId
from nornweave.index.connection import Connection, quote
from nornweave.index.generations.publish import GenerationFiles
from nornweave.index.manifest import SegmentFile, named
from nornweave.index.writing.working_tables import VERSIONS

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
