"""The pages for people, as a browser without scripts sees them, and their data as JSON."""

import asyncio
import json
import re
from collections.abc import Iterator
from html import unescape
from urllib.parse import urlencode

import httpx
import pytest
from api_support import Ask, client_of, conforms, is_problem, publish
from scripted_engine import ScriptedAgent, ScriptedEngine, copied, ledger_entry, unpublish, write_ledger, write_status
from shared_engine import sharing

from nornweave.ask.views.answer import FusionResult
from nornweave.carry.wiring import domain_folder
from nornweave.config import Settings
from nornweave.core.errors import EMPTY, NoGenerationError, StoreError
from nornweave.core.types import Domain

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
PAGES = ["/", "/?q=pay", "/passages/{chunk}", "/conflicts", "/conflicts/Retry%20limit", "/quality", "/status"]
FORM = {"content-type": "application/x-www-form-urlencoded"}


def text_of(response: httpx.Response) -> str:
    """Return what a page says, without its markup."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", response.text)))


def happened(settings: Settings, engine: ScriptedEngine) -> None:
    """Write a ledger with entries, a domain in which everything went wrong, and an answer that can be judged."""
    write_ledger(
        settings,
        ledger_entry("Retry limit", Domain.CODE, Domain.DOCUMENTATION),
        ledger_entry("webhook timeout"),
        ledger_entry("retry delay", settled=True),
    )
    write_status(settings, Domain.CODE)
    engine.remember("q1", "chunk-0")


@pytest.fixture
def engine(engine: ScriptedEngine) -> ScriptedEngine:
    happened(engine.settings, engine)
    return engine


@pytest.fixture(scope="module")
def shared(published: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ScriptedEngine, Ask]]:
    with sharing(copied(published, tmp_path_factory.mktemp("pages"))) as shared:
        happened(shared[0].settings, shared[0])
        yield shared


@pytest.fixture
def chunk(still_engine: ScriptedEngine) -> str:
    """The id of a chunk of code, in every copy of the corpus."""
    return still_engine.chunk_of(Domain.CODE, "ledger", "refund.py")


@pytest.mark.parametrize("path", PAGES)
def test_pages_ask_nobody_else_and_run_nothing_of_their_own(look: Ask, chunk: str, path: str) -> None:
    page = look("GET", path.format(chunk=chunk), headers=BROWSER)
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "form-action 'self'" in policy and "unsafe" not in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["referrer-policy"] == "same-origin"
    assert page.headers["cache-control"] == "no-store"
    assert page.text.startswith("<!doctype html>")
    assert re.findall(r'(?:src|href|action)="(?:https?:)?//', page.text) == []
    assert re.findall(r"<script(?![^>]* src=)|<style|\sstyle=|\son\w+=", page.text) == []
    assert len(re.findall(r"<h1\b", page.text)) == 1
    for part in re.findall(r'(?:src|href)="(/web/[^"]+)"', page.text):
        answer = look("GET", part)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]


def test_the_own_bytes_of_a_page_are_few(look: Ask) -> None:
    page = look("GET", "/", headers=BROWSER)
    parts = [look("GET", path) for path in re.findall(r'(?:src|href)="(/web/[^"]+)"', page.text)]
    assert len(parts) == 2
    assert sum(len(part.content) for part in (page, *parts)) < 120_000


@pytest.mark.parametrize("path", PAGES)
def test_every_page_has_its_data_as_json(look: Ask, chunk: str, path: str) -> None:
    path = path.format(chunk=chunk)
    page = look("GET", path, headers=BROWSER)
    (address,) = set(re.findall(r'<link rel="alternate" type="application/json" href="([^"]+)">', page.text))
    by_suffix = look("GET", unescape(address))
    assert (by_suffix.status_code, by_suffix.headers["content-type"]) == (200, "application/json")
    by_accept = look("GET", path, headers={"accept": "application/json"})
    assert by_accept.headers["content-type"] == "application/json"
    assert by_accept.json().keys() == by_suffix.json().keys()


def test_a_question_of_the_page_is_a_question_of_the_api(look: Ask, still_engine: ScriptedEngine) -> None:
    query = urlencode([("q", "pay now"), ("domain", "code"), ("code.language", "python"), ("top_k", "5")])
    answer = look("GET", f"/.json?{query}")
    conforms(FusionResult, answer.json())
    filters = {"code": {"language": "python"}}
    body = {"query": "pay now", "domains": ["code"], "filters": filters, "top_k": 5, "explain": True}
    look("POST", "/query", json=body)
    page, program = still_engine.questions
    names = ("text", "domains", "filters", "top_k", "explain", "expand", "rerank", "strategy")
    assert [getattr(page, name) for name in names] == [getattr(program, name) for name in names]
    assert page.query_id and page.deadline and page.deadline.timeout_ms == 5000


def test_a_question_is_answered_with_where_and_why(look: Ask) -> None:
    said = text_of(look("GET", "/?q=refund", headers=BROWSER))
    for words in ("refund.py", "lines 1–2", "meaning (dense)", "of 3 shown", "rank 1"):
        assert words in said, words
    assert "defrefund(payment):" in said.replace(" ", "")


def test_a_model_writes_only_where_one_was_chosen(ask: Ask, engine: ScriptedEngine) -> None:
    assert "Write an answer" not in ask("GET", "/?q=pay", headers=BROWSER).text
    engine.write_with(synthesis_model="ollama/x")
    page = ask("GET", "/?q=pay&domain=code&code.language=python", headers=BROWSER).text
    (body,) = re.findall(r'data-write="([^"]+)"', page)
    assert json.loads(unescape(body)) == {
        "query": "pay",
        "domains": ["code"],
        "filters": {"code": {"language": "python"}},
        "synthesize": True,
    }


def test_a_domain_that_was_not_searched_is_named_above(ask: Ask, code: ScriptedAgent) -> None:
    code.failure = NoGenerationError("code: nothing is published yet; run `nornweave sync`")
    said = text_of(ask("GET", "/?q=pay", headers=BROWSER))
    assert "code was not searched : code: nothing is published yet" in said
    assert "1 of 2 domains searched" in said


@pytest.mark.parametrize(("query", "words"), [
    ("q=x&colour=red", "colour: no such field"),
    ("q=x&code.language=a&code.language=b", "given twice"),
    ("q=x&top_k=500", "top_k"),
    ("q=x&domain=poetry", "'poetry' is not served"),
    ("q=" + "x" * 32_001, "at most 32000"),
])  # fmt: skip
def test_what_cannot_be_asked_is_said_beside_the_question(look: Ask, query: str, words: str) -> None:
    page = look("GET", f"/?{query}", headers=BROWSER)
    assert page.status_code == 422
    assert words in text_of(page)
    assert 'name="q"' in page.text
    is_problem(look("GET", f"/.json?{query}"), 422)


@pytest.mark.parametrize(("address", "field"), [
    ("/status?x=1", "x"), ("/passages/x?lines=1", "lines"), ("/conflicts?x=1", "x"),
    ("/conflicts/Retry%20limit?limit=1", "limit"), ("/quality?set=x", "set"),
    ("/quality?domain=code&before=%00&after=b", "before"), ("/quality?domain=poetry&before=a&after=b", "domain"),
])  # fmt: skip
def test_unknown_and_wrong_fields_are_named(look: Ask, address: str, field: str) -> None:
    page = look("GET", address, headers=BROWSER)
    assert page.status_code == 422
    assert f"{field}: " in page.text or field in text_of(page)
    path, _, query = address.partition("?")
    assert is_problem(look("GET", f"{path}.json?{query}"), 422)["errors"][0]["field"] == field


def test_what_is_broken_is_a_page_to_people_and_a_problem_to_programs(ask: Ask, engine: ScriptedEngine) -> None:
    engine.failure = StoreError("gen-000001: cannot be read, roll back or sync again")
    page = ask("GET", "/?q=pay", headers=BROWSER)
    assert page.status_code == 503
    assert "cannot be read, roll back or sync again" in text_of(page)
    is_problem(ask("GET", "/?q=pay", headers={"accept": "application/json"}), 503)
    engine.failure = KeyError("secret detail of the implementation")
    is_problem(ask("GET", "/?q=pay", headers=BROWSER), 500)


@pytest.mark.parametrize(
    ("chunk_id", "words"), [("nothing", "No such passage"), ("a%00b", "NUL"), ("<script>", "No such passage")]
)
def test_a_passage_that_is_gone_says_so(look: Ask, chunk_id: str, words: str) -> None:
    page = look("GET", f"/passages/{chunk_id}", headers=BROWSER)
    assert page.status_code == 404
    assert words in text_of(page)
    is_problem(look("GET", f"/passages/{chunk_id}.json"), 404)


def test_a_domain_that_is_not_served_shows_nothing(look: Ask, chunk: str) -> None:
    alone = {"agent": Domain.DOCUMENTATION}
    assert look("GET", f"/passages/{chunk}", app=alone, headers=BROWSER).status_code == 404
    assert look("GET", "/status.json", app=alone).json().keys() == {"documentation"}
    said = text_of(look("GET", "/", app=alone, headers=BROWSER))
    assert "NornWeave documentation" in said
    assert " code " not in said


def test_the_ledger_is_filtered_by_a_form_with_blank_fields(look: Ask) -> None:
    said = text_of(look("GET", "/conflicts?entity=RETRY&domain=&settled=", headers=BROWSER))
    assert "1 open · 1 settled" in said
    assert "Retry limit · timeout" in said and "webhook" not in said
    page = look("GET", "/conflicts?settled=maybe", headers=BROWSER)
    assert page.status_code == 422
    assert "settled" in text_of(page)


def test_an_entry_of_the_ledger_has_a_permalink(look: Ask) -> None:
    said = text_of(look("GET", "/conflicts/Retry%20limit", headers=BROWSER))
    assert "probably holds" in said and "since 2026-01-19" in said and "newer" in said.lower()
    assert look("GET", "/conflicts/Retry%20limit.json").json()["entry_id"] == "Retry limit"
    assert look("GET", "/conflicts/none", headers=BROWSER).status_code == 404


def test_the_status_says_what_needs_somebody_and_what_to_type(ask: Ask, settings: Settings) -> None:
    (settings.file.parent / "code" / "refund.py").write_text("REFUND_DAYS = 7\n")
    publish(settings)
    write_status(settings, Domain.CODE)
    said = text_of(ask("GET", "/status", headers=BROWSER))
    for words in ("payments/a.pdf : the PDF is encrypted", "its last readable version answers", "2 removals held",
                  "9 of 10 documents are gone", "nornweave sync --domain code --confirm-deletes",
                  "no such folder: /srv/wiki", "nornweave rollback code", "failed: the encoder cannot be loaded",
                  "3: ignored by .gitignore"):  # fmt: skip
        assert words in said, words
    assert "1 document could not be read" in said
    file = domain_folder(settings, Domain.CODE) / "status.json"
    file.write_text(file.read_text("utf-8").replace("the PDF is encrypted", f"{EMPTY} nothing in it"), "utf-8")
    said = text_of(ask("GET", "/status", headers=BROWSER))
    assert "1 document without text left out" in said


def test_a_workspace_without_anything_says_how_to_begin(settings: Settings, ask: Ask) -> None:
    assert "Nothing can be asked yet" not in text_of(ask("GET", "/", headers=BROWSER))
    for domain in (Domain.CODE, Domain.DOCUMENTATION):
        unpublish(settings, domain)

    async def main() -> str:
        async with client_of(settings, ScriptedEngine(settings)) as client:
            return text_of(await client.get("/", headers=BROWSER)) + text_of(await client.get("/?q=x", headers=BROWSER))

    said = asyncio.run(main())
    assert "Nothing can be asked yet Add sources and sync them" in said
    assert said.count("not searched : nothing is published yet") == 1, "one reason is said once"


def test_quality_before_anything_was_measured(look: Ask) -> None:
    assert "Nothing was measured yet" in text_of(look("GET", "/quality", headers=BROWSER))
    page = look("GET", "/quality?domain=code&before=gen-000001&after=gen-000002", headers=BROWSER)
    assert page.status_code == 200


def test_a_judgment_is_stored_without_a_script(ask: Ask, engine: ScriptedEngine) -> None:
    fields = urlencode({"query_id": "q1", "chunk_id": "chunk-0", "useful": "true", "next": "/?q=pay#r1"})
    answer = ask("POST", "/feedback/form", content=fields, headers=FORM)
    assert (answer.status_code, answer.headers["location"]) == (303, "/?q=pay#r1")
    assert engine.judged == [("q1", "chunk-0", True)]
    gone = ask("POST", "/feedback/form", content=fields.replace("q1", "gone"), headers={**FORM, **BROWSER})
    assert (gone.status_code, "not remembered" in text_of(gone)) == (404, True)


def test_a_form_is_small(look: Ask) -> None:
    assert look("POST", "/feedback/form", content="x=" + "y" * 10_000, headers=FORM).status_code == 413
    assert look("POST", "/feedback/form", content="query_id=", headers=FORM).status_code == 422
    assert look("POST", "/feedback/form", content="x", headers={"content-type": "text/plain"}).status_code == 415
