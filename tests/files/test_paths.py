"""Globs, safe paths and ``.gitignore``, the last one against git itself."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from nornweave.connect.files.skip import Rules, tree_of_folder
from nornweave.connect.files.walk import IgnoreFile, walk
from nornweave.core.errors import ConfigError
from nornweave.core.files.paths import PathFilter, is_inside, unsafe_path
from nornweave.core.types import Domain

NAMES = st.text(alphabet="ab._-é ", min_size=1, max_size=6).filter(lambda name: name.strip(". ") == name)


@pytest.mark.parametrize(("pattern", "matching", "other"), [
    ("src/**", ["src/a.py", "src/x/y/a.py"], ["src_utils/a.py", "lib/src/a.py", "src"]),
    ("**/*.py", ["setup.py", "a/b/c.py"], ["setup.pyc", "a.py.txt"]),
    ("*.md", ["README.md", "docs/a.md"], ["README.mdx", "md"]),
    ("docs/*.md", ["docs/a.md"], ["docs/api/a.md", "old/docs/a.md"]),
    ("vendor", ["vendor/a.go", "x/vendor/b/c.go"], ["vendors/a.go", "my-vendor/a.go"]),
    ("/setup.py", ["setup.py"], ["x/setup.py"]),
    ("./src/*.c", ["src/a.c"], ["src/b/a.c"]),
    ("a/**/z.txt", ["a/z.txt", "a/b/c/z.txt"], ["ab/z.txt", "a/bz.txt"]),
])  # fmt: skip
def test_globs_match_whole_components(pattern: str, matching: list[str], other: list[str]) -> None:
    included, excluded = PathFilter(include=[pattern]), PathFilter(exclude=[pattern])
    assert [path for path in matching + other if included.matches(path)] == matching
    assert [path for path in matching + other if excluded.matches(path)] == other


@settings(max_examples=150, deadline=None)
@given(directory=NAMES, suffix=st.text(alphabet="ab_-", min_size=1, max_size=3), below=st.lists(NAMES, min_size=1))
def test_a_folder_glob_never_matches_a_folder_whose_name_only_starts_alike(
    directory: str, suffix: str, below: list[str]
) -> None:
    paths = PathFilter(include=[f"{directory}/**"])
    assert paths.matches("/".join([directory, *below]))
    assert not paths.matches("/".join([directory + suffix, *below]))
    assert not paths.matches("/".join([suffix + directory, *below]))


@settings(max_examples=100, deadline=None)
@given(st.lists(NAMES, min_size=1, max_size=5))
def test_a_suffix_glob_matches_at_every_depth_and_excluding_it_undoes_that(parts: list[str]) -> None:
    path = "/".join(parts) + ".py"
    assert PathFilter(include=["**/*.py"]).matches(path)
    assert not PathFilter(include=["**/*.py"], exclude=["**/*.py"]).matches(path)
    assert PathFilter().matches(path)


def test_a_later_pattern_takes_back_an_earlier_one_and_nothing_is_pruned_then() -> None:
    paths = PathFilter(exclude=["gen/**", "!gen/keep.py"])
    assert [paths.matches("gen/a.py"), paths.matches("gen/keep.py")] == [False, True]
    assert not paths.prunes("gen")
    assert PathFilter(exclude=["gen/**"]).prunes("gen")
    assert not PathFilter(exclude=["gen/**"]).prunes("generated")
    assert not PathFilter(exclude=["**/*.py"]).prunes("gen")


@pytest.mark.parametrize("pattern", ["", "   ", "# note", "/", "!", "a[z-a]"])
def test_a_glob_that_can_match_nothing_is_an_error_that_quotes_it(pattern: str) -> None:
    with pytest.raises(ConfigError, match="is not a glob") as raised:
        PathFilter(exclude=[pattern])
    assert repr(pattern) in str(raised.value)


@pytest.mark.parametrize("path", [
    "", "/etc/passwd", "../a", "a/../../b", "a/./b", "a//b", "a/", "a\\b", "C:/a", "c:a", "a\0b", "a\nb", "\ud800",
    "x" * 1025,
])  # fmt: skip
def test_paths_that_lead_out_or_nowhere_are_unsafe(path: str) -> None:
    assert unsafe_path(path)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab./\\:\0é ", max_size=12))
def test_a_safe_path_stays_inside_whatever_root_it_is_joined_to(path: str) -> None:
    if unsafe_path(path) is not None:
        event("unsafe")
        return
    joined = os.path.normpath(os.path.join("/srv/root", path))
    assert joined == f"/srv/root/{path}"
    assert is_inside(joined, "/srv/root")
    assert not is_inside("/srv/root2/" + path, "/srv/root")


# .gitignore ----------------------------------------------------------------------------------------------------------

# Not among the patterns: "a**", which git matches in another way than it documents when nothing special precedes it.
COMPONENTS = st.sampled_from(["a", "b", "ab", "a.b", "c"])
PATHS = st.lists(COMPONENTS, min_size=1, max_size=4).map("/".join)
GLOBS = st.sampled_from(
    [
        *("a", "b", "ab", "c", "*", "**", "***", "a*", "*b", "a*b", "*a*b*", "*.b", "?", "a?b"),
        *("[ab]", "[!a]", "[^b]*", "[a-b]*", "[a-]", "a[.]b", "a\\.b", "\\a", "[]a]", "[a", "a\\"),
    ]
)
LINES = st.builds(
    lambda negated, rooted, parts, directory, blank: (
        "!" * negated + "/" * rooted + "/".join(parts) + "/" * directory + " " * blank
    ),
    st.sampled_from([False, False, True]),
    st.booleans(),
    st.lists(GLOBS, min_size=1, max_size=3),
    st.booleans(),
    st.booleans(),
)
IGNORE_FILES = st.lists(LINES, min_size=1, max_size=4).map("\n".join)


def _listed_by_git(root: Path) -> set[str]:
    command = ["git", "-C", root, f"--git-dir={root}.git", f"--work-tree={root}", "ls-files", "-z"]
    command += ["--others", "--exclude-per-directory=.gitignore"]
    answer = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    return {path for path in answer.split("\0") if path}


def _listed_by_us(root: Path) -> set[str]:
    rules = Rules(Domain.CODE, tree_of_folder(str(root)), only=["*", ".gitignore"])
    return {found.path for found in walk(str(root), rules, ignores=True).entries}


@pytest.fixture(scope="module")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gitignore").resolve()


@settings(max_examples=120, deadline=None)
@given(
    files=st.lists(PATHS, min_size=3, max_size=10, unique=True),
    ignores=st.dictionaries(PATHS | st.just(""), IGNORE_FILES, min_size=1, max_size=3),
)
def test_gitignore_means_what_git_makes_of_it(repositories: Path, files: list[str], ignores: dict[str, str]) -> None:
    root = repositories / str(len(list(repositories.iterdir())))
    subprocess.run(["git", "init", "-q", "--bare", f"{root}.git"], check=True)  # not in it: nobody can ask git
    root.mkdir()
    for path in files:
        place = root / path
        if not any(parent.is_file() for parent in [place, *place.parents]) and not place.is_dir():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text("x")
    for directory, text in ignores.items():
        if (root / directory).is_dir():
            (root / directory / ".gitignore").write_text(text + "\n")
    assert _listed_by_us(root) == _listed_by_git(root)


def test_the_common_whitelist_keeps_files_in_folders(tmp_path: Path) -> None:
    root = tmp_path.resolve() / "root"
    subprocess.run(["git", "init", "-q", "--bare", f"{root}.git"], check=True)
    root.mkdir()
    (root / ".gitignore").write_text("*\n!*/\n!*.py\n!.gitignore\n")
    (root / "a/b").mkdir(parents=True)
    (root / "a/b/keep.py").write_text("x")
    (root / "a/b/drop.txt").write_text("x")
    assert _listed_by_us(root) == {".gitignore", "a/b/keep.py"} == _listed_by_git(root)


def test_carriage_returns_comments_and_a_byte_order_mark_are_not_part_of_a_rule() -> None:
    rules = IgnoreFile("\ufeff*.log\r\n# *.py\r\n\r\n\\#note\r\n")
    assert rules.verdict("x.log", "x.log", is_directory=False) is True
    assert rules.verdict("x.py", "x.py", is_directory=False) is None
    assert rules.verdict("#note", "#note", is_directory=False) is True


@pytest.mark.parametrize(
    "line", ["*a" * 40 + "b", "/" + "**/a/" * 40 + "b", "x/" + "*a*" * 30 + "/b", "[" * 1_000, "[[:" * 333]
)
def test_no_rule_explodes(line: str) -> None:
    """A translation that backtracks takes years; rules of more than a thousand characters are refused."""
    rules = IgnoreFile("\n".join([line] * 20))
    for path in ("a" * 255, "a/" * 500 + "a", "x/" + "a" * 250 + "/c"):
        assert rules.verdict(path, path.rpartition("/")[2], is_directory=False) is None
