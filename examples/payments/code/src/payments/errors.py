"""What can go wrong with a payment, as exceptions.

    PaymentError            the merchant or the card holder can do something about it
      CardDeclinedError     the issuer said no
      DuplicatePaymentError the idempotency key was used with another body
    DownstreamError         the card network or the ledger did not answer
"""

from __future__ import annotations


class PaymentError(Exception):
    """A payment that cannot be made as requested."""

    code = "payment_error"

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field


class CardDeclinedError(PaymentError):
    """The issuer declined; ``decline_code`` is the network's two-digit answer, e.g. ``51`` for insufficient funds."""

    code = "card_declined"

    def __init__(self, decline_code: str) -> None:
        super().__init__(f"the issuer declined the payment ({decline_code})", field="card")
        self.decline_code = decline_code


class DuplicatePaymentError(PaymentError):
    """The same idempotency key came again with a different request body."""

    code = "idempotency_mismatch"


class DownstreamError(Exception):
    """The card network or the ledger failed; nothing the merchant sent was wrong.

    ``retryable`` is false once the network may have moved money: then only reconciliation may decide.
    """

    def __init__(self, system: str, detail: str, *, retryable: bool = True) -> None:
        super().__init__(f"{system}: {detail}")
        self.system = system
        self.retryable = retryable
