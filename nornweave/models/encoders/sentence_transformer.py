"""An encoder for any sentence-transformers model, run by torch."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from nornweave.core.errors import EncoderError
from nornweave.models.encoders.port import Progress, Vectors, encodable, unit_rows
from nornweave.models.encoders.tokenizer import WORD_PIECES, ModelTokenizer
from nornweave.models.folders import ModelFolder
from nornweave.models.torch_models import ENCODER, load_with_torch

if TYPE_CHECKING:
    from nornweave.core.text.spans import Tokenizer

WINDOW = 1_024
"""Texts between two reports of progress; sentence-transformers sorts them by length among themselves."""
UNLIMITED = 8_192
"""``max_tokens`` of a model that names no limit."""


class SentenceTransformerEncoder:
    """A sentence-transformers model; queries and passages get the prompts that the model declares for them."""

    def __init__(self, folder: ModelFolder, *, device: str = "cpu", batch_size: int = 32) -> None:
        """Load the model.

        Raises:
            EncoderError: the device is not there, or the files are not a model that loads without remote code.
        """
        self._model = load_with_torch(ENCODER, folder.path, name=folder.name, device=device)
        self._batch_size = batch_size
        self._lock = Lock()
        self.version = folder.version
        self.dimensions = int(self._model.get_embedding_dimension() or self._probe().shape[1])
        self.tokenizer, special = _tokenizer_of(self._model)
        self.max_tokens = int(self._model.max_seq_length or UNLIMITED) - special

    def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        """Encode passages with the model's document prompt, if it has one."""
        parts = [np.empty((0, self.dimensions), dtype=np.float32)]
        for start in range(0, len(texts), WINDOW):
            window = texts[start : start + WINDOW]
            parts.append(self._run(self._model.encode_document, window))
            if progress is not None:
                progress(start + len(window))
        return np.concatenate(parts)

    def encode_query(self, text: str) -> Vectors:
        """Encode one query with the model's query prompt; one at a time, since torch uses every core for it."""
        vector: Vectors = self._run(self._model.encode_query, [text])[0]
        return vector

    def _probe(self) -> Vectors:
        return self._run(self._model.encode_document, ["probe"])

    def _run(self, encode: Any, texts: Sequence[str]) -> Vectors:
        try:
            with self._lock:
                vectors = encode(
                    [encodable(text) for text in texts],
                    batch_size=self._batch_size,
                    convert_to_numpy=True,
                    normalize_embeddings=False,
                    show_progress_bar=False,
                )
        except (RuntimeError, ValueError, IndexError) as error:
            raise EncoderError(f"{self.version} failed while encoding ({error}); try a smaller batch_size") from error
        return unit_rows(np.asarray(vectors, dtype=np.float32), source=self.version)


def _tokenizer_of(model: Any) -> tuple[Tokenizer, int]:
    backend = getattr(getattr(model[0], "tokenizer", None), "backend_tokenizer", None)
    if backend is None:
        return WORD_PIECES, 0
    return ModelTokenizer(backend.to_str()), backend.num_special_tokens_to_add(False)
