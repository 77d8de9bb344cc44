"""The shapes of the results of tools for agents.

OpenAI's connectors read ``results``, ``id``, ``title``, ``text``, ``url`` and ``metadata``.
"""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict  # pydantic refuses typing.TypedDict before Python 3.12

from nornweave.ask.views.answer import AnswerableDocument


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
