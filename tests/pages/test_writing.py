"""An answer that a model writes: its pieces appear as they come, and its citations are links to the passages."""

import re
from collections.abc import Iterator

import httpx
import pytest
from openai_server import LITELLM_WARNINGS, Behaviour, ModelServer
from page_server import WITH_AXE, Opened, check, serving
from playwright.sync_api import Locator, expect

from nornweave.config import Settings
from nornweave.config.workspace import FusionSettings

pytestmark = LITELLM_WARNINGS
ASKED = "/?q=what+is+the+webhook+timeout"
LINE = 'a = "# none of these words begins a heading, and a line of code is as long as it is, wherever it is read"'
# Models write Markdown, whatever they are asked for.
MARKDOWN = """Ten *seconds* {cited}, says <b>the `code`</b>
and [a link](http://tracker.invalid/).

## What to do

- **wait** {cited} at most_of_the_time
- go on

3. `x * y * z`

```python
{line}

- b
```
Done [note:x]."""
ELEMENTS = [
    ("em", "seconds"), ("a", "1"), ("code", "code"), ("heading", "What to do"), ("li", "wait 1 at most_of_the_time"),
    ("strong", "wait"), ("a", "1"), ("li", "go on"), ("li", "x * y * z"), ("code", "x * y * z"),
    ("line", LINE), ("line", ""), ("line", "- b"),
]  # fmt: skip


def elements(written: Locator) -> list[tuple[str, str]]:
    """Return what the text has of markup, in order, but for links to elsewhere, which only one of the pages reads."""
    named = "each.matches('.line, .heading') ? each.classList[0] : each.localName"
    found = written.locator("em, strong, code, li, a.cite, .heading, .line").evaluate_all(
        f"all => all.map(each => [{named}, each.textContent.trim()])"
    )
    assert "< b>the code< /b>" in written.inner_text() and "Done [note:x]." in written.inner_text()
    assert written.locator("ol").get_attribute("start") == "3"
    return [(name, text) for name, text in found]


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer() as server, pytest.MonkeyPatch.context() as environment:
        environment.setenv("OPENAI_API_BASE", f"{server.address}/v1")
        environment.setenv("OPENAI_API_KEY", "xk_nornweave_0123456789abcdef")
        yield server


@pytest.fixture(scope="module")
def url(corpus: Settings, model: ModelServer) -> Iterator[str]:
    limits = {"synthesis_timeout_ms": 60_000, "fusion_timeout_seconds": 60}
    fusion = FusionSettings(synthesis_model="openai/first", synthesis_fallback="", **limits)
    with serving(corpus.model_copy(update={"fusion": fusion})) as address:
        yield address


def test_the_defaults_are_no_choice() -> None:
    assert not FusionSettings().names_a_model
    assert not FusionSettings(synthesis_top_k=3, synthesis_model=" ").names_a_model
    assert FusionSettings(synthesis_model="gpt-4o-mini").names_a_model
    assert FusionSettings(synthesis_fallback="ollama/x").names_a_model


def test_citations_of_a_written_answer_open_the_passages(url: str, model: ModelServer, open_page: Opened) -> None:
    item = httpx.get(f"{url}/.json{ASKED[1:]}").json()["items"][0]
    cited = f"[{item['citation']['domain_id']}:{item['chunk_id']}]"
    model.behaviours["first"] = Behaviour(kind="dribbles", text=MARKDOWN.format(cited=cited, line=LINE))
    page = open_page(url + ASKED, **WITH_AXE)
    page.get_by_role("button", name="Write an answer").click()
    written = page.locator("#written")
    expect(written.locator(".source")).to_have_text("Written by openai/first out of the passages below.")
    assert elements(written) == ELEMENTS
    check(page, "with a written answer")
    written.get_by_role("link", name="1").first.click()
    expect(page.locator("#panel .passage")).to_have_attribute("data-chunk", item["chunk_id"])


def test_without_a_script_the_page_comes_with_the_text_and_the_thread_goes_on(
    url: str, model: ModelServer, open_page: Opened
) -> None:
    item = httpx.get(f"{url}/.json{ASKED[1:]}").json()["items"][0]
    cited = f"[{item['citation']['domain_id']}:{item['chunk_id']}]"
    model.behaviours["first"] = Behaviour(text=MARKDOWN.format(cited=cited, line=LINE))
    page = open_page(url + ASKED, java_script_enabled=False)
    page.get_by_role("link", name="Write an answer").click()
    expect(page.locator(".written .source")).to_have_text("Written by openai/first out of the passages below.")
    assert elements(page.locator(".written")) == ELEMENTS
    page.locator(".on").get_by_role("textbox").fill("why?")
    page.get_by_role("button", name="Follow up").click()
    expect(page.get_by_label("Asked before")).to_contain_text("what is the webhook timeout")
    expect(page.locator(".written .text")).to_be_visible()
    assert "what is the webhook timeout why?" in model.requests[-1]["messages"][-1]["content"]

    asked = len(model.requests)
    for site in ("cross-site", "same-site"):
        answer = httpx.get(url + ASKED + "&write=on", headers={"accept": "text/html", "sec-fetch-site": site})
        assert answer.status_code == 200 and 'class="text doc"' in answer.text
    assert len(model.requests) == asked, "a page of another site costs nothing"
    model.behaviours["first"] = Behaviour(kind="fails")
    page.reload()
    expect(page.locator(".written")).to_contain_text("No answer was written: openai/first")


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [(Behaviour(kind="fails"), "openai/first"), (Behaviour(kind="dribbles", text="word " * 5000), "Stopped.")],
)
def test_a_text_that_is_not_written_says_why(
    url: str, model: ModelServer, open_page: Opened, behaviour: Behaviour, words: str
) -> None:
    model.behaviours["first"] = behaviour
    page = open_page(url + ASKED)
    page.get_by_role("button", name="Write an answer").click()
    if behaviour.kind == "dribbles":
        expect(page.locator("#written .text")).to_contain_text("word word")
        page.get_by_role("button", name="Stop").click()
    expect(page.locator("#written .source")).to_contain_text(re.compile(re.escape(words)))
    expect(page.get_by_role("button", name="Write it anew")).to_be_visible()
