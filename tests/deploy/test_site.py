"""The documentation builds as a site without a warning, and its reference names everything that there is."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lab.site import NAV, ROOT, main
from nornweave.cli.options import COMMAND_GROUPS
from nornweave.connect.connectors import CONNECTORS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    main(folder)
    return folder


def test_it_builds_without_a_warning_and_asks_nobody(folder: Path) -> None:
    command = [
        sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--config-file", str(folder / "mkdocs.yml"),
    ]  # fmt: skip
    done = subprocess.run(
        command, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    page = (folder / "site" / "index.html").read_text()
    loaded = re.findall(r"<(?:script|link|img)[^>]*(?:src|href)=\"?(https?://[^\s\">]+)", page)
    assert not loaded, "a page loads nothing from elsewhere"
    found = json.loads((folder / "site" / "search" / "search_index.json").read_text())
    assert any("nornweave sync" in each["title"] for each in found["docs"])


def test_every_page_has_a_place() -> None:
    pages = {file.name for file in (ROOT / "docs").glob("*.md")}
    assert pages <= {page for group in NAV.values() for page in group}


def test_the_reference_names_every_command_and_key(folder: Path) -> None:
    commands = (folder / "pages/reference/cli.md").read_text()
    assert all(f"### nornweave {name}\n" in commands for group in COMMAND_GROUPS.values() for name in group)
    settings = (folder / "pages/reference/settings.md").read_text()
    for kind, connector in CONNECTORS.items():
        section = settings.partition(f"### type: {kind}\n")[2].partition("\n### ")[0]
        assert all(f"| `{key}` |" in section for key in connector.settings.model_fields), kind
    assert "`POST /query`" in (folder / "pages/reference/http.md").read_text()
