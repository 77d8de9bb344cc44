"""Which evaluations are asked for: the parameters of ``GET /evaluations`` and of its comparison."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from nornweave.ask.views.evaluations import EvaluationsQuery
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
