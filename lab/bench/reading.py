"""What reading documents in a process of their own costs: the same documents, read here and read apart, in turns."""

from __future__ import annotations

import statistics
import time
from array import array
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from nornweave.connect.files.source import file_document
from nornweave.core.errors import DocumentError
from nornweave.core.types import Domain, Entry, SourceId
from nornweave.ingest.index_chunks import index_chunks
from nornweave.ingest.process_documents import index_apart
from nornweave.models.encoders.hashing import HashEncoder
from nornweave.read.chunking.chunker import Chunker
from nornweave.read.isolated import parse_apart

ROUNDS = 5
_STRATEGIES = {Domain.CODE: "SYNTAX_AWARE", Domain.RESEARCH: "HIERARCHICAL_SECTIONS"}
_SOURCE = SourceId("bench")
_ENCODER = HashEncoder(dimensions=16)


@dataclass(frozen=True, slots=True)
class _File:
    domain: Domain
    entry: Entry
    raw: bytes


def _here(file: _File) -> None:
    document = file_document(_SOURCE, file.entry, file.raw, domain=file.domain)
    starts = array("q", _ENCODER.tokenizer.token_starts(document.text))
    list(index_chunks(document, Chunker(_STRATEGIES[file.domain], 512), starts, _ENCODER.version))


def _apart(file: _File) -> None:
    document = parse_apart(file_document, _SOURCE, file.entry, file.raw, domain=file.domain)
    index_apart(document, Chunker(_STRATEGIES[file.domain], 512), _ENCODER)


def _seconds(read: Callable[[_File], None], files: list[_File]) -> float:
    started = time.perf_counter()
    for file in files:
        with suppress(DocumentError):
            read(file)
    return time.perf_counter() - started


def _files(folder: Path, pattern: str, domain: Domain) -> list[_File]:
    paths = [path for path in sorted(folder.glob(pattern)) if path.is_file()]
    return [_File(domain, Entry(path=path.name, gate=""), path.read_bytes()) for path in paths]


def print_reading(shared: Path) -> None:
    """Print medians of ``ROUNDS`` turns and their ratio, for papers and for this project's own code."""
    table = Table("documents", "files", "here s", "apart s", "ratio", title="Reading in a process of its own")
    own = Path(__file__).resolve().parents[2] / "nornweave"
    for name, files in (
        ("papers (PDF)", _files(shared / "research-pdfs", "**/*.pdf", Domain.RESEARCH)),
        ("source (Python)", _files(own, "ingest/*.py", Domain.CODE)),
    ):
        turns = [(_seconds(_here, files), _seconds(_apart, files)) for _ in range(ROUNDS + 1)][1:]
        here, apart = (statistics.median(seconds) for seconds in zip(*turns, strict=True))
        ratio = statistics.median(slow / quick for quick, slow in turns)
        table.add_row(name, str(len(files)), f"{here:.2f}", f"{apart:.2f}", f"{ratio:.3f}")
    Console().print(table)
