"""What the processes of the sandbox do: bytes → document, document → chunks with all that the index needs."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from nornweave.connect.exports.messages import parse_messages
from nornweave.connect.exports.transcripts import parse_transcript
from nornweave.connect.files.source import stackexchange_document
from nornweave.connect.github.export import github_document
from nornweave.connect.inbox.source import inbox_document
from nornweave.connect.slack.export import slack_document
from nornweave.core.types import Document, Domain, SourceId
from nornweave.index.port import IndexedChunk
from nornweave.ingest.index_chunks import index_chunks
from nornweave.read.chunking.chunker import Chunker
from nornweave.read.file import read_document
from nornweave.read.products.confluence import confluence_document
from nornweave.read.products.jira import jira_document
from nornweave.read.transfer import document_from, entry_from
from nornweave.read.web_document import web_document
from nornweave.read.web_page import read_web_page

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
