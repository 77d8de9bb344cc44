"""Tables → claims."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nornweave.claims.grids import grids
from nornweave.claims.passage import Passage
from nornweave.claims.tables import table_claims
from nornweave.types import Claim

LIMITS = """## Limits

| Limit | Live | Sandbox | What happens beyond it |
| --- | ---: | --- | --- |
| Requests per minute | 100 | 20 | 429 |
| Request body | 64 KiB | 64 KiB | 413 |
| Session lifetime | 20 minutes | 20 minutes | asks again |
"""
OPTIONS = """| Option | Type | Default | Meaning |
|---|---|---|---|
| `export_timeout` | duration | 30 seconds | how long to wait |
| `currency` | string | `USD` | ISO 4217 |
| `notes` | string | | free text, 3 lines |
"""


def claims_of(text: str, *, section: str = "Importer", domain: str = "documentation", start: int = 0) -> list[Claim]:
    passage = Passage(text=text, domain=domain, format="markdown", path="docs/a.md", section=section, start=start)
    return list(table_claims(passage))


def test_rows_meet_columns() -> None:
    claims = claims_of(LIMITS)
    rate = [claim for claim in claims if claim.attribute == "rate_limit"]
    assert [(claim.value, claim.unit, claim.entity) for claim in rate] == [
        ("5/3", "request/s", "live"),
        ("1/3", "request/s", "sandbox"),
    ]
    assert [(claim.value, claim.unit) for claim in claims if claim.attribute == "lifetime"] == [("1200", "s")] * 2
    assert {claim.value for claim in claims if "bodi" in claim.topics} == {"65536"}
    assert not any(claim.value in {"429", "413"} for claim in claims)


def test_the_span_of_a_claim_is_its_row() -> None:
    for claim in claims_of(LIMITS, start=50):
        row = LIMITS[claim.span.start - 50 : claim.span.end - 50]
        assert "\n" not in row and row.count("|") == 3
        assert claim.statement in row


def test_defaults_belong_to_their_options() -> None:
    timeout, currency = claims_of(OPTIONS)
    assert (timeout.attribute, timeout.value, timeout.unit, timeout.entity) == ("timeout", "30", "s", "export")
    assert (currency.attribute, currency.value, currency.entity) == ("currency", "usd", "importer")


def test_owners_in_every_markup() -> None:
    markdown = "| Service | Team |\n|---|---|\n| ledger | Platform |\n"
    html = (
        "<table><tr><th>Service</th><th>Team</th></tr><tr><td>ledger</td><td>the <b>Platform</b> team</td></tr></table>"
    )
    simple = "=======  ========\nService  Team\n=======  ========\nledger   Platform\n=======  ========\n"
    rule = "+---------+----------+\n"
    grid = f"{rule}| Service | Team     |\n+=========+==========+\n| ledger  | Platform |\n{rule}"
    for text in (markdown, html, simple, grid):
        (claim,) = claims_of(text, section="Who owns what")
        assert (claim.kind, claim.entity, claim.value) == ("owner", "ledger", "platform")
        assert "ledger" in text[claim.span.start : claim.span.end]


def test_codes_of_errors() -> None:
    (claim,) = claims_of("| Error | Status |\n|---|---|\n| card declined | `402` |\n")
    assert (claim.kind, claim.value, claim.entity) == ("http_status", "402", "card declined")


def test_numbers_tell_rows_apart() -> None:
    small, large = claims_of("| Class | Max connections |\n|---|---|\n| t2.small | 45 |\n| t3.small | 90 |\n")
    assert small.attribute == large.attribute == "pool_size"
    assert small.entity != large.entity


def test_results_events_and_rows_without_a_header_say_nothing() -> None:
    assert claims_of("| Policy | Peak load | Recovery time |\n|---|---|---|\n| none | 1.0 | 41 s |\n") == []
    assert claims_of("| Run | Mean timeout |\n|---|---|\n| a | 30 s |\n") == []
    assert claims_of("| Event | Sent when |\n|---|---|\n| a.b | after 3 tries |\n") == []
    assert claims_of("| Requests per minute | 100 | 20 |\n| Burst | 15 | 15 |\n") == []


def test_tables_of_studies_are_about_others() -> None:
    assert {claim.mood for claim in claims_of(LIMITS, domain="research")} == {"other"}


def test_escaped_bars_stay_in_their_cells() -> None:
    (grid,) = grids("| a | b |\n|---|---|\n| x \\| y | `1` |\n")
    assert [cell.text for cell in grid.rows[0]] == ["x | y", "`1`"]


@given(st.text(alphabet="|-=+ \nab1<>/tdr\\`", max_size=200))
def test_any_text_gives_valid_cells(text: str) -> None:
    for grid in grids(text):
        for row in grid.rows:
            assert len(row) <= len(grid.header)
            for cell in row:
                assert 0 <= cell.start <= cell.end <= len(text)
    assert claims_of(text) == claims_of(text)
