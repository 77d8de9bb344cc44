"""``/agents``: what comes in reaches the agent as it is meant, what goes out has the contract's shape."""

import pytest
from api_support import Ask, as_asked, conforms, is_problem
from scripted_engine import ScriptedAgent

from api.schemas import RegistryDocument
from nornweave.ask.search.records import AgentState
from nornweave.ask.views.items import RecallDocument
from nornweave.core.access import ANYONE
from nornweave.core.errors import NoGenerationError, QueryError, StoreError
from nornweave.core.types import Domain

RECALL = "/agents/code/recall"
CITATION = {
    "domain_id", "source_id", "source_path", "timestamp", "line_range", "char_range", "page", "section", "message_ids",
    "url", "title", "revision", "stale", "agent_id", "verified_at",
}  # fmt: skip


def test_only_the_text_is_required(look: Ask, still_code: ScriptedAgent) -> None:
    answer = look("POST", RECALL, json={"query_text": "pay"})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    (asked,) = still_code.asked
    assert asked == as_asked(asked, "pay", viewer=ANYONE, domains=(Domain.CODE,), filters={Domain.CODE: {}})
    assert asked.deadline is not None and asked.deadline.timeout_ms == 5000


def test_everything_that_is_asked_reaches_the_agent(look: Ask, still_code: ScriptedAgent) -> None:
    body = {
        "query_text": "zählt 🙂\ttabs", "top_k": 1, "filters": {"language": "python"}, "expand": "on", "rerank": "off",
        "timeout_ms": None, "explain": True,
    }  # fmt: skip
    assert look("POST", RECALL, json=body).status_code == 200
    (asked,) = still_code.asked
    filters = {Domain.CODE: {"language": "python"}}
    assert asked == as_asked(
        asked, "zählt 🙂\ttabs", domains=(Domain.CODE,), top_k=1, filters=filters, expand="on", rerank="off",
        deadline=None, explain=True,
    )  # fmt: skip


def test_the_answer_has_the_shape_of_the_contract(look: Ask, still_code: ScriptedAgent) -> None:
    answer = look("POST", RECALL, json={"query_text": "refund", "explain": True, "expand": "on"}).json()
    conforms(RecallDocument, answer)
    assert (answer["agent_id"], answer["domain_id"]) == (still_code.agent_id, "code")
    assert answer["total_searched"] == 3
    assert answer["retrieval"] == {"dense": "ok", "sparse": "ok", "fulltext": "empty", "structured": "ok"}
    assert (answer["generation"], answer["notices"]) == ("gen-000001", [])
    first = answer["items"][0]
    assert first["score"]["signals"]["sparse"] > 0
    assert set(first["citation"]) == CITATION
    assert (first["citation"]["source_id"], first["citation"]["source_path"]) == ("ledger", "refund.py")
    assert (first["citation"]["line_range"], first["citation"]["message_ids"]) == ([1, 2], None)
    assert first["sources"]["sparse"]["rank"] == 1
    assert first["metadata"]["language"] == "python"


def test_without_explain_there_is_no_explanation(look: Ask) -> None:
    item = look("POST", RECALL, json={"query_text": "pay"}).json()["items"][0]
    assert item["score"]["signals"] == {}
    assert "explanation" not in item


def test_the_registry_lists_every_agent_with_its_state(ask: Ask, documentation: ScriptedAgent) -> None:
    documentation.lose_encoder()
    registry = ask("GET", "/agents").json()
    conforms(RegistryDocument, registry)
    assert [(one["agent_id"], one["state"], one["generation"]) for one in registry["agents"]] == [
        ("code-memory", "READY", "gen-000001"),
        ("docs-memory", "DEGRADED", "gen-000001"),
    ]


def test_describe_and_health_are_what_the_agent_says(ask: Ask, code: ScriptedAgent) -> None:
    assert ask("GET", "/agents/code/describe").json() == code.describe(ANYONE)
    code.close()
    answer = ask("GET", "/agents/code/health")
    assert answer.status_code == 200, "the state is in the body; /ready is what a load balancer asks"
    assert answer.json()["state"] == code.health(ANYONE)["state"] == "OFFLINE"


@pytest.mark.parametrize("path", ["recall", "describe", "health"])
@pytest.mark.parametrize("domain", ["research", "kode", "CODE", "%00", "%ff", "..%2f.."])
def test_a_domain_that_is_not_served_is_not_found(look: Ask, domain: str, path: str) -> None:
    method = "POST" if path == "recall" else "GET"
    problem = is_problem(look(method, f"/agents/{domain}/{path}", json={"query_text": "x"}), 404)
    if "/" not in domain and "2f" not in domain:
        assert "served: code, documentation" in problem["detail"]


@pytest.mark.parametrize(("failure", "kind", "said"), [
    (NoGenerationError("nothing is published yet; run `nornweave sync`"), "no-generation", "nornweave sync"),
    (StoreError("gen-000001: cannot be read, roll back or sync again"), "store-unavailable", "roll back"),
])  # fmt: skip
def test_an_agent_that_cannot_answer_says_why(
    ask: Ask, code: ScriptedAgent, failure: Exception, kind: str, said: str
) -> None:
    code.failure = failure
    answer = ask("POST", RECALL, json={"query_text": "pay"})
    problem = is_problem(answer, 503)
    assert said in problem["detail"]
    assert problem["type"] == f"urn:nornweave:problem:{kind}"
    assert int(answer.headers["retry-after"]) > 0


@pytest.mark.parametrize("state", [AgentState.STARTING, AgentState.DRAINING, AgentState.OFFLINE])
def test_an_agent_that_takes_no_requests_is_not_asked(ask: Ask, code: ScriptedAgent, state: AgentState) -> None:
    code.state = state
    answer = ask("POST", RECALL, json={"query_text": "pay", "timeout_ms": 100})
    assert state.value in is_problem(answer, 503)["detail"]
    assert int(answer.headers["retry-after"]) > 0
    assert code.asked == []


def test_what_the_agent_refuses_is_named_as_in_the_body(ask: Ask, code: ScriptedAgent) -> None:
    problem = is_problem(ask("POST", RECALL, json={"query_text": "pay", "filters": {"colour": "red"}}), 422)
    assert [error["field"] for error in problem["errors"]] == ["filters.colour"]
    code.failure = QueryError("query", "no words in it")
    problem = is_problem(ask("POST", RECALL, json={"query_text": "?"}), 422)
    assert problem["errors"] == [{"field": "query_text", "detail": "no words in it"}]
