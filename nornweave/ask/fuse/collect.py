"""Stage 1: gather the items of all answers, with the facts that they state."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from nornweave.ask.fuse.records import FusedItem
from nornweave.ask.search.records import RecallItem, RecallResponse
from nornweave.core.types import Fact
from nornweave.disagree.facts.extract import extract_facts
from nornweave.disagree.facts.passage import Passage

# Reading the facts of a function takes a millisecond: most of what an agent elsewhere costs. Good passages come again
# with other questions; long ones are not kept, so that all together take some 10 MB.
_REMEMBERED_PASSAGES, _REMEMBERED_CHARACTERS = 2_048, 4_000
_remembered = lru_cache(_REMEMBERED_PASSAGES)(extract_facts)


def collect(responses: Sequence[RecallResponse]) -> tuple[FusedItem, ...]:
    """Gather the items of all answers, in the order of the answers, best first within each.

    Items of agents that name no facts have them read from their text.
    """
    return tuple(_fused(item, response) for response in responses for item in response.items)


def _fused(item: RecallItem, response: RecallResponse) -> FusedItem:
    return FusedItem(
        item=item,
        agent=response.agent_id,
        domain=response.domain_id,
        relevance=item.score if math.isfinite(item.score) else 0.0,
        calibrated=response.calibrated,
        encoder=response.encoder,
        facts=_facts(item, response.domain_id) if item.facts is None else item.facts,
    )


def _facts(item: RecallItem, domain: str) -> tuple[Fact, ...]:
    extract = _remembered if len(item.content) <= _REMEMBERED_CHARACTERS else extract_facts
    citation, language = item.citation, item.metadata.get("language")
    return extract(
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
