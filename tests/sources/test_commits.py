"""Commits as documents: what a repository's history says of itself, and what of it is not repeated."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from test_git import commit as put
from test_git import git

from nornweave.connect.connectors import FilesSettings, GitSettings, load_settings, open_sources
from nornweave.connect.files.source import FilesSource
from nornweave.connect.git import history as commits
from nornweave.connect.git.history import MAX_LISTED, CommitHistory
from nornweave.connect.git.source import GitSource
from nornweave.core.types import Document, Domain, Entry, SourceId, is_of_history

ID = SourceId("repo")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work tree"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    return folder


def say(root: Path, message: str, files: Mapping[str, str], *, day: int, author: str = "Ada") -> str:
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content, encoding="utf-8")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--allow-empty", "--message", message, day=day, author=author)
    return git(root, "rev-parse", "HEAD")


def source(root: Path, most: int = 100, **options: object) -> GitSource:
    return GitSource(ID, Domain.CODE, root, history=CommitHistory(root=root, most=most, **options))  # type: ignore[arg-type]


def past(repository: GitSource | FilesSource) -> dict[str, Document]:
    entries = [entry for entry in repository.list().entries if is_of_history(entry.gate)]
    documents = [repository.parse(entry, repository.fetch(entry)) for entry in entries]
    return {str(document.title): document for document in documents}


def test_a_commit_says_what_it_says_who_made_it_when_and_what_it_changed(root: Path) -> None:
    say(root, "Begin", {"src/app.py": "def one():\n    return 1\n\n\ndef two():\n    return 2\n"}, day=1)
    sha = say(
        root,
        "Return three (#12)\n\nTwo was wrong.\n\nFixes #7\nSigned-off-by: Ada <ada@example.org>\n"
        "Co-authored-by: Eve <eve@example.org>",
        {"src/app.py": "def one():\n    return 1\n\n\ndef two():\n    return 3\n", "docs/new page.md": "# New\n"},
        day=2,
        author="Grace Hopper",
    )
    git(root, "tag", "v1.2.0")
    with source(root) as repository:
        documents = past(repository)
    made = documents["Return three (#12)"]
    assert made.path == f"commits/{sha}"
    assert made.text == (
        "Return three (#12)\n\nTwo was wrong.\n\nFixes #7\n\n"
        f"Committed on 2023-11-17 by Grace Hopper with Eve as {sha[:10]}, first released in v1.2.0.\n\n"
        "Changed:\n- docs/new page.md (new, +1)\n- src/app.py (+1 −1: two)"
    )
    assert made.metadata["kind"] == "commit"
    assert list(made.metadata["changed"]) == ["docs/new page.md", "src/app.py"]  # type: ignore[arg-type]
    assert list(made.metadata["tags"]) == ["#12", "#7"]  # type: ignore[arg-type]
    assert documents["Release v1.2.0"].text.splitlines()[1:] == [
        f"- Return three (#12) ({sha[:7]})", f"- Begin ({git(root, 'rev-parse', '--short', 'HEAD~1')})"
    ]  # fmt: skip


def test_lines_that_a_commit_removed_are_not_repeated(root: Path) -> None:
    say(root, "Begin", {"a.py": 'PASSWORD = "hunter2-secret"\n', "env": "KEY=hunter2-secret\n"}, day=1)
    (root / "env").unlink()
    say(root, "Forget it", {"a.py": "PASSWORD = None\n"}, day=2)
    with source(root) as repository:
        assert not any(
            "hunter2" in document.text or "hunter2" in str(document.metadata) for document in past(repository).values()
        )


SECRETS = {
    "h.txt": "password: class hunter2one\n",
    "h.yaml": "class hunter2two:\n",
    "h.py": 'KEY = "def hunter2three("\n# class hunter2four:\n"""The class hunter2five (old)."""\n',
    "h.js": 'const k = {"key": "class hunter2six {"}\n// function hunter2seven()\n * type hunter2eight = 1\n',
    "h.md": "class hunter2nine:\n",
}
DEFINITIONS = {
    "d.py": "class Pay:\n    async def charge(self): ...\n",
    "d.ts": "export default class Cart extends Base {}\nexport type Money = number\n",
    "d.go": "func (c *Client) Send(x int) {}\ntype Store interface {}\n",
    "d.rs": "pub(crate) fn parse(x: u8) {}\nimpl Lexer for Fast {}\n",
    "d.rb": "class Ledger < Base\n  def balance\n  end\nend\n",
}


def test_names_are_those_of_definitions_in_code(root: Path) -> None:
    say(root, "Begin", SECRETS | DEFINITIONS, day=1)
    for path in SECRETS:
        (root / path).unlink()
    say(root, "Forget it", {}, day=2)
    with source(root) as repository:
        documents = past(repository)
        assert "hunter2" not in str([(each.text, each.metadata) for each in documents.values()])
        touched = documents["Begin"].metadata["touches"]
    expected = ["Pay", "charge", "Cart", "Money", "Send", "Store", "parse", "Fast", "Ledger", "balance", "KEY", "k"]
    assert sorted(touched) == sorted(expected)  # type: ignore[type-var, arg-type]


CRANE = """\
#define WEIGHT 3

static int tonnage(const char *ship) {
    return 1;
}
"""
SHIPS = """\
def group(ships):
    def is_next(ship):
        return ship

    return is_next


class Harbour:
    def moor(self):
        return 1
"""


@pytest.mark.parametrize(
    ("before", "after", "touched"),
    [
        ({}, {"crane.c": CRANE}, ["WEIGHT", "tonnage"]),
        ({"crane.c": CRANE}, {"crane.c": CRANE.replace("return 1", "return 2")}, ["tonnage"]),
        ({"crane.c": CRANE}, {"crane.c": CRANE + "\nint load(void) {\n    return 4;\n}\n"}, ["load"]),
        ({"crane.c": CRANE}, {"crane.c": "int tonnage(const char *);\n"}, ["WEIGHT", "tonnage"]),
        ({"ships.py": SHIPS}, {"ships.py": SHIPS.replace("return ship", "return 3")}, ["group", "is_next"]),
        ({"ships.py": SHIPS}, {"ships.py": SHIPS.replace("return 1", "return 2")}, ["Harbour", "moor"]),
        ({"ships.py": SHIPS}, {"ships.py": SHIPS + "\n\ndef count_ships():\n    return 0\n"}, ["count_ships"]),
        ({"ships.py": SHIPS}, {"ships.py": "import os\n" + SHIPS}, []),
        ({"ships.py": SHIPS}, {"ships.py": SHIPS.partition("\n\nclass")[0]}, ["Harbour", "moor"]),
        ({"ships.py": SHIPS}, {"ships.py": SHIPS + "#" * 300_000 + "\n"}, ["moor"]),  # too long: what git says
    ],
)
def test_a_commit_touches_all_definitions_that_a_changed_line_is_in(
    root: Path, before: dict[str, str], after: dict[str, str], touched: list[str]
) -> None:
    say(root, "Begin", before | {"a.txt": "1"}, day=1)
    say(root, "Go on", after, day=2)
    with source(root) as repository:
        assert list(past(repository)["Go on"].metadata.get("touches") or ()) == touched  # type: ignore[arg-type]


def test_commits_to_what_exclude_names_are_none_and_its_files_are_not_told(root: Path) -> None:
    say(root, "Begin", {"a.py": "1\n"}, day=1)
    say(root, "Raise the Kestrel price", {"secret/merger.py": "1\n"}, day=2)
    git(root, "tag", "v1.0.0")
    say(root, "Do both", {"a.py": "2\n", "secret/merger.py": "2\n"}, day=3)
    say(root, "Say nothing", {}, day=4)
    git(root, "tag", "v2.0.0")
    with source(root, exclude=("secret/",)) as repository:
        documents = past(repository)
    assert {*documents} == {"Begin", "Do both", "Release v1.0.0", "Release v2.0.0"}
    assert not any(word in str([*documents.values()]) for word in ("Kestrel", "merger"))


def test_each_of_two_versions_on_one_commit_is_a_release(root: Path) -> None:
    say(root, "Begin", {"a.py": "1\n"}, day=1)
    git(root, "tag", "v1.0.0")
    say(root, "Go on", {"a.py": "2\n"}, day=2)
    for tag in ("v2.0.0-rc1", "v2.0.0", "v2.0.0-beta"):
        git(root, "tag", tag)
    with source(root) as repository:
        documents = past(repository)
    assert {*documents} >= {"Release v2.0.0", "Release v2.0.0-rc1", "Release v2.0.0-beta", "Release v1.0.0"}
    assert all(
        "has 1 commits since v1.0.0:\n- Go on" in documents[f"Release v2.0.0{end}"].text
        for end in ("", "-rc1", "-beta")
    )
    assert "first released in v2.0.0." in documents["Go on"].text


def test_a_merge_is_called_by_what_was_merged_and_has_its_changes(root: Path) -> None:
    say(root, "Begin", {"a.py": "1\n"}, day=1)
    git(root, "checkout", "--quiet", "-b", "topic")
    say(root, "wip", {"b.py": "1\n"}, day=2, author="Eve")
    say(root, "more wip", {"c.py": "1\n"}, day=3, author="Eve")
    git(root, "checkout", "--quiet", "main")
    message = "Merge pull request #5 from eve/topic\n\nAdd b and c"
    git(root, "merge", "--quiet", "--no-ff", "--message", message, "topic", day=4)
    with source(root) as repository:
        documents = past(repository)
    assert set(documents) == {"Begin", "Add b and c (#5)"}
    merge = documents["Add b and c (#5)"]
    assert "- b.py (new, +1)\n- c.py (new, +1)" in merge.text
    assert "- more wip\n- wip\n" in merge.text and "by Eve as" in merge.text and ", merged by Ada." in merge.text
    assert merge.metadata["author"] == "Eve"


@pytest.mark.parametrize("news", [1, 3])
def test_a_merge_is_by_who_wrote_most_lines_and_names_the_others(root: Path, news: int) -> None:
    say(root, "Begin", {"a.py": "1\n"}, day=1)
    git(root, "checkout", "--quiet", "-b", "guest")
    message = "whistle\n\nCo-authored-by: Ida <ida@example.org>\nCo-authored-by: helper[bot] <x@example.org>"
    say(root, message, {"whistle.py": "def whistle():\n    return 1\n" * 5}, day=2, author="Guest")
    for number in range(news):
        say(root, f"news {number}", {"NEWS": f"{number}\n"}, day=3 + number)
    git(root, "checkout", "--quiet", "main")
    git(
        root,
        "merge",
        "--quiet",
        "--no-ff",
        "--message",
        "Merge branch 'guest' into main\n\nAdd whistle",
        "guest",
        day=9,
    )
    with source(root) as repository:
        merge = past(repository)["Add whistle"]
    assert "by Guest with Ada, Ida as" in merge.text and ", merged by Ada, not released" not in merge.text
    assert merge.metadata["author"] == "Guest"
    assert list(merge.metadata["authors"]) == ["Guest", "Ada", "Ida"]  # type: ignore[arg-type]


def test_a_commit_after_the_last_release_says_so(root: Path) -> None:
    say(root, "Begin", {"a.py": "1\n"}, day=1)
    with source(root) as repository:
        assert "released" not in past(repository)["Begin"].text, "there is no release"
    git(root, "tag", "v1.0")
    say(root, "Go on", {"a.py": "2\n"}, day=2)
    with source(root) as repository:
        documents = past(repository)
    assert ", not released yet." in documents["Go on"].text and "released in v1.0." in documents["Begin"].text
    assert "release" not in documents["Go on"].metadata


@pytest.mark.parametrize("closes", ["", "\n\nCloses #7"])
def test_a_merge_request_is_named_by_its_number(root: Path, closes: str) -> None:
    say(root, "Begin", {"a.py": "1\n"}, day=1)
    git(root, "checkout", "--quiet", "-b", "topic")
    say(root, "wip", {"b.py": "1\n"}, day=2)
    git(root, "checkout", "--quiet", "main")
    message = f"Merge branch 'topic' into 'main'\n\nAdd b{closes}\n\nSee merge request acme/tools/api!12"
    git(root, "merge", "--quiet", "--no-ff", "--message", message, "topic", day=3)
    say(root, f"Squashed{closes}\n\nSee merge request acme/tools/api!13", {"c.py": "1\n"}, day=4)
    with source(root) as repository:
        documents = past(repository)
    assert set(documents) == {"Begin", "Add b (!12)", "Squashed (!13)"}
    assert "See merge request" not in documents["Add b (!12)"].text
    assert documents["Add b (!12)"].metadata["tags"] == ["#12", "#7"][: 1 + bool(closes)]


def test_a_merge_is_in_the_release_of_what_it_merged(root: Path) -> None:
    say(root, "Begin", {"a.py": "1\n"}, day=1)
    git(root, "checkout", "--quiet", "-b", "release-1.1")
    say(root, "Seal the crane", {"CHANGES": "1.1\n"}, day=2)
    git(root, "tag", "v1.1.0")
    git(root, "tag", "v1.1.0rc1", "HEAD~1")
    git(root, "checkout", "--quiet", "main")
    say(root, "Go on", {"b.py": "1\n"}, day=3)
    git(root, "merge", "--quiet", "--no-ff", "--message", "Merge the release", "release-1.1", day=4)
    with source(root) as repository:
        documents = past(repository)
    release = documents["Release v1.1.0"].text
    assert "has 2 commits:" in release and "- Seal the crane" in release, "as git lists what the tag contains"
    assert "not released yet." in documents["Go on"].text, "the release does not contain it"
    assert "first released in v1.1.0." in documents["Merge the release"].text
    assert "first released in v1.1.0." in documents["Begin"].text, "what was tagged before it was its draft"


def test_a_patch_on_a_branch_that_was_merged_lists_its_own_commits(root: Path) -> None:
    say(root, "Begin", {"a.py": "1\n"}, day=1)
    git(root, "tag", "v1.0.0")
    git(root, "checkout", "--quiet", "-b", "hotfix")
    say(root, "Mend the lid", {"b.py": "1\n"}, day=2)
    git(root, "tag", "v1.0.1")
    git(root, "checkout", "--quiet", "main")
    say(root, "Build a crane", {"c.py": "1\n"}, day=3)
    git(root, "merge", "--quiet", "--no-ff", "--message", "Merge the hotfix back", "hotfix", day=4)
    say(root, "Paint the crane", {"c.py": "2\n"}, day=5)
    git(root, "tag", "v1.1.0")
    with source(root) as repository:
        documents = past(repository)
    patch, release = documents["Release v1.0.1"].text, documents["Release v1.1.0"].text
    assert "has 1 commits since v1.0.0:\n- Mend the lid" in patch
    assert "crane" not in patch and "Merge" not in patch
    assert "has 3 commits since v1.0.0:" in release
    assert "- Build a crane" in release and "- Paint the crane" in release


def test_the_first_release_is_the_first_by_date_whose_tag_contains_the_commit(root: Path) -> None:
    say(root, "Begin", {"a.py": "1\n"}, day=1)
    git(root, "tag", "v1.0.0")
    git(root, "checkout", "--quiet", "-b", "fork")
    say(root, "Rename", {"name": "fork\n"}, day=2)
    git(root, "checkout", "--quiet", "main")
    say(root, "Weigh jars", {"b.py": "1\n"}, day=3)
    git(root, "checkout", "--quiet", "fork")
    git(root, "merge", "--quiet", "--no-ff", "--message", "Take over", "main", day=4)
    git(root, "tag", "--annotate", "--message", "Fork", "v1.0.2", day=5)
    git(root, "checkout", "--quiet", "main")
    say(root, "Weigh lids", {"b.py": "2\n"}, day=6)
    git(root, "tag", "--annotate", "--message", "Lids", "v1.1.0", day=9)
    with source(root) as repository:
        documents = past(repository)
    assert "first released in v1.0.2." in documents["Weigh jars"].text
    assert "first released in v1.1.0." in documents["Weigh lids"].text
    assert documents["Release v1.1.0"].text.startswith("Release v1.1.0 of 2023-11-24 "), "the day of the tag"


def test_a_list_that_is_cut_says_so(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commits, "MAX_LISTED", 2)
    for day in range(1, 6):
        say(root, f"Weigh jar {day}", {"a.py": f"{day}\n"}, day=day)
        if day != 4:
            git(root, "tag", f"v1.{day}.0")
    with source(root) as repository:
        documents = past(repository)
    assert "has 2 commits since v1.3.0" in documents["Release v1.5.0"].text
    git(root, "tag", "--delete", "v1.2.0", "v1.3.0")
    with source(root) as repository:
        said = past(repository)["Release v1.5.0"].text
    assert "has 4 commits since v1.1.0" in said and said.count("\n- Weigh jar") == 2 and said.endswith("- and 2 others")


def test_a_release_lists_a_hundred_commits_and_counts_housekeeping_apart(root: Path) -> None:
    say(root, "Begin", {"a.py": "1\n"}, day=1)
    git(root, "tag", "v1.0.0")
    for number in range(MAX_LISTED + 2):
        say(root, f"Weigh the jar of number {number} and {'write ' * 8}it down", {"a.py": f"jar {number}\n"}, day=2)
        if not number % 20:
            say(root, "Update changelog [ci skip]", {"CHANGELOG.md": f"{number}\n"}, day=2)
    git(root, "tag", "v1.1.0")
    with source(root) as repository:
        said = past(repository)["Release v1.1.0"].text
    assert f"has {MAX_LISTED + 2} commits and 6 of housekeeping since v1.0.0:\n" in said
    assert said.count("\n- Weigh") == MAX_LISTED and "changelog" not in said and said.endswith("\n- and 2 others")


def test_a_release_that_comes_later_changes_its_commits_and_nothing_else(root: Path) -> None:
    put(root, {"a.py": "1"}, day=1)
    with source(root) as repository:
        before = {entry.path: entry.gate for entry in repository.list().entries}
        put(root, {"a.py": "2"}, day=2)
        put(root, {"a.py": "3"}, day=3)
        git(root, "tag", "2.0", "HEAD~2")
        git(root, "tag", "not-a-version", "HEAD~1")
        after = {entry.path: entry.gate for entry in repository.list().entries}
        git(root, "tag", "3.0")
        last = {entry.path: entry.gate for entry in repository.list().entries}
    first = next(path for path in before if path.startswith("commits/"))
    assert after[first] != before[first]
    assert {path for path in after if last.get(path) != after[path]} == {
        f"commits/{git(root, 'rev-parse', place)}" for place in ("HEAD", "HEAD~1")
    }
    assert set(last) - set(after) == {"releases/3.0"}


def test_counts_age_folder_and_renames(root: Path) -> None:
    long = "\n".join(f"line {number}" for number in range(50))
    put(root, {"pkg/a.py": long}, day=1)
    put(root, {"other/b.py": "1"}, day=2)
    git(root, "mv", "pkg/a.py", "pkg/c.py")
    put(root, {}, day=3)
    with source(root / "pkg") as folder, source(root, most=2) as newest:
        assert len(past(folder)) == 2
        assert past(folder)["day 1"].text.endswith("- a.py (new, +50)")
        assert past(folder)["day 3"].text.endswith("- c.py (was a.py)")
        assert len(past(newest)) == 2
    with source(root, since=datetime.now(UTC) - datetime(2023, 11, 16, 20, tzinfo=UTC)) as recent:
        assert len(past(recent)) == 2  # days 2 and 3
    with source(root, since=timedelta(days=30)) as none:
        assert not past(none)


@pytest.mark.parametrize("message", ["", "\n\n", "-" * 5_000, "#\x01\x02", "end of\nend of", "é\n\n\u2028x"])
def test_any_message_is_read_and_the_next_commit_too(root: Path, message: str) -> None:
    put(root, {"a.py": "1"}, day=1)
    arguments = ["--allow-empty-message", "--cleanup=verbatim", "--allow-empty", "--quiet", "--message", message]
    git(root, "commit", *arguments, day=2)
    (root / "a.py").write_text("--- a/x\n+++ b/y\n@@ -1 +1 @@ no(3)\n", encoding="utf-8")
    last = say(root, "Last", {}, day=3)
    with source(root) as repository:
        documents = past(repository)
    assert documents["Last"].path == f"commits/{last}"
    assert documents["Last"].text.endswith("Changed:\n- a.py (+3 −1)")
    assert all(len(document.text.encode()) <= 4_096 for document in documents.values())


def test_a_large_commit_names_its_files_and_how_many_others(root: Path) -> None:
    say(root, "Vendor", {f"src/file{number}.py": f"def f{number}(): pass\n" for number in range(300)}, day=1)
    with source(root) as repository:
        text = past(repository)["Vendor"].text
    assert len(text) < 3_000
    shown = text.count("\n- src/")
    assert text.endswith(f"- and {300 - shown} others")


def test_commits_of_a_program_are_their_first_line(root: Path) -> None:
    say(root, "Bump x from 1 to 2\n\nRelease notes\n" + "noise\n" * 100, {"a.py": "1"}, day=1, author="dependabot[bot]")
    with source(root) as repository:
        assert "noise" not in past(repository)["Bump x from 1 to 2"].text


def test_a_commit_whose_content_the_clone_lacks_names_its_files(root: Path) -> None:
    say(root, "Ring the bell", {"bell.py": "def ring():\n    ...\n"}, day=1)
    lost = git(root, "rev-parse", "HEAD:bell.py")
    say(root, "Ring it twice\n\nOnce is not heard.", {"bell.py": "def ring_twice():\n    ...\n"}, day=2)
    say(root, "Paint the door", {"door.py": "def paint():\n    ...\n"}, day=3)
    (root / ".git/objects" / lost[:2] / lost[2:]).unlink()
    found = past(source(root))
    assert "Once is not heard." in found["Ring it twice"].text
    assert found["Ring it twice"].text.endswith("- bell.py") and found["Ring the bell"].text.endswith("- bell.py (new)")
    assert found["Paint the door"].text.endswith("- door.py (new, +2: paint)")


def test_a_commit_is_asked_for_again_if_git_was_ended(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(root, "Ring the bell", {"bell.py": "def ring():\n    ...\n"}, day=1)
    program = tmp_path / "bin/git"
    program.parent.mkdir()
    real, once = shutil.which("git"), tmp_path / "ended"
    ends = f'case "$*" in *diff-tree*) [ -e "{once}" ] || {{ touch "{once}"; kill -9 $$; }};; esac'
    program.write_text(f'#!/bin/sh\n{ends}\nexec "{real}" "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    assert past(source(root))["Ring the bell"].text.endswith("- bell.py (new, +2: ring)") and once.exists()


def test_files_in_a_work_tree_have_its_commits_and_files_elsewhere_none(root: Path, tmp_path: Path) -> None:
    put(root, {"src/a.py": "1"}, day=1)
    place = tmp_path / "plain"
    place.mkdir()
    (place / "a.py").write_text("1", encoding="utf-8")
    for folder, expected in ((root / "src", 1), (place, 0)):
        history = CommitHistory(root=folder, most=10)
        files = FilesSource(ID, Domain.CODE, folder, history=history)
        assert len(past(files)) == expected
        history.close()
    empty = tmp_path / "empty"
    subprocess.run(["git", "init", "--quiet", str(empty)], check=True)
    assert not FilesSource(ID, Domain.CODE, empty, history=CommitHistory(root=empty, most=10)).list().entries


PAGES = {
    "CHANGELOG.md": "- Spies see every exception there is ([#215](https://example.org/215)).\n- Gone by this day.\n",
    "docs/Guide.RST": "A spy of a coroutine works like one of a function.\n\n.. _something long: https://example.org\n",
    "docs/board.md": "---\naccess: board\n---\nOnly the board knows of the sale in autumn.\n",
    "docs/secret/plan.md": "The plan for the winter is kept in this page.\n",
    "notes.txt": "This is a text of which nothing is told.\n",
}


def test_a_commit_tells_what_it_wrote_in_the_documentation_as_far_as_it_stands_there(root: Path) -> None:
    say(root, "Begin", {"a.py": "one = 1\n"}, day=1)
    say(root, "Catch all", {**PAGES, "docs/old.md": "The password of the old server is hunter2.\n"}, day=2)
    moved = {"docs/new.md": "A spy of a coroutine works like one of a function.\n"}
    say(root, "Move", {"CHANGELOG.md": PAGES["CHANGELOG.md"].splitlines()[0] + "\n", "docs/old.md": "", **moved}, day=3)
    with source(root, exclude=("docs/secret/**",)) as repository:
        documents = past(repository)
    assert (
        documents["Catch all"]
        .text.partition("Committed on")[2]
        .partition("\n\n")[2]
        .startswith(
            "In the documentation:\n- Spies see every exception there is ([#215]).\n"
            "A spy of a coroutine works like one of a function.\n\nChanged:"
        )
    )
    assert "In the documentation" not in documents["Move"].text  # the line was there before
    with source(root, exclude=("docs/secret/**",), quotes=False) as repository:
        assert not [each for each in past(repository).values() if "In the documentation" in each.text]


def test_a_commit_is_read_again_once_what_it_wrote_has_changed(root: Path) -> None:
    def gates() -> list[str]:
        with source(root) as repository:
            told = {entry.path: entry.gate for entry in repository.list().entries}
            return [told[f"commits/{sha}"] for sha in (second, first)]

    first = say(root, "Begin", {"a.py": "one = 1\n"}, day=1)
    second = say(root, "Write", {"README.md": "The first line of it stays.\nThe second line of it goes.\n"}, day=2)
    written, begun = gates()
    say(root, "Elsewhere", {"docs/b.md": "Something else is told elsewhere.\n"}, day=3)
    assert gates() == [written, begun]
    say(root, "Cut", {"README.md": "The first line of it stays.\n"}, day=4)
    cut, same = gates()
    assert (cut != written, same) == (True, begun)


def test_commits_tell_nothing_of_the_documentation_where_some_of_it_is_for_groups(root: Path, tmp_path: Path) -> None:
    say(root, "Write", {"README.md": "The first line of it stays.\n"}, day=1)
    file = tmp_path / "nornweave.yaml"
    pages = {"id": "docs", "domain": "documentation", "type": "git", "path": str(root)}
    for keys, history, is_told in (
        ({}, None, True), ({"access": ["staff"]}, None, False), ({"access": ["staff"]}, {"documentation": True}, True),
        ({}, {"documentation": False}, False),
    ):  # fmt: skip
        code = {"id": "code", "domain": "code", "type": "git", "path": str(root)}
        sources = [code | ({"history": history} if history else {}), pages | keys]
        file.write_text(yaml.safe_dump({"data_dir": "var", "sources": sources}), encoding="utf-8")
        (opened,) = open_sources(load_settings(file), Domain.CODE)
        with closing(opened):  # type: ignore[type-var]
            assert ("In the documentation" in past(opened)["Write"].text) is is_told  # type: ignore[arg-type]


def test_what_history_a_source_has() -> None:
    def most(
        kind: type[FilesSettings | GitSettings] = GitSettings, **keys: object
    ) -> tuple[int, timedelta | None] | None:
        settings = kind.model_validate({"id": "a", "domain": "code", "path": "x", **keys})
        history = settings.commit_history(Path("x"))
        return history and (history.most, history.since)

    assert most() == (1_000, None)
    assert most(FilesSettings) is None
    assert most(FilesSettings, history=7) == (7, None)
    assert most(history=0) is most(only=["*.py"]) is most(domain="documentation") is None
    assert most(history=50) == (50, None)
    assert most(history={"commits": 5, "since": "3y"}, only=["*.py"]) == (5, timedelta(days=1_095))
    for wrong in (-1, {"since": "soon"}, {"since": "0d"}, True, {"commit": 3}, "all"):
        with pytest.raises(ValueError, match="history"):
            most(history=wrong)
    with pytest.raises(ValueError, match="domain code"):
        GitSettings.model_validate({"id": "a", "domain": "documentation", "path": "x", "history": 5})


def test_a_record_that_is_none_is_an_error_of_that_document() -> None:
    from nornweave.connect.git.history import history_document
    from nornweave.core.errors import DocumentError

    with pytest.raises(DocumentError):
        history_document(ID, Entry(path="commits/x", gate="history-1:x"), b"no json")


@pytest.mark.parametrize("draft", ["draft-1.2.0", "v1.2.0-rc1", "v1.2.0-alpha.2"])
def test_a_draft_has_nothing_first_once_its_release_was_made(root: Path, draft: str) -> None:
    for day, (message, tag) in enumerate(
        [("Begin", "v1.1.0"), ("Weigh jars", draft), ("Fix the scale", "v1.2.0"), ("Weigh lids", "v1.3.0-rc1")], 1
    ):
        say(root, message, {"a.py": f"{day}\n"}, day=day)
        git(root, "tag", tag)
    with source(root) as repository:
        documents = past(repository)
    assert "first released in v1.2.0." in documents["Weigh jars"].text
    assert "first released in v1.3.0-rc1." in documents["Weigh lids"].text, "no release was made of it yet"
    said = documents["Release v1.2.0"].text
    assert "has 2 commits since v1.1.0" in said and "- Weigh jars" in said
    assert "has 1 commits since v1.1.0" in documents[f"Release {draft}"].text


def test_a_tag_on_a_branch_that_was_never_merged_counts_where_the_branch_left(root: Path) -> None:
    say(root, "Begin", {"a.py": "1\n"}, day=1)
    git(root, "tag", "v1.0.0")
    say(root, "Weigh jars", {"a.py": "2\n"}, day=2)
    git(root, "checkout", "--quiet", "-b", "release-1.1")
    for number in range(2):
        say(root, f"Mend jar {number}", {"version": f"{number}\n"}, day=3 + number)
        git(root, "tag", f"v1.1.{number}")
    git(root, "checkout", "--quiet", "main")
    say(root, "Bumping version to 1.2.0", {"a.py": "3\n"}, day=6)
    say(root, "Weigh lids", {"a.py": "4\n"}, day=5)
    say(root, "Update the release notes for v1.2.0 (#7)", {"a.py": "5\n"}, day=7)
    git(root, "tag", "v1.2.0")
    with source(root) as repository:
        documents = past(repository)
    assert "first released in v1.1.0." in documents["Weigh jars"].text
    said = documents["Release v1.2.0"].text.splitlines()
    assert "has 1 commits and 2 of housekeeping since v1.1.0" in said[0] and said[1].startswith("- Weigh lids ("), said
    assert "has 2 commits since v1.0.0" in documents["Release v1.1.0"].text, "one of them on the branch"
    assert documents["Release v1.1.1"].text.startswith("Release v1.1.1 of 2023-11-19 has 1 commits since v1.1.0:")
    assert "- Mend jar 1" in documents["Release v1.1.1"].text


@pytest.mark.parametrize("others", [0, 1])
def test_a_patch_of_a_release_is_a_release_although_its_branch_was_never_merged(root: Path, others: int) -> None:
    say(root, "Begin", {"a.py": "1\n"}, day=1)
    git(root, "tag", "v1.0.0")
    git(root, "checkout", "--quiet", "-b", "patches")
    say(root, "Mend the lid", {"a.py": "2\n"}, day=2)
    git(root, "tag", "v1.0.1-rc1")
    say(root, "Mend the jar", {"b.py": "2\n"}, day=3)
    git(root, "tag", "v1.0.1")
    git(root, "checkout", "--quiet", "main")
    for number in range(others):
        say(root, "Weigh jars", {"c.py": f"{number}\n"}, day=4 + number)
    with source(root, most=1) as repository:
        documents = past(repository)
    said = documents["Release v1.0.1"].text if not others else "has 2 commits since v1.0.0:\n- Mend the jar"
    assert "has 2 commits since v1.0.0:" in said and "\n- Mend the jar" in said
    assert ("Release v1.0.1" in documents) is not others, "the branch left before what is read"


def test_tags_with_a_prefix_of_their_own_are_releases_of_a_series_of_their_own(root: Path) -> None:
    app, lib = "app/main.py", "jar_lib/lid.py"
    say(root, "Begin", {app: "1\n", lib: "1\n"}, day=1)
    git(root, "tag", "v1.0.0")
    say(root, "Weigh jars", {app: "2\n"}, day=2)
    say(root, "Turn lids", {lib: "2\n"}, day=3)
    say(root, "Turn and weigh", {lib: "3\n", app: "3\n"}, day=4)
    git(root, "tag", "jar-lib-v0.2.0")
    say(root, "Paint jars", {app: "4\n"}, day=5)
    git(root, "tag", "v1.1.0")
    say(root, "Oil lids", {lib: "5\n"}, day=6)
    git(root, "tag", "v1.2.0")
    with source(root) as repository:
        documents = past(repository)
    had = {title: made.text.partition("\n\nChanged")[0].partition(", ")[2] for title, made in documents.items()}
    assert had["Weigh jars"] == had["Paint jars"] == "first released in v1.1.0."
    assert had["Turn lids"] == "first released in jar-lib-v0.2.0."
    assert had["Turn and weigh"] == "first released in v1.1.0, in jar-lib-v0.2.0 before."
    assert had["Oil lids"] == "not released yet, in v1.2.0 before."
    assert documents["Turn lids"].metadata["release"] == "jar-lib-v0.2.0"
    assert "has 4 commits since v1.0.0:\n" in documents["Release v1.1.0"].text
    assert "has 4 commits:\n" in documents["Release jar-lib-v0.2.0"].text


@pytest.mark.parametrize(
    ("tags", "lists"),
    [
        (["jar-1.0", "jar-1.1", "v2.0"], {"jar-1.1": "jar-1.0", "v2.0": "jar-1.1"}),  # the project changed its tags
        (["release-1.0", "v1.1", "1.2"], {"v1.1": "release-1.0", "1.2": "v1.1"}),
        (["jar@1.0.0", "lid@1.0.0", "jar@1.1.0"], {"lid@1.0.0": "", "jar@1.1.0": "jar@1.0.0"}),
        (["jar/v1.0.0", "v3.0.0", "jar/v1.1.0"], {"v3.0.0": "", "jar/v1.1.0": "jar/v1.0.0"}),
    ],
)
def test_a_release_lists_what_came_since_the_one_before_in_its_series(
    root: Path, tags: list[str], lists: dict[str, str]
) -> None:
    for day, tag in enumerate(tags, 1):
        say(root, f"Weigh jar {day}", {"a.py": f"{day}\n"}, day=day)
        git(root, "tag", tag)
    with source(root) as repository:
        documents = past(repository)
    for tag, former in lists.items():
        since = documents[f"Release {tag}"].text.splitlines()[0].partition(" commits")[2]
        assert since == (f" since {former}:" if former else ":"), tag
