import json
from pathlib import Path

import pytest
from drift_repository import CODE, page, parcels
from git_repository import Repository, write
from test_drift_command import app, run
from typer.testing import CliRunner

from nornweave.core.errors import ConfigError
from nornweave.disagree.drift.lock import FILE_NAME, read_lock
from nornweave.disagree.drift.options import documented_options
from nornweave.disagree.drift.scan import DriftOptions, scan

DATES = ("2024-02-01T12:00:00Z", "2024-03-01T12:00:00Z")


def moves(root: Path, before: dict[str, str], after: dict[str, str], removed: str = "") -> list[tuple[str, str | None]]:
    """Return name and changed side of what a second commit broke."""
    repository = Repository(root)
    base = repository.commit(before, DATES[0])
    if removed:
        repository.git("rm", "-q", removed)
    repository.commit(after, DATES[1])
    report = scan(root, DriftOptions(diff=f"{base}..HEAD")).report
    return [(one.name, one.moved) for one in report.findings]


SLOWER = CODE.replace("SECONDS = 20", "SECONDS = 45")
BOTH = {"docs/settings.md": page(), "src/parcels.py": CODE}


@pytest.mark.parametrize(("after", "expected"), [
    ({"docs/settings.md": page(45)}, [("delivery timeout", "second")]),
    ({"src/parcels.py": SLOWER}, [("delivery timeout", "first")]),
    ({"docs/settings.md": page(45), "src/parcels.py": SLOWER}, []),
    ({"docs/settings.md": page(45), "src/parcels.py": CODE.replace("SECONDS = 20", "SECONDS = 60")}, []),
    ({"docs/other.md": page(45)}, []),
    ({"docs/settings.md": "intro\n\n" + page(), "src/parcels.py": "# moved\n\n" + CODE}, []),
], ids=["page", "code", "both", "both, differently", "a new page", "moved lines"])  # fmt: skip
def test_a_diff_reports_what_agreed_and_changed_on_one_side(
    tmp_path: Path, after: dict[str, str], expected: list[tuple[str, str]]
) -> None:
    assert moves(tmp_path, BOTH, after) == expected


MANUAL = r""".TH lamp 1
.SH OPTIONS
.TP
\fB\-\-rows\fR=\fIN\fR
Rows of the display (default: 40).
.TP
.B \-\-tint
Colour of the light (default warm).
.SH AUTHORS
Ann
"""
FLAGS = 'var rows = flag.Int("rows", 40, "rows")\nvar tint = flag.String("tint", "warm", "colour")\n'


@pytest.mark.parametrize(("page", "code", "expected"), [
    (MANUAL, FLAGS.replace("40", "60"), [("rows", "first")]),
    (MANUAL.replace("40", "60"), FLAGS, [("rows", "second")]),
    (MANUAL, FLAGS.replace("warm", "cold"), [("tint", "first")]),
    (MANUAL.replace("40", "60"), FLAGS.replace("40", "60"), []),
])  # fmt: skip
def test_a_manual_page_is_held_to_the_code(
    tmp_path: Path, page: str, code: str, expected: list[tuple[str, str]]
) -> None:
    before = {"man/lamp.1": MANUAL, "main.go": f"package main\n{FLAGS}"}
    assert moves(tmp_path, before, {"man/lamp.1": page, "main.go": f"package main\n{code}"}) == expected


def test_the_lines_of_a_manual_page_have_their_writers_and_a_bold_term_is_an_option(tmp_path: Path) -> None:
    page = MANUAL.replace(r"\fB\-\-rows\fR=\fIN\fR", r"\fBMaxRows\fR (number)").replace("(default: 40)", "Default: 40")
    repository = Repository(tmp_path)
    base = repository.commit({"man/lamp.5": page, "src/lamp.c": "int MaxRows = 40;\n"}, "2024-02-01T12:00:00Z")
    repository.commit({"src/lamp.c": "int MaxRows = 60;\n"}, "2024-03-01T12:00:00Z")
    report = scan(tmp_path, DriftOptions(diff=f"{base}..HEAD")).report
    (finding,) = report.findings
    assert finding.second.origin is not None
    assert finding.second.origin.is_committed
    assert (finding.newer, "MaxRows" in {one.name for one in report.options}) == ("first", True)


def test_an_option_that_is_gone_is_found_in_a_manual_page_that_has_no_tags(tmp_path: Path) -> None:
    page = ".TH lamp 1\n.SH OPTIONS\n.PP\n\\-\\-rows=N\n.RS 4\nRows of the display.\n.RE\n"
    before = {"lamp.man": page, "main.go": f"package main\n{FLAGS}"}
    after = {"main.go": f"package main\n{FLAGS}".replace("rows", "lines")}
    assert [name for name, _ in moves(tmp_path, before, after)] == ["--rows"]


USED = """
export function connect(options) {
  return open(withDefaults(options, { keepAlive: false, poolSize: 8 }));
}
"""
LISTED = "# Options\n\n- `keepAlive` (default: `false`)\n- `poolSize` (default: `8`)\n"


@pytest.mark.parametrize(("page", "code", "expected"), [
    (LISTED.replace("8", "9"), USED, [("pool size", "second")]),
    (LISTED, USED.replace("8", "9"), [("pool size", "first")]),
    (LISTED, USED.replace("open", "start"), []),
])  # fmt: skip
def test_what_a_page_says_of_a_value_in_use_is_held_to_it(
    tmp_path: Path, page: str, code: str, expected: list[tuple[str, str]]
) -> None:
    assert moves(tmp_path, {"docs/a.md": LISTED, "a.js": USED}, {"docs/a.md": page, "a.js": code}) == expected


def test_a_value_in_use_says_nothing_beside_an_example(tmp_path: Path) -> None:
    shown = "# Types\n\n```js\npost(url, { contentType: 'text/plain' })\n```\n"
    code = "function fail() { return new Response({ contentType: 'text/plain' }); }\n"
    json = shown.replace("text/plain", "text/json")
    assert moves(tmp_path / "a", {"docs/a.md": shown, "a.js": code}, {"docs/a.md": json, "a.js": code}) == []


def test_an_example_of_a_page_that_followed_the_code_is_no_default(tmp_path: Path) -> None:
    table = "# Options\n\n| Key | Default |\n|---|---|\n| `min_status` | `400` |\n| `max_rows` | `70` |\n"
    page = f"{table}\n```yaml\nmin_status: 400\nmax_rows: 70\n```\n"
    code = "MIN_STATUS = 400\nMAX_ROWS = 70\n"
    changed = {"docs/a.md": page.replace("`400`", "`500`"), "src/a.py": code.replace("400", "500")}
    assert moves(tmp_path, {"docs/a.md": page, "src/a.py": code}, changed) == []


MANIFEST = '[project]\nname = "lamp"\nrequires-python = ">=3.9"\n'
TESTED = "# Lamp\n\nTested on Python 3.9+, and on Linux.\n"


@pytest.mark.parametrize(("page", "manifest", "expected"), [
    (TESTED.replace("3.9", "3.8"), MANIFEST, [("python", "second")]),
    (TESTED, MANIFEST.replace("3.9", "3.10"), [("python", "first")]),
    (TESTED.replace("3.9", "3.10"), MANIFEST.replace("3.9", "3.10"), []),
])  # fmt: skip
def test_a_version_on_a_page_is_held_to_the_manifest(
    tmp_path: Path, page: str, manifest: str, expected: list[tuple[str, str]]
) -> None:
    base = {"README.md": TESTED, "pyproject.toml": MANIFEST}
    assert moves(tmp_path / "a", base, {"README.md": page, "pyproject.toml": manifest}) == expected
    go = {"README.md": TESTED.replace("Python 3.9", "Go 1.21"), "go.mod": "module lamp\n\ngo 1.21\n"}
    assert moves(tmp_path / "b", go, {"go.mod": "module lamp\n\ngo 1.24\n"}) == [("go", "first")]
    since = {"README.md": "# Lamp\n\nStarting with Go 1.21, it takes iterators.\n", "go.mod": go["go.mod"]}
    assert moves(tmp_path / "d", since, {"go.mod": "module lamp\n\ngo 1.24\n"}) == []
    parts = {"README.md": TESTED, "pyproject.toml": MANIFEST, "lib/README.md": TESTED, "lib/pyproject.toml": MANIFEST}
    moved = {"lib/pyproject.toml": MANIFEST.replace("3.9", "3.10"), "lib/README.md": TESTED.replace("3.9", "3.10")}
    assert moves(tmp_path / "c", parts, moved) == [], "each page beside the manifest of its own package"


def test_a_page_that_moves_breaks_nothing_and_is_followed(tmp_path: Path) -> None:
    long = {"docs/settings.md": page() + "text\n" * 40, "src/parcels.py": CODE}
    assert moves(tmp_path / "a", long, {"guide/all.md": page() + "text\n" * 40}, "docs/settings.md") == []
    moved = moves(tmp_path / "b", long, {"guide/all.md": page(45) + "text\n" * 40}, "docs/settings.md")
    assert moved == [("delivery timeout", "second")]


def test_a_lock_is_written_sorted_and_holds(tmp_path: Path) -> None:
    root = parcels(tmp_path)
    assert run(str(root), "--lock")[0] == 0
    text = (root / FILE_NAME).read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert len(lines) == 2
    assert lines == sorted(lines)
    code, shown = run(str(root), "--lock")
    assert (code, "2 agreements of the lock hold" in shown) == (0, True)
    write(root, {"docs/settings.md": "intro\n\n" + page(), "src/parcels.py": "# moved\n\n" + CODE})
    assert run(str(root), "--lock")[0] == 0
    assert (root / FILE_NAME).read_text() == text


def test_lines_of_a_lock_that_are_written_differently_or_gone_are_checked_in_their_own_files(tmp_path: Path) -> None:
    root = parcels(tmp_path)
    run(str(root), "--lock")
    write(root, {"docs/settings.md": page().replace("how long", "for how long"), "src/other.py": "OTHER = 5\n"})
    shown = json.loads(run(str(root), "--lock", "--json")[1])
    assert (shown["counts"]["files"], shown["coverage"]["agree"], shown["notices"]) == (0, 2, [])
    write(root, {"docs/settings.md": "\n".join(line for line in page().split("\n") if "PARCELS" not in line)})
    shown = json.loads(run(str(root), "--lock", "--json")[1])
    assert (shown["counts"]["files"], shown["coverage"]["agree"]) == (0, 1)
    (named,) = shown["notices"]
    assert named.startswith("no longer found: max parcels ")


@pytest.mark.parametrize("check", [["--lock"], []])
@pytest.mark.parametrize(
    ("change", "moved"), [({"docs/settings.md": page(45)}, "second"), ({"src/parcels.py": SLOWER}, "first")]
)
def test_what_breaks_a_lock_fails_until_it_is_changed_on_purpose(
    tmp_path: Path, change: dict[str, str], moved: str, check: list[str]
) -> None:
    root = parcels(tmp_path)
    run(str(root), "--lock")
    write(root, change)
    code, shown = run(str(root), *check, "--json")
    (finding,) = json.loads(shown)["findings"]
    assert (code, finding["moved"], finding["was"]) == (1, moved, "20 seconds")
    assert run(str(root), "--update", "--accept")[0] == 0
    assert run(str(root), "--lock")[0] == 0


def test_an_update_names_what_it_drops_and_signs_no_page_off_that_still_says_the_old_value(tmp_path: Path) -> None:
    root = parcels(tmp_path)
    run(str(root), "--lock")
    before = (root / FILE_NAME).read_text()
    write(root, {"src/parcels.py": SLOWER})
    code, said = updated(root)
    assert (code, (root / FILE_NAME).read_text()) == (1, before)
    dropped = "delivery timeout = 20 seconds (docs/settings.md and src/parcels.py)"
    assert f"no longer held: {dropped}, which the page still says" in said
    assert "is left as it was: 1 of these is still said on a page" in said
    write(root, {"docs/settings.md": page(45)})
    code, said = updated(root)
    assert (code, f"no longer held: {dropped}\n" in said) == (0, True), "both changed: it is named, and not refused"
    assert run(str(root), "--lock")[0] == 0


def updated(root: Path) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["drift", str(root), "--update"])
    return done.exit_code, done.output


def test_a_line_of_a_lock_is_read_by_people(tmp_path: Path) -> None:
    root = parcels(tmp_path)
    run(str(root), "--lock")
    lines = (root / FILE_NAME).read_text().splitlines()[1:]
    assert [line.split("\t")[:3] for line in lines] == [
        ["docs/settings.md", "delivery timeout = 20 seconds", "src/parcels.py"],
        ["docs/settings.md", "max parcels = 50", "src/parcels.py"],
    ]


def test_files_that_moved_still_hold_and_agreements_that_are_gone_are_named(tmp_path: Path) -> None:
    root = parcels(tmp_path)
    run(str(root), "--lock")
    (root / "guide").mkdir()
    (root / "docs/settings.md").rename(root / "guide/settings.md")
    code, shown = run(str(root), "--lock", "--json")
    assert (code, json.loads(shown)["notices"]) == (0, [])
    write(root, {"guide/settings.md": page(45)})
    assert run(str(root), "--lock")[0] == 1
    write(root, {"guide/settings.md": "nothing\n"})
    code, shown = run(str(root), "--lock", "--json")
    assert code == 0
    assert [notice[:35] for notice in json.loads(shown)["notices"]] == [
        "no longer found: delivery timeout (",
        "no longer found: max parcels (guide",
    ]


@pytest.mark.parametrize(
    "line", ["[]", "<<<<<<< HEAD", '["a","b","c","d","e","f","g","h","i","j"]', "a\tb = 1\tc\t" + "[" * 3000]
)
def test_a_broken_lock_is_refused_with_its_line(tmp_path: Path, line: str) -> None:
    write(tmp_path, {FILE_NAME: f"# head\n{line}\n"})
    with pytest.raises(ConfigError, match="line 2"):
        read_lock(tmp_path)


def test_coverage_says_how_many_values_are_held_and_why_others_are_not(tmp_path: Path) -> None:
    root = parcels(tmp_path, timeout=30)
    write(root, {"docs/more.md": "| Setting | Default |\n|---|---|\n| `UNKNOWN_THING` | `7` |\n"})
    assert json.loads(run(str(root), "--json")[1])["coverage"] == {
        "read": 3,
        "compared": 2,
        "agree": 1,
        "not_compared": {"the code has no value of this name": 1},
        "documented": 3,
        "options_compared": 2,
        "options_held": 1,
        "options_not_compared": {"the code has no such name": 1},
        "others": {"names": [3, 2], "lists of choices": [0, 0], "statuses": [0, 0], "required versions": [0, 0]},
        "programs": 1,
        "unread": {},
    }


def test_every_documented_option_is_listed_with_what_became_of_it(tmp_path: Path) -> None:
    root = parcels(tmp_path, timeout=30)
    entries = "- `max_parcels` is unlike others.\n- `src/parcels.py` is a file.\n- `deliver()` is called.\n"
    write(root, {"docs/more.md": f"# More\n\nA `word` in a sentence.\n\n{entries}- `unknown-thing`: 7\n"})
    options = json.loads(run(str(root), "--json", "--list")[1])["options"]
    assert [(one["path"], one["line"], one["name"], one["state"], one["reason"]) for one in options] == [
        ("docs/more.md", 5, "max_parcels", "not_compared", "no value of it is read on the page"),
        ("docs/more.md", 8, "unknown-thing", "not_compared", "the code has no such name"),
        ("docs/settings.md", 5, "DELIVERY_TIMEOUT_SECONDS", "differs", "the code says 20 seconds"),
        ("docs/settings.md", 6, "MAX_PARCELS", "held", ""),
    ]
    code, shown = run(str(root), "--list")
    assert (code, shown.splitlines()[3].split()[:4]) == (0, ["docs/settings.md:6", "MAX_PARCELS", "50", "held"])
    assert "2 of 4 documented options are compared, 1 held; 1 differ" in shown
    assert [run(str(root), "--min-held", share)[0] for share in ("0.2", "0.25", "0.3")] == [0, 0, 3]


def test_values_that_are_not_held_are_listed_with_what_code_says(tmp_path: Path) -> None:
    root = parcels(tmp_path, timeout=30)
    write(root, {"docs/more.md": "# More\n\n`max_vans` defaults to 4.\n"})
    _, shown = run(str(root), "--list")
    at = shown.splitlines().index("2 values are read and not held to the code:")
    listed = [" ".join(line.split()) for line in shown.splitlines()[at + 1 : at + 3]]
    assert listed == [
        "docs/more.md:3 max vans 4 not compared the code has no value of this name",
        "docs/settings.md:5 delivery timeout 30 seconds differs the code says 20 seconds; src/parcels.py:3",
    ]
    values = json.loads(run(str(root), "--json")[1])["not_held"]
    assert [(one["name"], one["value"]) for one in values] == [("max vans", "4"), ("delivery timeout", "30 seconds")]


@pytest.mark.parametrize(("text", "names"), [
    ("### max\\_rows `40`\n### `max_age` (default: 3)\n### Using `client`\n### Setup\n", ["max_rows", "max_age"]),
    ("- `__SLOT__`: the text\n- `sessions#make`: a method\n- `a b c`: words\n- `max_rows`: rows\n", ["max_rows"]),
    ("```\nUsage: tool --wide\n\n  -p, --port <port>   Port\n      --max-age  as --wide\n  [env: TOOL_MODE=]\n```\n",
     ["--port", "--max-age", "TOOL_MODE"]),
    ("* **maxRows** - _integer_ - rows\n* **Note** that\n", ["maxRows"]),
    ("- `.rows(int)`: a\n- `a.port=10`: b\n- `--age=<v>`: c\n- `-w, --width <n>`: d\n- `run()` is called\n"
     "- `x == y`\n\n:gear: `.waits(Duration)`<br/>\n", [".rows", "a.port", "--age", "--width", ".waits"]),
    ("#### `--age=<v>` (TOOL_AGE)\n#### `--dry_run` (DRY_RUN)\n#### `--wide` (since it is)\n", ["--age", "--dry_run"]),
    ("#### `--age=<v>`\n\n| Option | D |\n|---|---|\n| `.seed(T x)` | 1 |\n| `--max-age <n>` | 2 |\n",
     ["--age", ".seed", "--max-age"]),
    ("```\n# a\ndepot.port=10\n#depot.wait-time=3s\ndepot.run(port=3)\ndepot.open=f(3);\n```\n",
     ["depot.port", "depot.wait-time"]),
    ("| Name | D |\n|---|---|\n| `-p` or `--port` | 1 |\n| `-q` | 2 |\n| `-S`, `--tls` or `--ssl` | 3 |\n"
     "| a `b` | 4 |\n",
     ["--port", "-q", "--tls"]),
    ("- [ ] **name**: **Text** - of it\n- [x] **max**: a\n* [ ] buy it\n", ["name", "max"]),
    ("**-n**, **\\--length** _N_\n:   Only so much.\n\n-x is no entry, and goes on\nbelow.\n",
     ["--length"]),
    ("All keys with their default values:\n\n.. code-block:: yaml\n\n    lamp:\n        max_age: 0\n        hosts: []\n"
     "\nFor example:\n\n.. code-block:: yaml\n\n    wide: 1\n", ["max_age", "hosts"]),
    ("`max_age` (values: [0-9], default: 3)\n\n  Days.\n\n`port`: of it\n\n`wide` rooms are many.\n",
     ["max_age", "port"]),
    ("## Slow row size\n\nHow `slow_row_size` is set.\n\n## Last words\n\nOf `max_rows`.\n", ["Slow row size"]),
    ("&#9200;``max_age``<br/>\nDays.\n\n🎉 `port`\nOf it.\n\n> `wide`\n", ["max_age", "port", "wide"]),
    (".. lamp-setting:: glow\n\n  :default: 3\n\n.. image:: glow\n", ["glow"]),
    ("```sh\ntool --wide \\\n  --port 3\nTOOL_MODE=fast tool\n```\n", ["TOOL_MODE"]),
    ("# ``MAX_AGE: int``\n\nDays.\n\n## `max_rows: Sequence[str]`\n", ["MAX_AGE", "max_rows"]),
    ("The contents of the config file:\n\n```php\nreturn [\n    'max_age' => env('AGE', 3),\n    'hosts' => [\n"
     "    ],\n];\n```\n\nUse it:\n\n```php\n$a = ['wide' => 1];\n```\n", ["max_age"]),
])  # fmt: skip
def test_what_names_an_option_on_a_page_is_counted_and_nothing_else(text: str, names: list[str]) -> None:
    assert [name for name, _ in documented_options(text)] == names


@pytest.mark.parametrize("table", [
    "| Key | Says | Default |\n|---|---|---|\n| wait | how long | 5 |\n| rows | how many | 3 |\n| glow | if | no |\n",
    "<table>\n <tr><td> wait\n</td><td> NUMBER </td></tr>\n <tr><td> rows\n</td><td> NUMBER </td></tr>\n"
    " <tr><td> glow\n</td><td> BOOL </td></tr>\n</table>\n",
])  # fmt: skip
def test_a_column_of_words_has_options_if_most_are_names_of_the_code(table: str) -> None:
    assert [name for name, _ in documented_options(table, {"wait", "rows"})] == ["wait", "rows", "glow"]
    assert [name for name, _ in documented_options(table, {"wait"})] == []
    assert [name for name, _ in documented_options(table.replace("glow", "all glow"), {"wait", "rows"})] == []


def test_another_value_of_a_name_of_one_word_is_compared_with_its_owner(tmp_path: Path) -> None:
    page = "# Lamp\n\n| Option | Default |\n|---|---|\n| `glow.indent` | `4` |\n| `wick.indent` | `7` |\n"
    code = {"a.py": "def dump(indent=2):\n    pass\n", "c.py": "class Wick:\n    indent = 7\n"}
    options = json.loads(run(str(write(tmp_path, {"docs/a.md": page, **code})), "--json")[1])["options"]
    assert [(one["name"], one["state"]) for one in options] == [
        ("glow.indent", "not_compared"),
        ("wick.indent", "held"),
    ]


def test_functions_types_and_packages_are_no_documented_options(tmp_path: Path) -> None:
    code = "class PumpOptions:\n    pump_rate = 3\n\n\ndef start_pump(pump_depth):\n    return start_pump(pump_depth)\n"
    names = ("start_pump", "PumpOptions", "My.Pump", "pump_rate", "pump_depth")
    page = "# Pump\n\n" + "".join(f"- `{name}`: words\n" for name in names)
    root = write(tmp_path, {"src/My.Pump/pump.py": code, "docs/a.md": page})
    assert [one["name"] for one in json.loads(run(str(root), "--json")[1])["options"]] == ["pump_rate", "pump_depth"]


def test_a_block_that_a_section_calls_its_default_is_what_holds_it_and_no_title_does(tmp_path: Path) -> None:
    """What prose and links of the section say beside it is no default, nor is a number that of a switch."""
    flags = {"gateLatch": "false", "gateAlarm": "true", "bellPitch": "17", "bellEcho": "23", "lampGlow": "31"}
    page, code = "# Depot\n\n", "const defaults = {\n"
    for name, value in flags.items():
        page += f"### {name}\n\n[Open Depot 1.0](https://a.example)\n\nWhen set to true it acts.\n\n"
        page += f"_**default value**_:\n```js\n{value}\n```\n\n"
        code += f"  {name}: {value},\n"
    code += "  craneLock: {\n    enabled: false,\n  },\n};\n"
    page += "### craneLock\n\nOpen Depot Crane Lock 1.0 shall be true.\n\n"
    page += "_**default value**_:\n```js\n{\n  enabled: false\n}\n```\n"
    rig = "const rig = { craneLock: true, gateLatch: true, gateAlarm: 1 };\n"
    files = {
        "docs/a.md": page,
        "lib/a.js": code,
        "certification/rig.js": rig,
        "conformance/rig.js": rig,
        "lib/b.js": rig,
    }
    root = write(tmp_path, files)
    options = json.loads(run(str(root), "--json")[1])["options"]
    assert {one["name"]: one["value"] for one in options if one["state"] == "held"} == flags
    assert {one["code"].split(":")[0] for one in options if one["state"] == "held"} == {"lib/a.js"}
    assert [one["state"] for one in options if one["name"] == "craneLock"] == ["not_compared"]


def test_another_column_beside_the_defaults_holds_nothing(tmp_path: Path) -> None:
    rows = {
        "PUMP_FLOW": ("pre", 25600),
        "PUMP_RATE": ("post", 9),
        "PUMP_WAIT": ("pre", 3000),
        "PUMP_SIZE": ("pre", 1500),
    }
    page = "# Options\n\n| Option | Restrict | Default |\n|---|---|---|\n"
    page += "".join(f"| `{name}` | {when} | {value} |\n" for name, (when, value) in rows.items())
    code = (
        "options = [\n" + "".join(f"    ({name}, Option.{when.upper()}),\n" for name, (when, _) in rows.items()) + "]\n"
    )
    root = write(tmp_path, {"docs/a.md": page, "a.py": code})
    assert {one["state"] for one in json.loads(run(str(root), "--json")[1])["options"]} == {"not_compared"}


def test_a_page_whose_values_other_code_has_is_not_rotten(tmp_path: Path) -> None:
    names = ("pump_flow", "pump_rate", "pump_wait", "pump_size", "pump_heat", "pump_mode")
    page = "# Options\n\n| Option | Default |\n|---|---|\n" + "".join(
        f"| `{name}` | {at + 40} |\n" for at, name in enumerate(names)
    )
    numbers = "".join(f"DEFAULT_{name.upper()} = {at}\n" for at, name in enumerate(names))
    defaults = "".join(f"DEFAULT_{name.upper()} = {at + 40}\n" for at, name in enumerate(names))
    stale = write(tmp_path / "stale", {"docs/a.md": page, "src/a.py": numbers})
    held = write(tmp_path / "held", {"docs/a.md": page, "src/a.py": numbers, "src/b.py": defaults})
    found = [json.loads(run(str(one), "--json")[1])["findings"] for one in (stale, held)]
    assert [any(one["rule"] == "nornweave/page" for one in of) for of in found] == [True, False]


def test_files_that_are_excluded_are_not_read(tmp_path: Path) -> None:
    root = parcels(tmp_path, timeout=30)
    assert json.loads(run(str(root), "--exclude", "docs/**", "--json")[1])["counts"]["files"] == 1


def test_a_reference_in_a_fenced_notation_is_held_to_the_code(tmp_path: Path) -> None:
    fields = {"flush_rows": 10, "retry_rounds": 7, "queue_slots": 31}
    reference = "".join(f"[ {name}: <int> | default = {value} ]\n" for name, value in fields.items())
    code = "".join(f"DEFAULT_{name.upper()} = {value}\n" for name, value in fields.items())
    first = {"docs/a.md": f"# Reference\n\n```\n{reference}```\n", "a.py": code}
    after = {"docs/a.md": first["docs/a.md"].replace("31", "45")}
    assert moves(tmp_path, first, after) == [("queue slots", "second")]


def test_options_of_one_last_name_are_each_held_by_their_own(tmp_path: Path) -> None:
    values = {
        "berths.init.strategy": '"blocking"',
        "berths.strategy": '"shared"',
        "quay.pause": "7",
        "crane.pause": "90",
    }
    page = "# Options\n\n| Option | Default |\n|---|---|\n"
    page += "".join(f"| `{name}` | `{value}` |\n" for name, value in values.items())
    code = "defaults = {\n" + "".join(f"    '{name}': {value},\n" for name, value in values.items()) + "}\n"
    options = json.loads(run(str(write(tmp_path, {"docs/a.md": page, "a.py": code})), "--json")[1])["options"]
    assert [(one["name"], one["value"], one["state"]) for one in options] == [
        (name, value, "held") for name, value in values.items()
    ]


OTHERS = {"lane_rows": "12", "ban_time": "60", "ttl_days": "7", "max_lanes": "40", "keep_log": "false"}
DECLARED = {
    "a function of the default": ("a.rs", "fn default_{0}() -> {2} {{\n    {1}\n}}\n"),
    "a constant": ("a.go", "const Default{3} = {1}\n"),
    "an argument": ("a.py", "def open_{0}(name: str, {0}={1}) -> None:\n    ...\n"),
}
USES = {
    "an arm": ("b.rs", "let k = match general.lane_lock {\n    true => K::A,\n    false => K::B,\n};\n"),
    "a pattern": ("b.rs", "fn f(s: &S) {\n    if let Some(false) = s.general.lane_lock {\n        go();\n    }\n}\n"),
    "a test": ("b.py", "def f(general):\n    if general.lane_lock == False:\n        go()\n"),
    "an assignment": ("b.rs", "fn off(&mut self) {\n    self.lane_lock = Some(false);\n}\n"),
}


@pytest.mark.parametrize("used", USES)
@pytest.mark.parametrize("declared", DECLARED)
def test_what_declares_a_default_outranks_what_uses_the_value(tmp_path: Path, declared: str, used: str) -> None:
    page = "# Settings\n\n" + "".join(
        f"### {name}\n```\npath: general.{name}\ndefault: {value}\n```\n\nOf a lane.\n\n"
        for name, value in {**OTHERS, "lane_lock": "false"}.items()
    )
    path, form = DECLARED[declared]
    code = "".join(
        form.format(name, value, "u64" if value.isdigit() else "bool", name.title().replace("_", ""))
        for name, value in {**OTHERS, "lane_lock": "true"}.items()
    )
    write(
        tmp_path, {"a.md": page, path: code.replace("true", "True") if path == "a.py" else code, **dict([USES[used]])}
    )
    options = {one["name"]: one for one in json.loads(run(str(tmp_path), "--json")[1])["options"]}
    assert {one: options[one]["state"] for one in OTHERS} == dict.fromkeys(OTHERS, "held")
    assert (options["lane_lock"]["state"], options["lane_lock"]["reason"]) == ("differs", "the code says true")


def test_the_list_and_the_lock_hold_the_same(tmp_path: Path) -> None:
    rows = "".join(f"- `{name}`: {value} by default\n" for name, value in OTHERS.items())
    table = "| Flag | Default |\n|---|---|\n| `lane.timeout` | 5 |\n"
    page = f"# Lanes\n\n{rows}\nThe lane depth is 12 by default.\n\n{table}"
    code = "".join(f"{name} = {value}\n" for name, value in OTHERS.items())
    flags = 'package lane\n\nvar laneTimeout = flags.Int("lane.timeout").Default(5)\nvar defaultLaneDepth = 12\n'
    root = write(
        tmp_path, {"a.md": page, "a.py": code, "main.go": flags, "b.go": "package lane\n\nvar initialTimeout = 9\n"}
    )
    options = json.loads(run(str(root), "--json")[1])["options"]
    held = {one["name"].replace(".", " ").replace("_", " ") for one in options if one["state"] == "held"}
    run(str(root), "--lock")
    locked = {line.split("\t")[1].partition(" = ")[0] for line in (root / "drift.lock").read_text().splitlines()[1:]}
    last = {one.removeprefix("lane ").removesuffix(" days") for one in held}  # as the lock names them
    assert last == {one.removeprefix("lane ") for one in locked}
    assert {"lane depth", "lane timeout"} <= held


TWICE = "def open_lane(lane_rows=12):\n    ...\n", "def close_lane(lane_rows={}):\n    ...\n"


@pytest.mark.parametrize(("code", "state"), [
    ({"a.py": TWICE[0], "b.py": TWICE[1].format(30)}, "not_compared"),
    ({"a.py": TWICE[0], "b.py": TWICE[1].format(12)}, "held"),
    ({"Keys.java": 'class Keys {\n    static final String LANE_ROWS = "harbor.laneRows";\n}\n'}, "not_compared"),
    ({"Keys.java": "class Keys {\n    static final int LANE_ROWS = 13;\n}\n"}, "differs"),
    ({"Lane.java": 'class Lane {\n    private String laneRows = "";\n}\n'}, "not_compared"),
    ({"lanes.py": TWICE[0], "b.py": TWICE[1].format(30)}, "held"),
    ({"lanes.py": TWICE[1].format('"12 rows"')}, "not_compared"),
], ids=["they disagree", "they agree", "its own key", "another number", "filled in elsewhere", "called as the page",
        "a text"])  # fmt: skip
def test_a_row_is_held_or_differs_only_by_one_default_of_the_code(
    tmp_path: Path, code: dict[str, str], state: str
) -> None:
    write(tmp_path, {"lanes.md": "| Option | Default |\n|---|---|\n| `lane_rows` | `12` |\n", **code})
    options = json.loads(run(str(tmp_path), "--json")[1])["options"]
    assert [(one["name"], one["state"]) for one in options] == [("lane_rows", state)]


@pytest.mark.parametrize(("form", "line"), [
    ("class Lane:\n{0}", "    {0}: int = {1}\n"),
    ("LANE = [\n{0}]\n", "    ('int', '{0}', {1}),\n"),
    ("lane = {{\n{0}}}\n", "    '{0}': {1},\n"),
], ids=["class", "list", "mapping"])  # fmt: skip
def test_of_several_places_a_value_is_held_by_that_of_most_names_of_its_page(
    tmp_path: Path, form: str, line: str
) -> None:
    names = {
        "lane_rows": 12,
        "lane_depth": 7,
        "lane_width": 31,
        "lane_height": 45,
        "lane_length": 52,
        "lane_weight": 63,
    }
    page = "# Lanes\n\n" + "".join(f"- `{name}`: of a lane. Default: `{value}`\n" for name, value in names.items())
    code = form.format("".join(line.format(*one) for one in names.items()))
    use = "def close(lane_rows=12, lane_depth=9):\n    ...\n"
    write(tmp_path, {"a.md": page, "closing.py": use, "lanes.py": code})
    options = json.loads(run(str(tmp_path), "--json")[1])["options"]
    assert {(one["state"], one["code"].partition(":")[0]) for one in options} == {("held", "lanes.py")}


TABLE = "| Option | Default |\n|---|---|\n| `lane_rows` | `12` |\n"
FIELDS = "".join(
    f"def f(get, section):\n    x = number(get(section, '{name}', {value}))\n" for name, value in OTHERS.items()
)
TERMS = "".join(f"``{name}``\n\n  Of a lane.\n\n  *Default*: {value}\n\n" for name, value in OTHERS.items())


@pytest.mark.parametrize(("page", "code", "states"), [
    (TABLE.replace("Default", "Supported").replace("12", "Yes"), "lane_rows = 1\n", ["not_compared"]),
    (TABLE, 'USAGE = """\n  --lane-rows N  rows (default: 12)\n"""\n', ["not_compared"]),
    (TABLE.replace("12", "off"), "lane_rows = 0\n", ["held"]),
    (TABLE + "| `all_lane_rows` | `12` |\n", "lane_rows = 12\n", ["not_compared", "held"]),
    ("- `lane_rows`: of a lane, e.g. `12`\n", "lane_rows = 12\n", ["not_compared"]),
    ("## lane_rows: > 12\n\nIs wise.\n", "lane_rows = 12\n", ["not_compared"]),
    ("## lane_rows: 12\n\nIs wise.\n", "lane_rows = 12\n", ["held"]),
    (TABLE.replace("12", "0"), "class A:\n    lane_rows = -1\n\n\nclass LaneDefaults:\n    lane_rows = 0\n", ["held"]),
    (TERMS, FIELDS, ["held"] * len(OTHERS)),
], ids=["support", "help", "off", "another's", "example", "advice", "stated", "sentinel", "taught"])  # fmt: skip
def test_a_row_is_held_only_by_what_states_its_value(tmp_path: Path, page: str, code: str, states: list[str]) -> None:
    write(tmp_path, {"a.rst" if page == TERMS else "a.md": page, "a.py": code})
    options = json.loads(run(str(tmp_path), "--json")[1])["options"]
    assert [one["state"] for one in sorted(options, key=lambda one: str(one["name"]))] == states


def test_a_choice_beside_a_default_that_the_code_does_not_have_holds_nothing(tmp_path: Path) -> None:
    rows = "".join(f"| `lane.{name}` | Kind (`{one}`, `{two}`) | `{default}` |\n" for name, one, two, default in (
        ("style", "curl", "splunk", "json"), ("strategy", "shared", "single", "queued"))
    )  # fmt: skip
    code = "".join(
        f'    @ConditionalOnProperty(name = "lane.{name}", havingValue = "{one}")\n    X {one}() {{ return null; }}\n'
        for name, one in (("style", "curl"), ("style", "splunk"), ("strategy", "shared"), ("strategy", "single"))
    )
    page = f"| Option | Description | Default |\n|---|---|---|\n{rows}"
    write(tmp_path, {"a.md": page, "Auto.java": f"class Auto {{\n{code}}}\n"})
    options = json.loads(run(str(tmp_path), "--json")[1])["options"]
    assert {one["state"] for one in options} == {"not_compared"}


def test_a_page_that_contradicts_itself_is_not_held_by_its_second_sentence(tmp_path: Path) -> None:
    page = "# Settings\n\n## lane_rows\n\nDefault: `12`\n\nRows of a lane (7 by default).\n"
    write(tmp_path, {"a.md": page, "a.py": "DEFAULT_LANE_ROWS = 7\n"})
    options = json.loads(run(str(tmp_path), "--json")[1])["options"]
    assert [(one["value"], one["state"]) for one in options] == [("12", "differs")]


def test_a_value_that_a_lookup_falls_back_to_is_a_default_as_that_of_a_parameter(tmp_path: Path) -> None:
    page = "| Option | Default |\n|---|---|\n" + "".join(f"| `{one}` | `{value}` |\n" for one, value in OTHERS.items())
    lookups = "".join(f"    c['{one}'] = look('harbor', '{one}', {value}, int)\n" for one, value in OTHERS.items())
    write(tmp_path, {"a.md": page, "a.py": f"def f(c, look):\n{lookups}", "b.py": "def run(lane_rows=13):\n    ...\n"})
    options = {one["name"]: one["state"] for one in json.loads(run(str(tmp_path), "--json")[1])["options"]}
    assert options.pop("lane_rows") in {"held", "not_compared"}
    assert set(options.values()) == {"held"}


def test_a_report_counts_the_names_choices_statuses_and_versions_that_pages_state(tmp_path: Path) -> None:
    page = (
        "Set `max_moths` and `no_such_thing`. One of `dim`, `bright` or `strobe`.\n\n"
        "It answers HTTP 503. It needs libglow 2.1.0 or newer.\n"
    )
    Repository(tmp_path).commit({"README.md": page, "a.py": 'max_moths = "dim", "bright", 503\n'}, DATES[0])
    coverage = scan(tmp_path, DriftOptions()).report.coverage
    assert coverage is not None
    assert coverage.others == {
        "names": (4, 2), "lists of choices": (1, 0), "statuses": (1, 1), "required versions": (1, 0),
    }  # fmt: skip


CLASSES = {
    "nested classes of Java": (
        "Lamps.java",
        """public class LampProperties {{
    private boolean enabled = true;
    public static class Red {{ private boolean enableLogging = {red}; }}
    public static class Blue {{
        private boolean enableLogging = {blue};
        public static class Jmx {{ private boolean enabled = {jmx}; }}
    }}
}}
""",
    ),
    "classes with a word behind": (
        "lamps.py",
        """class LampSettings:
    enabled: bool = {true}


class RedProperties:
    enable_logging: bool = {red}


class BlueProperties:
    enable_logging: bool = {blue}


class BlueJmxProperties:
    enabled: bool = {jmx}
""",
    ),
    "classes with a prefix": (
        "Lamps.java",
        """@ConfigurationProperties("lamp")
class One {{ private boolean enabled = true; }}
@ConfigurationProperties(prefix = "lamp.red")
class Two {{ private boolean enableLogging = {red}; }}
@ConfigurationProperties(prefix = "lamp.blue")
class Three {{ private boolean enableLogging = {blue}; }}
@ConfigurationProperties("lamp.blue.jmx")
class Four {{ private boolean enabled = {jmx}; }}
""",
    ),
}
KEYS = {"red": "lamp.red.enable-logging", "blue": "lamp.blue.enable-logging", "jmx": "lamp.blue.jmx.enabled"}


@pytest.mark.parametrize("changed", KEYS)
@pytest.mark.parametrize("form", CLASSES)
def test_the_path_of_a_key_chooses_the_class(tmp_path: Path, form: str, changed: str) -> None:
    others = "".join(f"lamp.{name.replace('_', '-')}={value}\n" for name, value in OTHERS.items())
    page = "# Lamp\n\nAll keys with their defaults:\n\n```properties\n"
    page += f"{others}{''.join(f'{key}=true{chr(10)}' for key in KEYS.values())}```\n"
    path, code = CLASSES[form]
    own = "".join(f"{name.upper()} = {value}\n" for name, value in OTHERS.items()).replace("false", "False")

    def written(**other: str) -> str:
        values = {name: other.get(name, "true") for name in ("true", *KEYS)}
        return code.format(**({name: one.title() for name, one in values.items()} if path.endswith("py") else values))

    first = {"README.md": page, path: written(), "other.py": own}
    root = write(tmp_path / "now", first)
    places = {one["name"]: one["code"] for one in json.loads(run(str(root), "--json")[1])["options"]}
    lines = {name: at for at, text in enumerate(code.splitlines(), 1) for name in KEYS if f"{{{name}}}" in text}
    assert {name: places[key] for name, key in KEYS.items()} == {name: f"{path}:{at}" for name, at in lines.items()}
    repository = Repository(tmp_path / "diff")
    base = repository.commit(first, DATES[0])
    repository.commit({path: written(**{changed: "false"})}, DATES[1])
    (found,) = scan(tmp_path / "diff", DriftOptions(diff=f"{base}..HEAD")).report.findings
    said = next(at for at, text in enumerate(page.splitlines(), 1) if text.startswith(KEYS[changed]))
    assert (found.second.line, found.first.line) == (said, lines[changed])


@pytest.mark.parametrize(("said", "code", "state"), [
    ("`--{0}[=<false|true>]`: if it is so", "{0} = false\n", None),
    ("`--{0} <false|true>`: if it is so", "{0} = false\n", None),
    ("--{0} {{false,true}}: if it is so", "{0} = false\n", None),
    ("`--{0}=<false|true>`: if it is so. Default: false", "{0} = false\n", "held"),
])  # fmt: skip
def test_a_list_of_allowed_values_is_no_default(tmp_path: Path, said: str, code: str, state: str | None) -> None:
    names = [f"glow_{one}" for one in ("red", "blue", "dusk", "dawn", "noon", "moth")]
    page = "# Lamp\n\n" + "".join(f"- {said.format(one)}\n" for one in names)
    root = write(tmp_path, {"a.md": page, "a.toml": "", "a.js": "".join(f"var {code.format(one)}" for one in names)})
    options = json.loads(run(str(root), "--json")[1])["options"]
    assert {one["state"] for one in options if one["state"] != "not_compared"} == ({state} if state else set())


@pytest.mark.parametrize("used", [
    "fn f(glow: &Glow) {\n    let glow = match glow {\n        Glow::Lit => Glow::Lit,\n"
    "        Glow::Dim => Glow::Dim,\n    };\n}\n",
    "fn f(glow: Glow) {\n    let glow = match glow { Glow::Lit => 1, Glow::Dim => Glow::Dim };\n}\n",
])  # fmt: skip
def test_what_a_branch_gives_is_no_default(tmp_path: Path, used: str) -> None:
    others = "".join(
        f"      --{name.replace('_', '-')} <N>\n          How many [default: {value}]\n\n"
        for name, value in OTHERS.items()
    )
    page = f"# Lamp\n\n```text\n{others}      --glow <GLOW>\n          How [default: dim]\n```\n"
    own = "".join(f"pub const DEFAULT_{name.upper()}: u64 = {value};\n" for name, value in OTHERS.items())
    root = write(tmp_path, {"README.md": page, "a.rs": own, "b.rs": used})
    options = {one["name"]: one for one in json.loads(run(str(root), "--json")[1])["options"]}
    assert (options["--glow"]["state"], options["--max-lanes"]["state"]) == ("not_compared", "held")


@pytest.mark.parametrize(("code", "state"), [
    ('define("glow_rows", default=9)\np = options.glow_rows or 7\n', "differs"),
    ('parser.add_argument("--glow-rows", default=9)\np = args.glow_rows or 7\n', "differs"),
    ("p = options.glow_rows or 7\n", "held"),  # nothing else declares it
])  # fmt: skip
def test_a_declaration_outranks_what_a_use_falls_back_to(tmp_path: Path, code: str, state: str) -> None:
    page = "# Lamp\n\n- `glow_rows`: how many. Default: `7`\n"
    (option,) = json.loads(run(str(write(tmp_path, {"a.md": page, "a.py": code})), "--json")[1])["options"]
    assert option["state"] == state


def test_an_empty_default_is_not_what_a_use_puts_in_its_place(tmp_path: Path) -> None:
    page = "# Lamp\n\n- `glow_path`: where. Default: `''` (empty string)\n"
    root = write(tmp_path, {"a.md": page, "a.py": "p = options.glow_path or '/'\n"})
    (option,) = json.loads(run(str(root), "--json")[1])["options"]
    assert option["state"] == "not_compared"


@pytest.mark.parametrize("path", ["doc/lamprc.example", "docs/lamp.sample", "man/lamprc.dist"])
def test_a_commented_configuration_beside_documentation_states_defaults(tmp_path: Path, path: str) -> None:
    keys = {"buffer_size": 5120, "glow_timeout": 45, "max_moths": 8}
    page = "#\n# The configuration of lamp. Uncomment a line to change it.\n\n"
    page += "".join(f"# How much of it.\n#\n# {key} = {value}\n\n" for key, value in keys.items())
    code = "void defaults(conf_t *conf) {\n" + "".join(f"\tconf->{key} = {value};\n" for key, value in keys.items())
    after = {"src/conf.c": f"{code}}}\n".replace("5120", "8192")}
    assert moves(tmp_path, {path: page, "src/conf.c": f"{code}}}\n"}, after) == [("buffer size", "first")]


POD = "=head1 OPTIONS\n\n=over 4\n\n=item B<glow> (values: [0-9], default: 3)\n\nHow much.\n\n=back\n"
NOT_SET = {
    "glow.go": 'type Lamp struct {\n\tGlow bool `json:"glow,omitempty"`\n}\n',
    "glow.ts": "interface Lamp {\n  glow?: boolean;\n}\n",
    "Lamp.java": "class Lamp {\n    private boolean isGlow;\n}\n",
    "glow.h": "struct lamp {\n    bool glow;\n};\n",
    "glow.rs": "pub struct Lamp {\n    pub glow: Option<bool>,\n}\n",
    "glow.py": 'parser.add_argument("--glow",\n    action="store_true", help="shine")\n',
    "glow.js": 'program.option("-g, --glow", "shine");\n',
    "parse.js": "const options = {\n  glow: { type: 'boolean', short: 'g' },\n};\n",
}


@pytest.mark.parametrize("path", NOT_SET)
@pytest.mark.parametrize(("said", "state"), [("`false`", "held"), ("`true`", "not_compared"), ("3", "not_compared")])
def test_what_nothing_sets_is_off(tmp_path: Path, path: str, said: str, state: str) -> None:
    write(tmp_path, {"a.md": f"- `glow`: whether it shines. Default: {said}\n", path: NOT_SET[path]})
    (option,) = json.loads(run(str(tmp_path), "--json")[1])["options"]
    assert (option["state"], option["code"].partition(":")[0]) == (state, path if state == "held" else "")


def test_what_something_sets_is_not_taken_to_be_off(tmp_path: Path) -> None:
    code = f"{NOT_SET['glow.go']}\nvar defaultLamp = Lamp{{Glow: true}}\n"
    write(tmp_path, {"a.md": "- `glow`: whether it shines. Default: `false`\n", "glow.go": code})
    (option,) = json.loads(run(str(tmp_path), "--json")[1])["options"]
    assert option["state"] != "held"


@pytest.mark.parametrize(("path", "page"), [("docs/lamp.5.pod", POD), ("docs/lamp.txt.in", POD)])
def test_a_page_in_pod_is_held_to_a_table_of_options(tmp_path: Path, path: str, page: str) -> None:
    code = 'static struct option all[] = {\n    {\n        .name = "glow",\n        .section = "lamp",\n'
    code += '        .description = "How much it shines",\n        .type = NUMBER,\n'
    code += '        .default_value = "3",\n    },\n};\n'
    root = write(tmp_path, {path: page, "lamp.c": code})
    (option,) = json.loads(run(str(root), "--json")[1])["options"]
    assert (option["name"], option["line"], option["state"], option["code"]) == ("glow", 5, "held", "lamp.c:7")
    assert run(str(root), "--lock")[0] == 0
    write(root, {"lamp.c": code.replace('"3"', '"4"')})
    assert "glow" in run(str(root), "--lock")[1]


@pytest.mark.parametrize(("said", "written"), [
    ("Default: /var/lib/lamp.db", '"/var/lib/lamp.db"'), ("Default: INFO (of seven)", '"INFO"'),
    ("Default is http://localhost:80/glow.", '"http://localhost:80/glow"'), ("Default: 127.0.0.1:80", '"127.0.0.1:80"'),
    ("Default is empty.", '""'), ("Default: empty", '""'),
    ("By default, it is ~/.lamp/glow.", '"~/.lamp/glow"'), ("Default: `HH:mm on ss`", '"HH:mm on ss"'),
])  # fmt: skip
def test_words_without_marks_that_are_given_as_a_default_are_held(tmp_path: Path, said: str, written: str) -> None:
    root = write(tmp_path, {"a.md": f"- `glow_at`: where. {said}\n", "a.py": f"glow_at = {written}\n"})
    (option,) = json.loads(run(str(root), "--json")[1])["options"]
    assert option["state"] == "held"
    write(root, {"a.py": 'glow_at = "/srv/none"\n'})
    (option,) = json.loads(run(str(root), "--json")[1])["options"]
    assert option["state"] == "not_compared"  # words can be spelt in several ways


def test_the_lines_of_a_configuration_in_a_string_are_read(tmp_path: Path) -> None:
    names = {"lamp.rows": 3, "lamp.glow": 14, "lamp.moths": 25, "lamp.hall": 36}
    page = "".join(f"- `{name}`: of it. Default: {value}\n" for name, value in names.items())
    lines = "".join(f'  "{name}={value}  # how many of them\\n"\n' for name, value in names.items())
    root = write(tmp_path, {"a.md": page, "a.cpp": f"std::string defaults =\n{lines};\n"})
    options = json.loads(run(str(root), "--json")[1])["options"]
    assert [(one["name"], one["code"]) for one in options if one["state"] == "held"] == [
        (name, f"a.cpp:{at}") for at, name in enumerate(names, 2)
    ]


@pytest.mark.parametrize(("first", "second"), [("conf", "db"), ("glow", "io"), ("lamp", "id")])
def test_a_default_under_a_short_heading_is_of_that_heading(tmp_path: Path, first: str, second: str) -> None:
    page = "Options\n=======\n" + "".join(
        f"\n.. _{name}:\n\n{name}\n{'~' * len(name)}\n\nDefault: {value}\n\nExample::\n\n    $ lamp --{name}=x\n"
        for name, value in ((first, "one.py"), (second, "moths"))
    )
    code = f'define("{first}", default="one.py")\ndefine("{second}", default="moths")\n'
    root = write(tmp_path, {"docs/a.rst": page, "a.py": code})
    report = json.loads(run(str(root), "--json")[1])
    held = {one["name"]: one["value"] for one in report["options"] if one["state"] == "held"}
    assert held == {first: '"one.py"', second: '"moths"'}
    assert "differs" not in {one["state"] for one in (*report["options"], *report["not_held"])}


def test_the_line_of_a_flag_states_the_value_of_that_flag_alone(tmp_path: Path) -> None:
    flags = ("tls", "tls-crt", "tls-key", "lane-port", "lane-term", "lane-hup")
    values = ("false", "~/.a.crt", "~/.a.pem", "8080", "xterm", "1")
    helps = ("Enable TLS", "TLS/SSL file path", "TLS/SSL pem path", "Port", "Terminal", "Signal")
    page = "# Lamp\n\n```\n--tls, -t  Enable TLS/SSL (default: false)\n" + "".join(
        f"--{flag} value  {text} (default: {'1: SIGHUP) (default: 1' if flag == 'lane-hup' else value})\n"
        for flag, value, text in zip(flags[1:], values[1:], helps[1:], strict=True)
    )
    code = "package lamp\n\ntype Options struct {\n" + "".join(
        f'\t{flag.title().replace("-", "")}F string `flagName:"{flag}" flagDescribe:"{text}" default:"{value}"`\n'
        for flag, value, text in zip(flags, values, helps, strict=True)
    )
    root = write(tmp_path, {"README.md": f"{page}```\n", "a.go": f"{code}}}\n"})
    report = json.loads(run(str(root), "--json")[1])
    states = {one["name"]: (one["value"], one["state"]) for one in report["options"]}
    assert states["--lane-hup"] == ("1", "held")
    assert "differs" not in {state for _, state in states.values()} | {one["state"] for one in report["not_held"]}
    assert not any(one["name"] == "tls" for one in report["not_held"])


@pytest.mark.parametrize(("info", "block"), [
    ("YAML", "lamp:\n  glow:\n    # in seconds\n    patience: 20s\n  rows: 7\n"),
    ("toml", "[lamp]\nglow.patience = '20s'\nrows = 7\n"),
    ("json", '{"lamp": {"glow": {"patience": "20s"}, "rows": 7}}\n'),
])  # fmt: skip
def test_a_block_of_defaults_states_each_key_with_its_path(tmp_path: Path, info: str, block: str) -> None:
    page = f"# Lamp\n\n- `patience` - how long it waits\n\nDefaults:\n\n```{info}\n{block}```\n"
    flags = '\tf.Duration("lamp.glow.patience", time.Second*20, "")\n\tf.Int("lamp.rows", 7, "")\n'
    code = f"package m\n\nfunc Set(f *F) {{\n{flags}}}\n"
    other = "export class Hall {\n  patience = 3;\n  rows = 2;\n}\n"
    files = {"docs/lamp.md": page, "lamp.go": code, "hall.ts": other}
    root = write(tmp_path / "one", files)
    options = {one["name"]: one for one in json.loads(run(str(root), "--json")[1])["options"]}
    assert [options[name]["code"] for name in ("lamp.glow.patience", "lamp.rows")] == ["lamp.go:4", "lamp.go:5"]
    after = {"lamp.go": code.replace("*20", "*45").replace("7", "9")}
    assert sorted(moves(tmp_path / "two", files, after)) == [("patience", "first"), ("rows", "first")]
