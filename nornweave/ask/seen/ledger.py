"""The conflict ledger as one viewer may see it."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from nornweave.ask.search.agent import Agent
from nornweave.ask.views.ledger import DismissedDocument, LedgerDocument, ledger_document
from nornweave.carry.ledger_file import dismiss, load_ledger, published
from nornweave.config import Settings
from nornweave.core.access import Viewer
from nornweave.core.errors import StoreError
from nornweave.core.types import Domain
from nornweave.disagree.ledger import Place, seen_ledger

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SeenLedger:
    """Conflicts whose sides the viewer may all see."""

    _settings: Settings
    _agents: Mapping[Domain, Agent]
    _viewer: Viewer

    def conflicts(self) -> LedgerDocument:
        """Return the ledger of the last publication.

        Raises:
            StoreError: the ledger is damaged.
        """
        ledger = load_ledger(self._settings)
        if ledger is not None and not self._viewer.sees_everything:
            ledger = seen_ledger(ledger, self._seen_places)
        return ledger_document(ledger, published(self._settings))

    def dismiss(self, conflict_id: str, *, undo: bool) -> DismissedDocument:
        """Dismiss a conflict, or take the dismissal back.

        Raises:
            QueryError: no conflict has this id, or it is not dismissed.
            StoreError: the decision cannot be stored.
        """
        return {"id": dismiss(self._settings, conflict_id, undo=undo), "dismissed": not undo}

    def _seen_places(self, domain: str, places: Collection[Place]) -> Collection[Place]:
        """Return the documents among ``places`` that the viewer may see; empty if the domain cannot be read."""
        agent = self._agents.get(Domain(domain))
        if agent is None:
            return ()
        try:
            if agent.generation.sees_all(self._viewer):
                return places
            with agent.generation.use(self._viewer) as generation:
                return generation.seen_places(places)
        except StoreError as error:
            log.warning("%s: %s", domain, error)
            return ()
