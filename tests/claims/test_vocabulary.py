from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nornweave.claims.values import canonical_number
from nornweave.claims.vocabulary import (
    attribute_of,
    family_stems,
    ordered_topics,
    path_topics,
    split_name,
    topics_of,
    unit_in_name,
)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("WEBHOOK_TIMEOUT_SECONDS", "webhook timeout seconds"),
        ("maxAttempts", "max attempts"),
        ("HTTPServerPort2", "http server port 2"),
        ("idempotency-key.ttl_hours", "idempotency key ttl hours"),
        ("src/payments/handlers.py", "src payments handlers py"),
        ("OAuth", "oauth"),
        ("IPaymentGateway", "payment gateway"),
        ("URLs", "urls"),
        ("web hook time-out", "webhook timeout"),
        ("retry_back_off", "retry backoff"),
        ("größeLimit", "größe limit"),
        ("", ""),
    ],
)
def test_names_come_apart_into_words(name: str, words: str) -> None:
    assert " ".join(split_name(name)) == words


@pytest.mark.parametrize(
    ("phrase", "family"),
    [
        ("WEBHOOK_TIMEOUT_SECONDS", "timeout"),
        ("waits for", "timeout"),
        ("MAX_RETRIES", "retries"),
        ("is retried at most", "retries"),
        ("maxAttempts", "retries"),
        ("ttl_hours", "lifetime"),
        ("event_retention_days", "lifetime"),
        ("are kept for", "lifetime"),
        ("RATE_LIMIT_PER_MINUTE", "rate_limit"),
        ("requests per minute", "rate_limit"),
        ("REFUND_WINDOW_DAYS", "window"),
        ("retry_delay_ms", "delay"),
        ("Retry-After", "delay"),
        ("poll_interval", "interval"),
        ("keepAliveTimeout", "timeout"),
        ("keepalive_seconds", "keep_alive"),
        ("status_code", "http_status"),
        ("DEFAULT_CURRENCY", "currency"),
        ("DEFAULT_PAGE_SIZE", "page_size"),
        ("API_VERSION", "version"),
        ("three_d_secure_enabled", "enabled"),
        ("MaxHeaderBytes", "size_limit"),
        ("maxItems", "limit"),
        ("min_length", "minimum"),
        ("max_length", "length_limit"),
        ("min_timeout", "min_timeout"),
        ("MAX_PAGE_SIZE", "max_page_size"),
        ("response", None),
        ("is_active", None),
        ("SETTLEMENT_CUTOFF_HOUR_UTC", "cut_off"),
        ("retry_budget_ratio", "rate"),
        ("the Platform team owns the ledger", "owner"),
        ("OAuth removed in v3", "support"),
        ("timeout of a retry", "timeout"),
        ("WindowsHost", "host"),
        ("Windows", None),
        ("its own queue", None),
        ("payment handler", None),
        ("", None),
    ],
)
def test_attribute_families(phrase: str, family: str | None) -> None:
    assert attribute_of(split_name(phrase)) == family


def test_families_that_compare_and_families_that_do_not() -> None:
    assert attribute_of(("retention",)) == attribute_of(("ttl",)) == attribute_of(("lifetime",))
    assert len({attribute_of((word,)) for word in ("timeout", "interval", "delay", "window", "retries")}) == 5


def test_what_tells_two_timeouts_apart_are_their_topics() -> None:
    read = topics_of("NETWORK_READ_TIMEOUT_SECONDS", without=("timeout",))
    connect = topics_of("networkConnectTimeout", without=("timeout",))
    assert (read, connect) == (("network", "read"), ("connect", "network"))


def test_topics_leave_out_what_says_nothing() -> None:
    assert topics_of("The default value of 30 seconds for each webhook is then returned 5 times") == ("webhook",)
    assert topics_of("the read timeout", without=("timeout",)) == ("read",)
    assert topics_of("API version", without=("version",)) == ("api",)
    assert topics_of("retry timeout", without=("timeout",)) == ("retri",)


def test_topics_keep_their_order_where_asked() -> None:
    assert ordered_topics("webhook endpoint, authorization and webhook") == ("webhook", "endpoint", "author")


@pytest.mark.parametrize(
    ("path", "topics"),
    [
        ("code/src/payments/handlers.py", ("handler", "payment")),
        ("src/main.go", ()),
        ("docs/api/webhooks.md", ("api", "webhook")),
        ("a\\b\\retry_policy.cs", ("polici", "retri")),
        ("", ()),
    ],
)
def test_paths_name_the_file_and_its_folder(path: str, topics: tuple[str, ...]) -> None:
    assert path_topics(path) == topics


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("WEBHOOK_TIMEOUT_SECONDS", "seconds"),
        ("timeoutMs", "ms"),
        ("timeout_s", "seconds"),
        ("SETTLEMENT_CUTOFF_HOUR_UTC", "hours"),
        ("max_bytes_per_file", None),
        ("maxBodyBytes", "bytes"),
        ("days_until_expiry", "days"),
        ("RATE_LIMIT_PER_MINUTE", "requests per minute"),
        ("messages_per_second", "messages per second"),
        ("refunds_per_payment", None),
        ("day_rate", None),
        ("s", None),
    ],
)
def test_units_in_names(name: str, unit: str | None) -> None:
    assert unit_in_name(split_name(name)) == unit


def test_every_unit_of_a_name_is_one_that_values_read() -> None:
    names = ["x_ns", "x_us", "x_ms", "x_s", "x_minutes", "x_h", "x_days", "x_weeks", "x_bytes", "x_kb", "x_gib"]
    read = [canonical_number("1", unit_in_name(split_name(name))) for name in names]
    assert {number[1] for number in read if number} == {"s", "byte"}
    assert len(set(read)) == len(names)


@given(st.text(max_size=300))
def test_any_text_has_words_topics_and_maybe_an_attribute(text: str) -> None:
    words = split_name(text)
    assert all(word == word.lower() and word.strip() for word in words)
    topics = topics_of(text)
    assert list(topics) == sorted(set(topics))
    assert set(ordered_topics(text)) <= set(topics)
    family = attribute_of(words)
    assert family is None or family_stems(family)
