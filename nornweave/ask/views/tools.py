"""The results of tools for agents: their shapes, and the JSON, with each text on one line unless quoted whole.

OpenAI's connectors read ``results``, ``id``, ``title``, ``text``, ``url`` and ``metadata``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, NotRequired, TypeAlias

from pydantic import Field
from typing_extensions import TypedDict  # pydantic refuses typing.TypedDict before Python 3.12

from nornweave.ask.answer.text_renderer import behind
from nornweave.ask.fuse.records import Answer, FusedItem, Recalled
from nornweave.ask.views.answer import AnswerableDocument, answerable_document, item_role
from nornweave.ask.views.items import CitationDocument, citation_document
from nornweave.ask.views.ledger import LedgerEntryDocument, LedgerSideDocument
from nornweave.ask.views.texts import ChunkDocument, DocumentDocument, FindDocument, UsesDocument
from nornweave.core.text.terminal import counted, legible
from nornweave.core.types import JsonValue


class SearchResultDocument(TypedDict):
    """A passage that answers."""

    id: Annotated[str, Field(description="for `fetch`")]
    title: Annotated[str, Field(description="what it is about, and where it stands")]
    url: str
    domain: str
    date: Annotated[str | None, Field(description="when it was last changed, ISO 8601")]
    verified_at: Annotated[str | None, Field(description="when its source last confirmed that it is as it says")]
    snippet: Annotated[str, Field(description="the sentences or lines that the query is about")]
    conflict: NotRequired[
        Annotated[str, Field(description="it takes part in a conflict: `holds`, `agrees`, `demoted` or `flagged`")]
    ]
    folded: NotRequired[Annotated[str, Field(description="how many are like it and share its place, and where")]]


class LagDocument(TypedDict):
    """How old the read version of a repository is."""

    commits_behind: Annotated[
        int, Field(description="that came since, along first parents; what they changed is not seen")
    ]
    uncommitted: NotRequired[Annotated[bool, Field(description="files of the work tree are changed and not committed")]]


Behind = Annotated[
    dict[str, LagDocument],
    Field(description="source → how far its repository went on; only those that are known to be behind"),
]


class SearchDocument(TypedDict):
    """Passages, best first."""

    results: list[SearchResultDocument]
    answerable: AnswerableDocument
    behind: NotRequired[Behind]
    notes: NotRequired[Annotated[list[str], Field(description="what was not searched or left out, and what to do")]]


class FetchDocument(TypedDict):
    """A passage or a document."""

    id: str
    title: str
    text: str
    url: str
    metadata: Annotated[dict[str, str], Field(description="where it stands; `next` is the id of the rest")]


class SourceDocument(TypedDict):
    """A passage that the text cites."""

    number: Annotated[int, Field(description="by which `text` cites it")]
    id: Annotated[str, Field(description="for `fetch`")]
    title: NotRequired[
        Annotated[
            str,
            Field(description="what it is about, and where it stands; with little room only if `text` does not say it"),
        ]
    ]
    url: NotRequired[Annotated[str, Field(description="where it is another one than `page` says")]]


class FoundLineDocument(TypedDict):
    """A line that matches."""

    id: Annotated[str | None, Field(description="of the passage that holds it, for `fetch`")]
    place: Annotated[str, Field(description="domain, source, path and line")]
    text: str


class FoundLinesDocument(TypedDict):
    """Lines that match, in order."""

    lines: list[FoundLineDocument]
    more: Annotated[bool, Field(description="there are more; narrow it down")]
    notes: NotRequired[list[str]]


class AnswerPageDocument(TypedDict):
    """A part of one answer."""

    text: Annotated[
        str,
        Field(
            description="sentences that answer, conflicts with both sides, passages by domain, what was not searched"
        ),
    ]
    sources: Annotated[list[SourceDocument], Field(description="that `text` cites, in the order of relevance")]
    page: Annotated[str, Field(description="the url of a source; `{id}` is its id")]
    conflicts: Annotated[int, Field(description="in which the passages take part")]
    not_searched: Annotated[list[str], Field(description="domains that gave no answer; `text` says why")]
    more: Annotated[int, Field(description="passages that were found and are not shown yet")]
    answerable: AnswerableDocument
    next: Annotated[str | None, Field(description="pass it as `after`, with the same query, to get them")]
    behind: NotRequired[Behind]
    notes: NotRequired[list[str]]


class ConflictSideDocument(TypedDict):
    """The statement of one side of a conflict."""

    id: Annotated[str, Field(description="of the passage, for `fetch`")]
    domain: str
    place: str
    value: str
    statement: str
    date: str | None
    author: NotRequired[str]
    url: str


class LedgerConflictDocument(TypedDict):
    """Two places that disagree."""

    entry_id: str
    about: str
    sides: list[ConflictSideDocument]
    also: NotRequired[Annotated[list[str], Field(description="other places that say what the second side says")]]
    holds: Annotated[str | None, Field(description="the domain that probably holds")]
    reason: str
    confidence: Annotated[float, Field(description="the probability that it is a contradiction")]
    since: str
    settled: str | None


class ConflictsPageDocument(TypedDict):
    """A part of the conflict ledger."""

    conflicts: list[LedgerConflictDocument]
    total: int
    more: int
    next: Annotated[str | None, Field(description="pass it as `after`, with the same filters, to get them")]
    made_at: str | None
    notes: NotRequired[list[str]]


class DomainStatusDocument(TypedDict):
    """The status of one domain."""

    domain: str
    about: str
    state: str
    generation: str | None
    indexed_at: str | None
    documents: int
    chunks: int
    filters: Annotated[dict[str, str], Field(description="that `search` and `answer` take → type of their values")]
    notices: list[str]


class ToolStatusDocument(TypedDict):
    """The domains that can be searched."""

    version: str
    domains: list[DomainStatusDocument]


TITLE_CHARACTERS = 160
LINE_CHARACTERS = 240
NAME_CHARACTERS = 80
ALSO_SHOWN = 3
FILTER_VALUES = 6
_FRACTION = re.compile(r"\.\d+")

Link: TypeAlias = Callable[[str, str | None], str]
"""Chunk id and the citation's own URL → the URL that a reader opens."""


def search_document(answer: Answer, snippets: Sequence[str], link: Link) -> SearchDocument:
    """Return the first items of an answer, one per snippet, with a note on the rest."""
    results = [_result(item, part, answer, link) for item, part in zip(answer.items, snippets, strict=False)]
    notes = [f"not searched: {gap.name}: {line(gap.reason, LINE_CHARACTERS)}" for gap in answer.recalled.coverage_gaps]
    if left := len(answer.items) - len(results):
        notes.append(f"{left} more are left out to keep this short; ask more precisely, or search each domain alone")
    document: SearchDocument = {"results": results, "answerable": answerable_document(answer.answerable)}
    if lags := lag_documents(answer.recalled):
        document["behind"] = lags
    return {**document, "notes": notes} if notes else document


def lag_documents(recalled: Recalled) -> dict[str, LagDocument]:
    """Return source id → how far its repository is ahead of the index. Other sources are left out."""
    found: dict[str, LagDocument] = {}
    for name, source in (each for response in recalled.responses for each in response.sources.items()):
        if source.commits_behind or source.uncommitted:
            found[name] = {"commits_behind": source.commits_behind or 0}
            if source.uncommitted is not None:
                found[name]["uncommitted"] = source.uncommitted
    return found


def found_lines_document(found: FindDocument, count: int) -> FoundLinesDocument:
    """Return the first matching lines, each shortened."""
    document: FoundLinesDocument = {
        "lines": [
            {
                "id": match["chunk_id"],
                "place": " ".join(
                    (match["domain_id"], match["source_id"], _place(match["source_path"], [match["line"]], None))
                ),
                "text": line(match["text"], LINE_CHARACTERS),
            }
            for match in found["matches"][:count]
        ],
        "more": found["truncated"] or count < len(found["matches"]),
    }
    notes = [
        f"not searched: {one['domain_id']}: {line(one['reason'], LINE_CHARACTERS)}" for one in found["not_searched"]
    ]
    if found["hidden"]:
        notes.append(f"not shown: {counted(found['hidden'], 'line')} of hidden text")
    return {**document, "notes": notes} if notes else document


def short_uses_document(found: UsesDocument, count: int) -> UsesDocument:
    """Return the first uses of a name, each place on one line. ``more`` counts the others."""
    return {
        **found,
        "name": line(found["name"], TITLE_CHARACTERS),
        "definitions": [
            {**one, "path": line(one["path"], TITLE_CHARACTERS), "name": line(one["name"], NAME_CHARACTERS)}
            for one in found["definitions"][:count]
        ],
        "references": [
            {
                **one,
                "path": line(one["path"], TITLE_CHARACTERS),
                "definition": one["definition"] and line(one["definition"], TITLE_CHARACTERS),
            }
            for one in found["references"][:count]
        ],
        "more": max(0, len(found["references"]) - count),
    }


def title_of(item: FusedItem) -> str:
    """Return an item's title and its place."""
    return _title(citation_document(item.citation))


def source_document(number: int, item: FusedItem, link: Link, *, titled: bool) -> SourceDocument:
    """Return a numbered source of an answer's text. The URL is left out if ``page_template`` gives it."""
    document: SourceDocument = {"number": number, "id": item.chunk_id}
    if titled:
        document["title"] = title_of(item)
    url = link(item.chunk_id, item.citation.url)
    return document if url == link("", None) + item.chunk_id else {**document, "url": url}


def page_template(link: Link) -> str:
    """Return the URL of a passage with ``{id}`` for its id, so that results need not repeat URLs."""
    return link("", None) + "{id}"


def fetched_chunk(chunk: ChunkDocument, link: Link, document_id: str) -> FetchDocument:
    """Return a whole passage. ``document_id`` is the id with which a client fetches the whole document."""
    citation, change = chunk["citation"], chunk["last_change"]
    described: Mapping[str, JsonValue] = {
        **_describe_citation(citation),
        "last_change": change and f"{(change['date'] or '')[:10]} by {change['author']}: {change['subject']}",
        "about": "; ".join(f"{each['title']} (id {each['chunk_id']})" for each in chunk["about"]) or None,
        "document": document_id,
        "generation": chunk["generation"],
    }
    return {
        "id": chunk["chunk_id"],
        "title": _title(citation),
        "text": legible(chunk["content"]),
        "url": link(chunk["chunk_id"], citation["url"]),
        "metadata": _texts(described),
    }


def fetched_document(document: DocumentDocument, link: Link, document_id: str) -> FetchDocument:
    """Return a whole document. Its URL is that of its first passage."""
    described: Mapping[str, JsonValue] = {
        "domain": document["domain_id"],
        "source": document["source_id"],
        "path": document["source_path"],
        "date": document["timestamp"] and to_seconds(document["timestamp"]),
        "revision": document["revision"],
        "stale": document["stale"] or None,
        "generation": document["generation"],
    }
    return {
        "id": document_id,
        "title": line(document["title"] or document["source_path"], TITLE_CHARACTERS),
        "text": legible(document["text"]),
        "url": link(document["chunks"][0] if document["chunks"] else "", document["url"]),
        "metadata": _texts(described),
    }


def ledger_conflict_document(entry: LedgerEntryDocument, link: Link) -> LedgerConflictDocument:
    """Return a short form of an entry of the ledger."""
    document: LedgerConflictDocument = {
        "entry_id": entry["entry_id"],
        "about": line(f"{entry['entity']} {entry['attribute']}", TITLE_CHARACTERS),
        "sides": [_conflict_side(side, link) for side in entry["sides"]],
        "holds": entry["suggested"],
        "reason": line(entry["reason"], LINE_CHARACTERS),
        "confidence": round(entry["confidence"], 2),
        "since": to_seconds(entry["first_seen"]),
        "settled": entry["settled"] and to_seconds(entry["settled"]),
    }
    also = dict.fromkeys(_ledger_place(side) for side in entry["also"])
    if also:
        document["also"] = [*also][:ALSO_SHOWN]
    return document


def domain_status_document(described: Mapping[str, JsonValue], health: Mapping[str, JsonValue]) -> DomainStatusDocument:
    """Return a domain's status from its agent's description and health."""
    filters, notices = described.get("filters"), health.get("notices")
    documents, chunks, indexed_at = described.get("documents"), described.get("chunks"), health.get("indexed_at")
    return {
        "domain": str(described["domain_id"]),
        "about": line(str(described.get("description") or described.get("name") or ""), LINE_CHARACTERS),
        "state": str(health["state"]),
        "generation": _text(health.get("generation")),
        "indexed_at": to_seconds(str(indexed_at)) if indexed_at else None,
        "documents": documents if isinstance(documents, int) else 0,
        "chunks": chunks if isinstance(chunks, int) else 0,
        "filters": {
            str(one["key"]): _filter_described(one)
            for one in (filters if isinstance(filters, list) else [])
            if isinstance(one, Mapping) and ("from" not in one or one.get("documents"))
        },
        "notices": [line(str(one), LINE_CHARACTERS) for one in (notices if isinstance(notices, list) else [])],
    }


def _filter_described(described: Mapping[str, JsonValue]) -> str:
    """Return the type of a filter and, if a team declared the filter, its range or its frequent values."""
    kind, values = str(described["type"]), described.get("values")
    if "from" not in described or not isinstance(values, list):
        return kind
    if "min" in described:
        return f"{kind}, from {described['min']} to {described['max']}"
    names = [line(str(one["value"]), NAME_CHARACTERS) for one in values[:FILTER_VALUES] if isinstance(one, Mapping)]
    return f"{kind}, such as {', '.join(names)}"


def to_seconds(moment: str) -> str:
    """Return an ISO 8601 time without fractions of seconds."""
    return _FRACTION.sub("", moment)


def line(text: str, limit: int) -> str:
    """Return foreign text as one line of at most ``limit`` characters."""
    short = " ".join(legible(text[: limit * 4]).split())
    return short if len(short) <= limit else f"{short[: limit - 1].rstrip()}…"


def _result(item: FusedItem, part: str, answer: Answer, link: Link) -> SearchResultDocument:
    cited, shown = item.citation, citation_document(item.citation)
    document: SearchResultDocument = {
        "id": item.chunk_id,
        "title": title_of(item),
        "url": link(item.chunk_id, cited.url),
        "domain": item.domain,
        "date": shown["timestamp"] and to_seconds(shown["timestamp"]),
        "verified_at": shown["verified_at"],
        "snippet": legible(part),
    }
    role = item_role(item, answer.conflicts)
    if role:
        document["conflict"] = role["role"]
    if item.item.folded:
        document["folded"] = behind(item.item.folded)
    return document


def _title(citation: CitationDocument) -> str:
    path = citation["source_path"]
    place = _place(
        f"{citation['agent_id']}:{path}" if citation["agent_id"] else path, citation["line_range"], citation["page"]
    )
    name = citation["title"] or citation["section"]
    if not name:
        return place or line(citation["url"] or citation["source_id"], TITLE_CHARACTERS)
    return f"{line(name, NAME_CHARACTERS)} ({place})" if place else line(name, NAME_CHARACTERS)


def _place(path: str, line_range: Sequence[int] | None, page: int | None) -> str:
    """Return a place as ``path:3``, ``path:3-7`` or ``path p. 4``."""
    place = line(path, TITLE_CHARACTERS)
    if line_range:
        return f"{place}:{'-'.join(str(number) for number in dict.fromkeys(line_range))}"
    return place if page is None else f"{place} p. {page}"


def _describe_citation(citation: CitationDocument) -> dict[str, JsonValue]:
    lines, messages = citation["line_range"], citation["message_ids"]
    return {
        "domain": citation["domain_id"],
        "agent": citation["agent_id"],
        "source": citation["source_id"],
        "path": citation["source_path"],
        "section": citation["section"],
        "lines": f"{lines[0]}-{lines[1]}" if lines else None,
        "page": citation["page"],
        "messages": ", ".join(messages[:20]) if messages else None,
        "date": citation["timestamp"] and to_seconds(citation["timestamp"]),
        "revision": citation["revision"],
        "stale": citation["stale"] or None,
        "verified_at": citation["verified_at"],
    }


def _texts(described: Mapping[str, JsonValue]) -> dict[str, str]:
    """Return the known values as texts, because some clients read only text in ``metadata``."""
    return {
        key: line(value if isinstance(value, str) else str(value).lower(), 2 * LINE_CHARACTERS)
        for key, value in described.items()
        if value is not None
    }


def _conflict_side(side: LedgerSideDocument, link: Link) -> ConflictSideDocument:
    document: ConflictSideDocument = {
        "id": side["chunk_id"],
        "domain": side["domain_id"],
        "place": _ledger_place(side),
        "value": line(side["written"], NAME_CHARACTERS),
        "statement": line(side["statement"], LINE_CHARACTERS),
        "date": side["updated_at"] and to_seconds(side["updated_at"]),
        "url": link(side["chunk_id"], None),
    }
    if side["author"]:
        document["author"] = line(side["author"], NAME_CHARACTERS)
    return document


def _ledger_place(side: LedgerSideDocument) -> str:
    return _place(side["source_path"], side["line_range"], None)


def _text(value: JsonValue) -> str | None:
    return None if value is None else str(value)
