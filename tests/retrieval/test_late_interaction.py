"""Late interaction: scores are those of a naive computation, and nothing else changes where there are no tokens."""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import MemorySource, memory_parts, sync

from lab.small_segments import small_segments
from nornweave.ask.search.late_interaction import LATE, RESCORED, token_weights
from nornweave.ask.search.query import read_query, statistics_of
from nornweave.ask.search.search import SearchContext, SearchOutcome, search
from nornweave.config import PlanSettings, StorageSettings
from nornweave.core.text.analyzer import query_terms
from nornweave.core.types import Domain
from nornweave.index.corpus import DuckDBStore
from nornweave.index.index import Index
from nornweave.index.searching.vectors import CHANCE
from nornweave.ingest.records import DomainParts
from nornweave.models.encoders.hashing import WORD, HashEncoder
from nornweave.models.encoders.port import (
    TOKEN_DIMENSIONS,
    TOKEN_LENGTH,
    VERSION,
    EncodedQuery,
    Progress,
    QueryMemo,
    TokenVectors,
    Vectors,
    encode_queries,
    projection_of,
    token_encoder,
)

LATE_PLAN = PlanSettings(late_interaction=0.4)
TEXTS = {
    "a": "cat cat dog, under the big tree",
    "b": "dog and bird. The bird sings loudly",
    "c": "bird bird bird fish",
    "d": "cat",
}


class TokenHash(HashEncoder):
    """Each word is a token, whose vector is that of the word alone."""

    def __init__(self) -> None:
        super().__init__(TOKEN_DIMENSIONS)
        self.encoded: list[str] = []

    def tokens_of(self, text: str) -> TokenVectors:
        rows = [self.encode_query(word) for word in WORD.findall(text)]
        full = np.array(rows, np.float32).reshape(-1, TOKEN_DIMENSIONS)
        tokens: TokenVectors = np.rint(full * TOKEN_LENGTH).astype(np.int8)
        return tokens

    def encode_tokens(
        self, texts: Sequence[str], *, progress: Progress | None = None
    ) -> tuple[Vectors, list[TokenVectors]]:
        self.encoded += texts
        return self.encode(texts, progress=progress), [self.tokens_of(text) for text in texts]

    def encode_query_tokens(self, texts: Sequence[str]) -> tuple[Vectors, list[TokenVectors]]:
        return self.encode(texts), [self.tokens_of(text) for text in texts]


def parts_with_tokens(
    folder: Path, source: MemorySource, encoder: TokenHash, *, tokens: bool = True, **storage: object
) -> DomainParts:
    store = DuckDBStore(
        folder,
        StorageSettings.model_validate(storage),
        dimensions=encoder.dimensions,
        token_vectors=VERSION if tokens else "",
    )
    parts = memory_parts(folder, source, encoder=encoder)
    return replace(parts, store=store, token_encoder=encoder if tokens else None)


def written(texts: dict[str, str]) -> MemorySource:
    source = MemorySource()
    for path, text in texts.items():
        source.write(path, text)
    return source


def current(parts: DomainParts) -> Index:
    generation = parts.store.current()
    assert generation is not None
    index: Index = parts.store.files.open(generation)
    return index


def search_for(text: str, generation: Index, pool: ThreadPoolExecutor, plan: PlanSettings = LATE_PLAN) -> SearchOutcome:
    encoder = TokenHash()
    context = SearchContext(
        domain=Domain.CODE,
        generation=generation,
        plan=plan,
        encode=lambda asked: pool.submit(lambda: encode_queries(encoder, [asked])[0]),
        executor=pool,
    )
    return search(read_query(text), context)


def naive(text: str, content: str, generation: Index) -> float:
    """Compute the score of one chunk word by word, from its text."""
    encoder, count = TokenHash(), generation.chunk_count
    own, total, weights = encoder.tokens_of(content), 0.0, 0.0
    for match, token in zip(WORD.finditer(text), encoder.tokens_of(text), strict=True):
        frequencies = generation.document_frequencies(query_terms(match[0])).values()
        weight = max((math.log(1 + (count - held + 0.5) / (held + 0.5)) for held in frequencies), default=0.0)
        nearest = max(float(token.astype(int) @ row.astype(int)) for row in own) / TOKEN_LENGTH**2
        total, weights = total + weight * (nearest - CHANCE * math.log(len(own) + 1)), weights + weight
    return min(max(total / weights, 0.0), 1.0)


words = st.sampled_from(["cat", "dog", "bird", "fish", "tree", "big", "sings", "the", ",", "unheard"])
said = st.lists(words, min_size=1, max_size=12).map(" ".join)
written_texts = said.filter(lambda text: text.strip(" ,") != "")  # signs alone make no passage


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(written_texts, min_size=1, max_size=8), query=said, largest=st.sampled_from((1_000, 2)))
def test_scores_are_those_of_a_naive_computation(
    texts: list[str], query: str, largest: int, tmp_path_factory: pytest.TempPathFactory, pool: ThreadPoolExecutor
) -> None:
    source = written({f"{number}.txt": text for number, text in enumerate(texts)})
    parts = parts_with_tokens(tmp_path_factory.mktemp("late"), source, TokenHash())
    with small_segments(largest):
        sync(parts)
    with current(parts) as generation:
        encoded = encode_queries(TokenHash(), [query])[0]
        if not token_weights(encoded, statistics_of(read_query(query), generation).idf).any():
            return
        ranking = search_for(query, generation, pool).ranking
        plain = search_for(query, generation, pool, PlanSettings()).ranking
        contents = generation.contents(ranking.numbers)
        share = LATE_PLAN.late_interaction / (1 + LATE_PLAN.late_interaction)
        kept = plain.contributions  # exact evidence demotes nothing here: no tests, no import blocks
        assert kept.keys() | {LATE} == ranking.contributions.keys()
        for place, number in enumerate(ranking.numbers.tolist()):
            expected = share * naive(query, contents[number], generation)
            assert ranking.contributions[LATE][place] == pytest.approx(expected, abs=1e-5)
        np.testing.assert_array_equal(ranking.places, plain.places)


def test_only_the_best_are_scored_and_the_others_stay_below(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    texts = {f"{number:03d}": f"cat {'dog ' * (number % 7)} number{number}" for number in range(90)}
    parts = parts_with_tokens(tmp_path, written(texts), TokenHash())
    sync(parts)
    with current(parts) as generation:
        ranking = search_for("cat dog", generation, pool).ranking
        before = search_for("cat dog", generation, pool, PlanSettings()).ranking
    assert (ranking.contributions[LATE][:RESCORED] > 0).all()
    assert not ranking.contributions[LATE][RESCORED:].any()
    assert set(ranking.numbers[:RESCORED].tolist()) == set(before.numbers[:RESCORED].tolist())


def test_what_has_no_tokens_answers_as_before(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    parts = parts_with_tokens(tmp_path, written(TEXTS), TokenHash(), tokens=False)
    sync(parts)
    with current(parts) as generation:
        late, plain = (search_for("bird sings", generation, pool, plan).ranking for plan in (LATE_PLAN, PlanSettings()))
    assert LATE not in late.contributions
    np.testing.assert_array_equal(late.numbers, plain.numbers)
    np.testing.assert_array_equal(late.scores, plain.scores)


def test_texts_keep_their_tokens_and_are_encoded_once(tmp_path: Path) -> None:
    encoder, source = TokenHash(), written(TEXTS)
    sync(parts_with_tokens(tmp_path, source, encoder))
    source.write("e", "a new one")
    sync(parts_with_tokens(tmp_path, source, encoder))
    assert sorted(encoder.encoded) == sorted([*TEXTS.values(), "a new one"])


@pytest.mark.parametrize("largest", [1_000, 2])
def test_tokens_come_when_they_are_wanted_and_go_when_not(tmp_path: Path, largest: int) -> None:
    encoder, source = TokenHash(), written(TEXTS)
    query = encoder.tokens_of("cat")

    def nearest(*, tokens: bool) -> bool:
        parts = parts_with_tokens(tmp_path, source, encoder, tokens=tokens)
        with small_segments(largest):
            sync(parts)
        with current(parts) as generation:
            return bool(generation.token_matches(query, np.arange(generation.size, dtype=np.int32)).any())

    assert [nearest(tokens=tokens) for tokens in (False, True, False, True)] == [False, True, False, True]
    assert not sync(parts_with_tokens(tmp_path, source, encoder)).published


def test_queries_of_a_batch_have_their_own_tokens() -> None:
    encoder = TokenHash()
    texts = ["cat", "big dog", ""]
    for query, text in zip(encode_queries(encoder, texts), texts, strict=True):
        assert isinstance(query, EncodedQuery)
        np.testing.assert_array_equal(query.tokens, encoder.tokens_of(text))
        np.testing.assert_array_equal(QueryMemo(encoder, together=True).encode(text).tokens, query.tokens)
    assert encode_queries(encoder, ["big dog"])[0].starts == encode_queries(encoder, ["big dog", "x"])[0].starts


def test_an_encoder_without_tokens_gives_none() -> None:
    assert token_encoder(HashEncoder(16)) is None
    assert encode_queries(HashEncoder(16), ["cat"])[0].tokens is None
    assert projection_of("hash:16:1") is None
