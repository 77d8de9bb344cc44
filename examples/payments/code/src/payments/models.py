"""Payments as the service sees them. Amounts are integers in minor units: 1999 is 19.99 EUR, 1999 is 1,999 JPY."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from payments.errors import PaymentError
from payments.settings import DEFAULT_CURRENCY


class State(str, Enum):
    """Where a payment stands. Arrows only point forward: a payment never leaves ``SETTLED`` but by a refund."""

    AUTHORIZED = "authorized"
    CAPTURED = "captured"
    SETTLED = "settled"
    REFUNDED = "refunded"
    FAILED = "failed"


@dataclass(frozen=True)
class PaymentRequest:
    """What a merchant asks for; nothing is checked yet but the shape."""

    amount: int | None
    currency: str
    card_token: str | None
    reference: str
    merchant_id: str

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> PaymentRequest:
        """Read a request body; unknown keys are refused so that typing errors do not become silent defaults."""
        unknown = set(body) - {"amount", "currency", "card_token", "reference", "merchant_id"}
        if unknown:
            raise PaymentError(f"unknown field {min(unknown)!r}", field=min(unknown))
        return cls(
            amount=body.get("amount"),
            currency=body.get("currency", DEFAULT_CURRENCY),
            card_token=body.get("card_token"),
            reference=body.get("reference", ""),
            merchant_id=body.get("merchant_id", ""),
        )


@dataclass(frozen=True)
class Payment:
    """A payment that the card network has answered."""

    id: str
    amount: int
    currency: str
    state: State
    authorized_at: datetime
    network_reference: str

    def as_json(self) -> dict[str, Any]:
        """Return the payment as the API shows it: without the network reference, which is ours."""
        shown = asdict(self)
        del shown["network_reference"]
        return {**shown, "state": self.state.value, "authorized_at": self.authorized_at.isoformat()}
