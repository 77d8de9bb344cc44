"""Open the segments of a generation.

What a query touches is mapped from a file beside the segment, which workers share: vectors, BM25 postings, word pairs,
names and what is shown of chunks. Texts, filters and whatever else is read in SQL are in the segment.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from nornweave.core.access import Statement, Viewer, decode_rule
from nornweave.core.errors import StoreError
from nornweave.index.connection import lift_memory_limit, require_vss
from nornweave.index.port import Mask
from nornweave.index.searching.access_today import AccessToday
from nornweave.index.searching.arrays import Arrays, open_arrays
from nornweave.index.searching.cards import Cards
from nornweave.index.searching.conditions import Condition
from nornweave.index.searching.counting import FileCounts, RuledDocument
from nornweave.index.searching.generation_file import GenerationFile
from nornweave.index.searching.inverted import Lengths, load_names, load_pairs
from nornweave.index.searching.reading import FileTexts
from nornweave.index.searching.search import FileSearch, Mapped
from nornweave.index.searching.terms import TermLists
from nornweave.index.searching.vectors import SettingVectors, TokenVectors, VectorIndex, load_hnsw, load_matrix
from nornweave.index.searching.visibility import Visibilities, Visible

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenFile:
    """The open parts of one file, shared by all viewers.

    Attributes:
        live: a mask of the documents that are not gone in this generation; ``None`` for all.
    """

    file: GenerationFile
    mapped: Mapped
    masks: dict[tuple[Condition, ...], Mask]
    visibilities: Visibilities
    live: Mask | None = None


class Segment:
    """A viewer's view of one file: its searches, texts and counts. Implements ``index.Parts``.

    Attributes:
        corpus: the lengths of the visible chunks, of this file or of all segments together.
        visible: the part that the viewer may see; ``None`` for everything.
    """

    def __init__(self, opened: OpenFile, corpus: Lengths, visible: Visible | None = None) -> None:
        self.opened = opened
        self.corpus = corpus
        self.visible = visible
        self.search = FileSearch(opened.file, opened.mapped, corpus, visible)
        self.live = opened.live
        self.texts = FileTexts(opened.file, opened.mapped, visible, opened.live)
        self.counts = FileCounts(opened.file, opened.masks, visible, opened.live)
        self.size = opened.file.size
        self.chunk_count = self.size if visible is None else visible.chunk_count
        self.document_count = opened.file.document_count if visible is None else visible.document_count
        self.part = b"" if visible is None else visible.key

    @property
    def restricted_documents(self) -> int:
        """Count the documents that are not open to everybody."""
        return self.opened.visibilities.restricted

    def ruled_documents(self, path: str) -> list[RuledDocument]:
        """Return the documents that ``path`` names, by source and path, also those that nobody may see.

        It names a document if it equals the document's path, its ``source/path`` or the last components of its path.
        """
        rows = self.opened.file.rows(
            """
            select document_no, source_id, path, access, metadata
            from documents
            where path = $1 or source_id || '/' || path = $1 or ends_with(path, '/' || $1)
            order by source_id, path
            """,
            [path],
        )
        return [
            RuledDocument(source, name, self.opened.visibilities.rule(number), json.loads(known), decode_rule(own))
            for number, source, name, own, known in rows
            if self.live is None or self.live[number]
        ]

    def seen_by(self, viewer: Viewer) -> Segment:
        """Return a viewer's view of the file, or the file itself if they see everything."""
        return self._showing(self.opened.visibilities.of(viewer))

    def without(self, key: str) -> Segment:
        """Return a view without the documents that have a lookup key, or the segment itself if there are none."""
        return self._showing(self.but_for(key))

    def _showing(self, visible: Visible | None) -> Segment:
        if visible is None or visible is self.visible:
            return self
        return Segment(self.opened, visible.lengths(self.opened.mapped.terms), visible)

    def but_for(self, key: str) -> Visible | None:
        """Return the visible part without the documents that have a lookup key.

        ``None`` means that everything is visible, because the viewer sees everything and no document has the key.
        """
        named = self.search.named([key])
        return self.opened.visibilities.without(self.visible, named[key]) if key in named else self.visible


class _Shared:
    """A file that is open for several generations of this process."""

    def __init__(self) -> None:
        self.users = 0
        self.lock = threading.Lock()
        self.resources = ExitStack()
        self.opened: tuple[GenerationFile, Mapped, dict[tuple[Condition, ...], Mask]] | None = None


# Most segments of a generation belong to the one before, too: they stay open and mapped.
_shared: dict[tuple[str, int, int, int], _Shared] = {}
_lock = threading.Lock()


def open_shared(
    stack: ExitStack,
    path: Path,
    live: Mask | None,
    *,
    statements: Mapping[str, Statement],
    today: AccessToday | None,
) -> OpenFile:
    """Open a segment. It is opened once for all generations of this process, and closed after its last use.

    Args:
        stack: closing it ends the use.
        live: a mask of the documents that are not gone; ``None`` for all.
        statements: the access statements of the current configuration by source, in addition to the file's.
        today: today's access rules, for an older generation.

    Raises:
        StoreError: the file is missing, damaged or of another schema.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise StoreError(f"{path}: no such generation: {error.strerror}") from error
    key = (str(path), status.st_ino, status.st_size, status.st_mtime_ns)
    with _lock:
        shared = _shared.setdefault(key, _Shared())
        shared.users += 1
    stack.callback(_give_back, key, shared)
    with shared.lock:
        if shared.opened is None:
            shared.opened = (*_opened(shared.resources, path), {})
        file, mapped, masks = shared.opened
    if live is not None and len(live) != file.all_documents:
        raise StoreError(f"{path}: is not the file that the manifest means; roll back")
    with file.opening():
        visibilities = Visibilities(file.cursor(), file.documents, file.meta["access"], statements, today, live)
    return OpenFile(file, mapped, masks, visibilities, live)


def _give_back(key: tuple[str, int, int, int], shared: _Shared) -> None:
    with _lock:
        shared.users -= 1
        if shared.users:
            return
        del _shared[key]
    shared.resources.close()


def _opened(stack: ExitStack, path: Path) -> tuple[GenerationFile, Mapped]:
    """Open one file; ``stack`` closes it.

    Raises:
        StoreError: the file is missing, damaged or of another schema.
    """
    file = GenerationFile(path)
    stack.callback(file.close)
    with file.opening():
        arrays = open_arrays(path, file.meta["arrays"])
        keys, names = load_names(arrays)
        pairs, vectors = load_pairs(arrays), _vectors(file, arrays)
        mapped = Mapped(TermLists(arrays), pairs, names, keys, Cards(arrays), vectors, TokenVectors(arrays),
                        SettingVectors(arrays))  # fmt: skip
        stack.callback(vars(mapped).clear)
        # One thread a query: several run at once, and for a handful of rows a second one only gets in the way.
        file.connection.execute("set threads = 1")
    return file, mapped


def _vectors(file: GenerationFile, arrays: Arrays) -> VectorIndex:
    if file.meta["built_with"] != "hnsw":
        return load_matrix(arrays)
    try:
        require_vss(file.connection)
    except StoreError as error:
        # DuckDB reads a file's tables even without the extension of its index.
        log.warning("%s: its vector index is not used, it is searched exactly: %s", file.path, error)
        return load_matrix(arrays)
    # The index has to be in memory, some 4 kB a chunk.
    lift_memory_limit(file.connection)
    return load_hnsw(file.connection, arrays, search_width=int(file.meta["hnsw_ef_search"]))
