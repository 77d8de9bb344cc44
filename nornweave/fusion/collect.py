"""Stage 1: gather what arrived and who did not answer (PIPELINE, "Collection")."""

from __future__ import annotations

import math
from collections.abc import Sequence

from nornweave.claims.extract import extract_claims
from nornweave.claims.passage import Passage
from nornweave.fusion.records import CollectedItems, CoverageGap, TaggedItem
from nornweave.recall.records import RecallItem, RecallResponse
from nornweave.types import Claim


def collect(responses: Sequence[RecallResponse], coverage_gaps: Sequence[CoverageGap] = ()) -> CollectedItems:
    """Gather the items of all answers, in the order of the answers, best first within each.

    Items of agents that name no claims have them read from their text.

    Returns:
        Everything that came; no answer at all is a valid result with no items.
    """
    return CollectedItems(
        items=tuple(_tagged(item, response) for response in responses for item in response.items),
        coverage_gaps=tuple(coverage_gaps),
        agents_responded=tuple(response.agent_id for response in responses),
        total_candidates=sum(response.total_searched for response in responses),
    )


def _tagged(item: RecallItem, response: RecallResponse) -> TaggedItem:
    return TaggedItem(
        item=item,
        source_agent=response.agent_id,
        source_domain=response.domain_id,
        agent_latency_ms=response.latency_ms,
        # The scores of agents that are calibrated are compared as they are.
        score=item.score if math.isfinite(item.score) else 0.0,
        calibrated=response.calibrated,
        encoder=response.encoder,
        claims=_claims(item, response.domain_id) if item.claims is None else item.claims,
    )


def _claims(item: RecallItem, domain: str) -> tuple[Claim, ...]:
    citation, language = item.citation, item.metadata.get("language")
    return extract_claims(
        Passage(
            text=item.content,
            start=citation.char_range[0],
            domain=domain,
            language=language if isinstance(language, str) else None,
            path=citation.source_path,
            title=citation.title,
            section=citation.section,
            timestamp=citation.timestamp,
        )
    )
