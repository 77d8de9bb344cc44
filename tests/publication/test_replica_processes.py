"""Publishers and replicas as users run them: processes that are killed at the worst moments."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import forked
import httpx
import pytest
from publishers import Publisher, Replica
from s3_proxy import PART, Call, Proxy
from waiting import HANGS_S, SOON_S, until

To = dict[str, object]
LAG_S = 8
pytestmark = pytest.mark.slow


@contextmanager
def _serving(folder: Path, url: object, config: Path) -> Iterator[tuple[forked.Popen, str]]:
    """Run ``nornweave serve --from``; give the process and its address."""
    with _started(folder, url, config) as process:
        yield process, _address(process)


@contextmanager
def _started(folder: Path, url: object, config: Path, said: Any = subprocess.DEVNULL) -> Iterator[forked.Popen]:
    command = [sys.executable, "-m", "nornweave.cli", f"--config={config}", "serve", "--from", str(url)]
    options = ["--data-dir", str(folder), "--port", "0", "--workers", "1", "--json"]
    process = forked.Popen([*command, *options], stdout=subprocess.PIPE, stderr=said, text=True, start_new_session=True)
    assert process.stdout
    try:
        yield process
    finally:
        _kill(process)
        process.stdout.close()


def _address(process: forked.Popen) -> str:
    assert process.stdout
    return str(json.loads(process.stdout.readline())["url"])


def _kill(process: forked.Popen) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _generation(url: str) -> Any:
    return httpx.get(f"{url}/ready", timeout=HANGS_S).json()["domains"]["documentation"]["generation"]


def _described(url: str) -> str:
    answer = httpx.get(f"{url}/agents/documentation/describe", timeout=HANGS_S)
    assert answer.status_code == 200
    return json.dumps(answer.json()["filters"])


def _asked(url: str) -> list[str]:
    answer = httpx.post(f"{url}/query", json={"query": "edition"}, timeout=HANGS_S).json()
    return [item["content"] for item in answer["items"]]


@pytest.fixture
def config(tmp_path: Path, publish_to: To) -> Path:
    """Write what a replica's machine says: how the store is reached."""
    file = tmp_path / "replica.yaml"
    file.write_text(json.dumps({"publish": publish_to}), encoding="utf-8")
    return file


def test_three_replicas_follow_while_publisher_and_replica_are_killed(
    publisher: Publisher, publish_to: To, tmp_path: Path, proxy: Proxy, config: Path
) -> None:
    publisher.number()
    url = publish_to["url"]
    with (
        _serving(tmp_path / "one", url, config) as (_, one),
        _serving(tmp_path / "two", url, config) as (_, two),
        _serving(tmp_path / "three", url, config) as (third, three),
    ):
        until(lambda: all(_generation(each) == "gen-000001" for each in (one, two, three)))
        _publisher_dies_before_its_pointer(publisher, proxy)
        assert [_generation(each) for each in (one, two, three)] == ["gen-000001"] * 3
        _replica_dies_while_it_downloads(publisher, proxy, third)
        until(lambda: all(_generation(each) == "gen-000002" for each in (one, two)))
        assert all(any("Second edition" in text for text in _asked(each)) for each in (one, two))
    with _serving(tmp_path / "three", url, config) as (_, three):
        until(lambda: _generation(three) == "gen-000002")
        assert any("Second edition" in text for text in _asked(three))


def _publisher_dies_before_its_pointer(publisher: Publisher, proxy: Proxy) -> None:
    publisher.change("Second edition.")
    reached, go_on = threading.Event(), threading.Event()

    def held(call: Call) -> Any:
        if call.method == "PUT" and call.path.endswith("CURRENT"):
            reached.set()
            go_on.wait(HANGS_S)
            return None
        return call.answer()

    proxy.fault = held
    command = [sys.executable, "-m", "nornweave.cli", f"--config={publisher.file}", "publish"]
    process = forked.Popen(command, text=True, start_new_session=True, stderr=subprocess.DEVNULL)
    assert reached.wait(HANGS_S)
    _kill(process)
    proxy.fault = None
    go_on.set()


def _replica_dies_while_it_downloads(publisher: Publisher, proxy: Proxy, replica: forked.Popen) -> None:
    reached, go_on = threading.Event(), threading.Event()

    def held(call: Call) -> Any:
        if call.method == "GET" and re.search(PART, call.path):
            reached.set()
            go_on.wait(HANGS_S)
        return call.answer()

    proxy.fault = held
    assert publisher.number() == 2
    assert reached.wait(HANGS_S)
    _kill(replica)
    proxy.fault = None
    go_on.set()


def test_a_replica_without_a_copy_waits_for_its_store_and_serves_while_it_is_slow(
    publisher: Publisher, publish_to: To, tmp_path: Path, proxy: Proxy, config: Path
) -> None:
    publisher.number()
    url, folder, said = publish_to["url"], tmp_path / "one", tmp_path / "said.txt"
    proxy.fault = lambda _: (503, [("Content-Length", "0")], b"")
    with said.open("w") as stream, _started(folder, url, config, stream) as process:
        until(lambda: proxy.count("GET", "WORKSPACE") > 6)  # it has tried more than once
        assert said.read_text().count("503 Service Unavailable: ; waiting") == 1
        with _held_objects(proxy) as go_on:
            address = _address(process)
            assert "still on its way" in said.read_text()
            assert httpx.get(f"{address}/ready", timeout=HANGS_S).status_code == 503
            go_on.set()
            until(lambda: _generation(address) == "gen-000001")


def test_a_replica_with_a_copy_serves_without_its_store_and_takes_over_settings_once_it_is_there(
    publisher: Publisher, publish_to: To, tmp_path: Path, proxy: Proxy, config: Path
) -> None:
    publisher.number()
    assert Replica(tmp_path / "one", publish_to).look() == "gen-000001"
    proxy.fault = lambda _: None
    with _serving(tmp_path / "one", publish_to["url"], config) as (process, address):
        until(lambda: _generation(address) == "gen-000001")
        proxy.fault = None
        domains = json.loads(publisher.file.read_text(encoding="utf-8"))["domains"]
        domains["documentation"]["filters"] = [{"key": "team", "type": "keyword", "from": ["front_matter.team"]}]
        publisher.configure(domains=domains)
        publisher.number()
        until(lambda: "team" in _described(address))  # every request is answered while the process is replaced
        process.send_signal(signal.SIGTERM)
        assert process.wait(SOON_S) == 0


@contextmanager
def _held_objects(proxy: Proxy) -> Iterator[threading.Event]:
    """Let every request for a file wait for an event."""
    go_on = threading.Event()

    def held(call: Call) -> Any:
        if call.method == "GET" and re.search(PART, call.path):
            go_on.wait(HANGS_S)
        return call.answer()

    proxy.fault = held
    try:
        yield go_on
    finally:
        go_on.set()


def test_a_second_replica_in_the_same_folder_is_refused(
    publisher: Publisher, publish_to: To, tmp_path: Path, config: Path
) -> None:
    publisher.number()
    with _serving(tmp_path / "one", publish_to["url"], config):
        command = [sys.executable, "-m", "nornweave.cli", f"--config={config}", "serve", "--port", "0"]
        options = ["--from", publish_to["url"], "--data-dir", tmp_path / "one"]
        second = forked.run([*command, *options], text=True, timeout=HANGS_S)
    assert second.returncode == 2
    assert "another replica uses it" in second.stderr


def test_a_replica_whose_store_is_cut_answers_and_says_how_far_behind_it_may_be(
    publisher: Publisher, publish_to: To, tmp_path: Path, proxy: Proxy, config: Path
) -> None:
    """A store that was emptied counts as one that does not answer: ``test_following``."""
    publisher.number()

    def is_ready() -> bool:
        return httpx.get(f"{address}/ready", params={"max_lag_s": LAG_S}, timeout=HANGS_S).is_success

    with _serving(tmp_path / "one", publish_to["url"], config) as (_, address):
        until(lambda: _generation(address) == "gen-000001")
        until(is_ready)
        proxy.fault = lambda _: (500, [("Content-Length", "0")], b"")
        until(lambda: not is_ready())
        ready = httpx.get(f"{address}/ready", timeout=HANGS_S)
        said = ready.json()["domains"]["documentation"]
        assert ready.status_code == 200, "without a limit, what can answer is ready"
        assert said["behind_s"] > LAG_S
        assert "has not answered as it should" in said["reason"]
        metrics = httpx.get(f"{address}/metrics", timeout=HANGS_S).text
        behind = re.search(r'generation_behind_seconds\{domain="documentation"\} (\S+)', metrics)
        assert behind and float(behind[1]) > LAG_S
        assert any("limits" in text for text in _asked(address))
        proxy.fault = None
        until(is_ready)
