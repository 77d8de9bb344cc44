"""Tell a webhook what was published: an outbox on disk, emptied outside of every lock.

An event is written to the outbox while its domain is still locked and posted when the lock is released. What the
receiver does not take stays for the next run. Nothing that a receiver does, or fails to do, fails or delays a sync for
longer than ``TOTAL_S``.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from nornweave.files.atomic_write import write_whole
from nornweave.store.port import Publication
from nornweave.types import Domain

logger = logging.getLogger(__name__)

TOTAL_S = 10.0
"""What one emptying of the outbox may take in all."""
MAX_WAITING = 1000
"""Events that wait for a receiver; of more the oldest are dropped, which is logged."""


def publication_event(domain: Domain, publication: Publication) -> dict[str, Any]:
    """Return the event: what was added, changed and removed (``source_id/path``), in which generation, by which run."""
    return {
        "event": "publication",
        "domain": domain.value,
        "generation": publication.generation,
        "run_id": publication.run_id,
        "created_at": publication.created_at.isoformat(),
        "added": list(publication.added),
        "changed": list(publication.changed),
        "removed": list(publication.removed),
    }


class Outbox:
    """The events that the webhook has not taken yet, one file each, oldest first by name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, event: dict[str, Any]) -> None:
        """Keep an event until it is delivered; what cannot be written is logged and lost, the publication stands."""
        name = f"{time.time_ns():020}-{uuid.uuid4().hex[:8]}.json"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_whole(self._folder / name, json.dumps(event))
            for oldest in self.waiting()[:-MAX_WAITING]:
                logger.warning("more than %d events wait for the webhook: %s is dropped", MAX_WAITING, oldest.name)
                oldest.unlink(missing_ok=True)
        except OSError as error:
            told = f"{event['domain']} {event['generation']}"
            logger.warning("the webhook will not hear of %s: %s: %s", told, self._folder, error.strerror)

    def waiting(self) -> list[Path]:
        """Return the files of the events that wait, oldest first."""
        return sorted(self._folder.glob("[0-9]*.json"))

    def deliver(self, url: str, *, total_s: float = TOTAL_S) -> bool:
        """Post what waits, oldest first, until one is not taken or the time is over.

        A failure is logged and nothing else. The log names the host alone, for the rest of an address may be a secret.
        An event may arrive twice when a process is killed between the answer and the removal.

        Args:
            url: of the webhook.
            total_s: seconds for all events together, however slowly the receiver answers.

        Returns:
            Whether nothing waits any more.
        """
        if not self.waiting():
            return True
        deadline = time.monotonic() + total_s
        try:
            with self._alone() as alone:
                return alone and all(self._post(url, file, deadline) for file in self.waiting())
        except Exception as error:  # a webhook never fails a sync
            logger.warning("webhook at %s: %s; its events wait for the next run", _host(url), type(error).__name__)
            return False

    def _post(self, url: str, file: Path, deadline: float) -> bool:
        event = file.read_bytes()
        status = asyncio.run(_within(url, event, deadline - time.monotonic()))
        if not 200 <= status < 300:
            logger.warning("webhook at %s answered %d; its events wait for the next run", _host(url), status)
            return False
        file.unlink(missing_ok=True)
        return True

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        """Yield whether no other process is delivering: that one delivers these events, too."""
        with (self._folder / "lock").open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True


async def _within(url: str, event: bytes, seconds: float) -> int:
    """Post an event and return the status; of the answer only the head is read."""
    async with asyncio.timeout(seconds), httpx.AsyncClient(timeout=TOTAL_S) as client:
        headers = {"Content-Type": "application/json"}
        async with client.stream("POST", url, content=event, headers=headers) as answer:
            return answer.status_code


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or "?"
    except ValueError:
        return "?"
