"""Whatever an agent does, a question is answered by its deadline, and the agent is a coverage gap that says why."""

import time
from collections.abc import Callable

import pytest
from remote_hub import ForeignServer, Hub
from waiting import GENEROUS_MS, SOON_S

Start = Callable[..., ForeignServer]
Serve = Callable[..., Hub]
Join = Callable[..., tuple[Hub, ForeignServer]]
ASKED = {"domains": ["documentation"]}


def reason_of(served: Hub, **more: object) -> str:
    """Ask the one agent of the documentation, which gives no answer; return the reason."""
    answer = served.query(**ASKED, **more)
    assert answer["items"] == []
    (gap,) = answer["coverage_gaps"]
    assert (gap["domain_id"], gap["agent_id"]) == ("documentation", "vault")
    return str(gap["reason"])


@pytest.mark.parametrize(("mode", "reason"), [
    ("garbage", "answered with something else than JSON"),
    ("half", "answered with something else than a recall: items.0.chunk_id"),
    ("domain code", "answered for 'code', and is registered for 'documentation'"),
    ("oversized", "answered with more than 8,388,608 bytes"),
    ("status 500", "answered with status 500"),
    ("status 422", "does not take the question (422)"),
    ("status 401", "did not accept this server's token (401)"),
])  # fmt: skip
def test_an_answer_that_is_none_is_a_gap(joined: Join, mode: str, reason: str) -> None:
    served, server = joined(mode)
    assert reason in reason_of(served)
    server.answers("answer")
    assert len(served.query(**ASKED)["items"]) == 3


@pytest.mark.parametrize("mode", ["hang", "drip"])
def test_an_agent_that_does_not_end_costs_a_question_its_deadline_and_no_more(joined: Join, mode: str) -> None:
    served, _ = joined(mode)
    started = time.monotonic()
    assert reason_of(served, timeout_ms=300) == "timeout after 300ms"
    assert time.monotonic() - started < SOON_S


def test_a_redirect_is_not_followed(foreign: Start, hub: Serve) -> None:
    other = foreign()
    server = foreign(f"redirect {other.url}/recall")
    served = hub(server.url)
    served.register(server.url)
    assert "redirect" in reason_of(served)
    assert other.asked == []


def test_of_many_items_as_many_as_were_wanted_count(joined: Join) -> None:
    served, _ = joined("many")
    assert served.query(**ASKED)["stats"]["total_items"] == 15


@pytest.mark.parametrize(("link", "shown"), [
    ("javascript:alert(1)", False),
    ("https://elsewhere.example.org/1", False),
    ("https://vault.example.org@evil.example.org/shelf/1", False),
    ("https://vault.example.org\\@evil.example.org/shelf/1", False),
    ("https://vault.example.org/shelf/../1", False),
    ("https://vault.example.org/shelf/%2e%2e/1", False),
    ("https://vault.example.org/shelf", True),
    ("https://VAULT.example.org/shelf/a (1).html?page=2#x", True),
])  # fmt: skip
def test_a_citation_is_of_the_registered_domain_and_leads_where_it_may_or_nowhere(
    joined: Join, link: str, shown: bool
) -> None:
    served, server = joined(f"link {link}", entry={"links": ["https://vault.example.org/shelf"]})
    (item,) = served.query(**ASKED)["items"]
    assert item["citation"]["url"] == (link if shown else None)
    assert item["citation"]["domain_id"] == "documentation"
    server.answers(f"link {server.url}/own")
    (item,) = served.query(**ASKED)["items"]
    assert item["citation"]["url"] == f"{server.url}/own"


def test_an_agent_that_failed_is_asked_again_and_the_failures_are_counted(joined: Join) -> None:
    served, server = joined("status 500")
    for _ in range(3):
        assert "status 500" in reason_of(served)
    assert (served.measured("requests"), served.measured("failures")) == (3, 3)
    page = served.http.get("/status", headers={"accept": "text/html"}).text
    assert server.url in page
    assert "just now" in page
    server.answers("answer")
    assert served.query(**ASKED)["items"]
    assert (served.measured("requests"), served.measured("failures")) == (4, 3)


def test_one_agent_that_hangs_costs_the_others_nothing(foreign: Start, hub: Serve) -> None:
    stuck, fine = foreign("hang"), foreign()
    served = hub(stuck.url, fine.url)
    served.register(stuck.url, "stuck")
    served.register(fine.url, "vault")
    answer = served.query(**ASKED, timeout_ms=GENEROUS_MS)
    assert len(answer["items"]) == 3
    assert [(gap["agent_id"], gap["reason"]) for gap in answer["coverage_gaps"]] == [
        ("stuck", "no answer in time: after the others it was given 0.5 s")
    ]


def test_the_slowest_of_three_does_not_set_how_long_a_question_takes(foreign: Start, hub: Serve) -> None:
    servers = {"one": foreign(), "two": foreign(), "slow": foreign("slow 4")}
    took = {}
    for budget_s in (60.0, 0.5):
        agents = {"budget_s": budget_s, "wait_s": 60}
        served = hub(*(server.url for server in servers.values()), agents=agents, folder=f"hub-{budget_s}")
        for agent_id, server in servers.items():
            served.register(server.url, agent_id)
        started = time.monotonic()
        answer = served.query(**ASKED, timeout_ms=60_000)
        took[budget_s] = time.monotonic() - started
        late = [] if budget_s > 4 else [("slow", "no answer in time: after the others it was given 0.5 s")]
        assert [(gap["agent_id"], gap["reason"]) for gap in answer["coverage_gaps"]] == late
    print(took)  # noqa: T201 - a figure
    assert took[0.5] < took[60.0]


def test_a_filter_that_an_agent_does_not_take_is_not_lost(joined: Join) -> None:
    served, server = joined()
    filters = {"documentation": {"format": "markdown"}}
    assert reason_of(served, filters=filters) == "does not take the filter 'format', so it was not asked"
    assert server.asked == []
    served.register(server.url, capabilities={"filters": ["format"], "accepts": ["timeout_ms"]})
    assert len(served.query(**ASKED, filters=filters)["items"]) == 3
    asked = server.asked[0]["body"]
    assert asked["filters"] == {"format": "markdown"}
    assert 0 < asked["timeout_ms"] < 5_000


def test_an_agent_that_is_late_is_given_the_configured_time(joined: Join) -> None:
    served, _ = joined("slow 6", agents={"wait_s": 1.1})
    assert reason_of(served, timeout_ms=60_000) == "no answer in time: it was given 1.1 s"
    assert served.measured("failures") == 1
