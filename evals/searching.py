"""The rankings of every stage of the query path for a question, taken from the path that answers."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from nornweave.ask.query_path import QueryPath
from nornweave.ask.search.fan_out import merge_items
from nornweave.ask.search.question import NO_VIEWS, Question, View
from nornweave.ask.search.records import Citation, Filters, RecallResponse
from nornweave.ask.seen.answers import SeenAnswers
from nornweave.core.access import OPERATOR
from nornweave.core.errors import StoreError
from nornweave.core.types import Domain, present

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Rankings:
    """The rankings of every stage over the domains asked.

    Attributes:
        stages: by name, in the order of the query path, each best first; ``expanded`` and ``reranked`` only where that
            ran; ``merged`` is by score alone, ``fused`` the answer as it is served.
        confidence: the score of the answer's best item, which ``min_score`` is compared with; ``None`` without items.
    """

    stages: Mapping[str, tuple[Citation, ...]]
    confidence: float | None


@dataclass(frozen=True, slots=True)
class PathSearcher:
    """The query path of an engine for measuring: it returns the findings of every stage with each answer."""

    path: QueryPath

    def rankings(
        self,
        text: str,
        *,
        domains: Sequence[Domain] | None,
        filters: Mapping[Domain, Filters],
        depth: int,
        views: Mapping[Domain, View] = NO_VIEWS,
    ) -> Rankings:
        """Answer a question and return the rankings of every stage, at most ``depth`` items each.

        Raises:
            QueryError: the query or its filters are wrong.
            StoreError: nothing that is published can be read.
        """
        question = Question(
            text=text,
            now=present(),
            domains=None if domains is None else tuple(domains),
            viewer=OPERATOR,
            top_k=depth,
            filters=filters,
            trace=True,
            views=views,
        )
        answer = SeenAnswers(self.path, OPERATOR).answer(question)
        responses = answer.recalled.responses
        if not responses:
            raise StoreError("; ".join(gap.reason for gap in answer.recalled.coverage_gaps))
        items = merge_items([response.items for response in responses], depth)
        merged = tuple(item.citation for item in items)
        reranked = {"reranked": merged} if any(item.rerank_score is not None for item in items) else {}
        stages = {
            **_merged_stages(responses, depth),
            **reranked,
            "merged": merged,
            "fused": tuple(ranked.citation for ranked in answer.items),
        }
        return Rankings(stages, answer.items[0].score if answer.items else None)

    def domain_of(self, paths: Collection[str]) -> Mapping[str, Domain]:
        """Return the domain of each document, by its path in its source. Unknown paths are left out."""
        domains: dict[str, Domain] = {}
        for domain, agent in self.path.agents.items():
            try:
                domains |= dict.fromkeys(set(paths).intersection(agent.paths(OPERATOR)), domain)
            except StoreError as error:
                log.warning("%s: %s", domain.value, error)
        return domains


def _merged_stages(responses: Iterable[RecallResponse], depth: int) -> dict[str, tuple[Citation, ...]]:
    """Merge the rankings of all domains for each stage by score; ties go by domain, then by rank."""
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
