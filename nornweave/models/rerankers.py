"""Models on torch, whose own code is not run; cross-encoders, which score a query and a text together.

A sentence-transformers ``CrossEncoder`` by name or folder, which runs with torch. No weights come with the package:
without any, ``RerankerSlot`` says so, and the combined order stands.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nornweave.core.errors import EncoderError, RerankerError
from nornweave.core.installation import install_command
from nornweave.models.encoders.port import Progress, Vectors, encodable, unit_rows
from nornweave.models.encoders.tokenizer import WORD_PIECES, ModelTokenizer, batches_of
from nornweave.models.folders import CROSS_ENCODER, ENCODER, ModelFolder, ModelKind, locate

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


log = logging.getLogger(__name__)

Scores: TypeAlias = NDArray[np.float32]


class Reranker(Protocol):
    """Scores how well a text answers a query."""

    @property
    def name(self) -> str:
        """The name to show to people, never a path."""

    @property
    def version(self) -> str:
        """The version. It changes when a score may change by more than rounding."""

    def score(self, query: str, texts: Sequence[str], *, deadline: float | None = None) -> Scores:
        """Score every text, longest first. Thread-safe.

        Args:
            texts: possible answers, cut to the model's maximum length.
            deadline: a ``time.monotonic()``. It is checked before each batch, so at most one batch ends after it.

        Returns:
            One score in [0, 1] per text, in the order of the texts: the sigmoid of the model's logit.

        Raises:
            RerankerError: the deadline passed, or the model fails.
        """


def scores_of(
    name: str, size: int, lengths: Sequence[int], logits_of: Callable[[Sequence[int]], Scores], deadline: float | None
) -> Scores:
    """Run a model over batches of similar length, longest first.

    Args:
        name: the model's name, for errors.
        size: the largest number of texts in a batch.
        lengths: the number of tokens of each pair of query and text.
        logits_of: takes the positions of a batch and returns their logits.
        deadline: the ``time.monotonic()`` after which no further batch starts; ``None`` for no limit.

    Returns:
        The sigmoid of each logit, in the order of ``lengths``.

    Raises:
        RerankerError: the deadline passed, or a logit is not finite.
    """
    logits = np.empty(len(lengths), dtype=np.float32)
    done = 0
    for batch in batches_of(lengths, size):
        if deadline is not None and time.monotonic() >= deadline:
            raise RerankerError(f"cross-encoder {name!r}: out of time after {done} of {len(lengths)} texts")
        logits[batch] = logits_of(batch)
        done += len(batch)
    if not np.isfinite(logits).all():
        broken = int(np.flatnonzero(~np.isfinite(logits))[0])
        raise RerankerError(
            f"cross-encoder {name!r} gave text {broken} of {len(lengths)} the score "
            f"{float(logits[broken])!r}, expected a finite number: check the model"
        )
    # The sigmoid; tanh does not overflow where exp does.
    squashed: Scores = np.float32(0.5) + np.float32(0.5) * np.tanh(np.float32(0.5) * logits)
    return squashed


Status = Literal["off", "loading", "ready", "unavailable"]


def load_reranker(model: str, *, device: Literal["cpu", "cuda"] = "cpu", batch_size: int = 32) -> Reranker:
    """Load a cross-encoder with torch and try it on one pair.

    Args:
        model: a sentence-transformers ``CrossEncoder`` by folder, or by name on the Hugging Face hub. The hub is asked
            only for files that are not on this machine, and counts as out of reach after five seconds.

    Raises:
        RerankerError: the model cannot be found or loaded, or does not give exactly one score to a pair.
    """
    folder = locate(model, CROSS_ENCODER)

    reranker = CrossEncoderReranker(folder, device=device, batch_size=batch_size)
    reranker.score("probe", ["probe"])
    return reranker


@dataclass(frozen=True, slots=True)
class SlotState:
    """The state of a cross-encoder.

    Attributes:
        status: ``off`` if no cross-encoder is configured or loading has not started.
        reason: why the cross-encoder is unavailable; empty otherwise.
    """

    status: Status
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.status}: {self.reason}" if self.reason else self.status


OFF, LOADING, READY = SlotState("off"), SlotState("loading"), SlotState("ready")


class RerankerSlot:
    """Holds a cross-encoder that several domains may share. Every method is thread-safe.

    The first ``start`` loads it once and logs the outcome. Until it is ready, or if loading fails, ``reranker`` is
    ``None`` and results are not reranked.
    """

    def __init__(self, model: str | None, *, device: Literal["cpu", "cuda"] = "cpu") -> None:
        """Store the arguments of ``load_reranker`` and load nothing yet. ``None`` as model means no cross-encoder."""
        self._model = model
        self._load_model = partial(load_reranker, device=device)
        self._lock = Lock()
        self._ended: Event | None = None
        self._state = OFF
        self._reranker: Reranker | None = None

    @property
    def state(self) -> SlotState:
        """Return whether the cross-encoder is off, loading, ready or unavailable, and why it is unavailable."""
        return self._state

    @property
    def reranker(self) -> Reranker | None:
        """Return the cross-encoder if it is ready, else ``None``. Never waits."""
        return self._reranker

    def start(self) -> None:
        """Start loading in the background if there is a model. Later calls do nothing."""
        with self._lock:
            if self._model is None or self._ended is not None:
                return
            self._state = LOADING
            self._ended = Event()
            Thread(target=self._load, args=(self._model, self._ended), name="load-reranker", daemon=True).start()

    def wait(self, timeout: float | None = None) -> Reranker | None:
        """Start loading and wait up to ``timeout`` seconds for its end; ``None`` is no limit.

        Return the cross-encoder if it is ready, else ``None``.
        """
        self.start()
        if self._ended is not None:
            self._ended.wait(timeout)
        return self._reranker

    def close(self) -> None:
        """Wait for the end of loading, if it was started."""
        with self._lock:
            ended = self._ended
        if ended is not None:
            ended.wait()

    def _load(self, model: str, ended: Event) -> None:
        started = time.monotonic()
        outcome = SlotState("unavailable", f"loading {model!r} ended unexpectedly; the log says why")
        try:
            self._reranker = self._load_model(model)
            outcome = READY
            log.info("cross-encoder %s is ready after %.1f s", self._reranker.version, time.monotonic() - started)
        except RerankerError as error:
            outcome = SlotState("unavailable", str(error))
            log.warning("reranking goes without a cross-encoder: %s", error)
        finally:
            self._state = outcome
            ended.set()
