"""Read and cut documents in batches that are stored together, with the outcome of each document.

Several documents are read at once, each in a process of its own, while those before them are stored; what is stored
follows the order of the documents. A document that fails is recorded with its reason; the others continue. A document
that ended its reader is recorded at once, and is not read again until it or its reader changes.
"""

from __future__ import annotations

import logging
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any, Literal, TypeAlias, cast

from nornweave.connect.protocol import Source
from nornweave.core.access import KEY, read_rule
from nornweave.core.errors import (
    EMPTY,
    DocumentError,
    DocumentSkipped,
    NornWeaveError,
    ReaderLostError,
    TransientDocumentError,
)
from nornweave.core.process import cpu_count
from nornweave.core.sandbox import run_apart
from nornweave.core.text.decode import ENCODING, is_unknown, likeliest, whole_characters
from nornweave.core.types import (
    Chunk,
    ContentHash,
    Document,
    Domain,
    Entry,
    Span,
    canonical_json,
    digest,
    document_id,
    freeze,
    is_of_history,
)
from nornweave.disagree.facts.passage import fact_from
from nornweave.index.port import Batch, NotStored, Stored, StoredDocument, Unstored
from nornweave.index.records import DescribedSetting, IndexedChunk
from nornweave.ingest.diff import DueDocument
from nornweave.ingest.index_chunks import index_document
from nornweave.models.encoders import Encoder
from nornweave.models.encoders.port import projection_of
from nornweave.read.chunking.chunker import Chunker
from nornweave.read.holders import FOREIGN, Holders, Notice, is_kept_for_others
from nornweave.read.isolated import Fields, metadata_from
from nornweave.read.kinds import is_licence_name
from nornweave.read.parsed import seconds_for
from nornweave.read.worth import HEAD_CHARACTERS

logger = logging.getLogger(__name__)

# A transaction is worth its overhead from about this much on, and small enough to hold in memory.
BATCH_DOCUMENTS = 256
BATCH_CHUNKS = 2048
BATCH_CHARACTERS = 8_000_000

READERS_AT_MOST = 4
"""Documents that are read at once: one a core."""
DOCUMENTS_A_READER = 32
"""A further reader takes a second to start, which it saves from about this many documents on."""
FAILING_S = 120.0
"""What documents that end their readers may take of one source in one sync, however busy the machine is."""
_DEFERRED = (
    f"deferred: other documents of this source ended their readers for {FAILING_S:.0f} s; the next sync reads it"
)
LOOKED_AT, LOOKED_AT_BYTES = 20_000, 1_000_000
"""Files of a source that are looked at to tell the encoding of those that do not say it, or whose the source is."""
AHEAD = 4
"""Documents in memory for each reader: those that wait to be read, and those that wait to be stored."""

DocumentOutcome: TypeAlias = Literal["added", "changed", "unchanged", "removed", "failed", "skipped"]
"""Of one document; ``removed`` was stored before and is left out on purpose now."""


@dataclass(frozen=True, slots=True)
class ProcessedDocument:
    """The outcome of one document, with the parts to store.

    Attributes:
        lost_reader: whether the document crashed its reader. Then ``batch`` is stored before another document is read.
    """

    outcome: DocumentOutcome
    batch: Batch
    lost_reader: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """Reads, parses and cuts documents.

    Attributes:
        pipelines: source id → digest of the versions and settings for its documents.
        full: whether unchanged documents are read again.
        listed: source id → its entries. The encoding of a file that declares none is guessed from all of them.
        failing_s: source id → the seconds spent on documents that crashed their reader. At ``FAILING_S`` the remaining
            documents of the source are left to the next sync.
    """

    sources: Mapping[str, Source]
    pipelines: Mapping[str, str]
    chunker: Chunker
    encoder: Encoder
    full: bool = False
    listed: Mapping[str, Sequence[Entry]] = field(default_factory=dict)
    encodings: dict[str, str] = field(default_factory=dict)
    holders: dict[str, Holders] = field(default_factory=dict)
    failing_s: dict[str, float] = field(default_factory=dict)

    def batches(self, due: Sequence[DueDocument], done: Callable[[DocumentOutcome], None]) -> Iterator[Batch]:
        """Read documents in order and yield batches; ``done`` is called with each outcome."""
        collected: list[Batch] = []
        chunks = characters = 0
        for processed in self._process_ahead(due):
            collected.append(processed.batch)
            done(processed.outcome)
            chunks += sum(len(stored.chunks) for stored in processed.batch.stored)
            characters += sum(len(stored.document.text) for stored in processed.batch.stored)
            is_full = len(collected) >= BATCH_DOCUMENTS or chunks >= BATCH_CHUNKS or characters >= BATCH_CHARACTERS
            if is_full or processed.lost_reader:
                yield _join(collected)
                collected, chunks, characters = [], 0, 0
        if collected:
            yield _join(collected)

    def _process_ahead(self, due: Sequence[DueDocument]) -> Iterator[ProcessedDocument]:
        """Fetch documents one by one, process them ahead in threads, and yield them in order."""
        readers = min(READERS_AT_MOST, cpu_count(), 1 + len(due) // DOCUMENTS_A_READER)
        pool = ThreadPoolExecutor(readers, thread_name_prefix="reader")
        ahead: deque[Future[ProcessedDocument]] = deque()
        try:
            for wanted in due:
                fetched = self._fetch(wanted)
                known = {ENCODING: self._encoding_of(wanted, fetched), FOREIGN: self._foreign_holder(wanted, fetched)}
                ahead.append(pool.submit(self._process, wanted, fetched, known))
                while ahead and (ahead[0].done() or len(ahead) > AHEAD * readers):
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _fetch(self, wanted: DueDocument) -> bytes | DocumentError:
        """Return a document's bytes, or the error of fetching it.

        It is called in one thread, because sources need not be thread-safe.
        """
        try:
            return self.sources[wanted.source_id].fetch(wanted.entry)
        except DocumentError as error:
            return error

    def _encoding_of(self, wanted: DueDocument, fetched: bytes | DocumentError) -> str:
        """Return an encoding guessed from all files of the source that declare none; empty if no guess is needed."""
        if not isinstance(fetched, bytes) or not is_unknown(fetched):
            return ""
        source_id = wanted.source_id
        if source_id not in self.encodings:
            others = (self._fetch(DueDocument(source_id, each, None)) for each in self._others(source_id))
            raws = (raw for raw in chain([fetched], others) if isinstance(raw, bytes) and is_unknown(raw))
            self.encodings[source_id] = likeliest(raws)
            logger.info("%s: files that do not say their encoding are read as %s", source_id, self.encodings[source_id])
        return self.encodings[source_id]

    def _foreign_holder(self, wanted: DueDocument, fetched: bytes | DocumentError) -> str:
        """Return the copyright holder of a file that comes from another project; empty for the source's own files."""
        source_id = wanted.source_id
        is_code = self.sources[source_id].domain is Domain.CODE
        # A page has no notice: its path and the licence in its folder tell whose it is.
        is_kept_so = self.sources[source_id].domain is Domain.DOCUMENTATION and is_kept_for_others(wanted.entry.path)
        if not isinstance(fetched, bytes) or not (is_code or is_kept_so) or is_of_history(wanted.entry.gate):
            return ""
        notice = Notice.of(_head(fetched)) if is_code else Notice()
        if not notice.holders and "/" not in wanted.entry.path:
            return ""
        if source_id not in self.holders:
            files = (
                each for each in self._others(source_id) if is_code or is_licence_name(each.path.rpartition("/")[2])
            )
            others = ((each.path, self._fetch(DueDocument(source_id, each, None))) for each in files)
            heads = ((path, _head(raw)) for path, raw in others if isinstance(raw, bytes))
            self.holders[source_id] = Holders.of(source_id, heads)
        return self.holders[source_id].foreign(wanted.entry.path, notice) or ""

    def _others(self, source_id: str) -> Iterator[Entry]:
        listed = self.listed.get(source_id, ())
        texts = (each for each in listed if each.size <= LOOKED_AT_BYTES and not is_of_history(each.gate))
        return islice(texts, LOOKED_AT)

    def _process(
        self, wanted: DueDocument, fetched: bytes | DocumentError, told: Mapping[str, str]
    ) -> ProcessedDocument:
        """Parse and cut a document if it changed, and return its outcome. ``told`` is metadata from other files."""
        began, content_hash = time.monotonic(), None
        known = wanted.stored if wanted.stored and wanted.stored.content_hash else None
        try:
            if not isinstance(fetched, bytes):
                raise fetched
            content_hash = ContentHash(digest(fetched, canonical_json(wanted.entry.metadata)))
            pipeline = self.pipelines[wanted.source_id]
            is_same = known is not None and (known.content_hash, known.pipeline) == (content_hash, pipeline)
            if known and is_same and not self.full:
                return ProcessedDocument("unchanged", Batch(touched=((known.document_id, wanted.entry.gate),)))
            if not self.full and wanted.stored and _has_failed(wanted.stored, content_hash, pipeline):
                again = self._not_stored(wanted, wanted.stored.reason, "failed", content_hash)
                return ProcessedDocument("failed", Batch(not_stored=(again,)))
            self._check_failing(wanted.source_id)
            stored = self._cut(wanted, fetched, content_hash, told)
        except DocumentSkipped as skip:
            removed = (known.document_id,) if known else ()
            batch = Batch(not_stored=(self._not_stored(wanted, str(skip), "skipped"),), removed=removed)
            return ProcessedDocument("removed" if known else "skipped", batch)
        except TransientDocumentError as error:
            put_off = self._not_stored(wanted, str(error), "transient")
            if (before := wanted.stored) and before.outcome == "failed":  # an earlier failure is read after the others
                put_off = replace(put_off, gate=before.gate, pipeline=before.pipeline, outcome="failed",
                                  content_hash=before.failed_hash)  # fmt: skip
            return ProcessedDocument("failed", Batch(not_stored=(put_off,)))
        except DocumentError as error:
            if isinstance(error, ReaderLostError):
                took_s = min(time.monotonic() - began, error.cpu_s)  # a busy machine is no fault of the document
                self.failing_s[wanted.source_id] = self.failing_s.get(wanted.source_id, 0.0) + took_s
            failed = self._not_stored(wanted, str(error), "failed", content_hash)
            return ProcessedDocument("failed", Batch(not_stored=(failed,)), isinstance(error, ReaderLostError))
        return ProcessedDocument("unchanged" if is_same else "changed" if known else "added", Batch(stored=(stored,)))

    def _check_failing(self, source_id: str) -> None:
        if self.failing_s.get(source_id, 0.0) >= FAILING_S:
            raise TransientDocumentError(_DEFERRED)

    def _cut(
        self, wanted: DueDocument, raw: bytes, content_hash: ContentHash, told: Mapping[str, str]
    ) -> StoredDocument:
        """Return a document, parsed and cut. ``told`` is metadata that was found in other files of its source.

        An unexpected exception fails only this document, not the run. Its traceback is logged.
        """
        try:
            known = freeze({**wanted.entry.metadata, **{key: value or None for key, value in told.items()}})
            parsed = self.sources[wanted.source_id].parse(replace(wanted.entry, metadata=known), raw)
            document = whole_characters(replace(parsed, content_hash=content_hash))
            chunks = index_apart(document, self.chunker, self.encoder)
        except NornWeaveError:
            raise
        except Exception as error:
            logger.exception("%s/%s: a defect", wanted.source_id, wanted.entry.path)
            reason = f"a defect of the parser ({type(error).__name__}: {error}); exclude the document and report it"
            raise DocumentError(reason) from error
        if not chunks:
            raise DocumentError(f"{EMPTY} nothing in it can be indexed; add text or exclude it")
        gate, pipeline = wanted.entry.gate, self.pipelines[wanted.source_id]
        # The metadata keep one statement of the two, the source's or the document's; for access both count.
        access = read_rule(whole_characters(wanted.entry.metadata.get(KEY)), document.metadata.get(KEY))
        return StoredDocument(document=document, gate=gate, pipeline=pipeline, chunks=chunks, access=access)

    def _not_stored(
        self, wanted: DueDocument, reason: str, outcome: Unstored, content_hash: ContentHash | None = None
    ) -> NotStored:
        logger.info("%s/%s: %s: %s", wanted.source_id, wanted.entry.path, outcome, reason)
        return NotStored(
            document_id=document_id(wanted.source_id, wanted.entry.path),
            source_id=wanted.source_id,
            path=wanted.entry.path,
            gate=wanted.entry.gate,
            pipeline=self.pipelines[wanted.source_id],
            content_hash=content_hash,
            reason=reason,
            outcome=outcome,
        )


def _head(raw: bytes) -> str:
    text = raw[:HEAD_CHARACTERS].decode("utf-8", "replace")
    return raw[:HEAD_CHARACTERS].decode("latin-1") if "\ufffd" in text[:-1] else text  # a © of one byte


def index_apart(document: Document, chunker: Chunker, encoder: Encoder) -> tuple[IndexedChunk, ...]:
    """Return a document's chunks, cut in a sandbox process. Only the encoder's tokenizer works in this process.

    Raises:
        ReaderLostError: the document exceeded a limit or crashed the sandbox process.
    """
    starts = array("q", encoder.tokenizer.token_starts(document.text))
    values = {"document": document, "chunker": chunker, "encoder_version": encoder.version,
              "describes": projection_of(encoder.version) is not None}  # fmt: skip
    sent = run_apart(index_document, values, starts.tobytes(), cpu_s=seconds_for(len(document.text)))
    return tuple(map(_indexed_chunk_from, cast(Sequence[Any], sent)))


def _has_failed(stored: Stored, content_hash: ContentHash, pipeline: str) -> bool:
    """Tell whether the last attempt to read a document failed with the same content and pipeline."""
    return stored.outcome == "failed" and (stored.failed_hash, stored.pipeline) == (content_hash, pipeline)


def _join(batches: Sequence[Batch]) -> Batch:
    return Batch(
        stored=tuple(document for batch in batches for document in batch.stored),
        not_stored=tuple(document for batch in batches for document in batch.not_stored),
        removed=tuple(document_id for batch in batches for document_id in batch.removed),
        touched=tuple(touched for batch in batches for touched in batch.touched),
    )


def _indexed_chunk_from(sent: Fields) -> IndexedChunk:
    """Return a chunk from the JSON that the sandbox sent."""
    first, last = sent["lines"]
    return IndexedChunk(
        **{
            **sent,
            "chunk": _chunk_from(sent["chunk"]),
            "terms": {term: tuple(counts) for term, counts in sent["terms"].items()},
            "lines": (first, last),
            "pairs": tuple(sent["pairs"]),
            "keys": tuple(sent["keys"]),
            "facts": tuple(map(fact_from, sent["facts"])),
            "settings": tuple(DescribedSetting(*setting) for setting in sent["settings"]),
        }
    )


def _chunk_from(sent: Fields) -> Chunk:
    own = {"message_ids": tuple(sent["message_ids"]), "metadata": metadata_from(sent["metadata"])}
    return Chunk(**{**sent, "span": Span(**sent["span"]), **own})
