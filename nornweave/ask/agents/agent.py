"""An agent on another machine, asked in the same way as a local one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from nornweave.ask.agents.exchange import GROUPS_HEADER, groups_text, read_answer, recall_body, recall_headers
from nornweave.ask.agents.registry import ASKED_STATES, Capabilities, Registration
from nornweave.ask.agents.transport import RefusedError, Transport
from nornweave.ask.search.filters import read_filters
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import Filters, RecallResponse
from nornweave.config.access import AllowedAgent
from nornweave.config.base import origin_of
from nornweave.config.domain import FilterSettings
from nornweave.core.access import Viewer
from nornweave.core.errors import AgentError
from nornweave.core.types import NO_METADATA, Domain
from nornweave.index.searching.conditions import Condition

# How much earlier than this server's own deadline an agent is asked to answer: for the way back.
WAY_BACK_MS = 20


@dataclass(slots=True)
class AgentCounts:
    """How many requests were sent to an agent, and how many of them failed."""

    requests: int = 0
    failures: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteAgent:
    """An agent on another machine: its registration, the entry that allows it, and the token to send.

    Attributes:
        filters: the declared filters of its domain.
        has_access: whether viewers have different rights.
        wait_s: how long a question waits for it.
    """

    registration: Registration
    allowed: AllowedAgent
    token: str | None
    filters: Sequence[FilterSettings]
    transport: Transport
    has_access: bool
    wait_s: float
    counts: AgentCounts

    @property
    def agent_id(self) -> str:
        """Return the agent's name."""
        return self.registration.agent_id

    @property
    def domain(self) -> Domain:
        """Return the domain for which the agent answers."""
        return self.registration.domain

    def is_for(self, viewer: Viewer) -> bool:
        """Tell whether the agent's items may be shown to a viewer."""
        allowed = self.allowed
        if viewer.sees_everything or allowed.public or allowed.checks_groups:
            return True
        return bool(viewer.groups.intersection(allowed.groups)) if allowed.groups else not self.has_access

    def conditions(self, filters: Filters) -> tuple[Condition, ...]:
        """Return the conditions for filters of this domain; raises ``QueryError`` for an unknown or wrong filter."""
        return read_filters(self.filters, filters, f"filters.{self.domain.value}")

    def recall(self, question: Question) -> RecallResponse:
        """Return the agent's answer. Wait until the question's deadline or the agent's own, whichever is earlier.

        Raises:
            AgentError: the agent gives no answer, or gives one that cannot be used.
        """
        if question.as_of is not None:
            raise AgentError("agents on other machines answer from what they have now, not as of an earlier time")
        if not self.is_for(question.viewer):
            raise AgentError("is not registered")
        now = time.time()
        if (state := self.registration.state_at(now)) not in ASKED_STATES:
            raise AgentError(f"is {state.value}; it was heard of {now - self.registration.seen_at:.0f} s ago")
        wanted = set(question.filters.get(self.domain, NO_METADATA))
        if missing := wanted - set(Capabilities.read(self.registration.capabilities).filters):
            raise AgentError(f"does not take the filter {min(missing)!r}, so it was not asked")
        deadline = question.deadline
        late, left_s = f"no answer in time: it was given {self.wait_s:.3g} s", self.wait_s
        if deadline and deadline.left_s <= left_s:
            late, left_s = f"timeout after {deadline.timeout_ms}ms", deadline.left_s
        started = time.monotonic()
        response = self.transport.run(self._in_time(question, left_s, late), left_s + 1)
        return replace(response, latency_ms=round((time.monotonic() - started) * 1000, 2))

    async def _in_time(self, question: Question, left_s: float, late: str) -> RecallResponse:
        self.counts.requests += 1
        try:
            async with asyncio.timeout(left_s):
                return await self._exchange(question, left_s)
        except RefusedError:  # which says nothing of how the agent is
            raise
        except AgentError:
            self.counts.failures += 1
            raise
        except TimeoutError:
            self.counts.failures += 1
            raise AgentError(late) from None

    async def _exchange(self, question: Question, left_s: float) -> RecallResponse:
        url, allowed = self.registration.url, self.allowed
        groups = _groups_for(question.viewer, allowed)
        capabilities = Capabilities.read(self.registration.capabilities)
        body = recall_body(question, self.domain, capabilities, max(1, int(left_s * 1000) - WAY_BACK_MS))
        content, headers = await self.transport.post(
            f"{url}/recall", body, recall_headers(question, self.token, groups)
        )
        if allowed.checks_groups and groups is not None and GROUPS_HEADER not in headers:
            raise AgentError("did not say that it heeded the viewer's groups; nothing of its answer is shown")
        read: Callable[[], RecallResponse] = lambda: read_answer(  # noqa: E731 - a name for the type
            content,
            agent_id=self.agent_id,
            domain=self.domain,
            top_k=question.top_k,
            now=question.now,
            origins=(origin_of(url), *allowed.links),
        )
        return await asyncio.to_thread(read)


def _groups_for(viewer: Viewer, allowed: AllowedAgent) -> str | None:
    """Return the groups to send to an agent; empty if the agent checks no groups.

    ``None`` means that no groups are sent, because the viewer sees everything.
    """
    if viewer.sees_everything:
        return None
    return groups_text(viewer) if allowed.checks_groups else ""
