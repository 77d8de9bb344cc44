"""A repository that lives elsewhere, as its users see it: sync, query, status, from an empty folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import HASHED, nornweave
from tests.git_repository import Repository
from tests.git_server import serve_git

DATE = "2024-01-01T00:00:00Z"
WEB_URL = "https://git.example.org/team/api/-/blob/{commit}/{path}"
SECRET = "glpat-XyZ_secret.123"


def configure(folder: Path, *sources: dict[str, Any]) -> None:
    config = {
        "data_dir": "var",
        "sources": [{"type": "git", **source} for source in sources],
        "domains": dict.fromkeys(("code", "documentation"), HASHED),
    }
    (folder / "nornweave.yaml").write_text(json.dumps(config), encoding="utf-8")


@pytest.mark.slow
def test_a_repository_elsewhere_is_synced_cited_and_survives_an_outage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_TOKEN", SECRET)
    upstream = Repository(tmp_path / "served/api.git")
    upstream.git("config", "uploadpack.allowFilter", "true")
    text = "# Limits\n\nThe zebracorn limit is 418.\n"
    commit = upstream.commit({"docs/limits.md": text, "src/limits.py": "ZEBRACORN_LIMIT = 418\n"}, DATE)
    folder = tmp_path / "installation"
    folder.mkdir()
    with serve_git(upstream.root.parent) as server:
        server.login = f"x-access-token:{SECRET}"
        shared = {"url": server.url("api.git"), "credentials_env": "GIT_TOKEN", "web_url": WEB_URL}
        configure(
            folder,
            {"id": "docs", "domain": "documentation", "include": ["docs/*"], **shared},
            {"id": "code", "domain": "code", "include": ["src/*"], **shared},
        )
        done = nornweave(folder, "sync", "--json")
        reports = json.loads(done.stdout)
        assert done.returncode == 0, done.stderr
        assert [reports[domain]["added"] for domain in ("documentation", "code")] == [1, 1]
        assert len(list((folder / "var/git").iterdir())) == 1

        server.login = "x-access-token:renewed"
        done = nornweave(folder, "sync", "--json")
        assert done.returncode == 1
        reason = json.loads(done.stdout)["documentation"]["unavailable"]["docs"]
        assert "not allowed to read it (401): renew the token in GIT_TOKEN" in reason

    status = nornweave(folder, "status")
    assert "unavailable: docs: " in " ".join(status.stdout.split())
    assert SECRET not in done.stdout + done.stderr + status.stdout + status.stderr
    found = nornweave(folder, "query", "zebracorn limit", "--domain", "documentation", "--json")
    citation = json.loads(found.stdout)["items"][0]["citation"]
    assert citation["url"] == f"https://git.example.org/team/api/-/blob/{commit}/docs/limits.md?plain=1#L1-3"
    assert not [file for file in folder.rglob("*") if file.is_file() and SECRET.encode() in file.read_bytes()]
