"""Scores of our agents beside those of a foreign one, by hand."""

from datetime import UTC, datetime

import pytest

from nornweave.ask.agents.exchange import read_answer
from nornweave.ask.fuse.collect import collect, normalize, scale_of
from nornweave.ask.search.records import RecallResponse
from nornweave.core.types import Domain


def answered(agent_id: str, calibrated: str, scores: list[float]) -> RecallResponse:
    """Return an answer as it comes over the network."""
    items = ",".join(
        f'{{"chunk_id": "{agent_id}-{place}", "content": "Text {place}.", "score": {score}}}'
        for place, score in enumerate(scores)
    )
    content = f'{{"agent_id": "x", "domain_id": "code", "calibrated": {calibrated}, "items": [{items}]}}'
    return read_answer(content.encode(), agent_id=agent_id, domain=Domain.CODE, top_k=10, now=datetime.now(UTC))


def test_a_foreign_agent_joins_by_its_ranking() -> None:
    """BM25 (12, 9, 4) beside ours (.6, .5, .4): (.6 + .5) / 2, (.5 + .4) / 2, (.4 + .4 · 63/64) / 2."""
    ours, foreign = answered("ours", "true", [0.6, 0.5, 0.4]), answered("foreign", "false", [12, 9, 4])
    mixed = collect([ours, foreign])
    assert scale_of(mixed) == "mixed"
    relevance = [item.relevance for item in normalize(mixed, "mixed")]
    assert relevance == pytest.approx([0.6, 0.5, 0.4, 0.55, 0.45, 0.396875])
    alone = collect([foreign])
    assert scale_of(alone) == "minmax"
    assert [item.relevance for item in normalize(alone, "minmax")] == pytest.approx([1, 0.625, 0])
    alone = collect([ours])
    assert scale_of(alone) == "calibrated"
    assert [item.relevance for item in normalize(alone, "calibrated")] == pytest.approx([0.6, 0.5, 0.4])


def test_items_come_best_first_each_chunk_once() -> None:
    response = answered("foreign", "false", [4, 12, 9])
    assert [item.score for item in response.items] == [12, 9, 4]
    assert response.agent_id == "foreign"
