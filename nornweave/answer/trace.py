"""A question with everything that every stage found: what evaluations measure, out of the path that answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass

from nornweave.answer import fuse_responses
from nornweave.errors import StoreError
from nornweave.fusion_settings import FusionSettings
from nornweave.gathering import Question, asked_agents, merge_items, recall_everywhere
from nornweave.recall.agent import Agent
from nornweave.recall.records import Citation, RecallResponse
from nornweave.types import Domain


@dataclass(frozen=True, slots=True)
class Rankings:
    """What every stage found over the domains asked.

    Attributes:
        stages: by name, in the order of the query path, each best first; ``expanded`` and ``reranked`` only where that
            ran; ``merged`` is by score alone, ``fused`` the answer as it is served.
        confidence: the score of the answer's best item, which ``min_score`` is compared with; ``None`` without items.
    """

    stages: Mapping[str, tuple[Citation, ...]]
    confidence: float | None


def trace(
    question: Question, agents: Mapping[Domain, Agent], executors: Mapping[Domain, Executor], settings: FusionSettings
) -> Rankings:
    """Answer a question and return what every stage found, at most ``top_k`` items of each.

    Args:
        question: with ``trace`` set.
        agents: who can be asked.
        executors: where each domain's agent works.
        settings: of fusion.

    Raises:
        QueryError: the query or its filters are wrong.
        StoreError: nothing that is published can be read.
    """
    depth = question.top_k
    asked = asked_agents(question, agents, settings.fusion_max_sources)
    responses, gaps = recall_everywhere(question, asked, executors)
    if not responses:
        raise StoreError("; ".join(gap.reason for gap in gaps))
    items = merge_items([response.items for response in responses.values()], depth)
    merged = tuple(item.citation for item in items)
    reranked = {"reranked": merged} if any(item.rerank_score is not None for item in items) else {}
    fused = fuse_responses(question, responses, gaps, settings).fused
    stages = {
        **_merged_stages(responses.values(), depth),
        **reranked,
        "merged": merged,
        "fused": tuple(ranked.tagged.item.citation for ranked in fused.items),
    }
    return Rankings(stages, fused.items[0].score if fused.items else None)


def _merged_stages(responses: Iterable[RecallResponse], depth: int) -> dict[str, tuple[Citation, ...]]:
    placed: dict[str, list[tuple[float, str, int, Citation]]] = {}
    for response in responses:
        for stage, found in response.stages.items():
            placed.setdefault(stage, []).extend(
                (-one.score, response.domain_id, place, one.citation) for place, one in enumerate(found)
            )
    return {
        stage: tuple(citation for *_, citation in sorted(found, key=lambda one: one[:3])[:depth])
        for stage, found in placed.items()
    }
