"""``POST /feedback``: a judgment of one item of an answer."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from api.errors import ProblemError
from api.openapi import PROBLEMS
from api.schemas import json_response
from api.state import Served
from nornweave.ask.feedback.book import REMEMBERED_DAYS, FeedbackDocument
from nornweave.ask.seen.answers import SeenAnswers
from nornweave.core.text.checked_values import Name, textual

MAX_QUERY_ID_CHARACTERS = 64


class FeedbackBody(BaseModel):
    """Whether one item of one answer was useful."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

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
    """Say whether an item of an answer was useful. The last word of several counts; saying it again changes nothing.

    It is on disk when this answers, and nothing is left to be done: hence 200. Evaluations take it as a judgment.
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
