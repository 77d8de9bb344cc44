"""Planted drift alters exactly one documented value, of those that code states as well."""

import random
from pathlib import Path

import pytest

from lab.conflicts.documented import Documented, Kind, canonical, definitions, documented
from lab.conflicts.planted import Base, alter, choose, replaced
from lab.conflicts.repositories import Repository, Role, repositories, texts

CODE = """
DEFAULTS = {
    "fade_timeout": 30,  # seconds
    "max_lamps": 1_024,
    "is_dimmed": True,
    "lamp_colour": "amber",
    "lamp_rooms": ["hall", "attic"],
}
port = 80
def serve(port=8080): ...
"""
PAGE = """
# Settings

## `fade_timeout`

Default: `30` seconds.

| Name | Default | Meaning |
|---|---|---|
| `max_lamps` | 1,024 | how many |
| `is_dimmed` | true | |

`lamp_colour` defaults to `"amber"`; `lamp_rooms` has the default `["hall", "attic"]`.

`fade_timeout` was 60 by default, once.
"""
FILES: list[tuple[str, Role, str]] = [("docs/settings.md", "documentation", PAGE), ("lamp/settings.py", "code", CODE)]


def value(kind: Kind, literal: str, taken: frozenset[str] = frozenset()) -> Documented:
    return Documented(kind, "lamp", "docs/lamp.md", 0, 0, len(literal), literal, "lamp.py:1", taken)


def test_documented_values_are_found_where_code_says_the_same() -> None:
    found = list(documented(FILES, {}))
    assert [(one.name, one.kind, one.literal, one.code) for one in found] == [
        ("fade timeout", "measure", "30", "lamp/settings.py:3"),
        ("max lamps", "number", "1,024", "lamp/settings.py:4"),
        ("is dimmed", "boolean", "true", "lamp/settings.py:5"),
        ("lamp colour", "string", '"amber"', "lamp/settings.py:6"),
    ]
    assert all(PAGE[one.start : one.end] == one.literal for one in found)


def test_the_same_literal_in_other_spellings_is_one_value() -> None:
    assert canonical("1_024") == canonical("1,024") == canonical("1024") == canonical("32 * 32")
    assert canonical("'amber'") == canonical('"amber"')
    assert canonical("True") == canonical("on") == "true"
    assert canonical("30", "Second") == canonical("30", "s") != canonical("30", "min") != canonical("30")


def test_comments_define_nothing() -> None:
    assert definitions({"a.py": '# depth = 3\n"""\ndepth = 4\n"""\nwidth = 5\n'}) == {"width": {"5": "a.py:5"}}


@pytest.mark.parametrize(
    ("kind", "literal"),
    [("number", "10"), ("number", "0"), ("number", "-1"), ("number", "1,024"), ("measure", "0.5"), ("measure", "300e3"),
     ("boolean", "True"), ("boolean", "enabled"), ("string", '"amber"'), ("list", "[1, 2, 3]"), ("version", "3.10")],
)  # fmt: skip
def test_an_altered_value_is_another_one_of_its_kind(kind: Kind, literal: str) -> None:
    for seed in range(20):
        other = alter(value(kind, literal), random.Random(seed), ["green"])
        assert other is not None
        assert canonical(other) != canonical(literal)


def test_an_altered_value_is_none_that_code_gives_to_the_name() -> None:
    taken = frozenset({"10", "20", "5", "30"})
    assert alter(value("number", "10", taken), random.Random(1)) == "100"
    assert alter(value("boolean", "true", frozenset({"true", "false"})), random.Random(1)) is None


def test_planting_changes_one_value_and_nothing_else() -> None:
    for one in documented(FILES, {}):
        changed = replaced(PAGE, one, "@")
        assert changed.count("@") == 1
        assert changed[: one.start] + one.literal + changed[one.start + 1 :] == PAGE


def test_an_altered_cell_leaves_the_columns_of_a_table_where_they_are() -> None:
    row = "is_dimmed   true    whether\n"
    one = Documented("boolean", "is dimmed", "docs/lamp.md", 0, 12, 16, "true", "lamp.py:1")
    assert replaced(row, one, "false") == "is_dimmed   false   whether\n"


def test_a_literal_that_the_word_is_not_about_is_left_alone() -> None:
    page = "`max_lamps`: 1024 switches everything on, whatever else is set here. Default: `None`.\n"
    assert list(documented([("a.md", "documentation", page), FILES[1]], {})) == []


def test_a_cell_of_another_column_and_what_tests_say_are_no_defaults() -> None:
    page = "| Name | Default | Meaning |\n|---|---|---|\n| `max_lamps` | none | `1024` is the most |\n"
    assert list(documented([("a.md", "documentation", page), FILES[1]], {})) == []
    program = "fn a() {}\n#[cfg(test)]\nmod tests { max_lamps: 1024 }\n"
    assert definitions({"lib.rs": program}) == {}


def test_a_switch_in_quotes_becomes_another_switch() -> None:
    comment = '/// <param name="is_dimmed">Default is <see langword="true"/>.</param>\n'
    (one,) = documented([("a.cs", "code", comment), FILES[1]], {})
    assert (one.kind, one.literal) == ("boolean", "true")


def test_the_entry_that_a_default_stands_in_is_whose_it_is() -> None:
    page = "max_lamps (int): how many.\nunknown_thing (int): more.\n    Default: 1024.\n"
    assert list(documented([("a.md", "documentation", page), FILES[1]], {})) == []


def test_the_choice_is_seeded_balanced_and_takes_each_name_once() -> None:
    values = [value("number", str(at)) for at in range(9)] + [value("boolean", "true")]
    values = [Documented(one.kind, f"{one.kind} {at // 2}", *one_place(one)) for at, one in enumerate(values)]
    chosen = choose(values, 3, random.Random(1))
    assert chosen == choose(values, 3, random.Random(1))
    assert sorted(one.kind for one in chosen) == ["boolean", "number", "number"]
    assert len({one.name for one in chosen}) == 3


def one_place(one: Documented) -> tuple[str, int, int, int, str, str]:
    return one.path, one.top, one.start, one.end, one.literal, one.code


def test_drift_in_a_repository_is_noticed(tmp_path: Path) -> None:
    for path, _, text in FILES:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    planted = list(Base(Repository("acme/lamp", "0" * 40, tmp_path)).plant(seed=1, each=9))
    assert len(planted) == 4
    assert {one.documented.name for one in planted if one.is_found} >= {"fade timeout", "max lamps"}
    assert (tmp_path / "docs/settings.md").read_text(encoding="utf-8") == PAGE


def test_tests_and_changelogs_are_left_out_of_repositories(tmp_path: Path) -> None:
    for path in ("src/lamp.py", "tests/test_lamp.py", "Lamp.Tests/Lamp.cs", "docs/lamp.rst", "CHANGELOG.md",
                 "docs/releases/2.0.md"):  # fmt: skip
        (tmp_path / "lamp" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "lamp" / path).write_text("x = 1\n", encoding="utf-8")
    listed = tmp_path / "list.txt"
    listed.write_text("# comment\nacme/lamp abc MIT\nacme/missing abc MIT\n", encoding="utf-8")
    (repository,) = repositories(tmp_path, listed)
    assert (repository.name, repository.commit) == ("acme/lamp", "abc")
    assert [path for path, _, _ in texts(repository.root)] == ["docs/lamp.rst", "src/lamp.py"]
