"""Dagster's real web server as ``nornweave up`` starts it: pages of other sites drive nothing, people everything."""

import json
import os
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from configurations import configured, files
from forked import free_port
from waiting import until
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from nornweave.carry.wiring import domain_folder
from nornweave.config import Settings
from nornweave.core.types import Domain
from nornweave.index.outcomes import read_status
from nornweave.ingest.records import SyncOptions, no_progress
from orchestration.instance import open_instance
from orchestration.runs import materialize

pytestmark = [pytest.mark.slow, pytest.mark.timeout(500)]

TOKEN = "sesame"
OPENED = {"Authorization": f"Bearer {TOKEN}"}
FOREIGN = {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}
# Generous: five processes that load Dagster on a machine that may have much else to do.
DOCUMENTS, START_S = 40, 300.0
LAUNCH = """
mutation ($params: ExecutionParams!) {
  launchRun(executionParams: $params) {
    __typename
    ... on RunConfigValidationInvalid { errors { message } }
    ... on PythonError { message }
  }
}
"""
UNFINISHED = """
{ runsOrError(filter: {statuses: [QUEUED, NOT_STARTED, STARTING, STARTED, CANCELING]}) {
  ... on Runs { results { id } } } }
"""
SENSORS = """
{ sensorsOrError(repositorySelector: {repositoryLocationName: "nornweave", repositoryName: "__repository__"}) {
  ... on Sensors { results { sensorState { id } } } } }
"""
STOP_SENSOR = "mutation ($id: String) { stopSensor(id: $id) { __typename } }"
SHUT_DOWN = 'mutation { shutdownRepositoryLocation(repositoryLocationName: "nornweave") { __typename } }'
LOCATIONS = """
{ workspaceOrError { ... on Workspace { locationEntries { locationOrLoadError {
  __typename ... on RepositoryLocation { repositories { jobs { name } } } } } } } }
"""


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Return a workspace that has lost 39 of its 40 documents since they were published."""
    folder = tmp_path_factory.mktemp("workspace")
    (folder / "docs").mkdir()
    for number in range(DOCUMENTS):
        (folder / "docs" / f"{number:02}.md").write_text(f"# Page {number}\n\nPayments settle in {number} days.\n")
    settings = configured(folder, files("handbook", path="docs"))
    with open_instance(settings) as instance:
        materialize(settings, [Domain.DOCUMENTATION], SyncOptions(), no_progress, instance)
    for number in range(1, DOCUMENTS):
        (folder / "docs" / f"{number:02}.md").unlink()
    return settings


@pytest.fixture(scope="module")
def ui(settings: Settings) -> Iterator[str]:
    """Return the address of the UI; in the end the program that started it is killed, and takes everything along."""
    port, api_port = free_port(), free_port()
    log = settings.file.with_name("log")
    with log.open("w") as stream:
        supervisor = subprocess.Popen(
            [sys.executable, "-m", "nornweave.cli", "--config", settings.file, "up", "--dagster-port", str(port)],
            env={**os.environ, "FUSION_PORT": str(api_port), "NORNWEAVE_SERVICE_TOKEN": TOKEN},
            stdout=stream,
            stderr=stream,
        )
    address = f"http://127.0.0.1:{port}"
    family: list[psutil.Process] = []
    try:
        wait_for(address, log)
        stop_sensors(address)
        yield address
        wait_until_idle(address)
        until(
            lambda: all(f": http://127.0.0.1:{each}\n" in log.read_text() for each in (port, api_port)), log.read_text
        )
        family = psutil.Process(supervisor.pid).children(recursive=True)
        assert len(family) >= 5, "the API; Dagster's own, web server, daemon, code server"
        # Elsewhere a killed supervisor leaves them running.
        supervisor.kill() if sys.platform == "linux" else supervisor.terminate()
        until(lambda: all(map(is_gone, family)), log.read_text)
    finally:
        family = family or psutil.Process(supervisor.pid).children(recursive=True)
        supervisor.kill()
        supervisor.wait()
        for each in family:
            with suppress(psutil.NoSuchProcess):
                each.kill()


def is_gone(process: psutil.Process) -> bool:
    """Tell whether a process has ended, also if nobody has collected it."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def wait_for(address: str, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        try:
            httpx.get(f"{address}/server_info", headers=OPENED, timeout=START_S)
        except httpx.TransportError:
            time.sleep(0.2)
        else:
            return
    pytest.fail(log.read_text())


def stop_sensors(ui: str) -> None:
    """Let nothing launch a run but the tests; what a sensor launched before goes on."""
    deadline = time.monotonic() + START_S
    while not (sensors := graphql(ui, SENSORS)["sensorsOrError"].get("results")):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    for sensor in sensors:
        stopped = graphql(ui, STOP_SENSOR, {"id": sensor["sensorState"]["id"]})["stopSensor"]
        assert stopped["__typename"] == "StopSensorMutationResult"


def wait_until_idle(ui: str) -> None:
    """Wait until no run is under way: a run that is interrupted is no clean end of the server."""
    deadline = time.monotonic() + START_S
    while graphql(ui, UNFINISHED)["runsOrError"]["results"]:
        assert time.monotonic() < deadline
        time.sleep(0.2)


def graphql(ui: str, query: str, variables: dict[str, object] | None = None) -> dict[str, Any]:
    """Ask as the UI itself does."""
    own = {**OPENED, "Origin": ui, "Sec-Fetch-Site": "same-origin"}
    answer = httpx.post(f"{ui}/graphql", json={"query": query, "variables": variables}, headers=own, timeout=START_S)
    data: dict[str, Any] = answer.raise_for_status().json()["data"]
    return data


def launch(**config: object) -> dict[str, object]:
    """Return the parameters of a run with a configuration."""
    selector = {"repositoryLocationName": "nornweave", "repositoryName": "__repository__", "jobName": "sync"}
    options = {"resources": {"syncs": {"config": config}}}
    return {"params": {"selector": selector, "runConfigData": json.dumps(options), "mode": "default"}}


def is_alive(ui: str) -> bool:
    """Tell whether the code location still answers."""
    (entry,) = graphql(ui, LOCATIONS)["workspaceOrError"]["locationEntries"]
    return bool(entry["locationOrLoadError"]["__typename"] == "RepositoryLocation")


def test_the_ui_and_its_queries_work(ui: str) -> None:
    page = httpx.get(f"{ui}/runs", headers=OPENED, timeout=START_S)
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert page.headers["x-frame-options"] == "SAMEORIGIN"
    script = page.text.partition('src="')[2].partition('"')[0]
    assert httpx.get(urllib.parse.urljoin(ui, script), headers=OPENED, timeout=START_S).status_code == 200
    (entry,) = graphql(ui, LOCATIONS)["workspaceOrError"]["locationEntries"]
    jobs = {job["name"] for job in entry["locationOrLoadError"]["repositories"][0]["jobs"]}
    assert {"sync", "evaluation"} <= jobs


@pytest.mark.parametrize("name", ["x", "%00", "..%2f..%2fetc", "x" * 5_000, "00000000-0000-0000-0000-000000000000"])
def test_paths_that_name_nothing_are_not_found(ui: str, name: str) -> None:
    for path in (
        "/logs/{}",
        "/download_debug/{}",
        "/notebook?path={0}&repoLocName={0}",
        "/logs/{}/x/out",
        "/static/{}",
    ):
        assert httpx.get(ui + path.format(name), headers=OPENED, timeout=START_S).status_code < 500, path


@pytest.mark.parametrize("body", [b"[]", b"null", b'{"query": 1}', b"\xff\xfe", b"[" * 100_000, b'{"query": null}'])
def test_bodies_that_are_no_queries_are_bad_requests(ui: str, body: bytes) -> None:
    headers = {**OPENED, "content-type": "application/json"}
    assert httpx.post(f"{ui}/graphql", content=body, headers=headers, timeout=START_S).status_code == 400


def test_the_ui_gets_events_by_websocket(ui: str) -> None:
    websocket = f"{ui.replace('http', 'ws')}/graphql"
    headers = {**OPENED, "Origin": ui}
    with connect(websocket, additional_headers=headers, subprotocols=["graphql-ws"], proxy=None) as stream:  # type: ignore[list-item]
        stream.send(json.dumps({"type": "connection_init"}))
        assert json.loads(stream.recv()) == {"type": "connection_ack"}

    for wrong in ({**OPENED, **FOREIGN}, {"Origin": ui}, {**OPENED, "Origin": "http://127.0.0.1:8000"}):
        with pytest.raises(InvalidStatus, match="403"):
            connect(websocket, additional_headers=wrong, proxy=None)


def test_other_sites_drive_nothing(ui: str) -> None:
    body = json.dumps({"query": LAUNCH, "variables": launch(full=True)})
    json_type, text_type = {"Content-Type": "application/json"}, {"Content-Type": "text/plain"}
    with httpx.Client(base_url=ui, headers=OPENED, timeout=START_S) as client:
        assert client.post("/graphql", content=body, headers={**FOREIGN, **json_type}).status_code == 403
        assert client.post("/graphql", content=body, headers={"Host": "evil.example", **json_type}).status_code == 421
        assert client.post("/graphql", content=body, headers=text_type).status_code == 415
        assert client.post("/graphql", params={"query": SHUT_DOWN}, headers=text_type).status_code == 415
        assert client.get("/graphql", params={"query": SHUT_DOWN}).status_code == 405
        assert client.post("/report_asset_materialization/documentation/index", json={}).status_code == 405
    without_token = httpx.post(f"{ui}/graphql", content=body, headers=json_type, timeout=START_S)
    assert without_token.status_code == 401
    assert is_alive(ui)


def test_a_run_that_is_launched_in_the_ui_confirms_nothing(ui: str, settings: Settings) -> None:
    for name in ("confirm_deletes", "accept_quality"):
        refused = graphql(ui, LAUNCH, launch(full=True, **{name: True}))["launchRun"]
        assert refused["__typename"] == "RunConfigValidationInvalid"
        assert f'unexpected config entry "{name}"' in refused["errors"][0]["message"]

    launched = graphql(ui, LAUNCH, launch(full=True))["launchRun"]
    assert launched["__typename"] == "LaunchRunSuccess"
    wait_until_idle(ui)

    latest = read_status(domain_folder(settings, Domain.DOCUMENTATION))["latest"]
    assert (latest["documents"], latest["removed"]) == (DOCUMENTS, 0)
    assert len(latest["held"][0]["paths"]) == DOCUMENTS - 1
