"""One PostgreSQL server for the modules whose tests have schemas of their own in it."""

from collections.abc import Iterator

import pytest
from postgres_server import PostgresServer, postgres_server
from waiting import HANGS_S

from nornweave.carry.postgresql import server as server_module
from nornweave.carry.postgresql.server import close_idle


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    with pytest.MonkeyPatch.context() as patch, postgres_server(patch) as running:
        yield running
        close_idle()


@pytest.fixture(scope="module")
def patient() -> Iterator[None]:
    """A busy machine may need longer for a connection than a query of a user should wait."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server_module, "CONNECT_S", int(HANGS_S))
        patch.setattr(server_module, "POOL_WAIT_S", HANGS_S)
        yield
