"""Idempotency keys: the same key and body get the same answer, without a second payment."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Protocol

from payments.errors import DuplicatePaymentError
from payments.models import PaymentRequest

IDEMPOTENCY_KEY_TTL_HOURS = 48
MAX_KEY_LENGTH = 64


class KeyValue(Protocol):
    """Redis, or a dictionary in tests."""

    def get(self, key: str) -> str | None:
        """Return the stored text, or ``None`` once it expired."""

    def set(self, key: str, value: str, *, expires_in: int) -> None:
        """Store ``value`` for ``expires_in`` seconds."""


def fingerprint(request: PaymentRequest) -> str:
    """Hash the request so that key order and white space in the JSON do not matter."""
    canonical = json.dumps(asdict(request), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


class IdempotencyStore:
    """Remembers answers by key, per merchant."""

    def __init__(self, backend: KeyValue, clock: Callable[[], float] = time.time) -> None:
        self._backend = backend
        self._clock = clock

    def lookup(self, key: str, request: PaymentRequest) -> Mapping[str, Any] | None:
        """Return the earlier answer to this key; refuse a key that comes back with another body."""
        if len(key) > MAX_KEY_LENGTH:
            raise DuplicatePaymentError("idempotency key is longer than 64 characters", field="Idempotency-Key")
        stored = self._backend.get(f"idem:{request.merchant_id}:{key}")
        if stored is None:
            return None
        record = json.loads(stored)
        if record["fingerprint"] != fingerprint(request):
            raise DuplicatePaymentError("this idempotency key belongs to another request", field="Idempotency-Key")
        answer: Mapping[str, Any] = record["answer"]
        return answer

    def remember(self, key: str, request: PaymentRequest, answer: Mapping[str, Any]) -> None:
        """Keep the answer until the key expires."""
        record = {"fingerprint": fingerprint(request), "answer": answer, "at": self._clock()}
        self._backend.set(
            f"idem:{request.merchant_id}:{key}", json.dumps(record), expires_in=IDEMPOTENCY_KEY_TTL_HOURS * 3600
        )
