"""A source whose entry is wrong in a way that only opening shows is unavailable; the others of its domain go on."""

from pathlib import Path

import pytest

from nornweave.connect.connectors import load_settings
from nornweave.core.errors import ConfigError
from nornweave.core.types import Domain
from nornweave.ingest.pipeline import run
from nornweave.ingest.records import SyncOptions, SyncReport
from nornweave.ingest.wiring import domain_parts

WRONG = {
    "glob": "type: files, path: more, include: ['[!']",
    "web": "type: web, url: 'https://h.example.org/', prefix: 'http://other.example.org/'",
    "ref": 'type: git, url: "https://127.0.0.1:1/x", ref: "main\\n--x"',
    "template": "type: git, path: more, web_url: 'javascript:alert(1)//{commit}{path}'",
    "own": "type: files, path: var",
    "home": "type: files, path: docs, metadata: .env",
    "feed": "type: feed, url: 'https://[bad/'",
    "user": "type: confluence, url: 'https://team.atlassian.net', user: me, token_env: NOT_SET",
}


def synced(folder: Path) -> SyncReport:
    settings = load_settings(folder / "nornweave.yaml")
    return run(domain_parts(settings, Domain.DOCUMENTATION), SyncOptions(run_id="test", wait_s=0))


def test_the_others_are_brought_up_to_date_and_its_documents_stay(tmp_path: Path) -> None:
    for name in ("docs", "more"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.md").write_text(f"# A\n\nA text of {name}.\n", encoding="utf-8")
    lines = "domains:\n  documentation: {embedding: {model: 'hash:64', dimensions: 64}}\nsources:\n"
    entry = "  - {{id: {}, domain: documentation, {}}}\n".format
    docs = lines + entry("docs", "type: files, path: docs")
    file = tmp_path / "nornweave.yaml"
    file.write_text(docs + "".join(entry(name, "type: files, path: more") for name in WRONG), encoding="utf-8")
    assert synced(tmp_path).documents == 1 + len(WRONG)
    file.write_text(docs + "".join(entry(name, keys) for name, keys in WRONG.items()), encoding="utf-8")
    (tmp_path / "docs" / "b.md").write_text("# B\n\nA newer text.\n", encoding="utf-8")
    report = synced(tmp_path)
    assert (report.added, report.removed, report.documents) == (1, 0, 2 + len(WRONG))
    assert set(report.unavailable) == set(WRONG)
    assert all(f"sources[{name}]" in str(problem) for name, problem in report.unavailable.items())


@pytest.mark.parametrize("path", ["~nobody-here/x", '"a\\0b"'])
def test_a_path_that_is_none_is_said_by_the_file(tmp_path: Path, path: str) -> None:
    file = tmp_path / "nornweave.yaml"
    file.write_text(f"sources:\n  - {{id: a, domain: code, type: files, path: {path}}}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"no home folder|not a path"):
        load_settings(file)
