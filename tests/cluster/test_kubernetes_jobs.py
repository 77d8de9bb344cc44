"""A run as a Kubernetes job: the launcher's own client, a stand-in for the API server that starts what the job says."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster._core.definitions.reconstruct import ReconstructableRepository
from dagster._core.launcher import LaunchRunContext, WorkerStatus
from helm_chart import chart, configuration, manifests

from nornweave.connect.connectors import load_settings
from nornweave.index.generations.publish import GenerationFiles
from orchestration.instance import write_instance

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
CHARTED = {"image": {"repository": "registry.example.org/nornweave", "tag": "1"}}


class Cluster:
    """Keeps jobs, and runs their containers here with a configuration of its own."""

    def __init__(self, config: Path, environment: dict[str, str]) -> None:
        self.jobs: dict[str, dict[str, Any]] = {}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        cluster = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                job = json.loads(self.rfile.read(int(self.headers["content-length"])))
                name = job["metadata"]["name"]
                cluster.jobs[name] = job
                (container,) = job["spec"]["template"]["spec"]["containers"]
                command = [sys.executable, "-m", "nornweave.cli", "--config", str(config), *container["args"]]
                cluster.processes[name] = subprocess.Popen(command, env={**os.environ, **environment})
                self._answer(job)

            def do_GET(self) -> None:
                name = self.path.split("/")[7]  # /apis/batch/v1/namespaces/NAMESPACE/jobs/NAME/status
                code = cluster.processes[name].poll()
                status = {"active": 1} if code is None else {"failed": 1} if code else {"succeeded": 1}
                self._answer({**cluster.jobs[name], "status": status})

            def _answer(self, document: object) -> None:
                content = json.dumps(document).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def end(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/refunds.md").write_text("# Refunds\n\nA refund is paid within five days.\n")
    file = tmp_path / "nornweave.yaml"
    kubeconfig = str(tmp_path / "kubeconfig")
    workers = yaml.safe_load(configuration(manifests(*chart(CHARTED))))["workers"]
    jobs = {**workers["kubernetes"], "load_incluster_config": False, "kubeconfig_file": kubeconfig}
    settings = {
        "data_dir": "./var",
        "sources": [{"id": "docs", "domain": "documentation", "type": "files", "path": "docs"}],
        "domains": {"documentation": {"embedding": {"model": "hash:64"}, "evaluation": {"judgments": []}}},
        "workers": {**workers, "objects": f"file://{tmp_path}/objects", "kubernetes": jobs},
    }
    file.write_text(yaml.safe_dump(settings))
    return file


@pytest.fixture
def cluster(config: Path, database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    environment = {"NORNWEAVE_DAGSTER_POSTGRES_URL": database}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    started = Cluster(config, {**environment, "PYTHONPATH": str(ROOT)})
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "nobody"}}],
        "clusters": [{"name": "here", "cluster": {"server": started.url}}],
        "users": [{"name": "nobody", "user": {}}],
    }
    (config.parent / "kubeconfig").write_text(yaml.safe_dump(document))
    yield started
    started.end()


def test_a_run_is_a_job_that_syncs_and_publishes(cluster, config, monkeypatch, tmp_path):
    monkeypatch.setenv("NORNWEAVE_CONFIG", str(config))
    monkeypatch.setenv("DAGSTER_HOME", str(write_instance(load_settings(config, {}))))
    with dg.DagsterInstance.get() as instance:
        job = ReconstructableRepository.for_module("orchestration.definitions", "defs", str(ROOT))
        job = job.get_reconstructable_job("sync")
        run = instance.create_run_for_job(job.get_definition(), job_code_origin=job.get_python_origin())
        instance.run_launcher.launch_run(LaunchRunContext(dagster_run=run, workspace=None))

        (created,) = cluster.jobs.values()
        (process,) = cluster.processes.values()
        assert process.wait() == 0
        assert instance.get_run_by_id(run.run_id).status is dg.DagsterRunStatus.SUCCESS
        assert instance.run_launcher.check_run_worker_health(run).status is WorkerStatus.SUCCESS
    assert GenerationFiles(tmp_path / "var/domains/documentation/generations").current() == "gen-000001"
    pod = created["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert created["metadata"]["name"] == f"dagster-run-{run.run_id}"
    assert container["image"] == "registry.example.org/nornweave:1"
    assert container["envFrom"] == [{"secretRef": {"name": name}} for name in ("postgres", "broker", "objects")]
    assert {each["mountPath"] for each in container["volumeMounts"]} == {"/etc/nornweave", "/var/lib/nornweave", "/tmp"}
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["automountServiceAccountToken"] is False
