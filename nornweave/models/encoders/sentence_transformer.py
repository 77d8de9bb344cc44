"""Any sentence-transformers model, run by torch: on a GPU, or where a model cannot be converted."""

from __future__ import annotations

import os
from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from nornweave.embedding.models import ModelFolder
from nornweave.embedding.port import Progress, Vectors, encodable, unit_rows
from nornweave.embedding.tokenizer import WORD_PIECES, ModelTokenizer
from nornweave.errors import EncoderError

if TYPE_CHECKING:
    from nornweave.chunking.spans import Tokenizer

# What transformers raises for files that are missing, broken, or want code of their own.
LOAD_ERRORS = (OSError, ValueError, RuntimeError, KeyError, TypeError, AttributeError, ImportError)
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
        self._model = _load(folder, device)
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


def _load(folder: ModelFolder, device: str) -> Any:
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    import torch
    from safetensors import SafetensorError
    from sentence_transformers import SentenceTransformer

    if device == "cuda" and not torch.cuda.is_available():
        raise EncoderError(
            f"device {device!r} is asked for, but torch {torch.__version__} finds no CUDA device; "
            "set embedding.device (EMBEDDING_DEVICE) to 'cpu', or install a CUDA build of torch and its driver"
        )
    try:
        return SentenceTransformer(
            str(folder.path), device=device, local_files_only=True, trust_remote_code=False
        ).eval()
    except (*LOAD_ERRORS, SafetensorError) as error:
        reason = str(error).strip().splitlines()[:1] or [type(error).__name__]
        raise EncoderError(
            f"embedding model {folder.name!r} does not load ({type(error).__name__}: {reason[0]}); "
            "expected a complete sentence-transformers or transformers model that needs no code of its own"
        ) from error


def _tokenizer_of(model: Any) -> tuple[Tokenizer, int]:
    backend = getattr(getattr(model[0], "tokenizer", None), "backend_tokenizer", None)
    if backend is None:
        return WORD_PIECES, 0
    return ModelTokenizer(backend.to_str()), backend.num_special_tokens_to_add(False)
