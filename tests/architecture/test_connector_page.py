"""The page about connectors shows the code that runs."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "write-a-connector.md").read_text(encoding="utf-8")
FOLDER = ROOT / "nornweave" / "connect" / "feed"


def test_each_block_of_the_page_stands_in_the_connector() -> None:
    code = [file.read_text(encoding="utf-8") for file in FOLDER.glob("*.py")]
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) >= 6
    assert [block for block in blocks if not any(block in text for text in code)] == []


def test_the_connector_is_one_small_folder_and_one_line() -> None:
    lines = [line for file in FOLDER.glob("*.py") for line in file.read_text(encoding="utf-8").splitlines()]
    assert sum(bool(line.strip()) for line in lines) <= 100
    users = [
        file.relative_to(ROOT).as_posix()
        for file in (ROOT / "nornweave").rglob("*.py")
        if "nornweave.connect.feed" in file.read_text(encoding="utf-8") and FOLDER not in file.parents
    ]
    assert users == ["nornweave/connect/connectors.py"]
    table = (ROOT / "nornweave" / "connect" / "connectors.py").read_text(encoding="utf-8")
    assert len(re.findall(r"\bFEED,$", table, re.MULTILINE)) == 1
