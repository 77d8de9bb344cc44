"""The nouns of the system, as defined in ``docs/architecture.md``.

Every record is frozen. Mappings inside records are read-only views (``freeze``); sequences are tuples.
Offsets are character offsets into ``Document.text``, half open ``[start, end)``; lines count from 1.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Literal, NewType, TypeAlias

from nornweave.core.files.paths import Within

SourceId = NewType("SourceId", str)
DocumentId = NewType("DocumentId", str)
ChunkId = NewType("ChunkId", str)
"""A digest. For a remote agent's passage ``name_elsewhere`` makes it from that agent's own id."""
ContentHash = NewType("ContentHash", str)
GenerationId = NewType("GenerationId", str)

JsonValue: TypeAlias = "None | bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue]"
Metadata: TypeAlias = Mapping[str, JsonValue]

NO_METADATA: Metadata = MappingProxyType({})


COMMIT, RELEASE = "commit", "release"
"""Formats, and metadata ``kind``, of documents that a repository's history makes."""
COMMITTED = re.compile(r"^Committed .{0,400}\.$", re.MULTILINE)
"""The line of a commit's text that says when it was made and by whom."""
HISTORY_GATE = "history-"
"""What the gates of their entries begin with."""


def is_of_history(gate: str) -> bool:
    """Tell whether a gate belongs to a commit or a release."""
    return gate.startswith(HISTORY_GATE)


def is_elsewhere(chunk_id: str) -> bool:
    """Tell whether a chunk id belongs to a remote agent."""
    return ":" in chunk_id


PERMALINKS = ("permalink", "thread_permalink")
"""Metadata: templates of the address of a message, and of one that did not begin its thread; see ``passage_url``."""
ANCHOR = "anchor"
"""Metadata of a chunk: what the address of its document has after ``#`` to open its section."""


def freeze(values: Mapping[str, JsonValue]) -> Metadata:
    """Return a read-only copy without keys whose value is ``None``, because a missing key means the same."""
    return MappingProxyType({key: value for key, value in values.items() if value is not None})


def present() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


class Domain(StrEnum):
    """The four domains."""

    CODE = "code"
    DOCUMENTATION = "documentation"
    CONVERSATIONS = "conversations"
    RESEARCH = "research"


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A half-open range of characters of a document."""

    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One document that a source lists, not read yet.

    Attributes:
        path: the document's path inside its source, with POSIX separators, never absolute, without ``..``.
        gate: a mark of the content that is cheap to get, such as size and times, or a git blob id. If it is the same as
            before, the document has not changed. Otherwise the document must be read to know.
        size: the size in bytes, if the source knows it.
        updated_at: when the document last changed according to the source, in UTC.
        revision: the source's name for this version of the document, such as a commit; ``None`` if it has none.
        metadata: what the source knows of the document (author, url, title), to add to the document's metadata.
        verified_at: when the source last confirmed that the document exists as it is; ``None`` means just now.
    """

    path: str
    gate: str
    size: int = 0
    updated_at: datetime | None = None
    revision: str | None = None
    metadata: Metadata = field(default_factory=lambda: NO_METADATA)
    verified_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Skip:
    """A path that a source leaves out on purpose, with the reason."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Listing:
    """Everything that a source lists at one moment, by path, and what it left out.

    Attributes:
        problem: why the listing is incomplete; ``None`` if it is complete. A document that an incomplete listing does
            not name counts as gone only if ``listed_at`` is set, because then the source has reported it as gone.
        withdrawn: paths that somebody removed from the source on purpose, so that their removal needs no confirmation.
        listed_at: when the source last named all of its documents; ``None`` means in this listing.
        within: the paths that the listing is about; ``None`` if it is about the whole source.
        notices: what people should know about a complete listing, such as reduced details.
        unmatched: entries of the metadata file that match no document, so that their statements have no effect.
        commit: the commit that was read, or was checked out when the files were read; ``None`` without git.
    """

    entries: tuple[Entry, ...]
    skipped: tuple[Skip, ...] = ()
    problem: str | None = None
    withdrawn: frozenset[str] = frozenset()
    listed_at: datetime | None = None
    within: Within | None = None
    notices: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()
    commit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation, as part of ``Document.text``.

    Attributes:
        id: Slack ``ts``, GitHub comment id, transcript cue or line number, as text.
        span: its part of the text, with the speaker label and without separators between messages; empty until the text
            is made.
        body: what was said, unchanged. In the text, the lines after the first are indented.
        thread_id: the same for all messages of a thread; ``None`` outside threads.
        timestamp: when it was said, in UTC; ``None`` for transcripts without a date.
        offset: for transcripts, seconds since the start of the recording.
        lead: ``speaker: text`` lines of earlier messages that are in another document, such as the root of its thread.
        channel: the channel of the message, if the document holds several channels.
        is_labelled: whether its text begins with the speaker; ``False`` for a cue that continues the previous cue.
    """

    id: str
    span: Span = Span(0, 0)
    speaker: str
    body: str
    thread_id: str | None = None
    timestamp: datetime | None = None
    offset: float | None = None
    end_offset: float | None = None
    reactions: int = 0
    lead: tuple[str, ...] = ()
    channel: str | None = None
    is_labelled: bool = True


SectionKind: TypeAlias = Literal["section", "front", "abstract", "references", "question", "answer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section of a document that its text alone does not show (PDF, Stack Exchange).

    Sections cover the text in order, without gaps. ``context`` is text that is embedded with the section's chunks,
    besides the heading path, such as the question of an answer. ``level`` counts from 1.
    """

    span: Span
    heading: str
    level: int = 1
    kind: SectionKind = "section"
    context: str = ""
    metadata: Metadata = field(default_factory=lambda: NO_METADATA)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document of a source, read and parsed, not chunked yet.

    Attributes:
        text: for code and markup, the decoded file; for PDF and conversations, the text that was extracted.
        format: ``python``, ``markdown``, ``rst``, ``html``, ``text``, ``pdf``, ``slack``, ``github``, …
        content_hash: the hash of the bytes that the document was parsed from.
        page_starts: for formats with pages, the offset at which each page starts, page 1 first.
    """

    id: DocumentId
    domain: Domain
    source_id: SourceId
    path: str
    text: str
    format: str
    content_hash: ContentHash
    title: str | None = None
    updated_at: datetime | None = None
    revision: str | None = None
    url: str | None = None
    metadata: Metadata = field(default_factory=lambda: NO_METADATA)
    messages: tuple[Message, ...] = ()
    sections: tuple[Section, ...] = ()
    page_starts: tuple[int, ...] = ()


# The fields that BM25 weighs separately; ``settings.FieldWeights`` has one weight for each.
FIELDS = ("path", "title", "section", "content")
Frequencies: TypeAlias = tuple[int, ...]
"""Occurrences of a term in each of ``FIELDS``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A span of a document: what is indexed, found and cited.

    Attributes:
        span: its part of the text. The chunks of a document are in order and do not overlap. They leave out only blank
            space, invisible text and a licence at the head of code.
        content: the text that is shown and matched. For plain text and code it is exactly ``text[span]``.
        context: text for the embedding that is not in the chunk: heading path, signature, earlier messages.
        token_count: the number of tokens of ``content`` for the encoder's tokenizer, without special tokens.
        title: the symbol or the heading that names the chunk.
        section: the heading path as one line, ``A > B > C``.
        page: the page of its first character, from 1.
        message_ids: the ids of the messages in the chunk, in order.
    """

    span: Span
    content: str
    token_count: int
    context: str = ""
    title: str | None = None
    section: str | None = None
    page: int | None = None
    message_ids: tuple[str, ...] = ()
    metadata: Metadata = field(default_factory=lambda: NO_METADATA)

    @property
    def embedded_text(self) -> str:
        """The text for the encoder."""
        return f"{self.context}\n{self.content}" if self.context else self.content


Attribute: TypeAlias = Literal["default", "value", "setting", "status", "requires", "holds", "date"]
"""Which property of the named thing a fact states: its value when nobody sets it; the value of a constant; the value
that a configuration sets; the HTTP status that it answers; the version it needs; of a sentence, whether it is so, and
when it happened."""

ValueKind: TypeAlias = Literal[
    "number", "boolean", "none", "unlimited", "string", "list", "version", "status", "symbol"
]
"""What a value is; a ``symbol`` is a name or an expression of which the value is not known."""

Side: TypeAlias = Literal["code", "configuration", "documentation", "conversation", "research"]
"""Who speaks: a program, its configuration, its documentation (comments and docstrings are documentation), people in a
thread, a paper."""

Form: TypeAlias = Literal[
    "definition",
    "option",
    "fallback",
    "signature",
    "manifest",
    "setting",
    "example",
    "table",
    "heading",
    "list",
    "field",
    "sentence",
    "topic",
    "learned",
]
"""How a fact is written: a definition (constant, field, parameter), a declared option, a fallback (``x or 30``); what a
configuration sets, or an example of one and a line of it that is commented out, which are compared with nothing;
in documentation a signature (source code
that a page shows), a row of a table, a line below an option's heading, an entry of a list, a field of a docstring, a
sentence about a name, a sentence whose heading has to say what it is about, or a notation that its repository
taught."""

Qualifier: TypeAlias = Literal["hedged", "conditional"]
"""Why a statement may not hold for everybody: it is a guess or a recommendation; it holds under a condition only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A checkable statement of a document about a named thing.

    Attributes:
        name: the thing's name in canonical form (``facts/names.py``): lower-case words with one blank between them, no
            unit.
        owner: what the thing belongs to, in lower-case words, outermost first: module, class, function, heading path,
            section of a configuration; empty if unknown.
        kind, value, unit: the value in canonical form (``facts/values.py``). Times are in seconds (``s``), sizes in
            bytes (``byte``). Lists are JSON arrays of canonical values.
        negated: whether the statement denies the value.
        span: the part of ``Document.text`` that states the fact.
        line: the line of its start in the text that it was read from, counted from 0.
        statement: the line or sentence that states it, with blank space collapsed, at most 240 characters.
    """

    name: str
    owner: str
    attribute: Attribute
    kind: ValueKind
    value: str
    unit: str | None = None
    side: Side
    form: Form
    qualifiers: tuple[Qualifier, ...] = ()
    negated: bool = False
    span: Span
    line: int = 0
    statement: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Who wrote a line, by ``git blame``.

    Attributes:
        revision: the abbreviated commit; empty for an uncommitted line.
        author: the author's name, without e-mail address.
        written_at: when the commit was authored, in UTC; ``None`` for an uncommitted line.
        subject: the first line of the commit's message; empty if it is unknown.
    """

    revision: str = ""
    author: str = ""
    written_at: datetime | None = None
    subject: str = ""

    @property
    def is_committed(self) -> bool:
        """Tell whether the line's present text is committed."""
        return bool(self.revision)


def digest(*parts: str | bytes) -> str:
    """Return 128 bits of SHA-256 in hex over the parts, each with its length before it."""
    sha = hashlib.sha256()
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        sha.update(len(raw).to_bytes(8, "big"))
        sha.update(raw)
    return sha.hexdigest()[:32]


def canonical_json(values: Metadata) -> str:
    """Return metadata as JSON with sorted keys, so that equal metadata give equal text."""
    return json.dumps(values, ensure_ascii=False, sort_keys=True, default=dict)


def document_id(source_id: str, path: str) -> DocumentId:
    """Return a document's id. It depends on source and path, not on the content, so equal files get different ids."""
    return DocumentId(digest(source_id, path))
