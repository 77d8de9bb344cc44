"""Serve a generation without some of its chunks, exactly as one that never had them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from nornweave.core.access.viewer import Viewer
from nornweave.index.generation import Shard
from nornweave.index.index import Index
from nornweave.index.port import Mask, Scores
from nornweave.index.serving import ServedGeneration
from nornweave.index.visibility import Visible


class HidingGeneration:
    """A served generation of one file; ``hidden`` are the numbers of the chunks that are left out."""

    def __init__(self, served: ServedGeneration) -> None:
        self._served = served
        self.hidden: frozenset[int] = frozenset()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._served, name)

    @contextmanager
    def use(self, viewer: Viewer) -> Iterator[Index]:
        """Hold the generation open, without what is hidden."""
        with self._served.use(viewer) as index:
            yield without_chunks(index, self.hidden) if self.hidden else index


def without_chunks(index: Index, hidden: frozenset[int]) -> Index:
    """Return a view of an index of one file; it is not to be closed itself."""
    whole = index._parts
    assert isinstance(whole, Shard), "shards have no such view"
    chunks: Mask = np.ones(whole.size, np.bool_)
    chunks[list(hidden)] = False
    of_chunks = whole.opened.file.documents
    documents: Mask = np.zeros(whole.opened.file.document_count, np.bool_)
    documents[of_chunks[chunks]] = True
    visible = Visible(b"without some chunks", documents, chunks)
    part = Shard(whole.opened, visible.lengths(whole.opened.mapped.terms), visible)
    # Documents are whole for every viewer: a chunk would get its share of what its document says.
    part.search.sparse = _masked(part.search.sparse, chunks)  # type: ignore[method-assign]
    return Index(index.meta, part, ExitStack())


def _masked(sparse: Callable[..., Scores], chunks: Mask) -> Callable[..., Scores]:
    return lambda *arguments, **options: sparse(*arguments, **options) * chunks
