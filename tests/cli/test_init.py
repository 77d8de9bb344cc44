"""``nornweave init``: the configuration that it writes by looking around can be synced as it is."""

import json
import shutil
import subprocess
from pathlib import Path

from command_line import nornweave

from nornweave.connect.connectors import load_settings

EXAMPLES = Path(__file__).parents[2] / "examples" / "payments"


def git(folder: Path, *arguments: str) -> None:
    command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments]
    subprocess.run(command, check=True, capture_output=True)


def test_what_lies_around_becomes_a_configuration(tmp_path: Path) -> None:
    for name in ("slack", "transcripts"):
        shutil.copytree(EXAMPLES / name, tmp_path / name)
    shutil.copytree(EXAMPLES / "code", tmp_path / "api")
    (tmp_path / "api/README.md").write_text("# The API\n")
    git(tmp_path / "api", "init", "-q")
    git(tmp_path / "api", "add", ".")
    git(tmp_path / "api", "commit", "-q", "-m", "x")
    (tmp_path / "handbook/more").mkdir(parents=True)
    (tmp_path / "handbook/a.md").write_text("# A\n")
    (tmp_path / "handbook/more/b.md").write_text("# B\n")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/c.md").write_text("# C\n")
    (tmp_path / "node_modules/x").mkdir(parents=True)
    (tmp_path / "node_modules/x/README.md").write_text("# Not ours\n")

    done = nornweave(tmp_path, "init")
    assert done.returncode == 0, done.stderr
    assert "code           api: a git repository" in done.stdout
    settings = load_settings(tmp_path / "nornweave.yaml")
    assert [(source.id, source.domain.value, source.type) for source in settings.sources] == [
        ("api", "code", "git"),
        ("api-docs", "documentation", "git"),
        ("docs", "documentation", "files"),
        ("handbook-docs", "documentation", "files"),
        ("slack-talk", "conversations", "slack"),
        ("transcripts-talk", "conversations", "transcripts"),
    ]
    read = json.loads(nornweave(tmp_path, "sync", "--dry-run", "--json").stdout)
    assert {each["path"] for each in read["documentation"]["read"]} >= {"README.md", "a.md", "more/b.md"}


def test_a_configuration_that_is_there_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "nornweave.yaml").write_text("data_dir: mine\n")
    refused = nornweave(tmp_path, "init")
    assert (refused.returncode, "--force" in refused.stderr) == (2, True)
    assert (tmp_path / "nornweave.yaml").read_text() == "data_dir: mine\n"
    assert nornweave(tmp_path, "init", "--force").returncode == 0
    assert "data_dir: ./var" in (tmp_path / "nornweave.yaml").read_text()


def test_an_empty_folder_gives_a_configuration_to_fill_in(tmp_path: Path) -> None:
    missing = nornweave(tmp_path, "status")
    assert (missing.returncode, "`nornweave init`" in missing.stderr) == (2, True)
    done = nornweave(tmp_path, "init", "--json")
    assert json.loads(done.stdout)["sources"] == []
    assert load_settings(tmp_path / "nornweave.yaml").sources == ()
    text = (tmp_path / "nornweave.yaml").read_text()
    assert "type: confluence" in text


def test_every_example_in_it_is_a_valid_source(tmp_path: Path) -> None:
    nornweave(tmp_path, "init")
    lines = (tmp_path / "nornweave.yaml").read_text().partition("sources: []\n")[2].splitlines()
    examples = [line.removeprefix("# ") for line in lines if line.startswith(("# - {", "#    "))]
    (tmp_path / "nornweave.yaml").write_text("sources:\n" + "\n".join(f"  {line}" for line in examples))
    assert len(load_settings(tmp_path / "nornweave.yaml").sources) == 8


def test_places_are_added_to_a_configuration(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text("# Page\n\nText.\n", encoding="utf-8")
    places = ("docs", "https://docs.example.org/guide/", "git@git.example.org:team/api.git")
    done = nornweave(tmp_path, "init", *(part for place in places for part in ("--add", place)))
    assert done.returncode == 0, done.stderr
    sources = load_settings(tmp_path / "nornweave.yaml").sources
    assert [(source.domain.value, source.type) for source in sources] == [
        ("documentation", "files"), ("documentation", "web"), ("code", "git"),
    ]  # fmt: skip
    for place, reason in (("docs", "is there already"), ("nowhere", "is no address, and no folder")):
        done = nornweave(tmp_path, "init", "--add", place)
        assert (done.returncode, reason in done.stderr) == (2, True), done.stderr


def test_one_tree_is_one_source_and_one_folder_is_read_once(tmp_path: Path) -> None:
    for file in (
        "work/api/src/a.py",
        "work/api/tests/b.py",
        "work/web/c.ts",
        "papers/2024/x.pdf",
        "papers/notes.md",
        "talks/slides.pdf",
        "talks/one.md",
        "talks/two.md",
        "books/y.pdf",
        "top/README.md",
        "top/guide/g.rst",
        "top/lib/deep/er/z.go",
        "top/papers/w.pdf",
        "top/chat/channels.json",
        "top/chat/users.json",
    ):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("x\n")
    found = json.loads(nornweave(tmp_path, "init", "--json").stdout)["sources"]
    assert [(each["domain"], each["path"], each.get("exclude", [])) for each in found] == [
        ("research", "books", []),
        ("research", "papers", []),
        ("documentation", "talks", []),
        ("code", "top", ["/chat/**"]),
        ("documentation", "top", ["/chat/**"]),
        ("conversations", "top/chat", []),
        ("code", "work", []),
    ]
    read = json.loads(nornweave(tmp_path, "sync", "--dry-run", "--json").stdout)
    assert [each["path"] for each in read["documentation"]["read"]] == [
        "one.md",
        "slides.pdf",
        "two.md",
        "README.md",
        "guide/g.rst",
        "papers/w.pdf",
    ]
    assert {each["path"] for each in read["research"]["read"]} == {"y.pdf", "2024/x.pdf", "notes.md"}


def test_a_folder_is_proposed_for_all_that_a_sync_reads_of_it(tmp_path: Path) -> None:
    texts = [
        *("site/docs/intro.mdx", "course/lesson.md", "course/lesson.vtt", "course/quorum.py", "talks/a.srt"),
        *("talks/b.txt", "infra/main.tf", "infra/deploy.sh", "api/build/plan.go", "bin/rotate", "mail/a.eml"),
        *("log/a.jsonl", "lone/LICENSE", "own/vendor/LICENSE", "own/vendor/x.go", "data/a.json"),
        *("web/node_modules/a/b.js", "x/target/a.rs"),
    ]
    for file in (*texts, "x/Cargo.toml"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("#!/usr/bin/env python3\n" if file == "bin/rotate" else "x\n")
    found = json.loads(nornweave(tmp_path, "init", "--json").stdout)["sources"]
    assert sorted((each["path"], each["domain"], each["type"], *each.get("only", ())) for each in found) == [
        ("api", "code", "files"),
        ("bin", "code", "files"),
        ("course", "code", "files"),
        ("course", "conversations", "transcripts", "*.vtt"),
        ("course", "documentation", "files"),
        ("infra", "code", "files"),
        ("log", "conversations", "messages", "*.jsonl"),
        ("mail", "documentation", "files"),
        ("site", "documentation", "files"),
        ("talks", "conversations", "transcripts"),
        ("x", "code", "files"),
    ]


def test_logs_of_chats_are_conversations_and_other_logs_are_not(tmp_path: Path) -> None:
    phone = "".join(
        f"[0{day}/02/2026, 18:01:12] {name}: the boat leaves\n" for day, name in enumerate("AnnBob"[::3], 1)
    )
    android = "".join(f"0{day}/02/2026, 18:01 - {name}: fuel is low\nsecond line\n" for day, name in enumerate("AB", 1))
    texts = {
        "crew/WhatsApp Chat [crew].txt": phone + phone,
        "crew/office.log": android + android.replace("second line\n", "") * 2,
        "crew/rules.txt": "Rules of the boat.\n\nNobody smokes on board.\n",
        "irc/2026-02-02.log": "18:01 <ann> hello\n18:02 <bob> hello\n18:03 <ann> the boat leaves\n",
        "notes/server.log": "".join(f"2026-02-02 18:0{each}:12 INFO started\n" for each in range(4)),
        "notes/diary.txt": "2026-02-02: the boat was painted.\n2026-02-03: it rained.\n2026-02-04: nothing.\n",
    }
    for file, text in texts.items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(text)
    found = json.loads(nornweave(tmp_path, "init", "--json").stdout)["sources"]
    chats = ["/WhatsApp Chat \\[crew\\].txt", "/office.log"]
    assert [(each["path"], each["domain"], each.get("only"), each.get("exclude")) for each in found] == [
        ("crew", "documentation", None, chats),
        ("crew", "conversations", chats, None),
        ("irc", "conversations", ["*.log"], None),
        ("notes", "documentation", None, None),
    ]
    read = json.loads(nornweave(tmp_path, "sync", "--dry-run", "--json").stdout)
    assert [each["path"] for each in read["documentation"]["read"]] == ["rules.txt", "diary.txt"]
    assert len(read["conversations"]["read"]) == 3
