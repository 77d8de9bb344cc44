"""Tell the webhook, if there is one, what was published, what goes wrong and what is over."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Sequence

from nornweave.settings import Settings
from nornweave.store.port import Publication
from nornweave.sync.alarms import Alarm, AlarmBook, AlarmKind
from nornweave.sync.webhook import Outbox, publication_event
from nornweave.types import Domain, present

log = logging.getLogger(__name__)

SECRET = "NORNWEAVE_WEBHOOK_SECRET"  # noqa: S105 - the name of the variable that holds it
ANSWERS = "answers"


class Announcements:
    """What a workspace tells its webhook; without one alarms are remembered all the same, for when there is one."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._outbox = Outbox(settings.data_dir / "outbox")

    def published(self, domain: Domain, publication: Publication) -> None:
        """Tell what a publication changed."""
        if self._settings.webhook:
            self._outbox.put(publication_event(domain, publication))

    def alarms(
        self, domain: Domain | None, alarms: Sequence[Alarm], looked_at: Collection[AlarmKind], *, run_id: str
    ) -> None:
        """Tell what begins to be wrong and what is over; a book that cannot be written is logged, and fails nothing.

        Args:
            domain: that it is about; ``None`` for the answers over all domains.
            alarms: what is wrong.
            looked_at: the kinds that were looked at.
            run_id: of the run that looked.
        """
        book = AlarmBook(self._settings.data_dir / "alarms" / f"{domain.value if domain else ANSWERS}.json", domain)
        send = self._outbox.put if self._settings.webhook else lambda _: None
        try:
            book.update(alarms, looked_at, send=send, run_id=run_id, at=present())
        except OSError as error:
            log.warning("alarms of %s are not remembered: %s", domain or ANSWERS, error)

    def deliver(self, *, heed_pause: bool = False) -> None:
        """Post what waits, for a few seconds at most.

        Args:
            heed_pause: leave a receiver alone that failed a short while ago.
        """
        if self._settings.webhook:
            self._outbox.deliver(self._settings.webhook, os.environ.get(SECRET), heed_pause=heed_pause)

    @property
    def waiting(self) -> int:
        """How many events wait."""
        return len(self._outbox.waiting())
