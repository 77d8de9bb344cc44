"""How long a request may take, counted from its arrival: waiting for a start and for a turn counts."""

from __future__ import annotations

import time
from collections.abc import Sequence

import anyio

from api.errors import RETRY_SOON_S, unavailable
from api.ports import AgentPort
from nornweave.recall.records import AgentState

# Loading takes some seconds, the first time with a new model longer (it is converted).
MAX_START_S = 30.0
POLL_START_S = 0.05
# What is left for those that have started when others have not.
RESERVE_S = 1.0
# Handing a request to a thread takes about that; who asks for 500 ms is not told of 499.
UNNOTICED_S = 0.02

_CLOSED = frozenset({AgentState.STARTING, AgentState.DRAINING, AgentState.OFFLINE})


class Deadline:
    """The deadline of one request, made when it arrives; ``None`` sets none."""

    def __init__(self, timeout_ms: int | None) -> None:
        self._arrived = time.monotonic()
        self._timeout_ms = timeout_ms

    @property
    def left_s(self) -> float | None:
        """Return the seconds that are left, 0 when none are, ``None`` without a deadline."""
        if self._timeout_ms is None:
            return None
        return max(0.0, self._arrived + self._timeout_ms / 1000 - time.monotonic())

    @property
    def left_ms(self) -> int | None:
        """Return the whole milliseconds that are left, at least 1."""
        if self._timeout_ms is None:
            return None
        waited = time.monotonic() - self._arrived
        return max(1, self._timeout_ms - int(waited * 1000 if waited >= UNNOTICED_S else 0))

    async def wait_for_start(self, agents: Sequence[AgentPort]) -> None:
        """Wait while agents load: seconds, which who asks the moment the port opens rather waits.

        Those that have started are not kept waiting for the others until no time is left for them.

        Raises:
            ProblemError: 503, none of them takes requests.
        """
        end = self._arrived + MAX_START_S
        if self._timeout_ms is not None:
            end = min(end, self._arrived + self._timeout_ms / 1000)
        soon = max(end - RESERVE_S, (self._arrived + end) / 2)
        while _starting(agents) and (now := time.monotonic()) < (soon if _open(agents) else end):
            await anyio.sleep(min(POLL_START_S, max(0.0, end - now)))
        if not _open(agents):
            states = ", ".join(f"{agent.agent_id} is {agent.state.value}" for agent in agents)
            kind = f"agent-{agents[0].state.value.lower()}" if agents else "no-agent"
            raise unavailable(kind, states or "no domain is served", RETRY_SOON_S)


def _starting(agents: Sequence[AgentPort]) -> bool:
    return any(agent.state is AgentState.STARTING for agent in agents)


def _open(agents: Sequence[AgentPort]) -> bool:
    return any(agent.state not in _CLOSED for agent in agents)
