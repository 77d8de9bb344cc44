"""Documents are read at once by several processes, and stored in order."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from support import BROKEN, MemorySource, memory_parts, sync

from nornweave.connect.files.source import FilesSource
from nornweave.core.errors import ReaderLostError
from nornweave.core.types import Document, Domain, Entry, Listing, SourceId
from nornweave.ingest import process_documents
from nornweave.ingest.diff import DueDocument
from nornweave.ingest.pipeline import list_sources
from nornweave.ingest.process_documents import AHEAD, BATCH_DOCUMENTS, DOCUMENTS_A_READER, DocumentOutcome, Intake
from nornweave.ingest.records import SyncOptions
from nornweave.models.encoders.hashing import HashEncoder
from nornweave.read.chunking.chunker import Chunker

WAIT_S = 30.0


@dataclass
class PairedSource(MemorySource):
    """A source that parses a document only while another one is parsed too; it counts what was fetched."""

    pair: threading.Barrier = field(default_factory=lambda: threading.Barrier(2, timeout=WAIT_S))
    fetched: int = 0

    def fetch(self, entry: Entry) -> bytes:
        self.fetched += 1
        return super().fetch(entry)

    def parse(self, entry: Entry, raw: bytes) -> Document:
        self.pair.wait()
        return super().parse(entry, raw)


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_documents, "cpu_count", lambda: 2)


def filled(source: MemorySource, count: int) -> list[DueDocument]:
    for number in range(count):
        source.write(f"{number:04}.md", f"document {number}")
    return [DueDocument(source.id, entry, None) for entry in source.list().entries]


def intake(source: MemorySource) -> Intake:
    encoder = HashEncoder(dimensions=16)
    chunker = Chunker(strategy="RECURSIVE_CHARACTER", limit=16)
    return Intake(sources={source.id: source}, pipelines={source.id: "p"}, chunker=chunker, encoder=encoder)


def ignore(outcome: DocumentOutcome) -> None:
    """Count nothing."""


def test_two_documents_are_read_at_once_and_stored_in_order() -> None:
    source = PairedSource()
    due = filled(source, 2 * DOCUMENTS_A_READER)
    paths = [one.document.path for batch in intake(source).batches(due, ignore) for one in batch.stored]
    assert paths == [wanted.entry.path for wanted in due]


def test_few_documents_are_read_by_one_process() -> None:
    source = PairedSource(pair=threading.Barrier(1))
    due = filled(source, DOCUMENTS_A_READER - 1)
    started = threading.active_count()
    batches = intake(source).batches(due, ignore)
    assert sum(len(batch.stored) for batch in batches) == len(due)
    assert threading.active_count() <= started + 1


def test_no_more_is_fetched_than_fits_in_memory() -> None:
    source = PairedSource()
    batches: Iterator[object] = intake(source).batches(filled(source, 2 * BATCH_DOCUMENTS), ignore)
    next(batches)
    assert source.fetched <= BATCH_DOCUMENTS + 2 * AHEAD + 1


def test_a_document_that_fails_is_named_and_the_others_stored(tmp_path: Path) -> None:
    source = MemorySource()
    count = len(filled(source, 3 * DOCUMENTS_A_READER))
    for number in range(0, count, 7):
        source.write(f"{number:04}.md", BROKEN)
    report = sync(memory_parts(tmp_path, source))
    assert [failure.path for failure in report.failed] == [f"{number:04}.md" for number in range(0, count, 7)]
    assert report.documents == report.added == count - len(report.failed)


@dataclass
class LosingSource(MemorySource):
    """A source whose documents end their reader, all or those with some paths."""

    parsed: int = 0
    loses: Callable[[str], bool] = lambda _: True

    def parse(self, entry: Entry, raw: bytes) -> Document:
        if not self.loses(entry.path):
            return super().parse(entry, raw)
        self.parsed += 1
        time.sleep(0.05)
        raise ReaderLostError("too much memory")


def test_documents_that_end_their_readers_take_so_much_of_a_sync_and_the_rest_is_deferred(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(process_documents, "FAILING_S", 0.2)
    source = LosingSource()
    parts = memory_parts(tmp_path, source)
    for number in range(24):
        source.write(f"{number:04}.md", f"document {number}")
    first = sync(parts)
    deferred = [failure for failure in first.failed if failure.reason.startswith("deferred: ")]
    assert len(first.failed) == 24
    assert len(deferred) == 24 - source.parsed > 8
    for _ in range(10):
        last = sync(parts)
    assert source.parsed == 24, "what was deferred is read later, what failed is not read again"
    assert not [failure for failure in last.failed if failure.reason.startswith("deferred: ")]


def test_a_document_that_ends_its_reader_and_changes_each_time_takes_no_other_ones_turn(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(process_documents, "FAILING_S", 0.04)
    monkeypatch.setattr(process_documents, "READERS_AT_MOST", 1)
    source = LosingSource(loses=lambda path: path.startswith("0"))
    parts = memory_parts(tmp_path, source)
    for number in range(3):
        for loser in range(2):
            source.write(f"0{loser}.md", f"version {number} of {loser}")
        source.write("z.md", "read by all")
        report = sync(parts)
    assert not [failure for failure in report.failed if failure.path == "z.md"]
    assert report.documents == 1


def test_a_source_that_takes_its_time_keeps_no_other_source_waiting() -> None:
    met = threading.Barrier(2, timeout=WAIT_S)

    @dataclass
    class Meeting(MemorySource):
        def list(self) -> Listing:
            met.wait()
            return super().list()

    listings = list_sources([Meeting(id=SourceId("a")), Meeting(id=SourceId("b"))], SyncOptions(), lambda *_: None)
    assert list(listings) == ["a", "b"]


PAGE = "# Tiny\n\nIt keeps the lid closed at night.\n"


@pytest.mark.parametrize(
    "name", ["test/greatest.h", "lib/tiny/plain.c", "contrib/moon/doc/manual.md", "deps/wire/use.rst"]
)
def test_a_file_of_another_project_is_left_out_unless_it_is_named(tmp_path: Path, name: str) -> None:
    licence = "Copyright 2014 Ann Smith\n\nRedistribution and use in source and binary forms are permitted.\n"
    stranger = (
        "/* Copyright (c) 2011 Scott Vokes\n *\n * Permission to use, copy, modify this is hereby granted. */\nint a;\n"
    )
    files = {"LICENSE.md": licence, "test/greatest.h": stranger, **{f"src/{each}.c": "int b;\n" for each in range(20)},
             "lib/tiny/COPYING": "Copyright 2011 Scott Vokes\n", "lib/tiny/plain.c": "int a;\n",
             "contrib/moon/LICENSE": "Copyright © 2011 Scott Vokes\n", "contrib/moon/doc/manual.md": PAGE,
             "deps/wire/COPYING": "Copyright (c) 2011 Scott Vokes\n", "deps/wire/use.rst": PAGE,
             "contrib/own.md": PAGE, "contrib/ours/LICENSE": licence, "contrib/ours/a.md": PAGE,
             "guide/LICENSE": "Copyright 2011 Scott Vokes\n", "guide/a.md": PAGE}  # fmt: skip
    domain = Domain.CODE if name.endswith((".h", ".c")) else Domain.DOCUMENTATION
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / path).write_text(text, "latin-1")  # © is one byte
    for include in ((), (name,)):
        source = FilesSource(SourceId("kettle"), domain, tmp_path, include=include)
        listed = source.list().entries
        taken = replace(intake(MemorySource()), sources={source.id: source}, pipelines={source.id: "p"},
                        listed={source.id: listed})  # fmt: skip
        own = {"contrib/own.md", "contrib/ours/a.md", "guide/a.md"}
        due = [DueDocument(source.id, entry, None) for entry in listed if entry.path in own | {name}]
        (batch,) = taken.batches(due, ignore)
        expected = [*include, *(own if domain is Domain.DOCUMENTATION else ())]
        assert [stored.document.path for stored in batch.stored] == sorted(expected)
        reasons = [each.reason for each in batch.not_stored]
        assert all(reason.startswith("vendored: of Scott Vokes and not of this project") for reason in reasons)
        assert len(reasons) == (not include)
