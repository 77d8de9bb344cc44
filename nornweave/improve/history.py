"""The port of the history of evaluations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from nornweave.improve.records import Evaluation, QueryValue, Values

DEFAULT_LIMIT = 100
# Values of single queries, of which an evaluation of 800 queries has a hundred thousand, are for comparing with what
# came before; beyond so many evaluations of a set the means are kept alone.
KEEP_VALUES = 30


class EvaluationHistory(Protocol):
    """The history of evaluations; safe to use from several threads and processes.

    Raises:
        StoreError: from every method, when it cannot be read or written.
    """

    def record(self, evaluations: Sequence[tuple[Evaluation, Sequence[QueryValue]]]) -> None:
        """Add evaluations with their queries' values, all of them or none."""

    def evaluations(
        self,
        *,
        domain: str | None = None,
        set_name: str | None = None,
        scope: str | None = None,
        generation: str | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> tuple[Evaluation, ...]:
        """Return evaluations, newest first."""

    def values(self, evaluation_id: str) -> Mapping[tuple[str, str], Values]:
        """Return (stage, measure) → (query, digest) → value; empty when they are not kept any more."""
