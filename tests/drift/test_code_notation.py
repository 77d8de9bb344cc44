"""How a repository writes defaults in its code is learned from its pages: no framework is known."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from git_repository import Repository, write

from nornweave.disagree.drift.formats import as_json, coverage_sentence
from nornweave.disagree.drift.induced.code import TESTED, Definitions, code_statements
from nornweave.disagree.drift.scan import DriftOptions, scan
from nornweave.disagree.facts.documentation.walk import flag_of
from nornweave.disagree.facts.names import Name, read_name
from nornweave.disagree.facts.passage import says_name
from nornweave.disagree.facts.values import Value

DATES = ("2024-02-01T12:00:00Z", "2024-03-01T12:00:00Z")
VALUES = {"flush_rows": 10, "retry_rounds": 7, "queue_slots": 31, "merge_width": 64, "spare_lanes": 12}
Writer = Callable[[str, int], str]


def only_limit(name: Name) -> Name | None:
    return name if name.name == "limit" else None


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


NOTATIONS: dict[str, tuple[str, Writer]] = {
    "builder in PHP": (
        "src/Configuration.php",
        lambda name, value: f"        ->integerNode('{name}')\n            ->defaultValue({value})\n        ->end()\n",
    ),
    "tags in Go": (
        "config/config.go",
        lambda name, value: f'\t{camel(name).capitalize()} int `default:"{value}" yaml:"{camel(name)}"`\n',
    ),
    "macro in Ruby": ("lib/config.rb", lambda name, value: f"    number_setting :{name}, {value}\n"),
    "function in Rust": (
        "src/config.rs",
        lambda name, value: f"    pub fn default_{name}() -> u64 {{\n        {value}\n    }}\n",
    ),
    "chain in Java": (
        "src/main/java/Conf.java",
        lambda name, value: f'  static final Option X{value} = Options.key("app.{name}")\n'
        f"      .intType()\n      .defaultValue({value})\n      .withDescription(\"what it is\");\n",
    ),
    "lookup in Python": (
        "app/options.py", lambda name, value: f"    x{value} = integer(get(section, '{name}', {value}))\n"
    ),
    "choice in JavaScript": (
        "lib/app.js",
        lambda name, value: f"  this.a{value} = o.{camel(name)} === undefined ? {value} : parse(o.{camel(name)});\n",
    ),
    "attribute in Rust": (
        "src/args.rs",
        lambda name, value: f'    /// what it is\n    #[arg(long, default_value = "{value}")]\n    pub {name}: u64,\n',
    ),
    "convention of Gradle": ("src/A.kt", lambda name, value: f"    lanes.{camel(name)}.convention({value})\n"),
    "default of an object": ("src/options.ts", lambda name, value: f"  options.{camel(name)}.setDefault({value});\n"),
    "method of TypeScript": ("src/schema.ts", lambda name, value: f"  .add('{camel(name)}', t.number().or({value}))\n"),
}  # fmt: skip


def page(values: dict[str, int]) -> str:
    rows = "".join(f"| `{name}` | int | {value} | what it is |\n" for name, value in values.items())
    return f"# Options\n\n| Option | Type | Default | |\n|---|---|---|---|\n{rows}"


@pytest.mark.parametrize("notation", NOTATIONS)
def test_a_default_that_code_writes_in_its_own_way_is_held(tmp_path: Path, notation: str) -> None:
    path, written = NOTATIONS[notation]

    def code(values: dict[str, int]) -> str:
        return "".join(written(name, value) for name, value in values.items())

    repository = Repository(tmp_path)
    base = repository.commit({"docs/options.md": page(VALUES), path: code(VALUES)}, DATES[0])
    changed = {**VALUES, "queue_slots": 45}
    repository.commit({path: code(changed)}, DATES[1])
    found = scan(tmp_path, DriftOptions(diff=f"{base}..HEAD")).report.findings
    assert [(one.name, one.moved, one.was) for one in found] == [("queue slots", "first", "31")]
    repository.commit({"docs/options.md": page(changed)}, DATES[1])
    assert scan(tmp_path, DriftOptions(diff=f"{base}..HEAD")).report.findings == (), "page and code changed together"


def test_what_one_change_breaks_on_several_pages_is_one_finding(tmp_path: Path) -> None:
    code = "".join(f"DEFAULT_{name.upper()} = {value}\n" for name, value in VALUES.items())
    repository = Repository(tmp_path)
    pages = {f"docs/{number}.md": page(VALUES) for number in range(3)}
    base = repository.commit({**pages, "app.py": code}, DATES[0])
    repository.commit({"app.py": code.replace("31", "45").replace("64", "32")}, DATES[1])
    found = scan(tmp_path, DriftOptions(diff=f"{base}..HEAD")).report.findings
    assert sorted((one.name, 1 + len(one.also)) for one in found) == [("merge width", 3), ("queue slots", 3)]


@pytest.mark.parametrize("written", ["Conf_{pascal} = {value};", "cfg{pascal} = {value};", "int opt_{name} = {value};"])
def test_a_word_that_programs_put_before_documented_names_is_learned(tmp_path: Path, written: str) -> None:
    def code(values: dict[str, int]) -> str:
        lines = (written.format(pascal=name.title().replace("_", ""), name=name, value=value)
                 for name, value in values.items())  # fmt: skip
        return "void set_defaults(void) {\n" + "\n".join(lines) + "\n}\n"

    repository = Repository(tmp_path)
    base = repository.commit({"docs/options.md": page(VALUES), "src/conf.c": code(VALUES)}, DATES[0])
    assert [one.state for one in scan(tmp_path, DriftOptions()).report.options] == ["held"] * len(VALUES)
    repository.commit({"src/conf.c": code({**VALUES, "queue_slots": 45})}, DATES[1])
    found = scan(tmp_path, DriftOptions(diff=f"{base}..HEAD")).report.findings
    assert [(one.name, one.moved, one.was) for one in found] == [("queue slots", "first", "31")]


def test_a_word_that_pages_write_too_is_a_part_of_the_name(tmp_path: Path) -> None:
    longest = {f"max_{name}": value for name, value in VALUES.items()}
    code = "".join(f"{name} = {value + 1}\n" for name, value in longest.items())
    write(tmp_path, {"docs/options.md": page({**VALUES, **longest}), "app.py": code})
    report = scan(tmp_path, DriftOptions()).report
    assert {one.name for one in report.options if one.code} <= longest.keys()


@pytest.mark.parametrize("code", [
    "if (limit < 3) { log(limit); limit = 5; }", "if limit > 5:\n    limit = 5\n", "if (limit >= 5) limit = 5;",
])  # fmt: skip
def test_a_value_that_is_set_because_the_old_one_is_out_of_bounds_is_no_default(code: str) -> None:
    assert {one.standing for one in code_statements(code, "a.c", only_limit, Definitions(()))} == {TESTED}


@pytest.mark.parametrize("code", [
    "add('limit', metavar='WORD')", 'arg("limit").value_name("WORD")', 'log("none")\nif limit:\n    run()\n',
])  # fmt: skip
def test_what_help_calls_a_value_and_an_argument_before_a_condition_are_no_defaults(code: str) -> None:
    assert {one.standing for one in code_statements(code, "a.py", only_limit, Definitions(()))} == {TESTED}


@pytest.mark.parametrize(("said", "written"), [
    ("(default 0.0.0.0)", '"0.0.0.0"'), ("(default `{{.Reader}}`)", '"{{.Reader}}"'),
    ("(default: `10.1.0.0/16`)", '"10.1.0.0/16"'),
    ("(default `lamp.readers.QuickFileReader`)", '"lamp.readers.QuickFileReader"'),
])  # fmt: skip
def test_an_address_a_template_and_a_class_are_held(tmp_path: Path, said: str, written: str) -> None:
    items = "".join(f"* `LAMP_{name.upper()}` - what it is {number} (default {value})\n"
                    for number, (name, value) in enumerate(VALUES.items()))  # fmt: skip
    code = "".join(f'\ta{value} := env.Or("LAMP_{name.upper()}", "{value}")\n' for name, value in VALUES.items())
    write(tmp_path, {"README.md": f"# Lamp\n\n{items}* `LAMP_FILE_READER` - reads files {said}\n",
                     "lamp.go": f'func f() {{\n{code}\tr := env.Or("LAMP_FILE_READER", {written})\n}}\n'})  # fmt: skip
    states = {one.name: one.state for one in scan(tmp_path, DriftOptions()).report.options}
    assert states["LAMP_FILE_READER"] == "held"


@pytest.mark.parametrize(("text", "suffix", "expected"), [
    ("limit = 5  # limit = 9\n", ".py", ["5"]),
    ("/* limit: 9 */ const limit = 5;\n", ".js", ["5"]),
    ("/* never closed limit = 9", ".c", []),
    ("'never closed\nlimit = 5\n", ".c", ["5"]),
    ("limit(30 * 2)\n", ".py", ["60"]),
    ("x = 9\n\n\n\n\nlimit\n", ".py", []),
    ("other = 4; limit = f(x)\n", ".c", []),
    ("S {\n  other: 4,\n  limit: f(x),\n}\n", ".rs", []),
    ("f(other=4, limit=x())\n", ".py", []),
    ("var other = 4\nvar limit = f()\n", ".swift", []),
    ("S {\n  limit: f(x),\n  other: 4,\n}\n", ".rs", []),
    ("{ default: 4, name: 'limit' }\n", ".js", ["4"]),
    ("limit: { type: Number, default: 4 },\n", ".js", ["4"]),
])  # fmt: skip
def test_literals_beside_a_name_are_read(text: str, suffix: str, expected: list[str]) -> None:
    found = code_statements(text, f"a{suffix}", only_limit, Definitions(()))
    assert [one.value.text for one in found] == expected


@pytest.mark.parametrize(("texts", "written", "path", "expected"), [
    ({"a.h": "#define PORT_LIMIT 22222 /* of all */\n"}, "PORT_LIMIT", "b.c", ("a.h", 0, "22222")),
    ({"a.h": "#define PORT_A PORT_B\n", "b.h": "\n#define PORT_B (2 * 8)\n"}, "PORT_A", "c.c", ("b.h", 1, "16")),
    ({"A.java": "  public static final int MOST = 7; // 9\n"}, "A.MOST", "B.java", ("A.java", 0, "7")),
    ({"a.go": "const DefaultPort int = 7\n"}, "pkg.DefaultPort", "b.go", ("a.go", 0, "7")),
    ({"a.go": 'const (\n\tlampDim Mode = "dim"\n\tlampMode = lampDim // of all\n)\n'}, "lampMode", "a.go",
     ("a.go", 1, "dim")),
    ({"a.js": "export const lampMode = 'dim';\n"}, "lampMode", "a.js", ("a.js", 0, "dim")),
    ({"a.go": "func f() {\n\tlampMode = 7\n}\n"}, "lampMode", "a.go", None),
    ({"a.ts": "export const MOST: number = 7\n"}, "MOST", "b.ts", ("a.ts", 0, "7")),
    ({"A.java": "int MOST = 7;\n", "B.java": "int MOST = 8;\n"}, "MOST", "C.java", None),
    ({"A.java": "int MOST = 7;\n", "B.java": "int MOST = 8;\n"}, "MOST", "B.java", ("B.java", 0, "8")),
    ({"A.java": "int MOST = 7;\n", "B.java": "int MOST = 8;\n"}, "A.MOST", "C.java", ("A.java", 0, "7")),
    ({"a.c": "#define MOST LEAST\n#define LEAST MOST\n"}, "MOST", "a.c", None),
    ({"a.c": "#define MOST other + 3\n"}, "MOST", "a.c", None),
    ({"a.py": "MOST == 7\n"}, "MOST", "a.py", None),
])  # fmt: skip
def test_a_constant_stands_for_what_one_file_defines(
    texts: dict[str, str], written: str, path: str, expected: tuple[str, int, str] | None
) -> None:
    found = Definitions(texts.items()).find(written, path)
    assert (found and (found.path, found.line, found.value and found.value.text)) == expected


@pytest.mark.parametrize(("constants", "code", "expected"), [
    ("int MOST = 7;", "limit(A.MOST)", ["7"]),
    ('String LIMIT_KEY = "limit";', "get(A.LIMIT_KEY, 7)", ["7"]),
    ("", "limit = Level.HIGH", ["Level.HIGH"]),
    ("", "limit = LEVEL_HIGH", ["LEVEL_HIGH"]),
    ("", "limit(); node->defaultTrue();", []),
    ("", "x('limit')->defaultTrue();", ["true"]),
    ("", "limit = other.field", []),
])  # fmt: skip
def test_names_and_values_may_be_constants_and_members(constants: str, code: str, expected: list[str]) -> None:
    known = Definitions([("A.java", constants)])
    found = code_statements(code, "B.java", only_limit, known)
    assert [one.value.text for one in found] == expected


@pytest.mark.parametrize(("line", "expected"), [
    ("  -p, --port <PORT>", "--port"), ("  -i HOST, -H HOST, --interface HOST  Listen on -x", "--interface"),
    ("  -T client_limit    Most clients", "client_limit"), ("  -v                 Say more", "-v"),
    ("  --workers=N  Threads", "--workers"), ("lamp --port 3", None), ("  - a bullet", None), ("", None),
])  # fmt: skip
def test_a_line_of_help_is_about_its_longest_flag(line: str, expected: str | None) -> None:
    found = flag_of(line)
    assert (found and found.text) == expected
    assert found is None or line[found.start : found.end] == found.text


def test_a_string_that_is_the_name_again_is_no_value_of_it() -> None:
    name = read_name("_filename")
    assert name is not None
    assert says_name(Value("string", "file-name", is_fallback=False), Name("file name"))
    assert says_name(Value("string", "group_filename", is_fallback=True), name)
    assert not says_name(Value("string", "group_filename"), name)
    assert not says_name(Value("string", "users.txt", is_fallback=True), name)


HELP = """# Lamp

```
Options:
  -p, --port <PORT>
          Port to use

          [env: LAMP_PORT=]
          [default: 8080]

      --workers <WORKERS>
          Threads

          [default: 4]

  -S, --default-sorting-method <METHOD>
          Sort by it [default: name]

      --color <COLOR>  Colours [default: dark] [possible values: dark, bright]
```

The default is

    lamp.shade.mode = soft
"""
CLAP = """
struct Args {
    #[arg(short = 'p', long = "port", default_value = "8080")]
    port: u16,
    #[arg(long = "workers", default_value = "4")]
    workers: usize,
    #[arg(long = "default-sorting-method", default_value = "name")]
    sorting: Method,
    #[arg(long = "color", default_value = "dark")]
    color: Color,
}
"""
SHADE = 'package lamp\n\nvar shade = Lamp{\n\tLampShadeMode: "soft",\n}\n'


@pytest.mark.parametrize(("old", "new", "name"), [
    ('"8080"', '"8000"', "port"), ('"4"', '"6"', "workers"), ('"name"', '"date"', "sorting method"),
    ('"dark"', '"bright"', "color"), ('"soft"', '"hard"', "lamp shade mode"),
])  # fmt: skip
def test_words_and_numbers_of_help_in_a_fence_are_held(tmp_path: Path, old: str, new: str, name: str) -> None:
    repository = Repository(tmp_path)
    base = repository.commit({"README.md": HELP, "src/args.rs": CLAP, "shade.go": SHADE}, DATES[0])
    repository.commit({"src/args.rs": CLAP.replace(old, new), "shade.go": SHADE.replace(old, new)}, DATES[1])
    found = scan(tmp_path, DriftOptions(diff=f"{base}..HEAD")).report.findings
    assert (name, "first") in [(one.name, one.moved) for one in found]


@pytest.mark.parametrize("unit", ["/*", '"', "'", "limit(", "limit = ", "[", "`", '"""', 'limit:"', "0x", "\\"])
def test_hostile_code_is_read_in_time_that_grows_with_its_length(unit: str) -> None:
    list(code_statements("limit\n" + unit * 100_000, "a.go", only_limit, Definitions(())))


def test_a_test_inside_of_a_program_does_not_hide_its_default(tmp_path: Path) -> None:
    tests = '#[cfg(test)]\nmod tests {\n    #[test]\n    fn reads() {\n        let a = r#"\nport: 3000\n"#;\n    }\n}\n'
    code = f"fn default_port() -> u16 {{\n    5000\n}}\nfn default_max_age() -> u64 {{\n    90\n}}\n\n{tests}"
    flags = "  -p, --port <port>     the port [default: 5000]\n      --max-age <secs>  age [default: 90]\n"
    page = f"# Tool\n\n```\n{flags}```\n"
    repository = Repository(tmp_path)
    repository.commit({"README.md": page, "src/args.rs": code}, DATES[0])
    repository.commit({"src/args.rs": code.replace("    5000", "    6000")}, DATES[1])
    (found,) = scan(tmp_path, DriftOptions(diff="HEAD~1..HEAD")).report.findings
    assert (found.name, found.first.value, found.first.line) == ("port", "6000", 1)


def test_a_generic_name_does_not_take_the_default_of_a_longer_one(tmp_path: Path) -> None:
    rows = "| `timeout` | `900` |\n| `rollingTimeout` | `900` |\n| `warm` | `true` |\n"
    page = f"# T\n\n| Option | Default |\n|---|---|\n{rows}"
    code = "class C { constructor(options) {\n this.options.timeout = options.timeout ?? 900;\n"
    code += " this.warm = options.warm !== false;\n}}\n"
    other = "class S { constructor(options) {\n this[TIMEOUT] = options.rollingTimeout || 900;\n}}\n"
    repository = Repository(tmp_path)
    repository.commit({"README.md": page, "lib/a.js": code, "lib/s.js": other}, DATES[0])
    both = {"README.md": page.replace("rollingTimeout` | `900", "rollingTimeout` | `800"),
            "lib/s.js": other.replace("900", "800")}  # fmt: skip
    repository.commit(both, DATES[1])
    assert scan(tmp_path, DriftOptions(diff="HEAD~1..HEAD")).report.findings == ()
    # A literal that the code has no more is no name that is gone.
    repository.commit({"lib/a.js": code.replace("false", "null"), "lib/s.js": other.replace("||", "??")}, DATES[1])
    assert "gone" not in {one.attribute for one in scan(tmp_path, DriftOptions(diff="HEAD~1..HEAD")).report.findings}


LUA = """-- Lamps. glow_time = 9
local M = {}
M.defaults = {
  fan_speed = 20, --[[ turns = 3 ]]
  shade = "dim",
}
"""
ELIXIR = '''defmodule Lamp do
  @moduledoc """
  Set `fan_speed: 9`.
  """
  @defaults [fan_speed: 20, shade: :dim]
end
'''


@pytest.mark.parametrize(("name", "code"), [("lua/lamp/config.lua", LUA), ("lib/lamp.ex", ELIXIR)])
def test_a_table_of_a_language_without_a_grammar_is_read(tmp_path: Path, name: str, code: str) -> None:
    page = "# Lamp\n\n| Option | Default |\n|---|---|\n| `fan_speed` | 20 |\n| `shade` | `dim` |\n| `glow_time` | 9 |\n"
    repository = Repository(tmp_path)
    base = repository.commit({"README.md": page, name: code}, "2024-02-01T12:00:00Z")
    repository.commit({name: code.replace("20", "30")}, "2024-03-01T12:00:00Z")

    report = scan(tmp_path, DriftOptions(diff=f"{base}..HEAD")).report

    assert [(one.second.line, one.first.value) for one in report.findings] == [(5, "30")]
    assert {one.name: one.reason for one in report.options}["glow_time"] == "the code has no such name"


def test_programs_in_languages_that_are_not_read_are_counted(tmp_path: Path) -> None:
    page = "# Lamp\n\n| Option | Default |\n|---|---|\n| `glow_time` | 9 |\n"
    write(tmp_path, {"README.md": page, "lamp.py": "A = 1\n", "lib/Lamp.pm": "use strict;\nmy $glow_time = 9;\n"})

    report = scan(tmp_path, DriftOptions()).report

    assert report.coverage is not None
    assert (report.coverage.programs, report.coverage.unread) == (1, {"perl": 1})
    assert [one.reason for one in report.options] == ["the code that is read has no such name"]
    assert json.loads(as_json(report))["coverage"]["unread"] == {"perl": 1}
    assert coverage_sentence(report.coverage).startswith("1 of 2 programs are in languages that are not read (perl); ")


def test_a_tag_with_options_names_its_key(tmp_path: Path) -> None:
    page = "# Lamp\n\n## Keys\n\n- `glow-in-dark` - whether it glows\n- `dim-late` - whether it dims late\n"
    code = 'package lamp\n\ntype Lamp struct {\n\tGlows bool `json:"glow-in-dark,omitempty" yaml:"glow"`\n}\n'
    write(tmp_path, {"README.md": page, "lamp.go": code})

    reasons = {one.name: one.reason for one in scan(tmp_path, DriftOptions()).report.options}

    assert "no such name" not in reasons["glow-in-dark"]
    assert reasons["dim-late"] == "the code has no such name"


@pytest.mark.parametrize(("said", "written"), [
    ("glow", 'strcpy(Conf_RowName, "glow");'), ("empty", 'strlcpy(Conf_RowName, "", sizeof(Conf_RowName));'),
    ("glow", "strlcpy( Conf_RowName, GLOW, 9 );"),
])  # fmt: skip
def test_a_text_that_c_copies_into_a_variable_is_its_default(tmp_path: Path, said: str, written: str) -> None:
    known = {"".join(part.capitalize() for part in name.split("_")): str(value) for name, value in VALUES.items()}
    terms = "".join(f".TP\n\\fB{name}\\fR (type)\nWhat it is.\nDefault: {value}.\n"
                    for name, value in {**known, "RowName": said}.items())  # fmt: skip
    code = "".join(f"    Conf_{name} = {value};\n" for name, value in known.items())
    code = f'#define GLOW "glow"\nvoid set(void) {{\n{code}    {written}\n}}\n'
    write(tmp_path, {"man/lamp.5": f".TH lamp 5\n.SH OPTIONS\n{terms}", "src/conf.c": code})
    states = {one.name: one.state for one in scan(tmp_path, DriftOptions()).report.options}
    assert states["RowName"] == "held"


@pytest.mark.parametrize("type_", ["Option<Hue>", "Hue"])
@pytest.mark.parametrize("default", ["#[default]\n    ", '#[default]\n    #[serde(alias = "d")]\n    // dim\n    '])
def test_the_default_of_an_enumeration_is_that_of_a_field_of_its_type(tmp_path: Path, type_: str, default: str) -> None:
    code = "pub enum Hue {{\n    {}Dim,\n    {}VeryDark,\n}}\npub struct Config {{\n    pub lamp_hue: {},\n}}\n"
    page = "# Reference\n\n#### `lamp_hue`\n\n- Default: `dim`\n"
    repository = Repository(tmp_path)
    base = repository.commit({"docs/a.md": page, "src/config.rs": code.format(default, "", type_)}, DATES[0])
    repository.commit({"src/config.rs": code.format("", default, type_)}, DATES[1])
    found = scan(tmp_path, DriftOptions(diff=f"{base}..HEAD")).report.findings
    assert [(one.name, one.was) for one in found] == [("lamp hue", '"dim"')]


@pytest.mark.parametrize("method", ["unwrap_or", "value_or"])
def test_what_a_field_falls_back_to_is_held_and_not_another_type_with_the_same_field(
    tmp_path: Path, method: str
) -> None:
    values = {**{name: str(value) for name, value in VALUES.items()}, "binary": "false"}
    entries = "".join(f"#### `default.{name}`\n\n- Default: {value}\n\nWhat.\n\n" for name, value in values.items())
    code = "".join(f"    fn {name}(&self) -> T {{\n        self.{name}.{method}({value})\n    }}\n"
                   for name, value in values.items())  # fmt: skip
    other = "impl Default for Policy {\n    fn default() -> Self {\n        Self { binary: false }\n    }\n}\n"
    repository = Repository(tmp_path)
    files = {"docs/a.md": f"# Reference\n\n{entries}", "src/config.rs": code, "src/policy.rs": other}
    base = repository.commit(files, DATES[0])
    options = scan(tmp_path, DriftOptions()).report.options
    assert {(one.state, one.code.partition(":")[0]) for one in options} == {("held", "src/config.rs")}
    repository.commit({"src/config.rs": code.replace("(false)", "(true)")}, DATES[1])
    assert [one.name for one in scan(tmp_path, DriftOptions(diff=f"{base}..HEAD")).report.findings] == ["binary"]


@pytest.mark.parametrize("signature", [
    ".. class:: Lamp(handler, port=8025)",
    ".. py:function:: lamps.light(\\\n    handler, \\\n    port: int = 8025, \\\n    )",
])  # fmt: skip
def test_a_signature_of_restructuredtext_is_held(tmp_path: Path, signature: str) -> None:
    code = "class Lamp:\n    def __init__(self, handler, port: int = 8025):\n        self.port = port\n"
    repository = Repository(tmp_path)
    base = repository.commit({"docs/api.rst": f"API\n===\n\n{signature}\n\n    Lights.\n", "lamp.py": code}, DATES[0])
    repository.commit({"lamp.py": code.replace("8025", "2525")}, DATES[1])
    found = scan(tmp_path, DriftOptions(diff=f"{base}..HEAD")).report.findings
    assert [(one.name, one.was) for one in found] == [("port", "8025")]
