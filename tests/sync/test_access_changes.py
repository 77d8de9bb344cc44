"""Who may see a document changes with the next sync, without reading or embedding what did not change."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import configurations
import pytest

from nornweave.ask.views.texts import Deposit
from nornweave.carry.wiring import store_of
from nornweave.config import Settings
from nornweave.connect.inbox.deposits import deposit
from nornweave.core.access import OPERATOR, Viewer
from nornweave.core.types import Domain
from nornweave.index.generations.serving import ServedGeneration
from nornweave.ingest.pipeline import run
from nornweave.ingest.records import SyncOptions, SyncReport
from nornweave.ingest.wiring import domain_parts
from nornweave.read.front_matter import describe

DOCS = Domain.DOCUMENTATION
HASHED = {"embedding": {"model": "hash:16", "dimensions": 16}, "reranking": {"model": None}}
STAFF, BOARD = (Viewer(groups=frozenset({name})) for name in ("staff", "board"))


def configured(folder: Path, **source: Any) -> Settings:
    (folder / "docs").mkdir(exist_ok=True)
    return configurations.configured(folder, configurations.files("docs", **source), domain=HASHED)


def synced(settings: Settings) -> SyncReport:
    return run(domain_parts(settings, DOCS), SyncOptions(run_id="test", wait_s=0))


def seen(settings: Settings, viewer: Viewer) -> set[str]:
    """Return what a viewer sees by the generation alone, as a server does that was started before."""
    served = ServedGeneration(store_of(settings, DOCS).files)
    with served.use(viewer) as generation:
        paths = set(generation.paths())
    served.close()
    return paths


def write(folder: Path, documents: Mapping[str, str]) -> None:
    (folder / "docs").mkdir(exist_ok=True)
    for path, text in documents.items():
        (folder / "docs" / path).write_text(text, encoding="utf-8")


def test_a_source_is_restricted_and_opened_again_without_reading_anything(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "# A\n\nalpha", "b.md": "# B\n\nbeta"})
    first = synced(configured(tmp_path))
    assert (first.added, first.published) == (2, True)
    assert seen(configured(tmp_path), STAFF) == {"a.md", "b.md"}
    for access, by_staff in ((["board"], set()), (["board", "staff"], {"a.md", "b.md"}), ([], {"a.md", "b.md"})):
        settings = configured(tmp_path, access=access)
        report = synced(settings)
        assert (report.published, report.embedded, report.changed, report.added) == (True, 0, 0, 0)
        assert report.unchanged == 2, "no document was read"
        assert (seen(settings, STAFF), seen(settings, OPERATOR)) == (by_staff, {"a.md", "b.md"})
        assert not synced(settings).published, "and nothing is left to do"


def test_the_order_of_groups_is_no_change(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "alpha"})
    assert synced(configured(tmp_path, access=["staff", "board"])).published
    assert not synced(configured(tmp_path, access=["board", "staff"])).published


def test_a_side_file_restricts_a_document_without_embedding_it(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "# A\n\nalpha", "b.md": "# B\n\nbeta"})
    side = tmp_path / "side.yaml"
    side.write_text("{}")
    settings = configured(tmp_path, metadata="side.yaml")
    synced(settings)
    for stated, by_staff in (("board", {"b.md"}), ("[staff, board]", {"a.md", "b.md"}), ("[]", {"b.md"})):
        side.write_text(f"a.md: {{access: {stated}}}\n")
        report = synced(settings)
        assert (report.published, report.embedded, report.changed) == (True, 0, 1)
        assert seen(settings, STAFF) == by_staff
    assert seen(settings, OPERATOR) == {"a.md", "b.md"}


def test_every_statement_about_a_document_counts(tmp_path: Path) -> None:
    """The source, its front matter and the side file: whoever one of them leaves out sees nothing of it."""
    write(tmp_path, {"a.md": "---\naccess: [staff, board]\n---\n# A\n\nalpha"})
    (tmp_path / "side.yaml").write_text("a.md: {access: [board, ops], title: B}\n")
    settings = configured(tmp_path, metadata="side.yaml", access=["staff", "board", "ops"])
    synced(settings)
    for groups, expected in (
        ({"staff"}, set()), ({"ops"}, set()), ({"board"}, {"a.md"}), ({"staff", "ops"}, {"a.md"}), (set(), set()),
    ):  # fmt: skip
        assert seen(settings, Viewer(groups=frozenset(groups))) == expected


def test_what_is_handed_in_may_name_groups(tmp_path: Path) -> None:
    settings = configured(tmp_path)
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    documents = [
        Deposit(source_path="open.md", content="# Open", metadata={}, source_updated_at=moment),
        Deposit(source_path="board.md", content="# Board", metadata={"access": ["board"]}, source_updated_at=moment),
        Deposit(source_path="odd.md", content="# Odd", metadata={"access": {"x": 1}}, source_updated_at=moment),
        Deposit(source_path="case.md", content="# Case", metadata={" Access": "board"}, source_updated_at=moment),
        Deposit(source_path="inner.md", content="# Inner", metadata={"access": {"every_of": [["staff"], ["board"]]}},
                source_updated_at=moment),
        Deposit(source_path="both.md", content="---\naccess: staff\n---\n# Both", metadata={"access": "board"},
                source_updated_at=moment),
    ]  # fmt: skip
    deposit(settings.inbox(DOCS), documents)
    synced(settings)
    assert seen(settings, STAFF) == {"open.md"}
    assert seen(settings, BOARD) == {"open.md", "board.md", "case.md"}
    assert seen(settings, Viewer(groups=frozenset({"staff", "board"}))) == {"open.md", "board.md", "case.md", "both.md"}
    assert seen(settings, OPERATOR) == {"open.md", "board.md", "odd.md", "case.md", "inner.md", "both.md"}


@pytest.mark.parametrize(("text", "stated"), [
    ("---\naccess: staff\n---\n", "staff"), ("---\nAccess: [staff, board]\n---\n", ("staff", "board")),
    ("+++\naccess = ['staff']\n+++\n", ("staff",)), ("---\naccess: []\n---\n", ()),
    ("---\naccess: {a: 1}\n---\n", ()), ("---\naccess: 3\n---\n", ()),
    ("---\naccess: [staff, 3]\n---\n", ("staff", "")), ("---\naccess: [staff\ntitle: broken\n---\n", ()),
    ("---\ntitle: a: b: c\naccess: [staff]\n---\n", ()), ("---\ntitle: never closed\naccess: [staff]\n", ()),
    ("---\naccess:\n---\n", ()), ("---\ntitle: a: b: c\n---\n", None),
    ("---\n\nA rule, then text.\naccess: the header is broken\n", ()), ("# Title\n\naccess: staff\n", ()),
])  # fmt: skip
def test_front_matter_that_cannot_be_read_hides_what_it_meant_to_restrict(text: str, stated: object) -> None:
    assert describe(text + "\nText.", "markdown").metadata.get("access") == stated


def test_docinfo_and_meta_tags_name_a_group() -> None:
    assert describe(":access: staff\n\nTitle\n=====\n", "rst").metadata["access"] == "staff"
    html = '<html><head><meta name="access" content="staff"></head><body>x</body></html>'
    assert describe(html, "html").metadata["access"] == "staff"
