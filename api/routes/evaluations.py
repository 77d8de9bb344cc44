"""``GET /evaluations``: the history of measures, and the comparison of two generations."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from api.openapi import problem_responses
from api.schemas import json_response
from api.state import Served
from nornweave.ask.views.evaluations import ComparisonDocument, EvaluationsDocument, EvaluationsQuery
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


class HistoryQuery(BaseModel):
    """Which evaluations."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    domain: Subject | None = None
    set_name: SetName = None
    scope: Annotated[
        Name | None, Field(description="What it was run against: `domain`, `domain, no filter`, `all domains`.")
    ] = None
    generation: GenerationName | None = None
    limit: Annotated[UrlCount, Field(ge=1, le=MAX_EVALUATIONS, strict=True, description="The newest so many.")] = 100

    def asked(self) -> EvaluationsQuery:
        """Return it as the engine takes it."""
        return EvaluationsQuery(
            domain=self.domain,
            set_name=self.set_name,
            scope=self.scope,
            generation=self.generation,
            limit=self.limit,
        )


class ComparisonQuery(BaseModel):
    """Which two generations."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    domain: Domain
    before: GenerationName
    after: GenerationName
    set_name: SetName = None


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
