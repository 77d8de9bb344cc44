"""Names meet however they are spelt."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nornweave.disagree.facts.names import MAX_WORDS, is_generic, join_keys, read_name


@pytest.mark.parametrize(("written", "name", "owner", "unit"), [
    ("requestTimeoutMs", "request timeout", "", "ms"),
    ("request_timeout_ms", "request timeout", "", "ms"),
    ("--request-timeout", "request timeout", "", None),
    ("REQUEST_TIMEOUT_SECONDS", "request timeout", "", "seconds"),
    ("server.http.requestTimeout", "request timeout", "server http", None),
    ("HTTPServerPort", "http server port", "", None),
    ("kMaxRetries", "max retries", "", None),
    ("#maxCount", "max count", "", None),
    ("maximumPoolSize", "max pool size", "", None),
    ("sizeInBytes", "size", "", "bytes"),
    ("options[:workers]", "workers", "options", None),
    ("RATE_LIMIT_PER_MINUTE", "rate limit", "", None),
    ("items_per_page", "items per page", "", None),
    ("self.timeout", "timeout", "", None),
])  # fmt: skip
def test_spellings_become_words(written: str, name: str, owner: str, unit: str | None) -> None:
    read = read_name(written)
    assert read is not None
    assert (read.name, read.owner, read.unit) == (name, owner, unit)


@pytest.mark.parametrize("written", ["DEFAULT_PORT", "defaultPort", "port_default"])
def test_a_default_in_the_name_is_what_it_states(written: str) -> None:
    read = read_name(written)
    assert read is not None
    assert (read.name, read.attribute) == ("port", "default")


@pytest.mark.parametrize("written", ["", "  ", "404", "--", "x" * 200, "a b c d e f g h i j k"])
def test_what_is_no_name_is_none(written: str) -> None:
    assert read_name(written) is None


def test_prefixes_and_words_of_limits_do_not_keep_names_apart() -> None:
    assert set(join_keys("task default queue name")) & set(join_keys("default queue name"))
    assert set(join_keys("payload")) & set(join_keys("max payload size"))
    assert not set(join_keys("read timeout")) & set(join_keys("write timeout")), "timeout alone says nothing"


def test_generic_names_are_single_words() -> None:
    assert is_generic("timeout")
    assert not is_generic("request timeout")


@given(st.text(max_size=100))
def test_any_text_is_a_name_or_none(written: str) -> None:
    read = read_name(written)
    if read is not None:
        assert read.name == read.name.lower().strip() != ""
        assert len(read.name.split()) <= MAX_WORDS
        assert read.name in join_keys(read.name)
