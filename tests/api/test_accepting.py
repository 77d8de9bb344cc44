"""Two that accept from one socket share its connections, however fast these come."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence

import pytest

from api.server.workers import accept_evenly


class Counted(asyncio.Protocol):
    """Counts the connections that are open."""

    def __init__(self, opened: set[Counted]) -> None:
        self._opened = opened

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._opened.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._opened.discard(self)


async def ended(
    tasks: Sequence[asyncio.Task[None]], connections: Sequence[socket.socket], *opened: set[Counted]
) -> None:
    """Stop accepting and hang up; what was open is closed when this returns."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for connection in connections:
        connection.close()
    while any(opened):
        await asyncio.sleep(0.001)


async def shared(clients: int, before: int = 0) -> tuple[int, int]:
    """Connect ``before`` clients while one accepts alone and then ``clients`` at once while both do; return who has how
    many of all.
    """
    first: set[Counted] = set()
    second: set[Counted] = set()
    with socket.create_server(("127.0.0.1", 0)) as listener, listener.dup() as inherited:
        listener.setblocking(False)
        inherited.setblocking(False)
        tasks = [asyncio.create_task(accept_evenly(listener, lambda: Counted(first), lambda: len(first)))]
        connections = [socket.create_connection(listener.getsockname()) for _ in range(before)]
        while len(first) < before:
            await asyncio.sleep(0.001)
        tasks.append(asyncio.create_task(accept_evenly(inherited, lambda: Counted(second), lambda: len(second))))
        await asyncio.sleep(0)
        connections += [socket.create_connection(listener.getsockname()) for _ in range(clients)]
        while len(first) + len(second) < before + clients:
            await asyncio.sleep(0.001)
        shares = len(first), len(second)
        await ended(tasks, connections, first, second)
    return shares


@pytest.mark.parametrize("clients", [2, 8])
def test_connections_that_come_at_once_are_shared(clients: int) -> None:
    assert asyncio.run(asyncio.wait_for(shared(clients), 30)) == (clients / 2, clients / 2)


def test_who_has_fewer_takes_more_of_the_next() -> None:
    first, second = asyncio.run(asyncio.wait_for(shared(5, before=4), 30))
    assert first + second == 9
    assert second >= 3


def test_what_goes_wrong_with_one_connection_costs_the_next_nothing(caplog: pytest.LogCaptureFixture) -> None:
    opened: set[Counted] = set()
    broken = [ValueError("broken"), OSError("no descriptors left")]

    def protocol() -> Counted:
        if broken:
            raise broken.pop()
        return Counted(opened)

    async def connect() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setblocking(False)
            task = asyncio.create_task(accept_evenly(listener, protocol, lambda: len(opened)))
            connections = [socket.create_connection(listener.getsockname()) for _ in range(3)]
            while not opened:
                await asyncio.sleep(0.001)
            await ended([task], connections, opened)

    asyncio.run(asyncio.wait_for(connect(), 30))
    assert [record.getMessage() for record in caplog.records if record.name == "api.server.workers"] == [
        "no connection can be accepted: no descriptors left",
        "no connection can be accepted: broken",
    ]
