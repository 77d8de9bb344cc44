"""``/agents``: what comes in reaches the agent as it is meant, what goes out has the contract's shape."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from api_support import Ask, MemoryAgent, MemoryEngine, client_of, conforms, is_problem

from api.schemas import RegistryDocument
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import AgentState
from nornweave.ask.views import RecallDocument
from nornweave.config import Settings
from nornweave.core.access.viewer import ANYONE
from nornweave.core.types import Domain

RECALL = "/agents/code/recall"
CITATION = {
    "domain_id", "source_id", "source_path", "timestamp", "line_range", "char_range", "page", "section", "message_ids",
    "url", "title", "revision", "stale",
}  # fmt: skip


def test_only_the_text_is_required(ask: Ask, code: MemoryAgent) -> None:
    answer = ask("POST", RECALL, json={"query_text": "pay"})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    (asked,) = code.asked
    assert asked == Question(
        text="pay",
        now=asked.now,
        query_id=asked.query_id,
        trace_id=asked.trace_id,
        viewer=ANYONE,
        domains=(Domain.CODE,),
        filters={Domain.CODE: {}},
        deadline=asked.deadline,
    )
    assert asked.deadline is not None and asked.deadline.timeout_ms == 5000


def test_everything_that_is_asked_reaches_the_agent(ask: Ask, code: MemoryAgent) -> None:
    body = {
        "query_text": "zählt 🙂\ttabs",
        "top_k": 1,
        "filters": {"language": "python"},
        "expand": "on",
        "rerank": "off",
        "timeout_ms": None,
        "explain": True,
    }
    assert len(ask("POST", RECALL, json=body).json()["items"]) == 1
    (asked,) = code.asked
    assert asked == Question(
        text="zählt 🙂\ttabs",
        now=asked.now,
        query_id=asked.query_id,
        trace_id=asked.trace_id,
        viewer=ANYONE,
        domains=(Domain.CODE,),
        top_k=1,
        filters={Domain.CODE: {"language": "python"}},
        expand="on",
        rerank="off",
        deadline=None,
        explain=True,
    )


def test_the_answer_has_the_shape_of_the_contract(ask: Ask) -> None:
    answer = ask("POST", RECALL, json={"query_text": "pay", "explain": True, "expand": "on", "rerank": "on"}).json()
    conforms(RecallDocument, answer)
    assert (answer["agent_id"], answer["domain_id"]) == ("code-memory", "code")
    assert (answer["latency_ms"], answer["total_searched"]) == (1.235, 2)
    assert answer["retrieval"] == {"dense": "ok", "sparse": "empty", "fulltext": "off", "structured": "failed"}
    assert (answer["generation"], answer["indexed_at"]) == ("gen-000001", "2026-01-20T10:00:00Z")
    assert (answer["notices"], answer["expansions"]) == (["structured: not built"], ["pay money"])
    first, second = answer["items"]
    assert first["score"] == {"value": 0.9, "signals": {"dense": 0.5, "symbol_match": 0.15}}
    assert first["explanation"]["combined"] == 0.5
    assert set(first["citation"]) == CITATION
    assert first["citation"]["timestamp"] == "2026-01-20T10:00:00Z"
    assert first["citation"]["source_path"] == "src/größe/0.py"
    assert (first["citation"]["line_range"], first["citation"]["message_ids"]) == ([1, 2], None)
    assert second["citation"]["message_ids"] == ["1.0", "2.0"]
    assert first["sources"] == {"dense": {"rank": 1, "score": 0.71}}
    assert first["rerank_score"] == 0.5
    assert first["metadata"] == {"language": "python", "nested": {"a": ["b", 1]}}


def test_without_explain_there_is_no_explanation(ask: Ask) -> None:
    item = ask("POST", RECALL, json={"query_text": "pay"}).json()["items"][0]
    assert item["score"]["signals"] == {}
    assert "explanation" not in item


def test_the_registry_lists_every_agent_with_its_state(ask: Ask, documentation: MemoryAgent) -> None:
    documentation.state = AgentState.DEGRADED
    registry = ask("GET", "/agents").json()
    conforms(RegistryDocument, registry)
    assert [(one["agent_id"], one["state"], one["generation"]) for one in registry["agents"]] == [
        ("code-memory", "READY", "gen-000001"),
        ("documentation-memory", "DEGRADED", "gen-000001"),
    ]


def test_describe_and_health_are_what_the_agent_says(ask: Ask, code: MemoryAgent) -> None:
    assert ask("GET", "/agents/code/describe").json() == code.describe()
    code.state, code.generation = AgentState.OFFLINE, None
    answer = ask("GET", "/agents/code/health")
    assert answer.status_code == 200, "the state is in the body; /ready is what a load balancer asks"
    assert answer.json() == code.health()


@pytest.mark.parametrize("path", ["recall", "describe", "health"])
@pytest.mark.parametrize("domain", ["research", "kode", "CODE", "%00", "%ff", "..%2f.."])
def test_a_domain_that_is_not_served_is_not_found(ask: Ask, domain: str, path: str) -> None:
    method = "POST" if path == "recall" else "GET"
    problem = is_problem(ask(method, f"/agents/{domain}/{path}", json={"query_text": "x"}), 404)
    if "/" not in domain and "2f" not in domain:
        assert "served: code, documentation" in problem["detail"]


def test_nothing_published_yet_is_said_with_the_way_out(ask: Ask, code: MemoryAgent) -> None:
    code.generation = None
    answer = ask("POST", RECALL, json={"query_text": "pay"})
    problem = is_problem(answer, 503)
    assert "nornweave sync" in problem["detail"]
    assert problem["type"] == "urn:nornweave:problem:no-generation"
    assert int(answer.headers["retry-after"]) > 0


def test_a_generation_that_cannot_be_read(ask: Ask) -> None:
    answer = ask("POST", RECALL, json={"query_text": "damaged"})
    assert "roll back" in is_problem(answer, 503)["detail"]
    assert int(answer.headers["retry-after"]) > 0


@pytest.mark.parametrize("state", [AgentState.STARTING, AgentState.DRAINING, AgentState.OFFLINE])
def test_an_agent_that_takes_no_requests_is_not_asked(ask: Ask, code: MemoryAgent, state: AgentState) -> None:
    code.state = state
    answer = ask("POST", RECALL, json={"query_text": "pay", "timeout_ms": 100})
    assert state.value in is_problem(answer, 503)["detail"]
    assert int(answer.headers["retry-after"]) > 0
    assert code.asked == []


def test_who_asks_while_the_agent_starts_gets_an_answer_when_it_has(
    settings: Settings, engine: MemoryEngine, code: MemoryAgent
) -> None:
    code.state = AgentState.STARTING

    async def main() -> httpx.Response:
        async with client_of(settings, engine) as client:
            asked = asyncio.create_task(client.post(RECALL, json={"query_text": "pay", "timeout_ms": 60_000}))
            await asyncio.sleep(0.1)
            assert not asked.done()
            code.state = AgentState.READY
            return await asked

    assert asyncio.run(main()).status_code == 200


def test_a_degraded_agent_answers(ask: Ask, code: MemoryAgent) -> None:
    code.state = AgentState.DEGRADED
    assert ask("POST", RECALL, json={"query_text": "pay"}).status_code == 200


def test_what_the_agent_refuses_is_named_as_in_the_body(ask: Ask) -> None:
    problem = is_problem(ask("POST", RECALL, json={"query_text": "pay", "filters": {"colour": "red"}}), 422)
    assert problem["errors"] == [{"field": "filters.colour", "detail": "unknown filter; allowed: language"}]
    problem = is_problem(ask("POST", RECALL, json={"query_text": "wrong text"}), 422)
    assert problem["errors"] == [{"field": "query_text", "detail": "no words in it"}]
