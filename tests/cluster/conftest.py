from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from postgres_server import PostgresServer, postgres_server
from redis_server import PROGRAM, RedisServer


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RedisServer]:
    if PROGRAM is None:
        pytest.skip("redis-server is not installed (apt install redis-server)")
    server = RedisServer(tmp_path)
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with pytest.MonkeyPatch.context() as patch, postgres_server(patch) as server:
        yield server


@pytest.fixture
def database(postgres: PostgresServer) -> str:
    """The address of a server without leases."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("drop table if exists nornweave_leases")
    return postgres.url
