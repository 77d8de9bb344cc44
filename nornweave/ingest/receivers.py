"""Receivers of events: a webhook, signed as Standard Webhooks has it, and a topic of Kafka (needs confluent-kafka)."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import time
from typing import Any
from urllib.parse import urlsplit

import httpx

from nornweave.core.extras import missing_package
from nornweave.improve.records import ALL_DOMAINS

TOPIC = "nornweave.ingestion.events"


class Webhook:
    """Takes events by ``POST``.

    Args:
        url: of the receiver; the log names its host alone, for the rest of an address may be a secret.
        secret: signs the events: ``whsec_`` and base64, or any text; ``None`` leaves the signature out.
    """

    def __init__(self, url: str, secret: str | None = None) -> None:
        self._url = url
        self._secret = secret

    @property
    def name(self) -> str:
        """Return the host."""
        return f"webhook at {_host(self._url)}"

    def send(self, event_id: str, event: bytes, seconds: float) -> str | None:
        """Post an event; see ``Receiver.send``."""
        headers = {"Content-Type": "application/json", **signature_headers(event_id, event, self._secret)}
        status = asyncio.run(_within(self._url, event, headers, seconds))
        return None if 200 <= status < 300 else f"answered {status}"


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
        httpx.AsyncClient(timeout=seconds) as client,
        client.stream("POST", url, content=event, headers=headers) as answer,
    ):
        return answer.status_code


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or "?"
    except ValueError:
        return "?"


class KafkaTopic:
    """Takes events as messages: the key is the domain, so that its events keep their order, a header has the id.

    Args:
        bootstrap: addresses of brokers, ``host:port`` with commas between them.
    """

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    @property
    def name(self) -> str:
        """Return the brokers; they are no secret."""
        return f"Kafka at {self._bootstrap}"

    def send(self, event_id: str, event: bytes, seconds: float) -> str | None:
        """Send an event and wait until the brokers have it; see ``Receiver.send``."""
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
