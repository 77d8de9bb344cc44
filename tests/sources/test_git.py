"""Git repositories as sources: real repositories, made by the real program."""

import gc
import os
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nornweave.connect.git.source import GitSource
from nornweave.core.errors import DocumentError, DocumentSkipped, SourceUnavailableError, TransientDocumentError
from nornweave.core.types import Domain, Entry, Listing, SourceId, document_id

ID = SourceId("repo")
START = 1_700_000_000
DAY = 86_400


def git(root: Path, *arguments: str, day: int = 0, author: str = "Ada") -> str:
    moment = f"{START + day * DAY} +0200"
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("GIT_")},
        **{"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": author},
        **{"GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "Bot", "GIT_COMMITTER_EMAIL": "b@example.org"},
        **{"GIT_AUTHOR_DATE": moment, "GIT_COMMITTER_DATE": moment},
    }
    command = ["git", "-C", str(root), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def commit(root: Path, files: Mapping[str, str | bytes], *, day: int = 0, author: str = "Ada") -> str:
    for path, content in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())
    git(root, "add", "--all", "--force")
    git(root, "commit", "--quiet", "--allow-empty", "--message", f"day {day}", day=day, author=author)
    return git(root, "rev-parse", "--short", "HEAD")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work tree"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    return folder


def source(root: Path, **options: object) -> GitSource:
    return GitSource(ID, Domain.CODE, root, **options)  # type: ignore[arg-type]


def paths(listing: Listing) -> list[str]:
    return [entry.path for entry in listing.entries]


def reasons(listing: Listing) -> dict[str, str]:
    return {skip.path: skip.reason for skip in listing.skipped}


def facts(listing: Listing) -> dict[str, tuple[str | None, int | None, object]]:
    """Per path: revision, days since the start, author."""
    return {entry.path: (entry.revision, _day(entry), entry.metadata.get("author")) for entry in listing.entries}


def _day(entry: Entry) -> int | None:
    return int(entry.updated_at.timestamp() - START) // DAY if entry.updated_at else None


def test_each_file_comes_with_the_commit_that_last_touched_it(root: Path) -> None:
    first = commit(root, {"a.py": "1", "pkg/b c.py": "1", "pkg/é.py": "1"}, day=1)
    second = commit(root, {"pkg/b c.py": "2"}, day=2, author="Grace Hopper")
    commit(root, {}, day=3)
    with source(root) as repository:
        listing = repository.list()
        assert facts(listing) == {
            "a.py": (first, 1, "Ada"),
            "pkg/b c.py": (second, 2, "Grace Hopper"),
            "pkg/é.py": (first, 1, "Ada"),
        }
        assert paths(listing) == sorted(paths(listing))
        assert listing.entries[0].updated_at == datetime.fromtimestamp(START + DAY, UTC)
        assert [repository.fetch(entry) for entry in listing.entries] == [b"1", b"2", b"1"]


def test_documents_carry_revision_date_and_author(root: Path) -> None:
    revision = commit(root, {"src/a.py": "x = 1\n", "src/empty.py": ""}, day=5)
    with source(root) as repository:
        code, empty = repository.list().entries
        document = repository.parse(code, repository.fetch(code))
        with pytest.raises(DocumentSkipped, match="empty"):
            repository.parse(empty, repository.fetch(empty))
    assert (document.id, document.path, document.text) == (document_id(ID, "src/a.py"), "src/a.py", "x = 1\n")
    assert (document.format, document.revision, document.metadata["author"]) == ("python", revision, "Ada")
    assert document.updated_at == datetime.fromtimestamp(START + 5 * DAY, UTC)


def test_the_commit_dates_a_document_that_dates_itself(root: Path) -> None:
    commit(root, {"a.md": "---\ndate: 2001-01-01\n---\n# A\n\ntext\n"}, day=5)
    with GitSource(ID, Domain.DOCUMENTATION, root) as repository:
        (entry,) = repository.list().entries
        assert repository.parse(entry, repository.fetch(entry)).updated_at == entry.updated_at


def test_uncommitted_changes_are_not_ingested(root: Path) -> None:
    commit(root, {"a.py": "committed", "b.py": "kept"})
    (root / "a.py").write_text("changed")
    (root / "b.py").unlink()
    (root / "new.py").write_text("new")
    with source(root) as repository:
        listing = repository.list()
        assert {entry.path: repository.fetch(entry) for entry in listing.entries} == {
            "a.py": b"committed",
            "b.py": b"kept",
        }


def test_a_removed_file_leaves_the_listing_and_only_a_changed_one_changes_its_gate(root: Path) -> None:
    commit(root, {"a.py": "1", "b.py": "1", "c.py": "1"}, day=1)
    before = {entry.path: entry for entry in source(root).list().entries}
    git(root, "rm", "--quiet", "c.py")
    commit(root, {"b.py": "2"}, day=2)
    after = {entry.path: entry for entry in source(root).list().entries}
    assert set(after) == {"a.py", "b.py"}
    assert after["a.py"] == before["a.py"]
    assert after["b.py"].gate != before["b.py"].gate


def test_what_was_listed_is_what_is_read_though_the_branch_moved_on(root: Path) -> None:
    commit(root, {"a.py": "old"})
    with source(root) as repository:
        (entry,) = repository.list().entries
        commit(root, {"a.py": "new"}, day=1)
        assert repository.fetch(entry) == b"old"


def test_a_merge_owns_only_what_it_settled_itself(root: Path) -> None:
    base = commit(root, {"a.py": "1\n", "both.py": "1\n"}, day=1)
    git(root, "switch", "--quiet", "--create", "side")
    side = commit(root, {"side.py": "1\n", "both.py": "side\n"}, day=2, author="Side")
    git(root, "switch", "--quiet", "main")
    commit(root, {"both.py": "main\n"}, day=3)
    subprocess.run(["git", "-C", str(root), "merge", "--no-commit", "side"], capture_output=True, check=False)
    merge = commit(root, {"both.py": "settled\n"}, day=4, author="Merger")
    assert facts(source(root).list()) == {
        "a.py": (base, 1, "Ada"),
        "side.py": (side, 2, "Side"),
        "both.py": (merge, 4, "Merger"),
    }


def test_a_renamed_file_belongs_to_the_commit_that_renamed_it(root: Path) -> None:
    commit(root, {"old.py": "x = 1\n" * 50}, day=1)
    git(root, "mv", "old.py", "new.py")
    renamed = commit(root, {}, day=2)
    assert facts(source(root).list()) == {"new.py": (renamed, 2, "Ada")}


def test_file_names_that_look_like_output_are_just_names(root: Path) -> None:
    names = ["a\nb.py", "\x01c.py", "-d.py", "e\tf.py", ":(glob)*.py", "g*.py", '"h".py']
    revision = commit(root, {f"x/{name}": name for name in names}, day=1)
    with source(root) as repository:
        listing = repository.list()
        assert {entry.path: repository.fetch(entry).decode() for entry in listing.entries} == {
            f"x/{name}": name for name in names
        }
        assert {entry.revision for entry in listing.entries} == {revision}


def test_a_folder_of_a_repository_is_only_that_folder(root: Path) -> None:
    first = commit(root, {"pkg/a.py": "1", "pkg/sub/b.py": "1", "pkg_utils/c.py": "1", "d.py": "1"}, day=1)
    commit(root, {"d.py": "2"}, day=2)
    with source(root / "pkg") as repository:
        listing = repository.list()
        assert facts(listing) == {"a.py": (first, 1, "Ada"), "sub/b.py": (first, 1, "Ada")}
        assert repository.fetch(listing.entries[1]) == b"1"


def test_bare_repositories_and_linked_work_trees_work(root: Path, tmp_path: Path) -> None:
    commit(root, {"a.py": "main"}, day=1)
    git(root, "clone", "--quiet", "--bare", str(root), str(tmp_path / "bare.git"))
    git(root, "worktree", "add", "--quiet", "-b", "side", str(tmp_path / "tree"))
    side = commit(tmp_path / "tree", {"a.py": "side", "b.py": "side"}, day=2)
    with source(tmp_path / "bare.git") as bare, source(tmp_path / "tree") as tree, source(root, ref="side") as branch:
        assert [bare.fetch(entry) for entry in bare.list().entries] == [b"main"]
        assert [tree.fetch(entry) for entry in tree.list().entries] == [b"side", b"side"]
        assert branch.list() == tree.list()
        assert {entry.revision for entry in tree.list().entries} == {side}


def test_the_edge_of_a_shallow_clone_dates_nothing_and_it_is_said(root: Path, tmp_path: Path) -> None:
    commit(root, {"a.py": "1"}, day=1)
    commit(root, {"b.py": "1"}, day=2)
    newest = commit(root, {"b.py": "2"}, day=3)
    git(root, "clone", "--quiet", "--depth=2", root.as_uri(), str(tmp_path / "shallow"))
    listing = source(tmp_path / "shallow").list()
    assert facts(listing) == {"a.py": (None, None, None), "b.py": (newest, 3, "Ada")}
    assert listing.notices[0].startswith("a shallow clone: 1 of 2 files have no date;")
    assert source(root).list().notices == ()


def test_the_rules_for_files_hold_and_links_and_submodules_are_skipped(root: Path, tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    git(library, "init", "--quiet", "--initial-branch=main")
    commit(library, {"l.py": "x"})
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "libs/sub")
    (root / "link.py").symlink_to("/etc/passwd")
    wanted = ["a.py", "build/own.py", "target/x.rs", "vendor/supplier.go"]
    foreign = ["node_modules/p/i.js", "lib/vendor/v.go", "lib/vendor/LICENSE", "x.lock", "old/o.py", "Cargo.toml"]
    commit(root, dict.fromkeys([*wanted, *foreign], "x"))
    commit(root, {"logo.png": b"\x89PNG", ".gitignore": "*.py\n"})
    listing = source(root, exclude=("old/**",)).list()
    # What is committed is wanted, whatever .gitignore says and its folder is called.
    assert paths(listing) == ["Cargo.toml", *wanted]
    assert {path: reason.partition(";")[0] for path, reason in reasons(listing).items()} == {
        ".gitignore": ".gitignore: not a file type of code",
        ".gitmodules": ".gitmodules: not a file type of code",
        "lib/vendor/LICENSE": "vendored: below lib/vendor, LICENSE came with it",
        "lib/vendor/v.go": "vendored: below lib/vendor, LICENSE came with it",
        "libs/sub": "submodule: a repository of its own",
        "link.py": "link: to /etc/passwd",
        "logo.png": "binary: .png",
        "node_modules/p/i.js": "node_modules: installed or cached by a tool",
        "old/o.py": "excluded: exclude names it",
        "x.lock": ".lock: written by a tool",
    }


def test_names_that_are_no_text_are_skipped(root: Path) -> None:
    commit(root, {os.fsdecode(b"caf\xe9.py"): "x", "a.py": "x"})
    listing = source(root).list()
    assert paths(listing) == ["a.py"]
    assert reasons(listing) == {"caf\\udce9.py": "name: the file name is not valid UTF-8; rename it"}


def test_impossible_dates_are_no_dates(root: Path) -> None:
    commit(root, {"a.py": "x"})
    tree = git(root, "rev-parse", "HEAD^{tree}")
    raw = f"tree {tree}\nauthor A <a@b> 99999999999999999 +0000\ncommitter B <b@c> 1700000000 +0000\n\nx\n"
    command = ["git", "-C", str(root), "hash-object", "-t", "commit", "-w", "--stdin", "--literally"]
    sha = subprocess.run(command, input=raw.encode(), capture_output=True, check=True).stdout.decode().strip()
    (entry,) = source(root, ref=sha).list().entries
    assert entry.revision == sha[:7]
    assert entry.updated_at is None or entry.updated_at.tzinfo is UTC


# What is unavailable -------------------------------------------------------------------------------------------------


def test_what_is_no_repository_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for place in (tmp_path, tmp_path / "file"):
        with pytest.raises(SourceUnavailableError, match=r"not a git repository; correct 'path' or use type files"):
            source(place).list()
    with pytest.raises(SourceUnavailableError, match="missing; mount or clone it"):
        source(tmp_path / "nowhere").list()


def test_an_empty_repository_says_that_it_has_no_commits(root: Path) -> None:
    with pytest.raises(SourceUnavailableError, match="no commits yet"):
        source(root).list()


@pytest.mark.parametrize("ref", ["nope", "--all", "-h", "", "a\0b", "HEAD:a.py", "main..main"])
def test_an_unknown_ref_is_named(root: Path, ref: str) -> None:
    commit(root, {"a.py": "x"})
    with pytest.raises(SourceUnavailableError, match="the ref is unknown") as raised:
        source(root, ref=ref).list()
    assert repr(ref) in str(raised.value)


def test_a_folder_that_is_not_committed_says_so(root: Path) -> None:
    commit(root, {"a.py": "x"})
    (root / "new").mkdir()
    with pytest.raises(SourceUnavailableError, match=r"the folder 'new/' is not in commit"):
        source(root / "new").list()


def test_a_machine_without_git_says_so(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(root, {"a.py": "x"})
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SourceUnavailableError, match="install git, or use a source of type files"):
        source(root).list()


def test_a_git_that_hangs_meets_the_deadline(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(root, {"a.py": "x"})
    (entry,) = source(root).list().entries
    hanging = tmp_path / "bin/git"
    hanging.parent.mkdir()
    hanging.write_text("#!/bin/sh\nexec sleep 60\n")
    hanging.chmod(0o755)
    monkeypatch.setenv("PATH", f"{hanging.parent}:{os.environ['PATH']}")
    with source(root, timeout_s=0.2) as repository:
        with pytest.raises(SourceUnavailableError, match=r"longer than 0\.2 s"):
            repository.list()
        with pytest.raises(TransientDocumentError, match="next sync tries again"):
            repository.fetch(entry)


def test_the_callers_git_variables_and_configuration_do_not_matter(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(root, {"a.py": "right"}, day=1)
    expected = source(root).list()
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "--quiet")
    commit(other, {"wrong.py": "wrong"})
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.gitconfig").write_text(
        "[log]\n\tshowSignature = true\n\tdecorate = full\n[core]\n\tquotePath = true\n"
    )
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with source(root) as repository:
        assert repository.list() == expected
        assert repository.fetch(expected.entries[0]) == b"right"


def test_nothing_that_a_repository_configures_is_run(root: Path, tmp_path: Path) -> None:
    mark = tmp_path / "was-run"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch '{mark}'\nexit 1\n")
    program.chmod(0o755)
    revision = commit(root, {"a.py": "x", ".gitattributes": "*.py diff=evil filter=evil\n"}, day=1)
    for key in (
        "core.fsmonitor",
        "gpg.program",
        "core.pager",
        "diff.external",
        "diff.evil.textconv",
        "diff.evil.command",
    ):
        git(root, "config", key, str(program))
    git(root, "config", "filter.evil.smudge", str(program))
    git(root, "config", "log.showSignature", "true")
    with source(root) as repository:
        (entry,) = repository.list().entries
        assert (entry.revision, repository.fetch(entry)) == (revision, b"x")
    assert not mark.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_repository_of_another_user_is_read(root: Path) -> None:
    commit(root, {"a.py": "x"})
    for place, _, files in os.walk(root):
        for path in [place, *(os.path.join(place, name) for name in files)]:
            os.chown(path, 65534, 65534)
    with source(root) as repository:
        assert [repository.fetch(entry) for entry in repository.list().entries] == [b"x"]


# Reading -------------------------------------------------------------------------------------------------------------


def test_blobs_come_back_byte_for_byte_in_any_order_and_from_many_threads(root: Path) -> None:
    contents = {f"f{i}.py": os.urandom(0) + bytes([i % 256]) * (i * 997 % 70_000) for i in range(120)}
    contents |= {"big.py": b"\n\0x" * 400_000, "lines.py": b"\n\n\n", "no-end.py": b"x"}
    commit(root, contents)
    with source(root) as repository:
        entries = repository.list().entries
        with ThreadPoolExecutor(8) as pool:
            fetched = list(pool.map(repository.fetch, [*entries, *reversed(entries)]))
    expected = [contents[entry.path] for entry in entries]
    assert fetched == [*expected, *reversed(expected)]


def test_what_the_repository_does_not_have_may_come(root: Path) -> None:
    commit(root, {"a.py": "x"})
    with source(root) as repository:
        with pytest.raises(TransientDocumentError, match="has no blob 0000"):
            repository.fetch(Entry(path="a.py", gate="0" * 40))
        (entry,) = repository.list().entries
        assert repository.fetch(entry) == b"x"


def test_what_is_no_blob_is_refused_and_the_next_one_is_read(root: Path) -> None:
    commit(root, {"a.py": "x"})
    with source(root) as repository:
        (entry,) = repository.list().entries
        tree = git(root, "rev-parse", "HEAD^{tree}")
        with pytest.raises(TransientDocumentError, match="it is a tree"):
            repository.fetch(Entry(path="a.py", gate=tree))
        assert repository.fetch(entry) == b"x"
        for gate in ("HEAD:a.py", "", "x" * 40, f"{'0' * 40}\n{'0' * 40}", "12-34"):
            with pytest.raises(DocumentError, match="not a git blob id"):
                repository.fetch(Entry(path="a.py", gate=gate))


def test_files_over_the_limit_are_listed_and_fail_alone(root: Path) -> None:
    commit(root, {"a.py": b"x" * (10 * 1024 * 1024 + 1), "b.py": "x"})
    with source(root) as repository:
        big, small = repository.list().entries
        with pytest.raises(DocumentError, match="10,485,761"):
            repository.fetch(big)
        assert repository.fetch(small) == b"x"


def test_the_reading_process_ends_with_the_source(root: Path) -> None:
    commit(root, {"a.py": "x"})

    def children() -> set[str]:
        listed = subprocess.run(
            ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(os.getpid())], capture_output=True, text=True
        )
        return {line for line in listed.stdout.splitlines() if "cat-file" in line or "<defunct>" in line}

    before = children()
    repository = source(root)
    (entry,) = repository.list().entries
    assert repository.fetch(entry) == b"x"
    assert len(children() - before) == 1
    repository.close()
    assert children() - before == set()
    assert repository.fetch(entry) == b"x"  # it starts again
    del repository
    gc.collect()
    assert children() - before == set()


def test_a_page_is_read_with_the_style_sheet_that_is_committed_beside_it(root: Path) -> None:
    page = "<link rel=stylesheet href='look/s.css'>\n<p class=a>A.</p>\n<p>B.</p>\n"
    commit(root, {"docs/i.html": page, "docs/look/s.css": ".a { display: none }"})
    for folder in (root, root / "docs"):
        source = GitSource(SourceId("pages"), Domain.DOCUMENTATION, folder)
        (entry,) = (each for each in source.list().entries if each.path.endswith("i.html"))
        assert source.fetch(entry).decode() == page.replace("<link rel=stylesheet href='look/s.css'>",
                                                            "<style>.a{ display: none }</style>")  # fmt: skip
        source.close()
