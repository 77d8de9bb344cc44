"""BERT with mean pooling on NumPy alone, for systems without an OpenVINO wheel.

It computes what the graph in ``bert.py`` computes, in float32: the vectors are the same to five digits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from nornweave.models.encoders.bert import BertFolder, Floats, bert_weights
from nornweave.models.encoders.port import Precision, Vectors
from nornweave.models.encoders.tokenizer import Ids
from nornweave.models.encoders.tokens import TOKEN_LENGTH

# The rational approximation of erf(x) in float32 by Eigen and XLA (ErfImpl32): x · P(x²) / Q(x²) for |x| ≤ 4.
_ERF_P = (-2.72614226e-10, 2.77068142e-08, -2.10102402e-06, -5.69250639e-05, -7.34990631e-04, -2.95459981e-03,
          -1.60960333e-02)  # fmt: skip
_ERF_Q = (-1.45660718e-05, -2.13374055e-04, -1.68282697e-03, -7.37332917e-03, -1.42647390e-02)


class NumpySession:
    """Runs the model on NumPy. It keeps nothing between calls."""

    NAME: str = "NumPy"

    def __init__(self, bert: BertFolder, precision: Precision, projection: Vectors | None) -> None:  # noqa: ARG002
        # BLAS needs aligned arrays, and tensors in a file may not be aligned. Other products take far longer.
        self._weights = {name: np.require(of, requirements="A") for name, of in bert_weights(bert).items()}
        self._projection = projection
        self._heads = int(bert.config["num_attention_heads"])
        self._layers = int(bert.config["num_hidden_layers"])
        self._epsilon = np.float32(bert.config["layer_norm_eps"])
        self._width = int(bert.config["hidden_size"])

    def answer(self, inputs: tuple[Ids, Ids], outputs: int) -> list[Vectors]:
        """Return the vectors and, with two ``outputs``, the padded token vectors."""
        ids, mask = inputs
        hidden = self._hidden(ids, mask)
        found = [_unit((hidden * mask[:, :, None]).sum(axis=1, dtype=np.float32))]
        if outputs > 1 and self._projection is not None:
            found.append(_unit(hidden @ self._projection) * np.float32(TOKEN_LENGTH))
        return found

    def stream(self, batches: Iterable[tuple[Ids, Ids]], outputs: int) -> Iterator[list[Vectors]]:
        """Run batches one by one, because NumPy uses all threads for one batch."""
        for batch in batches:
            yield self.answer(batch, outputs)

    def _hidden(self, ids: Ids, mask: Ids) -> Floats:
        """Return the last layer, ``[texts, tokens, width]``."""
        weights = self._weights
        hidden = weights["embeddings.word_embeddings.weight"][ids]
        hidden += weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
        hidden += weights["embeddings.token_type_embeddings.weight"][0]
        hidden = self._layer_norm(hidden, "embeddings.LayerNorm")
        absent = np.where(mask[:, None, None, :] > 0, np.float32(0), np.finfo(np.float32).min)
        for layer in range(self._layers):
            name = f"encoder.layer.{layer}"
            attention = self._linear(self._attended(hidden, absent, name), f"{name}.attention.output.dense")
            hidden = self._layer_norm(attention + hidden, f"{name}.attention.output.LayerNorm")
            narrow = self._linear(gelu(self._linear(hidden, f"{name}.intermediate.dense")), f"{name}.output.dense")
            hidden = self._layer_norm(narrow + hidden, f"{name}.output.LayerNorm")
        return hidden

    def _attended(self, hidden: Floats, absent: Floats, name: str) -> Floats:
        texts, tokens, width = hidden.shape
        query, key, value = (
            self._linear(hidden, f"{name}.attention.self.{role}")
            .reshape(texts, tokens, self._heads, width // self._heads)
            .transpose(0, 2, 1, 3)
            for role in ("query", "key", "value")
        )
        scores: Floats = query @ key.swapaxes(2, 3) * np.float32(1 / math.sqrt(width // self._heads)) + absent
        scores -= scores.max(axis=3, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=3, keepdims=True)
        joined: Floats = (scores @ value).transpose(0, 2, 1, 3).reshape(texts, tokens, width)
        return joined

    def _linear(self, hidden: Floats, name: str) -> Floats:
        rows = hidden.reshape(-1, hidden.shape[-1]) @ self._weights[f"{name}.weight"].T
        rows += self._weights[f"{name}.bias"]
        return rows.reshape(*hidden.shape[:-1], -1)

    def _layer_norm(self, hidden: Floats, name: str) -> Floats:
        centred = hidden - hidden.mean(axis=2, keepdims=True)
        centred /= np.sqrt(np.square(centred).mean(axis=2, keepdims=True) + self._epsilon)
        normal: Floats = centred * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        return normal


def gelu(numbers: Floats) -> Floats:
    """Return ``x · (1 + erf(x / √2)) / 2`` (Hendrycks & Gimpel, arXiv:1606.08415), within 3e-7 · |x|."""
    scaled = np.clip(numbers * np.float32(math.sqrt(0.5)), -4, 4)
    square = np.square(scaled)
    above, below = (_polynomial(square, coefficients) for coefficients in (_ERF_P, _ERF_Q))
    activated: Floats = numbers * (1 + scaled * above / below) / 2
    return activated


def _polynomial(at: Floats, coefficients: tuple[float, ...]) -> Floats:
    total = np.full_like(at, coefficients[0])
    for coefficient in coefficients[1:]:
        total *= at
        total += np.float32(coefficient)
    return total


def _unit(rows: Floats) -> Floats:
    unit: Floats = rows / np.maximum(np.sqrt(np.square(rows).sum(axis=-1, keepdims=True)), np.float32(1e-12))
    return unit
