"""Chunks and documents as they were ingested, the states of documents handed in, and look-ups, as JSON.

Look-ups are the uses of a name, the imports of a file, and why a place is not in an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field
from typing_extensions import TypedDict  # pydantic refuses typing.TypedDict before Python 3.12

from nornweave.ask.search.items import citation_of
from nornweave.ask.search.question import Question
from nornweave.ask.views.answer import ClaimDocument, claim_document
from nornweave.ask.views.items import CitationDocument, citation_document
from nornweave.ask.views.shaping import in_shape, moment_text
from nornweave.ask.why import Stage, Why
from nornweave.connect.inbox.deposits import InboxDocument
from nornweave.core.types import NO_METADATA, Domain, Metadata
from nornweave.index.inbox_life_cycle import DepositPage
from nornweave.index.records import StoredChunk, StoredText
from nornweave.index.searching.finding import CompletionKind
from nornweave.read.chunking.references import ReferenceKind

_STAGES = {
    None: "It is in the answer.",
    "filtered": "A filter or the choice of domains leaves it out.",
    "not_a_candidate": "No retriever has it among its best: it shares neither words nor meaning enough.",
    "combined": "Other passages score higher.",
    "merged": "It says the same as another passage, and was merged into it.",
    "demoted": "It lost a conflict, and stands lower for that.",
    "budget": "It was cut by max_tokens, min_score or diversity.",
}


class ChangeDocument(TypedDict):
    """A commit. ``chunk_id`` is its passage, ``null`` if the commit is not among those that are read."""

    chunk_id: str | None
    revision: str
    subject: str
    author: str | None
    date: str | None


class AboutDocument(TypedDict):
    """A commit that names an issue or pull request, or an issue or pull request named by a commit."""

    chunk_id: str
    domain_id: str
    title: str
    url: str | None
    date: str | None


class ChunkDocument(TypedDict):
    """The text behind a citation."""

    chunk_id: str
    domain_id: str
    content: str
    citation: CitationDocument
    metadata: dict[str, Any]
    claims: list[ClaimDocument]
    last_change: Annotated[ChangeDocument | None, Field(description="of its file, where commits are read")]
    about: Annotated[list[AboutDocument], Field(description="threads of a commit, commits and threads of a thread")]
    generation: str


class DocumentDocument(TypedDict):
    """A whole document as it was ingested."""

    domain_id: str
    source_id: str
    source_path: str
    title: str | None
    format: str
    timestamp: str | None
    revision: str | None
    url: str | None
    stale: bool
    metadata: dict[str, Any]
    text: str
    chunks: Annotated[list[str], Field(description="ids of its chunks, in order")]
    generation: str


class HeadingDocument(TypedDict):
    """A section of a document: its name, where it begins, and the chunk there."""

    title: str
    line: int | None
    chunk_id: str


class LineMatchDocument(TypedDict):
    """A line that matches."""

    domain_id: str
    source_id: str
    source_path: str
    line: Annotated[int, Field(description="as citations count, from 1")]
    text: Annotated[str, Field(description="the line; of a long one what stands around the match")]
    chunk_id: Annotated[str | None, Field(description="of the passage that holds it")]


class UnsearchedDocument(TypedDict):
    """A domain that could not be searched."""

    domain_id: str
    reason: str


class FindDocument(TypedDict):
    """Matching lines, by domain, source, path and line."""

    matches: list[LineMatchDocument]
    hidden: Annotated[int, Field(description="matches in text that no reader of the document sees, not shown")]
    truncated: Annotated[bool, Field(description="there are more than `limit`, or the time was up")]
    not_searched: list[UnsearchedDocument]


class CompletionDocument(TypedDict):
    """A text that continues the typed one."""

    text: str
    kind: CompletionKind
    domain_id: str
    chunks: Annotated[int, Field(description="that have it")]


class CompletionsDocument(TypedDict):
    """The best completions."""

    completions: list[CompletionDocument]


Deposit: TypeAlias = InboxDocument
"""A document that is handed in, for whoever must not know of ingestion."""


class DepositDocument(TypedDict):
    """The outcome of a document that was handed in."""

    source_path: str
    status: Literal["ACCEPTED", "REJECTED"]
    reason: str | None


class DocumentStateDocument(TypedDict):
    """The state of a document after the last sync."""

    source_path: str
    source_id: str
    status: Annotated[
        Literal["accepted", "indexed", "failed", "skipped", "deleted"],
        Field(description="`accepted` waits for the next sync, `deleted` goes with it"),
    ]
    generation: Annotated[str | None, Field(description="that has it; of one that failed an older version of it")]
    reason: str | None
    updated_at: str | None
    size: Annotated[int | None, Field(description="bytes that were handed in, of other sources bytes of its text")]
    chunks: int


class DocumentsDocument(TypedDict):
    """Documents by source and path."""

    documents: list[DocumentStateDocument]
    next: Annotated[str | None, Field(description="pass it as `cursor` to get those after them; null at the end")]


class WithdrawnDocument(TypedDict):
    """A document that was removed from the inbox."""

    source_path: str
    status: Literal["DELETED"]


def documents_document(page: DepositPage) -> DocumentsDocument:
    """Return the JSON document of a page of texts that programs deposited."""
    documents = [in_shape(DocumentStateDocument, state) for state in page.documents]
    return {"documents": documents, "next": page.next}


def chunk_document(
    domain: Domain,
    chunk: StoredChunk,
    generation: str,
    verified_at: datetime | None,
    commit: StoredChunk | None,
    about: Sequence[tuple[Domain, StoredChunk]],
    said: Metadata = NO_METADATA,
) -> ChunkDocument:
    """Return the text behind a citation.

    Args:
        commit: the last commit of its file, if it is read.
        about: chunks on the same issues and pull requests, each with its domain.
        said: what git says of the last commit of its file (``last_change``, ``author``); empty where none are read.
    """
    citation = citation_of(domain, chunk, verified_at)
    change = commit and change_document(commit)
    if not change and isinstance(subject := said.get("last_change"), str):
        author, date = said.get("author"), moment_text(chunk.updated_at)
        change = {"chunk_id": None, "revision": chunk.revision or "", "subject": subject,
                  "author": author if isinstance(author, str) else None, "date": date}  # fmt: skip
    return in_shape(
        ChunkDocument,
        chunk,
        domain_id=domain.value,
        citation=citation_document(citation),
        claims=[claim_document(fact, chunk.chunk_id, citation) for fact in chunk.facts],
        last_change=change,
        about=[
            in_shape(
                AboutDocument,
                each,
                domain_id=of.value,
                title=each.title or each.path,
                date=moment_text(each.updated_at),
            )
            for of, each in about
        ],
        generation=generation,
    )


def change_document(commit: StoredChunk) -> ChangeDocument:
    """Return a commit as JSON."""
    author = commit.metadata.get("author")
    return {
        "chunk_id": commit.chunk_id,
        "revision": commit.revision or "",
        "subject": commit.title or "",
        "author": author if isinstance(author, str) else None,
        "date": moment_text(commit.updated_at),
    }


def document_document(
    domain: Domain, source_id: str, path: str, stored: StoredText, generation: str
) -> DocumentDocument:
    """Return a whole stored document as JSON."""
    return in_shape(
        DocumentDocument,
        stored,
        domain_id=domain.value,
        source_id=source_id,
        source_path=path,
        timestamp=moment_text(stored.updated_at),
        chunks=list(stored.chunk_ids),
        generation=generation,
    )


class NamedDefinitionDocument(TypedDict):
    """A definition with this name."""

    source_id: str
    path: str
    line: int
    name: Annotated[str, Field(description="with what is around it: `Ledger.add`")]


class ReferenceDocument(TypedDict):
    """Places in a document that use the name in one way."""

    source_id: str
    path: str
    lines: list[int]
    kind: ReferenceKind
    certainty: Annotated[
        Literal["resolved", "by_name"], Field(description="`by_name`: it is called so, and may be something else")
    ]
    definition: Annotated[str | None, Field(description="`path:line` of the one that is meant, where that is certain")]


class NotLookedAtDocument(TypedDict):
    """Documents that hold the name and were not read."""

    documents: Annotated[int | None, Field(description="how many; null: nobody knows")]
    reason: str


class UsesDocument(TypedDict):
    """Uses of a name in source code, by source, path and line."""

    name: str
    definitions: list[NamedDefinitionDocument]
    references: list[ReferenceDocument]
    resolved: Annotated[int, Field(description="lines whose reference is certain")]
    by_name: Annotated[int, Field(description="lines that have the name, and perhaps mean another one")]
    documents: Annotated[int, Field(description="that were looked at: all that hold the word, but those below")]
    not_looked_at: list[NotLookedAtDocument]
    more: Annotated[int, Field(description="references that are left out to keep this short")]


class DependencyDocument(TypedDict):
    """A file at the other end of an import."""

    path: str
    lines: Annotated[list[int], Field(description="of the statements, in the file that imports")]
    names: Annotated[list[str], Field(description="that are taken from there")]


class GraphDocument(TypedDict):
    """The imports of a file, and the files that import it."""

    source_id: str
    path: str
    depends_on: list[DependencyDocument]
    used_by: list[DependencyDocument]
    outside: Annotated[list[str], Field(description="modules that are no file of the source, or not certainly one")]
    not_looked_at: list[NotLookedAtDocument]


class WhyDocument(TypedDict):
    """Why a place is not in an answer."""

    shown: bool
    stage: Annotated[Stage | None, Field(description="at which it lost; null when it is shown")]
    words: Annotated[str, Field(description="the stage in a sentence")]
    rank: Annotated[int | None, Field(description="in the answer or below it, from 1; null where nothing ranked it")]
    margin: Annotated[float | None, Field(description="of score, to the last place that is shown")]
    change: Annotated[str, Field(description="the smallest change that was tried and lifts it; empty if none does")]
    changed: Annotated[dict[str, Any] | None, Field(description="the body of `POST /query` that does")]
    retrievers: Annotated[dict[str, int], Field(description="retriever → rank there")]


def why_document(why: Why) -> WhyDocument:
    """Return why a place is not in an answer."""
    changed = _body(why.changed) if why.changed else None
    return in_shape(WhyDocument, why, shown=why.stage is None, words=_STAGES[why.stage], changed=changed)


def _body(question: Question) -> dict[str, Any]:
    """Return the body of ``POST /query`` that asks a question."""
    stated = {
        "query": question.text,
        "domains": [domain.value for domain in question.domains] if question.domains else None,
        "filters": {domain.value: dict(filters) for domain, filters in question.filters.items() if filters},
        "top_k": question.top_k,
        "max_tokens": question.max_tokens,
        "min_score": question.min_score,
        "diversity": question.diversity,
        "conflict_strategy": question.strategy.value if question.strategy else None,
    }
    return {name: value for name, value in stated.items() if value not in (None, {})}
