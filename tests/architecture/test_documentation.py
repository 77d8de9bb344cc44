"""The documentation names only what is there."""

import re
from pathlib import Path

import pytest
import yaml

from nornweave.cli.main import app
from nornweave.connect.connectors import CONNECTORS, load_settings

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
TESTS = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("*.py"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_modules_and_tests_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    files = re.findall(r"`((?:nornweave|api|orchestration|evals|lab|tests|docs|examples)/[\w./-]*)", text)
    assert [file for file in files if not (ROOT / file).exists()] == []
    assert [name for name in re.findall(r"\b(test_\w+)\b(?!\.py)", text) if f"def {name}(" not in TESTS] == []


def test_commands_of_the_readme_exist() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    known = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
    assert set(re.findall(r"^nornweave (\w+)", text, re.MULTILINE)) <= known
    targets = set(re.findall(r"^make (\w+)", text, re.MULTILINE))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert targets
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)


def test_every_key_and_type_of_a_source_is_documented() -> None:
    text = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    keys = {key for connector in CONNECTORS.values() for key in connector.settings.model_fields}
    assert sorted(key for key in keys if key not in text) == []
    assert [kind for kind in CONNECTORS if f"`{kind}`" not in text] == []


def test_the_configurations_of_the_documentation_are_valid(tmp_path: Path) -> None:
    blocks = [
        block
        for page in PAGES
        for block in re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
        if "sources:" in block
    ]
    assert len(blocks) >= 2
    for block in blocks:
        file = tmp_path / "nornweave.yaml"
        file.write_text(block, encoding="utf-8")
        assert load_settings(file, {}).sources


def test_the_bundled_configuration_names_what_is_there() -> None:
    for source in load_settings(ROOT / "nornweave.yaml", {}).sources:
        assert source.path is not None
        assert source.path.exists()
        metadata = getattr(source, "metadata", None)
        assert metadata is None or yaml.safe_load(metadata.read_text(encoding="utf-8"))
