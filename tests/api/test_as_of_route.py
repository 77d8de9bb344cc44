"""``as_of`` and ``/generations/{a}/diff/{b}``: statements of then and today count, wrong moments are named."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from access_workspace import (
    BOARD,
    OUTSIDER,
    SECRET,
    SERVICE,
    STAFF,
    app_of,
    client_as,
    configure_access,
    publish_access,
    tools_as,
    write_access_workspace,
)
from api_support import is_problem

from nornweave.config import Settings
from nornweave.connect.connectors import load_settings

HTML = "text/html,*/*;q=0.8"
FIRST = "gen-000001"
NEWEST = {"code": "gen-000001", "documentation": "gen-000003"}


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Settings, str, str]:
    """Three generations of the documentation, and a moment after the first and after the second.

    The guide's limit changed, then it became the staff's; a page that was for the staff became everybody's and went.
    """
    folder = tmp_path_factory.mktemp("moments")
    settings = write_access_workspace(folder)
    judged = folder / "judged"
    judged.mkdir()
    (judged / "queries.jsonl").write_text(json.dumps({"id": "limit", "text": "the retry limit"}), "utf-8")
    (judged / "qrels.tsv").write_text("query_id\tdoc_id\tgrade\nlimit\tguide.md\t1\n", "utf-8")
    moments = []
    guide, marked = folder / "open" / "guide.md", folder / "open" / "marked.md"
    publish_access(settings)
    moments.append(datetime.now(UTC).isoformat())
    guide.write_text(guide.read_text("utf-8").replace("limit is 3", "limit is 4"), "utf-8")
    marked.write_text(marked.read_text("utf-8").replace("access: [staff]", "kind: page"), "utf-8")
    publish_access(settings)
    moments.append(datetime.now(UTC).isoformat())
    guide.write_text(f"---\naccess: [staff]\n---\n{guide.read_text('utf-8')}", "utf-8")
    marked.unlink()
    publish_access(settings)
    return settings, moments[0], moments[1]


def contents(answer: Mapping[str, Any], path: str) -> list[str]:
    return [item["content"] for item in answer["items"] if item["citation"]["source_path"] == path]


async def test_a_question_is_answered_from_what_was_published_then(published: tuple[Settings, str, str]) -> None:
    settings, first, second = published
    async with app_of(settings) as app:
        async with client_as(app, STAFF) as client:
            for as_of, limit, generation in ((first, 3, FIRST), (second, 4, "gen-000002"), (FIRST, 3, FIRST)):
                answer = (await client.post("/query", json={"query": "retry limit", "as_of": as_of})).json()
                assert f"limit is {limit}" in contents(answer, "guide.md")[0]
                covered = answer["coverage"]["documentation"]
                assert (covered["generation"], covered["notices"]) == (generation, [])
                again = {"query": "retry limit", "as_of": covered["indexed_at"]}
                assert (await client.post("/query", json=again)).json()["coverage"]["documentation"] == {
                    **covered, "latency_ms": pytest.approx(covered["latency_ms"], abs=1e6)
                }  # fmt: skip
            page = await client.get("/", params={"q": "retry limit", "as_of": first}, headers={"accept": HTML})
            assert "limit</mark> is 3" in page.text or "limit is 3" in page.text
            now = (await client.post("/query", json={"query": "retry limit"})).json()
            assert {name: each["generation"] for name, each in now["coverage"].items()} == NEWEST
        async with tools_as(app, STAFF) as tools:
            found = await tools.call_tool("search", {"query": "retry limit", "as_of": first})
            assert "limit is 3" in str(found.structured_content)


async def test_what_was_stated_then_and_what_is_stated_today_have_both_to_be_met(
    published: tuple[Settings, str, str],
) -> None:
    settings, first, second = published
    async with app_of(settings) as app:
        last = {"marked.md"}  # everybody could see it before it went, and only the staff at first
        both = ({"guide.md"} | last, {"guide.md"} | last)
        for token, seen in ((OUTSIDER, (set(), last)), (STAFF, both), (BOARD, ({"plan.md"}, {"plan.md"} | last))):
            async with client_as(app, token) as client:
                for as_of, paths in zip((first, second), seen, strict=True):
                    body = {"query": "guide plan key limit", "as_of": as_of, "domains": ["documentation"]}
                    answer = (await client.post("/query", json=body)).json()
                    assert {item["citation"]["source_path"] for item in answer["items"]} == paths, token
                    assert token == BOARD or SECRET not in json.dumps(answer)


async def test_what_changed_between_two_moments(published: tuple[Settings, str, str]) -> None:
    settings, first, second = published
    settings = configure_access(settings.file.parent, {"tokens": "tokens.yaml"})
    document = json.loads(settings.file.read_text("utf-8"))
    document["domains"]["documentation"]["evaluation"] = {"judgments": ["judged"]}
    settings.file.write_text(json.dumps(document), "utf-8")
    async with app_of(load_settings(settings.file, {})) as app:
        url = f"/generations/{first}/diff/{second}"
        async with client_as(app, SERVICE) as client:
            changes = (await client.get(url)).json()
            docs = changes["domains"]["documentation"]
            assert (docs["a"]["generation"], docs["b"]["generation"]) == (FIRST, "gen-000002")
            assert docs["counts"] == {"added": 0, "changed": 2, "removed": 0, "commits": 0}
            (limit,) = [fact for fact in docs["facts"] if fact["name"] == "retry limit"]
            assert (limit["source_path"], limit["before"], limit["after"]) == ("guide.md", "3", "4")
            opened = {tuple(side["value"] for side in one["sides"]) for one in changes["conflicts"]["opened"]}
            closed = {tuple(side["value"] for side in one["sides"]) for one in changes["conflicts"]["closed"]}
            assert any("4" in values for values in opened) and any("3" in values for values in closed)
            assert changes["questions"] == 1 and changes["answers"][0]["query_id"] == "limit"
            text = (await client.get(url, params={"format": "text", "domain": "documentation"})).text
            assert "fact in guide/guide.md" in text and "code" not in text
            same = (await client.get(f"/generations/{first}/diff/{first}")).json()
            assert same["answers"] == [] and not any(same["domains"]["documentation"]["counts"].values())
        async with client_as(app, OUTSIDER) as client:
            changes = (await client.get(url)).json()
            assert changes["domains"]["documentation"]["added"] == [{"source_id": "guide", "source_path": "marked.md"}]
            assert not changes["domains"]["documentation"]["changed"]  # the guide is for the staff
            assert changes["questions"] == 0 and changes["conflicts"] == {"opened": [], "closed": []}


WRONG = (
    ("2020-01-01T00:00:00Z", 404, "oldest kept is gen-000001"),
    ("gen-000009", 404, "oldest kept is gen-000001"),
    ("yesterday", 422, "RFC 3339"),
    ("2999-01-01T00:00:00Z", 422, "future"),
)


@pytest.mark.parametrize(("as_of", "status", "says"), WRONG)
async def test_a_moment_that_cannot_be_is_named(
    published: tuple[Settings, str, str], as_of: str, status: int, says: str
) -> None:
    async with app_of(published[0]) as app, client_as(app, SERVICE) as client:
        for path in ("/query", "/why"):
            place = {"source_path": "guide.md"} if path == "/why" else {}
            problem = is_problem(await client.post(path, json={"query": "x", "as_of": as_of, **place}), status)
            assert says in problem["detail"]
        problem = is_problem(await client.get(f"/generations/{as_of}/diff/{FIRST}"), status)
        assert says in problem["detail"]
        page = await client.get("/", params={"q": "x", "as_of": as_of}, headers={"accept": HTML})
        assert page.status_code == status and says in page.text
        one = is_problem(await client.get(f"/generations/{FIRST}/diff/{FIRST}", params={"domain": "no"}), 422)
        assert one["errors"][0]["field"] == "domain"


async def test_a_purged_document_is_in_no_earlier_answer(tmp_path: Path) -> None:
    settings = write_access_workspace(tmp_path)
    publish_access(settings)
    moment = datetime.now(UTC).isoformat()
    (tmp_path / "open" / "guide.md").unlink()
    publish_access(settings)
    async with app_of(settings) as app:
        body = {"query": "payments settle", "as_of": moment, "domains": ["documentation"]}
        async with client_as(app, SERVICE) as client:
            assert contents((await client.post("/query", json=body)).json(), "guide.md")
            receipt = {"domain": "documentation", "source_id": "guide", "source_path": "guide.md", "purge": True}
            assert (await client.post("/receipts", json=receipt)).json()["gone"]
            problem = is_problem(await client.post("/query", json=body), 404)
            assert "oldest kept is gen-000002" in problem["detail"]
