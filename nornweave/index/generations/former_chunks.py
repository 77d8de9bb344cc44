"""Where a chunk stood that no published generation has any more, out of the older generations that are kept.

Only the place is told, never the text: what was deleted stays deleted.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from nornweave.core.access.rules import Rule, decode_rule, decode_source_rules
from nornweave.core.errors import StoreError
from nornweave.core.types import GenerationId
from nornweave.index.generations.known import Generations
from nornweave.index.generations.publish import GenerationFiles
from nornweave.index.searching.generation_file import DataFile, read_rows

_CHUNK_ID = re.compile(r"[0-9a-f]{32}")

LookUp: TypeAlias = Callable[[GenerationId, str], "FormerPlace | None"]
"""Generation and chunk id → where it stood there."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FormerPlace:
    """The document that held a chunk, the last generation in which it did, and who could see it there."""

    source_id: str
    path: str
    rule: Rule
    generation: GenerationId


def former_place(generations: Generations, chunk_id: str, look_up: LookUp) -> FormerPlace | None:
    """Return where a chunk stood; ``None`` when no generation that is kept knows it.

    All are asked, whichever knows it: the time that it takes says nothing.
    """
    current, place = generations.current(), None
    if not _CHUNK_ID.fullmatch(chunk_id):
        return None
    for generation in reversed(generations.all()):
        if generation == current:
            continue
        try:
            former = look_up(generation, chunk_id)
        except (StoreError, ValueError) as error:  # removed meanwhile, or damaged: an older one may know
            log.info("%s: %s", generation, error)
            continue
        place = place or former
    return place


def place_in_files(
    files: GenerationFiles, known: dict[Path, list[tuple[Any, ...]]], generation: GenerationId, chunk_id: str
) -> FormerPlace | None:
    """Return where a chunk stood in a generation; ``None`` when that did not have it.

    Args:
        known: what each file said of this chunk; generations share most of theirs.
    """
    for file in files.data_files(generation):
        if file.path not in known:
            known[file.path] = read_rows(DataFile(file.path), _PLACE, [chunk_id])
        for document_no, source_id, path, access, sources in known[file.path]:
            if document_no not in file.gone:
                stated = decode_source_rules(sources)
                rule = (*decode_rule(access), *((stated[source_id],) if source_id in stated else ()))
                return FormerPlace(source_id, path, rule, generation)
    return None


_PLACE = """
select document_no, source_id, path, access, (select value from meta where key = 'access')
from chunks
join documents using (document_no)
where chunk_id = ?
"""
