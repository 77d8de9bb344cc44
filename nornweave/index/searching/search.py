"""Search one generation file: vectors, BM25, word pairs and names, in the mapped arrays beside it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from nornweave.config import Bm25Settings
from nornweave.index.port import Mask, Numbers, Scores, Vectors
from nornweave.index.searching.cards import Cards
from nornweave.index.searching.generation_file import GenerationFile
from nornweave.index.searching.inverted import DEFAULT_BM25, FrequentTerms, InvertedLists, Lengths, TextKeys
from nornweave.index.searching.ranked_chunks import Hits
from nornweave.index.searching.terms import TermLists, WeightedTerms
from nornweave.index.searching.vectors import SettingVectors, TokenVectors, VectorIndex
from nornweave.index.searching.visibility import SeenTerms, Visible

K = TypeVar("K", int, str)


@dataclass
class Mapped:
    """The mapped arrays of one generation. Closing releases them, so that the disk space of a removed file is freed."""

    terms: TermLists
    pairs: InvertedLists[int]
    names: InvertedLists[str]
    name_keys: TextKeys
    cards: Cards
    vectors: VectorIndex
    tokens: TokenVectors
    settings: SettingVectors


class FileSearch:
    """Scores of the visible chunks of one file. Every method is thread-safe."""

    def __init__(self, file: GenerationFile, mapped: Mapped, corpus: Lengths, visible: Visible | None = None) -> None:
        self._file = file
        self._mapped = mapped
        self._corpus = corpus
        self._visible = visible
        self._size = file.size
        self._frequent = visible.frequent if visible else FrequentTerms(file.size, file.size)

    def dense(self, query: Vectors, k: int, within: Mask | None = None) -> Hits:
        if self._visible is None:
            return self._mapped.vectors.search(query, k, within)
        if within is not None:
            within = within & self._visible.chunks
        return self._mapped.vectors.search(query, k, within, self._visible.numbers)

    def similarities(self, query: Vectors, numbers: Numbers) -> Scores:
        return self._mapped.vectors.similarities(query, numbers)

    def vectors(self, numbers: Numbers) -> Vectors:
        return self._mapped.vectors.vectors(numbers)

    def token_matches(self, tokens: NDArray[np.int8], numbers: Numbers) -> Scores:
        return self._mapped.tokens.matches(tokens, numbers)

    def setting_similarities(self, query: Vectors, numbers: Numbers) -> dict[int, dict[int, float]]:
        return self._mapped.settings.similarities(query, numbers)

    def document_frequencies(self, terms: Iterable[str]) -> dict[str, int]:
        frequency = self._terms.frequency
        return {term: frequency(term) for term in terms}

    def sparse(
        self, weights: Mapping[str, float], document_share: float = 0, bm25: Bm25Settings = DEFAULT_BM25
    ) -> Scores:
        frequency = self._terms.frequency
        frequent = {term for term in weights if self._frequent.is_frequent(frequency(term))}
        return self.sparse_with(weights, frequent, document_share, bm25)

    def sparse_with(
        self, weights: Mapping[str, float], frequent: Collection[str], document_share: float, bm25: Bm25Settings
    ) -> Scores:
        """Return the score of each chunk: the sum of each term's weight in the question times its weight in the chunk.

        ``frequent`` are the terms that are frequent in all segments together. They are added first, because the order
        of addition affects the last bit. The share ``document_share`` of a term's weight comes from the best chunk of
        the chunk's document.
        """
        terms = self._weighted(bm25)
        scores = np.zeros(self._size, np.float32)
        rare: dict[str, float] = {}
        for term, weight in weights.items():
            if term in frequent:
                made = partial(self._summed, terms, {term: 1.0}, document_share)
                key = (term, bm25, document_share, self._corpus)
                scores += self._frequent.row(key, made) * np.float32(weight)
            else:
                rare[term] = weight
        return scores + self._summed(terms, rare, document_share) if rare else scores

    def _summed(self, terms: WeightedTerms, weights: Mapping[str, float], document_share: float) -> Scores:
        scores = np.zeros(self._size, np.float32)
        documents = np.zeros(self._file.document_count, np.float32)
        for term, weight in weights.items():
            chunks, frequencies = terms.weighted(term)
            if not len(chunks):
                continue
            scores[chunks] += (weight * (1 - document_share)) * frequencies
            if document_share:
                holding, highest = self._best_of_documents(chunks, frequencies)
                documents[holding] += (weight * document_share) * highest
        return scores + documents[self._file.documents] if document_share else scores

    def _best_of_documents(self, chunks: Numbers, weights: Scores) -> tuple[Numbers, Scores]:
        """Return the documents of some chunks, ascending, each with the highest weight of its chunks."""
        documents = self._file.documents[chunks]
        begins = np.ones(len(documents), np.bool_)
        np.not_equal(documents[1:], documents[:-1], out=begins[1:])
        starts = np.flatnonzero(begins)
        return documents[starts], np.maximum.reduceat(weights, starts)

    def term_weights(self, terms: Sequence[str], numbers: Numbers, bm25: Bm25Settings) -> Scores:
        return self._weighted(bm25).weights(terms, numbers)

    def average_length(self, bm25: Bm25Settings) -> float:
        return self._corpus.average(bm25)

    def paired(self, pairs: Iterable[int]) -> dict[int, Numbers]:
        return self._held(self._mapped.pairs, pairs)

    def named(self, keys: Iterable[str]) -> dict[str, Numbers]:
        return self._held(self._mapped.names, keys)

    def _held(self, lists: InvertedLists[K], keys: Iterable[K]) -> dict[K, Numbers]:
        find, starts, chunk_nos = lists.keys.find, lists.offsets, lists.chunk_nos
        placed = [(key, place) for key in keys if (place := find(key)) >= 0]
        chunks_of = {key: self._seen(chunk_nos[starts[place] : starts[place + 1]]) for key, place in placed}
        return {key: chunks for key, chunks in chunks_of.items() if len(chunks)}

    def named_nearly(self, field: str, word: str) -> Numbers:
        chunks_of = self.named(self._mapped.name_keys.near(field, word)).values()
        return np.unique(np.concatenate([*chunks_of])) if chunks_of else np.empty(0, np.int32)

    def holding(self, terms: Iterable[str]) -> Numbers:
        held: Numbers | None = None
        chunks_of: Callable[[str], Numbers] = self._terms.chunks
        for chunks in sorted((chunks_of(term) for term in terms), key=len):
            held = chunks if held is None else np.intersect1d(held, chunks, assume_unique=True)
        return np.empty(0, np.int32) if held is None else held

    def _seen(self, numbers: Numbers) -> Numbers:
        return numbers if self._visible is None else self._visible.of(numbers)

    @property
    def _terms(self) -> InvertedLists[str] | SeenTerms:
        terms = self._mapped.terms
        return terms.lists if self._visible is None else self._visible.terms(terms)

    def _weighted(self, bm25: Bm25Settings) -> WeightedTerms:
        terms = self._mapped.terms
        return terms.by(bm25, self._corpus) if self._visible is None else self._visible.by(terms, bm25, self._corpus)
