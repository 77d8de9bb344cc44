"""Values that code replaced in their place while a page still says the old one."""

from pathlib import Path

import pytest
from git_repository import Repository

from nornweave.disagree.drift.scan import DriftOptions, scan

DATES = ("2024-02-01T12:00:00Z", "2024-03-01T12:00:00Z")
TABLE = """# Lamp server

| Command | What | Defaults |
|---|---|---|
| `-c` | Seconds in the cupboard, such as `-c60` | `900` |
| `-q` | Pause of the queue, `-q0` for none | `45` |
| `-s` or `--suffix` | Default suffix of a lamp's file | `lmp` |
"""
SERVER = """const opts = { defaultSuffix: "lmp", other: "lmp" };
this.lamps.setPause(45);
if (other.suffix !== "lmp") { log("suffix", 45); }
"""


def broken(root: Path, page: str, code: str, changed: str, *, name: str = "src/lamp.js", **files: str) -> list[str]:
    """Return place and old value of what a commit broke that replaced one program by another."""
    repository = Repository(root)
    base = repository.commit({"docs/lamp.md": page, name: code, **files}, DATES[0])
    repository.commit({name: changed}, DATES[1])
    found = scan(root, DriftOptions(diff=f"{base}..HEAD")).report.findings
    return [f"{one.second.line} {one.was}".replace('"', "") for one in found]


@pytest.mark.parametrize(("old", "new", "expected"), [
    ("setPause(45)", "setPause(90)", ["6 45"]),
    ('defaultSuffix: "lmp"', 'defaultSuffix: "lamp"', ["7 lmp"]),
    ('other: "lmp"', 'other: "lamp"', []),  # of another name
    ('log("suffix", 45)', 'log("suffix", 46)', []),
    ("setPause(45)", "setPause(PAUSE = 45)", []),  # nothing was replaced
])  # fmt: skip
def test_a_value_in_a_column_of_defaults_needs_no_name_but_the_words_of_its_row(
    tmp_path: Path, old: str, new: str, expected: list[str]
) -> None:
    files = {"src/copy.js": 'export const kind = "lmp", wait = 45;\n'}
    assert broken(tmp_path, TABLE, SERVER, SERVER.replace(old, new), **files) == expected


PLACES = """enum Shade {
    Dim,
    Bright,
    Strobe,
}
fn name(shade: Shade) -> u16 { match shade { Shade::Strobe => 1, _ => 2 } }
"""


@pytest.mark.parametrize(("page", "name", "code", "old", "new", "expected"), [
    ("Shades: [possible values: dim, bright, strobe]\n", "src/s.rs", PLACES, "Strobe", "Flash", ["1 Strobe"]),
    ("Shades: [possible values: dim, bright, flash]\n", "src/s.rs", PLACES, "Strobe", "Flash", []),
    ("It is dim, and the strobe is bright.\n", "src/s.rs", PLACES, "Strobe", "Flash", []),  # a sentence
    ("- `mains`\n- `solar`\n- `crank`\n", "src/p.py", 'POWER = ("mains", "solar", "crank")\n', "crank", "hand",
     ["3 crank"]),
    ("Over `mains`, `solar` or `crank`.\n", "src/p.go",
     'switch p {\ncase "mains":\n\ta()\ncase "solar":\n\tb()\ncase "crank":\n\tc()\n}\n', '"crank"', '"hand"',
     ["1 crank"]),
    ("You need libglow 2.1.0 or newer.\n", "meson.build", "glow = dependency('glow', version: '>= 2.1.0')\n", "2.1.0",
     "2.4.0", ["1 2.1.0"]),
    ("Get glow 2.1.0 here.\n", "meson.build", "glow = dependency('glow', version: '>= 2.1.0')\n", "2.1.0", "2.4.0", []),
    ("The moth needs at least glow 2.1.0.\n", "meson.build", "glow = '2.1.0'\n", "2.1.0", "2.4.0", []),  # a pin
    ("It runs for 45.0 `beam seconds`.\n", "src/b.py", "beam_width = 45.0\n", "45.0", "45", []),  # the same number
    ("The `beam width` is 45 cm by default.\n", "src/b.py", "beam_width = 45\n", "45", "BEAM_WIDTH", []),  # named
    ("The `dimmed lamp` is off by default: false\n", "src/b.py", "x(dimmed_lamp=False)\n", "=False", "=is_dimmed", []),
    ("- `state`\n- `level`\n- `colour`\n", "src/q.py", 'x("state", "level", "colour")\n', '"state"', '"state:"', []),
    ("The `beam width` is 45 cm by default.\n", ".github/b.py", "beam_width = 45\n", "45", "90", []),  # a workflow's
    ("- [Dim](#dim)\n- [Lamp](#lamp)\n- [Shade](#shade)\n", "src/e.swift",
     "enum Kind { case dim, lamp }\nfunc f(a: Dim, b: Lamp, c: Shade)\n", "a: Dim", "a: Glow", []),  # types
    ("The lamp level is INFO.\n", "src/log.rb", "@level = lamp_level || ::Logger::INFO\n", "INFO", "WARN", ["1 INFO"]),
    ("- **softFall**: Falls slowly. Not if this is `false`. The default value is `true`\n", "src/L.swift",
     "static let softFallDefault = true\n", "true", "false", ["1 true"]),
    ("By default each beam chunk size is 16K.\n", "src/m.c",
     "#define BEAM_SIZE 16384\nb->beam_chunk_size = BEAM_SIZE;\n", "BEAM_SIZE", "BEAM_BYTES", []),  # renamed
    ("`--mode <dim|bright|strobe>`\n", "src/s.rs", PLACES, "Strobe", "Flash", ["1 Strobe"]),
    ("`--mode {dim,bright,strobe}`\n", "src/s.rs", PLACES, "Strobe", "Flash", ["1 Strobe"]),
    ("Modes:\n\n+ dim\n+ bright\n+ strobe\n", "src/s.h",
     "#define MODES(A) A(MODE_DIM, dim) A(MODE_BRIGHT, bright) A(MODE_STROBE, strobe)\n", ", strobe", ", flash",
     ["5 strobe"]),
    ("| code | name |\n|---|---|\n| 3 | DIM |\n| 4 | LIT |\n", "src/s.py", "class S:\n    DIM = 3\n    LIT = 4\n",
     "= 4", "= 9", ["4 4"]),
    ("| code | name |\n|---|---|\n| 4 | DIM |\n| 4 | is lit |\n", "src/s.py", "class S:\n    LIT = 4\n", "= 4", "= 9",
     []),
    ("By default the lamp level is INFO.\n", "src/m.c", "b->lamp_level = LOG_INFO;\n", "LOG_INFO", "LOG_WARN",
     ["1 INFO"]),
    ("### `beamTags`\n\nDefaults to **true**. See `beamMatch`.\n\n### `beamMatch`\n\nDefaults to **false**.\n",
     "src/m.js", "export default { beamTags: true, beamMatch: true };\n", "beamMatch: true", "beamMatch: false", []),
    ('Possible values: ["dim", "lit", "strobe"].\n', "src/s.rs",
     "".join(f'    #[serde(rename = "{one}")]\n    {one.title()},\n' for one in ("dim", "strobe", "lit"))
     + "}\nstruct Mains { strobe: u8 }\n", '"strobe"', '"flash"', ["1 strobe"]),
    ("* :all : all lamps\n* :dim : dark ones\n* :lit : lit ones\n", "src/l.rb",
     "def lamps(query=:all)\n  case query\n  when :lit then 1\n  when :dim then 2\n  end\nend\n", ":dim", ":faint",
     ["2 dim"]),
    ("- `clockForm`: of the clock.\n  Default: `dd.MM. HH:mm`\n", "src/c.ts", "const clockForm = 'dd.MM. HH:mm';\n",
     "dd.MM. HH:mm", "HH:mm", ["2 dd.MM. HH:mm"]),
    ("The `clock form` shows that a lamp is lit.\n", "src/c.ts", "const clockForm = 'a lamp is lit';\n",
     "a lamp is lit", "on", []),  # a sentence
])  # fmt: skip
def test_choices_versions_and_words_that_code_replaced(
    tmp_path: Path, page: str, name: str, code: str, old: str, new: str, expected: list[str]
) -> None:
    assert broken(tmp_path, page, code, code.replace(old, new), name=name) == expected


@pytest.mark.parametrize(("page", "expected"), [
    ("The `beam width` is 45 cm by default.\n", ["1 45"]),
    ("The `beam width` is 45 cm by default, since 2.0 it is 90.\n", ["1 45"]),
    ("The `beam width` was 45 and is 90.\n", []),
])  # fmt: skip
def test_a_page_that_says_the_new_value_is_not_told(tmp_path: Path, page: str, expected: list[str]) -> None:
    code = "let beamWidth = 45;\n"
    assert broken(tmp_path, page, code, "let beamWidth = 90;\n") == expected


CONFIGURATION = """<?php
return [
    'keep_rows' => 90,
    'lamp_name' => 'dim',
    'beam_wide' => true,
];
"""
COPY = f"The contents of the file:\n\n```php\n{CONFIGURATION}```\n"


@pytest.mark.parametrize(("page", "name", "expected"), [
    (COPY, "config/lamp.php", ["6 90"]),
    (COPY, "src/lamp.php", []),
    (COPY.replace("    'beam_wide' => true,\n", ""), "config/lamp.php", []),  # two lines are no copy
    (COPY.replace("90", "80"), "config/lamp.php", []),
])  # fmt: skip
def test_a_page_that_copies_a_configuration_is_told_of_a_value_that_changed(
    tmp_path: Path, page: str, name: str, expected: list[str]
) -> None:
    assert broken(tmp_path, page, CONFIGURATION, CONFIGURATION.replace("90", "30"), name=name) == expected


FLAG = """package lamp

var sink = app.Flag("report.sink", "Where the reports of lamps go.").Default("stdout").String()
"""
HEADER = """class LampFrame
  SHARED = "shared"
  ALONE = "alone"
  DEFAULT_VALUE = SHARED
end
"""


@pytest.mark.parametrize(("page", "name", "code", "old", "new", "expected"), [
    ("It goes to stdout (default) by `--report.sink`.\n", "a.go", FLAG, "stdout", "stderr", ["1 stdout"]),
    ("It goes to stdout (default) by `--sink`.\n", "a.go", FLAG, "stdout", "stderr", []),
    ("```\nlamp-frame: shared\n```\n", "a.rb", HEADER, "VALUE = SHARED", "VALUE = ALONE", ["2 SHARED"]),
    ("```\nlamp-cord: shared\n```\n", "a.rb", HEADER, "VALUE = SHARED", "VALUE = ALONE", []),
])  # fmt: skip
def test_a_name_is_no_help_text_and_a_constant_has_the_name_of_its_class(
    tmp_path: Path, page: str, name: str, code: str, old: str, new: str, expected: list[str]
) -> None:
    assert broken(tmp_path, page, code, code.replace(old, new), name=name) == expected


@pytest.mark.parametrize(("old", "new", "expected"), [
    ("timedelta(hours=10)", "timedelta(minutes=600)", []),
    ("Duration.of_hours(10)", "Duration.of_minutes(600)", []),
    ("10 * HOURS", "600 * MINUTES", []),
    ("timedelta(hours=10)", "timedelta(hours=12)", ["3 10 hours"]),
])  # fmt: skip
def test_the_same_quantity_in_another_unit_is_no_other_value(
    tmp_path: Path, old: str, new: str, expected: list[str]
) -> None:
    page = "# Lamp\n\n- `glow_time`: how long it glows. Default: 10 hours\n"
    assert broken(tmp_path, page, f"GLOW_TIME = {old}\n", f"GLOW_TIME = {new}\n", name="lamp.py") == expected


def test_a_finding_shows_values_as_they_are_written(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    page = "# Lamp\n\n- `glow_size`: bytes. Default: 512 MB\n"
    base = repository.commit({"README.md": page, "lamp.py": "GLOW_SIZE = 512 * 1000 * 1000\n"}, DATES[0])
    repository.commit({"lamp.py": "GLOW_SIZE = 256 * 1000 * 1000\n"}, DATES[1])
    (found,) = scan(tmp_path, DriftOptions(diff=f"{base}..HEAD")).report.findings
    assert (found.second.value, found.was) == ("512 MB", "512 MB")
