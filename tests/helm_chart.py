"""The Helm chart as Helm renders it: the library is Helm itself, without its program and without a cluster."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).parents[1] / "deploy/chart"
# In a process of its own: Helm is written in Go and handles signals.
_HELM = """
import helm_python, json, sys

def charted(values):
    with helm_python.Chart.load(sys.argv[1]) as chart:
        try:
            chart.validate_schema(values)
            rendered = chart.render(values, name="nw", namespace="team")
        except helm_python.HelmError as error:
            return {"refused": str(error)}
    return {"lint": helm_python.lint(sys.argv[1], values, strict=True, namespace="team"), "rendered": rendered}

json.dump([charted(values) for values in json.load(sys.stdin)], sys.stdout)
"""


def chart(*values: Mapping[str, object]) -> Sequence[dict[str, Any]]:
    """Return for each of these values what `helm lint --strict` and `helm template` say, or why they are refused."""
    command = [sys.executable, "-c", _HELM, str(CHART)]
    ended = subprocess.run(command, input=json.dumps(values), capture_output=True, text=True, check=True)
    return list(json.loads(ended.stdout))


def manifests(charted: Mapping[str, Any]) -> list[dict[str, Any]]:
    files = sorted(each for each in charted["rendered"].items() if each[0].endswith(".yaml"))
    return [document for _, text in files for document in yaml.safe_load_all(text) if document]


def configuration(documents: Sequence[dict[str, Any]]) -> str:
    """Return the ``nornweave.yaml`` among manifests."""
    (config,) = (each for each in documents if each["kind"] == "ConfigMap")
    return str(config["data"]["nornweave.yaml"])
