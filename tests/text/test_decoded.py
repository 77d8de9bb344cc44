"""Answers are decompressed a bounded piece at a time."""

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nornweave.core.network import PIECE_BYTES, decoded


@given(
    st.binary(max_size=300_000),
    st.sampled_from(["gzip", "x-gzip", " GZIP", "deflate", "", "identity"]),
    st.integers(1, 70_000),
)
def test_what_was_compressed_comes_back(content: bytes, coding: str, size: int) -> None:
    pack = gzip.compress if "gzip" in coding.lower() else zlib.compress if coding == "deflate" else bytes
    sent = pack(content)
    pieces = [sent[at : at + size] for at in range(0, len(sent), size)]
    assert b"".join(decoded(pieces, coding)) == content


def test_a_small_answer_that_holds_much_comes_in_pieces() -> None:
    sent = gzip.compress(bytes(50_000_000))
    assert len(sent) < 60_000
    sizes = [len(piece) for piece in decoded([sent], "gzip")]
    assert max(sizes) <= PIECE_BYTES and sum(sizes) == 50_000_000


@pytest.mark.parametrize("coding", ["gzip, gzip", "gzip,identity", "br", "zstd", "x"])
def test_what_is_compressed_twice_or_in_another_way_is_refused(coding: str) -> None:
    with pytest.raises(ValueError, match="expected gzip"):
        list(decoded([gzip.compress(gzip.compress(b"x"))], coding))


def test_damage_is_said() -> None:
    with pytest.raises(ValueError, match="damaged"):
        list(decoded([b"no gzip at all"], "gzip"))
