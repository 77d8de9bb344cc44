"""Tell merchants what happened: signed, at least once, in no guaranteed order."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

WEBHOOK_TIMEOUT_SECONDS = 10
SIGNATURE_TOLERANCE_SECONDS = 300
DELIVERY_SCHEDULE_MINUTES = (1, 5, 30, 120, 720)
"""When a failed delivery is tried again, counted from the failure before."""


@dataclass(frozen=True)
class Endpoint:
    """Where a merchant wants to hear from us."""

    url: str
    secret: str
    events: frozenset[str]


def sign(secret: str, body: bytes, timestamp: int) -> str:
    """Return the value of the ``Heron-Signature`` header."""
    mac = hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256)
    return f"t={timestamp},v1={mac.hexdigest()}"


def deliver(client: httpx.Client, endpoint: Endpoint, event: Mapping[str, Any]) -> bool:
    """Send one event; return whether the merchant took it (any 2xx within the timeout).

    Redirects are not followed: a merchant's shop that moved must say so in the dashboard, or anybody who takes over
    an old domain would receive payment events.
    """
    if event["type"] not in endpoint.events:
        return True
    body = json.dumps(event, separators=(",", ":")).encode()
    headers = {"Content-Type": "application/json", "Heron-Signature": sign(endpoint.secret, body, int(time.time()))}
    try:
        answer = client.post(
            endpoint.url, content=body, headers=headers, timeout=WEBHOOK_TIMEOUT_SECONDS, follow_redirects=False
        )
    except httpx.TransportError:
        return False
    return answer.is_success


def next_attempt_in(failures: int) -> int | None:
    """Return minutes until the next delivery attempt after ``failures`` failures, ``None`` to give up."""
    if failures > len(DELIVERY_SCHEDULE_MINUTES):
        return None
    return DELIVERY_SCHEDULE_MINUTES[failures - 1]
