"""A topic of Kafka: the same events, for whoever reads streams; needs the optional package confluent-kafka."""

from __future__ import annotations

import json
from typing import Any

from nornweave.core.extras import missing_package
from nornweave.improve.records import ALL_DOMAINS

TOPIC = "nornweave.ingestion.events"


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
