"""Find lines of documents by exact text or regular expression, and complete typed text.

DuckDB matches with RE2, which never backtracks. Documents are read a batch at a time, in the order of source and path,
until there are enough lines or the time is up: a time that is linear in what is read.

Completed are names, paths, headings and channels of the documents that they may see.
"""

from __future__ import annotations

import heapq
import json
import re
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from typing import Literal, TypeAlias

import duckdb

from nornweave.core.errors import QueryError
from nornweave.index.connection import Connection
from nornweave.index.port import Mask
from nornweave.index.searching.generation_file import GenerationFile
from nornweave.index.searching.visibility import picking

MAX_PATTERN_CHARACTERS = 1_024
# Documents in memory at once.
BATCH = 64
# A longer line is cut around the match.
SHOWN_CHARACTERS, BEFORE_CHARACTERS = 1_000, 200


@dataclass(frozen=True, slots=True)
class LinePattern:
    """The pattern of a line search.

    Attributes:
        expression: a regular expression of RE2 if ``is_regex``, otherwise a text to find as it is.
    """

    expression: str
    is_regex: bool = False
    ignores_case: bool = False

    @property
    def re2(self) -> str:
        """Return the pattern as one RE2 expression. An invalid expression raises ``duckdb.Error`` when it is used."""
        return f"{'(?i)' if self.ignores_case else ''}{self.expression}"


@dataclass(frozen=True, slots=True)
class LineMatch:
    """A matching line. ``line`` counts from 1. ``chunk_id`` is the chunk that contains the match.

    ``is_quoted`` is true if the chunk has the whole line. Otherwise the line may be hidden text of the document.
    """

    source_id: str
    path: str
    line: int
    text: str
    chunk_id: str | None
    is_quoted: bool = False

    @property
    def place(self) -> tuple[str, str, int]:
        """Return the sort key of matches."""
        return self.source_id, self.path, self.line


@dataclass(frozen=True, slots=True)
class FoundLines:
    """Matching lines by source, path and line. ``is_complete`` tells whether these are all matching lines."""

    matches: tuple[LineMatch, ...]
    is_complete: bool


def find_lines(
    file: GenerationFile, documents: Sequence[int], pattern: LinePattern, limit: int, deadline: float
) -> FoundLines:
    """Return the first ``limit`` lines that match.

    Args:
        documents: numbers of the visible documents, ascending. Other texts are not read.
        deadline: a ``time.monotonic()``. At this time, the lines found so far are returned.

    Raises:
        QueryError: the expression is not a valid expression of RE2.
        StoreError: the generation cannot be read.
    """
    matches: list[LineMatch] = []
    with file.reading() as cursor:
        _check(cursor, pattern)
        with suppress(duckdb.InterruptException), _interrupted_at(deadline, cursor):
            for start in range(0, len(documents), BATCH):
                if len(matches) > limit or time.monotonic() >= deadline:
                    break
                matches += _in_batch(cursor, documents[start : start + BATCH], pattern, limit + 1 - len(matches))
            else:
                return FoundLines(tuple(matches[:limit]), is_complete=len(matches) <= limit)
    return FoundLines(tuple(matches[:limit]), is_complete=False)


def merged_lines(found: Sequence[FoundLines], limit: int) -> FoundLines:
    """Return the first ``limit`` lines in several files, each of which was searched with this limit."""
    matches = tuple(heapq.merge(*(lines.matches for lines in found), key=lambda match: match.place))
    is_complete = len(matches) <= limit and all(lines.is_complete for lines in found)
    return FoundLines(tuple(islice(matches, limit)), is_complete)


def _check(cursor: Connection, pattern: LinePattern) -> None:
    if not pattern.is_regex:
        return
    try:
        cursor.execute("select regexp_matches('', ?)", [pattern.re2]).fetchall()
    except duckdb.Error as error:
        reason = str(error).removeprefix("Invalid Input Error: ").splitlines()[0][:200]
        raise QueryError("regex", f"is not a regular expression of RE2: {reason}") from error


def _in_batch(cursor: Connection, documents: Sequence[int], pattern: LinePattern, limit: int) -> Iterator[LineMatch]:
    if pattern.is_regex:
        holds, matched = "regexp_matches(line, $wanted)", "regexp_extract(line, $wanted)"
    elif pattern.ignores_case:
        holds, matched = "contains(lower(line), lower($wanted))", "$wanted"
    else:
        holds, matched = "contains(line, $wanted)", "$wanted"
    rows = cursor.execute(
        _LINES.format(holds=holds, matched=matched),
        {
            "documents": json.dumps([int(number) for number in documents]),
            "wanted": pattern.re2 if pattern.is_regex else pattern.expression,
            "limit": limit,
            "most": SHOWN_CHARACTERS,
            "before": BEFORE_CHARACTERS,
        },
    ).fetchall()
    return (LineMatch(*row) for row in rows)


# Select the visible texts first: the expression must not run on others.
_LINES = """
with texts as materialized (
  select document_no, source_id, path, replace(replace("text", chr(13) || chr(10), chr(10)), chr(13), chr(10)) as whole
  from documents
  where document_no in (select unnest(from_json($documents, '["integer"]')))
),
lines as (
  select document_no, source_id, path, unnest(rows) as line, unnest(range(1, len(rows) + 1)) as line_no
  from (select document_no, source_id, path, string_split(whole, chr(10)) as rows from texts)
),
matches as materialized (
  select document_no, source_id, path, line_no, line, {matched} as matched
  from lines
  where {holds}
  order by document_no, line_no
  limit $limit
)
select
  source_id,
  path,
  line_no,
  case
    when length(line) <= $most then line
    else substr(line, greatest(1, strpos(lower(line), lower(matched)) - $before), $most)
  end,
  (
    select arg_min(chunk_id, (not contains(lower(c.content), lower(matched)), chunk_no))
    from chunks c
    where c.document_no = m.document_no and m.line_no between c.line_start and c.line_end
  ),
  exists (
    select 1
    from chunks c
    where c.document_no = m.document_no and m.line_no between c.line_start and c.line_end
      and contains(c.content, trim(line))
  )
from matches m
order by document_no, line_no
"""


@dataclass(frozen=True, slots=True)
class WordTexts:
    """The texts of documents that contain a word, by source and path.

    Attributes:
        texts: source, path and text of the first documents with the word.
        beyond: the number of further documents with the word.
        is_complete: whether all documents were searched.
    """

    texts: tuple[tuple[str, str, str], ...]
    beyond: int
    is_complete: bool


def find_texts(
    file: GenerationFile, documents: Sequence[int], word: str, endings: Sequence[str], limit: int, deadline: float
) -> WordTexts:
    """Return the documents that contain a word. Other arguments and errors are as in ``find_lines``.

    Args:
        word: a name that must occur as a whole.
        endings: only paths with one of these endings are searched, such as ``.py``.
    """
    parameters = {"wanted": word, "pattern": rf"(?:^|[^\w$]){re.escape(word)}(?:$|[^\w$])", "endings": list(endings)}
    numbers: list[int] = []
    texts: list[tuple[str, str, str]] = []
    with file.reading() as cursor, suppress(duckdb.InterruptException), _interrupted_at(deadline, cursor):
        for start in range(0, len(documents), WORD_BATCH):
            chosen = json.dumps([int(number) for number in documents[start : start + WORD_BATCH]])
            rows = cursor.execute(_HOLDING, {**parameters, "documents": chosen}).fetchall()
            numbers += [number for (number,) in rows]
        texts = cursor.execute(_TEXTS, [json.dumps(numbers[:limit])]).fetchall()
        return WordTexts(tuple(texts), max(0, len(numbers) - limit), is_complete=True)
    return WordTexts(tuple(texts), len(numbers) - len(texts), is_complete=False)


def merged_texts(found: Sequence[WordTexts], limit: int) -> WordTexts:
    """Return the first ``limit`` texts in several files, each of which was searched with this limit."""
    texts = sorted(text for one in found for text in one.texts)
    beyond = sum(one.beyond for one in found) + max(0, len(texts) - limit)
    return WordTexts(tuple(texts[:limit]), beyond, all(one.is_complete for one in found))


WORD_BATCH = 1_024
_HOLDING = """
with texts as materialized (
  select document_no, "text"
  from documents
  where document_no in (select unnest(from_json($documents, '["integer"]')))
    and list_contains($endings, regexp_extract(lower(path), '\\.[^./]*$'))
)
select document_no
from texts
where contains("text", $wanted) and regexp_matches("text", $pattern)
order by document_no
"""
_TEXTS = """
select source_id, path, replace(replace("text", chr(13) || chr(10), chr(10)), chr(13), chr(10))
from documents
where document_no in (select unnest(from_json(?, '["integer"]')))
order by document_no
"""


@contextmanager
def _interrupted_at(deadline: float, cursor: Connection) -> Iterator[None]:
    timer = threading.Timer(max(0.0, deadline - time.monotonic()), cursor.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


CompletionKind: TypeAlias = Literal["name", "path", "heading", "channel"]
# A longer text is not a name, and headings that are sentences do not fit a list.
MAX_CHARACTERS = 120


@dataclass(frozen=True, slots=True)
class Completion:
    """A completion of the typed text. ``chunks`` is the number of chunks that contain it."""

    text: str
    kind: CompletionKind
    chunks: int
    is_prefix: bool

    @property
    def order(self) -> tuple[bool, int, int, str, str]:
        """Return a sort key. Completions that begin with the typed text come first, then frequent, then short ones."""
        return not self.is_prefix, -self.chunks, len(self.text), self.text, self.kind


def complete(file: GenerationFile, documents: Mask | None, typed: str, limit: int) -> list[Completion]:
    """Return the best completions in order.

    Args:
        documents: a mask of the visible documents; ``None`` for all.
        typed: the text with which a completion, or a word in it, must begin. Case does not matter.

    Raises:
        StoreError: the generation cannot be read.
    """
    seen, numbers = ("true", "[]") if documents is None else picking(documents)
    parameters: dict[str, str | int] = {
        "typed": typed,
        # RE2, for texts with a word that begins with the typed text.
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
    """Return the best completions of several files together. The counts of equal texts are added up."""
    merged: dict[tuple[str, CompletionKind], Completion] = {}
    for completion in (each for completions in found for each in completions):
        known = merged.get((completion.text, completion.kind))
        chunks = completion.chunks + (known.chunks if known else 0)
        merged[completion.text, completion.kind] = Completion(
            completion.text, completion.kind, chunks, completion.is_prefix
        )
    return heapq.nsmallest(limit, merged.values(), key=lambda completion: completion.order)


# Search for the typed text before parsing metadata, which takes 50 ms for 15,000 chunks.
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
