"""Say no before the card network has to."""

from __future__ import annotations

import re

from payments.errors import PaymentError
from payments.models import PaymentRequest
from payments.settings import SUPPORTED_CURRENCIES

REFERENCE = re.compile(r"[A-Za-z0-9 .,_/-]{1,35}\Z")
"""What fits on a bank statement: SEPA allows 35 characters of a small alphabet."""

SMALLEST_AMOUNT = {"EUR": 50, "USD": 50, "GBP": 30, "JPY": 50, "SEK": 300}
"""Minor units below which the network fee is higher than the payment."""


class PaymentValidator:
    """Checks that need nobody else: no network, no ledger, no merchant record."""

    def validate(self, req: PaymentRequest) -> None:
        """Raise ``PaymentError`` for the first thing wrong with the request."""
        if not req.amount:
            raise PaymentError("missing amount", field="amount")
        if not isinstance(req.amount, int) or req.amount < 0:
            raise PaymentError("amount must be a positive number of minor units", field="amount")
        self._validate_currency(req)
        if not req.merchant_id.startswith("mer_"):
            raise PaymentError("merchant_id must start with 'mer_'", field="merchant_id")
        if req.reference and not REFERENCE.match(req.reference):
            raise PaymentError("reference has characters that banks do not print", field="reference")

    def _validate_currency(self, req: PaymentRequest) -> None:
        if req.currency not in SUPPORTED_CURRENCIES:
            raise PaymentError(f"currency {req.currency} is not supported", field="currency")
        smallest = SMALLEST_AMOUNT[req.currency]
        if req.amount is not None and req.amount < smallest:
            raise PaymentError(f"amount is below the minimum of {smallest} for {req.currency}", field="amount")
