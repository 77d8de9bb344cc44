"""Where a chunk stood that the published generation does not have any more, out of the older ones that are kept."""

from __future__ import annotations

import logging
import re

from nornweave.core.access.rules import decode_rule, decode_source_rules
from nornweave.core.errors import StoreError
from nornweave.core.types import GenerationId
from nornweave.index.former_chunks import FormerPlace
from nornweave.index.postgresql.generations import PostgresGenerations
from nornweave.index.postgresql.names import prefix_of

_CHUNK_ID = re.compile(r"[0-9a-f]{32}")

log = logging.getLogger(__name__)


def former_place(generations: PostgresGenerations, chunk_id: str) -> FormerPlace | None:
    """Return where a chunk stood; ``None`` when no generation that is kept knows it.

    All are asked, whichever knows it: the time that it takes says nothing.
    """
    if not _CHUNK_ID.fullmatch(chunk_id):
        return None
    current, place = generations.current(), None
    for generation in reversed(generations.all()):
        if generation == current:
            continue
        try:
            found = _look_up(generations, generation, chunk_id)
        except (StoreError, ValueError) as error:  # removed meanwhile: an older one may know
            log.info("%s: %s", generation, error)
            continue
        place = place or found
    return place


def _look_up(generations: PostgresGenerations, generation: GenerationId, chunk_id: str) -> FormerPlace | None:
    g = prefix_of(generation)
    rows = generations.server.rows(
        f"""
            select source_id, path, access, (select meta ->> 'access' from generations where number = %s)
            from {g}chunks
            join {g}documents using (document_no)
            where chunk_id = %s
            """,
        [int(g[1:-1]), chunk_id],
    )
    if not rows:
        return None
    source_id, path, access, sources = rows[0]
    stated = decode_source_rules(sources)
    rule = (*decode_rule(access), *((stated[source_id],) if source_id in stated else ()))
    return FormerPlace(source_id, path, rule, generation)
