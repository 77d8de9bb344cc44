import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from nornweave.core.types import Origin
from nornweave.disagree.drift.formats import FORMATS, escaped
from nornweave.disagree.drift.records import Finding, Place, Report, UnreadFile

HOSTILE = "a`b``c | [red]x[/red] <script> @everyone %0A ::error:: \x1b[31m\x07\u202e end"


def finding(text: str = "The limit is 30.", path: str = "docs/a b,c:d.md", name: str = "request limit") -> Finding:
    old = Origin(revision="aaaaaaaaaaaa", author="Bo", written_at=datetime(2024, 2, 1, tzinfo=UTC))
    new = Origin(revision="bbbbbbbbbbbb", author="Ann", written_at=datetime(2025, 3, 1, tzinfo=UTC))
    first = Place(path="src/a.py", line=4, side="code", value="20", text="LIMIT = 20", origin=new)
    second = Place(path=path, line=12, side="documentation", value="30", text=text, origin=old)
    return Finding(
        rule="nornweave/default", name=name, attribute="default", fingerprint="0" * 32, confidence=0.934,
        message=f"{name} (maximum): {path}:12 says 30, src/a.py:4 says 20",
        first=first, second=second, also=(second,), newer="first", since=new.written_at,
    )  # fmt: skip


def report(*findings: Finding, **fields: Any) -> Report:
    return Report(root=".", findings=findings, files=7, seconds=1.2, **fields)


def test_text_names_both_sides_their_lines_and_who_wrote_them() -> None:
    assert FORMATS["text"](report(finding(), known=2)) == (
        "docs/a b,c:d.md:12  request limit  [nornweave/default, 0.93]\n"
        "  documentation docs/a b,c:d.md:12  30\n"
        "    | The limit is 30.\n"
        "    2024-02-01 by Bo (aaaaaaaaa)\n"
        "  code          src/a.py:4  20\n"
        "    | LIMIT = 20\n"
        "    2025-03-01 by Ann (bbbbbbbbb)\n"
        "  the code is newer, since 2025-03-01\n"
        "  also docs/a b,c:d.md:12  30\n"
        "\n"
        "1 disagreement in 7 files, 1.2 s (2 known from the baseline)\n"
    )


@pytest.mark.parametrize("name", ["text", "markdown", "github", "sarif"])
def test_every_reader_is_told_which_side_moved_and_what_both_said(name: str) -> None:
    shown = FORMATS[name](report(replace(finding(), moved="first", was="30")))
    assert "both said 30; then the code changed" in shown
    assert "the code is newer, since 2025-03-01" in shown


def test_foreign_control_characters_never_reach_a_terminal() -> None:
    for name in ("text", "markdown", "github"):
        shown = FORMATS[name](report(finding(text=HOSTILE, path=HOSTILE, name=HOSTILE)))
        assert not {"\x1b", "\x07", "\u202e"} & set(shown)
    shown = FORMATS["text"](report(finding(text="x\x0b30\r\nINJECTED")))
    assert not any(line.startswith("INJECTED") for line in shown.splitlines())


def test_a_workflow_command_is_one_line_and_its_parts_cannot_be_forged() -> None:
    shown = FORMATS["github"](report(finding(text="30\n::error::x", path="docs/a,line=9:b%.md")))
    first, notice = shown.splitlines()
    assert first.startswith("::warning file=docs/a%2Cline=9%3Ab%25.md,line=12,title=nornweave/default request limit::")
    assert "%0Aalso: " in first
    assert notice.startswith("::notice title=nornweave drift::1 disagreement")
    assert escaped("%\r\n:,", in_property=True) == "%25%0D%0A%3A%2C"


def test_markdown_keeps_foreign_text_in_code_and_offers_the_edit() -> None:
    shown = FORMATS["markdown"](report(finding(text="Use ```30``` | @everyone")))
    assert "``````diff\n-Use ```30``` | @everyone\n+Use ```20``` | @everyone\n``````" in shown
    assert "documentation `docs/a b,c:d.md:12` says `30` — `2024-02-01 by Bo (aaaaaaaaa)`" in shown
    assert "+Default: 20 s, 3.30 and 30-x" in FORMATS["markdown"](report(finding(text="Default: 30 s, 3.30 and 30-x")))
    assert "Suggested" not in FORMATS["markdown"](report(finding(text="It is 30 here and 30 there.")))
    hostile = FORMATS["markdown"](report(finding(name="a`b <img> @x")))
    assert "#### ``a`b <img> @x`` (default, 93%)" in hostile


def test_a_comment_stays_shorter_than_what_the_host_takes() -> None:
    shown = FORMATS["markdown"](report(*[finding()] * 500))
    assert len(shown) < 65_536
    assert "… and " in shown


def test_json_says_everything() -> None:
    shown = json.loads(FORMATS["json"](report(finding(), failed=(UnreadFile("x.py", "broken"),), facts={"code": 3})))
    (one,) = shown["findings"]
    assert one["second"] == {
        "path": "docs/a b,c:d.md", "line": 12, "side": "documentation", "value": "30", "text": "The limit is 30.",
        "origin": {
            "revision": "aaaaaaaaaaaa", "author": "Bo", "written_at": "2024-02-01T00:00:00+00:00", "subject": None
        },
    }  # fmt: skip
    assert (one["newer"], one["since"], one["rule"]) == ("first", "2025-03-01T00:00:00+00:00", "nornweave/default")
    assert shown["failed"] == [{"path": "x.py", "reason": "broken"}]
    assert shown["counts"]["facts"] == {"code": 3}


# The parts of the schema of SARIF 2.1.0 that are used here, as strict as there: nothing that it does not know.
def _object(required: str = "", **properties: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": required.split(), "properties": properties}


TEXT = {"type": "string"}
MESSAGE = _object("text", text=TEXT)
ARTIFACT = _object(uri={"type": "string", "pattern": r"^[A-Za-z0-9._~/%-]*$"}, uriBaseId=TEXT)
AT = {"type": "integer", "minimum": 1}
REGION = _object(startLine=AT, startColumn=AT, endLine=AT, endColumn=AT, snippet=MESSAGE)
LOCATION = _object(
    id={"type": "integer", "minimum": -1},
    physicalLocation=_object(artifactLocation=ARTIFACT, region=REGION),
    message=MESSAGE,
)
LEVEL = {"enum": ["none", "note", "warning", "error"]}
RULE = _object(
    "id", id=TEXT, name=TEXT, shortDescription=MESSAGE, fullDescription=MESSAGE, help=MESSAGE,
    defaultConfiguration=_object(level=LEVEL),
    properties=_object(
        tags={"type": "array", "items": TEXT}, precision={"enum": ["very-high", "high", "medium", "low"]}
    ),
)  # fmt: skip
RESULT = _object(
    "message", ruleId=TEXT, ruleIndex={"type": "integer", "minimum": -1}, level=LEVEL, message=MESSAGE,
    locations={"type": "array", "items": LOCATION},
    relatedLocations={"type": "array", "uniqueItems": True, "items": LOCATION},
    partialFingerprints={"type": "object", "additionalProperties": TEXT},
    rank={"type": "number", "minimum": -1, "maximum": 100},
    baselineState={"enum": ["new", "unchanged", "updated", "absent"]},
)  # fmt: skip
RUN = _object(
    "tool",
    tool=_object("driver", driver=_object(
        "name", name=TEXT, version=TEXT, semanticVersion=TEXT, rules={"type": "array", "items": RULE})),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    originalUriBaseIds={"type": "object", "additionalProperties": _object(uri=TEXT, description=MESSAGE)},
    invocations={"type": "array", "items": _object(
        "executionSuccessful", executionSuccessful={"type": "boolean"},
        toolExecutionNotifications={"type": "array", "items": _object(
            "message", level=LEVEL, message=MESSAGE, locations={"type": "array", "items": LOCATION})})},
    results={"type": "array", "items": RESULT},
)  # fmt: skip
LOG = _object("version runs", version={"enum": ["2.1.0"]}, runs={"type": "array", "items": RUN}, **{"$schema": TEXT})


@pytest.mark.parametrize("text", ["The limit is 30.", HOSTILE, "😀 30"])
def test_sarif_has_the_shape_of_its_schema(text: str) -> None:
    found = report(
        finding(text=text), failed=(UnreadFile("x y.py", "broken"),), notices=("shallow",), compared=("a", "b")
    )
    shown = json.loads(FORMATS["sarif"](found))
    jsonschema_rs.validate(LOG, shown)
    (run,) = shown["runs"]
    (result,) = run["results"]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "nornweave/default"
    assert result["partialFingerprints"] == {"nornweaveDrift/v1": "0" * 32}
    assert result["baselineState"] == "new"
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "docs/a%20b%2Cc%3Ad.md"
    assert [one["id"] for one in result["relatedLocations"]] == [1, 2]


def test_no_findings_are_a_valid_report_in_every_format(tmp_path: Path) -> None:
    for name, written in FORMATS.items():
        shown = written(report())
        assert shown.endswith("\n")
        if name == "sarif":
            jsonschema_rs.validate(LOG, json.loads(shown))
    assert FORMATS["text"](report()) == "no disagreements in 7 files, 1.2 s\n"
