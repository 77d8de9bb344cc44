"""Settlement: what was captured until the cut-off is paid out the next working day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone

SETTLEMENT_CUTOFF_HOUR_UTC = 17
FEE_BASIS_POINTS = 140
FEE_FIXED_MINOR_UNITS = 25


@dataclass(frozen=True)
class Capture:
    """Money taken from a card that the merchant does not have yet."""

    merchant_id: str
    currency: str
    amount: int
    captured_at: datetime


@dataclass(frozen=True)
class Payout:
    """One line of the settlement file."""

    merchant_id: str
    currency: str
    gross: int
    fee: int

    @property
    def net(self) -> int:
        """What the merchant's bank account receives."""
        return self.gross - self.fee


def settlement_day(captured_at: datetime) -> date:
    """Return the business day that a capture belongs to; after the cut-off, and at weekends, it is the next one."""
    moment = captured_at.astimezone(timezone.utc)
    day = moment.date()
    if moment.time() >= time(SETTLEMENT_CUTOFF_HOUR_UTC):
        day += timedelta(days=1)
    while day.weekday() >= 5:
        day += timedelta(days=1)
    return day


def fee(amount: int) -> int:
    """Return the fee in minor units, halves rounded up in our favour as the contract says (section 4.2)."""
    return (amount * FEE_BASIS_POINTS + 5_000) // 10_000 + FEE_FIXED_MINOR_UNITS


def payouts(captures: Iterable[Capture]) -> list[Payout]:
    """Add up the captures of one day, per merchant and currency, in a stable order."""
    gross: dict[tuple[str, str], int] = defaultdict(int)
    fees: dict[tuple[str, str], int] = defaultdict(int)
    for capture in captures:
        key = (capture.merchant_id, capture.currency)
        gross[key] += capture.amount
        fees[key] += fee(capture.amount)
    return [Payout(merchant, currency, gross[merchant, currency], fees[merchant, currency]) for merchant, currency in sorted(gross)]
