"""The files of ``deploy/``: they start commands that exist, as nobody in particular, with nothing secret in them."""

from __future__ import annotations

import configparser
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes
import pytest
import typer
import yaml
from dagster_k8s.models import k8s_model_from_dict, k8s_snake_case_dict

from nornweave.cli.main import app
from nornweave.connect.connectors import load_settings

DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.large.yaml").read_text())
ONE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["nornweave"]
MANIFESTS = [
    document
    for file in sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    if file.name not in {"nornweave.yaml", "kustomization.yaml"}
    for document in yaml.safe_load_all(file.read_text())
]
OBJECTS = [document for document in MANIFESTS if document["kind"] in {"Deployment", "StatefulSet"}]
KUBERNETES = yaml.safe_load((DEPLOY / "kubernetes/nornweave.yaml").read_text())
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
OWN = {name: service for name, service in COMPOSE["services"].items() if service["image"] == "nornweave:workers"}
USER = 10001


def containers() -> Iterator[dict[str, Any]]:
    for deployment in OBJECTS:
        yield from deployment["spec"]["template"]["spec"]["containers"]


def unit(file: Path) -> configparser.SectionProxy:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment]
    parser.read(file)
    return parser["Service"]


def commands() -> list[list[str]]:
    """Return the arguments of ``nornweave`` everywhere."""
    of_units = [shlex.split(unit(file)["ExecStart"]) for file in UNITS]
    return [
        ONE["command"],
        *(service["command"] for service in OWN.values()),
        *(container["args"] for container in containers()),
        *(words[words.index("/etc/nornweave/nornweave.yaml") + 1 :] for words in of_units),
    ]


def test_every_process_is_a_command_that_takes_these_options() -> None:
    known = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert len(commands()) >= 12
    for name, *options in commands():
        assert name in known, name
        known[name].make_context(name, list(options), resilient_parsing=False, parent=None)


def test_the_same_processes_are_started_everywhere() -> None:
    started = {re.sub(r"nornweave-|@?\.service", "", file.name) for file in UNITS}
    assert set(OWN) == started == {"dagster", "runs", "encoding", "api"}
    assert {each["name"] for each in containers()} == started - {"runs"}  # a job each


def test_kubernetes_jobs_run_as_everything_else_does() -> None:
    jobs = KUBERNETES["workers"]["kubernetes"]
    (pod, *_) = [deployment["spec"]["template"]["spec"] for deployment in OBJECTS]
    (container, *_) = pod["containers"]
    assert jobs["run_k8s_config"]["pod_spec_config"]["securityContext"] == pod["securityContext"]
    assert jobs["security_context"] == container["securityContext"]
    assert jobs["volume_mounts"] == container["volumeMounts"]
    assert jobs["volumes"] == pod["volumes"]
    assert {*jobs["env_secrets"]} == {"postgres", "broker", "objects"}
    assert {"name": "NORNWEAVE_IMAGE", "value": "nornweave"} in container["env"]


def test_nothing_runs_as_root() -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    assert re.findall(r"^USER (.*)$", dockerfile, re.MULTILINE)[-1] == f"{USER}:{USER}"
    assert {service["user"] for service in OWN.values()} == {f"{USER}:{USER}"}
    for deployment in OBJECTS:
        context = deployment["spec"]["template"]["spec"]["securityContext"]
        assert (context["runAsNonRoot"], context["runAsUser"]) == (True, USER)
    assert {unit(file)["User"] for file in UNITS} == {"nornweave"}


def test_images_are_pinned_and_packages_are_locked() -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    bases = re.findall(r"^ARG BASE=(\S+)", dockerfile, re.MULTILINE)
    assert {each.split()[0] for each in re.findall(r"^FROM (.+)", dockerfile, re.MULTILINE)} == {"${BASE}"}
    foreign = [each["image"] for each in COMPOSE["services"].values() if each["image"] != "nornweave:workers"]
    assert len(set(bases)) == 1
    for image in (*bases, *foreign):
        assert re.search(r":\S*\d+[.\d-]", image), image
    assert "COPY requirements/${LOCK}.txt lock.txt" in dockerfile
    assert "--require-hashes --requirement lock.txt" in dockerfile
    for lock in (*re.findall(r"^ARG LOCK=(\S+)", dockerfile, re.MULTILINE), "workers"):
        assert (DEPLOY.parent / "requirements" / f"{lock}.txt").exists()


def test_no_file_holds_a_secret() -> None:
    for service in COMPOSE["services"].values():
        for name, value in service.get("environment", {}).items():
            if re.search("PASSWORD|KEY|TOKEN|AUTH", name):
                assert "${" in value, name
            if name.endswith("URL"):
                assert "$" not in value, f"{name}: a password with / or @ would break the address"


def test_each_role_on_kubernetes_has_its_own_secrets_alone() -> None:
    given = {each["name"]: {one["secretRef"]["name"] for one in each["envFrom"]} for each in containers()}
    assert given == {
        "dagster": {"postgres", "objects", "token"},
        "encoding": {"broker", "objects"},
        "api": {"objects-read", "token"},
    }
    described = (DEPLOY / "README.md").read_text()
    assert all(f"| `{name}` |" in described for names in given.values() for name in names)


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda one: f"{one['kind']}-{one['metadata']['name']}")
def test_every_manifest_is_what_kubernetes_knows(manifest: dict[str, Any]) -> None:
    group, _, version = manifest["apiVersion"].rpartition("/")
    prefix = version.capitalize()
    model = getattr(kubernetes.client, f"{prefix}{manifest['kind']}")
    k8s_model_from_dict(model, k8s_snake_case_dict(model, manifest))
    named = "".join(part.capitalize() for part in group.removesuffix(".k8s.io").split(".")) or "Core"
    assert hasattr(kubernetes.client, f"{named}{prefix}Api")
    assert manifest["metadata"].get("namespace", "nornweave") == "nornweave"


def test_what_manifests_name_is_there() -> None:
    listed = yaml.safe_load((DEPLOY / "kubernetes/kustomization.yaml").read_text())["resources"]
    assert {*listed} == {file.name for file in (DEPLOY / "kubernetes").glob("*.yaml")} - {
        "nornweave.yaml", "kustomization.yaml",
    }  # fmt: skip
    labels = {each["spec"]["template"]["metadata"]["labels"]["app"] for each in OBJECTS}
    for manifest in MANIFESTS:
        spec = manifest.get("spec", {})
        selected = spec.get("selector", spec.get("podSelector", {}))
        named = {**selected, **selected.get("matchLabels", {})}.get("app")
        assert named is None or named in labels, manifest["metadata"]["name"]
        if target := spec.get("scaleTargetRef"):
            assert (target["kind"], target["name"]) in {(each["kind"], each["metadata"]["name"]) for each in OBJECTS}
            assert "replicas" not in next(each["spec"] for each in OBJECTS if each["kind"] == target["kind"])
    for each in OBJECTS:
        pod, claims = each["spec"]["template"]["spec"], each["spec"].get("volumeClaimTemplates", [])
        volumes = {one["name"] for one in pod["volumes"]} | {one["metadata"]["name"] for one in claims}
        assert {one["name"] for one in pod["containers"][0]["volumeMounts"]} == volumes


def test_containers_are_bounded_and_a_replica_that_waits_is_not_restarted() -> None:
    for container in containers():
        assert {"memory", "ephemeral-storage"} <= container["resources"]["limits"].keys()
    (api,) = [each for each in containers() if each["name"] == "api"]
    assert api["startupProbe"]["periodSeconds"] * api["startupProbe"]["failureThreshold"] >= 86_400
    assert [api[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "readiness", "liveness")] == [
        "/health", "/ready", "/health",
    ]  # fmt: skip


def test_the_api_is_published_on_loopback_alone() -> None:
    published = [port for service in (ONE, *COMPOSE["services"].values()) for port in service.get("ports", [])]
    assert published == ["127.0.0.1:8082:8082"] * 2


def test_the_configuration_is_valid_and_the_same() -> None:
    settings = load_settings(DEPLOY / "nornweave.yaml", {})
    assert settings.workers
    assert settings.workers.runs == "celery"
    assert settings.publish
    on_kubernetes = load_settings(DEPLOY / "kubernetes/nornweave.yaml", {})
    assert on_kubernetes.workers
    workers = on_kubernetes.workers.model_copy(update={"runs": "celery", "kubernetes": {}})
    assert on_kubernetes.model_copy(update={"workers": workers, "file": settings.file}) == settings
    for command in commands():
        if command[0] == "serve":
            assert command[2] == settings.publish.url


def test_one_service_has_no_rights_and_a_read_only_root() -> None:
    assert (ONE["read_only"], ONE["cap_drop"], ONE["tmpfs"]) == (True, ["ALL"], ["/tmp"])
    assert ONE["user"] == "${UID:-1000}:${GID:-1000}"
    assert "/health" in re.findall(r"HEALTHCHECK(?:.*\\\n)*.*", (DEPLOY / "Dockerfile").read_text())[0]
