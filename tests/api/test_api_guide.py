"""``docs/api.md``: the requests that it shows are requests, the limits that it names are the limits."""

import json
import re
from pathlib import Path

import pytest
from api_support import Ask, is_problem
from scripted_engine import ScriptedEngine

from api.routes.inbox import MAX_DOCUMENTS
from api.server.limits import MAX_BODY_BYTES, MAX_FILES_BYTES, MAX_WAITING
from api.state import QUESTIONS
from nornweave.ask.agents.exchange import MAX_CONTENT_CHARACTERS, MAX_ITEMS
from nornweave.ask.feedback import REMEMBERED_ANSWERS, REMEMBERED_DAYS
from nornweave.core.text.checked_values import MAX_DEPTH

GUIDE = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
CALLS = re.findall(
    r"curl -s http://127\.0\.0\.1:8082(\S+) -H 'content-type: application/json' -d '(.+?)'\n```", GUIDE, re.S
)


@pytest.mark.parametrize(("path", "body"), CALLS, ids=[path for path, _ in CALLS])
def test_a_request_of_the_guide_is_answered(ask: Ask, engine: ScriptedEngine, path: str, body: str) -> None:
    request = json.loads(body)
    if path == "/feedback":
        engine.remember(request["query_id"], request["chunk_id"])
    # The document of the guide is not in the corpus of these tests.
    expected = {"/agents/documentation/ingest": 202, "/why": 404}
    assert ask("POST", path, json=request).status_code == expected.get(path, 200)


def test_the_guide_shows_a_request_to_every_route_that_takes_a_body() -> None:
    assert {path for path, _ in CALLS} == {"/query", "/why", "/feedback", "/fuse", "/agents/documentation/ingest"}


def test_its_answers_are_json() -> None:
    blocks = re.findall(r"```json\n(.+?)```", GUIDE, re.S)
    assert len(blocks) >= 5
    for block in blocks:
        json.loads(block)


def test_its_problem_is_the_one_that_is_answered(look: Ask) -> None:
    shown = next(json.loads(one) for one in re.findall(r"```json\n(.+?)```", GUIDE, re.S) if "invalid-request" in one)
    assert is_problem(look("POST", "/query", json={"query": "refunds", "top_k": 0, "domain": "code"}), 422) == shown


def test_its_limits_are_the_limits() -> None:
    assert f"At most {MAX_ITEMS:,} items, {MAX_CONTENT_CHARACTERS:,} characters each" in GUIDE
    assert f"in {MAX_BODY_BYTES >> 20} MiB" in GUIDE
    assert f"files of {MAX_FILES_BYTES >> 20} MiB in all" in GUIDE
    assert f"1 to {MAX_DOCUMENTS:,} documents" in GUIDE
    assert f"up to {MAX_DEPTH} levels deep" in GUIDE
    assert f"after {REMEMBERED_DAYS} days, or when {REMEMBERED_ANSWERS:,} newer ones" in GUIDE
    assert f"and {QUESTIONS} questions to all domains; up to {MAX_WAITING} of each wait" in GUIDE
