"""The path of all viewers' questions, wired once; ``seen/answers.py`` asks it on behalf of one viewer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from nornweave.ask.agents.directory import RemoteAgents
from nornweave.ask.answer.synthesis.synthesizer import Synthesizer
from nornweave.ask.feedback import FeedbackBook
from nornweave.ask.fuse.records import Answer
from nornweave.ask.search.agent import Agent
from nornweave.ask.search.lanes import Lanes
from nornweave.carry.ledger_file import LedgerReader
from nornweave.config import Settings
from nornweave.config.fusion import FusionSettings
from nornweave.core.types import Domain

# Questions wait for domains and domains for retrieval sources: pools apart, or a full one would wait for itself. Each
# domain has threads of its own: one that hangs must not hold those that the others need.
DOMAIN_THREADS = 16


@dataclass(slots=True, kw_only=True, eq=False)
class QueryPath:
    """The agents and the parts that fuse their answers.

    Attributes:
        pools: the threads of each domain's agent.
        remote: agents on other machines; ``None`` if none can register.
        feedback: shown answers and their judgments.
        notes: authors of lines, and dismissed conflicts.
        is_closing: set when no more questions are answered.
        on_answer: called with every answer, in the thread that made it.
    """

    settings: Settings
    agents: Mapping[Domain, Agent]
    pools: Mapping[Domain, ThreadPoolExecutor]
    lanes: Lanes
    remote: RemoteAgents | None
    feedback: FeedbackBook
    fusion: FusionSettings
    synthesizer: Synthesizer
    notes: LedgerReader
    is_closing: threading.Event = field(default_factory=threading.Event)
    on_answer: Callable[[Answer], None] | None = None
