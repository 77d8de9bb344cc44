import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nornweave.connect.connectors import GithubSettings
from nornweave.connect.github import GithubDumpSource
from nornweave.core.errors import DocumentError, DocumentSkipped, SourceUnavailableError
from nornweave.core.types import Document, Domain

GOLDEN = Path(__file__).parents[1] / "golden" / "conversations" / "github"


def dump(root: Path = GOLDEN) -> GithubDumpSource:
    return GithubDumpSource(GithubSettings(id="issues", domain=Domain.CONVERSATIONS, path=root))


def document(path: str, root: Path = GOLDEN) -> Document:
    source = dump(root)
    entry = next(entry for entry in source.list().entries if entry.path == path)
    return source.parse(entry, source.fetch(entry))


def test_comments_beside_their_issue_in_one_file_join_it(tmp_path: Path) -> None:
    issue = {"id": 1, "number": 7, "title": "T", "url": "https://api.github.com/repos/a/b/issues/7"}
    comment = {"id": 2, "body": "C", "issue_url": "https://api.github.com/repos/a/b/issues/7"}
    (tmp_path / "all.json").write_text(json.dumps({"comments": [comment], "issues": [issue]}))
    assert [(message.id, message.thread_id) for message in document("all.json", tmp_path).messages] == [
        ("1", "7"),
        ("2", "7"),
    ]
    (tmp_path / "all.json").write_text(json.dumps({"7": [comment], "8": [{"id": 3, "body": "D"}]}))
    assert [message.thread_id for message in document("all.json", tmp_path).messages] == ["7", "8"]


def test_the_shape_of_the_gh_command(tmp_path: Path) -> None:
    issue = {
        "number": 7,
        "title": "T",
        "body": "B",
        "author": {"login": "alice"},
        "url": "https://github.com/a/b/issues/7",
        "createdAt": "2026-01-16T14:22:00Z",
        "comments": [{"id": "IC_kw", "author": {"login": "bob"}, "body": "C", "createdAt": "2026-01-17T00:00:00Z"}],
        "labels": [{"name": "bug"}],
    }
    (tmp_path / "gh.jsonl").write_text(json.dumps(issue) + "\n")
    found = document("gh.jsonl", tmp_path)
    assert [(message.id, message.speaker) for message in found.messages] == [("7", "alice"), ("IC_kw", "bob")]
    assert (found.metadata["channel"], found.metadata["tags"]) == ("a/b", ("bug",))


def test_several_repositories_in_one_file_stay_apart(tmp_path: Path) -> None:
    issues = [
        {"id": n, "number": 1, "title": f"T{n}", "repository_url": f"https://api.github.com/repos/a/{name}"}
        for n, name in ((1, "x"), (2, "y"))
    ]
    (tmp_path / "all.json").write_text(json.dumps([issues]))
    found = document("all.json", tmp_path)
    assert [message.thread_id for message in found.messages] == ["a/x#1", "a/y#1"]
    assert [message.channel for message in found.messages] == ["a/x", "a/y"]


def test_pages_and_lines_are_a_document_for_each_issue_and_comments_join_theirs(tmp_path: Path) -> None:
    issues = [
        {
            "number": n,
            "title": f"T{n}",
            "user": {"login": "rosa"},
            "url": f"https://api.github.com/repos/a/b/issues/{n}",
        }
        for n in (6, 7)
    ]
    comment = {"id": 2, "body": "C", "user": {"login": "ken"}, "issue_url": "https://api.github.com/repos/a/b/issues/7"}
    (tmp_path / "a.json").write_text(json.dumps([issues[0]]) + json.dumps([issues[1], comment]))
    (tmp_path / "b.jsonl").write_text("\n".join(map(json.dumps, [*issues, comment])))
    assert [entry.path for entry in dump(tmp_path).list().entries] == ["a.json/6", "a.json/7", "b.jsonl/6", "b.jsonl/7"]
    for path in ("a.json/7", "b.jsonl/7"):
        found = document(path, tmp_path)
        assert (found.title, found.metadata["participants"]) == ("#7 T7", ("ken", "rosa"))
    gates = {entry.path: entry.gate for entry in dump(tmp_path).list().entries}
    (tmp_path / "a.json").write_text(json.dumps([issues[0]]) + json.dumps([issues[1]]))
    assert {entry.path for entry in dump(tmp_path).list().entries if entry.gate != gates[entry.path]} == {"a.json/7"}
    (tmp_path / "a.json").write_text("[{]")
    broken = dump(tmp_path).list()
    assert broken.problem and [entry.path for entry in broken.entries] == ["a.json", "b.jsonl/6", "b.jsonl/7"]


def test_speakers_of_migration_archives_are_names(tmp_path: Path) -> None:
    issue = {
        "type": "issue",
        "url": "https://github.com/acme/ledger/issues/7",
        "user": "https://github.com/rosa",
        "title": "T",
        "body": "B",
        "labels": ["https://github.com/acme/ledger/labels/needs%20work"],
    }
    comment = {
        "type": "issue_comment",
        "url": "https://github.com/acme/ledger/issues/7#issuecomment-9",
        "issue": "https://github.com/acme/ledger/issues/7",
        "user": "https://github.com/ken",
        "body": "C",
    }
    (tmp_path / "issues_000001.json").write_text(json.dumps([issue, comment]))
    found = document("issues_000001.json", tmp_path)
    assert [(message.id, message.speaker) for message in found.messages] == [("7", "rosa"), ("issuecomment-9", "ken")]
    assert (found.metadata["channel"], found.metadata["tags"]) == ("acme/ledger", ("needs work",))


@pytest.mark.parametrize("content", ["[]", '[{"name": "bug", "color": "red"}]', "7", "null", '{"comments": 3}'])
def test_json_without_issues_is_skipped(tmp_path: Path, content: str) -> None:
    (tmp_path / "labels.json").write_text(content)
    with pytest.raises(DocumentSkipped):
        document("labels.json", tmp_path)


def test_broken_json_names_line_and_column(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[\n{"id": 1,}]')
    with pytest.raises(DocumentError, match="line 2 column 10"):
        document("a.json", tmp_path)
    (tmp_path / "b.json").write_bytes(b'["\xff"]')
    with pytest.raises(DocumentError, match="not UTF-8"):
        document("b.json", tmp_path)
    with pytest.raises(SourceUnavailableError):
        dump(tmp_path / "missing").list()


NAMES = """id number title body user author login comments labels url html_url reactions issues created_at repository
nodes issue_url 12 path line"""
KEYS = NAMES.split()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(content=JSON)
def test_whatever_a_dump_holds_only_document_errors_come_out(
    content: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("dump")
    (root / "a.json").write_text(json.dumps(content))
    with contextlib.suppress(DocumentError):
        document("a.json", root).text.encode("utf-8")
