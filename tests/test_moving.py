"""Moving a folder embeds nothing again, in any domain: what is embedded does not say where it stands."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from nornweave.connect.connectors import load_settings
from nornweave.core.types import Domain
from nornweave.ingest.pipeline import run
from nornweave.ingest.records import SyncOptions
from nornweave.ingest.wiring import domain_parts

EXAMPLES = Path(__file__).parents[1] / "examples" / "payments"


@pytest.mark.parametrize(("domain", "kind", "folder"), [
    (Domain.CODE, "files", "code"), (Domain.DOCUMENTATION, "files", "docs"),
    (Domain.CONVERSATIONS, "transcripts", "transcripts"), (Domain.RESEARCH, "files", "research"),
])  # fmt: skip
def test_moving_a_folder_embeds_nothing(tmp_path: Path, domain: Domain, kind: str, folder: str) -> None:
    shutil.copytree(EXAMPLES / folder, tmp_path / "files" / "before")
    config = {
        "data_dir": "var",
        "sources": [{"id": "s", "domain": domain.value, "type": kind, "path": "files"}],
        "domains": {domain.value: {"embedding": {"model": "hash:64", "dimensions": 64}}},
    }
    (tmp_path / "nornweave.yaml").write_text(json.dumps(config), encoding="utf-8")
    settings = load_settings(tmp_path / "nornweave.yaml", {})
    first = run(domain_parts(settings, domain), SyncOptions())

    (tmp_path / "files" / "before").rename(tmp_path / "files" / "after")
    moved = run(domain_parts(settings, domain), SyncOptions(confirm_deletes=True))

    assert (moved.added, moved.removed, moved.chunks) == (first.added, first.added, first.chunks)
    assert (first.embedded > 0, moved.embedded) == (True, 0)
