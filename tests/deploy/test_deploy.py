"""The files of ``deploy/``: they start commands that exist, as nobody in particular, with nothing secret in them."""

import configparser
import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import kubernetes
import pytest
import typer
import yaml
from dagster_k8s.models import k8s_model_from_dict, k8s_snake_case_dict
from helm_chart import chart, configuration, manifests

from nornweave.cli.main import app
from nornweave.connect.connectors import load_settings
from nornweave.core.process import ALIVE, note_alive

DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.large.yaml").read_text())
ONE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["nornweave"]
# Everything that is made only when it is asked for.
FULL_VALUES = {
    "image": {"repository": "r.example.org/nornweave", "tag": "7"},
    "imagePullSecrets": [{"name": "registry"}],
    "env": {"AWS_ENDPOINT_URL": "https://objects.example.org"},
    "configuration": {"access": {"groups": {}}, "workers": {"patience_s": 30}},
    "api": {
        "questionsInFlight": 0,
        "secrets": ["llm"],
        "cache": {"size": "1Ti", "storageClassName": "fast"},
        "ingress": {"host": "ask.example.org", "className": "nginx", "tlsSecret": "tls", "annotations": {"a": "b"}},
        "pod": {"priorityClassName": "high"},
    },
    "encoding": {"pod": {"nodeSelector": {"gpu": "yes"}}},
    "dagster": {"secrets": ["slack"]},
    "networkPolicy": {"from": [{"podSelector": {}}], "objectStore": {"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}},
}
REFUSED: Sequence[tuple[dict[str, object], str]] = (
    ({"replicas": 3}, "'replicas' not allowed"),
    ({"sources": []}, "at '/sources'"),
    ({"env": {"PGPASSWORD": "x"}}, "'PGPASSWORD'"),
    ({"objectStore": {"published": "file:///srv"}}, "at '/objectStore/published'"),
    ({"api": {"resources": {"limits": {"ephemeral-storage": None}}}}, "ephemeral-storage"),
    ({"configuration": {"sources": []}}, "at '/configuration'"),
)
CHARTED, FULL_CHARTED, OPEN_CHARTED, *REFUSALS = chart(
    {}, FULL_VALUES, {"networkPolicy": {"enabled": False}}, *(values for values, _ in REFUSED)
)
MANIFESTS, FULL = manifests(CHARTED), manifests(FULL_CHARTED)
OBJECTS = [document for document in MANIFESTS if document["kind"] in {"Deployment", "StatefulSet"}]


KUBERNETES = yaml.safe_load(configuration(MANIFESTS))
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
    assert len(commands()) >= 10
    for name, *options in commands():
        assert name in known, name
        known[name].make_context(name, list(options), resilient_parsing=False, parent=None)


def test_the_same_processes_are_started_everywhere() -> None:
    started = {re.sub(r"nornweave-|@?\.service", "", file.name) for file in UNITS}
    assert set(OWN) == started == {each["name"] for each in containers()} == {"dagster", "encoding", "api"}


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
        "dagster": {"postgres", "broker", "objects", "token"},
        "encoding": {"broker", "objects"},
        "api": {"objects-read", "token"},
    }
    described = (DEPLOY / "README.md").read_text()
    assert all(f"| `{name}` |" in described for names in given.values() for name in names)


def test_helm_finds_nothing_to_complain_about() -> None:
    for charted in (CHARTED, FULL_CHARTED):
        assert charted["lint"]["errors"] == []
        assert {each["error"] for each in charted["lint"]["messages"]} == {"icon is recommended"}
    assert "forward" in CHARTED["rendered"]["nornweave/templates/NOTES.txt"]


def test_values_that_cannot_be_meant_are_refused() -> None:
    for refusal, (_, named) in zip(REFUSALS, REFUSED, strict=True):
        assert named in refusal["refused"], refusal


def test_what_is_asked_for_is_rendered() -> None:
    by_name = {(each["kind"], each["metadata"]["name"]): each for each in FULL}
    api = by_name["StatefulSet", "nw-api"]["spec"]
    (container,) = api["template"]["spec"]["containers"]
    assert container["image"] == "r.example.org/nornweave:7"
    assert {each["secretRef"]["name"] for each in container["envFrom"]} == {"objects-read", "token", "llm"}
    assert {"name": "AWS_ENDPOINT_URL", "value": "https://objects.example.org"} in container["env"]
    assert api["volumeClaimTemplates"][0]["spec"]["storageClassName"] == "fast"
    assert by_name["Ingress", "nw-api"]["spec"]["rules"][0]["host"] == "ask.example.org"
    (metric,) = by_name["HorizontalPodAutoscaler", "nw-api"]["spec"]["metrics"]
    assert metric["type"] == "Resource"
    assert by_name["Deployment", "nw-encoding"]["spec"]["template"]["spec"]["nodeSelector"] == {"gpu": "yes"}
    settings = yaml.safe_load(configuration(FULL))
    assert settings["access"] == {"groups": {}}
    assert settings["workers"]["patience_s"] == 30
    (dagster,) = by_name["Deployment", "nw-dagster"]["spec"]["template"]["spec"]["containers"]
    assert {"secretRef": {"name": "slack"}} in dagster["envFrom"]
    assert settings["workers"]["leases"]
    egress = by_name["NetworkPolicy", "nw-api"]["spec"]["egress"][1]
    assert egress["to"] == [{"ipBlock": {"cidr": "10.0.0.0/8"}}]
    assert not [each for each in manifests(OPEN_CHARTED) if each["kind"] == "NetworkPolicy"]


@pytest.mark.parametrize("manifest", MANIFESTS + FULL, ids=lambda one: f"{one['kind']}-{one['metadata']['name']}")
def test_every_manifest_is_what_kubernetes_knows(manifest: dict[str, Any]) -> None:
    group, _, version = manifest["apiVersion"].rpartition("/")
    prefix = version.capitalize()
    model = getattr(kubernetes.client, f"{prefix}{manifest['kind']}")
    k8s_model_from_dict(model, k8s_snake_case_dict(model, manifest))
    named = "".join(part.capitalize() for part in group.removesuffix(".k8s.io").split(".")) or "Core"
    assert hasattr(kubernetes.client, f"{named}{prefix}Api")
    assert "namespace" not in manifest["metadata"]  # it is the release's


def test_what_manifests_name_is_there() -> None:
    labels = [each["spec"]["template"]["metadata"]["labels"] for each in OBJECTS]
    for manifest in MANIFESTS:
        spec = manifest.get("spec", {})
        selected = spec.get("selector", spec.get("podSelector", {}))
        named = selected.get("matchLabels", selected)
        assert any(named.items() <= one.items() for one in labels), manifest["metadata"]["name"]
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
        assert {"startupProbe", "livenessProbe"} <= container.keys()
    (api,) = [each for each in containers() if each["name"] == "api"]
    assert api["startupProbe"]["periodSeconds"] * api["startupProbe"]["failureThreshold"] >= 86_400
    assert [api[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "readiness", "liveness")] == [
        "/health", "/ready", "/health",
    ]  # fmt: skip


def test_a_probe_of_a_process_without_a_port_asks_how_old_its_file_is(tmp_path: Path) -> None:
    place = f"{KUBERNETES['data_dir']}/{ALIVE}"
    of_compose = [OWN[name]["healthcheck"]["test"][1].replace("$$", "$") for name in ("dagster", "encoding")]
    of_pods = [each["livenessProbe"]["exec"]["command"][2] for each in containers() if each["name"] != "api"]
    for command in (*of_compose, *of_pods):
        assert place in command
        here = ["sh", "-c", command.replace(place, str(tmp_path / ALIVE))]
        note_alive(tmp_path)
        assert subprocess.run(here, check=False).returncode == 0
        os.utime(tmp_path / ALIVE, (0, 0))
        assert subprocess.run(here, check=False).returncode == 1
        (tmp_path / ALIVE).unlink()
        assert subprocess.run(here, capture_output=True, check=False).returncode == 1


def test_the_api_is_published_on_loopback_alone() -> None:
    published = [port for service in (ONE, *COMPOSE["services"].values()) for port in service.get("ports", [])]
    assert published == ["127.0.0.1:8082:8082"] * 2


def test_the_configuration_is_valid_and_the_same(tmp_path: Path) -> None:
    settings = load_settings(DEPLOY / "nornweave.yaml", {})
    assert settings.publish
    (tmp_path / "nornweave.yaml").write_text(configuration(MANIFESTS))
    on_kubernetes = load_settings(tmp_path / "nornweave.yaml", {})
    assert on_kubernetes.model_copy(update={"file": settings.file}) == settings
    for command in commands():
        if command[0] == "serve":
            assert command[2] == settings.publish.url


def test_one_service_has_no_rights_and_a_read_only_root() -> None:
    assert (ONE["read_only"], ONE["cap_drop"], ONE["tmpfs"]) == (True, ["ALL"], ["/tmp"])
    assert ONE["user"] == "${UID:-1000}:${GID:-1000}"
    assert "/health" in re.findall(r"HEALTHCHECK(?:.*\\\n)*.*", (DEPLOY / "Dockerfile").read_text())[0]
