"""Where the ledger is: what a file and a row in PostgreSQL promise alike."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres_server import PostgresServer, postgres_server

from nornweave.carry import ledger_file as file_module
from nornweave.carry.ledger_file import LedgerFile, LedgerPlace
from nornweave.carry.postgresql import ledger as row_module
from nornweave.carry.postgresql.ledger import LedgerRow
from nornweave.carry.postgresql.server import Server
from nornweave.core.errors import StoreError


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with pytest.MonkeyPatch.context() as patch, postgres_server(patch) as running:
        yield running


@pytest.fixture(params=["file", "postgresql"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[LedgerPlace, LedgerPlace]:
    """Return the same place as two processes see it."""
    if request.param == "file":
        return LedgerFile(tmp_path / "ledger" / "conflicts.json"), LedgerFile(tmp_path / "ledger" / "conflicts.json")
    running: PostgresServer = request.getfixturevalue("server")
    return LedgerRow(Server(running.url, "workspace")), LedgerRow(Server(running.url, "workspace"))


def test_it_is_read_elsewhere_as_it_was_written(
    places: tuple[LedgerPlace, LedgerPlace], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_module, "LOOK_EVERY_S", 0)
    writing, reading = places
    assert (reading.read(), reading.version()) == (None, None)
    versions = []
    for document in ('{"what": "Größe"}', "{}"):
        with writing.locked():
            writing.write(document)
        assert reading.read() == document
        versions += [reading.version(), reading.version()]
    assert versions[0] == versions[1] != versions[2] == versions[3]


def test_only_one_writes(places: tuple[LedgerPlace, LedgerPlace], monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = places
    with one.locked():
        with monkeypatch.context() as at_once, pytest.raises(StoreError):
            for module in (file_module, row_module):
                at_once.setattr(module, "LOCK_WAIT_S", 0)
            with other.locked():
                pass
        one.write("{}")
    # A server hears a moment later that a connection has ended.
    with other.locked():
        assert other.read() == "{}"
