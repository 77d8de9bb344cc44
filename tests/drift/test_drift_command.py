import json
import re
import stat
from pathlib import Path

import pytest
import typer
from drift_repository import parcels
from typer.testing import CliRunner

from nornweave.cli.drift import drift
from nornweave.core.errors import ConfigError
from nornweave.disagree.drift import settings
from nornweave.disagree.drift.lock import read_baseline

app = typer.Typer()
app.command()(lambda: None)
app.command()(drift)


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["drift", *arguments])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout


def test_a_full_scan_is_advice_unless_it_is_told_to_fail(tmp_path: Path) -> None:
    code, shown = run(str(parcels(tmp_path, timeout=30)))
    assert (code, "1 disagreement in 2 files" in shown) == (0, True)
    assert run(str(tmp_path), "--fail")[0] == 1
    code, shown = run(str(parcels(tmp_path)))
    assert (code, "no disagreements in 2 files" in shown) == (0, True)


@pytest.mark.parametrize(("name", "head"), [(".drift.toml", ""), ("pyproject.toml", "[tool.nornweave.drift]\n")])
@pytest.mark.parametrize(("said", "found", "code"), [
    ("fail_from = 0.9", 1, 0), ("fail_from = 0.5", 1, 1), ("off = ['default']", 0, 0), ("exclude = ['docs/**']", 0, 0),
    ("pages = {'docs/**' = ['server/**']}", 0, 0), ("pages = {'docs/**' = ['server/**', 'src/**']}", 1, 0),
])  # fmt: skip
def test_a_repository_has_settings_of_its_own(
    tmp_path: Path, name: str, head: str, said: str, found: int, code: int
) -> None:
    (parcels(tmp_path, timeout=30) / name).write_text(head + said)
    ended, shown = run(str(tmp_path), "--json")
    assert (json.loads(shown)["counts"]["findings"], ended) == (found, code)


@pytest.mark.parametrize(("said", "named"), [
    ("of = []", "of: Extra inputs"), ("off = ['defaults']", "allowed are: default"), ("fail_from = 2", "fail_from: "),
    ("exclude = ['']", "exclude: ''"), ("pages = {a = ['']}", "''"), ("off = [", "Invalid"),
])  # fmt: skip
def test_a_wrong_setting_is_named(tmp_path: Path, said: str, named: str) -> None:
    (parcels(tmp_path) / ".drift.toml").write_text(said)
    with pytest.raises(ConfigError, match=re.escape(named)):
        run(str(tmp_path))


@pytest.mark.parametrize(("said", "named"), [
    (".".join(["a"] * 200_000) + " = 1", "too slow"), ("off = " + "[" * 30_000, "nested too deeply"),
    ("off = " + "{a=" * 30_000, "nested too deeply"), ("[" + ".".join(["a"] * 2_000) + "]", "a: Extra inputs"),
])  # fmt: skip
def test_a_file_that_takes_the_parser_for_ever_or_too_deep_is_an_error_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, named: str
) -> None:
    monkeypatch.setattr(settings, "TABLE_S", 1.0)
    (parcels(tmp_path) / ".drift.toml").write_text(said)
    with pytest.raises(ConfigError, match=named):
        run(str(tmp_path))


@pytest.mark.parametrize(
    ("said", "named"), [("tool = 3", ""), ("[tool]\nnornweave = 3", ""), ("[tool.nornweave]\ndrift = 3", "drift: ")]
)
def test_a_manifest_may_have_anything_where_settings_stand(tmp_path: Path, said: str, named: str) -> None:
    (parcels(tmp_path) / "pyproject.toml").write_text(said)
    if named:
        with pytest.raises(ConfigError, match=named):
            run(str(tmp_path))
    else:
        assert run(str(tmp_path))[0] == 0


def test_every_format_is_printed_alone_on_stdout(tmp_path: Path) -> None:
    parcels(tmp_path, timeout=30)
    assert json.loads(run(str(tmp_path), "--json")[1])["counts"]["findings"] == 1
    assert json.loads(run(str(tmp_path), "--format", "sarif")[1])["version"] == "2.1.0"
    assert run(str(tmp_path), "--format", "github")[1].startswith("::warning file=docs/settings.md,line=5,")
    assert run(str(tmp_path), "--format", "markdown")[1].startswith("<!-- nornweave drift -->\n")


def test_a_baseline_is_written_sorted_and_what_it_has_is_no_news(tmp_path: Path) -> None:
    root = parcels(tmp_path / "a", timeout=30, parcels=99)
    file = tmp_path / "baseline.json"
    assert run(str(root), "--write-baseline", str(file))[0] == 0
    stored = json.loads(file.read_text())
    abouts = [one["about"] for one in stored["findings"]]
    assert len(abouts) == 2
    assert abouts == sorted(abouts)
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    first = file.read_bytes()
    code, shown = run(str(root), "--baseline", str(file))
    assert (code, "no new disagreements" in shown, "2 known" in shown) == (0, True, True)
    assert run(str(root), "--baseline", str(file), "--write-baseline", str(file))[0] == 0
    assert file.read_bytes() == first


def test_confidence_can_be_asked_for(tmp_path: Path) -> None:
    assert run(str(parcels(tmp_path, timeout=30)), "--min-confidence", "1")[0] == 0


@pytest.mark.parametrize(
    "arguments", [["--format", "yaml"], ["--baseline", "missing.json"], ["--write-baseline", "x", "--diff", "a..b"]]
)
def test_wrong_use_is_an_error_of_configuration_which_ends_with_2(tmp_path: Path, arguments: list[str]) -> None:
    with pytest.raises(ConfigError):
        run(str(tmp_path), *arguments)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"version": 2, "findings": []}', '{"version": 1, "findings": [{}]}', "[" * 5000,
     '{"version": 1, "findings": [{"fingerprint": "x"}]}', '{"version": 1, "findings": [{"fingerprint": 7}]}'],
)  # fmt: skip
def test_a_broken_baseline_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "baseline.json"
    file.write_text(text)
    with pytest.raises(ConfigError):
        read_baseline(file)
