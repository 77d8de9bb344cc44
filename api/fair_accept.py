"""One socket that several processes accept from, each the more slowly the more connections it has.

The kernel shares connections out by chance, and clients keep theirs: of eight, one process of two often has six. Both
then answer 28 questions a second where they answer 45 with four each (and 23 with seven and one), since the questions
of a process wait for one lock.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Any

log = logging.getLogger(__name__)

# A process that has nothing open takes one within a fraction of a millisecond. The longest pause is what a connection
# waits when every process has many.
PAUSE_S, LONGEST_PAUSE_S = 0.005, 0.025
# So many in a row that were waiting already are a crowd: it is let in without pauses, or its last waits for seconds.
CROWD = 16
RETRY_S = 0.1
TURNED_AWAY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 2\r\nConnection: close\r\n\r\n"


async def accept_evenly(
    listener: socket.socket,
    protocol: Callable[[], asyncio.Protocol],
    connections: Callable[[], int],
    admits: Callable[[str], bool] = lambda _: True,
) -> None:
    """Accept connections until cancelled; after each one leave the next to others, for 5 ms a connection that is open.

    Args:
        listener: does not block.
        protocol: makes what handles a connection.
        connections: counts those that are open here.
        admits: whether a connection from an address is taken; others are answered with 503.
    """
    loop = asyncio.get_running_loop()
    crowd = 0
    while True:
        try:
            connection, address, has_waited = await _accepted(loop, listener)
            crowd = crowd + 1 if has_waited else 0
            if admits(address):
                await _handle(loop, protocol, connection)
            else:
                _turn_away(connection)
        except ConnectionError:  # who asked has gone
            await asyncio.sleep(0)
            continue
        except Exception as error:  # no descriptors left, as a rule; whatever it is, the next one is accepted again
            log.error("no connection can be accepted: %s", error, exc_info=not isinstance(error, OSError))
            await asyncio.sleep(RETRY_S)
            continue
        await asyncio.sleep(0 if crowd >= CROWD else min(PAUSE_S * connections(), LONGEST_PAUSE_S))


async def _accepted(loop: asyncio.AbstractEventLoop, listener: socket.socket) -> tuple[socket.socket, str, bool]:
    """Return the next connection, the address it comes from, and whether it was waiting already."""
    has_waited = True
    try:
        connection, address = listener.accept()
    except BlockingIOError:
        has_waited = False
        connection, address = await loop.sock_accept(listener)
    connection.setblocking(False)
    return connection, str(address[0]) if address else "", has_waited


async def _handle(
    loop: asyncio.AbstractEventLoop, protocol: Callable[[], asyncio.Protocol], connection: socket.socket
) -> None:
    try:
        await loop.connect_accepted_socket(protocol, connection)
    except BaseException:
        connection.close()
        raise


def _turn_away(connection: Any) -> None:
    with connection:
        connection.send(TURNED_AWAY)
