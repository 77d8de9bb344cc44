"""A reranker for any single-score ``CrossEncoder``, run by torch."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np

from nornweave.core.errors import RerankerError
from nornweave.models.encoders.port import encodable
from nornweave.models.folders import ModelFolder
from nornweave.models.rerankers.port import Batches, Scores
from nornweave.models.torch_models import CROSS_ENCODER, load_with_torch

CHARACTERS_PER_TOKEN = 4
"""For sizing batches only."""


class CrossEncoderReranker:
    """A cross-encoder as sentence-transformers runs it."""

    def __init__(self, folder: ModelFolder, *, device: str = "cpu", batch_size: int = 32) -> None:
        """Load the model.

        Raises:
            RerankerError: the device is not there, or the files are not a model that loads without remote code.
        """
        self.name, self.version = folder.name, folder.version
        self._model = load_with_torch(CROSS_ENCODER, folder.path, name=folder.name, device=device)
        self._limit = int(self._model.max_seq_length or 512)
        self._run_batches = Batches(folder.name, batch_size)
        self._lock = Lock()

    def score(self, query: str, texts: Sequence[str], *, deadline: float | None = None) -> Scores:
        """Score texts; see ``Reranker.score``. One batch at a time, since torch uses every core for it."""
        pairs = [(encodable(query), encodable(text)) for text in texts]
        lengths = [min(self._limit, (len(query) + len(text)) // CHARACTERS_PER_TOKEN + 3) for text in texts]
        try:
            return self._run_batches.score(lengths, lambda batch: self._logits([pairs[at] for at in batch]), deadline)
        except (RuntimeError, ValueError, IndexError) as error:
            raise RerankerError(f"cross-encoder {self.name!r} failed ({error}); try a smaller batch_size") from error

    def _logits(self, pairs: Sequence[tuple[str, str]]) -> Scores:
        with self._lock:
            return logits(self._model, pairs)


def logits(model: Any, pairs: Sequence[tuple[str, str]]) -> Scores:
    """Return what the model says before any activation: models save different ones."""
    import torch

    scores = model.predict(
        list(pairs),
        batch_size=max(1, len(pairs)),
        activation_fn=torch.nn.Identity(),
        convert_to_numpy=True,
        show_progress_bar=False,
    )
    return np.asarray(scores, dtype=np.float32).reshape(len(pairs))
