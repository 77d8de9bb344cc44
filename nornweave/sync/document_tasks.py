"""What the processes of the sandbox do: bytes → document, document → chunks with all that the index needs."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from nornweave.chunking.chunker import Chunker
from nornweave.parsing.confluence import confluence_document
from nornweave.parsing.file import read_document
from nornweave.parsing.jira import jira_document
from nornweave.parsing.transfer import document_from, entry_from
from nornweave.parsing.web_document import web_document
from nornweave.parsing.web_page import read_web_page
from nornweave.sources.files import stackexchange_document
from nornweave.sources.github import github_document
from nornweave.sources.inbox import inbox_document
from nornweave.sources.messages import parse_messages
from nornweave.sources.slack import slack_document
from nornweave.sources.transcripts import parse_transcript
from nornweave.store.port import IndexedChunk
from nornweave.sync.index_chunks import index_chunks
from nornweave.types import Document, Domain, SourceId

PARSERS: Mapping[str, Any] = {
    "confluence": confluence_document,
    "file": read_document,
    "github": github_document,
    "inbox": inbox_document,
    "jira": jira_document,
    "messages": parse_messages,
    "slack": slack_document,
    "stackexchange": stackexchange_document,
    "transcript": parse_transcript,
    "web": web_document,
}


def parse(values: Mapping[str, Any], raw: bytes) -> Document:
    """Parse what a source fetched."""
    options = values["options"]
    if "domain" in options:
        options = {**options, "domain": Domain(options["domain"])}
    parser = PARSERS[values["parser"]]
    document: Document = parser(SourceId(values["source_id"]), entry_from(values["entry"]), raw, **options)
    return document


def index(values: Mapping[str, Any], raw: bytes) -> Sequence[IndexedChunk]:
    """Cut a document; ``raw`` holds the offsets at which its tokens start."""
    chunker = Chunker(**{**values["chunker"], "grammars": frozenset(values["chunker"]["grammars"])})
    document = document_from(values["document"])
    return list(index_chunks(document, chunker, array("q", raw), values["encoder_version"]))


TASKS = {"parse": parse, "index": index, "web_page": read_web_page}
