import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from word_searcher import Passage

from evals.controls import (
    MeaninglessEncoder,
    chance_recall,
    control_of,
    controls_hold,
    controls_json,
    shuffled,
    strangers,
)
from evals.judgments import Judgment, parse_place
from evals.measures import Metric, measure, metric_of
from nornweave.core.types import Domain
from nornweave.models.encoders import Encoder, load_encoder
from nornweave.models.encoders.hashing import HashEncoder

CODE = Domain.CODE


def judged(places: Mapping[str, Sequence[str]]) -> dict[str, list[Judgment]]:
    return {query: [Judgment(query, *parse_place(doc_id), 1) for doc_id in of] for query, of in places.items()}


def metric(mean: float, low: float, high: float) -> Metric:
    return Metric(mean, low, high, {"q": mean})


def overlapping(relevant: Mapping[str, Sequence[Judgment]], one: str, other: str) -> bool:
    """Say it once more, the long way: line by line, and a whole document is every line of it."""
    for first in relevant[one]:
        for second in relevant[other]:
            if first.path != second.path:
                continue
            if first.lines is None or second.lines is None:
                return True
            if set(range(first.lines[0], first.lines[1] + 1)) & set(range(second.lines[0], second.lines[1] + 1)):
                return True
    return False


# --- strangers ------------------------------------------------------------------------------------------------------


def test_other_lines_and_messages_will_do_where_there_is_one_document() -> None:
    assert dict(strangers(judged({"p": ["a.py#L1-9"], "q": ["a.py#L10-20"]}))) == {"p": "q", "q": "p"}
    assert dict(strangers(judged({"p": ["c.json#1.0"], "q": ["c.json#2.0"]}))) == {"p": "q", "q": "p"}


@pytest.mark.parametrize("places", [
    {}, {"only": ["a.md"]}, {"p": ["a.md"], "q": ["a.md"]}, {"p": ["a.md#L1-9"], "q": ["a.md#L9-20"]},
    {"p": ["a.md#L1-9"], "q": ["a.md"]}, {"p": ["c.json#1.0", "c.json#2.0"], "q": ["c.json#2.0"]},
])  # fmt: skip
def test_queries_without_a_stranger_are_left_out(places: Mapping[str, Sequence[str]]) -> None:
    assert not strangers(judged(places))


PLACES = st.lists(
    st.sampled_from(
        ["a.py", "b.py", "a.py#L1-5", "a.py#L4-9", "a.py#L10-12", "b.py#L1-5", "b.py#L6-9", "c.py", "ö.py"]
    ),
    min_size=1,
    max_size=3,
    unique=True,
)


@given(st.dictionaries(st.text(max_size=4), PLACES, max_size=14), st.data())
def test_strangers_never_overlap_and_nobody_is_taken_twice(places: dict[str, list[str]], data: st.DataObject) -> None:
    relevant = judged(places)
    found = strangers(relevant)
    assert len(set(found.values())) == len(found)
    assert not any(overlapping(relevant, query, stranger) for query, stranger in found.items())
    order = data.draw(st.permutations(list(relevant)))
    assert dict(strangers({query: relevant[query] for query in order})) == dict(found)


@settings(max_examples=40)
@given(st.dictionaries(st.text(max_size=4), st.integers(0, 9), min_size=2, max_size=40))
def test_nobody_is_left_out_where_each_document_has_at_most_half_of_the_queries(documents: dict[str, int]) -> None:
    counts = [list(documents.values()).count(number) for number in range(10)]
    found = strangers(judged({query: [f"{number}.md"] for query, number in documents.items()}))
    expected = len(documents) if max(counts) * 2 <= len(documents) else 0
    assert len(found) >= expected


# --- shuffled -------------------------------------------------------------------------------------------------------


def passages(count: int) -> list[Passage]:
    return [Passage(CODE, f"d{number}.md", "") for number in range(count)]


def test_a_perfect_search_shuffled_finds_nothing() -> None:
    relevant = judged({f"q{number}": [f"d{number}.md"] for number in range(30)})
    rankings = {f"q{number}": [passage.citation] for number, passage in enumerate(passages(30))}
    control = shuffled(rankings, relevant, CODE, {})
    real = measure({query: [(f"d{query[1:]}.md#",)] for query in relevant}, {q: {f"d{q[1:]}.md#": 1} for q in relevant})
    assert {name: one.mean for name, one in control.items()} == dict.fromkeys(control, 0)
    assert all(controls_hold(real[name], control[name]) for name in control)


def test_values_stand_under_the_query_that_the_judgments_belong_to() -> None:
    """``p`` found the place that answers ``q``; ``q`` found nothing at all."""
    relevant = judged({"p": ["a.py#L1-5"], "q": ["b.py#L1-5"]})
    rankings = {"p": [Passage(CODE, "b.py", "", lines=(2, 3)).citation]}
    assert dict(shuffled(rankings, relevant, CODE, {})["Recall@10"].values) == {"p": 0, "q": 1}


# --- low ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("real", "control", "holds"), [
    (metric(0.8, 0.7, 0.9), metric(0.1, 0.0, 0.2), True),
    (metric(0.8, 0.7, 0.9), metric(0.4, 0.3, 0.5), True),  # half of it, and no more
    (metric(0.8, 0.79, 0.81), metric(0.41, 0.40, 0.42), False),  # certainly lower, yet more than half
    (metric(0.8, 0.4, 1.0), metric(0.2, 0.0, 0.4), False),  # too few queries to tell
    (metric(0.0, 0.0, 0.0), metric(0.0, 0.0, 0.0), False),  # nothing works: nothing is shown
    (metric(0.1, 0.05, 0.15), metric(0.8, 0.7, 0.9), False),
])  # fmt: skip
def test_what_is_low(real: Metric, control: Metric, holds: bool) -> None:
    assert controls_hold(real, control) is holds


def test_chance_by_hand() -> None:
    assert chance_recall(100) == pytest.approx(10 / 100)
    assert chance_recall(4, 2, 2) == pytest.approx(1 - 1 / 6), "of the six pairs of four chunks one misses both"
    assert chance_recall(8, 10) == 1
    assert (chance_recall(0, hitting=0), chance_recall(50, hitting=0), chance_recall(5, 0)) == (0, 0, 0)
    for chunks, listed, hitting in ((-1, 1, 0), (0, 1, 1), (5, -1, 1), (5, 1, -1), (5, 1, 6)):
        with pytest.raises(ValueError, match="expected 0 ≤ hitting ≤ chunks"):
            chance_recall(chunks, listed, hitting)


@settings(max_examples=20)
@given(st.integers(1, 40), st.integers(0, 40), st.data())
def test_chance_is_what_drawing_blindly_gives(chunks: int, listed: int, data: st.DataObject) -> None:
    hitting = data.draw(st.integers(0, chunks))
    draws = np.random.default_rng(3).hypergeometric(hitting, chunks - hitting, min(listed, chunks), size=4000)
    assert chance_recall(chunks, listed, hitting) == pytest.approx(float((draws > 0).mean()), abs=0.04)


# --- no embeddings --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real_encoder(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    return load_encoder("hash:384", cache_dir=Path(tmp_path_factory.mktemp("models")))


def test_it_passes_for_the_encoder_that_it_stands_in_for(real_encoder: Encoder) -> None:
    encoder: Encoder = MeaninglessEncoder(real_encoder)
    assert (encoder.version, encoder.dimensions) == (real_encoder.version, real_encoder.dimensions)
    assert (encoder.max_tokens, encoder.tokenizer) == (real_encoder.max_tokens, real_encoder.tokenizer)


@given(st.lists(st.text(), max_size=4), st.integers(2, 40))
def test_vectors_have_length_one_and_belong_to_their_text(texts: list[str], dimensions: int) -> None:
    encoder = MeaninglessEncoder(HashEncoder(dimensions))
    seen: list[int] = []
    vectors = encoder.encode(texts, progress=seen.append)
    assert (vectors.shape, vectors.dtype, seen) == ((len(texts), dimensions), np.float32, [len(texts)])
    for text, vector in zip(texts, vectors, strict=True):
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)
        assert np.array_equal(vector, encoder.encode_query(text))


def test_the_vectors_are_the_same_on_every_machine() -> None:
    signs = MeaninglessEncoder(HashEncoder(16)).encode_query("refund window") > 0
    assert "".join("+" if one else "-" for one in signs) == "++--+++++-+---++"
    MeaninglessEncoder(HashEncoder(16)).encode_query("\ud800")  # half a surrogate pair has no UTF-8 form


def test_like_texts_are_no_more_alike_than_others(real_encoder: Encoder) -> None:
    """Cosines to a fixed vector are 0 on average, with a spread of 1 / √384 = .051."""
    encoder = MeaninglessEncoder(real_encoder)
    texts = [f"how long can payment number {number} be refunded" for number in range(400)]
    real = real_encoder.encode(texts) @ real_encoder.encode_query(texts[0])
    meaningless = encoder.encode(texts[1:]) @ encoder.encode_query(texts[0])
    against_real = encoder.encode(texts) @ real_encoder.encode_query(texts[0])
    assert float(real.mean()) > 0.5, "the texts are alike"
    for cosines in (meaningless, against_real):
        assert abs(float(cosines.mean())) < 4 * 0.051 / math.sqrt(400)
        assert float(cosines.std()) == pytest.approx(1 / math.sqrt(384), rel=0.15)


# --- reports --------------------------------------------------------------------------------------------------------


def test_reports() -> None:
    real, low = metric_of({"a": 1.0, "b": 1.0}), metric_of({"a": 0.0, "b": 0.0})
    controls = [
        control_of("shuffled", "fused", "Recall@10", real, low),
        control_of("meaningless", "dense", "Recall@10", real, real, 0.0125),
    ]
    first, second = controls_json(controls)
    assert first == {
        "control": "shuffled",
        "stage": "fused",
        "measure": "Recall@10",
        "queries": 2,
        "real": {"mean": 1.0, "low": 1.0, "high": 1.0},
        "value": {"mean": 0.0, "low": 0.0, "high": 0.0},
        "chance": None,
        "holds": True,
    }
    assert (second["chance"], second["holds"]) == (0.0125, False)
