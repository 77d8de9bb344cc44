"""Who uses a name, over HTTP, MCP and the command line, as far as somebody may see it."""

import json
import time
from pathlib import Path

import pytest
from access_workspace import BOARD, HASHED, OUTSIDER, app_of, client_as, write_tokens
from api_support import conforms, is_problem, publish
from command_line import nornweave
from mcp_client import result, tools_of

from nornweave.ask import uses
from nornweave.ask.views.texts import UsesDocument
from nornweave.config import Settings
from nornweave.connect.connectors import load_settings
from nornweave.index.searching.finding import WordTexts

FILES = {
    "code/pay/__init__.py": "",
    "code/pay/ledger.py": "LIMIT = 3\n\n\ndef post(entry):\n    return entry\n",
    "code/pay/jobs.py": "import json\nfrom pay.ledger import post\n\n\ndef run(q):\n    post(1)\n    q.post(2)\n",
    "vault/keys.py": "from pay.ledger import post\n\n\ndef seal():\n    post('secret')\n",
    "docs/guide.md": "# Guide\n\nCall `post`.\n",
}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("uses")
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")
    write_tokens(folder, {BOARD: ["board"], OUTSIDER: ["guests"]})
    configured = {
        "data_dir": "var",
        "access": {"tokens": "tokens.yaml", "operators": ["chiefs"]},
        "domains": {"code": HASHED, "documentation": HASHED},
        "sources": [
            {"id": "pay", "domain": "code", "type": "files", "path": "code"},
            {"id": "vault", "domain": "code", "type": "files", "path": "vault", "access": ["board"]},
            {"id": "docs", "domain": "documentation", "type": "files", "path": "docs"},
        ],
    }
    (folder / "nornweave.yaml").write_text(json.dumps(configured), "utf-8")
    settings = load_settings(folder / "nornweave.yaml", {})
    publish(settings)
    return settings


def references(found: UsesDocument) -> list[tuple[str, list[int], str, str]]:
    return [(one["path"], one["lines"], one["kind"], one["certainty"]) for one in found["references"]]


OPEN_USES = [
    ("pay/jobs.py", [2], "import", "resolved"),
    ("pay/jobs.py", [6], "call", "resolved"),
    ("pay/jobs.py", [7], "call", "by_name"),
]
# What another source defines is not certain.
HIDDEN_USES = [("keys.py", [1], "import", "by_name"), ("keys.py", [5], "call", "by_name")]


@pytest.mark.parametrize(("token", "expected"), [(OUTSIDER, OPEN_USES), (BOARD, OPEN_USES + HIDDEN_USES)])
async def test_uses_that_somebody_may_see(settings: Settings, token: str, expected: list[tuple[str, ...]]) -> None:
    async with app_of(settings) as app, client_as(app, token) as client:
        answer = await client.get("/uses", params={"name": "post"})
        assert answer.status_code == 200, answer.text
        found = answer.json()
        conforms(UsesDocument, found)
        assert references(found) == expected
        assert found["definitions"] == [{"source_id": "pay", "path": "pay/ledger.py", "line": 4, "name": "post"}]
        by_name = sum(certainty == "by_name" for *_, certainty in expected)
        assert (found["resolved"], found["by_name"], found["documents"]) == (2, by_name, 2 + (token == BOARD))
        assert (found["not_looked_at"], found["more"]) == ([], 0)
        one_source = (await client.get("/uses", params={"name": "post", "source": "vault"})).json()
        assert references(one_source) == (HIDDEN_USES if token == BOARD else [])
        hidden = (await client.get("/uses", params={"name": "seal"})).json()
        assert (hidden["documents"], len(hidden["definitions"])) == ((1, 1) if token == BOARD else (0, 0))


async def test_names_that_no_code_has(settings: Settings) -> None:
    async with app_of(settings) as app, client_as(app, BOARD) as client:
        for name in ("", "two words", "a(b)", "x" * 201, "'; drop", "a..b"):
            is_problem(await client.get("/uses", params={"name": name}), 422)
        for name, count in (("pay.ledger.post", 5), ("ledger::post", 5), ("json.post", 1), ("LIMIT", 0)):
            found = (await client.get("/uses", params={"name": name})).json()
            assert found["resolved"] + found["by_name"] <= count, name


async def test_the_tool_answers_the_same(settings: Settings) -> None:
    async with tools_of(settings, headers={"authorization": f"Bearer {BOARD}"}) as client:
        found = await result(client, "uses", name="post", source="pay")
        assert references(found) == OPEN_USES
        assert found["references"][0]["definition"] == "pay/ledger.py:4"


def test_the_command_line_and_the_graph(settings: Settings) -> None:
    folder: Path = settings.file.parent
    done = nornweave(folder, "uses", "post", "--json")
    assert references(json.loads(done.stdout)) == OPEN_USES + HIDDEN_USES
    shown = nornweave(folder, "uses", "post").stdout
    assert "pay pay/jobs.py:6: call (resolved, pay/ledger.py:4)" in shown
    assert "2 resolved, 3 by name, in 3 files looked at" in shown
    assert nornweave(folder, "uses", "nothing_of_this").returncode == 1
    drawn = json.loads(nornweave(folder, "graph", "pay/jobs.py", "--json").stdout)
    assert drawn["depends_on"] == [{"path": "pay/ledger.py", "lines": [2], "names": ["post"]}]
    assert (drawn["outside"], drawn["used_by"]) == (["json"], [])
    drawn = json.loads(nornweave(folder, "graph", "pay/ledger.py", "--json").stdout)
    assert drawn["used_by"] == [{"path": "pay/jobs.py", "lines": [2], "names": ["post"]}]
    assert nornweave(folder, "graph", "nothing.py").returncode == 1


def test_a_use_is_gone_with_its_document(settings: Settings) -> None:
    """The newer text of a document counts, also where an older segment still has the other."""
    folder: Path = settings.file.parent
    (folder / "code/pay/jobs.py").write_text("from pay.ledger import post\n\npost(1)\npost(2)\n", "utf-8")
    (folder / "vault/keys.py").write_text("from pay.ledger import LIMIT\n", "utf-8")
    publish(settings)
    found = json.loads(nornweave(folder, "uses", "post", "--json").stdout)
    assert references(found) == [
        ("pay/jobs.py", [1], "import", "resolved"), ("pay/jobs.py", [3, 4], "call", "resolved"),
    ]  # fmt: skip


def test_a_file_that_takes_too_long_hides_no_other(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uses, "BATCH_CPU_S", 1)
    slow = "a.post" + ".post" * 90_000
    texts = (
        ("s", "a.py", "def post(): pass\n"),
        ("s", "b.py", slow * 4),
        ("s", "c.py", slow),
        ("s", "d.py", "post()\n"),
    )
    read = uses._read(WordTexts(texts, 0, is_complete=True), "post", time.monotonic() + 60)
    files = {file.path for file in read.files["s"]}
    left = sum(one["documents"] or 0 for one in read.not_looked_at)
    assert {"a.py", "d.py"} <= files
    assert len(files) + left == len(texts)
