"""Moving a folder embeds nothing again, in any domain: what is embedded does not say where it stands."""

import shutil
from pathlib import Path

import pytest
from configurations import configured, files

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
    settings = configured(tmp_path, files("s", domain.value, "files", type=kind))
    first = run(domain_parts(settings, domain), SyncOptions())

    (tmp_path / "files" / "before").rename(tmp_path / "files" / "after")
    moved = run(domain_parts(settings, domain), SyncOptions(confirm_deletes=True))

    assert (moved.added, moved.removed, moved.chunks) == (first.added, first.added, first.chunks)
    assert (first.embedded > 0, moved.embedded) == (True, 0)
