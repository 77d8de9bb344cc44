"""Refunds: full or partial, never more than was captured, never after the window has closed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from payments.errors import PaymentError

REFUND_WINDOW_DAYS = 14
DISPUTE_EVIDENCE_DAYS = 30
PARTIAL_REFUNDS_PER_PAYMENT = 20


@dataclass(frozen=True)
class Captured:
    """The part of a payment that a refund needs to know."""

    payment_id: str
    amount: int
    refunded: int
    refund_count: int
    captured_at: datetime


def refundable_until(captured_at: datetime) -> datetime:
    """Return the last moment for a refund, seen from the capture and not from the authorization."""
    return captured_at + timedelta(days=REFUND_WINDOW_DAYS)


def check_refund(payment: Captured, amount: int, now: datetime) -> None:
    """Raise ``PaymentError`` when this refund is not possible."""
    if now > refundable_until(payment.captured_at):
        raise PaymentError(f"the refund window of {REFUND_WINDOW_DAYS} days has closed", field="payment_id")
    if amount > payment.amount - payment.refunded:
        raise PaymentError("refund is higher than what is left of the payment", field="amount")
    if payment.refund_count >= PARTIAL_REFUNDS_PER_PAYMENT:
        raise PaymentError("too many partial refunds, refund the rest in one", field="amount")


def evidence_due(dispute_opened_at: datetime) -> datetime:
    """Return when a merchant's evidence against a dispute must have reached us."""
    return dispute_opened_at + timedelta(days=DISPUTE_EVIDENCE_DAYS)
