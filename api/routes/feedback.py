"""``POST /feedback``: a judgment of one item of an answer, as JSON or from a form of the pages."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import AfterValidator, Field, StringConstraints, ValidationError
from starlette.responses import RedirectResponse

from api.errors import ProblemError
from api.openapi import PROBLEMS
from api.pages.addresses import ASK, local
from api.requests import Body
from api.routes.login import checked_form
from api.schemas import json_response
from api.state import Served, serving_of
from nornweave.ask.feedback import REMEMBERED_DAYS, FeedbackDocument
from nornweave.ask.seen.answers import SeenAnswers
from nornweave.core.text.checked_values import Name, textual

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


router = APIRouter(tags=["feedback"], responses=PROBLEMS)


@router.post("/feedback", response_model=FeedbackDocument)
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
