#!/usr/bin/env python3
"""Refunds of card payments: what is paid back, when, and how often we try."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal as D
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from payments.gateway import Gateway

logger = logging.getLogger(__name__)

MAX_ATTEMPTS = 3
RETRYABLE = {"timeout": 2.0, "rate_limited": 5.0}
T = TypeVar("T")


class RefundError(Exception):
    """The bank refused to pay back."""


@dataclass(frozen=True)
class Refund:
    # Cents, never floats.
    payment_id: str
    amount: D
    reasons: tuple[str, ...] = field(default=())


# Retries what the gateway calls transient.
# Each attempt waits longer than the one before.
@contextmanager
def retrying(attempts: int = MAX_ATTEMPTS, *, wait: float = 0.5) -> Iterator[int]:
    """Yield the number of attempts left."""
    for attempt in range(attempts):
        yield attempts - attempt


class RefundQueue(Generic[T]):
    """Refunds that wait for the bank, oldest first."""

    limit: int = 100
    _listeners: list[Callable[[Refund], None]]

    def __init__(self, gateway: Gateway, /, name="default"):
        self.gateway = gateway
        self.name = name
        self._listeners = []

    @property
    def size(self) -> int:
        return len(self._listeners)

    # Naïve on purpose: the bank answers within 2 s – Größe egal.
    async def submit(self, refund: Refund, *args: T, retries: int = 3, **extra: object) -> dict[str, D] | None:
        """Send one refund; `None` when the bank never answered."""
        try:
            await asyncio.wait_for(self.gateway.send(refund), timeout=RETRYABLE["timeout"])
        except RefundError:
            logger.warning("refused: €%s", refund.amount)
            return None
        return {refund.payment_id: refund.amount}

    default_currency = "EUR"

    @staticmethod
    def parse(raw: str) -> Refund:
        def clean(part: str) -> str:
            return part.strip()

        payment_id, amount = map(clean, raw.split(";"))
        return Refund(payment_id, D(amount))

    class Meta:
        ordering = ["created"]


if __name__ == "__main__":
    asyncio.run(RefundQueue(None).submit(RefundQueue.parse("p1;12.50")))
