"""Both sides of a contradiction carry author and date of their line, not of their file, where git knows them."""

import json
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from configurations import configured
from git_repository import Repository, write
from questions import query, question_of
from recall_workspace import NO_MODELS, publish

from nornweave.ask.engine import Engine
from nornweave.ask.views.ledger import ledger_document
from nornweave.carry.ledger_file import LedgerReader, dismiss, load_ledger, published
from nornweave.carry.wiring import store_of
from nornweave.config import Settings
from nornweave.connect.connectors import load_settings
from nornweave.core.errors import QueryError
from nornweave.core.types import Domain
from nornweave.disagree.conflicts.records import NO_NOTES
from nornweave.ingest.ledger import refresh_ledger

CODE = '''"""Deliver parcels."""

DELIVERY_TIMEOUT_SECONDS = 20
VANS = {vans}
'''
PAGE = """# Settings of deliveries

| Setting | Default | Meaning |
|---|---|---|
| `DELIVERY_TIMEOUT_SECONDS` | `{timeout}` | how long a delivery may take |
"""
QUESTION = question_of("delivery timeout seconds", domains=(Domain.CODE, Domain.DOCUMENTATION))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Publish a repository: the code's file is the newest, but its line is older than the page's."""
    folder = tmp_path_factory.mktemp("template")
    made = Repository(folder / "parcels")
    made.commit({"src/deliver.py": CODE.format(vans=1), "docs/settings.md": PAGE.format(timeout=20)},
                "2024-02-01T12:00:00Z")  # fmt: skip
    made.commit({"docs/settings.md": PAGE.format(timeout=30)}, "2024-03-01T12:00:00Z", "Bo <bo@example.com>")
    made.commit({"src/deliver.py": CODE.format(vans=2)}, "2024-05-01T12:00:00Z", "Cy <cy@example.com>")
    (folder / "published").mkdir()
    synced(workspace(folder / "published", made.root))
    return folder


@pytest.fixture
def repository(template: Path, tmp_path: Path) -> Repository:
    return Repository(Path(shutil.copytree(template / "parcels", tmp_path / "parcels")))


@pytest.fixture
def settings(template: Path, repository: Repository, tmp_path: Path) -> Settings:
    """Return the copy of what was published, of the copy of its repository."""
    return workspace(Path(shutil.copytree(template / "published", tmp_path / "published")), repository.root)


def workspace(folder: Path, root: Path, kind: str = "git", **more: str) -> Settings:
    below = {Domain.CODE: "src", Domain.DOCUMENTATION: "docs"}
    sources = [
        {
            "id": f"parcels-{domain.value}",
            "domain": domain.value,
            "type": kind,
            "path": str(root / below[domain]),
            **more,
        }
        for domain in below
    ]
    return configured(folder, *sources, domain=NO_MODELS)


def synced(settings: Settings) -> Settings:
    publish(settings, Domain.CODE, Domain.DOCUMENTATION)
    return settings


def sides(settings: Settings) -> list[tuple[str, str | None, str | None]]:
    (entry,) = ledger_document(refresh_ledger(settings), published(settings))["open"]
    return [(side["value"], side["author"], side["updated_at"]) for side in entry["sides"]]


OF_LINES = [("20", "Ann", "2024-02-01T12:00:00Z"), ("30", "Bo", "2024-03-01T12:00:00Z")]


@pytest.mark.parametrize("kind", ["git", "files"])
def test_the_ledger_dates_lines_and_not_files(
    tmp_path: Path, repository: Repository, settings: Settings, kind: str
) -> None:
    settings = synced(workspace(tmp_path, repository.root, kind)) if kind == "files" else settings
    assert sides(settings) == OF_LINES
    (entry,) = refresh_ledger(settings).open
    assert "but the other side is newer (2024-03-01 against 2024-02-01)" in entry.reason
    commits = repository.git("log", "--format=%H", "--reverse").split()
    assert [side.revision for side in entry.sides] == [commits[0][:12], commits[1][:12]]
    assert load_ledger(settings) == refresh_ledger(settings)


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("The lower lock opens at 07:00.", "the lower lock opens at 08:00"),
        ("`LOCK_TIMEOUT_SECONDS` is 30 seconds.", "LOCK_TIMEOUT_SECONDS is 45 seconds"),
    ],
)
def test_the_ledger_dates_messages_and_not_their_export(tmp_path: Path, page: str, said: str) -> None:
    """Other talk follows in the same file, later than the page, and a later file is within the same hour."""
    lines = [("2026-01-10T09:00:00Z", said), ("2026-04-20T09:00:00Z", "cake is in the mess")]
    messages = [json.dumps({"id": str(number), "timestamp": at, "speaker": "Tove", "channel": "locks", "text": text})
                for number, (at, text) in enumerate(lines)]  # fmt: skip
    later = messages[1].replace("09:00", "09:20")
    chat = {"chat/log.jsonl": "\n".join(messages), "chat/b.jsonl": later}
    dates = "lock.md:\n  updated_at: 2026-03-01T10:00:00Z\n"
    write(tmp_path, {"docs/lock.md": f"# Locks\n\n{page}\n", "dates.yaml": dates, **chat})
    settings = configured(
        tmp_path,
        {"id": "docs", "domain": "documentation", "type": "files", "path": str(tmp_path / "docs"),
         "metadata": str(tmp_path / "dates.yaml")},
        {"id": "chat", "domain": "conversations", "type": "messages", "path": str(tmp_path / "chat")},
        domain=NO_MODELS,
    )  # fmt: skip
    publish(settings, Domain.DOCUMENTATION, Domain.CONVERSATIONS)
    (entry,) = refresh_ledger(settings).open
    assert "it is also the newer side (2026-03-01 against 2026-01-10)" in entry.reason


@pytest.mark.parametrize(
    ("code", "page"), [("src/tests/test_deliver.py", "docs/settings.md"), ("src/deliver.py", "docs/CHANGELOG.md")]
)
def test_tests_and_changelogs_contradict_nobody(tmp_path: Path, code: str, page: str) -> None:
    made = Repository(tmp_path / "parcels")
    said = {code: CODE.format(vans=1), page: PAGE.format(timeout=30)}
    made.commit({**said, "src/a.py": "", "docs/a.md": "# A"}, "2024-06-01T12:00:00Z")
    assert refresh_ledger(synced(workspace(tmp_path, made.root))).open == ()


def test_a_domain_that_cannot_be_read_costs_the_others_nothing(settings: Settings) -> None:
    store = store_of(settings, Domain.DOCUMENTATION)
    generation = store.current()
    assert generation is not None
    store.files.path(generation).write_bytes(b"no database")
    ledger = refresh_ledger(settings)
    assert set(ledger.generations) == {"code"}
    assert ledger.open == ()


def test_a_bare_repository_is_asked_at_the_ref_that_is_read(tmp_path: Path, repository: Repository) -> None:
    bare = tmp_path / "bare.git"
    repository.git("branch", "served")
    repository.commit({"docs/settings.md": "# Settings\n\nNone.\n"}, "2024-06-01T12:00:00Z")
    repository.git("clone", "-q", "--bare", str(repository.root), str(bare))
    file = tmp_path / "nornweave.yaml"
    sources = [
        {"id": "all-code", "domain": "code", "type": "git", "path": str(bare), "ref": "served"},
        {"id": "all-docs", "domain": "documentation", "type": "git", "path": str(bare), "ref": "served"},
    ]
    domains = {domain.value: NO_MODELS for domain in Domain}
    file.write_text(json.dumps({"data_dir": "var", "sources": sources, "domains": domains}), encoding="utf-8")
    assert sides(synced(load_settings(file, {}))) == OF_LINES


def test_a_line_that_is_not_committed_has_the_date_of_its_file(tmp_path: Path, repository: Repository) -> None:
    write(repository.root, {"docs/settings.md": "\n\n" + PAGE.format(timeout=40)})
    settings = synced(workspace(tmp_path, repository.root, "files"))
    code, page = sides(settings)
    assert code == OF_LINES[0]
    changed = (repository.root / "docs/settings.md").stat().st_mtime
    assert page[:2] == ("40", None)
    assert page[2] is not None
    assert datetime.fromisoformat(page[2]).timestamp() == pytest.approx(changed, abs=1)
    (entry,) = refresh_ledger(settings).open
    assert "both sides are of" in entry.reason, "documents are compared where a line is not known"


def test_a_line_that_moved_in_the_working_tree_is_still_known(tmp_path: Path, repository: Repository) -> None:
    write(repository.root, {"docs/settings.md": "\n\n\n" + PAGE.format(timeout=30)})
    assert sides(synced(workspace(tmp_path, repository.root, "files"))) == OF_LINES


def test_sources_with_dates_of_their_own_keep_them(tmp_path: Path, repository: Repository) -> None:
    dates = tmp_path / "dates.json"
    dates.write_text(json.dumps({name: {"updated_at": "2020-01-01"} for name in ("deliver.py", "settings.md")}))
    settings = synced(workspace(tmp_path, repository.root, "files", metadata=str(dates)))
    assert {side[1] for side in sides(settings)} == {None}


def test_folders_outside_of_repositories_keep_the_dates_of_their_files(tmp_path: Path) -> None:
    root = write(
        tmp_path / "plain", {"src/deliver.py": CODE.format(vans=1), "docs/settings.md": PAGE.format(timeout=30)}
    )
    assert [side[:2] for side in sides(synced(workspace(tmp_path, root, "files")))] == [("20", None), ("30", None)]


def test_what_is_known_of_a_version_is_not_asked_again(
    tmp_path: Path, repository: Repository, settings: Settings
) -> None:
    first = refresh_ledger(settings)
    shutil.move(repository.root / ".git", tmp_path / "away")
    ledger_file = settings.data_dir / "ledger" / "conflicts.json"
    stored = json.loads(ledger_file.read_text())
    ledger_file.write_text(json.dumps({**stored, "generations": {}}))
    assert refresh_ledger(settings).lines == first.lines
    assert len(first.lines) == 2


def conflict_of(settings: Settings) -> dict[str, Any]:
    with Engine(settings, [Domain.CODE, Domain.DOCUMENTATION], watch=False) as engine:
        (conflict,) = query(engine, QUESTION)["conflicts"]
    return dict(conflict)


def test_an_answer_names_authors_and_compares_lines(settings: Settings) -> None:
    before = conflict_of(settings)
    assert {side["author"] for side in before["claims"]} == {None}
    assert "newer: 2024-05-01 against 2024-03-01" in before["reason"], "of the files, as long as there is no ledger"
    refresh_ledger(settings)
    conflict = conflict_of(settings)
    said = {side["value"]: (side["author"], side["updated_at"]) for side in conflict["claims"]}
    assert said == {value: (author, day) for value, author, day in OF_LINES}
    assert "newer: 2024-03-01 against 2024-02-01" in conflict["reason"]
    assert before["since"] is None
    newer = next(side for side in conflict["claims"] if side["updated_at"] == conflict["since"]["date"])
    assert conflict["since"] == {
        "commit": newer["revision"], "author": newer["author"], "date": "2024-03-01T12:00:00Z", "subject": "x"
    }  # fmt: skip


def test_a_damaged_ledger_costs_an_answer_only_the_authors(settings: Settings) -> None:
    refresh_ledger(settings)
    notes = LedgerReader(settings)
    assert {origin.author for origin in notes.read().origins.values()} == {"Ann", "Bo"}
    assert notes.read() is notes.read()
    (settings.data_dir / "ledger" / "conflicts.json").write_text("{")
    assert notes.read() == NO_NOTES
    assert {side["author"] for side in conflict_of(settings)["claims"]} == {None}


def test_what_is_dismissed_stays_so_over_syncs_and_moves(repository: Repository, settings: Settings) -> None:
    """Kept by what both statements say: other lines around them, another place and a sync change nothing."""
    (entry,) = refresh_ledger(settings).open
    shown = conflict_of(settings)
    assert dismiss(settings, entry.entry_id) == shown["id"] == entry.pair_id
    assert no_conflict(settings)
    repository.commit({"docs/settings.md": "\n\nAbout parcels.\n\n" + PAGE.format(timeout=30)}, "2024-07-01T12:00:00Z")
    (moved,) = refresh_ledger(synced(settings)).open
    document = ledger_document(load_ledger(settings), published(settings))
    assert (document["open"], [each["entry_id"] for each in document["dismissed"]]) == ([], [moved.entry_id])
    assert no_conflict(settings)
    repository.commit({"docs/settings.md": PAGE.format(timeout=31)}, "2024-07-01T12:00:00Z")
    assert len(ledger_document(refresh_ledger(synced(settings)), published(settings))["open"]) == 1, "it says more"
    repository.commit({"docs/settings.md": PAGE.format(timeout=30)}, "2024-07-01T12:00:00Z")
    synced(settings)
    dismiss(settings, shown["id"], undo=True)
    assert conflict_of(settings)["id"] == shown["id"]
    for wrong in ("", "../x", "0123456789abcdeg"):
        with pytest.raises(QueryError, match="not the id of a conflict"):
            dismiss(settings, wrong)
    with pytest.raises(QueryError, match="is not dismissed"):
        dismiss(settings, shown["id"], undo=True)


def no_conflict(settings: Settings) -> bool:
    with Engine(settings, [Domain.CODE, Domain.DOCUMENTATION], watch=False) as engine:
        return not query(engine, QUESTION)["conflicts"]
