"""Wait for agents that are still loading, no longer than the request allows."""

from __future__ import annotations

import time
from collections.abc import Sequence

import anyio

from api.errors import RETRY_SOON_S, unavailable
from nornweave.ask.search.question import Deadline
from nornweave.ask.search.records import AgentState
from nornweave.ask.seen.agents import SeenAgent

# Loading takes some seconds, the first time with a new model longer (it is converted).
MAX_START_S = 30.0
POLL_START_S = 0.05
# What is left for those that have started when others have not.
RESERVE_S = 1.0

_CLOSED = frozenset({AgentState.STARTING, AgentState.DRAINING, AgentState.OFFLINE})


async def wait_for_start(agents: Sequence[SeenAgent], deadline: Deadline | None) -> None:
    """Wait while agents load: whoever asks the moment the port opens would rather wait some seconds than be refused.

    Agents that have started do not wait for the others until no time is left for them.

    Raises:
        ProblemError: 503, none of them takes requests.
    """
    arrived = deadline.started if deadline else time.monotonic()
    end = arrived + MAX_START_S
    if deadline:
        end = min(end, deadline.at)
    soon = max(end - RESERVE_S, (arrived + end) / 2)
    while _starting(agents) and (now := time.monotonic()) < (soon if _open(agents) else end):
        await anyio.sleep(min(POLL_START_S, max(0.0, end - now)))
    if not _open(agents):
        states = ", ".join(f"{agent.agent_id} is {agent.state.value}" for agent in agents)
        kind = f"agent-{agents[0].state.value.lower()}" if agents else "no-agent"
        raise unavailable(kind, states or "no domain is served", RETRY_SOON_S)


def _starting(agents: Sequence[SeenAgent]) -> bool:
    return any(agent.state is AgentState.STARTING for agent in agents)


def _open(agents: Sequence[SeenAgent]) -> bool:
    return any(agent.state not in _CLOSED for agent in agents)
