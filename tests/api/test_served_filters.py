"""Declared filters, as they are served: over HTTP, to agents, on the page and on the command line."""

import json
import re
from typing import Any

import httpx
import mcp_client
import pytest
from api_support import client_of, publish
from command_line import nornweave
from configurations import HASHED, configured, files
from test_real_engine import until_ready

from nornweave.config import Settings

FILES = {
    "prod.md": "---\nenvironment: Prod\nseverity: 3\nconfidence: 0.9\n---\n# Prod\n\nThe queue is drained.\n",
    "stage.md": "---\nenvironment: staging\nseverity: 1\n---\n# Stage\n\nThe queue is drained.\n",
    "none.md": "# None\n\nThe queue is drained.\n",
}


@pytest.fixture(scope="module")
def declared(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("served-filters")
    (folder / "docs").mkdir()
    for path, text in FILES.items():
        (folder / "docs" / path).write_text(text)
    filters = [{"key": "severity", "type": "integer", "from": "front_matter.severity"}]
    domain = {**HASHED, "reranking": {"model": None}, "filters": filters}
    settings = configured(folder, files("handbook", path="docs"), domain=domain)
    publish(settings)
    return settings


async def test_over_http_and_on_the_page(declared: Settings) -> None:
    async def paths(client: httpx.AsyncClient, filters: dict[str, Any]) -> set[str]:
        body = {"query": "queue drained", "filters": {"documentation": filters}, "timeout_ms": 60_000}
        answer = await client.post("/query", json=body)
        assert answer.status_code == 200, answer.text
        return {item["citation"]["source_path"] for item in answer.json()["items"]}

    async with client_of(declared, None) as client:
        await until_ready(client)
        assert await paths(client, {"severity": {"min": 2}}) == {"prod.md"}
        assert await paths(client, {"environment": ["prod", "STAGING"], "severity": 1}) == {"stage.md"}
        assert await paths(client, {"confidence": {"min": 0.5}}) == {"prod.md"}
        wrong = await client.post("/query", json={"query": "x", "filters": {"documentation": {"severity": "3"}}})
        assert wrong.status_code == 422
        assert wrong.json()["errors"][0]["field"] == "filters.documentation.severity"
        described = (await client.get("/agents/documentation/describe")).json()
        severity = next(each for each in described["filters"] if each["key"] == "severity")
        assert severity["values"] == [
            {"value": 1, "documents": 1, "chunks": 1},
            {"value": 3, "documents": 1, "chunks": 1},
        ]
        page = (await client.get("/", headers={"accept": "text/html"})).text
        assert 'name="documentation.severity.min"' in page
        assert re.search(r'name="documentation\.environment" value="prod"[^>]*> <bdi>prod</bdi>', page)
        assert "error category" not in page, "no document states one"
        query = "/.json?q=queue&documentation.severity.min=2&documentation.severity.max=3"
        asked = (await client.get(query)).json()
        assert {item["citation"]["source_path"] for item in asked["items"]} == {"prod.md"}


async def test_to_agents(declared: Settings) -> None:
    async with mcp_client.tools_of(declared) as client:
        await mcp_client.until_loaded(client)
        (documentation,) = (await mcp_client.result(client, "status"))["domains"]
        assert documentation["filters"]["severity"] == "integer, from 1 to 3"
        assert documentation["filters"]["environment"] == "keyword, such as prod, staging"
        assert "error_category" not in documentation["filters"]
        search = next(tool for tool in (await client.list_tools()).tools if tool.name == "search")
        said = search.input_schema["properties"]["filters"]["description"]
        assert said.endswith("The team's own: documentation: severity (integer).")
        asked = {"documentation": {"severity": {"max": 2}}}
        results = (await mcp_client.result(client, "search", query="queue", filters=asked))["results"]
        assert {each["title"].split(" ")[0] for each in results} == {"Stage"}


def test_on_the_command_line(declared: Settings) -> None:
    folder = declared.file.parent
    found = nornweave(folder, "query", "queue", "--filter", "documentation.severity=2..", "--json")
    assert {item["citation"]["source_path"] for item in json.loads(found.stdout)["items"]} == {"prod.md"}
    wrong = nornweave(folder, "query", "queue", "--filter", "documentation.severity=high")
    assert (wrong.returncode, "'high' is not an integer" in wrong.stderr) == (2, True)
