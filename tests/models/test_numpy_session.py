"""Where OpenVINO has no wheel, NumPy computes the same vectors."""

import logging
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from nornweave.core.errors import EncoderError
from nornweave.models.encoders import load_encoder
from nornweave.models.encoders.bert import BertEncoder, OpenVinoSession, gelu, read_bert
from nornweave.models.folders import locate

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
TEXTS = ["", " ", "x", "void a payment", "def void(self, amount: int) -> None:\n    raise Refused(amount)", "ö" * 300,
         "the refund endpoint answers 422 when a captured payment was voided " * 40]  # fmt: skip


def test_gelu_is_that_of_erf() -> None:
    numbers = np.linspace(-12, 12, 100_001, dtype=np.float32)
    exact = np.array([x * (1 + math.erf(x / math.sqrt(2))) / 2 for x in map(float, numbers)])
    assert np.all(np.abs(gelu(numbers) - exact) <= 3e-7 * np.maximum(np.abs(exact), np.abs(numbers)))
    assert gelu(np.float32([-np.inf, 0, np.inf])[1:]).tolist() == [0, np.inf]


def test_vectors_and_tokens_are_those_of_openvino(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = locate(MODEL)
    bert = read_bert(folder.path)
    assert bert is not None
    exact = BertEncoder(bert, OpenVinoSession, version=folder.version, batch_size=3, precision="float32")
    monkeypatch.setitem(sys.modules, "openvino", None)  # as Python spells that it is missing
    with caplog.at_level(logging.WARNING):
        encoder = load_encoder(MODEL, cache_dir=tmp_path, dimensions=384, batch_size=3)
    assert "runs on NumPy, slower, because OpenVINO does not load" in caplog.text
    assert isinstance(encoder, BertEncoder) and encoder.version == exact.version
    assert (encoder.runs_on, exact.runs_on) == ("NumPy in float32", "OpenVINO in float32")
    vectors, tokens = encoder.encode_tokens(TEXTS)
    expected, expected_tokens = exact.encode_tokens(TEXTS)
    assert vectors.dtype == expected.dtype and np.abs(vectors - expected).max() < 2e-6
    assert [one.shape for one in tokens] == [one.shape for one in expected_tokens]
    assert (
        max(
            np.abs(one.astype(int) - other).max()
            for one, other in zip(tokens, expected_tokens, strict=True)
            if one.size
        )
        <= 1
    )
    assert encoder.encode_query(TEXTS[3]) == pytest.approx(expected[3], abs=2e-6)
    with pytest.raises(EncoderError, match="only the default model has that form, on device 'cpu' with OpenVINO"):
        load_encoder(MODEL, cache_dir=tmp_path, precision="int8")
    assert not list(tmp_path.iterdir()), "no speeds to measure"


def test_vectors_in_int8_are_made_anew_in_float32(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    version = locate(MODEL).version
    assert load_encoder(MODEL, cache_dir=tmp_path, like=f"{version}+int8.00000000").version == version
