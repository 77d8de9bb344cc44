# Payment retry logic with exponential backoff
#
# Only authorizations are retried, never captures: an authorization that went through twice merely holds
# money, and the hold is released; a capture that went through twice takes it.

from __future__ import annotations

import asyncio
import random
from typing import Protocol

from payments.errors import DownstreamError
from payments.models import Payment, PaymentRequest

MAX_RETRIES = 5
BASE_DELAY_SECONDS = 0.2
MAX_DELAY_SECONDS = 8.0
RETRY_BUDGET_RATIO = 0.1


class Network(Protocol):
    """The card network's client."""

    async def authorize(self, request: PaymentRequest) -> Payment:
        """Ask the issuer; raise ``DownstreamError`` when nobody answered."""


class RetryBudget:
    """Lets retries be at most a tenth of all calls, so that an outage is not multiplied by everyone trying again."""

    def __init__(self, ratio: float = RETRY_BUDGET_RATIO) -> None:
        self._ratio = ratio
        self._tokens = 1.0

    def record_call(self) -> None:
        """Earn a fraction of a retry."""
        self._tokens = min(self._tokens + self._ratio, 100.0)

    def spend(self) -> bool:
        """Take one retry if there is one."""
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True


def backoff_delay(attempt: int, rng: random.Random) -> float:
    """Return seconds to wait before retry ``attempt`` (from 1): full jitter below an exponential ceiling."""
    ceiling = min(MAX_DELAY_SECONDS, BASE_DELAY_SECONDS * 2 ** (attempt - 1))
    return rng.uniform(0.0, ceiling)


async def authorize_with_retry(
    network: Network,
    request: PaymentRequest,
    budget: RetryBudget | None = None,
    rng: random.Random | None = None,
) -> Payment:
    """Authorize, trying again after failures that certainly moved no money.

    Raises:
        DownstreamError: retries or budget are used up, or the last failure must not be retried.
    """
    budget = budget or RetryBudget()
    rng = rng or random.Random()
    budget.record_call()
    for attempt in range(1, MAX_RETRIES + 1):
        try:
            return await network.authorize(request)
        except DownstreamError as error:
            if not error.retryable or not budget.spend():
                raise
            await asyncio.sleep(backoff_delay(attempt, rng))
    return await network.authorize(request)
