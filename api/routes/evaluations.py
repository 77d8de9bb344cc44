"""``GET /evaluations``: the history of measures, and the comparison of two generations."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from api.openapi import problem_responses
from api.requests import Parameters
from api.schemas import json_response
from api.state import Served
from nornweave.ask.views.evaluations import ComparisonDocument, EvaluationsDocument
from nornweave.core.text.checked_values import Name, UrlCount
from nornweave.core.types import Domain
from nornweave.improve.records import ALL_DOMAINS

MAX_EVALUATIONS = 1000
Subject = Annotated[
    Name, Field(description=f"A domain, or `{ALL_DOMAINS}` for sets that are judged across domains.", examples=["code"])
]
SetName = Annotated[Name | None, Field(alias="set", description="Only this judged set.")]
GenerationName = Annotated[
    Name, Field(description="As `coverage` and `GET /evaluations` name it.", examples=["gen-000001"])
]


class HistoryQuery(Parameters):
    """The evaluations that are wanted."""

    domain: Subject | None = None
    set_name: SetName = None
    scope: Annotated[
        Name | None, Field(description="What it was run against: `domain`, `domain, no filter`, `all domains`.")
    ] = None
    generation: GenerationName | None = None
    limit: Annotated[
        UrlCount,
        Field(ge=1, le=MAX_EVALUATIONS, strict=True, description="At most this many evaluations, newest first."),
    ] = 100


class ComparisonQuery(Parameters):
    """The two generations to compare."""

    domain: Domain
    before: GenerationName
    after: GenerationName
    set_name: SetName = None


router = APIRouter(tags=["evaluations"], responses=problem_responses(401, 403, 421, 422, 500, 503))


@router.get("/evaluations", response_model=EvaluationsDocument)
async def evaluations(asked: Annotated[HistoryQuery, Query()], serving: Served) -> Response:
    """List evaluations, newest first: each judged set, stage by stage, with intervals."""
    return json_response(await serving.lookups.run(lambda: serving.engine.quality.evaluations(**dict(asked))))


@router.get("/evaluations/compare", response_model=ComparisonDocument)
async def compare(asked: Annotated[ComparisonQuery, Query()], serving: Served) -> Response:
    """Compare two generations of a domain query by query, largest losses first, with the queries that got worse."""
    found = await serving.lookups.run(
        lambda: serving.engine.quality.compare(asked.domain, asked.before, asked.after, asked.set_name)
    )
    return json_response(found)
