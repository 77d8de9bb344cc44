"""Tell a webhook what happened: an outbox on disk, emptied outside of every lock.

An event is written to the outbox while its domain is still locked and posted when the lock is released. What the
receiver does not take stays, and is tried again later and later. Nothing that a receiver does, or fails to do, fails or
delays a sync for longer than ``TOTAL_S``. With a secret each post is signed as Standard Webhooks has it
(https://www.standardwebhooks.com), so that usual libraries can check it.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import fcntl
import hashlib
import hmac
import json
import logging
import time
import uuid
from collections.abc import Callable, Iterator
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
FIRST_PAUSE_S, LONGEST_PAUSE_S = 30.0, 1800.0
"""After a failure nobody tries for so long; twice as long after each one that follows."""
PAUSE = "pause"
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

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._clock = clock

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
            told = f"{event['event']} of {event['domain'] or 'all domains'}"
            logger.warning("the webhook will not hear of %s: %s: %s", told, self._folder, error.strerror)

    def waiting(self) -> list[Path]:
        """Return the files of the events that wait, oldest first."""
        return sorted(self._folder.glob("[0-9]*.json"))

    def deliver(
        self, url: str, secret: str | None = None, *, heed_pause: bool = False, total_s: float = TOTAL_S
    ) -> bool:
        """Post what waits, oldest first, until one is not taken or the time is over.

        A failure is logged and nothing else. The log names the host alone, for the rest of an address may be a secret.
        An event may arrive twice when a process is killed between the answer and the removal.

        Args:
            url: of the webhook.
            secret: signs the events; ``whsec_`` and base64, or any text.
            heed_pause: try nothing while the receiver is left alone after it failed.
            total_s: seconds for all events together, however slowly the receiver answers.

        Returns:
            Whether nothing waits any more.
        """
        if not self.waiting():
            return True
        deadline = time.monotonic() + total_s
        try:
            with self._alone() as alone:
                if not alone or (heed_pause and self._is_paused()):
                    return False
                taken = all(self._post(url, secret, file, deadline) for file in self.waiting())
                self._pause(failed=not taken)
                return taken
        except Exception as error:  # a webhook never fails a sync
            logger.warning("webhook at %s: %s; its events wait", _host(url), type(error).__name__)
            self._pause(failed=True)
            return False

    def _post(self, url: str, secret: str | None, file: Path, deadline: float) -> bool:
        event = file.read_bytes()
        headers = {"Content-Type": "application/json", **signature_headers(file.stem, event, secret)}
        status = asyncio.run(_within(url, event, headers, deadline - time.monotonic()))
        if not 200 <= status < 300:
            logger.warning("webhook at %s answered %d; its events wait", _host(url), status)
            return False
        file.unlink(missing_ok=True)
        return True

    def _failures(self) -> tuple[int, float]:
        """Return how often in a row the receiver failed, and when it did last."""
        try:
            failures, at = json.loads((self._folder / PAUSE).read_text(encoding="utf-8"))
            return int(failures), float(at)
        except (OSError, ValueError, TypeError):
            return 0, 0.0

    def _is_paused(self) -> bool:
        """Tell whether the receiver failed so recently that it is left alone."""
        failures, at = self._failures()
        pause_s = min(FIRST_PAUSE_S * 2 ** (min(failures, 16) - 1), LONGEST_PAUSE_S)
        return failures > 0 and 0 <= self._clock() - at < pause_s

    def _pause(self, *, failed: bool) -> None:
        """Begin a pause, or end all pauses."""
        with contextlib.suppress(OSError):  # then it is tried again at once
            if failed:
                write_whole(self._folder / PAUSE, json.dumps([self._failures()[0] + 1, self._clock()]))
            else:
                (self._folder / PAUSE).unlink(missing_ok=True)

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


def signature_headers(name: str, event: bytes, secret: str | None) -> dict[str, str]:
    """Return the headers of Standard Webhooks: the event's id, the time, and the signature of both with the body.

    Args:
        name: of the event; the same at every attempt, so that a receiver knows what it has already.
        event: the body.
        secret: ``None`` leaves the signature out.

    Source: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
    """
    now = str(int(time.time()))
    headers = {"webhook-id": name, "webhook-timestamp": now}
    if secret:
        signed = hmac.new(_key(secret), b".".join((name.encode(), now.encode(), event)), hashlib.sha256).digest()
        headers["webhook-signature"] = f"v1,{base64.b64encode(signed).decode()}"
    return headers


def _key(secret: str) -> bytes:
    encoded = secret.removeprefix("whsec_")
    try:
        return base64.b64decode(encoded, validate=True) if encoded != secret else secret.encode()
    except ValueError:
        return secret.encode()


async def _within(url: str, event: bytes, headers: dict[str, str], seconds: float) -> int:
    """Post an event and return the status; of the answer only the head is read."""
    async with (
        asyncio.timeout(seconds),
        httpx.AsyncClient(timeout=TOTAL_S) as client,
        client.stream("POST", url, content=event, headers=headers) as answer,
    ):
        return answer.status_code


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or "?"
    except ValueError:
        return "?"
