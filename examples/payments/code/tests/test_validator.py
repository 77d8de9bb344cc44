"""The validator refuses early and names the field."""

import pytest

from payments.errors import PaymentError
from payments.models import PaymentRequest
from payments.validator import PaymentValidator


def request(**changes):
    fields = {"amount": 1999, "currency": "EUR", "card_token": "tok_1", "reference": "order 77", "merchant_id": "mer_kiosk"}
    return PaymentRequest(**{**fields, **changes})


def test_a_complete_request_passes():
    PaymentValidator().validate(request())


@pytest.mark.parametrize("amount", [None, 0])
def test_a_missing_amount_is_named(amount):
    with pytest.raises(PaymentError, match="missing amount") as caught:
        PaymentValidator().validate(request(amount=amount))
    assert caught.value.field == "amount"


def test_floats_are_refused_because_19_99_is_not_1999():
    with pytest.raises(PaymentError, match="minor units"):
        PaymentValidator().validate(request(amount=19.99))


def test_bank_transfers_have_no_card_and_still_pass():
    # The crash behind PR #247: an error about a bank transfer looked for the card's last four digits.
    PaymentValidator().validate(request(card_token=None))


def test_yen_has_no_cents():
    PaymentValidator().validate(request(currency="JPY", amount=50))
    with pytest.raises(PaymentError, match="below the minimum of 50"):
        PaymentValidator().validate(request(currency="JPY", amount=49))


def test_currency_outside_the_list():
    with pytest.raises(PaymentError, match="currency CHF is not supported"):
        PaymentValidator().validate(request(currency="CHF"))
