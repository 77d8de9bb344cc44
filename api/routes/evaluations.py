"""``/evaluations``: the history of measures, and any two generations beside each other."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from api.evaluations_query import ComparisonQuery, HistoryQuery
from api.openapi import problem_responses
from api.schemas import json_response
from api.state import Served
from nornweave.ask.views.evaluations import ComparisonDocument, EvaluationsDocument

router = APIRouter(tags=["evaluations"], responses=problem_responses(401, 403, 421, 422, 500, 503))


@router.get("/evaluations", response_model=EvaluationsDocument)
async def evaluations(asked: Annotated[HistoryQuery, Query()], serving: Served) -> Response:
    """List what was measured, newest first: each judged set, stage by stage, with intervals."""
    return json_response(await serving.lookups.run(lambda: serving.engine.quality.evaluations(asked.asked())))


@router.get("/evaluations/compare", response_model=ComparisonDocument)
async def compare(asked: Annotated[ComparisonQuery, Query()], serving: Served) -> Response:
    """Compare two generations of a domain query by query; largest losses first, with the queries that got worse."""
    found = await serving.lookups.run(
        lambda: serving.engine.quality.compare(asked.domain, asked.before, asked.after, asked.set_name)
    )
    return json_response(found)
