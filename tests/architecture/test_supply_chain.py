"""What is installed is what the locks name, file by file; and it is said what that is."""

import json
import re
import runpy
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, metadata, requires
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCKS = ROOT / "requirements"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
# Packages whose own metadata are not believed, and what is said instead.
TOLD = {one["name"]: one["requires-dist"] for one in PROJECT["tool"]["uv"]["dependency-metadata"]}


def locked(name: str) -> dict[str, Requirement]:
    """Return the entries of a lock that apply to this interpreter."""
    entries = [Requirement(re.split(r"\s+--hash", line)[0]) for line in lines_of(name)]
    return {canonicalize_name(one.name): one for one in entries if one.marker is None or one.marker.evaluate()}


def lines_of(name: str) -> list[str]:
    text = (LOCKS / name).read_text(encoding="utf-8").replace("\\\n", " ")
    return [line for line in text.splitlines() if not line.startswith("#")]


@pytest.mark.parametrize("name", sorted(file.name for file in LOCKS.glob("*.txt")))
def test_every_entry_is_one_version_with_the_hashes_of_its_files(name: str) -> None:
    text = (LOCKS / name).read_text(encoding="utf-8")
    for line in lines_of(name):
        assert re.fullmatch(r"[\w.-]+==[\w.]+( ; [^;]+?)?(\s+--hash=sha256:[0-9a-f]{64})+\s*", line), line
    assert "://" not in text, "a lock is good for every index"


@pytest.mark.parametrize(("name", "extras"), [
    ("image.txt", ("office", "ui")), ("runtime.txt", ("hnsw", "llm", "office", "pymupdf", "ui")),
    ("workers.txt", ("workers",)), ("development.txt", ("torch", "dev")),
])  # fmt: skip
def test_a_lock_holds_every_dependency_in_a_version_that_is_wanted(name: str, extras: tuple[str, ...]) -> None:
    entries = locked(name) | (locked("torch-cpu.txt") if "torch" in extras else {})
    optional = PROJECT["project"]["optional-dependencies"]
    asked = [*PROJECT["project"]["dependencies"], *(one for extra in extras for one in optional[extra])]
    waiting = [Requirement(one) for one in (*asked, *PROJECT["build-system"]["requires"])]
    seen: set[str] = set()
    while waiting:
        wanted = waiting.pop()
        key = canonicalize_name(wanted.name)
        if key == "nornweave-search" or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
            continue
        assert key in entries, f"{wanted} is not in requirements/{name}: run make lock"
        (pin,) = entries[key].specifier
        assert wanted.specifier.contains(pin.version, prereleases=True), f"{wanted} is locked as {pin}: run make lock"
        if str(wanted) not in seen:
            seen.add(str(wanted))
            waiting += dependencies(key, wanted.extras)


def dependencies(name: str, extras: set[str]) -> list[Requirement]:
    try:
        stated = TOLD.get(name) or ([] if name in TOLD else requires(name) or [])
    except PackageNotFoundError:  # of another platform
        return []
    chosen = [Requirement(one) for one in stated]
    return [
        one for one in chosen if one.marker is None or any(one.marker.evaluate({"extra": e}) for e in ("", *extras))
    ]


def test_running_needs_neither_torch_nor_scipy() -> None:
    entries = locked("runtime.txt")
    assert not {"torch", "transformers", "sentence-transformers", "scipy", "pytest", "mypy"} & entries.keys()
    everything = locked("development.txt")
    assert {name: str(entry.specifier) for name, entry in entries.items()}.items() <= {
        name: str(entry.specifier) for name, entry in everything.items()
    }.items()


def test_the_notice_names_every_part_whose_licence_asks_for_its_source() -> None:
    notice, page = ((ROOT / name).read_text(encoding="utf-8") for name in ("NOTICE", "docs/licences.md"))
    delivered = {name for lock in ("runtime", "workers", "image", "drift") for name in locked(f"{lock}.txt")}
    found = {name for name in delivered if re.search(r"GPL|MPL|Mozilla|EPL|CDDL|EUPL", licence_of(name))}
    assert found >= {"certifi", "pathspec", "psycopg", "pymupdf", "tqdm"}
    for name in found:
        assert re.search(rf"\b{name}\b", notice, re.IGNORECASE) and re.search(rf"\b{name}\b", page, re.IGNORECASE), name


def licence_of(name: str) -> str:
    try:
        about = metadata(name)
    except PackageNotFoundError:
        return ""
    classifiers = [one for one in about.get_all("Classifier", []) if one.startswith("License")]
    return " ".join(filter(None, (about.get("License-Expression"), (about.get("License") or "")[:200], *classifiers)))


def test_what_was_not_looked_up_is_no_audit() -> None:
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\naudit:")[2].partition("\n\n")[0]
    assert "pip-audit --strict " in recipe and "|| exit 1" in recipe


def test_measuring_needs_no_package_of_measures() -> None:
    script = "import sys; sys.modules |= dict.fromkeys(('ir_measures', 'pytrec_eval', 'scipy'))\nimport evals.report"
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, timeout=60)


def component(name: str, *licences: str) -> dict[str, Any]:
    return {"name": name, "version": "1", "licenses": [{"license": {"name": one}} for one in licences]}


def test_the_bill_says_what_runs_and_under_which_licence(tmp_path: Path) -> None:
    sbom, table = tmp_path / "sbom.json", tmp_path / "licences.md"
    sbom.write_text(json.dumps({"components": [component("pytest"), component("fastapi"), component("PyYAML", "MIT")]}))
    with pytest.raises(SystemExit, match=r"no licence is named by fastapi;"):
        bill(sbom, table)
    assert not table.exists()
    sbom.write_text(
        json.dumps({"components": [component("PyYAML", "MIT"), component("pytest"), component("protobuf")]})
    )
    bill(sbom, table)
    assert table.read_text().splitlines()[2:] == [
        "| PyYAML | 1 | MIT | running |",
        "| pytest | 1 | not named | development |",
        "| protobuf | 1 | 3-Clause BSD License | running |",
    ]
    assert [one["scope"] for one in json.loads(sbom.read_text())["components"]] == ["required", "excluded", "required"]


def bill(sbom: Path, table: Path) -> None:
    runpy.run_path(str(LOCKS / "bill.py"))["main"](sbom, table)
