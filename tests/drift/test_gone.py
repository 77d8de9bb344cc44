"""Names that code had at the base and has nowhere at the head, while a page still says them."""

from pathlib import Path

import pytest
from git_repository import Repository

from nornweave.disagree.drift.records import Finding
from nornweave.disagree.drift.scan import DriftOptions, scan

DATES = ("2024-02-01T12:00:00Z", "2024-03-01T12:00:00Z")
CODE = """import argparse
import os

parser = argparse.ArgumentParser()
parser.add_argument("--max-retries", type=int)
parser.add_argument("--verbose")
HOME = os.environ.get("LAMP_HOME")
LEVELS = ("dim", "bright", "strobe")
# --from-a-comment is no name


def switchOn(it):
    return route("/api/lamps/on")
"""
PAGE = """# Routes

Ask for `/api/lamps/on`.

## Lamp

Give `--max-retries 5`. Not here: `--from-a-comment`, `--of-another-tool`.

Set `LAMP_HOME`.

Call `switchOn()`.

A level is `strobe`.

It lies in `src/lamp.py`.

```sh
lamp --max-retries 7
```
"""


def found(root: Path, code: str, page: str = PAGE, path: str = "src/lamp.py") -> list[Finding]:
    repository = Repository(root)
    base = repository.commit({"docs/a.md": PAGE, "src/lamp.py": CODE, "src/other.py": "OTHER = 1\n"}, DATES[0])
    if path != "src/lamp.py":
        repository.git("rm", "-q", "src/lamp.py")
    repository.commit({path: code, "docs/a.md": page}, DATES[1])
    return list(scan(root, DriftOptions(diff=f"{base}..HEAD")).report.findings)


@pytest.mark.parametrize(("old", "new", "name", "lines"), [
    ("--max-retries", "--retry-limit", "--max-retries", [7, 18]),
    ("LAMP_HOME", "LAMP_DIR", "LAMP_HOME", [9]),
    ("LAMP_HOME", "LAMPHOME", "LAMP_HOME", [9]),
    ("switchOn", "turnOn", "switchOn", [11]),
    ("/api/lamps/on", "/api/lamps/lit", "/api/lamps/on", [3]),
    (', "strobe"', "", "strobe", [13]),
])  # fmt: skip
def test_a_name_that_the_code_lost_is_found_on_every_line_that_says_it(
    tmp_path: Path, old: str, new: str, name: str, lines: list[int]
) -> None:
    (finding,) = found(tmp_path, CODE.replace(old, new))
    assert (finding.name, finding.rule, finding.moved) == (name, "nornweave/gone", "first")
    assert [one.line for one in (finding.second, *finding.also)] == lines
    assert "removed by" in finding.message and "src/lamp.py" in finding.message


@pytest.mark.parametrize("code", [
    CODE.replace('"--max-retries"', '"--max_retries"'),
    CODE.replace('"--max-retries"', '"-m", name("max-retries")'),
    CODE.replace("# --from-a-comment is no name", ""),
    CODE.replace("import os\n", "import os\nimport sys\n"),
])  # fmt: skip
def test_what_is_there_in_another_spelling_or_place_is_not_gone(tmp_path: Path, code: str) -> None:
    assert found(tmp_path, code) == []


@pytest.mark.parametrize(("old", "new"), [
    ("--max-retries", "--retries"), ("LAMP_HOME", "LAMPHOME"), ("/api/lamps/on", "/api/lamp/on"),
])  # fmt: skip
def test_what_is_renamed_in_its_place_is_gone_though_a_field_is_still_called_so(
    tmp_path: Path, old: str, new: str
) -> None:
    code = f"{CODE}max_retries, lamp_home, api_lamps_on = 3, 4, 5\n"
    repository = Repository(tmp_path)
    base = repository.commit({"docs/a.md": PAGE, "src/lamp.py": code}, DATES[0])
    repository.commit({"src/lamp.py": code.replace(old, new)}, DATES[1])
    (finding,) = scan(tmp_path, DriftOptions(diff=f"{base}..HEAD")).report.findings
    assert (finding.name, finding.moved) == (old, "first")


@pytest.mark.parametrize(("old", "new", "is_found"), [
    ("--max-retries", "--max-tries", True), ("LAMP_HOME", "LAMP_HOUSE", True), ("/api/lamps/on", "/api/lamps/up", True),
    ("--max-retries", "--verbose", False), ("--of-another-tool", "--of-a-third-tool", False),
    ("strobe", "flash", False), ("src/lamp.py", "src/other.py", False),
])  # fmt: skip
def test_a_page_that_renames_what_the_code_has(tmp_path: Path, old: str, new: str, is_found: bool) -> None:
    findings = found(tmp_path, CODE, PAGE.replace(old, new))
    assert [(one.name, one.was, one.moved) for one in findings] == ([(new, old, "second")] if is_found else [])


def test_a_key_that_a_configuration_on_a_page_sets_is_gone_with_the_code(tmp_path: Path) -> None:
    page = "# Lamp\n\n```yaml\nlamp:\n    beam_width: 3\n    colour: red\n```\n"
    repository = Repository(tmp_path)
    code = 'KEYS = node("beam_width"), node("colour")\n'
    base = repository.commit({"docs/a.md": page, "src/lamp.py": code}, DATES[0])
    changed = code.replace("beam_width", "beam_size").replace("colour", "tint")
    repository.commit({"src/lamp.py": changed}, DATES[1])
    found = scan(tmp_path, DriftOptions(diff=f"{base}..HEAD")).report.findings
    assert [one.name for one in found] == ["beam_width"]


USES = """# Lamp

```js
const lamp = new Lamp(Beam.SLOW_START);
await lamp.dimSlowly(3);
lamp.routes = { off: '/lamps/off' };
```

```js
function onDark(it) { return dark(it); }
```
"""


@pytest.mark.parametrize(("old", "new", "names"), [
    ("SLOW_START", "GENTLE", ["SLOW_START"]),
    ("dimSlowly", "fade", ["dimSlowly"]),
    ("/lamps/off", "/off", ["/lamps/off"]),
    ("onDark", "onNight", []),  # the reader's own
    ("dark(", "darken(", []),  # one word says too little
])  # fmt: skip
def test_what_a_block_of_code_calls_names_and_asks_for_is_gone_with_the_code(
    tmp_path: Path, old: str, new: str, names: list[str]
) -> None:
    code = (
        "const Beam = { SLOW_START: 1 };\nconst off = '/lamps/off';\n"
        "function dimSlowly(n) { dark(n); }\nfunction onDark() {}\n"
    )
    repository = Repository(tmp_path)
    base = repository.commit({"README.md": USES, "src/lamp.js": code}, DATES[0])
    repository.commit({"src/lamp.js": code.replace(old, new)}, DATES[1])
    assert [one.name for one in scan(tmp_path, DriftOptions(diff=f"{base}..HEAD")).report.findings] == names


def test_a_page_that_changed_with_the_code_says_nothing_old(tmp_path: Path) -> None:
    code, page = (text.replace("--max-retries", "--retry-limit") for text in (CODE, PAGE))
    assert found(tmp_path, code, page) == []


def test_a_file_that_moved_is_gone_where_the_page_says(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, CODE, path="lib/lamp.py")
    assert (finding.name, "a file that is gone" in finding.message) == ("src/lamp.py", True)


def test_a_mark_on_the_page_silences_it(tmp_path: Path) -> None:
    page = PAGE.replace("`strobe`.", "`strobe`. <!-- drift-ignore: strobe -->")
    assert found(tmp_path, CODE.replace(', "strobe"', ""), page) == []


SPELT = """# Lamp

* **beamWidth** - _integer_ - how wide.

### dimSlowly

.. option:: purge_moths

    LAMP_COLOUR=red, or --strobe-rate

| Key | |
|---|---|
| glow-time | LAMP_GLOW |

```ts
/**
 * @property flickerRate How often.
 */
```

Ask `GET /moths?n=1`, or run `lamp:clean`. It is said that `soft-fall` is a `catalog` of lamps.
"""
DECLARED = """LAMP_COLOUR LAMP_GLOW beamWidth dimSlowly purge_moths glow-time flickerRate --strobe-rate
lamp:clean /moths soft-fall"""


@pytest.mark.parametrize("name", DECLARED.split())
def test_names_that_a_page_explains_or_spells_as_names_need_no_marks(tmp_path: Path, name: str) -> None:
    go = "package lamp\n" + "".join(
        f'var v{at} = get("{one}")\n'
        for at, one in enumerate(DECLARED.split())
        if one not in ("lamp:clean", "soft-fall")
    )
    go += 'type S struct {\n\tF bool `json:"soft-fall,omitempty"`\n}\n'
    php = "<?php\nclass Clean {\n"
    php += "    public $signature = 'lamp:clean\n        {log? : A log.}';\n}\n$moths = 1; $catalog = 2;\n"
    repository = Repository(tmp_path)
    base = repository.commit({"docs/a.md": SPELT, "lamp.go": go, "clean.php": php}, DATES[0])
    repository.commit({"lamp.go": go.replace(name, "other"), "clean.php": php.replace(name, "other")}, DATES[1])
    (finding,) = scan(tmp_path, DriftOptions(diff=f"{base}..HEAD")).report.findings
    assert finding.name == name
    assert finding.first.origin is None and "removed by" in finding.first.value


RUBY = "module Quay\n class Berth\n  class TooLateError < E; end\n end\nend\n"


@pytest.mark.parametrize(("said", "path", "code"), [
    ("`Quay::Berth::TooLateError` is raised.", "a.rb", RUBY),
    ("`quay.errors.TooLateError` is raised.", "quay/errors.py", "class TooLateError(Exception):\n    pass\n"),
    ("Call `Berth.TooLateError`.", "Berth.cs", "class Berth { public void TooLateError() {} }\n"),
    ("It returns `berth::TooLateError`.", "src/a.rs", "pub mod berth { pub struct TooLateError; }\n"),
    ("See http://localhost:3000/harbour/quay-desk/TooLateError.", "a.ts", "r.get('/quay-desk/TooLateError', f)\n"),
    ("```\ncurl http://a.org/v1/quay/TooLateError\n```", "a.py", "@a.get('/quay/TooLateError')\ndef f(): ...\n"),
    ("Ask `/harbour/quay-desk/TooLateError`.", "a.js", "a.use('/harbour', r); r.get('/quay-desk/TooLateError', f)\n"),
])  # fmt: skip
def test_a_qualified_name_and_a_mounted_route_go_with_the_part_that_the_code_has(
    tmp_path: Path, said: str, path: str, code: str
) -> None:
    repository = Repository(tmp_path)
    base = repository.commit({"README.md": f"# Quay\n\n{said}\n", path: code}, "2024-02-01T12:00:00Z")
    repository.commit({path: code.replace("TooLate", "Stale")}, "2024-03-01T12:00:00Z")
    found = scan(tmp_path, DriftOptions(diff=f"{base}..HEAD")).report.findings
    assert [one.rule for one in found] == ["nornweave/gone"] and "TooLateError" in found[0].name


@pytest.mark.parametrize("said", [
    "`requests.exceptions.TooLateError` is raised.",  # of another package
    "`quay.TooLateError.md` is a file.",
    "See https://example.org/TooLateError/about/us.",
])  # fmt: skip
def test_what_belongs_to_others_does_not_go_with_a_name_of_the_code(tmp_path: Path, said: str) -> None:
    repository = Repository(tmp_path)
    code = "class TooLateError(Exception):\n    pass\n"
    base = repository.commit({"README.md": f"# Quay\n\n{said}\n", "quay.py": code}, "2024-02-01T12:00:00Z")
    repository.commit({"quay.py": code.replace("TooLate", "Stale")}, "2024-03-01T12:00:00Z")
    assert scan(tmp_path, DriftOptions(diff=f"{base}..HEAD")).report.findings == ()


FLAGS = """package lamp
type Config struct {
	Dim *bool `mapstructure:"dimmed"`
}
func init() {
	flags.Var(funcVar(a), "dimmed", "")
	flags.Var(funcVar(b), "glow", "")
	flags.Bool("q", false, "quiet")
}
"""


@pytest.mark.parametrize(("page", "old", "new", "names"), [
    ("Run `lamp -dimmed`, or set `dimmed = true`.\n",
     'Var(funcVar(a), "dimmed"', 'Var(funcVar(a), "dusk"', ["-dimmed"]),
    ("```sh\nlamp -dimmed -glow\n```\n", 'Var(funcVar(a), "dimmed"', 'Var(funcVar(a), "dusk"', ["-dimmed"]),
    ("A key is `dimmed`.\n", 'Var(funcVar(a), "dimmed"', 'Var(funcVar(a), "dusk"', []),  # the tag has the key
    ("* `-q, --quiet` says less\n", '"q"', '"s"', ["-q"]),
    ("* `-q, --moths` says less\n", '"q"', '"s"', []),  # another letter's
])  # fmt: skip
def test_a_flag_is_gone_where_it_was_declared_wherever_else_its_word_stands(
    tmp_path: Path, page: str, old: str, new: str, names: list[str]
) -> None:
    repository = Repository(tmp_path)
    base = repository.commit({"README.md": page, "lamp.go": FLAGS}, DATES[0])
    repository.commit({"lamp.go": FLAGS.replace(old, new)}, DATES[1])
    assert [one.name for one in scan(tmp_path, DriftOptions(diff=f"{base}..HEAD")).report.findings] == names


@pytest.mark.parametrize(("path", "code", "page", "is_told"), [
    (".github/workflows/site.yml", "run: git config user.mail a@example.org\n", "Set `user.mail` in git.", False),
    ("Dockerfile", "RUN ./prepare && setlamp on\n", "Run `./prepare`, then `setlamp`.", False),
    ("Dockerfile", "ENV LAMP_LEVEL=3\n", "Set `LAMP_LEVEL`.", True),
    ("Cargo.toml", '[dependencies]\nferrite = "1.2"\n', "It is made with `ferrite`.", False),
    ("lamp.toml", 'beam_width = "3"\n', "Set `beam_width`.", True),
    (".env.example", "LAMP_LEVEL=3\n", "Set `LAMP_LEVEL`.", True),
    ("src/a.py", "beam_width = 3\n", "It replaces the old `beam_width` filter.", False),
    ("src/a.py", "beam_width = 3\n", "`beam_width`: this key was removed.", False),
    ("src/a.py", "beam_width = 3\n", "We dropped support for the key `beam_width`.", False),
    ("src/a.py", "beam_width = 3\n", "Removed in 2.0: `lamp_oil` and `beam_width`.", False),
    ("src/a.py", "beam_width = 3\n", "`beam_width` was renamed.", False),
    ("src/a.py", "beam_width = 3\n", "See how many lamps have been dropped via `beam_width`.", True),
    ("src/a.py", "beam_width = 3\n", "Lamps are removed by `beam_width`.", True),
    ("src/a.py", "beam_width = 3\n", "`beam_width` moths are dropped.", True),
    ("src/a.py", "beam_width = 3\n", "The number of dropped lamps is `beam_width`.", True),
    ("src/a.py", "beam_width = 3\n", "## Deprecated keys\n\n* `beam_width`, use another.", False),
    ("src/a.py", "beam_width = 3\n", "Add the column:\n\n`text('beam_width')`\n\nAsk for `beam_width`.", False),
    ("src/a.py", "beam_width = 3\n", "Files older than this are removed. Set `beam_width`.", True),
    ("src/a.py", "beam_width = 3\n", "## Old lamps\n\nAdd `beam_width` for them.", True),
])  # fmt: skip
def test_a_name_is_gone_where_the_project_declared_it_and_the_page_believes_in_it(
    tmp_path: Path, path: str, code: str, page: str, is_told: bool
) -> None:
    repository = Repository(tmp_path)
    base = repository.commit({"README.md": f"# Lamp\n\n{page}\n", path: f"{code}other: 1\n"}, DATES[0])
    repository.commit({path: "other: 1\n"}, DATES[1])
    assert bool(scan(tmp_path, DriftOptions(diff=f"{base}..HEAD")).report.findings) is is_told


def test_a_flag_is_gone_whatever_other_words_of_its_name_changed_with_it(tmp_path: Path) -> None:
    code = """SIGNATURE = 'lamp:clean {--days= : Rows older than this number of days.}'
limit = self.option('days') or 3
fail('The days option is no number.')
"""
    repository = Repository(tmp_path)
    base = repository.commit({"a.md": "# Lamp\n\nRun `lamp:clean --days=7`.\n", "src/lamp.py": code}, DATES[0])
    changed = code.replace("--days", "--age").replace("'days'", "'age'").replace("The days", "The age")
    repository.commit({"src/lamp.py": changed}, DATES[1])
    found = scan(tmp_path, DriftOptions(diff=f"{base}..HEAD")).report.findings
    assert [one.name for one in found] == ["--days"]


@pytest.mark.parametrize(("page", "files", "is_told"), [
    ("Call `lamp_dim`.", {"lib.sh": "lamp_dim() {\n  :\n}\n"}, False),  # of a script that is not read
    ("Call `lamp_dim`.", {"lib.sh": "lamp_dimmer() {\n  :\n}\n"}, True),
    ("Give `--no-lamp-dim`.", {"src/b.py": "lamp_dim = 4\n"}, False),
    ("Give `--no-lamp-dim`.", {"src/b.py": "lamp = 4\n"}, True),
    ("Ask `GET /lamps`.", {"Makefile": "all:\n\tdocker run lamps\n"}, True),
    ("Ask `GET /lamps`.", {"serve.pl": "get \"/lamps\" => sub {};\n"}, False),
])  # fmt: skip
def test_a_name_that_another_program_or_its_negation_has_is_not_gone(
    tmp_path: Path, page: str, files: dict[str, str], is_told: bool
) -> None:
    repository = Repository(tmp_path)
    code = 'text = "lamp_dim() {"\nno = option("--no-lamp-dim")\nserve("/lamps", text)\n'
    base = repository.commit({"README.md": f"# Lamp\n\n{page}\n", "src/a.py": code}, DATES[0])
    repository.commit({"src/a.py": "text = 3\n", **files}, DATES[1])
    assert bool(scan(tmp_path, DriftOptions(diff=f"{base}..HEAD")).report.findings) is is_told


def test_what_is_imported_under_the_name_of_a_flag_is_not_the_flag(tmp_path: Path) -> None:
    code = "import trace from 'trace'\n\nconst lamp = program.option('-t, --trace', 'all of it', trace)\n"
    repository = Repository(tmp_path)
    page = "# Lamp\n\nGive `--trace`; only _traced_ lamps.\n"
    base = repository.commit({"README.md": page, "src/a.js": f"{code}log('traced')\n"}, DATES[0])
    repository.commit({"src/a.js": code.replace("'trace'", "'./log.js'")}, DATES[1])
    assert scan(tmp_path, DriftOptions(diff=f"{base}..HEAD")).report.findings == ()


@pytest.mark.parametrize(("code", "told"), [
    ('SHADES = dict(dusk=1, dawn=2)\nSETTINGS = {"shade": "dusk"}\n', []),  # another of the same shades
    ('turn("dusk")\n', ["dusk"]),  # no value of a key
])  # fmt: skip
def test_another_value_of_a_key_renames_nothing_while_code_has_the_old_one(
    tmp_path: Path, code: str, told: list[str]
) -> None:
    repository = Repository(tmp_path)
    base = repository.commit({"README.md": "# Lamp\n\nShades: `dusk` and `dawn`.\n", "lamp.py": code}, DATES[0])
    repository.commit({"lamp.py": code.replace('"dusk"', '"noon"')}, DATES[1])

    found = scan(tmp_path, DriftOptions(diff=f"{base}..HEAD")).report.findings
    assert [one.name for one in found if one.rule == "nornweave/gone"] == told


FLAG_TABLE = """static struct option options[] = {
    {"no-clobber", 0, NULL, 'c'},
    {"glow", 0, NULL, 'g'},
};
void skip(void) { puts("skipped because of the no-clobber option"); }
void help(void) { puts("  --glow, -g   shine"); }
"""


@pytest.mark.parametrize(("old", "new", "names"), [
    ('{"no-clobber"', '{"skip-existing"', ["--no-clobber"]),
    ('    {"no-clobber", 0, NULL, \'c\'},\n', "", ["--no-clobber"]),
    ('{"glow"', '{"shine"', []),  # the usage still has it
])  # fmt: skip
def test_a_message_with_the_word_of_a_flag_declares_no_flag(
    tmp_path: Path, old: str, new: str, names: list[str]
) -> None:
    repository = Repository(tmp_path)
    page = "# Lamp\n\nGive `--no-clobber` or `--glow`.\n"
    base = repository.commit({"README.md": page, "lamp.c": FLAG_TABLE}, DATES[0])
    repository.commit({"lamp.c": FLAG_TABLE.replace(old, new)}, DATES[1])
    assert [one.name for one in scan(tmp_path, DriftOptions(diff=f"{base}..HEAD")).report.findings] == names


def test_a_word_of_a_help_text_is_no_flag_that_went(tmp_path: Path) -> None:
    code = 'void help(void) { puts("  -n, --night   do not detach the lamp"); }\nint moths = 1;\n'
    repository = Repository(tmp_path)
    page = "# Lamp\n\nRun `podman run --detach lamp`.\n"
    base = repository.commit({"README.md": page, "lamp.c": code}, DATES[0])
    repository.commit({"lamp.c": code.replace("moths = 1", "moths = 2")}, DATES[1])
    assert scan(tmp_path, DriftOptions(diff=f"{base}..HEAD")).report.findings == ()


@pytest.mark.parametrize(("block", "path", "code", "old", "new", "names"), [
    ("ruby\nlamp.formatter = Quay::Formats::DeepGlow.new", "lib/quay/formats/deep_glow.rb",
     "module Quay\n  module Formats\n    class DeepGlow\n    end\n  end\nend\nrequire 'quay/formats/deep_glow'\n",
     "DeepGlow", "NestedGlow", ["Quay::Formats::DeepGlow"]),
    ("ruby\nlamp.formatter = Tide::DeepGlow.new", "lib/quay.rb", "class DeepGlow\nend\n", "DeepGlow", "Glow", []),
    ("ruby\nconfig.quay.keep_old_log = true", "lib/quay.rb",
     "def keep_old_log(app)\n  app if quay_config.keep_old_log\nend\n", "quay_config.keep_old_log",
     "quay_config.keep_log", ["keep_old_log"]),
    ("ruby\nconfig.tide.keep_old_log = true", "lib/quay.rb",
     "def keep_old_log(app)\n  app if quay_config.keep_old_log\nend\n", "quay_config.keep_old_log",
     "quay_config.keep_log", []),
    ("ruby\nconfig.quay.keep_old_log = true", "lib/quay.rb",
     "a = quay_config.keep_old_log\nb = other.keep_old_log\n", "quay_config.keep_old_log", "quay_config.log", []),
    ("php\n$lamp->setGlowRate(3);", "src/Lamp.php", "<?php\nclass Lamp { function setGlowRate($n) {} }\n",
     "setGlowRate", "setRate", ["setGlowRate"]),
    ("php\n$lamp->glowRate = 3;", "src/Lamp.php", "<?php\nclass Lamp { public $glowRate = 1; }\n",
     "glowRate", "rate", ["glowRate"]),
    ("python\nif lamp.glow_rate == 3: dim()", "lamp.py", "glow_rate = 3\n", "glow_rate", "rate", []),  # only read
])  # fmt: skip
def test_what_a_block_makes_and_sets_is_gone_with_the_code(
    tmp_path: Path, block: str, path: str, code: str, old: str, new: str, names: list[str]
) -> None:
    repository = Repository(tmp_path)
    page = f"# Lamp\n\n```{block}\n```\n"
    base = repository.commit({"README.md": page, path: code, "quay.rb": "module Quay; end\n"}, DATES[0])
    repository.commit({path: code.replace(old, new)}, DATES[1])
    found = scan(tmp_path, DriftOptions(diff=f"{base}..HEAD")).report.findings
    assert [one.name for one in found] == names


@pytest.mark.parametrize(("page", "names"), [
    ("- /healthcheck\n- /lamps\n", ["/healthcheck"]),
    ("* /healthcheck\n", ["/healthcheck"]),
    ("Not /healthcheck alone.\n", []),
    ("- /healthcheck and more\n", []),
])  # fmt: skip
def test_an_item_of_a_list_that_is_a_route_alone_is_a_name(tmp_path: Path, page: str, names: list[str]) -> None:
    repository = Repository(tmp_path)
    code = 'URLS = [(r"/healthcheck", Health), (r"/lamps", Lamps)]\n'
    base = repository.commit({"docs/a.md": f"# Open\n\n{page}", "lamp.py": code}, DATES[0])
    repository.commit({"lamp.py": code.replace("/healthcheck", "/healthz")}, DATES[1])
    found = scan(tmp_path, DriftOptions(diff=f"{base}..HEAD")).report.findings
    assert [one.name for one in found] == names


@pytest.mark.parametrize(("page", "is_said"), [
    ("<p>Call <code>switchOn</code>.</p>\n", True),
    ('<dl><dt><a name="switchOn"/>switchOn</dt><dd>Of a lamp.</dd></dl>\n', True),
    ("<p>Ask it to switchOn.</p>\n", False),
])  # fmt: skip
def test_a_name_that_html_marks_as_code_is_gone(tmp_path: Path, page: str, *, is_said: bool) -> None:
    repository = Repository(tmp_path)
    base = repository.commit({"docs/a.html": page, "src/lamp.py": CODE}, DATES[0])
    repository.commit({"src/lamp.py": CODE.replace("switchOn", "turnOn")}, DATES[1])
    names = [one.name for one in scan(tmp_path, DriftOptions(diff=f"{base}..HEAD")).report.findings]
    assert names == ["switchOn"] * is_said


GLOW_PAGE = "# Lamp\n\n| Option | Description |\n|---|---|\n| `--max-glow` | How much it glows. |\n"


@pytest.mark.parametrize(("start", "page", "names"), [
    ("#!/usr/bin/env ruby", GLOW_PAGE, ["--max-glow"]),
    ("#!/usr/bin/env ruby", GLOW_PAGE.replace("max-glow", "brightness"), []),
    ("#!/usr/bin/perl -w", GLOW_PAGE.replace("max-glow", "brightness"), []),
])  # fmt: skip
def test_a_program_without_a_suffix_has_its_flags_and_the_name_of_a_file_has_none(
    tmp_path: Path, start: str, page: str, names: list[str]
) -> None:
    repository, code = Repository(tmp_path), f'{start}\non("--max-glow [N]", "Glow")\n'
    styles = {"styles.py": 'STYLES = ["lib/css/max-glow.scss"]\n'}
    base = repository.commit({"README.md": GLOW_PAGE, "bin/lamp": code, **styles}, DATES[0])
    repository.commit({"README.md": page, "bin/lamp": code.replace("max-glow", "brightness")}, DATES[1])
    report = scan(tmp_path, DriftOptions(diff=f"{base}..HEAD")).report
    assert [one.name for one in report.findings] == names
