"""Agents on other machines beside those of this process.

A domain may have an agent here and others elsewhere: all of them are asked. One elsewhere of the same name as the one
here is the same agent, and the one here answers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass

from nornweave.ask.answer.fan_out import Recaller
from nornweave.core.types import Domain


@dataclass(frozen=True, slots=True)
class JoinedAgents:
    """Agents that may be asked for the viewer of a question, and where each works.

    Attributes:
        agents: in the order in which they are asked.
        executor: agent's name → its threads.
    """

    agents: tuple[Recaller, ...]
    executor: Callable[[str], Executor]

    def with_own(self, own: Mapping[Domain, Recaller]) -> dict[Domain, Recaller]:
        """Return one agent for each domain that can be asked: the own one where there is one."""
        by_domain = {agent.domain: agent for agent in reversed(self.agents)} | dict(own)
        return {domain: by_domain[domain] for domain in Domain if domain in by_domain}

    def beside(
        self, chosen: Mapping[Domain, Recaller], own: Mapping[Domain, Executor]
    ) -> tuple[dict[Hashable, Recaller], dict[Hashable, Executor]]:
        """Return all agents of the chosen domains, and where they work; own ones by their domain, others by name."""
        asked: dict[Hashable, Recaller] = {}
        working: dict[Hashable, Executor] = {}
        for domain, first in chosen.items():
            others = [agent for agent in self.agents if agent.domain is domain]
            if first not in others:
                asked[domain], working[domain] = first, own[domain]
                others = [agent for agent in others if agent.agent_id != first.agent_id]
            for agent in others:
                asked[domain, agent.agent_id] = agent
                working[domain, agent.agent_id] = self.executor(agent.agent_id)
        return asked, working
