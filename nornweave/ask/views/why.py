"""Why a place is not in an answer, as JSON."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict  # pydantic refuses typing.TypedDict before Python 3.12

from nornweave.ask.search.question import Question
from nornweave.ask.views.shaping import in_shape
from nornweave.ask.why import Stage, Why

_STAGES = {
    None: "It is in the answer.",
    "filtered": "A filter or the choice of domains leaves it out.",
    "not_a_candidate": "No retriever has it among its best: it shares neither words nor meaning enough.",
    "combined": "Other passages score higher.",
    "merged": "It says the same as another passage, and was merged into it.",
    "demoted": "It lost a conflict, and stands lower for that.",
    "budget": "It was cut by max_tokens, min_score or diversity.",
}


class WhyDocument(TypedDict):
    """Why a place is not in an answer."""

    shown: bool
    stage: Annotated[Stage | None, Field(description="at which it lost; null when it is shown")]
    words: Annotated[str, Field(description="the stage in a sentence")]
    rank: Annotated[int | None, Field(description="in the answer or below it, from 1; null where nothing ranked it")]
    margin: Annotated[float | None, Field(description="of score, to the last place that is shown")]
    change: Annotated[str, Field(description="the smallest change that was tried and lifts it; empty if none does")]
    changed: Annotated[dict[str, Any] | None, Field(description="the body of `POST /query` that does")]
    retrievers: Annotated[dict[str, int], Field(description="retriever → rank there")]


def why_document(why: Why) -> WhyDocument:
    """Return why a place is not in an answer."""
    changed = _body(why.changed) if why.changed else None
    return in_shape(WhyDocument, why, shown=why.stage is None, words=_STAGES[why.stage], changed=changed)


def _body(question: Question) -> dict[str, Any]:
    """Return the body of ``POST /query`` that asks a question."""
    stated = {
        "query": question.text,
        "domains": [domain.value for domain in question.domains] if question.domains else None,
        "filters": {domain.value: dict(filters) for domain, filters in question.filters.items() if filters},
        "top_k": question.top_k,
        "max_tokens": question.max_tokens,
        "min_score": question.min_score,
        "diversity": question.diversity,
        "conflict_strategy": question.strategy.value if question.strategy else None,
    }
    return {name: value for name, value in stated.items() if value not in (None, {})}
