"""Complete the SBOM of this environment and write the table of licences: ``python requirements/bill.py SBOM TABLE``.

The SBOM is CycloneDX as ``cyclonedx-py environment`` writes it. What the runtime lock names is ``required``; the rest
serves development only, which CycloneDX calls ``excluded``.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Set
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

RUNTIME = Path(__file__).with_name("runtime.txt")
HEAD = "| package | version | licence | for |\n|---|---|---|---|\n"


def main(bill: Path, table: Path) -> None:
    """Rewrite the SBOM and write the table; exits with a message when something that running needs names no licence."""
    document = json.loads(bill.read_text(encoding="utf-8"))
    required = locked_names(RUNTIME.read_text(encoding="utf-8"))
    for component in document["components"]:
        complete(component, required)
    bill.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    needed = [component for component in document["components"] if component["scope"] == "required"]
    if silent := [component["name"] for component in needed if not component["licenses"]]:
        sys.exit(f"no licence is named by {', '.join(silent)}; find out which applies, or do without the package")
    table.write_text(HEAD + "".join(map(row, document["components"])), encoding="utf-8")


def locked_names(lock: str) -> Set[str]:
    """Return the packages that a lock names."""
    return {canonicalize_name(name) for name in re.findall(r"^([\w.-]+)==", lock, re.MULTILINE)}


def complete(component: dict[str, Any], required: Set[str]) -> None:
    """Say what a component is for, and its licence in its own words where it has no standard name."""
    component["scope"] = "required" if canonicalize_name(component["name"]) in required else "excluded"
    if not component.get("licenses"):
        words = (metadata(component["name"]).get("License") or "").strip().splitlines()[:1]
        component["licenses"] = [{"license": {"acknowledgement": "declared", "name": name}} for name in words]


def row(component: Mapping[str, Any]) -> str:
    """Return a line of the table."""
    licences = dict.fromkeys(map(licence_name, component["licenses"]))
    use = "running" if component["scope"] == "required" else "development"
    return f"| {component['name']} | {component['version']} | {', '.join(licences) or 'not named'} | {use} |\n"


def licence_name(licence: Mapping[str, Any]) -> str:
    """Return the SPDX expression, identifier or free text of a licence."""
    stated = licence.get("license", {})
    text = licence.get("expression") or stated.get("id") or stated["name"]
    return str(text).removeprefix("License :: ").removeprefix("OSI Approved :: ")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
