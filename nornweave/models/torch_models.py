"""Run a sentence-transformers model with torch. A model's own code is not run."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from nornweave.core.errors import EncoderError, RerankerError
from nornweave.core.installation import install_command
from nornweave.models.encoders.port import Progress, Vectors, encodable, unit_rows
from nornweave.models.encoders.tokenizer import WORD_PIECES, ModelTokenizer
from nornweave.models.folders import CROSS_ENCODER, ENCODER, ModelFolder, ModelKind
from nornweave.models.rerankers import Scores, scores_of

if TYPE_CHECKING:
    from nornweave.core.text.spans import Tokenizer

TORCH_PACKAGES = ("torch", "transformers", "sentence_transformers")
# What transformers raises for files that are missing, broken, or want code of their own.
LOAD_ERRORS = (OSError, ValueError, RuntimeError, KeyError, TypeError, AttributeError, ImportError)
WINDOW = 1_024
"""Texts between two reports of progress; sentence-transformers sorts them by length among themselves."""
UNLIMITED = 8_192
"""``max_tokens`` of a model that names no limit."""
CHARACTERS_PER_TOKEN = 4
"""For sizing batches only."""


def lacks_torch() -> str | None:
    """Return how to install the missing packages for sentence-transformers models; ``None`` if none is missing."""
    missing = [name for name in TORCH_PACKAGES if importlib.util.find_spec(name) is None]
    if not missing:
        return None
    return (
        f"it needs the package {missing[0]}, which is not installed: {install_command('torch')}, "
        "or use the default embedding model on device 'cpu'"
    )


def load_with_torch(kind: ModelKind, folder: Path, *, name: str, device: str) -> Any:
    """Load a model from local files for inference.

    Args:
        name: the model's name in errors.
        device: ``cpu`` or ``cuda``.

    Raises:
        NornWeaveError: ``kind.error``, if torch or the device is missing, or the files are not such a model.
    """
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    if missing := lacks_torch():
        raise kind.error(f"{kind.noun} {name!r} cannot be loaded: {missing}")
    import sentence_transformers
    import torch
    from safetensors import SafetensorError

    if device == "cuda" and not torch.cuda.is_available():
        raise kind.error(
            f"device {device!r} is asked for, but torch {torch.__version__} finds no CUDA device; "
            "set embedding.device (EMBEDDING_DEVICE) to 'cpu', or install a CUDA build of torch and its driver"
        )
    load = getattr(sentence_transformers, kind.class_name)
    try:
        return load(str(folder), device=device, local_files_only=True, trust_remote_code=False).eval()
    except (*LOAD_ERRORS, SafetensorError) as error:
        reason = str(error).strip().splitlines()[:1] or [type(error).__name__]
        raise kind.error(
            f"{kind.noun} {name!r} does not load ({type(error).__name__}: {reason[0]}); "
            f"expected a complete {kind.class_name} model that needs no code of its own"
        ) from error


class SentenceTransformerEncoder:
    """A sentence-transformers model, with its own prompts for queries and passages."""

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
        rows = [np.empty((0, self.dimensions), dtype=np.float32)]
        for start in range(0, len(texts), WINDOW):
            window = texts[start : start + WINDOW]
            rows.append(self._run(self._model.encode_document, window))
            if progress is not None:
                progress(start + len(window))
        return np.concatenate(rows)

    def encode_query(self, text: str) -> Vectors:
        """Encode one query with the model's query prompt. Calls wait for each other, because torch uses all cores."""
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


class CrossEncoderReranker:
    """A cross-encoder on sentence-transformers."""

    def __init__(self, folder: ModelFolder, *, device: str = "cpu", batch_size: int = 32) -> None:
        """Load the model.

        Raises:
            RerankerError: the device is not there, or the files are not a model that loads without remote code.
        """
        self.name, self.version = folder.name, folder.version
        self._model = load_with_torch(CROSS_ENCODER, folder.path, name=folder.name, device=device)
        self._limit = int(self._model.max_seq_length or 512)
        self._batch_size = batch_size
        self._lock = Lock()

    def score(self, query: str, texts: Sequence[str], *, deadline: float | None = None) -> Scores:
        """Score texts as ``Reranker.score`` does. Batches wait for each other, because torch uses all cores."""
        pairs = [(encodable(query), encodable(text)) for text in texts]
        lengths = [min(self._limit, (len(query) + len(text)) // CHARACTERS_PER_TOKEN + 3) for text in texts]
        try:
            return scores_of(
                self.name, self._batch_size, lengths, lambda batch: self._logits([pairs[at] for at in batch]), deadline
            )
        except (RuntimeError, ValueError, IndexError) as error:
            raise RerankerError(f"cross-encoder {self.name!r} failed ({error}); try a smaller batch_size") from error

    def _logits(self, pairs: Sequence[tuple[str, str]]) -> Scores:
        with self._lock:
            return logits(self._model, pairs)


def logits(model: Any, pairs: Sequence[tuple[str, str]]) -> Scores:
    """Return the model's scores before any activation, because saved models have different activations."""
    import torch

    scores = model.predict(
        list(pairs),
        batch_size=max(1, len(pairs)),
        activation_fn=torch.nn.Identity(),
        convert_to_numpy=True,
        show_progress_bar=False,
    )
    return np.asarray(scores, dtype=np.float32).reshape(len(pairs))
