"""Evaluations, for operators, because they cover all documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nornweave.ask.views.evaluations import (
    ComparisonDocument,
    EvaluationsDocument,
    comparison_document,
    evaluations_document,
)
from nornweave.ask.views.status import QueryMapDocument, query_map_document
from nornweave.config import Settings
from nornweave.core.access import Viewer
from nornweave.core.types import Domain
from nornweave.improve.history import history_of


@dataclass(frozen=True, slots=True)
class SeenQuality:
    """The history of evaluations. All methods raise ``NotPermittedError`` if the viewer is not an operator."""

    _settings: Settings
    _viewer: Viewer

    def evaluations(self, **asked: Any) -> EvaluationsDocument:
        """Return evaluations, newest first. ``asked`` are arguments of ``EvaluationHistory.evaluations``.

        Raises:
            StoreError: the history cannot be read.
        """
        self._viewer.check_operates()
        return evaluations_document(history_of(self._settings).evaluations(**asked))

    def query_map(self) -> QueryMapDocument | None:
        """Return whether the code domain's query map is in force, and why; ``None`` if no code is served.

        Raises:
            StoreError: the published generation cannot be read.
        """
        self._viewer.check_operates()
        return query_map_document(self._settings, Domain.CODE) if Domain.CODE in self._settings.served_domains else None

    def values(self, evaluation_id: str, stage: str, measure: str) -> dict[str, float]:
        """Return one measure for each query of an evaluation; empty if the values are not kept any more.

        Raises:
            StoreError: the history cannot be read.
        """
        self._viewer.check_operates()
        values = history_of(self._settings).values(evaluation_id).get((stage, measure), {})
        return {query: value for (query, _), value in values.items()}

    def compare(self, domain: Domain, before: str, after: str, set_name: str | None = None) -> ComparisonDocument:
        """Compare two generations of a domain on the judged sets that measured both, or only on ``set_name``.

        Raises:
            StoreError: the history cannot be read.
        """
        self._viewer.check_operates()
        return comparison_document(history_of(self._settings), domain, before, after, set_name)
