"""Complete what somebody types: names, paths, headings and channels of the documents that they may see."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from nornweave.index.port import Mask
from nornweave.index.searching.generation_file import GenerationFile
from nornweave.index.searching.visibility import picking

CompletionKind: TypeAlias = Literal["name", "path", "heading", "channel"]
# A longer text is no name; headings that are sentences do not fit a list.
MAX_CHARACTERS = 120


@dataclass(frozen=True, slots=True)
class Completion:
    """A text that goes on with what was typed; ``chunks`` counts the chunks that have it."""

    text: str
    kind: CompletionKind
    chunks: int
    is_prefix: bool

    @property
    def order(self) -> tuple[bool, int, int, str, str]:
        """Return what completions are ordered by: those that begin so first, then the frequent, then the short."""
        return not self.is_prefix, -self.chunks, len(self.text), self.text, self.kind


def complete(file: GenerationFile, documents: Mask | None, typed: str, limit: int) -> list[Completion]:
    """Return the best completions, in their order.

    Args:
        documents: which may be seen, by number; ``None`` for all.
        typed: what the text or a word in it begins with, in either case.

    Raises:
        StoreError: the generation cannot be read.
    """
    seen, numbers = ("true", "[]") if documents is None else picking(documents)
    parameters: dict[str, str | int] = {
        "typed": typed,
        # RE2, for texts in which a word begins with what was typed.
        "pattern": rf"(?i)(?:^|[^\pL\pN]){re.escape(typed)}",
        "most": MAX_CHARACTERS,
        "limit": limit,
    }
    if documents is not None:
        parameters["documents"] = numbers
    with file.reading() as cursor:
        rows = cursor.execute(_COMPLETIONS.format(seen=seen), parameters).fetchall()
    return [Completion(*row) for row in rows]


def merged_completions(found: Iterable[Sequence[Completion]], limit: int) -> list[Completion]:
    """Merge what several files have: the counts of a text add up."""
    merged: dict[tuple[str, CompletionKind], Completion] = {}
    for completion in (each for completions in found for each in completions):
        known = merged.get((completion.text, completion.kind))
        chunks = completion.chunks + (known.chunks if known else 0)
        merged[completion.text, completion.kind] = Completion(
            completion.text, completion.kind, chunks, completion.is_prefix
        )
    return heapq.nsmallest(limit, merged.values(), key=lambda completion: completion.order)


# What was typed is looked for before metadata are read: to parse those of all chunks takes 50 ms for 15,000.
_COMPLETIONS = """
with titled as materialized (
  select document_no, title, metadata
  from chunks
  where contains(lower(title), lower($typed)) and regexp_matches(title, $pattern)
),
labelled as (
  select
    document_no,
    title,
    json_extract_string(metadata, '$.channel') as channel,
    json_extract_string(metadata, '$.language') as language
  from titled
),
stated as (
  select document_no, path as stated, 'path' as kind
  from documents
  where contains(lower(path), lower($typed)) and regexp_matches(path, $pattern)
  union all
  select
    document_no,
    coalesce(channel, title),
    case when channel is not null then 'channel' when language is not null then 'name' else 'heading' end
  from labelled
)
select stated, kind, count(*) as chunks, starts_with(lower(stated), lower($typed)) as is_prefix
from stated
where length(stated) <= $most and {seen}
group by stated, kind
order by not is_prefix, chunks desc, length(stated), stated, kind
limit $limit
"""
