"""``/health`` answers at once; ``/ready`` when every served domain does, and says which does not."""

from typing import Any

import pytest
from api_support import Ask, client_of, is_problem
from pydantic import TypeAdapter
from scripted_engine import ScriptedAgent, ScriptedEngine, unpublish

from api.schemas import ReadinessDocument
from nornweave.ask.search.records import AgentState
from nornweave.config import Settings
from nornweave.core.access import ANYONE
from nornweave.core.types import Domain


def readiness(answer: Any, status: int) -> dict[str, Any]:
    """Check that an answer of ``/ready`` has its shape, as a problem document where it is none to rely on."""
    document: dict[str, Any] = answer.json() if status == 200 else is_problem(answer, status)
    assert answer.status_code == status
    own = {key: document[key] for key in ("ready", "domains")}
    declared = TypeAdapter(ReadinessDocument)
    assert declared.dump_python(declared.validate_python(own), mode="json") == own
    return document


def test_the_process_is_alive_before_anything_is_loaded(ask: Ask, code: ScriptedAgent) -> None:
    code.state = AgentState.STARTING
    answer = ask("GET", "/health")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


@pytest.mark.parametrize("state", [AgentState.READY, AgentState.DEGRADED])
def test_ready_once_every_domain_answers(ask: Ask, code: ScriptedAgent, state: AgentState) -> None:
    code.state = state
    document = readiness(ask("GET", "/ready"), 200)
    assert document["ready"]
    of_code = document["domains"]["code"]
    assert of_code.pop("age_s") >= 0 and of_code.pop("indexed_at")
    assert of_code == {
        "ready": True, "state": state, "generation": "gen-000001", "published": "gen-000001", "behind_s": 0.0,
        "reason": None,
    }  # fmt: skip


async def test_a_domain_without_a_generation_is_named_with_the_reason(settings: Settings) -> None:
    unpublish(settings, Domain.CODE)
    async with client_of(settings, ScriptedEngine(settings)) as client:
        answer = await client.get("/ready")
    document = readiness(answer, 503)
    assert not document["ready"]
    assert not document["domains"]["code"]["ready"]
    assert "nornweave sync" in document["domains"]["code"]["reason"]
    assert document["detail"].startswith("code: nothing is published")
    assert document["domains"]["documentation"]["ready"]
    assert int(answer.headers["retry-after"]) > 0


@pytest.mark.parametrize("state", [AgentState.STARTING, AgentState.DRAINING, AgentState.OFFLINE])
def test_an_agent_that_takes_no_requests_is_not_ready(ask: Ask, code: ScriptedAgent, state: AgentState) -> None:
    code.state = state
    document = readiness(ask("GET", "/ready"), 503)
    assert state.value in document["domains"]["code"]["reason"]


async def test_without_a_single_agent_nothing_is_ready(settings: Settings) -> None:
    engine = ScriptedEngine(settings)
    engine.path.agents = {}
    async with client_of(settings, engine) as client:
        readiness(await client.get("/ready"), 503)
        assert (await client.get("/agents")).json() == {"agents": []}
        is_problem(await client.post("/agents/code/recall", json={"query_text": "x"}), 404)


async def test_the_engine_starts_in_the_background_and_is_closed(settings: Settings) -> None:
    engine = ScriptedEngine(settings)
    async with client_of(settings, engine) as client:
        assert readiness(await client.get("/ready"), 200)
    assert {agent.state for agent in engine.agents.values()} == {AgentState.OFFLINE}


def test_an_agent_served_alone_answers_at_the_root_too(ask: Ask, code: ScriptedAgent) -> None:
    alone = {"agent": Domain.CODE}
    for path in ("/recall", "/agents/code/recall"):
        assert len(ask("POST", path, app=alone, json={"query_text": "pay"}).json()["items"]) == 2
    for path in ("/describe", "/agents/code/describe"):
        assert ask("GET", path, app=alone).json() == code.describe(ANYONE)
    health = ask("GET", "/health", app=alone).json()
    assert health.keys() == {"status", *code.health(ANYONE)}
    assert (health["status"], health["agent_id"]) == ("ok", code.agent_id)
    assert [one["domain_id"] for one in ask("GET", "/agents", app=alone).json()["agents"]] == ["code"]
    is_problem(ask("POST", "/agents/documentation/recall", app=alone, json={"query_text": "x"}), 404)
    assert set(readiness(ask("GET", "/ready", app=alone), 200)["domains"]) == {"code"}


def test_nothing_is_at_the_root_otherwise(ask: Ask) -> None:
    is_problem(ask("POST", "/recall", json={"query_text": "x"}), 404)
    is_problem(ask("GET", "/describe"), 404)
