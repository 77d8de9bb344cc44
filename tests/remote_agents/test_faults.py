"""Whatever an agent does, a question is answered by its deadline, and the agent is a coverage gap that says why."""

import time
from collections.abc import Callable

import pytest
from remote_hub import ForeignServer, Hub
from waiting import GENEROUS_MS, SOON_S, until

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


def test_after_three_failures_an_agent_is_left_alone_and_it_comes_back_by_itself(joined: Join) -> None:
    served, server = joined("status 500")
    for _ in range(3):
        assert "status 500" in reason_of(served)
    assert served.listed()[server.url]["breaker"] == "open"
    assert (served.measured("failures"), served.measured("breakers_open", "")) == (3, 1)
    page = served.http.get("/status", headers={"accept": "text/html"}).text
    for shown in (server.url, "open: left alone after failures", "not known yet", "just now"):
        assert shown in page
    assert "is left alone for" in reason_of(served)
    assert len(server.asked) == 3
    server.answers("answer")
    until(lambda: served.query(**ASKED)["items"])
    assert served.listed()[server.url]["breaker"] == "closed"


def test_a_slow_address_is_hedged_by_another_one(foreign: Start, hub: Serve) -> None:
    slow, quick = foreign("hang"), foreign()
    served = hub(slow.url, quick.url)
    for server in (slow, quick):
        served.register(server.url)
    for _ in range(8):  # of two addresses each is the first one in half of the cases
        assert len(served.query(**ASKED, timeout_ms=60_000)["items"]) == 3
    assert len(quick.asked) == 8
    twice = len(slow.asked)
    assert served.measured("requests") == 8 + twice
    assert served.measured("hedges") == twice
    assert served.measured("failures") <= twice  # those that were given a second and more


def test_an_address_that_died_is_replaced_within_the_same_question(foreign: Start, hub: Serve) -> None:
    dead, alive = foreign(), foreign()
    served = hub(dead.url, alive.url)
    for server in (dead, alive):
        served.register(server.url)
    dead.kill()
    for _ in range(8):
        answer = served.query(**ASKED)
        assert len(answer["items"]) == 3
        assert answer["coverage_gaps"] == []


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


def test_a_quick_agent_that_hangs_is_not_waited_for_as_long_as_a_slow_one(joined: Join) -> None:
    served, server = joined(agents={"wait_s": 60})
    for _ in range(16):
        assert served.query(**ASKED, timeout_ms=60_000)["items"]
    server.answers("slow 4")
    reason = reason_of(served, timeout_ms=60_000)
    assert reason.startswith("no answer in time: it was given ")
    assert float(reason.split()[-2]) < SOON_S
    assert served.listed()[server.url]["p95_ms"] is not None, "known after sixteen answers"


def test_an_agent_that_is_always_late_is_soon_left_alone(joined: Join) -> None:
    served, _ = joined("slow 6", agents={"wait_s": 1.1})
    for _ in range(3):
        assert reason_of(served, timeout_ms=60_000) == "no answer in time: it was given 1.1 s"
    assert "is left alone for" in reason_of(served, timeout_ms=60_000)
