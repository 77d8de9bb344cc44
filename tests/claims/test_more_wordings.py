"""Ways of saying what holds that are not ``the X is N``; and what that may cost."""

from __future__ import annotations

import time

import pytest

from nornweave.claims.extract import MAX_CHARACTERS, extract_claims
from nornweave.claims.literals import quantity
from nornweave.claims.passage import Passage
from nornweave.types import Claim


def claims_in(text: str, section: str = "Guide > Uploads", domain: str = "documentation") -> tuple[Claim, ...]:
    return extract_claims(Passage(text=text, domain=domain, path="docs/guide.md", section=section, format="markdown"))


@pytest.mark.parametrize(
    ("text", "attribute", "value", "unit"),
    [
        ("Files above 8 MB are refused.", "limit", "8000000", "byte"),
        ("60 per minute is what the live key gets.", "rate_limit", "1", "request/s"),
        ("They expire after 3 days.", "lifetime", "259200", "s"),
        ("A seat is held for 20 minutes.", "lifetime", "1200", "s"),
        ("An alert that nobody acknowledges escalates to the lead after 15 minutes.", "delay", "900", "s"),
        ("A consumer whose session timeout of 10 seconds passes loses its place.", "timeout", "10", "s"),
        ("Errors are retried 2 times by default.", "retries", "2", None),
        ("The charger delivers at most 18 W.", "limit", "18", "W"),
        ("A trolley can carry up to 200 kg.", "limit", "200000", "g"),
        ("* depth : int, optional\\n    How deep [default: 3]", "depth", "3", None),
        ("The queue runs with three replicas.", "replicas", "3", None),
        ("You need Node 20 or newer.", "min_version", "20", None),
        ("The ledger runs on PostgreSQL 14.2.", "version", "14.2", None),
    ],
)
def test_wordings(text: str, attribute: str, value: str, unit: str | None) -> None:
    found = claims_in(text.replace("\\n", "\n"))
    assert (attribute, value, unit) in {(one.attribute, one.value, one.unit) for one in found}


@pytest.mark.parametrize(
    "text",
    [
        "If a request takes more than 5 seconds, something is wrong.",
        "A job that runs longer than 45 minutes is suspicious.",
        "In Python 3.3 and newer, venv is part of the library.",
        "Version 3 of the page has four authors.",
    ],
)
def test_what_is_no_claim(text: str) -> None:
    assert claims_in(text) == ()


def test_a_pronoun_takes_the_subject_of_the_sentence_before() -> None:
    found = claims_in("The office is closed. It reopens on Monday, 4 January 2027.", section="Calendar")
    assert [one.entity for one in found if one.kind == "date"] == ["office"]


def test_flattened_tables_have_owners() -> None:
    found = claims_in("Service | Team | Ask\npayments | Core | Ann\nledger | Platform | Dan", section="Who owns what")
    assert {(one.entity, one.value) for one in found if one.kind == "owner"} == {
        ("payments", "core"),
        ("ledger", "platform"),
    }


def test_powers_bind_tighter_and_rates_are_strings() -> None:
    found = quantity("8 * 1024 ** 2")
    assert found is not None
    assert found.number == str(8 * 1024**2)
    rate = quantity('"100/minute"')
    assert rate is not None
    assert (rate.number, rate.unit) == ("100", "requests per minute")


def test_only_the_beginning_of_a_passage_is_read() -> None:
    line = "The webhook timeout is 30 seconds.\n\n"
    found = extract_claims(Passage(text="x" * MAX_CHARACTERS + "\n\n" + line))
    assert found == ()
    assert extract_claims(Passage(text=line + "x" * MAX_CHARACTERS))


@pytest.mark.parametrize("part", ["if is the ", "an a that s s ", "x is a ", "( ", "1,", "more than ", "- a | b\n"])
def test_hostile_text_costs_no_more_than_it_is_long(part: str) -> None:
    def cost(times: int) -> float:
        passage = Passage(text=part * times)
        start = time.process_time()
        extract_claims(passage)
        return time.process_time() - start

    assert cost(2000) < 20 * max(cost(500), 0.01)
