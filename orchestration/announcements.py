"""Send events to the receivers: what was published, which alarms began and which are over.

Receivers are a webhook and a topic of Kafka (needs confluent-kafka). An event is written to the outbox of its receiver
while its domain is still locked and sent when the lock is released. What the receiver does not take stays, and is tried
again later and later. Nothing that a receiver does, or fails to do, fails or delays a sync for longer than ``TOTAL_S``.
Webhooks are signed as Standard Webhooks has it.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
import logging
import os
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import httpx

from nornweave.config import Settings
from nornweave.core.files.lock import hold_lock
from nornweave.core.files.writing import write_whole
from nornweave.core.installation import missing_package
from nornweave.core.network import unusable_proxy
from nornweave.core.types import Domain, present
from nornweave.improve.records import ALL_DOMAINS
from nornweave.index.port import Publication
from nornweave.ingest.alarms import Alarm, AlarmBook, AlarmKind

logger = logging.getLogger(__name__)

TOTAL_S = 10.0
"""What one emptying of the outbox may take in all."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 30.0, 1800.0
"""After a failure nobody tries for so long; twice as long after each one that follows."""
PAUSE = "pause"
MAX_WAITING = 1000
"""Events that wait for a receiver; of more the oldest are dropped, which is logged."""


class Receiver(Protocol):
    """A target of events."""

    @property
    def name(self) -> str:
        """The name for the log, without secrets."""

    def send(self, event_id: str, event: bytes, seconds: float) -> str | None:
        """Send an event. Return what went wrong, or ``None`` once the receiver has it.

        Args:
            event_id: the same at every attempt, because the receiver may get an event twice.
            event: JSON.
            seconds: the longest time to wait for the receiver.
        """


def publication_event(domain: Domain, publication: Publication) -> dict[str, Any]:
    """Return the event of a publication, with changed documents (``source_id/path``), generation and run."""
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
    """The undelivered events of a receiver, one file per event. The file names sort by age."""

    def __init__(self, folder: Path, receiver: Receiver, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._receiver = receiver
        self._clock = clock

    def put(self, event: dict[str, Any]) -> None:
        """Store an event until it is delivered. An event that cannot be stored is only logged."""
        name = f"{time.time_ns():020}-{uuid.uuid4().hex[:8]}.json"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_whole(self._folder / name, json.dumps(event))
            for oldest in self.waiting()[:-MAX_WAITING]:
                logger.warning(
                    "more than %d events wait for %s: %s is dropped", MAX_WAITING, self._receiver.name, oldest.name
                )
                oldest.unlink(missing_ok=True)
        except OSError as error:
            told = f"{event['event']} of {event['domain'] or 'all domains'}"
            logger.warning("%s will not hear of %s: %s: %s", self._receiver.name, told, self._folder, error.strerror)

    def waiting(self) -> list[Path]:
        """Return the files of undelivered events, oldest first."""
        return sorted(self._folder.glob("[0-9]*.json"))

    def deliver(self, *, heed_pause: bool = False, total_s: float = TOTAL_S) -> bool:
        """Send undelivered events, oldest first, until one fails or the time is over.

        A failure is only logged. If a process is killed after the answer and before it removes the event, the event
        arrives twice.

        Args:
            heed_pause: send nothing during the pause after a failure.
            total_s: seconds for all events together, however slowly the receiver answers.

        Returns:
            ``True`` if every event is delivered.
        """
        if not self.waiting():
            return True
        deadline = time.monotonic() + total_s
        try:
            with hold_lock(self._folder / "lock", wait=False):
                if heed_pause and self._is_paused():
                    return False
                taken = all(self._send(file, deadline) for file in self.waiting())
                self._pause(failed=not taken)
                return taken
        except BlockingIOError:  # another process is delivering: it delivers these events, too
            return False
        except Exception as error:  # a receiver never fails a sync
            logger.warning("%s: %s; its events wait", self._receiver.name, type(error).__name__)
            self._pause(failed=True)
            return False

    def _send(self, file: Path, deadline: float) -> bool:
        problem = self._receiver.send(file.stem, file.read_bytes(), deadline - time.monotonic())
        if problem:
            logger.warning("%s %s; its events wait", self._receiver.name, problem)
            return False
        file.unlink(missing_ok=True)
        return True

    def _failures(self) -> tuple[int, float]:
        """Return how often the receiver has failed since its last success, and when it last failed; zeros if never."""
        try:
            failures, at = json.loads((self._folder / PAUSE).read_text(encoding="utf-8"))
            return int(failures), float(at)
        except (OSError, ValueError, TypeError):
            return 0, 0.0

    def _is_paused(self) -> bool:
        """Tell whether the receiver failed too recently to try again."""
        failures, at = self._failures()
        pause_s = min(FIRST_PAUSE_S * 2 ** (min(failures, 16) - 1), LONGEST_PAUSE_S)
        return failures > 0 and 0 <= self._clock() - at < pause_s

    def _pause(self, *, failed: bool) -> None:
        """Start or lengthen the pause after a failure; end it after a success."""
        with contextlib.suppress(OSError):  # then it is tried again at once
            if failed:
                write_whole(self._folder / PAUSE, json.dumps([self._failures()[0] + 1, self._clock()]))
            else:
                (self._folder / PAUSE).unlink(missing_ok=True)


TOPIC = "nornweave.ingestion.events"


class Webhook:
    """Receives events by ``POST``.

    Args:
        url: the receiver's address. The log names only the host, because the rest may be a secret.
        secret: signs the events. It is ``whsec_`` and base64, or any text. With ``None`` events are not signed.
    """

    def __init__(self, url: str, secret: str | None = None) -> None:
        self._url = url
        self._secret = secret

    @property
    def name(self) -> str:
        """Return ``webhook at`` and the host."""
        return f"webhook at {_host(self._url)}"

    def send(self, event_id: str, event: bytes, seconds: float) -> str | None:
        """Post an event. Return what went wrong; ``None`` if the receiver has the event."""
        if wrong := unusable_proxy(self._url):
            return wrong
        headers = {"Content-Type": "application/json", **signature_headers(event_id, event, self._secret)}
        status = asyncio.run(_post(self._url, event, headers, seconds))
        return None if 200 <= status < 300 else f"answered {status}"


def signature_headers(name: str, event: bytes, secret: str | None) -> dict[str, str]:
    """Return the headers of Standard Webhooks. They are the event id, the time, and a signature of both and the body.

    Args:
        name: the event's id. It is the same at every attempt, so that a receiver recognises repetitions.
        secret: as in ``Webhook``. With ``None`` there is no signature.

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


async def _post(url: str, event: bytes, headers: dict[str, str], seconds: float) -> int:
    """Post an event and return the status. The answer's body is not read."""
    async with (
        asyncio.timeout(seconds),
        httpx.AsyncClient(timeout=seconds, trust_env=not unusable_proxy()) as client,
        client.stream("POST", url, content=event, headers=headers) as answer,
    ):
        return answer.status_code


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or "?"
    except ValueError:
        return "?"


class KafkaTopic:
    """Receives events as messages.

    The message key is the domain, which keeps the order of the domain's events. A header holds the event id.

    Args:
        bootstrap: addresses of brokers, ``host:port`` with commas between them.
    """

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    @property
    def name(self) -> str:
        """Return ``Kafka at`` and the addresses of the brokers."""
        return f"Kafka at {self._bootstrap}"

    def send(self, event_id: str, event: bytes, seconds: float) -> str | None:
        """Send an event, and wait until the brokers store it. Return what went wrong; ``None`` if they have it."""
        try:
            from confluent_kafka import KafkaException, Producer
        except ImportError:
            return missing_package("Kafka", "confluent_kafka", "kafka")
        told: list[Any] = []
        milliseconds = max(1, int(seconds * 1000))
        options = {"bootstrap.servers": self._bootstrap, "message.timeout.ms": milliseconds, "acks": "all"}
        producer = Producer({**options, "enable.idempotence": True, "log_level": 0})
        try:
            producer.produce(
                TOPIC,
                event,
                key=str(json.loads(event)["domain"] or ALL_DOMAINS),
                headers=[("event-id", event_id.encode())],
                on_delivery=lambda error, _: told.append(error),
            )
        except (BufferError, KafkaException) as error:
            return f"refused the event: {error}"
        producer.flush(seconds)
        if not told:
            return f"did not answer within {seconds:.0f} s"
        return f"did not take the event: {told[0]}" if told[0] else None


log = logging.getLogger(__name__)

SECRET = "NORNWEAVE_WEBHOOK_SECRET"  # noqa: S105 - the name of the variable that holds it
BROKERS = "KAFKA_BOOTSTRAP"
ANSWERS = "answers"


class Announcements:
    """Announces the events of a workspace. Alarms are stored even without a receiver.

    Args:
        environment: has the webhook's secret and the addresses of Kafka's brokers. The default is ``os.environ``.
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
        """Announce a publication."""
        self._put(publication_event(domain, publication))

    def alarms(
        self, domain: Domain | None, alarms: Sequence[Alarm], looked_at: Collection[AlarmKind], *, run_id: str
    ) -> None:
        """Announce new and ended alarms. A failure to store them is only logged.

        Args:
            domain: the domain of the alarms; ``None`` for answers over all domains.
            looked_at: the kinds of alarms that were checked. Alarms of other kinds stay.
        """
        book = AlarmBook(self._settings.data_dir / "alarms" / f"{domain.value if domain else ANSWERS}.json", domain)
        try:
            book.update(alarms, looked_at, send=self._put, run_id=run_id, at=present())
        except OSError as error:
            log.warning("alarms of %s are not remembered: %s", domain or ANSWERS, error)

    def deliver(self, *, heed_pause: bool = False) -> None:
        """Send undelivered events, for at most a few seconds per receiver.

        Args:
            heed_pause: skip a receiver during the pause after a failure.
        """
        for outbox in self._outboxes:
            outbox.deliver(heed_pause=heed_pause)

    def _put(self, event: dict[str, Any]) -> None:
        for outbox in self._outboxes:
            outbox.put(event)
