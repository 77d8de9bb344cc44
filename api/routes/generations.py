"""``/generations/{a}/diff/{b}``: what changed between two moments."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import PlainTextResponse

from api.openapi import problem_responses
from api.requests.query import served_domain
from api.schemas import json_response
from api.state import Served
from nornweave.ask.views.changes import ChangesDocument, changes_text
from nornweave.core.types import present
from nornweave.index.generations.moves import read_as_of

router = APIRouter(tags=["answers"], responses=problem_responses(401, 404, 421, 422, 500, 503))

MomentField = Annotated[str, Path(max_length=64, description="An RFC 3339 time, or a generation such as gen-000012.")]
TEXT: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}


@router.get("/generations/{a}/diff/{b}", response_model=ChangesDocument, responses=TEXT)
async def diff(
    a: MomentField,
    b: MomentField,
    serving: Served,
    domain: Annotated[str | None, Query(max_length=64, description="Only this one; each numbers its own.")] = None,
    form: Annotated[Literal["json", "text"], Query(alias="format", description="`text` answers text/plain.")] = "json",
) -> Response:
    """Compare the generations of two moments: documents, facts, conflicts and, for operators, judged questions.

    Only documents that the asker may see today are compared. Domains that do not keep both moments are named.
    """
    moments = read_as_of(a, present(), "a"), read_as_of(b, present(), "b")
    only = served_domain(domain, serving.domains) if domain else None

    def compare() -> ChangesDocument:
        from evals.sets import judged_questions

        return serving.engine.changes.between(*moments, only, judged_questions)

    changes = await serving.finding.run(compare)
    return PlainTextResponse(changes_text(changes)) if form == "text" else json_response(changes)
