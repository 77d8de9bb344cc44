"""Small files that ask for much: YAML that grows, numbers that take hours to read, rules by the thousand."""

import re
import sys
from pathlib import Path

import forked
import pytest
import yaml

from nornweave.connect.files.source import FilesSource
from nornweave.connect.files.walk import IgnoreFiles
from nornweave.core.errors import SourceUnavailableError
from nornweave.core.files.yaml_files import load_plain_yaml
from nornweave.core.types import Domain, SourceId
from nornweave.read.front_matter import describe

BOMB = "a: &a [x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{below}'] * 8)}]\n" for below, name in zip("abcdefgh", "bcdefghi", strict=True)
)


def source(root: Path, metadata: Path | None = None) -> FilesSource:
    domain = Domain.DOCUMENTATION if metadata else Domain.CODE
    return FilesSource(SourceId("s"), domain, root, metadata=metadata)


def refusal(listed: FilesSource) -> str:
    with pytest.raises(SourceUnavailableError) as raised:
        listed.list()
    return str(raised.value)


# YAML ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (BOMB, r"\*a is an alias; write what it stands for.*line 2"),
        ("x: &x {title: T}\na.md: {<<: *x}\n", r"\*x is an alias.*line 2"),
        ("a.md: " + "[" * 900, "lists and mappings are nested deeper than 50"),
        ("- " * 30_000, "nested deeper than 50"),
        ("a.md: {revision: 1" + ":1" * 500_000 + "}", r"a number has 1000001 characters; expected 1000"),
        ("a.md: {title: {x: " + "y" * 1_000_000 + "}}", "expected text"),
        ("? " + "y" * 1_000_000 + "\n: 1\n", r"the path has 1000000 characters; expected 1 to 1024"),
        ("".join(f"'{i}*': {{tags: [x]}}\n" for i in range(1_001)), "more than 1,000 globs"),
        ("? '*" + "a" * 2_000 + "'\n: {tags: [x]}\n", "of at most 1,000 characters"),
    ],
    ids=["aliases", "merge", "flow", "block", "number", "value", "key", "globs", "long glob"],
)
def test_a_side_file_that_asks_for_much_is_refused_in_few_words(tmp_path: Path, text: str, found: str) -> None:
    (tmp_path / "a.md").write_text("a")
    (tmp_path / "meta.yaml").write_text(text)
    reason = refusal(source(tmp_path, tmp_path / "meta.yaml"))
    assert len(reason) < 1_000
    assert re.search(found, reason)


def test_front_matter_with_aliases_deep_nesting_or_endless_numbers_says_nothing() -> None:
    for value in ("&a [x]\nb: *a", "[" * 60_000, "1" + ":1" * 30_000, "0x" + "f" * 60_000):
        assert describe(f"---\nauthor: Ada\ntitle: {value}\n---\n# Heading\n", "markdown").title == "Heading"


def test_nesting_does_not_end_the_process() -> None:
    """libyaml's parser overflows the stack at some tens of thousands."""
    script = "from nornweave.core.files.yaml_files import load_plain_yaml as load\n" + (
        "import yaml\ntry: load('[' * 1_000_000)\nexcept yaml.YAMLError as error: print(error.problem)"
    )
    done = forked.run([sys.executable, "-c", script], text=True, check=True)
    assert done.stdout == "lists and mappings are nested deeper than 50\n"


def test_plain_values_are_read_as_ever() -> None:
    text = "a: &unused 1\nb: [x, 2024-01-02, 1.5, null, true]\nc: {d: 12:30}\ne: 'it *is* fine & well'\n"
    assert load_plain_yaml(text) == yaml.safe_load(text)


# Rules ---------------------------------------------------------------------------------------------------------------


def test_a_side_files_globs_match_in_linear_time(tmp_path: Path) -> None:
    (tmp_path / ("a" * 200 + ".md")).write_text("a")
    (tmp_path / "docs/deep").mkdir(parents=True)
    (tmp_path / "docs/deep/b.md").write_text("b")
    explosive = "*a" * 40 + "b"
    (tmp_path / "meta.yaml").write_text(f"'{explosive}': {{tags: [x]}}\n'doc*': {{tags: [y]}}\n'!*': {{tags: [z]}}\n")
    listing = source(tmp_path, tmp_path / "meta.yaml").list()
    assert {entry.path: entry.metadata.get("tags") for entry in listing.entries} == {
        "a" * 200 + ".md": None,
        "docs/deep/b.md": ("y",),
    }


@pytest.mark.parametrize(("text", "found"), [
    ("".join(f"*.{i}\n" for i in range(10_001)), "more than 10,000, or longer than 262,144 characters together"),
    ("".join(f"*.{i:060}\n" for i in range(5_000)), "more than 10,000, or longer than 262,144 characters together"),
    ("*.o\n" + "a" * 1_001 + "\n", "a rule is longer than 1,000 characters; shorten it"),
    ("#" * (1024 * 1024 + 1), "it is larger than 1,048,576 characters"),
], ids=["rules", "characters", "rule", "file"])  # fmt: skip
def test_an_ignore_file_that_is_too_long_is_refused_and_can_be_excluded(tmp_path: Path, text: str, found: str) -> None:
    (tmp_path / "a.py").write_text("a")
    (tmp_path / "vendored").mkdir()
    (tmp_path / "vendored/.gitignore").write_text(text)
    reason = refusal(source(tmp_path))
    assert found in reason
    assert "'vendored/' in exclude" in reason
    spared = FilesSource(SourceId("s"), Domain.CODE, tmp_path, exclude=("vendored/",))
    assert [entry.path for entry in spared.list().entries] == ["a.py"]


def test_the_rules_of_all_ignore_files_count_and_equal_files_count_once(tmp_path: Path) -> None:
    for folder in ("a", "b", "c"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / ".gitignore").write_text("".join(f"*.{i}\n" for i in range(1_000)))
    assert source(tmp_path).list().entries == ()
    (tmp_path / ".gitignore").write_text("*.one\n")
    (tmp_path / "b/.gitignore").write_text("".join(f"*.b{i}\n" for i in range(10_000)))
    assert "the rules of this source are more than 10,000" in refusal(source(tmp_path))


def test_rules_are_translated_once_per_text() -> None:
    text = "".join(f"build-{i}/**/*.o\n" for i in range(500))
    assert IgnoreFiles().read(text) is IgnoreFiles().read(f"# objects\n\n{text}")
