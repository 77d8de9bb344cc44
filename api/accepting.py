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

log = logging.getLogger(__name__)

# A process that has nothing open takes one within a fraction of a millisecond. The longest pause is what a connection
# waits when every process has many.
PAUSE_S, LONGEST_PAUSE_S = 0.005, 0.025
RETRY_S = 0.1


async def accept_evenly(
    listener: socket.socket, protocol: Callable[[], asyncio.Protocol], connections: Callable[[], int]
) -> None:
    """Accept connections until cancelled; after each one leave the next to others, for 5 ms a connection that is open.

    Args:
        listener: does not block.
        protocol: makes what handles a connection.
        connections: counts those that are open here.
    """
    loop = asyncio.get_running_loop()
    while True:
        try:
            connection, _ = await loop.sock_accept(listener)
            try:
                await loop.connect_accepted_socket(protocol, connection)
            except BaseException:
                connection.close()
                raise
        except ConnectionError:  # who asked has gone
            continue
        except Exception as error:  # no descriptors left, as a rule; whatever it is, the next one is accepted again
            log.error("no connection can be accepted: %s", error, exc_info=not isinstance(error, OSError))
            await asyncio.sleep(RETRY_S)
            continue
        await asyncio.sleep(min(PAUSE_S * connections(), LONGEST_PAUSE_S))
