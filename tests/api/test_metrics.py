"""``/metrics``: what Prometheus reads, by its own parser, of one process and of several."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest
import yaml
from api_support import client_of
from processes import Started
from prometheus_client.parser import text_string_to_metric_families
from scripted_engine import ScriptedEngine
from waiting import until

from api.metrics import reason_kind
from api.server.workers import HAS_WORKERS
from nornweave.config import Settings

SERVE = """
import sys
from pathlib import Path
from api.server.serving import serve
from nornweave.connect.connectors import load_settings
sys.exit(serve(load_settings(Path(sys.argv[1]), {}), port=0, workers=2))
"""

MONITORING = Path(__file__).parents[2] / "docs" / "monitoring"

Sample = tuple[str, frozenset[tuple[str, str]]]


def samples(text: str) -> dict[Sample, float]:
    families = text_string_to_metric_families(text)
    return {(one.name, frozenset(one.labels.items())): one.value for family in families for one in family.samples}


def value(found: dict[Sample, float], name: str, **labels: str) -> float:
    return found[name, frozenset(labels.items())]


def drive(settings: Settings, test: Callable[[httpx.AsyncClient], Awaitable[None]], engine: object = None) -> None:
    async def main() -> None:
        async with client_of(settings, engine) as client:
            await test(client)

    asyncio.run(main())


def test_requests_answers_and_the_state_of_the_index_are_there(published: Settings) -> None:
    async def test(client: httpx.AsyncClient) -> None:
        for _ in range(2):
            answer = await client.post("/query", json={"query": "post_entry"})
            assert answer.status_code == 200
        await client.post("/query", json={"query": ""})
        await client.get("/chunks/nothing")
        await client.get("/nothing/at/all")
        await client.post("/mcp", json={})
        answer = await client.get("/metrics")
        assert answer.headers["content-type"].startswith("text/plain; version=")
        found = samples(answer.text)
        requests = "nornweave_http_requests_total"
        assert value(found, requests, method="POST", route="/query", status="200") == 2
        assert value(found, requests, method="POST", route="/query", status="422") == 1
        assert value(found, requests, method="GET", route="/chunks/{chunk_id}", status="404") == 1
        assert value(found, requests, method="GET", route="unmatched", status="404") == 1
        assert value(found, "nornweave_answer_stage_duration_seconds_count", stage="rank") == 2
        assert value(found, "nornweave_retrievals_total", domain="code", retriever="dense", outcome="ok") == 2
        assert value(found, "nornweave_query_vectors_total", origin="encoded") >= 1
        assert value(found, "nornweave_generation_age_seconds", domain="code") > 0
        assert value(found, "nornweave_open_conflicts") == 0
        assert value(found, "nornweave_unreadable_state") == 0

    drive(published, test)


def test_what_cannot_be_read_is_counted_and_costs_the_rest_nothing(published: Settings) -> None:
    history = published.data_dir / "evaluations" / "history.duckdb"
    history.parent.mkdir(exist_ok=True)
    history.write_bytes(b"no database")

    async def test(client: httpx.AsyncClient) -> None:
        found = samples((await client.get("/metrics")).text)
        assert value(found, "nornweave_unreadable_state") == 1
        assert value(found, "nornweave_open_conflicts") == 0

    try:
        drive(published, test)
    finally:
        history.unlink()


def test_metrics_need_the_token_where_there_is_one(settings: Settings, engine: ScriptedEngine) -> None:
    async def main() -> None:
        token = "a-token-of-32-characters-or-more-x"
        async with client_of(settings, engine, environment={"NORNWEAVE_SERVICE_TOKEN": token}) as client:
            assert (await client.get("/metrics")).status_code == 401
            allowed = await client.get("/metrics", headers={"authorization": f"Bearer {token}"})
            assert allowed.status_code in {200, 503}

    asyncio.run(main())


def test_the_dashboard_and_the_alerts_name_metrics_that_there_are(published: Settings) -> None:
    used = set(re.findall(r"nornweave_\w+", (MONITORING / "grafana-dashboard.json").read_text()))
    used |= set(re.findall(r"nornweave_\w+", (MONITORING / "alerts.yaml").read_text()))
    panels = json.loads((MONITORING / "grafana-dashboard.json").read_text())["panels"]
    assert len(panels) >= 10 and yaml.safe_load((MONITORING / "alerts.yaml").read_text())["groups"]

    async def test(client: httpx.AsyncClient) -> None:
        await client.post("/query", json={"query": "post_entry"})
        text = (await client.get("/metrics")).text
        declared = {family.name for family in text_string_to_metric_families(text)}
        known = {name + suffix for name in declared for suffix in ("", "_total", "_sum", "_count", "_bucket")}
        assert used <= known, used - known

    drive(published, test)


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("timeout after 5000ms", "timeout"),
        ("nothing is published yet; run `nornweave sync`", "unpublished"),
        ("gen-000001: cannot be read", "failed"),
    ],
)
def test_reasons_are_of_few_kinds(reason: str, kind: str) -> None:
    assert reason_kind(reason) == kind


@pytest.mark.slow
@pytest.mark.skipif(not HAS_WORKERS, reason="this system does not share ports between processes")
def test_several_processes_are_added_up_also_after_one_of_them_died(published: Settings, started: Started) -> None:
    server, url = started(SERVE, published.file)

    def ask(_: int) -> int:
        return httpx.post(f"{url}/query", json={"query": "post_entry"}, timeout=60).status_code

    def answered() -> float:
        found = samples(httpx.get(f"{url}/metrics", timeout=60).text)
        return value(found, "nornweave_http_requests_total", method="POST", route="/query", status="200")

    with ThreadPoolExecutor(8) as clients:
        assert set(clients.map(ask, range(40))) == {200}
    assert answered() == 40
    serving = [one for one in psutil.Process(server.pid).children() if "api.server.process" in one.cmdline()]
    serving[0].kill()
    psutil.wait_procs(serving[:1], timeout=60)
    until(lambda: len(psutil.Process(server.pid).children()) >= 2)
    with ThreadPoolExecutor(8) as clients:
        again = [code for code in clients.map(lambda number: _retried(ask, number), range(40)) if code == 200]
    assert answered() >= 40 + len(again)


def _retried(ask: Callable[[int], int], number: int) -> int:
    """Ask again if the connection was that of the process that died."""
    for _ in range(5):
        try:
            return ask(number)
        except httpx.HTTPError:
            continue
    return 0
