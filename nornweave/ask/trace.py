"""What every stage of the query path ranked for a question: what evaluations measure, on the path that answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nornweave.ask.pipeline import answer_from, to_recalled
from nornweave.ask.route.router import choose_agents
from nornweave.ask.search.agent import Agent
from nornweave.ask.search.fan_out import merge_items, recall_everywhere
from nornweave.ask.search.lanes import Lanes
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import Citation, RecallResponse
from nornweave.config.fusion import FusionSettings
from nornweave.core.errors import StoreError
from nornweave.core.types import Domain


@dataclass(frozen=True, slots=True)
class Rankings:
    """What every stage ranked over the domains asked.

    Attributes:
        stages: by name, in the order of the query path, each best first; ``expanded`` and ``reranked`` only where that
            ran; ``merged`` is by score alone, ``fused`` the answer as it is served.
        confidence: the score of the answer's best item, which ``min_score`` is compared with; ``None`` without items.
    """

    stages: Mapping[str, tuple[Citation, ...]]
    confidence: float | None


def trace(question: Question, agents: Mapping[Domain, Agent], lanes: Lanes, settings: FusionSettings) -> Rankings:
    """Answer a question and return what every stage ranked, at most ``top_k`` items of each.

    Args:
        question: with ``trace`` set.
        agents: those that can be asked.
        lanes: where agents work.
        settings: of fusion.

    Raises:
        QueryError: the query or its filters are wrong.
        StoreError: nothing that is published can be read.
    """
    depth = question.top_k
    chosen = choose_agents(question, agents, settings.fusion_max_sources)
    responses, gaps = recall_everywhere(question, chosen, lanes)
    if not responses:
        raise StoreError("; ".join(gap.reason for gap in gaps))
    items = merge_items([response.items for response in responses.values()], depth)
    merged = tuple(item.citation for item in items)
    reranked = {"reranked": merged} if any(item.rerank_score is not None for item in items) else {}
    answered = answer_from(question, to_recalled(question, chosen, responses, gaps), settings)
    stages = {
        **_merged_stages(responses.values(), depth),
        **reranked,
        "merged": merged,
        "fused": tuple(ranked.citation for ranked in answered.items),
    }
    return Rankings(stages, answered.items[0].score if answered.items else None)


def _merged_stages(responses: Iterable[RecallResponse], depth: int) -> dict[str, tuple[Citation, ...]]:
    """Merge what each stage ranked in each domain by score; ties go by domain, then by rank."""
    placed: dict[str, list[tuple[float, str, int, Citation]]] = {}
    for response in responses:
        for stage, ranking in response.stages.items():
            placed.setdefault(stage, []).extend(
                (-item.score, response.domain_id, place, item.citation) for place, item in enumerate(ranking)
            )
    return {
        stage: tuple(citation for *_, citation in sorted(ranking, key=lambda item: item[:3])[:depth])
        for stage, ranking in placed.items()
    }
