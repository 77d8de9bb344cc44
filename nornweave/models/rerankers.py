"""Cross-encoders: score a query and a text together. Serving processes load them in the background.

A sentence-transformers ``CrossEncoder`` by name or folder, which runs with torch. No weights come with the package:
without any, ``RerankerSlot`` says so, and the combined order stands.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Event, Lock, Thread
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nornweave.core.errors import RerankerError
from nornweave.models.encoders.tokenizer import batches_of
from nornweave.models.folders import CROSS_ENCODER, locate

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
    from nornweave.models.torch_models import CrossEncoderReranker

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
