"""The page about connectors shows the code that runs."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "write-a-connector.md").read_text(encoding="utf-8")
CONNECT = ROOT / "nornweave" / "connect"
FEED, TABLE = ((CONNECT / name).read_text(encoding="utf-8") for name in ("feed.py", "connectors.py"))


def test_each_block_of_the_page_stands_in_the_connector() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) >= 6
    assert [block for block in blocks if block not in FEED and block not in TABLE] == []


def test_the_connector_is_one_small_module_and_its_place_in_the_table() -> None:
    keys = TABLE[TABLE.index("class FeedSettings") : TABLE.index("FEED = ")]
    assert sum(bool(line.strip()) for line in (FEED + keys).splitlines()) <= 100
    users = [
        file.relative_to(ROOT).as_posix()
        for file in (ROOT / "nornweave").rglob("*.py")
        if re.search(r"nornweave\.connect\.feed\b", file.read_text(encoding="utf-8"))
    ]
    assert users == ["nornweave/connect/connectors.py"], "what two kinds share stands in a module of its own"
    assert len(re.findall(r"\bFEED,$", TABLE, re.MULTILINE)) == 1
