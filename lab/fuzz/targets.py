"""What documents go through: a parser, a domain and a file name."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import psutil

from lab.fuzz import packed
from lab.fuzz.snippets import CODE, PROSE, SETTINGS
from nornweave.connect.files.source import file_document
from nornweave.connect.inbox.source import inbox_document
from nornweave.connect.messages import parse_messages
from nornweave.connect.stackexchange.document import stackexchange_document
from nornweave.connect.transcripts import parse_transcript
from nornweave.core.errors import DocumentError, ReaderLostError
from nornweave.core.types import Document, Domain, Entry, SourceId
from nornweave.index.records import IndexedChunk
from nornweave.ingest.process_documents import index_apart
from nornweave.models.encoders.hashing import HashEncoder
from nornweave.read.chunking.chunker import Chunker
from nornweave.read.isolated import parse_apart

State: TypeAlias = Literal["read", "refused", "lost", "trouble"]
"""Read; refused with a reason; given up at a limit; or what must not be: a defect, or chunks that do not fit."""

_ENCODER = HashEncoder(dimensions=16)
_STRATEGIES = {
    Domain.CODE: "SYNTAX_AWARE",
    Domain.DOCUMENTATION: "HIERARCHICAL_SECTIONS",
    Domain.RESEARCH: "HIERARCHICAL_SECTIONS",
    Domain.CONVERSATIONS: "MESSAGE_BOUNDARY",
}


@dataclass(frozen=True, slots=True)
class FuzzTarget:
    """A parser and what it is given.

    Attributes:
        wrap: makes the file of a text: an opening tag, the JSON around a post, an archive.
    """

    parser: Callable[..., Document]
    domain: Domain
    path: str
    snippets: Sequence[str]
    wrap: Callable[[str], str | bytes] = str

    def raw(self, text: str) -> bytes:
        """Return the file that holds a text."""
        file = self.wrap(text)
        return file.encode("utf-8", "surrogatepass") if isinstance(file, str) else file


@dataclass(frozen=True, slots=True)
class FuzzOutcome:
    """What became of one document; ``cpu_s`` is the processor time of its reader."""

    state: State
    reason: str
    cpu_s: float


def _php(text: str) -> str:
    return f"<?php\n{text}"


def _question(text: str) -> str:
    answer = {"answer_id": 2, "body": text[: len(text) // 4], "score": 2}
    question = {"question_id": 1, "title": "t", "body": text, "score": 3, "creation_date": 1600000000}
    return json.dumps({"items": [question | {"answers": [answer]}]})


def _inbox(text: str) -> str:
    return json.dumps({"source_path": "a.md", "source_updated_at": None, "metadata": {}, "content": text})


_ENDINGS = "py ts tsx js go rs java c cpp rb php cs swift kt".split()  # noqa: SIM905
_SETTINGS = "a.yaml a.toml a.json a.xml a.ini a.properties .env a.tf Dockerfile pom.xml package.json".split()  # noqa: SIM905
_PACKED = (packed.docx, packed.pptx, packed.xlsx, packed.epub, packed.ipynb, packed.eml)
TARGETS: tuple[FuzzTarget, ...] = (
    *(FuzzTarget(file_document, Domain.CODE, f"a.{end}", CODE, _php if end == "php" else str) for end in _ENDINGS),
    *(FuzzTarget(file_document, Domain.DOCUMENTATION, f"a.{end}", PROSE) for end in ("md", "rst", "html", "txt")),
    *(FuzzTarget(file_document, Domain.RESEARCH, f"a.{end}", PROSE) for end in ("md", "html")),
    *(FuzzTarget(parse_transcript, Domain.CONVERSATIONS, f"a.{end}", PROSE) for end in ("vtt", "srt", "txt")),
    *(FuzzTarget(parse_messages, Domain.CONVERSATIONS, f"a.{end}", PROSE) for end in ("txt", "jsonl", "log")),
    *(FuzzTarget(file_document, Domain.CODE, path, SETTINGS) for path in _SETTINGS),
    FuzzTarget(stackexchange_document, Domain.RESEARCH, "a.json", PROSE, _question),
    *(FuzzTarget(file_document, Domain.DOCUMENTATION, f"a.{pack.__name__}", PROSE, pack) for pack in _PACKED),
    FuzzTarget(inbox_document, Domain.DOCUMENTATION, "a.md", PROSE, _inbox),
)
_WITH_DOMAIN = frozenset({file_document, stackexchange_document, inbox_document})


def read(target: FuzzTarget, raw: bytes) -> FuzzOutcome:
    """Read one document as a sync does."""
    before = _cpu_of_readers()
    state, reason = _read(target, raw)
    return FuzzOutcome(state, reason, max(0.0, _cpu_of_readers() - before))


def _read(target: FuzzTarget, raw: bytes) -> tuple[State, str]:
    options: dict[str, object] = {"domain": target.domain} if target.parser in _WITH_DOMAIN else {}
    if target.parser is file_document:
        options["is_asked_for"] = True  # what a program wrote is left out otherwise, and so is most of this
    try:
        document = parse_apart(target.parser, SourceId("fuzz"), Entry(path=target.path, gate=""), raw, **options)
        chunks = index_apart(document, Chunker(_STRATEGIES[target.domain], 512), _ENCODER)
    except ReaderLostError as error:
        return "lost", str(error)
    except DocumentError as error:
        return ("trouble" if "a defect" in str(error) else "refused"), str(error)
    misfit = _misfit(chunks, len(document.text))
    return ("trouble", misfit) if misfit else ("read", "")


def _misfit(chunks: Sequence[IndexedChunk], length: int) -> str:
    """Say what is wrong with the places of chunks: they are in order, do not overlap and lie in the text."""
    edges = array("q", [0])
    for indexed in chunks:
        span = indexed.chunk.span
        if not edges[-1] <= span.start <= span.end <= length:
            return f"a chunk at {span.start} to {span.end} after {edges[-1]} in a text of {length}"
        edges.append(span.end)
    return ""


def _cpu_of_readers() -> float:
    """Return the processor time of all readers so far, those that ended included."""
    spent = psutil.Process().cpu_times()
    running = sum(sum(child.cpu_times()[:2]) for child in psutil.Process().children())
    return float(spent.children_user + spent.children_system + running)
