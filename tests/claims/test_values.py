"""Values as people write them → canonical text."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nornweave.claims.statuses import status_spans
from nornweave.claims.values import canonical_number, http_status, normal_date, normal_version, number, same_value

TUESDAY = datetime(2026, 1, 20, 9, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("1,000", None, ("1000", None)),
        ("1_000", "ms", ("1", "s")),
        ("five", "seconds", ("5", "s")),
        ("twenty-five", "ms", ("0.025", "s")),
        ("1.50", "h", ("5400", "s")),
        ("½", "hour", ("1800", "s")),
        ("30", "days", ("2592000", "s")),
        ("3", "months", ("3", "month")),
        ("2", "years", ("24", "month")),
        ("5", "business days", ("5", "working day")),
        ("10k", "requests", ("10000", "request")),
        ("2 million", "users", ("2000000", "user")),
        ("10", "MiB", ("10485760", "byte")),
        ("10", "MB", ("10000000", "byte")),
        ("8", "Mb", ("8000000", "bit")),
        ("5", "%", ("5", "percent")),
        ("5", "per cent", ("5", "percent")),
        ("19.99", "€", ("19.99", "EUR")),
        ("19.99", "EUR", ("19.99", "EUR")),
        ("60", "requests per minute", ("1", "request/s")),
        ("60", "rpm", ("1", "request/s")),
        ("20", "req/min", ("1/3", "request/s")),
        ("10", "requests a second", ("10", "request/s")),
        ("10", "MB/s", ("10000000", "byte/s")),
        ("0.3", "EUR per transaction", ("0.3", "EUR/transaction")),
        ("3", "times", ("3", None)),
        ("7", "retries", ("7", "retry")),
        ("7", "statuses", ("7", "status")),
        ("7", "addresses", ("7", "address")),
        ("-1.50", "", ("-1.5", None)),
    ],
)
def test_numbers_become_base_units(text: str, unit: str | None, expected: tuple[str, str | None]) -> None:
    assert canonical_number(text, unit) == expected


@pytest.mark.parametrize("text", ["", "ten past", "v2", "1.2.3", "10m", "1,00", "--1", "1" * 30, "many", "0x1f"])
def test_what_is_no_number_is_none(text: str) -> None:
    assert number(text) is None
    assert canonical_number(text, "s") is None


@given(st.fractions(min_value=-(10**6), max_value=10**6, max_denominator=10**4))
def test_canonical_numbers_are_exact(value: Fraction) -> None:
    scaled = value * 10_000
    written = canonical_number(str(scaled.numerator // scaled.denominator), "ms")
    assert written is not None
    assert Fraction(written[0]) * 1000 == scaled.numerator // scaled.denominator
    assert written[1] == "s"


@given(st.integers(0, 10**9), st.sampled_from([("ms", "s", 1000), ("s", "min", 60), ("hours", "days", 24)]))
def test_equal_values_in_two_units_are_one(value: int, units: tuple[str, str, int]) -> None:
    small, large, factor = units
    assert canonical_number(str(value * factor), small) == canonical_number(str(value), large)


@given(st.text(max_size=80), st.text(max_size=80))
def test_no_text_raises(text: str, unit: str) -> None:
    canonical_number(text, unit)
    normal_version(text)
    normal_date(text, TUESDAY)
    normal_date(unit)
    status_spans(text)
    same_value(text, unit, "byte")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("v2.1", "2.1"),
        ("2.1.0", "2.1.0"),
        ("Version 3.0-RC1", "3.0-rc1"),
        ("v3", "3"),
        ("2.x", "2"),
        ("1.0b2", "1.0b2"),
        ("2", None),
        ("latest", None),
        ("1.2.3.4.5.6", None),
    ],
)
def test_versions(text: str, expected: str | None) -> None:
    assert normal_version(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("19 January 2026", "2026-01-19"),
        ("the 19th of January 2026", "2026-01-19"),
        ("Jan 19, 2026", "2026-01-19"),
        ("Monday, 19 January 2026", "2026-01-19"),
        ("2026-01-19", "2026-01-19"),
        ("2026-01-19T10:00:00Z", "2026-01-19"),
        ("January 2026", "2026-01"),
        ("31 February 2026", None),
        ("Monday", "monday"),
        ("19 January", None),
        ("yesterday", None),
        ("soon", None),
    ],
)
def test_days_without_a_reference(text: str, expected: str | None) -> None:
    assert normal_date(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Monday", "2026-01-19"),
        ("Tuesday", "2026-01-20"),
        ("last Tuesday", "2026-01-13"),
        ("next Tuesday", "2026-01-27"),
        ("Wednesday", "2026-01-14"),
        ("yesterday", "2026-01-19"),
        ("28 December", "2025-12-28"),
        ("3 February", "2026-02-03"),
    ],
)
def test_days_are_counted_from_when_it_was_said(text: str, expected: str) -> None:
    assert normal_date(text, TUESDAY) == expected


@given(st.dates(min_value=date(1950, 1, 8), max_value=date(2100, 1, 1)), st.integers(0, 6))
def test_a_weekday_is_one_of_the_last_seven_days(today: date, back: int) -> None:
    day = today - timedelta(days=back)
    said = datetime(today.year, today.month, today.day, tzinfo=UTC)
    assert normal_date(day.strftime("%A"), said) == day.isoformat()
    assert normal_date(day.strftime("%d %B %Y")) == day.isoformat()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("returns HTTP 400 for malformed requests and HTTP 500 for downstream failures.", ["400", "500"]),
        ("`handle_error` answers 422 for everything", ["422"]),
        ("503 when a retry is safe, 502 when the network may have moved money.", ["503", "502"]),
        ("status codes 400, 404 or 422", ["400", "404", "422"]),
        ("Returns `409`/`412` on conflict", ["409", "412"]),
        ("a 404 Not Found", ["404"]),
        ("`status_code=422`", ["422"]),
        ("It fails with a 429 error", ["429"]),
        ("returns 200 items", []),
        ("waits 400 ms", []),
        ("room 404", []),
        ("we get 500 dollars", []),
        ("a total of 200.", []),
        ("port 443 on 404 hosts", []),
    ],
)
def test_status_codes_need_a_context(text: str, expected: list[str]) -> None:
    assert [code for _, _, code in status_spans(text)] == expected
    assert http_status(text) == (expected[0] if expected else None)
    assert all(text[start:end] == code for start, end, code in status_spans(text))


@pytest.mark.parametrize(
    ("value", "other", "unit", "expected"),
    [
        ("2.1", "2.1.3", None, True),
        ("2.1", "2.10", None, False),
        ("2.1", "2.0", None, False),
        ("monday", "2026-01-19", None, True),
        ("wednesday", "2026-01-19", None, False),
        ("2026-01", "2026-01-19", None, True),
        ("10000000", "10485760", "byte", True),
        ("10000000", "20000000", "byte", False),
        ("30", "10", "s", False),
    ],
)
def test_the_same_value_in_another_precision(value: str, other: str, unit: str | None, expected: bool) -> None:
    assert same_value(value, other, unit) is expected
    assert same_value(other, value, unit) is expected
