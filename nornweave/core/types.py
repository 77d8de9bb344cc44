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
    """Return a read-only copy without keys whose value is ``None``: absent and unknown mean the same."""
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
        path: the document's place inside its source, POSIX separators, never absolute, no ``..``.
        gate: cheap mark of the content (size and times, git blob id); equal gates mean "not changed", others "look".
        size: bytes, as far as the source knows.
        updated_at: when the source says it changed last, UTC.
        revision: the version that the source gives it (commit sha), if any.
        metadata: further knowledge of the source (author, url, title), which joins the document's metadata.
        verified_at: when the source last confirmed that the document exists as it is; ``None``: with this listing.
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
        problem: why the listing is not complete, if so; then nothing follows from what it does not name, unless
            ``listed_at`` says that all was named before: what is missing since is what the source said is gone.
        withdrawn: paths that somebody took out of the source on purpose: their removal needs no confirmation.
        listed_at: when the source last named all of its documents; ``None``: with this listing.
        within: the paths that it is about, if it is not about all of the source.
        notices: what people should know about a complete listing, such as reduced details.
        unmatched: entries of the metadata file that match no document, so that their statements have no effect.
        commit: that was read, or was checked out when its files were; ``None`` outside of git.
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
        span: its part of the text, speaker label included, separators between messages excluded; empty before that.
        body: what was said, as it was said; in the text the lines after the first are indented.
        thread_id: messages with the same value answer each other; ``None`` outside threads.
        timestamp: when it was said, UTC; for transcripts without a date ``None``.
        offset: seconds since the start of a recording, for transcripts.
        lead: rendered ``speaker: text`` lines that precede it but live in another document (the root of its thread).
        channel: where it was said, if the document holds several channels.
        is_labelled: its text begins with the speaker; ``False`` for a cue that continues the one before.
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

    Sections tile the text in order. ``context`` is what its chunks are embedded with beside the heading path (the
    question of an answer). ``level`` counts from 1.
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
        text: code and markup as they stand in the file, decoded; the text taken out of PDF and conversations.
        format: ``python``, ``markdown``, ``rst``, ``html``, ``text``, ``pdf``, ``slack``, ``github``, …
        content_hash: of the bytes that the document was parsed from.
        page_starts: for paged formats the offset at which each page starts, page 1 first.
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
        span: where it stands; the chunks of a document are in order, do not overlap and leave out only blank
            space, what nobody sees and, of code, a licence at its head.
        content: what is shown and matched; for plain text and code exactly ``text[span]``.
        context: text for the embedding that is not in the chunk (heading path, signature, messages before it).
        token_count: of ``content`` alone, with the encoder's own tokenizer, special tokens not counted.
        title: the symbol or the heading that names it.
        section: the heading path as one line, ``A > B > C``.
        page: page of its first character, from 1.
        message_ids: the messages it holds itself, in order.
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
        name: of the thing, in canonical form (``facts/names.py``): lower-case words, one blank between them, no unit.
        owner: what the thing belongs to, lower-case words, outermost first: module, class, function, heading path,
            section of a configuration; empty if unknown.
        kind, value, unit: the value in canonical form (``facts/values.py``); numbers of time are in seconds (``s``), of
            sizes in bytes (``byte``); lists are JSON arrays of canonical values.
        negated: the statement denies the value.
        span: where it stands in ``Document.text``.
        line: of its start in the text it was read from, from 0.
        statement: the line or sentence that says it, blank space collapsed, at most 240 characters.
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
        author: a name, without address.
        written_at: when it was authored, UTC; ``None`` for an uncommitted line.
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
    """Return metadata as JSON with sorted keys: equal metadata, equal text."""
    return json.dumps(values, ensure_ascii=False, sort_keys=True, default=dict)


def document_id(source_id: str, path: str) -> DocumentId:
    """Return a document's id, made from its place and not from its content: equal files get different ids."""
    return DocumentId(digest(source_id, path))
