"""A reranker that runs a converted cross-encoder on OpenVINO, without torch in the process.

OpenVINO chooses bfloat16 where the CPU has it and float32 elsewhere, as for encoders.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nornweave.core.errors import RerankerError
from nornweave.models.conversion import MODEL, TOKENIZER, ConversionManifest
from nornweave.models.encoders.port import encodable
from nornweave.models.encoders.tokenizer import rust_tokenizer
from nornweave.models.folders import ModelFolder
from nornweave.models.rerankers.port import Batches, Scores
from nornweave.models.runtimes import import_openvino

Ids: TypeAlias = NDArray[np.int64]

WIDTH_STEP = 8
"""Widths are rounded up to it: fewer shapes to compile for."""
CHARACTERS_PER_TOKEN = 64
"""A text is cut to so many characters per token it may have before it is tokenised: nobody reads a blob to its end."""


class OpenVinoReranker:
    """A cross-encoder as OpenVINO runs it."""

    def __init__(self, folder: Path, manifest: ConversionManifest, *, model: ModelFolder, batch_size: int = 32) -> None:
        """Load and compile a converted model.

        Raises:
            RerankerError: the folder's files cannot be read.
        """
        self.name, self.version = model.name, model.version
        self._manifest = manifest
        self._run_batches = Batches(model.name, batch_size)
        try:
            serialized = (folder / TOKENIZER).read_text(encoding="utf-8")
            self._tokenizer = rust_tokenizer(serialized, max_length=manifest.max_length)
            core = import_openvino().Core()
            graph = core.read_model(folder / MODEL)
            self._compiled = core.compile_model(graph, "CPU", {"PERFORMANCE_HINT": "LATENCY"})
        except (OSError, ValueError, RuntimeError) as error:
            raise RerankerError(
                f"the converted cross-encoder in {str(folder)!r} is broken ({error}); remove that folder"
            ) from error
        self._typed = len(self._compiled.inputs) == 3
        self._idle: SimpleQueue[Any] = SimpleQueue()

    def score(self, query: str, texts: Sequence[str], *, deadline: float | None = None) -> Scores:
        """Score texts; see ``Reranker.score``."""
        pairs = [(self._head(query), self._head(text)) for text in texts]
        encodings = self._tokenizer.encode_batch(pairs)
        try:
            return self._run_batches.score(
                [_width(len(encoding)) for encoding in encodings],
                lambda batch: self._infer([encodings[at] for at in batch]),
                deadline,
            )
        except RuntimeError as error:
            raise RerankerError(f"cross-encoder {self.name!r}: OpenVINO failed ({error}); check the memory") from error

    def _head(self, text: str) -> str:
        return encodable(text[: self._manifest.max_length * CHARACTERS_PER_TOKEN])

    def _infer(self, encodings: Sequence[Any]) -> Scores:
        """Run one batch; callers in several threads each get a request of their own."""
        try:
            request = self._idle.get_nowait()
        except Empty:
            request = self._compiled.create_infer_request()
        try:
            request.infer(_padded(encodings, self._manifest.pad_id)[: 3 if self._typed else 2])
            return np.array(request.get_output_tensor(0).data, dtype=np.float32).reshape(len(encodings))
        finally:
            self._idle.put(request)


def _width(tokens: int) -> int:
    return -(-tokens // WIDTH_STEP) * WIDTH_STEP


def _padded(encodings: Sequence[Any], pad_id: int) -> list[Ids]:
    """Return token ids, mask and the side (query 0, text 1) of each token."""
    width = _width(max(len(encoding) for encoding in encodings))
    ids = np.full((len(encodings), width), pad_id, dtype=np.int64)
    mask, sides = np.zeros_like(ids), np.zeros_like(ids)
    for row, encoding in enumerate(encodings):
        length = len(encoding)
        ids[row, :length] = encoding.ids
        mask[row, :length] = 1
        sides[row, :length] = encoding.type_ids
    return [ids, mask, sides]
