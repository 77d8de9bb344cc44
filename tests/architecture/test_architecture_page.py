"""The architecture page says what is there: rooms and layers are held against the tree and pyproject.toml."""

import re
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")


def _rooms() -> set[str]:
    return {init.parent.name for init in (ROOT / "nornweave").glob("*/__init__.py")}


def test_the_table_of_rooms_names_every_room_once() -> None:
    table = PAGE[PAGE.index("## The rooms") : PAGE.index("## The path of a document")]
    named = re.findall(r"^\| `nornweave/(\w+)/` \|", table, re.MULTILINE)
    assert Counter(named) == Counter(_rooms())
    assert len(named) <= 12


def test_the_package_has_no_loose_module() -> None:
    assert [file.name for file in (ROOT / "nornweave").glob("*.py")] == ["__init__.py"]


def test_the_layers_are_those_that_are_checked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (layers,) = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    checked = [layer.replace("nornweave.", "") for layer in layers]
    shown = PAGE[PAGE.index("## Layers") :].split("```")[1].strip().splitlines()
    assert shown == checked
    assert {room for layer in checked for room in layer.split(" | ")} == _rooms()
    assert len(checked) <= 12


def test_the_glossary_defines_a_word_once() -> None:
    words = re.findall(r"^\| ([^|]+) \|", GLOSSARY, re.MULTILINE)
    assert [word for word, n in Counter(words).items() if n > 1 and word != "word"] == []
