"""What was measured, for operators: it is over everything, whoever may see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nornweave.ask.views.evaluations import (
    ComparisonDocument,
    EvaluationsDocument,
    comparison_document,
    evaluations_document,
)
from nornweave.ask.views.query_map import QueryMapDocument, query_map_document
from nornweave.config import Settings
from nornweave.core.access import Viewer
from nornweave.core.types import Domain
from nornweave.improve.history import history_of


@dataclass(frozen=True, slots=True)
class SeenQuality:
    """The history of evaluations; everything raises ``NotPermittedError`` for who does not operate the service."""

    _settings: Settings
    _viewer: Viewer

    def evaluations(self, **asked: Any) -> EvaluationsDocument:
        """Return what was measured, newest first; ``asked`` as ``EvaluationHistory.evaluations`` takes it.

        Raises:
            StoreError: the history cannot be read.
        """
        self._viewer.check_operates()
        return evaluations_document(history_of(self._settings).evaluations(**asked))

    def query_map(self) -> QueryMapDocument | None:
        """Return whether the query map of the code domain is in force, and why; ``None`` where no code is served.

        Raises:
            StoreError: what is published cannot be read.
        """
        self._viewer.check_operates()
        return query_map_document(self._settings, Domain.CODE) if Domain.CODE in self._settings.served_domains else None

    def values(self, evaluation_id: str, stage: str, measure: str) -> dict[str, float]:
        """Return one measure of each query of an evaluation; empty when they are not kept any more.

        Raises:
            StoreError: the history cannot be read.
        """
        self._viewer.check_operates()
        values = history_of(self._settings).values(evaluation_id).get((stage, measure), {})
        return {query: value for (query, _), value in values.items()}

    def compare(self, domain: Domain, before: str, after: str, set_name: str | None = None) -> ComparisonDocument:
        """Compare two generations of a domain on the judged sets that both were measured with.

        Raises:
            StoreError: the history cannot be read.
        """
        self._viewer.check_operates()
        return comparison_document(history_of(self._settings), domain, before, after, set_name)
