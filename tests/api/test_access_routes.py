"""Who may see what, over every route: members, an outsider, the operator; nobody finds or counts what is not theirs."""

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from access_workspace import (
    BOARD,
    CHIEF,
    INNER,
    OUTSIDER,
    SECRET,
    SERVICE,
    SOURCES,
    STAFF,
    app_of,
    client_as,
    configure_access,
    publish_access,
    tools_as,
    write_access_workspace,
    write_tokens,
)
from api_support import is_problem, routes_of
from scripted_engine import copied

from api.access.door import check_listening
from api.app import create_app
from nornweave.carry.wiring import domain_folder
from nornweave.config import Settings
from nornweave.core.errors import ConfigError
from nornweave.core.types import Domain, GenerationId
from nornweave.index.outcomes import Verified, VerifiedSource, write_verified

HTML = "text/html,*/*;q=0.8"
NOBODYS = "0" * 32
# Who adds a route decides what it shows to whom, and adds it here; the tests below ask the routes of each kind.
OPEN = {
    "GET /health", "GET /ready", "GET /login", "POST /login", "GET /docs", "GET /docs/{name}", "GET /web/{file}",
    "GET /callback", "GET /logout",
    "POST /hooks/{service}",  # let in by the signature of the service
}  # fmt: skip
NOTHING_OF_OURS = {
    "POST /fuse", "GET /v1/models", "GET /v1/models/{model}", "POST /v1/embeddings", "GET /openapi.json",
    "POST /logout", "GET /tokens", "POST /tokens", "DELETE /tokens/{token_id}", "POST /tokens/form",
}  # fmt: skip
MASKED = {
    "POST /query", "POST /v1/chat/completions", "POST /v1/responses", "POST /feedback", "GET /agents",
    "POST /agents/{domain}/recall",
    "GET /agents/{domain}/describe", "GET /agents/{domain}/health", "POST /recall", "GET /describe",
    "GET /chunks/{chunk_id}", "GET /documents/{domain}/{source_id}/{path:path}", "GET /conflicts", "POST /mcp",
    "GET /find", "GET /find.json", "GET /uses",
    "POST /why", "GET /why", "GET /why.json", "GET /complete", "GET /generations/{a}/diff/{b}",
    "GET /", "GET /.json", "GET /passages/{chunk_id}", "GET /passages/{chunk_id}.json", "GET /conflicts.json",
    "GET /passages/{chunk_id}/page.png",
    "GET /conflicts/{entry_id}", "GET /conflicts/{entry_id}.json", "POST /feedback/form",
}  # fmt: skip
FOR_OPERATORS = {
    "GET /evaluations", "GET /evaluations/compare", "GET /metrics", "POST /agents/{domain}/ingest", "POST /ingest",
    "GET /agents/{domain}/documents", "DELETE /agents/{domain}/documents/{source_path:path}", "GET /quality",
    "GET /quality.json", "GET /status", "GET /status.json", "POST /status/sync", "POST /status/sources",
    "POST /agents/register",
    "POST /agents/{agent_id}/heartbeat", "DELETE /agents/{agent_id}", "POST /receipts", "GET /receipts/{receipt_id}",
    "GET /sources", "POST /sources", "DELETE /sources/{source_id}",
    "POST /conflicts/{conflict_id}/dismiss", "DELETE /conflicts/{conflict_id}/dismiss", "POST /conflicts/form",
}  # fmt: skip


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    settings = write_access_workspace(tmp_path_factory.mktemp("access"))
    publish_access(settings)
    return settings


@pytest.fixture
def own(settings: Settings, tmp_path: Path) -> Settings:
    """A copy of the workspace, for one test."""
    return copied(settings, tmp_path)


@pytest.fixture(scope="module")
def ids(settings: Settings) -> Mapping[str, str]:
    """Return a chunk of each document, by path."""
    found: dict[str, str] = {}

    async def read() -> None:
        async with app_of(settings) as app, client_as(app, SERVICE) as client:
            for domain, source, path in (
                ("documentation", "guide", "guide.md"), ("documentation", "guide", "marked.md"),
                ("documentation", "board", "plan.md"), ("code", "vault", "keys.py"), ("code", "code", "limits.py"),
            ):  # fmt: skip
                document = (await client.get(f"/documents/{domain}/{source}/{path}")).json()
                found[path] = document["chunks"][0]

    asyncio.run(read())
    return found


def test_every_route_has_a_decision(settings: Settings) -> None:
    app = create_app(settings, agent=Domain.CODE, environment={})
    routes = set(routes_of(app.router.routes))
    assert len(routes) > 40, "included routers are read as well"
    kinds = (OPEN, NOTHING_OF_OURS, MASKED, FOR_OPERATORS)
    assert sum(map(len, kinds)) == len(set().union(*kinds)), "one decision for each"
    assert routes == set().union(*kinds), "decide who may see what of a new route, and test it"


async def test_nobody_comes_in_without_a_token(settings: Settings) -> None:
    async with app_of(settings) as app:
        for token in (None, "", "nw_unknown", STAFF.upper()):
            async with client_as(app, token) as client:
                for path in ("/agents", "/conflicts", "/chunks/x", "/status.json", "/nothing"):
                    is_problem(await client.get(path), 401)
                is_problem(await client.post("/query", json={"query": SECRET}), 401)
                assert (await client.get("/health")).json() == {"status": "ok"}


async def said(client: httpx.AsyncClient, text: str) -> dict[str, str]:
    """Ask in every way there is; return what was answered, by way."""
    body = {"query": text, "timeout_ms": 60_000}
    lines = f"(?i){'.*'.join(text.split())}"
    answers = {
        "query": await client.post("/query", json={**body, "explain": True, "expand": "on"}),
        "text": await client.post("/query", json={**body, "format": "text"}),
        "events": await client.post("/query", json=body, headers={"accept": "text/event-stream"}),
        "code": await client.post("/agents/code/recall", json={"query_text": text, "timeout_ms": 60_000}),
        "docs": await client.post("/agents/documentation/recall", json={"query_text": text, "timeout_ms": 60_000}),
        "chat": await client.post(
            "/v1/chat/completions", json={"model": "nornweave", "messages": [{"role": "user", "content": text}]}
        ),
        "stream": await client.post(
            "/v1/chat/completions",
            json={"model": "nornweave", "stream": True, "messages": [{"role": "user", "content": text}]},
        ),
        "response": await client.post("/v1/responses", json={"model": "nornweave", "input": text}),
        "page": await client.get("/", params={"q": text}, headers={"accept": HTML}),
        "data": await client.get("/.json", params={"q": text}),
        "find": await client.get("/find", params={"text": text.split()[-1], "case": "false"}),
        "regex": await client.get("/find.json", params={"regex": lines}),
        "lines": await client.get("/find", params={"regex": lines}, headers={"accept": HTML}),
        "uses": await client.get("/uses", params={"name": "limit" if text == "limit" else text.split()[-1]}),
        "names": await client.get("/complete", params={"prefix": "p", "limit": "50"}),
        "conflicts": await client.get("/conflicts"),
        "ledger": await client.get("/conflicts", headers={"accept": HTML}),
        "agents": await client.get("/agents"),
        "describe": await client.get("/agents/documentation/describe"),
        "health": await client.get("/agents/documentation/health"),
        "catalogue": await client.get("/.json"),
    }
    assert {name: answer.status_code for name, answer in answers.items()} == dict.fromkeys(answers, 200)
    return {name: answer.text.replace(text, "…") for name, answer in answers.items()}


@pytest.mark.parametrize(
    ("token", "secret", "inner"),
    [(OUTSIDER, False, False), (STAFF, False, True), (BOARD, True, False), (SERVICE, True, True), (CHIEF, True, True)],
)
async def test_what_is_not_for_somebody_is_in_no_answer(
    settings: Settings, token: str, secret: bool, inner: bool
) -> None:
    async with app_of(settings) as app, client_as(app, token) as client:
        for text, path, expected in (("deal in May", "plan.md", secret), ("key with operations", "marked.md", inner)):
            answers = await said(client, text)
            for name in answers.keys() & {
                "query", "text", "events", "docs", "chat", "stream", "page", "data", "find", "regex", "lines",
            }:  # fmt: skip
                assert (path in answers[name]) is expected, (name, text)
        everything = " ".join((await said(client, "limit")).values()).lower()
        assert (SECRET in everything) is secret
        assert ("plan.md" in everything) is secret
        assert ("keys.py" in everything) is secret


@pytest.mark.parametrize(
    ("token", "documents", "searched"), [(OUTSIDER, 1, 1), (STAFF, 2, 2), (BOARD, 2, 2), (SERVICE, 3, 3)]
)
async def test_what_is_not_for_somebody_is_not_counted(
    settings: Settings, token: str, documents: int, searched: int
) -> None:
    async with app_of(settings) as app, client_as(app, token) as client:
        described = (await client.get("/agents/documentation/describe")).json()
        assert (described["documents"], described["chunks"]) == (documents, documents)
        for text in ("limit", "limit -pizza"):
            answer = (await client.post("/agents/documentation/recall", json={"query_text": text})).json()
            assert answer["total_searched"] == searched, text
        catalogue = (await client.get("/.json")).json()["domains"]
        docs = next(one for one in catalogue if one["domain"] == "documentation")
        assert (docs["documents"], docs["passages"]) == (documents, documents)
        assert all(count <= documents for one in docs["filters"] for _, count in one["values"])
        statistics = (await client.get("/agents/documentation/health")).json()["statistics"]
        assert bool(statistics) is (token == SERVICE), "what others asked is nobody's"


@pytest.mark.parametrize("token", [OUTSIDER, STAFF])
async def test_not_for_you_is_not_there_to_the_letter(settings: Settings, ids: Mapping[str, str], token: str) -> None:
    async with app_of(settings) as app:
        async with client_as(app, token) as client:
            for hidden in (ids["plan.md"], ids["keys.py"]):
                for path, accept in (
                    ("/chunks/{}", "application/json"), ("/passages/{}", HTML), ("/passages/{}.json", "*/*"),
                    ("/passages/{}/page.png", "*/*"), ("/documents/documentation/board/{}", "*/*"),
                    ("/conflicts/{}", HTML), ("/conflicts/{}.json", "*/*"),
                ):  # fmt: skip
                    given, none = [
                        await client.get(path.format(one), headers={"accept": accept}) for one in (hidden, NOBODYS)
                    ]
                    assert given.status_code == none.status_code == 404, path
                    assert given.text.replace(hidden, "…") == none.text.replace(NOBODYS, "…")
            there = await client.get("/documents/documentation/board/plan.md")
            never = await client.get("/documents/documentation/board/nope.md")
            nowhere = await client.get("/documents/documentation/nosource/plan.md")
            assert there.status_code == never.status_code == nowhere.status_code == 404
            assert there.text.replace("plan.md", "…") == never.text.replace("nope.md", "…")
            assert there.text.replace("board", "…") == nowhere.text.replace("nosource", "…")
            assert (await client.get(f"/chunks/{ids['guide.md']}")).status_code == 200
        async with client_as(app, BOARD) as client:
            for hidden in (ids["plan.md"], ids["keys.py"]):
                assert (await client.get(f"/chunks/{hidden}")).status_code == 200
                assert (await client.get(f"/passages/{hidden}.json")).status_code == 200


async def test_examples_are_headings_that_somebody_sees(own: Settings, tmp_path: Path) -> None:
    (tmp_path / "open/limit.md").write_text(
        "# How the limit is set\n\nBy hand.\n\n## How\n\nSo.\n\n## When in doubt\n\nAsk.\n", "utf-8"
    )
    (tmp_path / "board/deal.md").write_text(f"# What the {SECRET} costs\n\nMuch.\n", "utf-8")
    await asyncio.to_thread(publish_access, own)
    async with app_of(own) as app:
        for token, shown in ((OUTSIDER, 1), (BOARD, 2), (OUTSIDER, 1), (SERVICE, 2)):
            async with client_as(app, token, accept=HTML) as client:
                page = (await client.get("/")).text
            assert page.count("data-item>") == shown, "a heading that names one thing asks nothing"
            assert ("data-item>How the limit is set<" in page, SECRET in page) == (True, shown == 2)


async def test_a_passage_that_is_gone_is_told_to_nobody(own: Settings, tmp_path: Path) -> None:
    for name in ("board/plan.md", "open/guide.md"):
        (tmp_path / name).write_text((tmp_path / name).read_text().replace("retry limit", "limit of retries"))
    async with app_of(own) as app:
        before = {}
        async with client_as(app, SERVICE) as client:
            for source, path in (("board", "plan.md"), ("guide", "guide.md")):
                document = (await client.get(f"/documents/documentation/{source}/{path}")).json()
                before[path] = document["chunks"][0]
            await asyncio.to_thread(publish_access, own)
            async with asyncio.timeout(60):
                while (await client.get("/agents/documentation/describe")).json()["generation"] != "gen-000002":
                    await asyncio.sleep(0.05)
        for token in (OUTSIDER, BOARD, SERVICE):
            async with client_as(app, token, accept=HTML) as client:
                pages = {path: await client.get(f"/passages/{chunk}") for path, chunk in before.items()}
                assert {answer.status_code for answer in pages.values()} == {404}
                assert not [path for path, answer in pages.items() if path in answer.text]


async def test_conflicts_are_shown_to_who_may_see_both_sides(settings: Settings) -> None:
    async with app_of(settings) as app:
        sources = {}
        for token in (OUTSIDER, STAFF, BOARD, SERVICE):
            async with client_as(app, token) as client:
                ledger = (await client.get("/conflicts")).json()
                sources[token] = {
                    side["source_id"] for entry in ledger["open"] for side in (*entry["sides"], *entry["also"])
                }
                for entry in ledger["open"]:
                    assert (await client.get(f"/conflicts/{entry['entry_id']}.json")).status_code == 200
                answer = (await client.post("/query", json={"query": "retry limit", "timeout_ms": 60_000})).json()
                values = {side["value"] for one in answer["conflicts"] for side in one.get("sides", ())}
                assert ("9" in values) <= (token in {BOARD, SERVICE})
        assert sources[OUTSIDER] == sources[STAFF] == {"code", "guide"}
        assert sources[BOARD] == sources[SERVICE] == {"code", "guide", "board"}
        async with client_as(app, SERVICE) as client:
            hidden = [
                entry["entry_id"] for entry in (await client.get("/conflicts")).json()["open"]
                if any(side["source_id"] == "board" for side in entry["sides"])
            ]  # fmt: skip
        async with client_as(app, OUTSIDER) as client:
            for entry in hidden:
                given, none = [await client.get(f"/conflicts/{one}.json") for one in (entry, NOBODYS)]
                assert given.status_code == 404
                assert given.text == none.text


async def test_what_is_no_conflict_is_dismissed_and_taken_back(own: Settings) -> None:
    async with app_of(own) as app, client_as(app, SERVICE) as client:
        entry = (await client.get("/conflicts")).json()["open"][0]
        address = f"/conflicts/{entry['entry_id']}/dismiss"
        said = (await client.post(address)).json()
        assert said["dismissed"] and said["id"] != entry["entry_id"]
        assert (await client.post(address)).json() == said, "saying it again changes nothing"
        ledger = (await client.get("/conflicts", params={"dismissed": "true"})).json()
        assert [one["entry_id"] for one in ledger["dismissed"]] == [entry["entry_id"]]
        assert entry["entry_id"] not in str(ledger["open"]) + (await client.get("/conflicts")).text
        page = (await client.get("/conflicts", headers={"accept": HTML})).text
        assert page.count('class="conflict dismissed"') == 1 and "It is a conflict after all" in page
        form = {"content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin"}
        back = await client.post("/conflicts/form", content=f"id={said['id']}&undo=true&next=/conflicts", headers=form)
        assert (back.status_code, back.headers["location"]) == (303, "/conflicts")
        is_problem(await client.delete(address), 404)
        assert entry in (await client.get("/conflicts")).json()["open"]


async def test_what_concerns_the_whole_service_is_for_operators(settings: Settings) -> None:
    form = {"content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin"}
    calls: list[tuple[str, str, dict[str, Any]]] = [
        ("GET", "/evaluations", {}),
        ("GET", "/evaluations/compare", {"params": {"domain": "code", "before": "a", "after": "b"}}),
        ("GET", "/metrics", {}),
        ("POST", "/agents/code/ingest", {"json": {"documents": [{"source_path": "x.py", "content": "x = 1"}]}}),
        ("GET", "/quality", {"headers": {"accept": HTML}}),
        ("GET", "/quality.json", {}),
        ("GET", "/status", {"headers": {"accept": HTML}}),
        ("GET", "/status.json", {}),
        ("POST", "/status/sync", {"content": "domain=nowhere", "headers": form}),
        ("POST", "/status/sources", {"content": "remove=nowhere", "headers": form}),
    ]
    calls += [("POST", "/conflicts/form", {"content": "id=nothing", "headers": form})]
    calls += [("GET", "/agents/code/documents", {}), ("DELETE", "/agents/code/documents/nothing.py", {})]
    named = {f"{method} {path.replace('code', '{domain}')}" for method, path, _ in calls}
    joining = {"agent_id": "vault", "domain_id": "code", "url": "https://vault.example.org"}
    registry: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", "/agents/register", {"json": joining}),
        ("POST", "/agents/vault/heartbeat", {"json": {}}),
        ("DELETE", "/agents/vault", {}),
    ]
    calls += registry
    receipt = {"domain": "code", "source_id": "vault", "source_path": "gone.py"}
    calls += [("POST", "/receipts", {"json": receipt}), ("GET", f"/receipts/{NOBODYS}", {})]
    named |= {"POST /receipts", "GET /receipts/{receipt_id}"}
    editing = {"id": "x", "domain": "code", "type": "files", "path": "/etc"}
    calls += [("GET", "/sources", {}), ("POST", "/sources", {"json": editing}), ("DELETE", "/sources/nothing", {})]
    calls += [(method, "/conflicts/nothing/dismiss", {}) for method in ("POST", "DELETE")]
    named |= {"POST /conflicts/{conflict_id}/dismiss", "DELETE /conflicts/{conflict_id}/dismiss"}
    named |= {"GET /sources", "POST /sources", "DELETE /sources/{source_id}"}
    named |= {f"{method} {path.replace('vault', '{agent_id}')}" for method, path, _ in registry}
    alone = {"POST /ingest"}  # the same function at the root of an agent that is served alone
    assert {one.replace("nothing.py", "{source_path:path}") for one in named} == FOR_OPERATORS - alone
    async with app_of(settings) as app:
        for token, expected in (
            (OUTSIDER, {403}),
            (BOARD, {403}),
            (SERVICE, {200, 202, 204, 404, 422}),  # 404: no agents can join here
            (CHIEF, {200, 202, 204, 404, 422}),
        ):
            async with client_as(app, token) as client:
                answers = [await client.request(method, path, **how) for method, path, how in calls]
                assert {answer.status_code for answer in answers} <= expected, [one.text[:200] for one in answers]
                page = (await client.get("/", headers={"accept": HTML})).text
                assert ('href="/status"' in page) is (expected != {403})


async def test_feedback_is_for_who_was_shown_the_answer(settings: Settings) -> None:
    async with app_of(settings) as app:
        async with client_as(app, BOARD) as client:
            answer = (await client.post("/query", json={"query": "retry limit", "timeout_ms": 60_000})).json()
        judged = {"query_id": answer["query_id"], "chunk_id": answer["items"][0]["chunk_id"], "useful": True}
        for token, status in ((OUTSIDER, 404), (SERVICE, 404), (BOARD, 200)):
            async with client_as(app, token) as client:
                assert (await client.post("/feedback", json=judged)).status_code == status
        async with client_as(app, OUTSIDER) as client:
            given = await client.post("/feedback", json=judged)
            none = await client.post("/feedback", json={**judged, "query_id": "q-none"})
            assert given.text.replace(judged["query_id"], "…") == none.text.replace("q-none", "…")


async def test_tools_answer_who_calls_them(settings: Settings, ids: Mapping[str, str]) -> None:
    async with app_of(settings) as app:
        for token, sees in ((OUTSIDER, False), (BOARD, True), (SERVICE, True)):
            async with tools_as(app, token) as client:
                found = str(await client.call_tool("search", {"query": "deal in May"}))
                answered = str(await client.call_tool("answer", {"query": "deal in May"}))
                fetched = str(await client.call_tool("fetch", {"id": ids["plan.md"]}))
                whole = str(await client.call_tool("fetch", {"id": "document:documentation/board/plan.md"}))
                conflicts = str(await client.call_tool("conflicts", {}))
                status = await client.call_tool("status", {})
                for text in (found, answered, fetched, whole):
                    assert (SECRET in text) is sees, text[:500]
                assert ("plan.md" in conflicts) is sees
                docs = next(
                    one for one in (status.structured_content or {})["domains"] if one["domain"] == "documentation"
                )
                assert docs["documents"] == {OUTSIDER: 1, BOARD: 2, SERVICE: 3}[token]


async def test_a_token_that_is_taken_out_stops_at_once(own: Settings, tmp_path: Path) -> None:
    async with (
        app_of(own) as app,
        client_as(app, BOARD) as board,
        client_as(app, "nw_new") as new,
        client_as(app, SERVICE) as service,
    ):
        assert (await board.get("/agents")).status_code == 200
        is_problem(await new.get("/agents"), 401)
        write_tokens(tmp_path, {"nw_new": ["board"]})
        is_problem(await board.get("/agents"), 401)
        described = (await new.get("/agents/documentation/describe")).json()
        assert described["documents"] == 2
        write_tokens(tmp_path, {"nw_new": ["guests"]})
        assert (await new.get("/agents/documentation/describe")).json()["documents"] == 1
        (tmp_path / "tokens.yaml").write_text("nw_new: [board", encoding="utf-8")
        problem = is_problem(await new.get("/agents"), 503)
        assert "tokens.yaml" not in str(problem)
        assert (await service.get("/agents")).status_code == 200
        (tmp_path / "tokens.yaml").unlink()
        is_problem(await new.get("/agents"), 503)
        write_tokens(tmp_path, {"nw_new": ["board"]})
        assert (await new.get("/agents")).status_code == 200


async def test_pages_with_a_session_of_somebody_in_groups(own: Settings, tmp_path: Path) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    async with app_of(own) as app:
        for token, sees in ((STAFF, False), (BOARD, True), (SERVICE, True)):
            async with client_as(app, None, accept=HTML) as browser:
                assert (await browser.get("/?q=deal")).status_code == 303
                entered = await browser.post("/login", content=f"token={token}&next=/", headers=form)
                assert entered.status_code == 303
                assert token not in entered.headers["set-cookie"]
                page = (await browser.get("/", params={"q": "deal in May"})).text
                assert ("plan.md" in page) is sees
                csrf = re.search('name="csrf-token" content="([0-9a-f]+)"', page)
                assert csrf
                is_problem(await browser.post("/query", json={"query": "x"}, headers={"accept": "*/*"}), 403)
                sent = {"x-csrf-token": csrf[1], "accept": "*/*"}
                answer = await browser.post("/query", json={"query": "deal in May"}, headers=sent)
                assert ("plan.md" in answer.text) is sees
        async with client_as(app, None, accept=HTML) as browser:
            await browser.post("/login", content=f"token={BOARD}&next=/", headers=form)
            assert (await browser.get("/?q=deal")).status_code == 200
            write_tokens(tmp_path, {STAFF: ["staff"]})
            assert (await browser.get("/?q=deal")).status_code == 303, "the session ended with its token"
            wrong = await browser.post("/login", content=f"token={BOARD}&next=/", headers=form)
            assert wrong.status_code == 401


async def test_without_access_nobody_is_in_a_group(tmp_path: Path) -> None:
    """Sources for groups are refused at the start; documents that name groups are for the command line alone."""
    settings = write_access_workspace(tmp_path, access={})
    with pytest.raises(ConfigError, match="source 'board' is for groups"):
        check_listening("127.0.0.1", "token", settings)
    publish_access(settings)
    async with app_of(settings) as app, client_as(app, SERVICE) as client:
        answers = await said(client, "key with operations")
        assert not any(INNER in answer or "marked.md" in answer for answer in answers.values())
        assert (await client.get("/agents/documentation/describe")).json()["documents"] == 1
        assert (await client.get("/status.json")).status_code == 200, "whoever may ask may operate, as ever"


async def test_a_source_is_restricted_by_the_next_sync_of_a_running_server(own: Settings, tmp_path: Path) -> None:
    async with app_of(own) as app, client_as(app, OUTSIDER) as client:

        async def found() -> str:
            return (await client.post("/query", json={"query": "RETRY_LIMIT"})).text

        assert "limits.py" in await found()
        changed = [{**one, "access": ["board"]} if one["id"] == "code" else one for one in SOURCES]
        await asyncio.to_thread(publish_access, configure_access(tmp_path, {"tokens": "tokens.yaml"}, changed))
        async with asyncio.timeout(60):
            while "limits.py" in await found():
                await asyncio.sleep(0.05)


async def test_files_are_handed_in_by_operators_alone(settings: Settings) -> None:
    async with app_of(settings) as app:
        for token, status in ((BOARD, 403), (SERVICE, 202)):
            async with client_as(app, token) as client:
                files = {"file": ("large.md", b"word " * 440_000)}
                answer = await client.post("/agents/documentation/ingest", files=files)
                assert answer.status_code == status, answer.text


@pytest.mark.parametrize(("token", "status"), [(OUTSIDER, 404), (STAFF, 404), (BOARD, 200), (SERVICE, 200)])
async def test_why_knows_of_no_document_that_is_not_for_somebody(settings: Settings, token: str, status: int) -> None:
    async with app_of(settings) as app, client_as(app, token) as client:
        body = {"query": "limit", "source_path": "plan.md", "timeout_ms": 60_000}
        assert (await client.post("/why", json=body)).status_code == status
        page = await client.get("/why", params={"q": "limit", "path": "plan.md"}, headers={"accept": HTML})
        assert ("no such document" in page.text.lower()) is (status == 404)


async def test_the_name_of_a_restricted_source_is_told_with_its_items_alone(tmp_path: Path) -> None:
    settings = write_access_workspace(tmp_path)
    (tmp_path / "vault" / "keys.py").unlink()
    await asyncio.to_thread(publish_access, settings)
    listed = VerifiedSource("2026-11-24T10:00:00Z", None)
    verified = Verified(GenerationId("gen-000001"), {"code": listed, "vault": listed})
    write_verified(domain_folder(settings, Domain.CODE), verified)
    async with app_of(settings) as app:
        told = {}
        for token in (STAFF, SERVICE):
            async with client_as(app, token) as client:
                answer = (await client.post("/query", json={"query": "retry limit", "timeout_ms": 60_000})).json()
                told[token] = answer["coverage"]["code"]["sources"].keys()
    assert "vault" not in told[STAFF] and {"code", "vault"} <= told[SERVICE]
