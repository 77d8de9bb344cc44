"""An agent on other machines: asked as one that is here is asked."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from nornweave.ask.agents.exchange import GROUPS_HEADER, groups_text, read_answer, recall_body, recall_headers
from nornweave.ask.agents.registry import ASKED_STATES, Capabilities, Registration
from nornweave.ask.agents.replicas import FAIR_S, BreakerState, Latencies, Replica, choose
from nornweave.ask.agents.transport import RefusedError, Transport
from nornweave.ask.search.filters import read_filters
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import Filters, RecallResponse
from nornweave.config.access import AllowedAgent
from nornweave.config.addresses import origin_of
from nornweave.config.filters import FilterSettings
from nornweave.core.access.viewer import Viewer
from nornweave.core.errors import AgentError
from nornweave.core.types import NO_METADATA, Domain
from nornweave.index.searching.conditions import Condition

# An agent whose answers are usually quick is given three times their 95th percentile, and never less than this.
PATIENCE, LEAST_WAIT_S = 3.0, 0.5
# How much earlier than this server's own deadline an agent is asked to answer: for the way back.
WAY_BACK_MS = 20
MOST_ATTEMPTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentAddress:
    """One address of an agent: as registered, what allows it, and the token that it is shown."""

    registration: Registration
    allowed: AllowedAgent
    token: str | None

    def is_for(self, viewer: Viewer, *, has_access: bool) -> bool:
        """Tell whether the items of this address may be shown to a viewer; ``has_access``: viewers are told apart."""
        allowed = self.allowed
        if viewer.sees_everything or allowed.public or allowed.checks_groups:
            return True
        return bool(viewer.groups.intersection(allowed.groups)) if allowed.groups else not has_access


@dataclass(slots=True)
class AgentCounts:
    """What was sent to an agent since this process knows it: requests, those that failed, those sent as second ones."""

    requests: int = 0
    failures: int = 0
    hedges: int = 0


class RemoteAgent:
    """One agent, at one address or several; its methods may be called from any thread."""

    def __init__(
        self,
        agent_id: str,
        domain: Domain,
        filters: Sequence[FilterSettings],
        transport: Transport,
        *,
        has_access: bool,
        wait_s: float,
    ) -> None:
        self.agent_id = agent_id
        self.domain = domain
        self.addresses: tuple[AgentAddress, ...] = ()
        self.counts = AgentCounts()
        self._filters = filters
        self._transport = transport
        self._has_access = has_access
        self._wait_s = wait_s
        self._rng = random.Random()  # noqa: S311 - spreads load, guards nothing
        self._latencies = Latencies()
        self._replicas: Mapping[str, Replica] = {}

    def follow(self, addresses: Sequence[AgentAddress]) -> None:
        """Ask at these addresses from now on; those that stay keep their record."""
        self._replicas = {
            address.registration.url: self._replicas.get(address.registration.url) or Replica(address.registration.url)
            for address in addresses
        }
        self.addresses = tuple(addresses)

    def is_for(self, viewer: Viewer) -> bool:
        """Tell whether it is asked for a viewer."""
        return any(address.is_for(viewer, has_access=self._has_access) for address in self.addresses)

    def breaker_state(self, url: str) -> BreakerState:
        """Say whether an address is asked: ``closed``, ``open`` or ``half-open``."""
        replica = self._replicas.get(url)
        return replica.breaker.state if replica else "closed"

    @property
    def open_breakers(self) -> int:
        """Count the addresses that are left alone."""
        return sum(replica.breaker.state == "open" for replica in self._replicas.values())

    @property
    def wait_s(self) -> float:
        """Return how long a question waits, as its last answers suggest."""
        p95_s = self._latencies.p95_s
        return self._wait_s if p95_s is None else min(self._wait_s, max(PATIENCE * p95_s, LEAST_WAIT_S))

    @property
    def p95_s(self) -> float | None:
        """Return the 95th percentile of its last answers; ``None`` before there are enough."""
        return self._latencies.p95_s

    def conditions(self, filters: Filters) -> tuple[Condition, ...]:
        """Read filters as the domain's are read here; raises ``QueryError`` as ``read_filters``."""
        return read_filters(self._filters, filters, f"filters.{self.domain.value}")

    def recall(self, question: Question) -> RecallResponse:
        """Ask the agent, by the question's deadline or its own, whichever is earlier.

        Raises:
            AgentError: it gives no answer, or none that can be used.
        """
        if question.as_of is not None:
            raise AgentError("agents on other machines answer from what they have now, not as of an earlier time")
        deadline = question.deadline
        wait_s = self.wait_s
        late, left_s = f"no answer in time: it was given {wait_s:.3g} s", wait_s
        if deadline and deadline.left_s <= wait_s:
            late, left_s = f"timeout after {deadline.timeout_ms}ms", deadline.left_s
        addresses = self._usable(question)
        started = time.monotonic()
        response = self._transport.run(self._in_time(question, addresses, left_s, late), left_s + 1)
        return replace(response, latency_ms=round((time.monotonic() - started) * 1000, 2))

    def _usable(self, question: Question) -> dict[str, AgentAddress]:
        """Return the addresses that may be asked, by URL.

        Raises:
            AgentError: there are none; why.
        """
        now = time.time()
        meant = [one for one in self.addresses if one.is_for(question.viewer, has_access=self._has_access)]
        open_ones = [one for one in meant if one.registration.state_at(now) in ASKED_STATES]
        if not open_ones:
            states = ", ".join(sorted({one.registration.state_at(now).value for one in meant}))
            silent = max((now - one.registration.seen_at for one in meant), default=0.0)
            raise AgentError(f"is {states}; it was heard of {silent:.0f} s ago" if meant else "is not registered")
        wanted = set(question.filters.get(self.domain, NO_METADATA))
        for address in open_ones:
            if missing := wanted - set(Capabilities.read(address.registration.capabilities).filters):
                raise AgentError(f"does not take the filter {min(missing)!r}, so it was not asked")
        return {address.registration.url: address for address in open_ones}

    async def _in_time(
        self, question: Question, addresses: Mapping[str, AgentAddress], left_s: float, late: str
    ) -> RecallResponse:
        try:
            async with asyncio.timeout(left_s):
                return await self._ask(question, addresses, time.monotonic() + left_s)
        except TimeoutError:
            raise AgentError(late) from None

    async def _ask(self, question: Question, addresses: Mapping[str, AgentAddress], until: float) -> RecallResponse:
        """Ask one address; another one too if that takes long or fails."""
        replicas = [self._replicas[url] for url in addresses if url in self._replicas]
        tried: list[Replica] = []
        tasks: set[asyncio.Task[RecallResponse]] = set()
        error, is_late = AgentError(_why_none(replicas)), False
        try:
            while True:
                following = choose(replicas, tried, self._rng) if len(tried) < MOST_ATTEMPTS else None
                if following:
                    self.counts.hedges += is_late
                    tried.append(following)
                    address, is_first = addresses[following.url], len(tried) == 1
                    tasks.add(asyncio.create_task(self._attempt(following, address, question, until, is_first)))
                if not tasks:
                    raise error
                hedge = choose(replicas, tried, self._rng) if len(tried) < MOST_ATTEMPTS else None
                timeout = self._latencies.hedge_after_s if hedge else None
                done, tasks = await asyncio.wait(tasks, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
                is_late = not done
                for task in done:
                    failure = task.exception()
                    if failure is None:
                        return task.result()
                    if not isinstance(failure, AgentError):
                        raise failure
                    error = failure
        finally:
            for task in tasks:
                task.cancel()

    async def _attempt(
        self, replica: Replica, address: AgentAddress, question: Question, until: float, is_first: bool
    ) -> RecallResponse:
        """Ask one address, and note how that went.

        Only the first attempts of questions say when to send a second one, also those that a second one overtook: what
        is left are the quick ones, and more and more requests would be sent twice.
        """
        replica.breaker.begin()
        replica.outstanding += 1
        self.counts.requests += 1
        started = time.monotonic()
        try:
            response = await self._exchange(replica.url, address, question, until)
        except asyncio.CancelledError:  # at the deadline, or another address was faster
            elapsed = time.monotonic() - started
            replica.took(elapsed)
            if is_first and elapsed >= self._latencies.hedge_after_s:
                self._latencies.add(elapsed)
            if elapsed >= FAIR_S:
                self.counts.failures += 1
                replica.breaker.fail(f"no answer within {elapsed:.1f} s")
            else:
                replica.breaker.give_up()
            raise
        except RefusedError:
            replica.breaker.give_up()
            raise
        except AgentError as error:
            self.counts.failures += 1
            replica.breaker.fail(str(error))
            raise
        finally:
            replica.outstanding -= 1
        replica.breaker.succeed()
        replica.took(time.monotonic() - started)
        if is_first:
            self._latencies.add(time.monotonic() - started)
        return response

    async def _exchange(self, url: str, address: AgentAddress, question: Question, until: float) -> RecallResponse:
        groups = _groups_for(question.viewer, address.allowed)
        capabilities = Capabilities.read(address.registration.capabilities)
        left_ms = max(1, int((until - time.monotonic()) * 1000) - WAY_BACK_MS)
        body = recall_body(question, self.domain, capabilities, left_ms)
        content, headers = await self._transport.post(
            f"{url}/recall", body, recall_headers(question, address.token, groups)
        )
        if address.allowed.checks_groups and groups is not None and GROUPS_HEADER not in headers:
            raise AgentError("did not say that it heeded the viewer's groups; nothing of its answer is shown")
        read: Callable[[], RecallResponse] = lambda: read_answer(  # noqa: E731 - a name for the type
            content,
            agent_id=self.agent_id,
            domain=self.domain,
            top_k=question.top_k,
            now=question.now,
            origins=(origin_of(url), *address.allowed.links),
        )
        return await asyncio.to_thread(read)


def _groups_for(viewer: Viewer, allowed: AllowedAgent) -> str | None:
    """Return the groups to tell an agent of: none of them unless it is there to check them."""
    if viewer.sees_everything:
        return None
    return groups_text(viewer) if allowed.checks_groups else ""


def _why_none(replicas: Sequence[Replica]) -> str:
    """Say why none of the addresses is asked."""
    shut = [replica.breaker for replica in replicas if not replica.breaker.admits]
    if not shut:
        return "has no address"
    soonest = min(shut, key=lambda breaker: breaker.left_s)
    return f"is left alone for {soonest.left_s:.0f} s after several failures, the last: {soonest.problem}"
