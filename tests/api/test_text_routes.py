"""``/chunks``, ``/documents``, ``/conflicts``: what is looked up is looked up as it was meant, and nothing else."""

from urllib.parse import quote

import pytest
from api_support import Ask, conforms, is_problem
from scripted_engine import ScriptedAgent, ScriptedEngine, ledger_entry, write_ledger

from nornweave.ask.views.ledger import LedgerDocument
from nornweave.ask.views.texts import ChunkDocument, CompletionsDocument, DocumentDocument, FindDocument
from nornweave.config import Settings
from nornweave.core.types import Domain


def test_a_chunk_by_its_id(look: Ask, still_engine: ScriptedEngine) -> None:
    chunk_id = still_engine.chunk_of(Domain.CODE, "ledger", "refund.py")
    answer = look("GET", f"/chunks/{chunk_id}")
    assert answer.status_code == 200
    conforms(ChunkDocument, answer.json())
    assert answer.json()["content"] == "def refund(payment):\n    return payment.amount"
    is_problem(look("GET", f"/chunks/{chunk_id}%20"), 404)


@pytest.mark.parametrize("chunk_id", ["nothing", "%F0%9F%99%82", "%ff", "x" * 5000, "' or 1=1 --"])
def test_a_chunk_that_is_not_there(look: Ask, chunk_id: str) -> None:
    answer = look("GET", f"/chunks/{chunk_id}")
    is_problem(answer, 404)
    assert len(answer.content) < 1000


def test_a_name_with_nul_is_not_there(look: Ask) -> None:
    is_problem(look("GET", "/chunks/a%00b"), 404)
    is_problem(look("GET", "/documents/code/ledger/a%00b"), 404)


def test_a_generation_that_cannot_be_read(ask: Ask, code: ScriptedAgent) -> None:
    code.close()
    assert "shutting down" in is_problem(ask("GET", "/documents/code/ledger/refund.py"), 503)["detail"]


def test_a_document_by_its_place(look: Ask) -> None:
    path = "größe #1/0.py"
    for spelt in (quote(path), quote(path, safe="")):
        answer = look("GET", f"/documents/code/ledger/{spelt}")
        assert answer.status_code == 200, answer.text
        conforms(DocumentDocument, answer.json())
        assert (answer.json()["source_path"], answer.json()["text"]) == (path, "SIZE = 1\n")


@pytest.mark.parametrize(
    "path", ["%2e%2e/%2e%2e/etc/passwd", "..%2f..%2fetc%2fpasswd", "%2fetc%2fpasswd", "a//b", "a/", "../code/refund.py"]
)
def test_a_path_is_looked_up_and_never_opened(look: Ask, path: str) -> None:
    is_problem(look("GET", f"/documents/code/ledger/{path}"), 404)


def test_documents_of_a_domain_that_is_not_served(look: Ask) -> None:
    assert "served: code" in is_problem(look("GET", "/documents/research/papers/a.pdf"), 404)["detail"]


@pytest.fixture
def ledger(settings: Settings) -> None:
    write_ledger(
        settings,
        ledger_entry("Retry limit", Domain.CODE, Domain.DOCUMENTATION),
        ledger_entry("webhook timeout"),
        ledger_entry("retry delay", settled=True),
    )


def entities(ask: Ask, query: str) -> tuple[list[str], list[str]]:
    answer = ask("GET", f"/conflicts{query}")
    assert answer.status_code == 200, answer.text
    conforms(LedgerDocument, answer.json())
    ledger = answer.json()
    return [one["entity"] for one in ledger["open"]], [one["entity"] for one in ledger["settled"]]


@pytest.mark.parametrize(("query", "found"), [
    ("", (["Retry limit", "webhook timeout"], ["retry delay"])),
    ("?settled=false", (["Retry limit", "webhook timeout"], [])),
    ("?settled=true", ([], ["retry delay"])),
    ("?entity=retry", (["Retry limit"], ["retry delay"])),
    ("?entity=nothing", ([], [])),
    ("?domain=code", (["Retry limit"], [])),
    ("?domain=documentation&settled=false", (["Retry limit", "webhook timeout"], [])),
    ("?limit=1", (["Retry limit"], ["retry delay"])),
    ("?limit=1&entity=webhook", (["webhook timeout"], [])),
])  # fmt: skip
@pytest.mark.usefixtures("ledger")
def test_the_ledger_and_parts_of_it(ask: Ask, query: str, found: tuple[list[str], list[str]]) -> None:
    assert entities(ask, query) == found


@pytest.mark.parametrize(("query", "field"), [
    ("?limit=0", "limit"), ("?limit=-1", "limit"), ("?limit=1.0", "limit"), ("?limit=1_0", "limit"),
    ("?limit=", "limit"), ("?limit=99999999999", "limit"), ("?settled=yes", "settled"), ("?settled=1", "settled"),
    ("?domain=docs", "domain"), ("?entity=", "entity"), ("?entity=%00", "entity"), ("?order=desc", "order"),
])  # fmt: skip
def test_wrong_parameters_are_named(look: Ask, query: str, field: str) -> None:
    problem = is_problem(look("GET", f"/conflicts{query}"), 422)
    assert [one["field"] for one in problem["errors"]] == [field]


def test_what_is_typed_is_completed(look: Ask) -> None:
    answer = look("GET", "/complete?prefix=Ref")
    assert answer.status_code == 200, answer.text
    conforms(CompletionsDocument, answer.json())
    found = {(each["text"], each["kind"], each["domain_id"]) for each in answer.json()["completions"]}
    assert ("refund.py", "path", "code") in found
    assert look("GET", "/complete?prefix=xyzzy").json() == {"completions": []}
    for query, field in (
        ("", "prefix"),
        ("?prefix=%20", "prefix"),
        ("?prefix=a&limit=0", "limit"),
        ("?prefix=%00", "prefix"),
    ):
        assert is_problem(look("GET", f"/complete{query}"), 422)["errors"][0]["field"] == field


def test_lines_by_text_and_by_regex(look: Ask) -> None:
    answer = look("GET", "/find?text=def%20refund")
    assert answer.status_code == 200, answer.text
    conforms(FindDocument, answer.json())
    (match,) = answer.json()["matches"]
    assert (match["domain_id"], match["source_path"], match["line"]) == ("code", "refund.py", 1)
    same = (
        "/find?regex=DEF%20re..nd&case=false&domain=code&source=ledger&path_glob=refund.py&document=refund.py&limit=1"
    )
    assert look("GET", same).json() == answer.json()
    assert look("GET", "/find?text=DEF%20refund").json()["matches"] == []
    assert look("GET", "/find?regex=.&limit=1").json()["truncated"] is True
    for address in ("/find?text=def%20refund", same, "/find?text=def%20refund&domain=&domain=code"):
        page = look("GET", address, headers={"accept": "text/html"})
        assert page.status_code == 200 and "refund.py" in page.text and "1 line" in page.text
    assert look("GET", "/find?text=x&domain=nowhere", headers={"accept": "text/html"}).status_code == 422


@pytest.mark.parametrize(("query", "field"), [
    ("", "text"), ("text=a&regex=b", "regex"), ("regex=(", "regex"), ("text=a%0Ab", "text"),
    ("text=a&domain=nothing", "domain"), ("text=a&limit=0", "limit"), ("text=a&case=perhaps", "case"),
    ("text=a&path_glob=../x", "filters.code.path_glob"), ("text=a&nothing=1", "nothing"),
])  # fmt: skip
def test_what_find_cannot_look_for_is_named(look: Ask, query: str, field: str) -> None:
    assert is_problem(look("GET", f"/find?{query}"), 422)["errors"][0]["field"] == field
