"""``/metrics``: what Prometheus reads, by its own parser, of one process and of several."""

import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest
import yaml
from api_support import client_of
from processes import SERVE, Started
from prometheus_client.parser import text_string_to_metric_families
from waiting import until

from api.metrics import reason_kind
from nornweave.config import Settings

MONITORING = Path(__file__).parents[2] / "docs" / "monitoring"

Sample = tuple[str, frozenset[tuple[str, str]]]


def samples(text: str) -> dict[Sample, float]:
    families = text_string_to_metric_families(text)
    return {(one.name, frozenset(one.labels.items())): one.value for family in families for one in family.samples}


def value(found: dict[Sample, float], name: str, **labels: str) -> float:
    return found[name, frozenset(labels.items())]


async def test_requests_answers_and_the_state_of_the_index_are_there(published: Settings) -> None:
    async with client_of(published, None) as client:
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


async def test_what_cannot_be_read_is_counted_and_costs_the_rest_nothing(settings: Settings) -> None:
    history = settings.data_dir / "evaluations" / "history.duckdb"
    history.parent.mkdir(exist_ok=True)
    history.write_bytes(b"no database")
    async with client_of(settings, None) as client:
        found = samples((await client.get("/metrics")).text)
        assert value(found, "nornweave_unreadable_state") == 1
        assert value(found, "nornweave_open_conflicts") == 0


async def test_the_dashboard_and_the_alerts_name_metrics_that_there_are(published: Settings) -> None:
    used = set(re.findall(r"nornweave_\w+", (MONITORING / "grafana-dashboard.json").read_text()))
    used |= set(re.findall(r"nornweave_\w+", (MONITORING / "alerts.yaml").read_text()))
    panels = json.loads((MONITORING / "grafana-dashboard.json").read_text())["panels"]
    assert len(panels) >= 10 and yaml.safe_load((MONITORING / "alerts.yaml").read_text())["groups"]
    async with client_of(published, None) as client:
        await client.post("/query", json={"query": "post_entry"})
        text = (await client.get("/metrics")).text
        declared = {family.name for family in text_string_to_metric_families(text)}
        known = {name + suffix for name in declared for suffix in ("", "_total", "_sum", "_count", "_bucket")}
        assert used <= known, used - known


@pytest.mark.parametrize(("reason", "kind"), [
    ("timeout after 5000ms", "timeout"),
    ("nothing is published yet; run `nornweave sync`", "unpublished"),
    ("gen-000001: cannot be read", "failed"),
])  # fmt: skip
def test_reasons_are_of_few_kinds(reason: str, kind: str) -> None:
    assert reason_kind(reason) == kind


@pytest.mark.slow
def test_several_processes_are_added_up_also_after_one_of_them_died(published: Settings, started: Started) -> None:
    server, url = started(SERVE, published.file, 2)

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
