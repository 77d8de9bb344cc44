from pathlib import Path

import pytest
from git_repository import Repository, write

from nornweave.disagree.drift.induced.statements import Statement, statements_of
from nornweave.disagree.drift.scan import DriftOptions, scan
from nornweave.disagree.facts.documentation.tokens import value_of

NAMES = {"max_size", "--max-size", "server.port", "idleTimeout", "minsize"}


def read(text: str) -> list[Statement]:
    return list(statements_of(text, NAMES.__contains__))


@pytest.mark.parametrize(("text", "name", "value"), [
    ("### max_size\n\nDefault: 30\n", "max_size", "30"),
    (".. option:: max_size\n\n   30 by default\n", "max_size", "30"),
    (".. attribute:: minsize\n\n   The least (*read-only*), ``30`` by default.\n", "minsize", "30"),
    ("``max_size``\n~~~~~~~~~~~~\n\n30\n", "max_size", "30"),
    ("| name | default |\n|---|---|\n| `max_size` | 30 |\n", "max_size", "30"),
    ("* `max_size`: what it is.\n  It is 30.\n", "max_size", "30"),
    ("```\n[ max_size: <int> | default = 30 ]\n```\n", "max_size", "30"),
    ("Set <code>max_size</code> from 30 on.\n", "max_size", "30"),
    ("The `idleTimeout` is 300 000.\n", "idleTimeout", "300000"),
    ('* `max_size`: "server.port" by default.\n', "max_size", "server.port"),
])  # fmt: skip
def test_literals_near_a_name_are_read_in_any_notation(text: str, name: str, value: str) -> None:
    found = read(text)
    assert (name, value) in [(one.name, one.value.text) for one in found]
    for one in found:
        assert text[one.start : one.end].strip("`\"'").replace(" ", "") == one.value.text


@pytest.mark.parametrize("said", [
    "commands such as\nserver.port, idleTimeout etc. Default: no.",
    "the idleTimeout too? Default: no.", '"idleTimeout" too. Default: no.',
])  # fmt: skip
def test_a_word_of_the_sentence_before_a_default_is_not_what_it_is_the_default_of(said: str) -> None:
    assert {one.name for one in read(f"max_size (boolean)\nOperators may use {said}\n")} == {"max_size"}
    assert "idleTimeout" in {one.name for one in read("max_size (boolean)\nSee `idleTimeout`. Default: no.\n")}


def test_the_comment_behind_a_setting_is_about_this_setting() -> None:
    found = read("```toml\nmax_size = 30 # More than `server.port`. Default: 30\n```\n")
    assert [(one.name, one.value.text) for one in found] == [("max_size", "30")] * 2
    (other,) = [one for one in read("```\nmax_size # as server.port = 80\n```\n") if one.value.text == "80"]
    assert other.name == "server.port"


def test_templates_abstract_names_and_literals_and_keep_words() -> None:
    first, second = (read(f"### max_size\n\nThe default is {value}.\n")[0] for value in ("30", "`45`"))
    assert first.template == second.template == "X head the default is V"
    assert read("### max_size\n\nUse up to 30.\n")[0].template != first.template


@pytest.mark.parametrize(("text", "value"), [("300 000", "300000"), ("1,024", "1024"), ("30s", "30")])
def test_grouped_digits_are_one_number(text: str, value: str | None) -> None:
    found = value_of(text)
    assert (found and found.text) == value


FIELDS = {"flush_rows": 10, "retry_rounds": 7, "queue_slots": 31, "merge_width": 64}


def notation(values: dict[str, int], row: str = "({name} int starts {value})") -> str:
    rows = "".join(f"{row.format(name=name, value=value)}\n" for name, value in values.items())
    return f"# Reference\n\n```\n{rows}```\n"


def program(values: dict[str, int]) -> str:
    return "".join(f"DEFAULT_{name.upper()} = {value}\n" for name, value in values.items())


def test_a_notation_that_no_extractor_knows_is_learned_and_a_broken_agreement_found(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    base = repository.commit({"docs/a.md": notation(FIELDS), "a.py": program(FIELDS)}, "2024-02-01T12:00:00Z")
    repository.commit({"docs/a.md": notation(FIELDS | {"queue_slots": 45})}, "2024-03-01T12:00:00Z")
    report = scan(tmp_path, DriftOptions(diff=f"{base}..HEAD")).report
    assert [(one.name, one.moved, one.second.value, one.first.value) for one in report.findings] == [
        ("queue slots", "second", "45", "31")
    ]
    assert report.coverage is not None
    assert (report.coverage.compared, report.coverage.agree) == (3, 3)  # the page does not say *default*


def test_one_of_two_places_of_a_line_that_changes_is_found(tmp_path: Path) -> None:
    page = notation(FIELDS, "{name} -> {value}, int starts {value}")
    repository = Repository(tmp_path)
    base = repository.commit({"docs/a.md": page, "a.py": program(FIELDS)}, "2024-02-01T12:00:00Z")
    repository.commit({"docs/a.md": page.replace("starts 31", "starts 45")}, "2024-03-01T12:00:00Z")
    report = scan(tmp_path, DriftOptions(diff=f"{base}..HEAD")).report
    assert [(one.name, one.second.value) for one in report.findings] == [("queue slots", "45")]


def test_a_default_that_takes_the_value_of_an_example_is_found(tmp_path: Path) -> None:
    page = notation(FIELDS) + notation(FIELDS | {"queue_slots": 45}, "{name}={value}")
    repository = Repository(tmp_path)
    base = repository.commit({"docs/a.md": page, "a.py": program(FIELDS)}, "2024-02-01T12:00:00Z")
    repository.commit({"docs/a.md": page.replace("starts 31", "starts 45")}, "2024-03-01T12:00:00Z")
    report = scan(tmp_path, DriftOptions(diff=f"{base}..HEAD")).report
    assert [(one.name, one.second.value) for one in report.findings] == [("queue slots", "45")]


def test_a_name_in_one_word_is_that_of_the_code(tmp_path: Path) -> None:
    page = notation({name.replace("_", ""): value for name, value in FIELDS.items()})
    write(tmp_path, {"docs/a.md": page.replace("(", "(--"), "a.py": program(FIELDS)})
    report = scan(tmp_path, DriftOptions()).report
    assert report.coverage is not None
    assert (report.coverage.compared, report.coverage.agree) == (4, 4)


def test_a_notation_whose_values_do_not_agree_states_nothing(tmp_path: Path) -> None:
    wrong = {name: value + 1 for name, value in FIELDS.items()}
    write(tmp_path, {"docs/a.md": notation(wrong), "a.py": program(FIELDS)})
    report = scan(tmp_path, DriftOptions()).report
    assert report.findings == ()
    assert report.coverage is not None
    assert report.coverage.compared == 0


@pytest.mark.parametrize(("text", "values"), [
    ("| name | allowed values | default |\n|---|---|---|\n| `max_size` | `4` or 5 | 30 |\n", ["30"]),
    ("| name | type | sample response |\n|---|---|---|\n| `max_size` | `int` | 5 |\n", []),
    ("## Settings\n\n```json\n{\n\"max_size\": 30\n}\n```\n", ["30"]),
    ("## PUT /settings\n\n```json\n{\n\"max_size\": 30\n}\n```\n", []),
    ("The server's response:\n\n```json\n{\n\"max_size\": 30\n}\n```\n", []),
    ("Ask:\n[source,json]\n.Request of the lamp\n----\n{\n\"max_size\": 30\n}\n----\n\nmax_size: 4\n", ["4"]),
    ("```http\nHTTP/1.1 200 OK\n\n{\"max_size\": 30}\n```\n", []),
])  # fmt: skip
def test_what_a_thing_takes_and_what_is_sent_is_no_value_of_a_name(text: str, values: list[str]) -> None:
    assert sorted({one.value.text for one in read(text) if one.name == "max_size"}) == values
