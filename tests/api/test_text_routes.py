"""``/chunks``, ``/documents``, ``/conflicts``: what is looked up is looked up as it was meant, and nothing else."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from api_support import Ask, conforms, is_problem
from memory_engine import MemoryEngine

from nornweave.ask.views import ChunkDocument, DocumentDocument, LedgerDocument


def test_a_chunk_by_its_id(ask: Ask) -> None:
    answer = ask("GET", "/chunks/chunk-0")
    assert answer.status_code == 200
    conforms(ChunkDocument, answer.json())
    assert answer.json()["content"] == "def pay(): ..."


@pytest.mark.parametrize("chunk_id", ["nothing", "%F0%9F%99%82", "%ff", "x" * 5000, "' or 1=1 --", "chunk-0%20"])
def test_a_chunk_that_is_not_there(ask: Ask, chunk_id: str) -> None:
    answer = ask("GET", f"/chunks/{chunk_id}")
    is_problem(answer, 404)
    assert len(answer.content) < 1000


def test_a_name_with_nul_is_not_even_looked_up(ask: Ask, engine: MemoryEngine) -> None:
    is_problem(ask("GET", "/chunks/a%00b"), 404)
    is_problem(ask("GET", "/documents/code/payments/a%00b"), 404)
    assert engine.looked_up == []


def test_a_generation_that_cannot_be_read(ask: Ask) -> None:
    assert "roll back" in is_problem(ask("GET", "/chunks/unreadable"), 503)["detail"]


def test_a_document_by_its_place(ask: Ask) -> None:
    path = "src/größe #1/0.py"
    for spelt in (quote(path), quote(path, safe="")):
        answer = ask("GET", f"/documents/code/payments/{spelt}")
        assert answer.status_code == 200, answer.text
        conforms(DocumentDocument, answer.json())
        assert (answer.json()["source_path"], answer.json()["text"]) == (path, "def pay(): ...\n")


@pytest.mark.parametrize(
    "path", ["%2e%2e/%2e%2e/etc/passwd", "..%2f..%2fetc%2fpasswd", "%2fetc%2fpasswd", "a//b", "a/"]
)
def test_a_path_is_looked_up_and_never_opened(ask: Ask, engine: MemoryEngine, path: str) -> None:
    is_problem(ask("GET", f"/documents/code/payments/{path}"), 404)
    assert all(found[:2] == ("code", "payments") for found in engine.looked_up)


def test_documents_of_a_domain_that_is_not_served(ask: Ask, engine: MemoryEngine) -> None:
    assert "served: code" in is_problem(ask("GET", "/documents/research/papers/a.pdf"), 404)["detail"]
    assert engine.looked_up == []


def entities(ask: Ask, query: str) -> tuple[list[str], list[str]]:
    answer = ask("GET", f"/conflicts{query}")
    assert answer.status_code == 200, answer.text
    conforms(LedgerDocument, answer.json())
    ledger = answer.json()
    return [one["entity"] for one in ledger["open"]], [one["entity"] for one in ledger["settled"]]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", (["Retry limit", "webhook timeout"], ["retry delay"])),
        ("?settled=false", (["Retry limit", "webhook timeout"], [])),
        ("?settled=true", ([], ["retry delay"])),
        ("?entity=retry", (["Retry limit"], ["retry delay"])),
        ("?entity=nothing", ([], [])),
        ("?domain=code", (["Retry limit"], [])),
        ("?domain=documentation&settled=false", (["Retry limit", "webhook timeout"], [])),
        ("?limit=1", (["Retry limit"], ["retry delay"])),
        ("?limit=1&entity=webhook", (["webhook timeout"], [])),
    ],
)
def test_the_ledger_and_parts_of_it(ask: Ask, query: str, found: tuple[list[str], list[str]]) -> None:
    assert entities(ask, query) == found


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("?limit=0", "limit"),
        ("?limit=-1", "limit"),
        ("?limit=1.0", "limit"),
        ("?limit=1_0", "limit"),
        ("?limit=", "limit"),
        ("?limit=99999999999", "limit"),
        ("?settled=yes", "settled"),
        ("?settled=1", "settled"),
        ("?domain=docs", "domain"),
        ("?entity=", "entity"),
        ("?entity=%00", "entity"),
        ("?order=desc", "order"),
    ],
)
def test_wrong_parameters_are_named(ask: Ask, query: str, field: str) -> None:
    problem = is_problem(ask("GET", f"/conflicts{query}"), 422)
    assert [one["field"] for one in problem["errors"]] == [field]
