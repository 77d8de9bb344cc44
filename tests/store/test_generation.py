"""Generations: BM25 by hand, vectors exact and by index, files and pointer."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from support import MemorySource, memory_parts, sync

from nornweave.config import Bm25Settings, FieldWeights
from nornweave.index.index import Index
from nornweave.index.searching.inverted import FrequentTerms
from nornweave.ingest.records import DomainParts


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> DomainParts:
    source = MemorySource()
    for name, text in {"a": "cat cat dog", "b": "dog bird", "c": "bird bird bird fish"}.items():
        source.write(name, text)
    parts = memory_parts(tmp_path_factory.mktemp("corpus"), source)
    sync(parts)
    return parts


@pytest.fixture
def generation(parts: DomainParts) -> Iterator[Index]:
    with parts.store.files.open(parts.store.current()) as opened:
        yield opened


def test_bm25_is_the_formula(generation: Index) -> None:
    """Documents hold 4, 3 and 5 terms, their paths (``a``, ``b``, ``c``) included; "cat" stands twice in one."""
    frequencies = generation.document_frequencies(["cat", "dog", "absent"])
    scores = generation.sparse({"cat": 1.5, "absent": 9.0})
    both = generation.sparse({"cat": 1.0, "dog": 1.0})
    assert frequencies == {"cat": 1, "dog": 2, "absent": 0}
    twice = 2 * 2.2 / (2 + 1.2 * (1 - 0.75 + 0.75 * 4 / 4))
    np.testing.assert_allclose(scores, [1.5 * twice, 0, 0], rtol=1e-6)
    once = [2.2 / (1 + 1.2 * (1 - 0.75 + 0.75 * length / 4)) for length in (4, 3)]
    np.testing.assert_allclose(both, [twice + once[0], once[1], 0], rtol=1e-6)


@pytest.mark.parametrize("document_share", [0.0, 0.1])
def test_frequent_terms_count_as_rare_ones_do(
    generation: Index, monkeypatch: pytest.MonkeyPatch, document_share: float
) -> None:
    weights = {"cat": 1.5, "dog": 0.7, "bird": 0.3, "fish": 2.0, "absent": 1.0}
    scores = []
    for share in (0.0, 0.5, 1.0):  # all terms are frequent, some, none
        monkeypatch.setattr("nornweave.index.searching.inverted.FREQUENT_SHARE", share)
        scores += [generation.sparse(weights, document_share) for _ in range(2)]
    for one in scores[1:]:
        np.testing.assert_allclose(one, scores[0], rtol=1e-6)


def test_what_frequent_terms_count_for_is_kept_within_bounds() -> None:
    terms = FrequentTerms(chunk_count=1 << 19, size=1 << 19)  # of 8 MB an array takes 2
    made: list[int] = []

    def make(key: int) -> np.ndarray:
        made.append(key)
        return np.zeros(1, np.float32)

    for key in (0, 1, 2, 3, 0, 4, 0, 1):
        terms.row(key, partial(make, key))
    assert made == [0, 1, 2, 3, 4, 1]


def test_fields_are_weighed_before_they_saturate(generation: Index) -> None:
    """Contents hold 3, 2 and 4 terms, paths one each."""
    thrice = generation.sparse({"a": 1.0, "cat": 1.0}, bm25=Bm25Settings(fields=FieldWeights(path=3)))
    without = generation.sparse({"a": 1.0, "cat": 1.0}, bm25=Bm25Settings(fields=FieldWeights(path=0)))
    half = 1.2 * (1 - 0.75 + 0.75 * (3 + 3) / (3 + 3))
    np.testing.assert_allclose(thrice, [3 * 2.2 / (3 + half) + 2 * 2.2 / (2 + half), 0, 0], rtol=1e-6)
    half = 1.2 * (1 - 0.75 + 0.75 * 3 / 3)
    np.testing.assert_allclose(without, [2 * 2.2 / (2 + half), 0, 0], rtol=1e-6)


def test_saturation_and_length_normalisation_are_the_plans(generation: Index) -> None:
    """Chunk 0 holds "cat" twice in 3 terms; chunks hold 3 terms on average."""
    found = generation.sparse({"cat": 1.0}, bm25=Bm25Settings(k1=2, b=0, fields=FieldWeights(path=0)))
    usual = generation.sparse({"cat": 1.0}, bm25=Bm25Settings(fields=FieldWeights(path=0)))
    assert found[0] == pytest.approx(2 * (2 + 1) / (2 + 2))
    assert usual[0] == pytest.approx(2 * (1.2 + 1) / (2 + 1.2))


def test_weights_of_fields_that_were_forgotten_are_made_again(generation: Index) -> None:
    weighed = [Bm25Settings(fields=FieldWeights(path=tenths / 10)) for tenths in range(20)]
    with ThreadPoolExecutor(4) as pool:

        def answered() -> list[list[float]]:
            return [found.tolist() for found in pool.map(lambda one: generation.sparse({"a": 1.0}, 0, one), weighed)]

        first = answered()
        assert answered() == first
        assert len(generation._parts.opened.mapped.terms._frequencies) <= 7
    assert [found[0] for found in first] == sorted({found[0] for found in first})
    assert first[10][0] == pytest.approx(2.2 / (1 + 1.2))


def test_a_citation_points_at_the_text(generation: Index) -> None:
    chunk = generation.chunks(generation.holding(["fish"])).popitem()[1]
    assert (chunk.path, chunk.content, chunk.char_range, chunk.line_range) == (
        "c",
        "bird bird bird fish",
        (0, 19),
        (1, 1),
    )
