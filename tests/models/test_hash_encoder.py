"""HashEncoder: what every encoder promises, checked over arbitrary texts."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nornweave.core.errors import EncoderError
from nornweave.models.encoders import load_encoder
from nornweave.models.encoders.hashing import HashEncoder

ENCODER = HashEncoder(64)
# Lone surrogates, NUL and emoji included.
TEXTS = st.lists(st.text(st.characters(), max_size=60), max_size=8)


@settings(max_examples=80, deadline=None)
@given(TEXTS)
def test_rows_are_unit_length_in_the_order_of_the_texts(texts: list[str]) -> None:
    seen: list[int] = []
    vectors = ENCODER.encode(texts, progress=seen.append)
    assert vectors.shape == (len(texts), 64)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    assert seen == list(range(1, len(texts) + 1))
    for row, text in zip(vectors, texts, strict=True):
        assert np.array_equal(row, ENCODER.encode_query(text))


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(), max_size=200))
def test_tokens_are_words_and_marks(text: str) -> None:
    starts = list(ENCODER.tokenizer.token_starts(text))
    assert starts == sorted(set(starts))
    assert all(not text[start].isspace() for start in starts)
    # Every character that is no blank space belongs to a token: it starts one or continues a word.
    assert all(
        position in starts or (position and text[position - 1].strip())
        for position, character in enumerate(text)
        if character.strip()
    )


def test_texts_that_share_words_are_similar() -> None:
    query = ENCODER.encode_query("refund a captured payment")
    near, far = ENCODER.encode(["the refund of captured payments", "goroutine scheduler latency"])
    assert query @ near > 0.4 > 0.25 > query @ far


def test_the_same_text_has_the_same_vector_in_every_process() -> None:
    """The hash of Python differs between processes: what is written down here does not."""
    expected = [-0.191663, -0.191663, -0.191663, 0.0, -0.638877, -0.191663, 0.191663, -0.638877]
    assert HashEncoder(8).encode_query("refund é").tolist() == pytest.approx(expected, abs=1e-6)


def test_loads_by_name(tmp_path: Path) -> None:
    encoder = load_encoder("hash:32", dimensions=32, cache_dir=tmp_path)
    assert (encoder.dimensions, encoder.version) == (32, "hash:32:1")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["hash:", "hash:many", "hash:1", "hash:-4"])
def test_a_broken_name_says_what_is_expected(name: str, tmp_path: Path) -> None:
    with pytest.raises(EncoderError, match="expected 'hash:64'"):
        load_encoder(name, cache_dir=tmp_path)


def test_other_dimensions_than_declared_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(
        EncoderError, match=r"has 64 dimensions, the domain declares 384; set embedding.dimensions to 64"
    ):
        load_encoder("hash:64", dimensions=384, cache_dir=tmp_path)
