"""Search a generation as if a stretch of one document was absent.

Evaluations take queries out of the corpus (a docstring asks for its function, a heading for its section). Every index
finds a text by its own words; what is to be measured is whether it finds the rest. So the chunks that hold the hidden
text, or quote it in what they are indexed with (heading paths, titles, messages before), are scored as if they had been
indexed without it, by every retrieval source, and shown without it. Everything else is as it was: the other chunks'
scores, how rare each term is (a difference of at most one document per term), the average length.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from evals.masked_chunks import Quoted, UnmaskedChunk, remains_of
from nornweave.config import Bm25Settings
from nornweave.core.access import Viewer
from nornweave.core.errors import EncoderError
from nornweave.core.types import FIELDS, Frequencies, Span, digest
from nornweave.index.index import Index
from nornweave.index.port import Hits, Mask, Numbers, Scores, Vectors, best
from nornweave.index.records import StoredChunk
from nornweave.index.searching.inverted import DEFAULT_BM25, saturated, saturations
from nornweave.models.encoders import Encoder
from nornweave.models.encoders.port import same_space

log = logging.getLogger(__name__)

K = TypeVar("K", int, str)
NOWHERE: Frequencies = (0,) * len(FIELDS)
_REMEMBERED: dict[str, Vectors] = {}


def without(
    generation: Index,
    path: str,
    hidden: Span,
    encoder: Encoder | None,
    *,
    remembered: MutableMapping[str, Vectors] = _REMEMBERED,
) -> Index:
    """Return a view of a generation without a part of a text; the generation itself if nothing is hidden.

    Args:
        generation: open; it has to stay open as long as the view is used, which is not to be closed itself.
        path: of the document; the text is hidden in the documents of all sources that have one there.
        hidden: in characters of the document, as ``Citation.char_range`` counts them.
        encoder: the one that the generation was built with; without it, or when it fails, what is left of a chunk means
            the same as no query.
        remembered: vectors of what was left before, and where those of this view are put; embedding takes most of the
            time, and one set is run several times.

    Raises:
        StoreError: the generation cannot be read.
    """
    kept: dict[int, UnmaskedChunk] = {}
    documents: list[Numbers] = []
    for indexed in generation.indexed_documents(path):
        quoted = Quoted(indexed.document.text[hidden.start : hidden.end])
        left = dict(remains_of(indexed, hidden, quoted)) if quoted.words else {}
        if left:
            kept |= left
            documents.append(np.array([number for number, _ in indexed.chunks], np.int32))
    if not kept:
        return generation
    vectors = _embed_rest(generation, kept, encoder, remembered)
    # What the view does not answer itself, the generation does: a type checker does not see that.
    return cast(Index, _Without(generation, kept, documents, vectors))


def _embed_rest(
    generation: Index,
    kept: Mapping[int, UnmaskedChunk],
    encoder: Encoder | None,
    remembered: MutableMapping[str, Vectors],
) -> dict[int, Vectors]:
    """Embed the remaining text of changed chunks; the vector is zero if nothing is left or there is no encoder."""
    vectors = {number: np.zeros(int(generation.meta["dimensions"]), np.float32) for number in kept}
    same = np.array([number for number, one in kept.items() if one.embedded_before], np.int32)
    vectors |= dict(zip(same.tolist(), generation.vectors(same), strict=True))
    if encoder is None or not same_space(encoder.version, generation.meta.get("encoder")):
        return vectors
    other = {one: digest(encoder.version, kept[one].chunk.embedded_text) for one in kept if one not in same}
    new = {key: kept[one].chunk.embedded_text for one, key in other.items() if key not in remembered}
    try:
        remembered.update(zip(new, encoder.encode(list(new.values())), strict=True))
    except EncoderError as error:
        log.warning("what is left of %d chunks is not embedded: %s", len(new), error)
    return vectors | {one: remembered[key] for one, key in other.items() if key in remembered}


class _Without:
    """The view. It shares all data with the generation except those of the changed chunks."""

    def __init__(
        self,
        generation: Index,
        kept: Mapping[int, UnmaskedChunk],
        documents: Sequence[Numbers],
        vectors: Mapping[int, Vectors],
    ) -> None:
        self._generation = generation
        self._kept = kept
        self._parts = documents
        self._left = vectors

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # copies are made without ``__init__``
            raise AttributeError(name)
        return getattr(self._generation, name)

    def seen_by(self, viewer: Viewer) -> _Without:
        return _Without(self._generation.seen_by(viewer), self._kept, self._parts, self._left)

    def without(self, key: str) -> _Without:
        return _Without(self._generation.without(key), self._kept, self._parts, self._left)

    def dense(self, query: Vectors, k: int, within: Mask | None = None) -> Hits:
        hits = self._generation.dense(query, k + len(self._kept), within)
        others = ~np.isin(hits.numbers, list(self._kept))
        own = [one for one in self._kept if not self._kept[one].is_gone and (within is None or within[one])]
        scores = np.array([float(self._left[one] @ query) for one in own], np.float32)
        return best(
            np.concatenate([hits.scores[others], scores]),
            k,
            np.concatenate([hits.numbers[others], np.array(own, np.int32)]),
        )

    def similarities(self, query: Vectors, numbers: Numbers) -> Scores:
        found = self._generation.similarities(query, numbers)
        return self._replace_rows(found, numbers, {one: vector @ query for one, vector in self._left.items()})

    def vectors(self, numbers: Numbers) -> Vectors:
        return self._replace_rows(self._generation.vectors(numbers), numbers, self._left)

    def token_matches(self, tokens: NDArray[np.int8], numbers: Numbers) -> Scores:
        """Return scores of 0: token vectors belong to whole chunks, so a masked chunk would be compared unfairly."""
        return np.zeros((len(numbers), len(tokens)), np.float32)

    def setting_similarities(self, query: Vectors, numbers: Numbers) -> dict[int, dict[int, float]]:
        """Leave out what is masked: nothing says which settings are left."""
        found = self._generation.setting_similarities(query, numbers)
        return {number: own for number, own in found.items() if number not in self._kept}

    def sparse(
        self, weights: Mapping[str, float], document_share: float = 0, bm25: Bm25Settings = DEFAULT_BM25
    ) -> Scores:
        scores = self._generation.sparse(weights, document_share, bm25)
        half = self._saturations(bm25)
        for numbers in self._parts:
            own = np.zeros(len(numbers))
            for term, weight in weights.items():
                counts = self._counts(term, numbers, bm25, half)
                own += weight * ((1 - document_share) * counts + document_share * counts.max(initial=0))
            scores[numbers] = own
        scores[[number for number, one in self._kept.items() if one.is_gone]] = 0
        return scores

    def paired(self, pairs: Iterable[int]) -> dict[int, Numbers]:
        wanted = list(pairs)
        return self._hold_keys(wanted, self._generation.paired(wanted), lambda remains: remains.pairs)

    def named(self, keys: Iterable[str]) -> dict[str, Numbers]:
        wanted = list(keys)
        return self._hold_keys(wanted, self._generation.named(wanted), lambda remains: remains.keys)

    def named_nearly(self, field: str, word: str) -> Numbers:
        return self._still(self._generation.named_nearly(field, word), lambda remains: not remains.is_gone)

    def _hold_keys(
        self, keys: Iterable[K], held: Mapping[K, Numbers], of: Callable[[UnmaskedChunk], Collection[K]]
    ) -> dict[K, Numbers]:
        """Return the chunks of each key; chunks of the document by their remaining text."""
        masked = np.array(list(self._kept), np.int32)
        left = {number: of(remains) for number, remains in self._kept.items() if not remains.is_gone}
        chunks_of = {}
        for key in keys:
            own = np.array([number for number, has in left.items() if key in has], np.int32)
            others = held.get(key, own[:0])
            chunks_of[key] = np.sort(np.concatenate([others[~np.isin(others, masked)], own]))
        return {key: chunks for key, chunks in chunks_of.items() if len(chunks)}

    def holding(self, terms: Iterable[str]) -> Numbers:
        wanted = frozenset(terms)
        return self._still(self._generation.holding(wanted), lambda one: wanted <= one.terms.keys())

    def containing(self, text: str, k: int) -> Numbers:
        found = self._generation.containing(text, k + len(self._kept))
        return self._still(found, lambda one: text.lower() in one.chunk.content.lower())[:k]

    def contents(self, numbers: Numbers) -> dict[int, str]:
        found = self._generation.contents(numbers)
        return {number: self._kept[number].chunk.content if number in self._kept else found[number] for number in found}

    def chunks(self, numbers: Numbers) -> dict[int, StoredChunk]:
        return {number: self._mask_chunk(number, chunk) for number, chunk in self._generation.chunks(numbers).items()}

    def chunk(self, chunk_id: str) -> StoredChunk | None:
        chunk = self._generation.chunk(chunk_id)
        return None if chunk is None else self._mask_chunk(chunk.chunk_no, chunk)

    def _mask_chunk(self, number: int, chunk: StoredChunk) -> StoredChunk:
        one = self._kept.get(number)
        if one is None:
            return chunk
        facts = tuple(
            fact for fact in chunk.facts if fact.span.end <= one.hidden.start or one.hidden.end <= fact.span.start
        )
        return replace(chunk, content=one.chunk.content, title=one.title, section=one.chunk.section, facts=facts)

    def _still(self, numbers: Numbers, has: Callable[[UnmaskedChunk], bool]) -> Numbers:
        """Return the chunks that are not completely masked."""
        lost = [number for number, one in self._kept.items() if one.is_gone or not has(one)]
        return numbers[~np.isin(numbers, lost)] if lost else numbers

    def _replace_rows(
        self, values: NDArray[np.float32], numbers: Numbers, own: Mapping[int, Any]
    ) -> NDArray[np.float32]:
        values = values.copy()
        for place, number in enumerate(numbers.tolist()):
            if number in own:
                values[place] = own[number]
        return values

    def _counts(self, term: str, numbers: Numbers, bm25: Bm25Settings, half: Scores) -> NDArray[np.float64]:
        """Return the weight of a term in the document's chunks, before idf."""
        counts = self._generation.term_weights([term], numbers, bm25)[:, 0].astype(np.float64)
        own = {number: one.terms.get(term, NOWHERE) for number, one in self._kept.items() if not one.is_gone}
        frequencies = np.dot(np.array([own.get(number, NOWHERE) for number in self._kept]), bm25.fields.values)
        left = dict(zip(self._kept, saturated(frequencies, half, bm25).tolist(), strict=True))
        return np.array([left.get(number, count) for number, count in zip(numbers.tolist(), counts, strict=True)])

    def _saturations(self, bm25: Bm25Settings) -> Scores:
        """Return the saturation of each chunk's remaining text, with the average length of the generation."""
        lengths = [np.sum([NOWHERE, *one.terms.values()], axis=0) for one in self._kept.values()]
        return saturations(np.array(lengths), self._generation.average_length(bm25), bm25)
