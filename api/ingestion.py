"""Whether documents may be handed in now: an agent that answers, though not as it should, takes none."""

from __future__ import annotations

import re

from api.errors import unavailable
from api.state import Service
from nornweave.ask.search.agent import Agent
from nornweave.ask.seen.agents import SeenAgent

RETRY_DEGRADED_S = 30
_INGEST = re.compile(r"/agents/([^/]*)/ingest")


def check_takes_documents(agent: Agent | SeenAgent) -> None:
    """Refuse documents for an agent that has to be mended first.

    Raises:
        ProblemError: 503, what is wrong with it and when to come back.
    """
    if problem := agent.ingestion_problem:
        raise unavailable("agent-degraded", f"{agent.agent_id} takes no documents now: {problem}", RETRY_DEGRADED_S)


def check_path(service: Service, path: str) -> None:
    """Refuse a request to an ingest path before its body is read; says nothing of other paths.

    Raises:
        ProblemError: 503, see ``check_takes_documents``.
    """
    match = _INGEST.fullmatch(path)
    name = match[1] if match else service.alone.value if service.alone and path == "/ingest" else None
    for domain in service.domains:
        if domain.value == name:
            check_takes_documents(service.engine.agents[domain])
