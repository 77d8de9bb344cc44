"""The port that every cross-encoder implements, and what the implementations share."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nornweave.core.errors import RerankerError
from nornweave.models.batches import batches_of

Scores: TypeAlias = NDArray[np.float32]


class Reranker(Protocol):
    """Reads a query and a text together and says how well the text answers."""

    @property
    def name(self) -> str:
        """What people call it; never a path."""

    @property
    def version(self) -> str:
        """Changes when a score may change beyond rounding."""

    def score(self, query: str, texts: Sequence[str], *, deadline: float | None = None) -> Scores:
        """Score every text, longest first; may be called from several threads at once.

        Args:
            texts: what may answer; cut to what the model sees.
            deadline: on ``time.monotonic()``'s clock; looked at before each batch, so one batch at most overruns it.

        Returns:
            One score in [0, 1] per text, in the order of the texts: the sigmoid of the model's logit.

        Raises:
            RerankerError: the deadline passed, or the model fails.
        """


@dataclass(frozen=True, slots=True)
class Batches:
    """Batches of like length for a model.

    Attributes:
        name: of the model, for errors.
        size: texts at once, at most.
    """

    name: str
    size: int

    def score(
        self, lengths: Sequence[int], logits_of: Callable[[Sequence[int]], Scores], deadline: float | None
    ) -> Scores:
        """Run ``logits_of`` over positions in batches of like length, longest first.

        Args:
            lengths: of each pair, in tokens.
            logits_of: from positions to their logits.
            deadline: see ``Reranker.score``.

        Returns:
            The sigmoid of each logit, in the order of ``lengths``.

        Raises:
            RerankerError: the deadline passed, or a logit is not finite.
        """
        logits = np.empty(len(lengths), dtype=np.float32)
        done = 0
        for batch in batches_of(lengths, self.size):
            if deadline is not None and time.monotonic() >= deadline:
                raise RerankerError(f"cross-encoder {self.name!r}: out of time after {done} of {len(lengths)} texts")
            logits[batch] = logits_of(batch)
            done += len(batch)
        if not np.isfinite(logits).all():
            broken = int(np.flatnonzero(~np.isfinite(logits))[0])
            raise RerankerError(
                f"cross-encoder {self.name!r} gave text {broken} of {len(lengths)} the score "
                f"{float(logits[broken])!r}, expected a finite number: check the model"
            )
        # The sigmoid; tanh does not overflow where exp does.
        squashed: Scores = np.float32(0.5) + np.float32(0.5) * np.tanh(np.float32(0.5) * logits)
        return squashed
