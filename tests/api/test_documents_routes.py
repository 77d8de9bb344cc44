"""The inbox as a life cycle over HTTP: handed in, waiting, indexed or failed, replaced, taken out; files."""

import asyncio
import io
import json
from pathlib import Path
from typing import Any

import httpx
import openpyxl
import pymupdf
import pytest
from api_support import Ask, client_of, conforms, is_problem, write_corpus
from live_server import live
from scripted_engine import ScriptedAgent

from api.app import create_app
from api.routes.inbox import MAX_FILES
from nornweave.ask.views.texts import DocumentsDocument
from nornweave.config import Settings
from nornweave.core.types import Domain
from nornweave.ingest.pipeline import run
from nornweave.ingest.records import SyncOptions, SyncReport
from nornweave.ingest.wiring import domain_parts

DOCS = Domain.DOCUMENTATION
INGEST = "/agents/documentation/ingest"
DOCUMENTS = "/agents/documentation/documents"
POLLS = 1200  # of a twentieth of a second


def synced(settings: Settings) -> SyncReport:
    return run(domain_parts(settings, DOCS), SyncOptions(run_id="test", wait_s=0))


async def listed(client: httpx.AsyncClient, **parameters: Any) -> dict[str, dict[str, Any]]:
    answer = await client.get(DOCUMENTS, params=parameters)
    assert answer.status_code == 200, answer.text
    conforms(DocumentsDocument, answer.json())
    return {each["source_path"]: each for each in answer.json()["documents"]}


async def published(client: httpx.AsyncClient, settings: Settings, generation: str) -> SyncReport:
    """Sync, and wait until the new generation answers."""
    report = await asyncio.to_thread(synced, settings)
    await answered_by(client, generation)
    return report


async def answered_by(client: httpx.AsyncClient, generation: str) -> None:
    for _ in range(POLLS):
        health = (await client.get("/agents/documentation/health")).json()
        if health["generation"] == generation and health["state"] == "READY":
            return
        await asyncio.sleep(0.05)
    raise AssertionError(health)


def pdf(text: str) -> bytes:
    document = pymupdf.open()
    document.new_page().insert_text((72, 72), text)
    raw: bytes = document.tobytes()
    return raw


def sheet(*rows: tuple[object, ...]) -> bytes:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    raw = io.BytesIO()
    book.save(raw)
    return raw.getvalue()


def document(path: str, content: str = "# A\n\nThe queue is drained.\n", **fields: Any) -> dict[str, Any]:
    return {"documents": [{"source_path": path, "content": content, **fields}]}


async def test_a_document_from_being_handed_in_to_being_gone(settings: Settings) -> None:
    async with client_of(settings, None) as client:
        await answered_by(client, "gen-000001")
        moment = "2026-01-20T10:00:00Z"
        await client.post(INGEST, json=document("runbooks/a.md", source_updated_at=moment))
        await client.post(INGEST, json=document("broken.pdf", "just text, though nobody said so"))
        files = {"file": ("scan.pdf", b"%PDF-1.7 broken")}
        await client.post(INGEST, files=files)
        waiting = await listed(client, source="inbox")
        assert {path: each["status"] for path, each in waiting.items()} == dict.fromkeys(
            ("runbooks/a.md", "broken.pdf", "scan.pdf"), "accepted"
        )
        assert waiting["runbooks/a.md"] == {
            "source_path": "runbooks/a.md", "source_id": "inbox", "status": "accepted", "generation": None,
            "reason": None, "updated_at": moment, "size": 27, "chunks": 0,
        }  # fmt: skip
        await published(client, settings, "gen-000002")
        after = await listed(client)
        assert {path: each["status"] for path, each in after.items()} == {
            "faq.md": "indexed",
            "guide.md": "indexed",
            "broken.pdf": "indexed",
            "runbooks/a.md": "indexed",
            "scan.pdf": "failed",
        }
        assert after["runbooks/a.md"]["generation"] == "gen-000002"
        assert (after["runbooks/a.md"]["chunks"], after["scan.pdf"]["generation"]) == (1, None)
        assert "PDF" in after["scan.pdf"]["reason"]
        assert list(await listed(client, status="failed")) == ["scan.pdf"]

        # replaced: it waits again, and what was indexed keeps answering
        await client.post(INGEST, json=document("runbooks/a.md", "# B\n\nThe shard is drained.\n"))
        replaced = (await listed(client, status="accepted"))["runbooks/a.md"]
        assert (replaced["generation"], replaced["chunks"]) == ("gen-000002", 1)
        await published(client, settings, "gen-000003")
        assert (await listed(client))["runbooks/a.md"]["generation"] == "gen-000003"

        # taken out: gone with the next sync, and asking again changes nothing
        for path in ("runbooks/a.md", "runbooks/a.md", "broken.pdf", "scan.pdf"):
            gone = await client.delete(f"{DOCUMENTS}/{path}")
            assert (gone.status_code, gone.json()) == (202, {"source_path": path, "status": "DELETED"})
        assert set(await listed(client, status="deleted")) == {"runbooks/a.md", "broken.pdf", "scan.pdf"}
        report = await published(client, settings, "gen-000004")
        assert (report.removed, report.held) == (2, ()), "an inbox that is emptied on purpose is not held"
        assert set(await listed(client)) == {"faq.md", "guide.md"}
        assert (await client.delete(f"{DOCUMENTS}/runbooks/a.md")).status_code == 204
        foreign = await client.delete(f"{DOCUMENTS}/guide.md")
        problem = is_problem(foreign, 409)
        assert problem["type"].endswith(":not-in-inbox")
        assert "belongs to source handbook" in problem["detail"]


async def test_pages_of_documents_hold_every_one_once(tmp_path: Path) -> None:
    settings = write_corpus(tmp_path)
    for number in range(23):
        (tmp_path / "docs" / f"page-{number:02}.md").write_text(f"# Page {number}\n\nText.\n")
    (tmp_path / "docs" / "empty.md").write_text(" ")
    synced(settings)
    async with client_of(settings, None) as client:
        await answered_by(client, "gen-000001")
        await client.post(INGEST, json=document("b.md"))
        await client.post(INGEST, json=document("a.md"))
        paths: list[str] = []
        cursor: dict[str, str] = {}
        for _ in range(10):
            page = (await client.get(DOCUMENTS, params={"limit": 4, **cursor})).json()
            paths += [f"{each['source_id']}/{each['source_path']}" for each in page["documents"]]
            if page["next"] is None:
                break
            cursor = {"cursor": page["next"]}
        assert len(paths) == len(set(paths)) == 23 + 3 + 2
        assert paths == sorted(paths)
        assert paths[-2:] == ["inbox/a.md", "inbox/b.md"]
        assert (await listed(client, status="failed", source="handbook")).keys() == {"empty.md"}


@pytest.mark.parametrize(("parameters", "field"), [
    ({"cursor": "nonsense!"}, "cursor"), ({"cursor": "WzEsMl0="}, "cursor"), ({"limit": 0}, "limit"),
    ({"limit": "many"}, "limit"), ({"status": "lost"}, "status"), ({"page": 2}, "page"),
])  # fmt: skip
def test_wrong_parameters_are_named(look: Ask, parameters: dict[str, Any], field: str) -> None:
    problem = is_problem(look("GET", DOCUMENTS, params=parameters), 422)
    assert [each["field"] for each in problem["errors"]] == [field]


async def test_files_are_read_by_their_suffix(settings: Settings) -> None:
    form = {"path": "manuals/", "metadata": json.dumps({"environment": "prod"}), "source_updated_at": "2026-01-20"}
    files = [
        ("file", ("größe/shard.pdf", pdf("The shard is quarantined by hand."))),
        ("file", ("fees.xlsx", sheet(("region", "interchange"), ("Norway", 0.2), ("Chile", 0.6)))),
        ("file", ("guide.md", b"# Upload\n\nThe lever is pulled.\n")),
        ("file", ("old.txt", "Größe".encode("latin-1"))),
        ("file", ("photo.md", b"\x89PNG\r\n\x1a\n" + bytes(20))),
        ("file", ("../up.md", b"x")),
        ("file", ("empty.pdf", b"")),
    ]
    async with client_of(settings, None) as client:
        await answered_by(client, "gen-000001")
        answer = await client.post(INGEST, files=files, data=form)
        assert answer.status_code == 202, answer.text
        receipts = {each["source_path"]: each for each in answer.json()["documents"]}
        assert {path: each["status"] for path, each in receipts.items()} == {
            "manuals/größe/shard.pdf": "ACCEPTED", "manuals/fees.xlsx": "ACCEPTED", "manuals/guide.md": "ACCEPTED",
            "manuals/old.txt": "ACCEPTED", "manuals/photo.md": "REJECTED", "manuals/../up.md": "REJECTED",
            "manuals/empty.pdf": "REJECTED",
        }  # fmt: skip
        again = (await client.post(INGEST, files=files[:1], data=form)).json()["documents"][0]
        assert (again["status"], again["reason"]) == ("REJECTED", "duplicate")
        await published(client, settings, "gen-000002")
        body = {
            "query": "shard quarantined",
            "filters": {"documentation": {"environment": "prod"}},
            "timeout_ms": 60_000,
        }
        items = (await client.post("/query", json=body)).json()["items"]
        assert items[0]["citation"]["source_path"] == "manuals/größe/shard.pdf"
        assert items[0]["citation"]["page"] == 1
        items = (await client.post("/query", json={**body, "query": "interchange Chile"})).json()["items"]
        assert items[0]["citation"]["source_path"] == "manuals/fees.xlsx"


WRONG_FORMS: list[tuple[dict[str, Any], int, str]] = [
    ({"files": {"file": ("a.md", b"x")}, "data": {"metadata": "[1]"}}, 422, "metadata"),
    ({"files": {"file": ("a.md", b"x")}, "data": {"metadata": "{"}}, 422, "metadata"),
    ({"files": {"file": ("a.md", b"x")}, "data": {"source_updated_at": "soon"}}, 422, "source_updated_at"),
    ({"files": {"file": ("a.md", b"x")}, "data": {"colour": "red"}}, 422, "colour"),
    ({"files": {"document": ("a.md", b"x")}}, 422, "document"),
    ({"files": {"file": ("a.md", b"x" * (10 * 1024 * 1024 + 1))}}, 422, "file.0"),
    ({"files": {"metadata": (None, "{}")}}, 422, "file"),
    ({"content": b"--x\r\n\r\n--x--\r\n", "headers": {"content-type": "multipart/form-data; boundary=x"}}, 400, "name"),
    ({"content": b"nothing", "headers": {"content-type": "multipart/form-data"}}, 400, "boundary"),
    ({"files": [("file", (f"{number}.md", b"x")) for number in range(MAX_FILES + 1)]}, 400, "files"),
]


@pytest.mark.parametrize(("request_", "status", "said"), WRONG_FORMS, ids=[str(at) for at in range(len(WRONG_FORMS))])
def test_what_is_wrong_with_a_form_is_named(look: Ask, request_: dict[str, Any], status: int, said: str) -> None:
    problem = is_problem(look("POST", INGEST, **request_), status)
    assert said in json.dumps(problem.get("errors") or problem["detail"])


async def test_the_same_key_gets_the_same_receipts(tmp_path: Path) -> None:
    settings = write_corpus(tmp_path)
    headers = {"Idempotency-Key": "upload 7"}
    async with client_of(settings, None) as client:
        for _ in range(2):
            answer = await client.post(INGEST, json=document("a.md"), headers=headers)
            assert answer.json()["documents"][0]["status"] == "ACCEPTED"
    async with client_of(settings, None) as client:  # after a restart
        answer = await client.post(INGEST, json=document("a.md"), headers=headers)
        assert (answer.status_code, answer.json()["documents"][0]["status"]) == (202, "ACCEPTED")
        unnamed = await client.post(INGEST, json=document("a.md"))
        assert unnamed.json()["documents"][0]["reason"] == "duplicate"
        other = is_problem(await client.post(INGEST, json=document("b.md"), headers=headers), 422)
        assert other["errors"][0]["field"] == "Idempotency-Key"
        too_long = await client.post(INGEST, json=document("a.md"), headers={"Idempotency-Key": "x" * 256})
        assert is_problem(too_long, 422)["errors"][0]["field"] == "Idempotency-Key"
        assert list(await listed(client)) == ["a.md"]


def test_a_degraded_domain_takes_no_documents_and_says_when_to_come_back(
    ask: Ask, documentation: ScriptedAgent
) -> None:
    documentation.lose_encoder()
    for request in ({"json": document("a.md")}, {"files": {"file": ("a.md", b"x")}}):
        answer = ask("POST", INGEST, **request)
        problem = is_problem(answer, 503)
        assert problem["type"].endswith(":agent-degraded")
        assert "its encoder is lost" in problem["detail"]
        assert int(answer.headers["retry-after"]) > 0
    assert ask("POST", "/agents/documentation/recall", json={"query_text": "pay"}).status_code == 200
    assert ask("POST", "/agents/code/ingest", json=document("a.md")).status_code == 202


def test_an_agent_served_alone_takes_documents_at_the_root(tmp_path: Path) -> None:
    settings = write_corpus(tmp_path)
    app = create_app(settings, agent=DOCS, environment={})
    with live(app) as url, httpx.Client(base_url=url, timeout=60) as client:
        assert client.post("/ingest", json=document("a.md")).status_code == 202
        assert client.post("/ingest", files={"file": ("b.pdf", pdf("text"))}).status_code == 202
        assert {each["source_path"] for each in client.get(DOCUMENTS).json()["documents"]} == {"a.md", "b.pdf"}
        assert client.get("/describe").json()["domain_id"] == "documentation"
        assert client.get("/health").json()["status"] == "ok"
        assert client.post("/recall", json={"query_text": "x"}).status_code == 503, "nothing is published"
    with live(create_app(settings, environment={})) as url:
        assert httpx.post(f"{url}/ingest", json=document("a.md")).status_code == 404
