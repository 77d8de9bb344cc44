"""What a viewer may see of a generation, and the statistics of that part.

Everything that a score depends on is that of the visible part: how many chunks there are, how many hold a term, how
long they are. So the part answers as an index that never had the rest. A mask is made once for each set of documents
that some viewer may see; viewers in other groups who may see the same share it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from nornweave.config import Bm25Settings
from nornweave.core.access.rules import Rule, Statement, decode_rule, decode_source_rules, is_met, rule_of
from nornweave.core.access.viewer import Viewer
from nornweave.index.access_today import AccessToday
from nornweave.index.bm25 import saturated, saturations
from nornweave.index.connection import Connection
from nornweave.index.inverted import FrequentTerms, InvertedLists, Lengths, lengths_of
from nornweave.index.port import Mask, Numbers, Scores
from nornweave.index.terms import TermLists

NO_STATEMENTS: Mapping[str, Statement] = {}
# Of each: some bytes a chunk, and frequent terms in 4 MB. Viewers differ in few ways, whatever their groups are called.
MOST_VISIBILITIES = 16
_FREQUENT_BYTES = 4 << 20
# Sets of groups for which it is known what they may see.
_MOST_GROUPS = 1_024
_REMEMBERED_TERMS = 1 << 14
_MOST_SETTINGS = 4


class SeenTerms:
    """Which visible chunks hold each term."""

    def __init__(self, lists: InvertedLists[str], seen: Mask) -> None:
        self._lists = lists
        self.seen = seen
        self.frequency = lru_cache(maxsize=_REMEMBERED_TERMS)(self._frequency)

    def chunks(self, term: str) -> Numbers:
        """Return the visible chunks that hold a term, ascending."""
        chunks = self._lists.chunks(term)
        return chunks[self.seen[chunks]]

    def _frequency(self, term: str) -> int:
        return int(np.count_nonzero(self.seen[self._lists.chunks(term)]))


class SeenLists:
    """The inverted lists of terms without what is hidden, with the weights that the visible part gives them."""

    def __init__(
        self, terms: SeenTerms, lists: InvertedLists[str], frequencies: Scores, half: Scores, bm25: Bm25Settings
    ) -> None:
        self._seen = terms.seen
        self.frequency = terms.frequency
        self.chunks = terms.chunks
        self._lists = lists
        self._frequencies = frequencies
        self._half = half
        self._bm25 = bm25

    def weighted(self, term: str) -> tuple[Numbers, Scores]:
        """Return the visible chunks that hold a term, and what it counts for in each."""
        where = self._lists.range_of(term)
        chunks = self._lists.chunk_nos[where]
        kept = self._seen[chunks]
        chunks = chunks[kept]
        return chunks, saturated(self._frequencies[where][kept], self._half[chunks], self._bm25)


class Visible:
    """The visible part of one generation; every method may be called from any thread.

    Attributes:
        key: tells it from the other parts of the generation.
        documents: which may be seen, by document number.
        chunks: which may be seen, by chunk number.
        frequent: the weights of its frequent terms.
    """

    def __init__(self, key: bytes, documents: Mask, chunks: Mask) -> None:
        self.key = key
        self.documents = documents
        self.chunks = chunks
        self.numbers: Numbers = np.flatnonzero(chunks).astype(np.int32)
        self.chunk_count = len(self.numbers)
        self.document_count = int(np.count_nonzero(documents))
        self.frequent = FrequentTerms(self.chunk_count, len(chunks), _FREQUENT_BYTES)
        self._terms: SeenTerms | None = None
        self._lengths: Lengths | None = None
        self._lists: OrderedDict[tuple[Bm25Settings, Lengths], SeenLists] = OrderedDict()
        self._lock = threading.Lock()

    def terms(self, terms: TermLists) -> SeenTerms:
        """Return which visible chunks hold each term."""
        if self._terms is None:
            self._terms = SeenTerms(terms.default, self.chunks)
        return self._terms

    def lengths(self, terms: TermLists) -> Lengths:
        """Return how many visible chunks there are, and how long they are."""
        if self._lengths is None:
            self._lengths = lengths_of(terms.lengths[self.numbers])
        return self._lengths

    def lists(
        self, terms: TermLists, bm25: Bm25Settings, corpus: Lengths, connection: Callable[[], Connection]
    ) -> SeenLists:
        """Return the inverted lists of terms by the settings of BM25; the first call with some settings computes."""
        with self._lock:
            made = self._lists.get((bm25, corpus))
            if made is None:
                made = self._lists[bm25, corpus] = self._made(terms, bm25, corpus, connection)
                while len(self._lists) > _MOST_SETTINGS:
                    self._lists.popitem(last=False)
        return made

    def _made(
        self, terms: TermLists, bm25: Bm25Settings, corpus: Lengths, connection: Callable[[], Connection]
    ) -> SeenLists:
        lengths = terms.lengths[self.numbers]
        half = np.ones(len(self.chunks), np.float32)
        half[self.numbers] = saturations(lengths, corpus.average(bm25), bm25)
        frequencies = terms.frequencies(bm25.fields, connection)
        return SeenLists(self.terms(terms), terms.default, frequencies, half, bm25)

    def of(self, numbers: Numbers) -> Numbers:
        """Return the chunks among some that may be seen."""
        return numbers[self.chunks[numbers]]


class Visibilities:
    """Who may see what of one generation; every method may be called from any thread."""

    def __init__(
        self,
        connection: Connection,
        chunk_documents: NDArray[np.int32],
        sources: str,
        also: Mapping[str, Statement],
        today: AccessToday | None = None,
    ) -> None:
        """Read the rules.

        Args:
            connection: at the generation.
            chunk_documents: the document of each chunk.
            sources: the statements of the sources when the generation was built, as JSON.
            also: those of the configuration now; both have to be met, so that a stricter configuration needs no sync.
            today: of an older generation, what counts instead of its own rules.

        Raises:
            ValueError: a rule is broken.
            duckdb.Error: the generation is damaged.
        """
        stated = decode_source_rules(sources)
        self._kind_of, self._rules = (
            _kinds_today(connection, stated, also, today) if today else _kinds(connection, stated, also)
        )
        self._chunk_documents = chunk_documents
        self._lock = threading.Lock()
        self._visible: OrderedDict[bytes, Visible] = OrderedDict()
        self._keys = lru_cache(maxsize=_MOST_GROUPS)(self._key)

    @property
    def restricted(self) -> int:
        """Count the documents that somebody without groups may not see."""
        return int(np.count_nonzero(~self._documents(self._keys(frozenset()))))

    def of(self, viewer: Viewer) -> Visible | None:
        """Return what a viewer may see; ``None`` for everything."""
        if viewer.sees_everything:
            return None
        return None if all(self._keys(viewer.groups)) else self.part_of(viewer)

    def part_of(self, viewer: Viewer) -> Visible:
        """Return what a viewer in groups may see, even if it is everything."""
        key = self._keys(viewer.groups)
        with self._lock:
            visible = self._visible.get(key)
            if visible is None:
                documents = self._documents(key)
                visible = self._visible[key] = Visible(key, documents, documents[self._chunk_documents])
                while len(self._visible) > MOST_VISIBILITIES:
                    self._visible.popitem(last=False)
            else:
                self._visible.move_to_end(key)
        return visible

    def _key(self, groups: frozenset[str]) -> bytes:
        """Return a byte for each kind of document: whether these groups may see it."""
        return bytes(is_met(rule, groups) for rule in self._rules)

    def _documents(self, key: bytes) -> Mask:
        return np.frombuffer(key, np.bool_)[self._kind_of]


def _kinds(
    connection: Connection, stated: Mapping[str, Statement], also: Mapping[str, Statement]
) -> tuple[NDArray[np.int32], list[Rule]]:
    """Return the kind of each document, and the rule of each kind: documents of one source that state the same."""
    rows = connection.execute(
        "select source_id, access from documents group by all order by source_id, access nulls first"
    ).fetchall()
    numbered = connection.execute(
        """
        select dense_rank() over (order by source_id, access nulls first) - 1 as kind
        from documents
        order by document_no
        """
    ).fetchnumpy()
    rules = [rule_of(source, decode_rule(access), stated, also) for source, access in rows]
    return numbered["kind"].astype(np.int32), rules


def _kinds_today(
    connection: Connection, stated: Mapping[str, Statement], also: Mapping[str, Statement], today: AccessToday
) -> tuple[NDArray[np.int32], list[Rule]]:
    """Return the same for an older generation: a kind is what today's statements let the same viewers see."""
    rows = connection.execute("select document_id, source_id, access from documents order by document_no").fetchall()
    rules = [
        rule_of(source, today.rule(document, rule_of(source, decode_rule(access), stated)), also)
        for document, source, access in rows
    ]
    kinds = {rule: number for number, rule in enumerate(dict.fromkeys(rules))}
    return np.array([kinds[rule] for rule in rules], np.int32), list(kinds)
