"""A document that was deleted at its source is gone from every place, and a receipt says so, or what holds it.

A sentence is planted, synced and deleted in each kind of source. After ``receipt --purge`` no file has a byte of it.
"""

import json
import random
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import connect
from typing import Any

import psycopg
import pytest
from command_line import HASHED, nornweave
from git_repository import Repository, write
from git_server import serve_git
from postgres_server import shared_server
from questions import query

from lab.apis import slack
from lab.apis.server import serving
from lab.apis.site import SiteServer
from lab.apis.slack import SlackServer
from lab.small_segments import small_segments
from nornweave.ask.engine import Engine
from nornweave.ask.feedback import feedback_of
from nornweave.ask.search.question import Question
from nornweave.carry.follower import Follower
from nornweave.carry.ledger_file import ledger_place
from nornweave.carry.parts import ObjectStore
from nornweave.carry.postgresql.server import close_idle
from nornweave.carry.publishing import publish_domains
from nornweave.carry.wiring import domain_folder, store_of
from nornweave.cli.receipt import make_receipt
from nornweave.config import PublishSettings, Settings
from nornweave.connect.connectors import load_settings
from nornweave.connect.inbox.deposits import InboxDocument, Receipt, ReceiptBook, Status, deposit, withdraw
from nornweave.core.access import OPERATOR
from nornweave.core.deletion import Deleted
from nornweave.core.errors import SignatureError
from nornweave.core.signatures import check_signed, own_keys
from nornweave.core.types import Domain, present
from nornweave.ingest.ledger import refresh_ledger
from nornweave.ingest.pipeline import run
from nornweave.ingest.records import SyncOptions
from nornweave.ingest.run_status import record_run
from nornweave.ingest.wiring import domain_parts

SENTENCE = "the planted zebra of building nine is a secret of the vault"
PLANTED = SENTENCE.encode()
# A document of words that compress badly: DuckDB stores them as they are.
RANDOM = random.Random(1)


def words(count: int = 60) -> str:
    return " ".join("".join(RANDOM.choices("abcdefghijklmnopqrstuvwxyz", k=7)) for _ in range(count))


@dataclass
class Planted:
    """A workspace with a source that can be changed.

    Attributes:
        settings: of the workspace.
        domain: of the source.
        source: its id.
        delete: takes the document out of the source.
        tables: returns the folder of a server's tables, all of them written.
    """

    settings: Settings
    domain: Domain
    source: str
    delete: Callable[[], object]
    tables: Callable[[], Path | None] = lambda: None

    def sync(self) -> None:
        report = run(domain_parts(self.settings, self.domain), SyncOptions(confirm_deletes=True, wait_s=0))
        assert not report.failed, report.failed
        assert not report.unavailable, report.unavailable

    @property
    def deleted(self) -> Deleted:
        """The document that has the sentence, as the published generation names it."""
        store = store_of(self.settings, self.domain)
        current = store.current()
        assert current
        with store.files.open(current) as index:
            found = [
                Deleted(domain=self.domain, source_id=row.source_id, path=row.path)
                for row in index.served_documents(("", ""), 500)
                if any(SENTENCE in text for text in store.texts_of(current, self._named(row)))
            ]
        assert len(found) == 1, found
        return found[0]

    def _named(self, row: Any) -> Deleted:
        return Deleted(domain=self.domain, source_id=row.source_id, path=row.path)


def workspace(folder: Path, domain: str, source: Mapping[str, Any] | None = None, **keys: Any) -> Settings:
    sources = [{"id": "origin", "domain": domain, **source}] if source else []
    configured = {"data_dir": "var", "sources": sources, "domains": {domain: HASHED}, **keys}
    (folder / "nornweave.yaml").write_text(json.dumps(configured), encoding="utf-8")
    return load_settings(folder / "nornweave.yaml", {})


def files(folder: Path, stack: ExitStack, **keys: Any) -> Planted:
    write(folder / "docs", {f"page{n}.md": f"# Page {n}\n\n{words()}\n" for n in range(5)})
    write(folder / "docs", {"secret.md": f"# Secret\n\n{SENTENCE}\n\n{words()}\n"})
    settings = workspace(folder, "documentation", {"type": "files", "path": "docs"}, **keys)
    return Planted(settings, Domain.DOCUMENTATION, "origin", (folder / "docs" / "secret.md").unlink)


def git(folder: Path, stack: ExitStack) -> Planted:
    upstream = Repository(folder / "served" / "upstream")
    upstream.git("config", "uploadpack.allowFilter", "true")
    pages = {f"page{n}.md": f"# Page {n}\n\n{words()}\n" for n in range(5)}
    upstream.commit({**pages, "secret.md": f"# Secret\n\n{SENTENCE}\n"}, "2026-01-01T00:00:00Z")
    server = stack.enter_context(serve_git(folder / "served"))

    def delete() -> None:
        (upstream.root / "secret.md").unlink()
        upstream.commit({"page1.md": f"# Page 1\n\n{words()}\n"}, "2026-01-02T00:00:00Z")

    url = {"type": "git", "url": server.url("upstream/.git"), "ref": "main"}
    return Planted(workspace(folder, "documentation", url), Domain.DOCUMENTATION, "origin", delete)


def inbox(folder: Path, stack: ExitStack) -> Planted:
    settings = workspace(folder, "documentation")
    root = settings.inbox(Domain.DOCUMENTATION)
    pages = [InboxDocument(source_path=f"page{n}.md", content=f"# Page {n}\n\n{words()}\n") for n in range(3)]
    deposit(root, [*pages, InboxDocument(source_path="secret.md", content=f"# Secret\n\n{SENTENCE}\n")])
    return Planted(settings, Domain.DOCUMENTATION, "inbox", lambda: withdraw(root, "secret.md"))


def web(folder: Path, stack: ExitStack) -> Planted:
    site = SiteServer()
    secret = site.put("/guide/secret", SENTENCE)
    for n in range(3):
        site.put(f"/guide/page{n}", words())
    site.put("/guide/", words(), links=["/guide/secret"])
    stack.enter_context(serving(site))
    keys = {"type": "web", "url": f"{site.url}/guide/"}
    settings = workspace(folder, "documentation", keys)

    def delete() -> None:
        site.delete(secret)
        site.change("/guide/", links=[])

    return Planted(settings, Domain.DOCUMENTATION, "origin", delete)


def slack_channel(folder: Path, stack: ExitStack) -> Planted:
    server = SlackServer()
    server.add_user("U01ALICE", "Alice")
    server.add_channel("C01", "general")
    server.say("C01", words())
    server.now += 3 * 86_400
    ts = server.say("C01", SENTENCE)
    server.now += 3 * 86_400
    server.say("C01", words())
    stack.enter_context(serving(server))
    keys = {"type": "slack", "api_url": f"{server.url}/api", "token_env": "SLACK_TOKEN"}
    return Planted(
        workspace(folder, "conversations", keys), Domain.CONVERSATIONS, "origin", lambda: server.delete("C01", ts)
    )


def postgresql(folder: Path, stack: ExitStack) -> Planted:
    postgres = shared_server()
    stack.callback(close_idle)
    planted = files(folder, stack, storage={"url": postgres.url, "schema_prefix": "deletion"})

    def tables() -> Path:
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            connection.execute("checkpoint")
        return postgres.folder / "base"

    planted.tables = tables
    return planted


KINDS = {
    "files": files, "segments": files, "git": git, "inbox": inbox, "web": web, "slack": slack_channel,
    "postgresql": postgresql,
}  # fmt: skip


@pytest.fixture(params=KINDS)
def planted(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Planted]:
    monkeypatch.setenv("SLACK_TOKEN", slack.TOKEN)
    with ExitStack() as stack:
        if request.param == "segments":
            stack.enter_context(small_segments(worn=1))
        made = KINDS[request.param](tmp_path, stack)
        made.sync()
        yield made


def holding(folder: Path) -> list[str]:
    """Return the files with a byte of it, as it is or as a mirror packs it."""
    found = [str(file) for file in folder.rglob("*") if file.is_file() and PLANTED in file.read_bytes()]
    for file in folder.rglob("*.sqlite"):
        with closing(connect(file)) as connection:
            tables = {name for (name,) in connection.execute("select name from sqlite_master")}
            rows = connection.execute("select body from records").fetchall() if "records" in tables else []
        found += [str(file) for (body,) in rows if PLANTED in zlib.decompress(body)]
    return found


def left(receipt: Mapping[str, Any]) -> set[str]:
    return {place["place"] for place in receipt["places"] if place["found"]}


def test_what_was_deleted_at_the_source_is_gone_after_a_purge(planted: Planted) -> None:
    deleted, settings = planted.deleted, planted.settings
    assert deleted.source_id == planted.source
    live = make_receipt(settings, deleted, purge=True)
    assert not live["gone"]
    assert not live["purged"], "what is indexed is not purged"
    assert {"published generation", "working rows"} <= left(live)
    tables = planted.tables()
    assert holding(tables or settings.data_dir)

    planted.delete()
    planted.sync()
    before = make_receipt(settings, deleted, purge=False)
    assert not before["gone"]
    assert "published generation" not in left(before)
    assert {"kept generations", "vectors that no text uses"} <= left(before)
    assert before["passages"] > 0

    after = make_receipt(settings, deleted, purge=True, containing=[SENTENCE])
    assert after["gone"], [place for place in after["places"] if place["found"]]
    assert after["purged"]
    assert holding(settings.data_dir) == []
    if tables := planted.tables():
        assert holding(tables) == []
    check_signed(after, own_keys(settings.data_dir))
    assert make_receipt(settings, deleted, purge=False, containing=[SENTENCE])["gone"]
    with pytest.raises(SignatureError):
        check_signed({**after, "source_path": "another.md"}, own_keys(settings.data_dir))

    planted.sync()
    assert store_of(settings, planted.domain).current(), "and it goes on"
    assert make_receipt(settings, deleted, purge=False, containing=[SENTENCE])["gone"]


@pytest.mark.parametrize("smallest", [1_000, 0])
def test_a_replica_drops_what_the_publisher_purged(tmp_path: Path, smallest: int) -> None:
    bucket = {"url": f"file://{tmp_path}/bucket"}
    with ExitStack() as stack:
        stack.enter_context(small_segments(smallest=smallest, worn=1))
        (tmp_path / "here").mkdir()
        planted = files(tmp_path / "here", stack, publish=bucket)
        follower = Follower(ObjectStore(PublishSettings.model_validate(bucket)), tmp_path / "replica")
        planted.sync()
        deleted = planted.deleted
        publish_domains(planted.settings, [planted.domain])
        assert follower.prepare()
        follower.poll()
        planted.delete()
        planted.sync()
        publish_domains(planted.settings, [planted.domain])
        follower.poll()
        assert holding(tmp_path / "bucket")
        assert holding(tmp_path / "replica")
        assert left(make_receipt(follower.settings, deleted, purge=False)) == {
            "kept generations",
            *(() if smallest else ("files of the published generation",)),
            f"every file below {follower.settings.data_dir.name}/",
        }

        made = make_receipt(planted.settings, deleted, purge=True)
        assert made["gone"], left(made)
        assert holding(tmp_path / "bucket") == []
        assert follower.poll()
        assert holding(tmp_path / "replica") == []
        assert make_receipt(follower.settings, deleted, purge=False, containing=[SENTENCE])["gone"]
        assert store_of(follower.settings, planted.domain).current(), "and it answers"


def test_the_command_names_what_is_left_and_ends_with_1(tmp_path: Path) -> None:
    planted = files(tmp_path, ExitStack())
    planted.sync()
    planted.delete()
    planted.sync()
    first = nornweave(tmp_path, "receipt", "secret.md")
    assert first.returncode == 1
    assert "gen-000001" in first.stdout
    assert "secret.md is not gone" in first.stderr
    purged = nornweave(tmp_path, "receipt", "secret.md", "--domain", "documentation", "--purge", "--json")
    assert purged.returncode == 0, purged.stderr
    receipt = json.loads(purged.stdout)
    assert receipt["gone"]
    assert all(place["found"] == 0 and place["looked_at"] for place in receipt["places"])
    stored = planted.settings.data_dir / "receipts" / f"{receipt['id']}.json"
    assert nornweave(tmp_path, "receipt", "--verify", str(stored)).returncode == 0
    stored.write_text(json.dumps({**receipt, "gone": False}), encoding="utf-8")
    assert nornweave(tmp_path, "receipt", "--verify", str(stored)).returncode == 1
    signed = json.dumps(receipt)
    for forged in ("[" * 100_000, '{"a":' * 100_000, signed.replace("{", '{"gone": false, ', 1)):
        stored.write_text(forged, encoding="utf-8")
        refused = nornweave(tmp_path, "receipt", "--verify", str(stored))
        assert refused.returncode != 0 and "is not a receipt: " in refused.stderr and "Traceback" not in refused.stderr
    assert nornweave(tmp_path, "receipt").returncode == 2


def test_what_names_the_document_goes_with_it(tmp_path: Path) -> None:
    write(tmp_path / "code", {"deliver.py": "DELIVERY_TIMEOUT_SECONDS = 20\n", "other.py": "OTHER = 1\n"})
    table = "| Setting | Default |\n|---|---|\n| `DELIVERY_TIMEOUT_SECONDS` | `30` |\n"
    write(tmp_path / "docs", {"guide.md": f"# Settings of vault-7781x\n\n{table}", "a.md": "# A\n\nText.\n"})
    sources = [
        {"id": "code", "domain": "code", "type": "files", "path": "code"},
        {"id": "docs", "domain": "documentation", "type": "files", "path": "docs"},
    ]
    settings = workspace(tmp_path, "documentation", sources=sources, domains={"documentation": HASHED, "code": HASHED})
    deleted = Deleted(domain=Domain.DOCUMENTATION, source_id="docs", path="guide.md")

    def sync() -> None:
        for domain in (Domain.CODE, Domain.DOCUMENTATION):
            report = run(domain_parts(settings, domain), SyncOptions(wait_s=0))
            record_run(domain_folder(settings, domain), report)
        refresh_ledger(settings)

    sync()
    with Engine(settings, watch=False) as engine:
        feedback = feedback_of(settings)
        for text in ("delivery timeout seconds", "where did vault-7781x go", "what is said of other things"):
            asked = Question(query_id=text, text=text, now=present(), viewer=OPERATOR, domains=(Domain.CODE,))
            feedback.shown(asked, query(engine, asked))
        asked = Question(query_id="all", text="delivery timeout seconds", now=present(), viewer=OPERATOR)
        feedback.shown(asked, query(engine, asked))
        feedback.close()
    book = ReceiptBook(settings.data_dir / "idempotency" / "documentation")
    handed_in = [InboxDocument(source_path="guide.md", content="# Guide\n")]
    book.once("key", handed_in, lambda: [Receipt("guide.md", Status.ACCEPTED)])
    (tmp_path / "docs" / "guide.md").unlink()
    sync()
    assert {"conflict ledger", "feedback", "notes of syncs"} <= left(make_receipt(settings, deleted, purge=False))
    made = make_receipt(settings, deleted, purge=True)
    assert made["gone"], [place for place in made["places"] if place["found"]]
    assert [file for file in settings.data_dir.rglob("*") if file.is_file() and b"7781x" in file.read_bytes()] == []
    questions = {json.loads(question) for _, question, _ in feedback_of(settings).answers()}
    assert questions == {"delivery timeout seconds", "what is said of other things"}, "others stay"
    assert ledger_place(settings).read()
    refresh_ledger(settings)
    assert make_receipt(settings, deleted, purge=False)["gone"]
