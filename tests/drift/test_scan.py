import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from drift_repository import CODE, page, parcels
from git_repository import Repository, write

from nornweave.core.errors import ConfigError
from nornweave.disagree.drift.files import SourceFile, WorkingTree
from nornweave.disagree.drift.reading import read_facts
from nornweave.disagree.drift.records import Report
from nornweave.disagree.drift.scan import DriftOptions, scan


def report_of(root: Path, **options: object) -> Report:
    return scan(root, DriftOptions(**options)).report  # type: ignore[arg-type]


def told(report: Report) -> list[tuple[str, str, int, str, str, int, str]]:
    return [
        (one.name, one.second.path, one.second.line, one.second.value, one.first.path, one.first.line, one.first.value)
        for one in report.findings
    ]


def test_a_folder_that_is_no_repository_is_read_and_its_disagreement_found(tmp_path: Path) -> None:
    parcels(tmp_path, timeout=30)
    report = report_of(tmp_path)
    assert told(report) == [
        ("delivery timeout", "docs/settings.md", 5, "30 seconds", "src/parcels.py", 3, "20 seconds"),
    ]  # fmt: skip
    assert report.files == 2
    (finding,) = report.findings
    assert finding.rule == "nornweave/default"


def test_pages_that_are_right_give_nothing(tmp_path: Path) -> None:
    assert report_of(parcels(tmp_path)).findings == ()


def test_fingerprints_stay_when_lines_move_and_change_with_the_value(tmp_path: Path) -> None:
    (before,) = report_of(parcels(tmp_path, timeout=30)).findings
    write(tmp_path, {"docs/settings.md": "intro\n\n" + page(timeout=30), "src/parcels.py": "# x\n\n" + CODE})
    (moved,) = report_of(tmp_path).findings
    assert (moved.second.line, moved.fingerprint) == (before.second.line + 2, before.fingerprint)
    (other,) = report_of(parcels(tmp_path, timeout=40)).findings
    assert other.fingerprint != before.fingerprint


def test_what_the_baseline_has_is_no_news(tmp_path: Path) -> None:
    (known,) = report_of(parcels(tmp_path, timeout=30)).findings
    parcels(tmp_path, timeout=30, parcels=99)
    report = report_of(tmp_path, baseline={known.fingerprint: "", "f" * 32: "a page that was mended"})
    assert [one.name for one in report.findings] == ["max parcels"]
    assert report.known == 1
    assert report.notices == ("no longer found, in the baseline: a page that was mended",)


@pytest.mark.parametrize("row", [
    "| `DELIVERY_TIMEOUT_SECONDS` | `30` | how long <!-- drift-ignore --> |",
    "| `DELIVERY_TIMEOUT_SECONDS` | `30` | how long <!-- drift-ignore: DELIVERY_TIMEOUT_SECONDS --> |",
])  # fmt: skip
def test_a_comment_silences_a_disagreement(tmp_path: Path, row: str) -> None:
    text = page().replace("| `DELIVERY_TIMEOUT_SECONDS` | `20` | how long a delivery may take |", row)
    report = report_of(write(tmp_path, {"src/parcels.py": CODE, "docs/settings.md": text}))
    assert (report.findings, report.ignored) == ((), 1)


def test_a_comment_above_the_code_silences_it_too_but_not_under_another_name(tmp_path: Path) -> None:
    parcels(tmp_path, timeout=30)
    for comment, count in (("# drift-ignore", 0), ("# drift-ignore: max parcels", 1)):
        write(tmp_path, {"src/parcels.py": CODE.replace("DELIVERY_", f"{comment}\nDELIVERY_")})
        assert len(report_of(tmp_path).findings) == count


def test_the_newer_line_and_its_author_are_named(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    old = repository.commit({"docs/settings.md": page(30)}, "2024-02-01T12:00:00Z", "Bo <bo@example.com>")
    new = repository.commit({"src/parcels.py": CODE}, "2025-03-01T12:00:00Z")
    (finding,) = report_of(tmp_path).findings
    assert finding.second.origin is not None
    assert finding.first.origin is not None
    assert (finding.second.origin.author, finding.second.origin.revision) == ("Bo", old[:12])
    assert (finding.first.origin.author, finding.first.origin.revision) == ("Ann", new[:12])
    assert (finding.newer, f"{finding.since:%Y-%m-%d}") == ("first", "2025-03-01")


def test_lines_that_are_not_committed_are_the_newest(tmp_path: Path) -> None:
    Repository(tmp_path).commit({"docs/settings.md": page(20), "src/parcels.py": CODE}, "2024-02-01T12:00:00Z")
    write(tmp_path, {"docs/settings.md": "new\n\n" + page(30)})
    (finding,) = report_of(tmp_path).findings
    assert finding.newer == "second"
    assert finding.second.origin is not None
    assert not finding.second.origin.is_committed
    assert finding.first.origin is not None
    assert finding.first.origin.author == "Ann"


def test_only_what_the_commits_brought_is_reported(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    base = repository.commit({"docs/settings.md": page(30), "src/parcels.py": CODE}, "2024-02-01T12:00:00Z")
    repository.commit({"docs/settings.md": page(30, 99)}, "2024-03-01T12:00:00Z")
    repository.commit({"README.md": "hello\n"}, "2024-04-01T12:00:00Z")
    report = report_of(tmp_path, diff=f"{base}..HEAD")
    assert [one.name for one in report.findings] == ["max parcels"]
    assert report_of(tmp_path, diff="HEAD~1..HEAD").findings == ()
    (late,) = report_of(tmp_path, diff="HEAD~2...HEAD").findings
    assert late.second.origin is not None
    assert late.second.origin.written_at is not None
    assert late.second.origin.written_at.month == 3


def test_a_diff_in_a_folder_below_the_top_speaks_of_that_folder(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    base = repository.commit({"a/docs/settings.md": page(20), "a/src/parcels.py": CODE}, "2024-02-01T12:00:00Z")
    repository.commit({"a/docs/settings.md": page(30), "b/docs/settings.md": page(40)}, "2024-03-01T12:00:00Z")
    (finding,) = report_of(tmp_path / "a", diff=f"{base}..HEAD").findings
    assert (finding.second.path, finding.second.value) == ("docs/settings.md", "30 seconds")
    assert finding.second.origin is not None


@pytest.mark.parametrize("diff", ["main", "..", "--output=x..HEAD", "nothing..HEAD", "HEAD..nothing", "a b..c"])
def test_ranges_that_name_no_commits_are_refused(tmp_path: Path, diff: str) -> None:
    Repository(tmp_path).commit({"README.md": "x\n"}, "2024-02-01T12:00:00Z")
    with pytest.raises(ConfigError, match="diff"):
        report_of(tmp_path, diff=diff)


def test_a_diff_needs_a_repository_and_a_run_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="repository"):
        report_of(tmp_path, diff="a..b")
    with pytest.raises(ConfigError, match="not a folder"):
        report_of(tmp_path / "missing")


def test_files_that_cannot_be_read_are_named_and_stop_nothing(tmp_path: Path) -> None:
    parcels(tmp_path, timeout=30)
    (tmp_path / "src/broken.py").write_bytes(b"\0\1\2" * 100)
    (tmp_path / "src/empty.py").write_bytes(b"")
    report = report_of(tmp_path)
    assert len(report.findings) == 1
    assert [one.path for one in report.failed] == ["src/broken.py"]


def test_a_file_that_takes_too_long_is_named_and_the_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parcels(tmp_path, timeout=30)
    monkeypatch.setattr("nornweave.disagree.drift.reading.FILE_S", 0.0)
    report = report_of(tmp_path)
    assert {one.path for one in report.failed} <= {"docs/settings.md", "src/parcels.py"}
    assert all("too slow" in one.reason for one in report.failed)


def test_a_process_that_dies_between_two_files_is_replaced(tmp_path: Path) -> None:
    write(tmp_path, {f"{name}.py": "LIMIT = 3\n" for name in "abc"})
    tree = WorkingTree(tmp_path)

    def read(file: SourceFile) -> bytes:
        # Not every child of this process: some start commands for other tests.
        readers = [
            child for child in psutil.Process().children() if "nornweave.core.sandbox" in " ".join(child.cmdline())
        ]
        for reader in readers if file.path == "b.py" else ():
            reader.kill()
            reader.wait()
        return tree.read(file)

    found, failed = read_facts(tree.list(), read)
    assert [one.file.path for one in found] == ["a.py", "b.py", "c.py"]
    assert not failed


def test_modules_that_lie_in_the_folder_are_never_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parcels(tmp_path, timeout=30)
    monkeypatch.chdir(tmp_path)
    for name in (
        "nornweave/disagree/drift/reading.py",
        "nornweave/__init__.py",
        "json.py",
        "sitecustomize.py",
        "pickle.py",
    ):
        write(tmp_path, {name: "raise SystemExit(3)\n"})
        assert len(report_of(Path()).findings) == 1
        (tmp_path / name).unlink()


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    parcels(outside, timeout=30)
    inside = write(tmp_path / "inside", {"README.md": "x\n"})
    (inside / "docs").symlink_to(outside / "docs")
    (inside / "parcels.py").symlink_to(outside / "src/parcels.py")
    assert report_of(inside).files == 1
    repository = Repository(inside)
    repository.git("add", "-A")
    assert report_of(inside).files == 1


def test_programs_that_a_repository_configures_are_never_run(tmp_path: Path) -> None:
    root = tmp_path / "repository"
    repository = Repository(root)
    base = repository.commit({"docs/settings.md": page(), "src/parcels.py": CODE}, "2024-02-01T12:00:00Z")
    repository.commit(
        {"docs/settings.md": page(30), ".gitattributes": "* filter=evil diff=evil\n"}, "2024-03-01T12:00:00Z"
    )
    trap = tmp_path / "ran"
    program = f"sh -c 'touch {trap}; cat'"
    keys = [
        "core.fsmonitor", "filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "diff.evil.textconv",
        "diff.evil.command", "diff.external", "core.pager", "core.sshCommand", "gpg.program", "core.hooksPath",
    ]  # fmt: skip
    for key in keys:
        repository.git("config", key, program)
    write(root, {"docs/settings.md": page(40)})
    assert len(report_of(root).findings) == 1
    assert len(report_of(root, diff=f"{base}..HEAD").findings) == 1
    assert not trap.exists()


def test_what_git_ignores_is_not_read(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    repository.commit({"src/parcels.py": CODE, ".gitignore": "out-of-date/\n"}, "2024-02-01T12:00:00Z")
    write(tmp_path, {"out-of-date/settings.md": page(30), "docs/settings.md": page(30)})
    assert [one.second.path for one in report_of(tmp_path).findings] == ["docs/settings.md"]


def test_drift_loads_neither_the_server_nor_the_orchestration() -> None:
    code = (
        "import sys, nornweave.cli.drift\n"
        "from nornweave.disagree.drift import formats, scan\n"
        "print(sorted({'dagster', 'fastapi', 'duckdb', 'orchestration', 'evals', 'api'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.strip() == b"[]"


@pytest.mark.parametrize(("more", "expected"), [
    ("", ["glow time 30 40", "lane lock false true"]),
    ("def show(lamp):\n    lamp.lane_lock = False\n    return lamp.glow_time == 30\n",
     ["glow time 30 40", "lane lock false true"]),
    ("def dim(glow_time=35): ...\n", ["lane lock false true"]),  # code gives it no one default
        ("def start(lamps_glow_time=30): ...\n", ["lane lock false true"]),  # as an application names it
])  # fmt: skip
def test_a_full_scan_shows_the_default_that_plainly_differs(tmp_path: Path, more: str, expected: list[str]) -> None:
    page = "# Lamp\n\n| Name | Default |\n|---|---|\n| `lane_lock` | `false` |\n| `glow_time` | `30` |\n"
    files = {f"src/empty{at}.py": "def nothing(): ...\n" for at in range(5)}
    code = "def make_lamp(lane_lock=True, glow_time=40): ...\n"
    repository = Repository(tmp_path)
    repository.commit(
        {"docs/lamp.md": page, "src/lamp.py": code, "src/show.py": more or "\n", **files}, "2024-02-01T12:00:00Z"
    )
    found = scan(tmp_path, DriftOptions()).report.findings
    assert sorted(f"{one.name} {one.second.value} {one.first.value}" for one in found) == expected


SHOWN = """set('kiln', [
    'ash-tray' => false,
    'bellows'  => [],
    'flue'     => 'rz', // wide
    'heat'     => {},
]);
"""
COLD = "set('well', ['heat' => {}]);\n"


@pytest.mark.parametrize(("said", "alarms"), [
    ("Following is the default configuration. Ash is left out.", [("heat", "60", "kiln.php")]),
    ("The default settings are:", [("heat", "60", "kiln.php")]),
    ("You can override the default settings:", []),
    ("A hot kiln:", []),
    ("| Key | Default value |\n|---|---|\n| `ash-tray` | `false` |", []),
])  # fmt: skip
def test_a_block_that_a_page_calls_the_defaults_is_held_to_the_file_of_its_name(
    tmp_path: Path, said: str, alarms: list[tuple[str, str, str]]
) -> None:
    others = {f"{name}.php": COLD.replace("{}", str(heat)) for heat, name in enumerate("abcd", 5)}
    files = {
        "kiln.php": "<?php\n" + SHOWN.replace("{}", "300"),
        **{of: f"<?php\n{text}" for of, text in others.items()},
    }
    page_ = f"# Kiln\n\n### Sample\n{said}\n\n```php\n{SHOWN.replace('{}', '60')}```\n"
    report = scan(write(tmp_path, {"docs/kiln.md": page_, **files}), DriftOptions()).report
    assert [(one.name, one.second.value, one.first.path) for one in report.findings] == alarms
    heat = [one.state for one in report.options if one.name == "heat"]
    assert heat == ["differs"] if alarms else "differs" not in heat


def test_what_differs_from_other_code_than_holds_its_page_is_no_disagreement(tmp_path: Path) -> None:
    rows = {"lane_rows": "12", "lane_lamps": "31", "lane_gates": "47"}
    table = "".join(f"| `{name}` | `{value}` |\n" for name, value in rows.items())
    own = "".join(f"{name.upper()} = {value}\n" for name, value in rows.items())
    files = {
        "a.md": f"# Lanes\n\n| Key | Default |\n|---|---|\n{table}| `hall_width` | `70` |\n| `hall_lit` | `true` |\n",
        "own.py": own,
        "other.py": "HALL_WIDTH = 8\n",
        "more.py": "hall_lit = True\n",
    }
    report = scan(write(tmp_path, files), DriftOptions()).report
    assert not report.findings
    states = {one.name: (one.state, one.reason) for one in report.options}
    assert states["hall_width"] == states["hall_lit"] == ("not_compared", "other code has the values of its page")
    assert {states[name][0] for name in rows} == {"held"}


@pytest.mark.parametrize(("said", "alarms"), [
    ("5. Go 1.21 or newer", ["go"]), ("- **Go >= 1.21**", ["go"]), ("* Go 1.25.3+", []), ("- Go 1.21 is old", []),
    ("- Go 1.21+ users need it", []), ("- Go 1.21 to 1.25", []),
])  # fmt: skip
def test_an_item_that_only_names_a_version_requires_it(tmp_path: Path, said: str, alarms: list[str]) -> None:
    files = {"README.md": f"# Kiln\n\n## Requirements\n\n1. A fire\n{said}\n", "go.mod": "module kiln\n\ngo 1.25.0\n"}
    assert [one.name for one in scan(write(tmp_path, files), DriftOptions()).report.findings] == alarms
