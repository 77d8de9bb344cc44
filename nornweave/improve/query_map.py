"""Learn a linear map of query vectors from questions and their answers. No input or output."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nornweave.index.port import Numbers, Vectors

STEPS, RATE = 200, 1e-3
TEMPERATURE = 0.05
PULL = 0.02
"""What a squared difference from identity costs: of a few hundred examples each direction is seen a few times."""
STAY = 3.0
"""What it costs to move the passages themselves, were they asked for: questions that sound like code stay as they are.

Without it commits gain as much, and questions made out of docstrings lose (docs/decisions/0041-query-map.md).
"""
HARD, RANDOM = 16, 64
"""Passages that each question is told apart from: those nearest to it, and as many drawn for all questions together."""
LOOK_AGAIN = 10
"""Steps after which the nearest passages are looked for anew."""
SEED = 20240229
_SMALLEST = 1e-8


def fit(queries: Vectors, passages: Vectors, answers: Sequence[Numbers]) -> NDArray[np.float64]:
    """Return the change ``W − I`` of query vectors that moves questions closer to their answers than to other passages.

    Minimises ``−log softmax(cos(W·q, answer) / TEMPERATURE) + PULL·‖W − I‖² + STAY·mean ‖W·p − p‖²`` over questions
    ``q`` and passages ``p`` (InfoNCE, van den Oord, Li & Vinyals 2018, arXiv:1807.03748) with Adam from identity. If a
    question has several answers, the nearest one counts. The same input gives the same result on the same machine.

    Args:
        queries: normalised, of shape ``(questions, dimensions)``.
        passages: normalised, of shape ``(passages, dimensions)``.
        answers: for each question, the rows of ``passages`` that answer it, at least one.
    """
    questions = np.asarray(queries, np.float64)
    generator, identity = np.random.default_rng(SEED), np.eye(questions.shape[1])
    full = np.asarray(passages, np.float64)
    pull = PULL * identity + STAY * full.T @ full / len(full)
    is_answer = np.zeros((len(questions), len(passages)), np.bool_)
    for row, numbers in enumerate(answers):
        is_answer[row, numbers] = True
    matrix, mean, spread = identity.copy(), np.zeros_like(identity), np.zeros_like(identity)
    near = np.zeros((len(questions), 0), np.int64)
    for step in range(1, STEPS + 1):
        mapped = questions @ matrix.T
        lengths = np.linalg.norm(mapped, axis=1, keepdims=True) + _SMALLEST
        mapped /= lengths
        if step % LOOK_AGAIN == 1:
            near = _nearest(mapped.astype(np.float32), passages, is_answer)
        drawn = generator.choice(len(passages), min(RANDOM, len(passages)), replace=False)
        near_vectors, others = full[near], full[drawn]
        logits = (
            np.concatenate([np.einsum("qd,qpd->qp", mapped, near_vectors), mapped @ others.T], axis=1) / TEMPERATURE
        )
        answered = np.concatenate([np.take_along_axis(is_answer, near, axis=1), is_answer[:, drawn]], axis=1)
        answered[:, 0] = False  # keep the nearest answer, column 0
        logits[answered] = -np.inf
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        shares[:, 0] -= 1
        slopes = np.einsum("qp,qpd->qd", shares[:, : near.shape[1]], near_vectors) + shares[:, near.shape[1] :] @ others
        slopes /= TEMPERATURE
        slopes = (slopes - mapped * (slopes * mapped).sum(axis=1, keepdims=True)) / lengths
        slope = slopes.T @ questions / len(questions) + 2 * (matrix - identity) @ pull
        mean, spread = 0.9 * mean + 0.1 * slope, 0.999 * spread + 0.001 * slope**2
        matrix -= RATE * (mean / (1 - 0.9**step)) / (np.sqrt(spread / (1 - 0.999**step)) + _SMALLEST)
    return matrix - identity


def _nearest(mapped: Vectors, passages: Vectors, is_answer: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return, for each question, the rows of its nearest answer and then of the nearest wrong passages."""
    similar = mapped @ np.asarray(passages, np.float32).T
    own = np.where(is_answer, similar, -2).argmax(axis=1)
    others = np.where(is_answer, -2, similar)
    hard = np.argsort(-others, axis=1, kind="stable")[:, :HARD]
    return np.concatenate([own[:, None], hard], axis=1)
