"""Passages encoded by a server, where there is a GPU: OpenAI's ``/embeddings``, as text-embeddings-inference has it."""

from __future__ import annotations

import os
from collections.abc import Sequence

import httpx
import numpy as np

from nornweave.core.errors import EncoderError
from nornweave.core.proxies import through_proxy, unusable_proxy
from nornweave.models.encoders.port import ALIKE, Encoder, Vectors, encodable, unit_rows

TOKEN_VARIABLE = "NORNWEAVE_ENCODER_TOKEN"  # noqa: S105 - a name
TIMEOUT_S = 60.0


class ServedEncoder:
    """Encodes on a server what ``local`` would; one text of each call is encoded here as well, and compared."""

    def __init__(self, local: Encoder, url: str, model: str) -> None:
        """``url`` is what OpenAI's clients call the base URL, ``http://gpu:8080/v1``; ``model`` is a name there."""
        self.version = local.version
        self._local = local
        self._url, self._model = f"{url.rstrip('/')}/embeddings", model
        token = os.environ.get(TOKEN_VARIABLE)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Encode passages, in their order.

        Raises:
            EncoderError: the server cannot be reached, or its vectors are not those of the local model.
        """
        if wrong := unusable_proxy(self._url):
            raise EncoderError(f"{self._url} gave no vectors ({wrong})")
        try:
            asked = {"model": self._model, "input": list(map(encodable, texts))}
            answer = httpx.post(
                self._url, json=asked, headers=self._headers, timeout=TIMEOUT_S, trust_env=not unusable_proxy()
            )
            answer.raise_for_status()
            rows = sorted(answer.json()["data"], key=lambda row: row["index"])
            vectors = np.array([row["embedding"] for row in rows], dtype=np.float32)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError) as error:
            raise EncoderError(f"{self._url} gave no vectors ({error}{through_proxy(self._url)})") from error
        if vectors.shape != (len(texts), self._local.dimensions):
            expected = len(texts), self._local.dimensions
            raise EncoderError(f"{self._url} gave vectors of the shape {vectors.shape}, expected {expected}")
        vectors = unit_rows(vectors, source=self._url)
        alike = float(self._local.encode(texts[:1])[0] @ vectors[0])
        if alike < ALIKE:
            raise EncoderError(
                f"{self._url} serves another model than {self.version!r}, or pools otherwise: the vectors of one text "
                f"have the cosine {alike:.3f}, expected at least {ALIKE}"
            )
        return vectors
