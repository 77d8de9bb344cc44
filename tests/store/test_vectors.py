"""Dense search: the index against exact search, under filters too; ties by number."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import why_without_vss

from nornweave.config import StorageSettings
from nornweave.index.connection import attach, connect_memory, connect_reader
from nornweave.index.searching.arrays import open_arrays, writing_arrays
from nornweave.index.searching.vectors import VectorIndex, VectorMatrix, load_hnsw, load_matrix, write_vectors
from nornweave.index.writing.build import index_vectors

COUNT, DIMENSIONS = 4000, 48
TIES = 20
SHARES = (0.01, 0.05, 0.25, 0.5, 1.0)


@dataclass(frozen=True)
class Indexes:
    """The same vectors, searched in two ways."""

    vectors: np.ndarray
    exact: VectorIndex
    hnsw: VectorIndex


def unit(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), np.float32)


def write_file(file: Path, vectors: np.ndarray, settings: StorageSettings) -> None:
    """Write a generation that has vectors only, in an order that is not theirs."""
    order = np.random.default_rng(7).permutation(len(vectors)).astype(np.int32)
    flat = pa.array(vectors[order].reshape(-1), type=pa.float32())
    rows = pa.table({"chunk_no": order, "vector": pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])})
    connection = connect_memory(spill=file.parent / "spill")
    try:
        attach(connection, file, "generation")
        connection.register("rows", rows)
        connection.execute("create table generation.vectors as select * from rows")
        if settings.vector_index == "hnsw":
            index_vectors(connection, settings)
        connection.execute("checkpoint generation")
        connection.execute("detach generation")
    finally:
        connection.close()


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Indexes]:
    """Random vectors, the last ones all equal, with the index at its default settings."""
    vectors = unit(np.random.default_rng(3).normal(size=(COUNT, DIMENSIONS)))
    vectors[-TIES:] = vectors[0]
    file = tmp_path_factory.mktemp("vectors") / "vectors.duckdb"
    # Without the extension both are the exact one, and tests of the index are skipped.
    write_file(file, vectors, StorageSettings(vector_index="exact" if why_without_vss() else "hnsw"))
    connection = connect_reader(file, searches_vectors=True)
    with writing_arrays(file, "vectors") as writer:
        write_vectors(connection, writer, COUNT, DIMENSIONS)
    arrays = open_arrays(file, "vectors")
    exact = load_matrix(arrays)
    hnsw = exact if why_without_vss() else load_hnsw(connection, arrays, search_width=StorageSettings().hnsw_ef_search)
    yield Indexes(vectors, exact, hnsw)
    connection.close()


def nearest(vectors: np.ndarray, query: np.ndarray, numbers: np.ndarray, k: int) -> list[int]:
    """Return the most similar vectors by sorting all of them, in double precision."""
    scores = vectors[numbers].astype(np.float64) @ query.astype(np.float64)
    return list(numbers[np.lexsort((numbers, -scores.round(6)))][:k].tolist())


def queries(count: int) -> np.ndarray:
    return unit(np.random.default_rng(11).normal(size=(count, DIMENSIONS)))


def test_exact_search_is_exact(indexes: Indexes) -> None:
    everything = np.arange(COUNT)
    for query in queries(40):
        hits = indexes.exact.search(query, 10, None)
        assert hits.numbers.tolist() == nearest(indexes.vectors, query, everything, 10)
        assert hits.scores == pytest.approx(indexes.vectors[hits.numbers] @ query, abs=1e-6)


@pytest.mark.vss
def test_the_index_finds_what_exact_search_finds(indexes: Indexes) -> None:
    """Random vectors are the hardest case: real ones lie in clusters."""
    found = 0
    asked = queries(100)
    for query in asked:
        exact, hnsw = indexes.exact.search(query, 10, None), indexes.hnsw.search(query, 10, None)
        found += len(set(exact.numbers.tolist()) & set(hnsw.numbers.tolist()))
        assert hnsw.scores == pytest.approx(indexes.vectors[hnsw.numbers] @ query, abs=1e-4)
        assert hnsw.scores.tolist() == sorted(hnsw.scores.tolist(), reverse=True)
    assert found / (10 * len(asked)) >= 0.99


@pytest.mark.vss
def test_the_index_returns_as_many_as_are_asked_for(indexes: Indexes) -> None:
    """More than ``hnsw_ef_search``, which is what one search keeps."""
    for k in (1, 300, 600):
        hits = indexes.hnsw.search(queries(1)[0], k, None)
        assert len(set(hits.numbers.tolist())) == len(hits) == k


@pytest.mark.parametrize("name", ["exact", pytest.param("hnsw", marks=pytest.mark.vss)])
@pytest.mark.parametrize("share", SHARES)
def test_a_filter_loses_nothing(indexes: Indexes, name: str, share: float) -> None:
    index: VectorIndex = getattr(indexes, name)
    random = np.random.default_rng(int(share * 100))
    for query in queries(8):
        within = np.zeros(COUNT, np.bool_)
        within[random.permutation(COUNT)[: int(share * COUNT)]] = True
        numbers = np.flatnonzero(within)
        hits = index.search(query, 30, within)
        # Equal to single precision: neighbours that lie closer together may change places.
        expected = nearest(indexes.vectors, query, numbers, 30)
        assert within[hits.numbers].all()
        similarities = indexes.vectors @ query
        assert similarities[hits.numbers] == pytest.approx(similarities[expected], abs=1e-5)
        assert len(set(hits.numbers.tolist())) == 30


@pytest.mark.parametrize("name", ["exact", pytest.param("hnsw", marks=pytest.mark.vss)])
@pytest.mark.parametrize("qualifying", [[], [5], [17, 3999]])
def test_a_filter_that_leaves_next_to_nothing(indexes: Indexes, name: str, qualifying: list[int]) -> None:
    index: VectorIndex = getattr(indexes, name)
    within = np.zeros(COUNT, np.bool_)
    within[qualifying] = True
    assert sorted(index.search(queries(1)[0], 10, within).numbers.tolist()) == qualifying


@pytest.mark.parametrize("name", ["exact", pytest.param("hnsw", marks=pytest.mark.vss)])
@pytest.mark.parametrize("filtered", [False, True])
def test_equal_vectors_come_by_number(indexes: Indexes, name: str, filtered: bool) -> None:
    index: VectorIndex = getattr(indexes, name)
    twins = [0, *range(COUNT - TIES, COUNT)]
    within = np.ones(COUNT, np.bool_) if filtered else None
    assert index.search(indexes.vectors[0], TIES + 1, within).numbers.tolist() == twins


def test_similarities_are_exact(indexes: Indexes) -> None:
    random = np.random.default_rng(5)
    for query in [*queries(20), indexes.vectors[7]]:
        numbers = random.permutation(COUNT)[:500].astype(np.int32)
        numbers[0] = 7
        expected = indexes.vectors[numbers] @ query
        assert np.abs(indexes.exact.similarities(query, numbers) - expected).max() < 1e-6
        assert np.abs(indexes.hnsw.similarities(query, numbers) - expected).max() < 1e-6


@pytest.mark.parametrize("name", ["exact", pytest.param("hnsw", marks=pytest.mark.vss)])
def test_no_chunks_have_no_similarities(indexes: Indexes, name: str) -> None:
    index: VectorIndex = getattr(indexes, name)
    assert index.similarities(queries(1)[0], np.empty(0, np.int32)).tolist() == []


# Few distinct components: many vectors are equal or as near to the query as others.
COMPONENTS = st.sampled_from([-1.0, 0.0, 0.5, 1.0])


@given(st.lists(st.tuples(COMPONENTS, COMPONENTS, COMPONENTS).filter(any), max_size=30), st.data(), st.integers(0, 35))
def test_exact_search_is_a_full_sort(rows: list[tuple[float, ...]], data: st.DataObject, k: int) -> None:
    vectors = unit(np.array(rows)) if rows else np.zeros((0, 3), np.float32)
    within = data.draw(st.none() | st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    mask = None if within is None else np.array(within, np.bool_)
    query = unit(np.array([1.0, 0.5, -1.0]))
    hits = VectorMatrix.of(vectors).search(query, k, mask)
    allowed = np.arange(len(rows)) if mask is None else np.flatnonzero(mask)
    expected = nearest(vectors, query, allowed, k)
    scores = vectors @ query
    assert len(hits) == len(expected)
    assert scores[hits.numbers] == pytest.approx(scores[expected], abs=1e-6)
    assert set(hits.numbers.tolist()) <= set(allowed.tolist())


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1 << 32), st.sampled_from([48, 384]), st.sampled_from([10, 200]))
def test_bytes_scored_again_find_the_nearest(seed: int, dimensions: int, k: int) -> None:
    """Random vectors are the hardest case: the ten nearest are hardly nearer than the next hundred."""
    random = np.random.default_rng(seed)
    vectors = unit(random.normal(size=(2000, dimensions)))
    asked = unit(random.normal(size=(20, dimensions)))
    index = VectorMatrix.of(vectors)
    found = 0
    for query in asked:
        hits = index.search(query, k, None)
        found += len({*hits.numbers[:10].tolist()} & {*nearest(vectors, query, np.arange(2000), 10)})
        assert hits.scores == pytest.approx(vectors[hits.numbers] @ query, abs=1e-6)
    assert found / (10 * len(asked)) >= 0.99


def test_equal_vectors_are_equally_similar_wherever_they_stand() -> None:
    vectors = np.repeat(unit(np.random.default_rng(1).normal(size=(1, 384))), 23, axis=0)
    query = unit(np.random.default_rng(2).normal(size=384))
    index = VectorMatrix.of(vectors)
    for count in range(1, 23):
        numbers = np.arange(count, dtype=np.int32)
        assert len({*index.similarities(query, numbers).tolist()}) == 1


@pytest.mark.vss
def test_many_threads_may_search_the_index_at_once(indexes: Indexes) -> None:
    """More searches than CPUs at once crash vss 1.5.5; here they wait for each other."""
    asked = queries(64)
    expected = [indexes.hnsw.search(query, 5, None).numbers.tolist() for query in asked]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda query: indexes.hnsw.search(query, 5, None).numbers.tolist(), asked))
    assert found == expected
