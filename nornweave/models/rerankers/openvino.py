"""A reranker that runs a converted cross-encoder on OpenVINO, without torch in the process.

OpenVINO chooses bfloat16 where the CPU has it and float32 elsewhere, as for encoders.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nornweave.core.errors import RerankerError
from nornweave.models.batches import CHARACTERS_PER_TOKEN, Requests, padded, padded_width
from nornweave.models.conversion import MODEL, TOKENIZER, ConversionManifest
from nornweave.models.encoders.port import encodable
from nornweave.models.encoders.tokenizer import rust_tokenizer
from nornweave.models.folders import ModelFolder
from nornweave.models.rerankers.port import Batches, Scores
from nornweave.models.runtimes import import_openvino


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
            self._requests = Requests(core.compile_model(graph, "CPU", {"PERFORMANCE_HINT": "LATENCY"}))
        except (OSError, ValueError, RuntimeError) as error:
            raise RerankerError(
                f"the converted cross-encoder in {str(folder)!r} is broken ({error}); remove that folder"
            ) from error
        self._is_typed = len(self._requests.compiled.inputs) == 3  # takes the side of each token: query 0, text 1

    def score(self, query: str, texts: Sequence[str], *, deadline: float | None = None) -> Scores:
        """Score texts; see ``Reranker.score``."""
        pairs = [(self._head(query), self._head(text)) for text in texts]
        encodings = self._tokenizer.encode_batch(pairs)
        try:
            return self._run_batches.score(
                [padded_width(len(encoding)) for encoding in encodings],
                lambda batch: self._infer([encodings[at] for at in batch]),
                deadline,
            )
        except RuntimeError as error:
            raise RerankerError(f"cross-encoder {self.name!r}: OpenVINO failed ({error}); check the memory") from error

    def _head(self, text: str) -> str:
        return encodable(text[: self._manifest.max_length * CHARACTERS_PER_TOKEN])

    def _infer(self, encodings: Sequence[Any]) -> Scores:
        sides = [padded([encoding.type_ids for encoding in encodings], 0)] if self._is_typed else []
        ids = padded([encoding.ids for encoding in encodings], self._manifest.pad_id)
        mask = padded([encoding.attention_mask for encoding in encodings], 0)
        return self._requests.infer([ids, mask, *sides])[0].reshape(len(encodings))
