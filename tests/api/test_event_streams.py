"""``POST /query`` as ``text/event-stream``: the items at once, the text piece by piece, and nobody is waited for."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from api_support import Ask, is_problem
from live_server import live
from openai_server import LITELLM_WARNINGS, Behaviour, ModelServer
from scripted_engine import ScriptedEngine
from waiting import until

from api.app import create_app
from api.event_streams import StreamSlots
from api.schemas import prefers_events
from nornweave.config import Settings
from nornweave.core.errors import StoreError

WITHIN_S = 60.0
ACCEPT = {"accept": "text/event-stream"}
ASKED = {"query": "pay", "synthesize": True}

pytestmark = LITELLM_WARNINGS


@pytest.fixture
def url(settings: Settings, engine: ScriptedEngine, model: ModelServer) -> Iterator[str]:
    engine.write_with(synthesis_model="openai/first", synthesis_fallback="", synthesis_timeout_ms=int(WITHIN_S * 1000))
    with live(create_app(settings, engine, environment={})) as url:
        yield url


def events(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
    """Read events as they come: name and document."""
    name = ""
    for line in lines:
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def streamed(url: str, body: dict[str, Any]) -> list[tuple[str, Any]]:
    with httpx.stream("POST", f"{url}/query", json=body, headers=ACCEPT, timeout=WITHIN_S) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        return list(events(answer.iter_lines()))


def test_items_tokens_citations_done(url: str, model: ModelServer) -> None:
    first = streamed(url, {"query": "pay", "domains": ["code"]})[0][1]["items"][0]["chunk_id"]
    model.behaviours["first"] = Behaviour(
        text=f"It is paid [code:{first}] at once [code:nothing] or [docs:x, code:{first}]. ![x](https://evil.example/a)"
    )
    found = streamed(url, {**ASKED, "domains": ["code"]})
    names = [name for name, _ in found]
    assert names[0] == "items" and names[-2:] == ["citations", "done"]
    assert set(names[1:-2]) == {"token"} and len(names) > 5
    items, citations, done = found[0][1], found[-2][1], found[-1][1]
    assert items["items"] and items["synthesis"] is None
    text = "".join(document["text"] for name, document in found if name == "token")
    assert text == done["synthesis"] == f"It is paid [code:{first}] at once or [code:{first}]. ! [x] (link left out)"
    assert citations == {"cited": [first], "unknown_citations": ["code:nothing", "docs:x"]}
    assert (done["synthesis_details"]["links_left_out"], done["synthesis_details"]["reason"]) == (1, "1 link left out")
    assert done["query_id"] == items["query_id"] and done["synthesis_details"]["model"] == "openai/first"


def test_the_items_do_not_wait_for_the_model(url: str, model: ModelServer) -> None:
    model.behaviours["first"] = Behaviour(kind="hangs")
    with httpx.stream("POST", f"{url}/query", json=ASKED, headers=ACCEPT, timeout=WITHIN_S) as answer:
        name, document = next(events(answer.iter_lines()))
        assert name == "items" and document["items"]
    # Whoever goes ends the model's call as well, before anything was written.
    until(lambda: model.broken_off == model.asked("first"))


def test_a_client_that_goes_while_the_text_is_written_ends_the_models_call(url: str, model: ModelServer) -> None:
    model.behaviours["first"] = Behaviour(kind="dribbles", text="word " * 5000)
    with httpx.stream("POST", f"{url}/query", json=ASKED, headers=ACCEPT, timeout=WITHIN_S) as answer:
        names = (name for name, _ in events(answer.iter_lines()))
        assert next(names) == "items"
        assert next(names) == "token"
    until(lambda: model.broken_off == 1)


def test_a_model_that_fails_costs_the_text_alone(url: str, model: ModelServer) -> None:
    model.behaviours["first"] = Behaviour(kind="fails")
    found = streamed(url, ASKED)
    assert [name for name, _ in found] == ["items", "citations", "done"]
    done = found[-1][1]
    assert done["synthesis"] is None and "openai/first" in done["synthesis_details"]["reason"]


def test_a_text_that_breaks_off_says_so(url: str, model: ModelServer) -> None:
    model.behaviours["first"] = Behaviour(kind="dies", text="word " * 20)
    found = streamed(url, ASKED)
    done = found[-1][1]
    assert done["synthesis"].startswith("word word") and "broken off" in done["synthesis_details"]["reason"]
    assert "".join(document["text"] for name, document in found if name == "token") == done["synthesis"]


def test_without_a_text_there_are_items_and_the_end(url: str, model: ModelServer) -> None:
    found = streamed(url, {"query": "pay"})
    assert [name for name, _ in found] == ["items", "done"]
    assert found[1][1]["synthesis"] is None and found[1][1]["synthesis_details"] is None
    assert model.requests == []


@pytest.mark.parametrize(("accept", "wanted"), [
    ("text/event-stream", True), ("text/event-stream, application/json;q=0.5", True),
    ("application/json, text/event-stream", False), ("text/event-stream;q=0.4, */*;q=0.5", False),
    ("text/event-stream;q=x", False), ("*/*", False), ("", False),
])  # fmt: skip
def test_events_are_sent_to_who_prefers_them(accept: str, wanted: bool) -> None:
    assert prefers_events(accept) is wanted


def test_errors_before_the_first_event_are_problems(ask: Ask, engine: ScriptedEngine) -> None:
    is_problem(ask("POST", "/query", json={"query": ""}, headers=ACCEPT), 422)
    engine.failure = StoreError("is shutting down; ask again later")
    is_problem(ask("POST", "/query", json={"query": "pay"}, headers=ACCEPT), 503)
    engine.failure = None
    problem = is_problem(ask("POST", "/query", json={"query": "pay", "format": "text"}, headers=ACCEPT), 422)
    assert problem["errors"][0]["field"] == "format"


def test_one_address_opens_so_many_streams_and_gets_each_slot_back(
    settings: Settings, engine: ScriptedEngine, model: ModelServer
) -> None:
    model.behaviours["first"] = Behaviour(kind="hangs")
    engine.write_with(synthesis_model="openai/first", synthesis_fallback="", synthesis_timeout_ms=60_000)
    app = create_app(settings, engine, environment={})
    most = app.state.serving.streams._of_one
    slots = app.state.serving.streams
    for _ in range(most - 1):
        slots.take("127.0.0.1")
    with live(app) as url, httpx.Client(timeout=WITHIN_S) as client:
        with client.stream("POST", f"{url}/query", json=ASKED, headers=ACCEPT) as answer:
            coming = events(answer.iter_lines())  # a reader that is forgotten ends the stream
            assert next(coming)[0] == "items"
            refused = client.post(f"{url}/query", json=ASKED, headers=ACCEPT)
            assert "event streams" in is_problem(refused, 429)["detail"] and refused.headers["retry-after"]
        until(lambda: slots._open.total() == most - 1, lambda: "a stream that ended kept its slot")
        engine.failure = StoreError("is shutting down; ask again later")
        is_problem(client.post(f"{url}/query", json=ASKED, headers=ACCEPT), 503)
        assert slots._open.total() == most - 1, "a question that failed kept its slot"


def test_slots_are_counted_by_address_and_in_all() -> None:
    slots = StreamSlots(most=3, of_one_address=2)
    first, second = slots.take("10.0.0.1"), slots.take("10.0.0.1")
    with pytest.raises(Exception, match="at most 2"):
        slots.take("10.0.0.1")
    slots.take("10.0.0.2")
    with pytest.raises(Exception, match="3 in all"):
        slots.take("10.0.0.3")
    first()
    second()
    slots.take("2001:db8::1")
    slots.take("2001:db8::2")
    with pytest.raises(Exception, match="3 in all"):
        slots.take("10.0.0.1")
