"""``/health`` answers at once; ``/ready`` when every served domain does, and says which does not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from api_support import Ask, MemoryAgent, MemoryEngine, client_of, is_problem
from pydantic import TypeAdapter

from api.schemas import ReadinessDocument
from nornweave.ask.search.records import AgentState
from nornweave.config import Settings
from nornweave.core.types import Domain


def readiness(answer: Any, status: int) -> dict[str, Any]:
    """Check that an answer of ``/ready`` has its shape, as a problem document where it is none to rely on."""
    document: dict[str, Any] = answer.json() if status == 200 else is_problem(answer, status)
    assert answer.status_code == status
    own = {key: document[key] for key in ("ready", "domains")}
    declared = TypeAdapter(ReadinessDocument)
    assert declared.dump_python(declared.validate_python(own), mode="json") == own
    return document


def test_the_process_is_alive_before_anything_is_loaded(ask: Ask, code: MemoryAgent) -> None:
    code.state, code.generation = AgentState.STARTING, None
    answer = ask("GET", "/health")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


@pytest.mark.parametrize("state", [AgentState.READY, AgentState.DEGRADED])
def test_ready_once_every_domain_answers(ask: Ask, code: MemoryAgent, state: AgentState) -> None:
    code.state = state
    document = readiness(ask("GET", "/ready"), 200)
    assert document["ready"]
    assert document["domains"]["code"] == {
        "ready": True, "state": state, "generation": "gen-000001", "published": "gen-000001",
        "indexed_at": "2026-01-20T10:00:00Z", "age_s": 60.0, "behind_s": 0.0, "reason": None,
    }  # fmt: skip


def test_a_domain_without_a_generation_is_named_with_the_reason(ask: Ask, code: MemoryAgent) -> None:
    code.generation = None
    answer = ask("GET", "/ready")
    document = readiness(answer, 503)
    assert not document["ready"]
    assert not document["domains"]["code"]["ready"]
    assert "nornweave sync" in document["domains"]["code"]["reason"]
    assert document["detail"].startswith("code: nothing is published")
    assert document["domains"]["documentation"]["ready"]
    assert int(answer.headers["retry-after"]) > 0


@pytest.mark.parametrize("state", [AgentState.STARTING, AgentState.DRAINING, AgentState.OFFLINE])
def test_an_agent_that_takes_no_requests_is_not_ready(ask: Ask, code: MemoryAgent, state: AgentState) -> None:
    code.state = state
    document = readiness(ask("GET", "/ready"), 503)
    assert state.value in document["domains"]["code"]["reason"]


def test_without_a_single_agent_nothing_is_ready(settings: Settings) -> None:
    async def main() -> None:
        async with client_of(settings, MemoryEngine()) as client:
            readiness(await client.get("/ready"), 503)
            assert (await client.get("/agents")).json() == {"agents": []}
            is_problem(await client.post("/agents/code/recall", json={"query_text": "x"}), 404)

    asyncio.run(main())


def test_the_engine_starts_in_the_background_and_is_closed(settings: Settings, engine: MemoryEngine) -> None:
    async def main() -> None:
        async with client_of(settings, engine):
            assert engine.calls == ["start wait=False"]
        assert engine.calls == ["start wait=False", "close"]

    asyncio.run(main())


def test_an_agent_served_alone_answers_at_the_root_too(ask: Ask, code: MemoryAgent) -> None:
    alone = {"agent": Domain.CODE}
    for path in ("/recall", "/agents/code/recall"):
        assert len(ask("POST", path, app=alone, json={"query_text": "pay"}).json()["items"]) == 2
    for path in ("/describe", "/agents/code/describe"):
        assert ask("GET", path, app=alone).json() == code.describe()
    assert ask("GET", "/health", app=alone).json() == {"status": "ok", **code.health()}
    assert [one["domain_id"] for one in ask("GET", "/agents", app=alone).json()["agents"]] == ["code"]
    is_problem(ask("POST", "/agents/documentation/recall", app=alone, json={"query_text": "x"}), 404)
    assert set(readiness(ask("GET", "/ready", app=alone), 200)["domains"]) == {"code"}


def test_nothing_is_at_the_root_otherwise(ask: Ask) -> None:
    is_problem(ask("POST", "/recall", json={"query_text": "x"}), 404)
    is_problem(ask("GET", "/describe"), 404)
