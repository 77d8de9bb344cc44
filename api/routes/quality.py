"""How good answers are and were: ``/evaluations``, ``/feedback``, and ``/generations/{a}/diff/{b}``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from fastapi.responses import PlainTextResponse
from pydantic import AfterValidator, Field, StringConstraints, ValidationError
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from api.errors import ProblemError
from api.openapi import PROBLEMS, problem_responses
from api.pages.addresses import ASK, local
from api.requests import Body, Parameters
from api.requests.query import served_domain
from api.routes.login import checked_form
from api.schemas import json_response
from api.state import Served, serving_of
from nornweave.ask.feedback import REMEMBERED_DAYS, FeedbackDocument
from nornweave.ask.seen.answers import SeenAnswers
from nornweave.ask.views.changes import ChangesDocument, changes_text
from nornweave.ask.views.evaluations import ComparisonDocument, EvaluationsDocument
from nornweave.core.text.checked_values import Name, UrlCount, textual
from nornweave.core.types import Domain, present
from nornweave.improve.records import ALL_DOMAINS
from nornweave.index.generations.moves import read_as_of

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


evaluations_router = APIRouter(tags=["evaluations"], responses=problem_responses(401, 403, 421, 422, 500, 503))


@evaluations_router.get("/evaluations", response_model=EvaluationsDocument)
async def evaluations(asked: Annotated[HistoryQuery, Query()], serving: Served) -> Response:
    """List evaluations, newest first: each judged set, stage by stage, with intervals."""
    return json_response(await serving.lookups.run(lambda: serving.engine.quality.evaluations(**dict(asked))))


@evaluations_router.get("/evaluations/compare", response_model=ComparisonDocument)
async def compare(asked: Annotated[ComparisonQuery, Query()], serving: Served) -> Response:
    """Compare two generations of a domain query by query, largest losses first, with the queries that got worse."""
    found = await serving.lookups.run(
        lambda: serving.engine.quality.compare(asked.domain, asked.before, asked.after, asked.set_name)
    )
    return json_response(found)


MAX_QUERY_ID_CHARACTERS = 64


class FeedbackBody(Body):
    """Whether one item of one answer was useful."""

    query_id: Annotated[
        str,
        StringConstraints(min_length=1, max_length=MAX_QUERY_ID_CHARACTERS),
        AfterValidator(textual),
        Field(description="Of an answer of `/query`."),
    ]
    chunk_id: Annotated[Name, Field(description="Of an item that the answer showed.")]
    useful: Annotated[bool, Field(description="Whether the item helped with the question; true or false, no number.")]


feedback_router = APIRouter(tags=["feedback"], responses=PROBLEMS)


@feedback_router.post("/feedback", response_model=FeedbackDocument)
async def feedback(body: FeedbackBody, serving: Served) -> Response:
    """Say whether an item of an answer was useful. The last of several judgments counts; a repetition changes nothing.

    The judgment is on disk before the response, hence status 200. Evaluations use it.
    """
    return await serving.judging.run(lambda: _stored(serving.engine.answers, body))


def _stored(answers: SeenAnswers, body: FeedbackBody) -> Response:
    document = answers.feedback(body.query_id, body.chunk_id, body.useful)
    if document is None:
        raise ProblemError(404, _unknown(body.query_id))
    return json_response(document)


def _unknown(query_id: str) -> str:
    return (
        f"no answer {query_id!r} is remembered; JSON answers of /query can be judged, for {REMEMBERED_DAYS} days, "
        "unless the configuration says feedback.keep_queries: false; answers of /fuse and texts cannot"
    )


async def judge(request: Request) -> Response:
    """Store a judgment from a form without scripts, and redirect back to the answer."""
    serving = serving_of(request)
    fields = await checked_form(request)
    try:
        body = FeedbackBody(
            query_id=fields.get("query_id", ""),
            chunk_id=fields.get("chunk_id", ""),
            useful=fields.get("useful") == "true",
        )
    except ValidationError as error:
        raise ProblemError(422, "query_id and chunk_id are needed") from error
    answers = serving.engine.answers
    stored = await serving.judging.run(lambda: answers.feedback(body.query_id, body.chunk_id, body.useful))
    if stored is None:
        raise ProblemError(404, "this answer is not remembered any more; ask again and judge then")
    return RedirectResponse(local(fields.get("next", ASK)), status_code=303)


generations_router = APIRouter(tags=["answers"], responses=problem_responses(401, 404, 421, 422, 500, 503))

MomentField = Annotated[str, Path(max_length=64, description="An RFC 3339 time, or a generation such as gen-000012.")]
TEXT: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}


@generations_router.get("/generations/{a}/diff/{b}", response_model=ChangesDocument, responses=TEXT)
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
