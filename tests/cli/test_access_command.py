"""``nornweave access who`` and ``can``: who may see a document, and which rule decides."""

import json
from pathlib import Path

import pytest
from command_line import nornweave
from configurations import files, write_config

from nornweave.core.access import line_of

DOCUMENTS = {
    "kb/plan.md": "---\naccess: board\n---\n# Plan\n\nThe deal is in May.\n",
    "kb/open.md": "# Open\n\nFor all.\n",
    "kb/odd.md": "# Odd\n\n- access: board\n",
    "kb/2026/pay.md": "# Pay\n\nWhat was paid.\n",
    "hr/pay.md": "---\naccess: [board, cto]\n---\n# Pay\n\nText.\n",
    "hr/list.md": "# List\n\nNames.\n",
    "kb/list.md": "# List\n\nPlaces.\n",
}
ACCESS = {"tokens": "tokens.yaml", "operators": ["chiefs"]}
TOKENS = [
    ("alice", ["board", "staff"], None),
    ("bob", ["staff"], None),
    ("carol", ["chiefs"], None),
    ("dora", [], None),
]


def write_sources(folder: Path, hr: list[str], access: dict[str, object] | None = ACCESS) -> None:
    write_config(
        folder, files("kb", metadata="side.yaml"), files("hr", access=hr), **({"access": access} if access else {})
    )


@pytest.fixture(scope="module")
def synced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rights")
    for path, text in DOCUMENTS.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "side.yaml").write_text("2026/pay.md: {access: auditors}\n")
    lines = [line_of(f"nw_{name}", groups, name) for name, groups, _ in TOKENS]
    lines.append(line_of("nw_old", ["board", "staff"], "eve").replace("}", ', "expires": "2020-01-31"}'))
    lines.append(line_of("nw_second", ["board"], "bob"))
    (folder / "tokens.yaml").write_text("\n".join(lines))
    write_sources(folder, ["staff", "cto"])
    assert nornweave(folder, "sync").returncode == 0
    return folder


def test_who_names_the_statements_and_whose_tokens_meet_them(synced: Path) -> None:
    found = json.loads(nornweave(synced, "access", "who", "hr/pay.md", "--json").stdout)
    assert found["statements"] == [
        {"groups": ["board", "cto"], "by": "document"},
        {"groups": ["cto", "staff"], "by": "source"},
    ]
    assert (found["unrestricted"], found["operators"], found["notices"]) == (False, ["chiefs"], [])
    assert [(one["name"], one["may_see"]) for one in found["people"]] == [
        ("alice", True), ("bob", False), ("bob", False), ("carol", True), ("dora", False), ("eve", False)
    ]  # fmt: skip
    printed = nornweave(synced, "access", "who", "plan.md").stdout
    assert printed.startswith("documentation kb/plan.md: for board (the document or what stands beside it says so)\n")
    assert (
        "besides: operators (chiefs), the service token, the command line\n" in printed
        and "   alice (board, staff): may see it\n" in printed
    )
    assert "for everybody who may ask" in nornweave(synced, "access", "who", "open.md").stdout
    beside = json.loads(nornweave(synced, "access", "who", "2026/pay.md", "--json").stdout)
    assert beside["statements"] == [{"groups": ["auditors"], "by": "document"}]
    odd = json.loads(nornweave(synced, "access", "who", "odd.md", "--json").stdout)
    assert odd["statements"] == [{"groups": [], "by": "document"}]
    assert odd["notices"] == ["not understood: line 3 has 'access' as a key and is not read as a statement"]


@pytest.mark.parametrize(
    ("who", "path", "code", "reason"),
    [
        ("alice", "hr/pay.md", 0, "(board, staff): every statement about it is met"),
        ("dora", "open.md", 0, "(in no group): nothing restricts it: it is for everybody who may ask"),
        ("carol", "kb/odd.md:3", 0, "(chiefs): chiefs see everything (operators)"),
        ("bob", "plan.md:1-4", 0, "(board): every statement about it is met"),  # with the second of his tokens
        ("bob", "hr/pay.md", 1, "(staff): not met: for board or cto (the document or what stands beside it says so)"),
        ("eve", "plan.md", 1, "(board, staff): the token expired at 2020-02-01T00:00:00Z"),
        ("--groups board, staff", "hr/pay.md", 0, "(board, staff): every statement about it is met"),
        ("--groups Board", "plan.md", 1, "(Board): not met: for board (the document or what stands beside it says so)"),
        (
            "--groups ",
            "plan.md",
            1,
            "(in no group): not met: for board (the document or what stands beside it says so)",
        ),
    ],
)
def test_can_says_yes_or_no_and_why(synced: Path, who: str, path: str, code: int, reason: str) -> None:
    person = ["--groups", who.removeprefix("--groups ")] if who.startswith("--groups") else [who]
    answered = nornweave(synced, "access", "can", *person, path)
    assert answered.returncode == code, answered.stderr
    assert answered.stdout.startswith("no\n" if code else "yes\n")
    assert f"{reason}\n" in answered.stdout
    found = json.loads(nornweave(synced, "access", "can", *person, path, "--json").stdout)
    assert found["may_see"] is (code == 0)


def test_what_is_not_one_document_or_nobody_is_wrong_use(synced: Path) -> None:
    several = nornweave(synced, "access", "who", "list.md")
    assert several.returncode == 2
    assert "documentation hr/list.md\n   documentation kb/list.md\n" in several.stderr
    assert nornweave(synced, "access", "who", "kb/list.md").returncode == 0
    for arguments, said in (
        (("who", "none.md"), "no document is published at 'none.md'"),
        (("can", "alcie", "plan.md"), "did you mean 'alice'?"),
        (("can", "alice", "none.md"), "no document is published at 'none.md'"),
    ):
        failed = nornweave(synced, "access", *arguments)
        assert (failed.returncode, said in failed.stderr) == (2, True), failed.stderr


def test_who_names_the_addresses_that_memberships_know(tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb/deal.md").write_text("---\naccess: slack:channel:C1\n---\n# Deal\n\nIn May.\n")
    (tmp_path / "members.yaml").write_text(
        "members:\n  Hal@example.org: [slack:channel:C1]\n  gus@example.org: [slack:channel:C2]\n"
    )
    (tmp_path / "tokens.yaml").write_text(line_of("nw_alice", ["staff"], "alice"))
    access = {"tokens": "tokens.yaml", "membership": {"file": "members.yaml"}}
    write_config(tmp_path, files("kb"), access=access)
    assert nornweave(tmp_path, "sync").returncode == 0
    found = json.loads(nornweave(tmp_path, "access", "who", "deal.md", "--json").stdout)
    people = [(one["name"], one["may_see"]) for one in found["people"]]
    assert people == [("alice", False), ("gus@example.org", False), ("hal@example.org", True)]
    printed = nornweave(tmp_path, "access", "who", "deal.md").stdout
    assert (
        "   hal@example.org (hal@example.org): may see it\n   1 more, known by an address: may not see it\n" in printed
    )


def test_a_loosened_source_is_met_as_it_was_synced_until_the_next_sync(synced: Path) -> None:
    write_sources(synced, ["guests"])
    try:
        found = json.loads(nornweave(synced, "access", "who", "hr/list.md", "--json").stdout)
        assert sorted(map(str, found["statements"])) == sorted(
            map(str, [{"groups": ["cto", "staff"], "by": "index"}, {"groups": ["guests"], "by": "source"}])
        )
        assert nornweave(synced, "access", "can", "bob", "hr/list.md").returncode == 1
        write_sources(synced, ["guests"], access=None)
        closed = nornweave(synced, "access", "can", "--groups", "guests", "hr/list.md")
        assert closed.returncode == 1 and "nobody is in a group" in closed.stderr
    finally:
        write_sources(synced, ["staff", "cto"])
