"""Tell the receivers, if there are any, what was published, what goes wrong and what is over."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from nornweave.config import Settings
from nornweave.core.types import Domain, present
from nornweave.index.port import Publication
from nornweave.ingest.alarms import Alarm, AlarmBook, AlarmKind
from nornweave.ingest.outbox import KafkaTopic, Outbox, Webhook, publication_event

log = logging.getLogger(__name__)

SECRET = "NORNWEAVE_WEBHOOK_SECRET"  # noqa: S105 - the name of the variable that holds it
BROKERS = "KAFKA_BOOTSTRAP"
ANSWERS = "answers"


class Announcements:
    """What a workspace tells its receivers; without one alarms are remembered all the same, for when there is one.

    Args:
        environment: ``os.environ`` unless given; holds the webhook's secret, and names the brokers of Kafka.
    """

    def __init__(self, settings: Settings, environment: Mapping[str, str] | None = None) -> None:
        environment = os.environ if environment is None else environment
        self._settings = settings
        self._outboxes = []
        if settings.webhook:
            webhook = Webhook(settings.webhook, environment.get(SECRET))
            self._outboxes.append(Outbox(settings.data_dir / "outbox", webhook))
        if brokers := environment.get(BROKERS, "").strip():
            self._outboxes.append(Outbox(settings.data_dir / "outbox-kafka", KafkaTopic(brokers)))

    def published(self, domain: Domain, publication: Publication) -> None:
        """Tell what a publication changed."""
        self._put(publication_event(domain, publication))

    def alarms(
        self, domain: Domain | None, alarms: Sequence[Alarm], looked_at: Collection[AlarmKind], *, run_id: str
    ) -> None:
        """Tell what begins to be wrong and what is over; a book that cannot be written is logged, and fails nothing.

        Args:
            domain: that it is about; ``None`` for the answers over all domains.
        """
        book = AlarmBook(self._settings.data_dir / "alarms" / f"{domain.value if domain else ANSWERS}.json", domain)
        try:
            book.update(alarms, looked_at, send=self._put, run_id=run_id, at=present())
        except OSError as error:
            log.warning("alarms of %s are not remembered: %s", domain or ANSWERS, error)

    def deliver(self, *, heed_pause: bool = False) -> None:
        """Send what waits, for a few seconds a receiver at most.

        Args:
            heed_pause: leave a receiver alone that failed a short while ago.
        """
        for outbox in self._outboxes:
            outbox.deliver(heed_pause=heed_pause)

    def _put(self, event: dict[str, Any]) -> None:
        for outbox in self._outboxes:
            outbox.put(event)
