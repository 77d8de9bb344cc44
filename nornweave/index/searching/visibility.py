"""The part of a generation that a viewer may see, and the statistics of that part.

Everything that a score depends on is that of the visible part: how many chunks there are, how many hold a term, how
long they are. So the part answers as an index that never had the rest. A mask is made once for each set of documents
that some viewer may see; viewers in other groups who may see the same share it.

In an older generation viewers must meet both the rules of that time and today's. The published generation says it of
the documents that there are. Of those that are gone, every later statement counts that is known. ``HISTORY`` names the
generations since: one that is neither kept nor remembered hides them.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nornweave.config import Bm25Settings
from nornweave.core.access import (
    ANYONE,
    NOBODY,
    Rule,
    Statement,
    Viewer,
    all_of,
    decode_rule,
    decode_source_rules,
    encode_rule,
    is_met,
    rule_of,
)
from nornweave.core.errors import StoreError
from nornweave.core.files.writing import write_whole
from nornweave.index.connection import Connection
from nornweave.index.port import Mask, Numbers
from nornweave.index.searching.generation_file import DataFile, read_rows
from nornweave.index.searching.inverted import (
    FREQUENT_BYTES,
    FrequentTerms,
    InvertedLists,
    Lengths,
    TermLists,
    WeightedTerms,
    lengths_of,
    saturations,
)

NO_STATEMENTS: Mapping[str, Statement] = {}
# A mask takes some bytes a chunk, and 4 MB of frequent terms. Viewers see few different parts, whatever their groups.
MOST_VISIBILITIES = 16
_FREQUENT_BYTES = 4 << 20
# Sets of groups whose visible part is remembered.
_MOST_GROUPS = 1_024
_REMEMBERED_TERMS = 1 << 14
_MOST_SETTINGS = 4
# The end of the key of a visible part without some documents. Other keys hold only zeros and ones.
_WITHOUT = b"-"

log = logging.getLogger(__name__)

NAME = "FORMER_ACCESS"
"""Numbers of the generations that were removed while an older one was kept, and their rules by document id, each with
the number of the last that stated it."""
# In place of a document id: the rules of a generation that could not be read.
_ALL = "*"
_CONSEQUENCE = "documents of older generations that are gone are hidden from all groups"


class SeenTerms:
    """The visible chunks of each term."""

    def __init__(self, lists: InvertedLists[str], seen: Mask) -> None:
        self._lists = lists
        self.seen = seen
        self.frequency = lru_cache(maxsize=_REMEMBERED_TERMS)(self._frequency)

    def chunks(self, term: str) -> Numbers:
        """Return the visible chunks of a term, ascending."""
        chunks = self._lists.chunks(term)
        return chunks[self.seen[chunks]]

    def _frequency(self, term: str) -> int:
        return int(np.count_nonzero(self.seen[self._lists.chunks(term)]))


class Visible:
    """The visible part of one generation. Every method is thread-safe.

    Attributes:
        key: identifies this part among the parts of the generation.
        documents: a mask of the visible documents, by document number.
        chunks: a mask of the visible chunks, by chunk number.
        frequent: the weights of terms that are frequent in this part.
    """

    def __init__(self, key: bytes, documents: Mask, chunks: Mask, most_bytes: int = _FREQUENT_BYTES) -> None:
        self.key = key
        self.documents = documents
        self.chunks = chunks
        self.numbers: Numbers = np.flatnonzero(chunks).astype(np.int32)
        self.chunk_count = len(self.numbers)
        self.document_count = int(np.count_nonzero(documents))
        self.frequent = FrequentTerms(self.chunk_count, len(chunks), most_bytes)
        self._terms: SeenTerms | None = None
        self._lengths: Lengths | None = None
        self.by = lru_cache(maxsize=_MOST_SETTINGS)(self._by)

    def terms(self, terms: TermLists) -> SeenTerms:
        """Return the visible chunks of each term."""
        if self._terms is None:
            self._terms = SeenTerms(terms.lists, self.chunks)
        return self._terms

    def lengths(self, terms: TermLists) -> Lengths:
        """Return the number and lengths of the visible chunks."""
        if self._lengths is None:
            self._lengths = lengths_of(terms.lengths[self.numbers])
        return self._lengths

    def _by(self, terms: TermLists, bm25: Bm25Settings, corpus: Lengths) -> WeightedTerms:
        """Return the weighted terms of the visible chunks. ``corpus`` gives the average length of a chunk."""
        half = np.ones(len(self.chunks), np.float32)
        half[self.numbers] = saturations(terms.lengths[self.numbers], corpus.average(bm25), bm25)
        return WeightedTerms(terms.lists, terms.frequencies(bm25.fields), half, bm25, self.chunks)

    def of(self, numbers: Numbers) -> Numbers:
        """Return the visible chunks among ``numbers``."""
        return numbers[self.chunks[numbers]]


def picking(documents: Mask) -> tuple[str, str]:
    """Return an SQL condition that selects some documents by ``document_no``, and the condition's value as text.

    The condition lists the documents to select, or the documents to exclude if they are fewer.
    """
    kept = np.flatnonzero(documents)
    is_most = 2 * len(kept) > len(documents)
    numbers = np.flatnonzero(~documents) if is_most else kept
    condition = f"document_no {'not ' * is_most}in (select unnest(from_json($documents, '[\"integer\"]')))"
    return condition, str(numbers.tolist())


class Visibilities:
    """The access rules of one generation. Every method is thread-safe."""

    def __init__(
        self,
        connection: Connection,
        chunk_documents: NDArray[np.int32],
        sources: str,
        also: Mapping[str, Statement],
        today: AccessToday | None = None,
        live: Mask | None = None,
    ) -> None:
        """Read the rules of all documents.

        Args:
            sources: the statements of the sources when the generation was built, as JSON.
            also: the statements of the current configuration. Both kinds of statements must be met, so a stricter
                configuration takes effect without a sync.
            today: today's rules for an older generation. They must be met as well.
            live: a mask of the documents that are not gone; nobody may see gone ones. ``None`` for all.

        Raises:
            ValueError: a rule is broken.
            duckdb.Error: the generation is damaged.
        """
        stated = decode_source_rules(sources)
        kinds, rules = _kinds_today(connection, stated, also, today) if today else _kinds(connection, stated, also)
        self._kind_of, self._rules = (kinds, rules) if live is None else _of_live(kinds, rules, live)
        self._live = live
        self.everything = None if live is None else Visible(b"", live, live[chunk_documents], FREQUENT_BYTES)
        """All that there is; ``None`` when nothing of the file is gone."""
        self._chunk_documents = chunk_documents
        self._lock = threading.Lock()
        self._visible: OrderedDict[bytes, Visible] = OrderedDict()
        self._keys = lru_cache(maxsize=_MOST_GROUPS)(self._key)

    @property
    def restricted(self) -> int:
        """Count the documents that are not open to everybody."""
        there = len(self._kind_of) if self._live is None else int(np.count_nonzero(self._live))
        return there - int(np.count_nonzero(self._documents(self._keys(ANYONE.groups))))

    def rule(self, document_no: int) -> Rule:
        """Return the access rule of a document."""
        return self._rules[int(self._kind_of[document_no])]

    def of(self, viewer: Viewer) -> Visible | None:
        """Return the part that a viewer may see.

        A viewer who may see all documents gets ``everything``, which is ``None`` if no document is gone.
        """
        if viewer.sees_everything or all(self._keys(viewer.groups)):
            return self.everything
        return self.part_of(viewer)

    def part_of(self, viewer: Viewer) -> Visible:
        """Return the part that the groups of a viewer may see, even if that is everything."""
        key = self._keys(viewer.groups)
        return self._remembered(key, lambda: self._documents(key))

    def without(self, visible: Visible | None, chunks: Numbers) -> Visible | None:
        """Return the visible part without the documents of some chunks. ``None`` stands for everything."""
        if not len(chunks):
            return visible
        hidden = self._chunk_documents[chunks]

        def documents() -> Mask:
            kept = np.ones(len(self._kind_of), np.bool_) if visible is None else visible.documents.copy()
            kept[hidden] = False
            return kept

        most_bytes = FREQUENT_BYTES if visible is self.everything else _FREQUENT_BYTES
        return self._remembered((visible.key if visible else b"") + _WITHOUT, documents, most_bytes)

    def _remembered(self, key: bytes, documents_of: Callable[[], Mask], most_bytes: int = _FREQUENT_BYTES) -> Visible:
        with self._lock:
            visible = self._visible.get(key)
            if visible is None:
                documents = documents_of()
                visible = self._visible[key] = Visible(key, documents, documents[self._chunk_documents], most_bytes)
                while len(self._visible) > MOST_VISIBILITIES:
                    self._visible.popitem(last=False)
            else:
                self._visible.move_to_end(key)
        return visible

    def _key(self, groups: frozenset[str]) -> bytes:
        """Return a key of the visible part. It has one byte for each kind of document: 1 if these groups may see it."""
        return bytes(is_met(rule, groups) for rule in self._rules)

    def _documents(self, key: bytes) -> Mask:
        documents = np.frombuffer(key, np.bool_)[self._kind_of]
        return documents if self._live is None else documents & self._live


def _kinds(
    connection: Connection, stated: Mapping[str, Statement], also: Mapping[str, Statement]
) -> tuple[NDArray[np.int32], list[Rule]]:
    """Return the kind of each document, and the rule of each kind. A kind is one source with one statement."""
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


def _of_live(kinds: NDArray[np.int32], rules: list[Rule], live: Mask) -> tuple[NDArray[np.int32], list[Rule]]:
    """Return kinds and rules of the documents that are not gone, so that rules of gone documents have no effect."""
    used, numbers = np.unique(kinds[live], return_inverse=True)
    kept = np.zeros(len(kinds), np.int32)
    kept[live] = numbers
    return kept, [rules[number] for number in used]


def _kinds_today(
    connection: Connection, stated: Mapping[str, Statement], also: Mapping[str, Statement], today: AccessToday
) -> tuple[NDArray[np.int32], list[Rule]]:
    """Return the kind of each document in an older generation, and each kind's rule today. Equal rules are one kind."""
    rows = connection.execute("select document_id, source_id, access from documents order by document_no").fetchall()
    rules = [
        rule_of(source, today.rule(document, rule_of(source, decode_rule(access), stated)), also)
        for document, source, access in rows
    ]
    kinds = {rule: number for number, rule in enumerate(dict.fromkeys(rules))}
    return np.array([kinds[rule] for rule in rules], np.int32), list(kinds)


@dataclass(frozen=True, slots=True)
class AccessToday:
    """Today's access rules of documents.

    Attributes:
        present: document id → its rule, for published documents.
        former: document id → the rules that it had last, for documents that are gone now.
    """

    present: Mapping[str, Rule]
    former: Mapping[str, Rule]

    def rule(self, document: str, then: Rule) -> Rule:
        """Return the rule that requires today's rule of a document and ``then``, its rule in the older generation."""
        if document in self.present:
            return all_of(then, self.present[document])
        return all_of(then, self.former.get(document, ()), self.former.get(_ALL, ()))


def access_today(
    folder: Path, published: Sequence[DataFile], later: Sequence[DataFile], removed: Collection[int]
) -> AccessToday:
    """Return today's access rules for the documents of an older generation.

    Args:
        folder: the folder of the generations.
        published: the files of the published generation.
        later: the files of the kept generations between the older and the published generation.
        removed: the numbers of later generations that are not kept. Their rules should be stored in ``folder``.

    Raises:
        StoreError: a file cannot be read.
    """
    present = {document: rule for file in published for document, rule in _rules(file)}
    remembered, rules = _read(folder)
    former = {document: decode_rule(rule) for document, (_, rule) in rules.items()}
    if forgotten := set(removed) - remembered:
        log.warning("%s does not say what generation %d stated; %s", folder / NAME, min(forgotten), _CONSEQUENCE)
        former[_ALL] = (NOBODY,)
    for file in later:
        for document, rule in _rules(file, restricted=True):
            former[document] = all_of(former.get(document, ()), rule)
    return AccessToday(present, former)


def remember_access(folder: Path, oldest: int, removed: Mapping[int, Sequence[DataFile]]) -> None:
    """Store the rules of generations that will be removed, because older generations that stay need them.

    Args:
        oldest: the number of the oldest generation that stays.
        removed: number of a generation to remove → its files.
    """
    before, rules = _read(folder)
    known = {document: (number, rule) for document, (number, rule) in rules.items() if number > oldest}
    for number, files in removed.items():
        for document, rule in _rules_of_removed(files):
            stated = decode_rule(known[document][1]) if document in known else ()
            known[document] = (number, encode_rule(all_of(stated, rule)))
    numbers = {number for number in before | removed.keys() if number > oldest}
    if (numbers, known) != (before, rules):
        remembered = {"generations": sorted(numbers), "documents": known}
        write_whole(folder / NAME, json.dumps(remembered, ensure_ascii=False))


def _rules_of_removed(files: Sequence[DataFile]) -> Iterator[tuple[str, Rule]]:
    try:
        for file in files:
            yield from _rules(file, restricted=True)
    except StoreError as error:
        log.warning("%s; %s", error, _CONSEQUENCE)
        yield _ALL, (NOBODY,)


def _rules(file: DataFile, *, restricted: bool = False) -> Iterator[tuple[str, Rule]]:
    """Yield each document of a file with its full rule, which is its own and its source's.

    With ``restricted``, yield only documents that are not open to everybody.
    """
    ((sources,),) = read_rows(file, "select value from meta where key = 'access'")
    stated = decode_source_rules(sources)
    rows = read_rows(
        file,
        """
        select document_id, source_id, access
        from documents
        where not $restricted or access is not null or source_id in (select unnest($sources::varchar[]))
        """,
        {"restricted": restricted, "sources": list(stated)},
    )
    rules: dict[tuple[str, str | None], Rule] = {}
    for document, source, access in rows:
        rule = rules.get((source, access))
        if rule is None:
            rule = rules[source, access] = rule_of(source, decode_rule(access), stated)
        yield document, rule


def _read(folder: Path) -> tuple[set[int], dict[str, tuple[int, str | None]]]:
    """Return the numbers of the removed generations whose rules are stored, and the rules."""
    try:
        stored = json.loads((folder / NAME).read_text(encoding="utf-8"))
        rules = {document: (int(number), rule) for document, (number, rule) in stored["documents"].items()}
        return set(map(int, stored["generations"])), rules
    except FileNotFoundError:
        return set(), {}
    except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        log.warning("%s: cannot be read: %s", folder / NAME, error)
        return set(), {_ALL: (10**12, encode_rule((NOBODY,)))}
