"""``/feedback``: what a user says of one item of one answer, on disk before the answer."""

from __future__ import annotations

from fastapi import APIRouter, Response

from api.errors import ProblemError
from api.feedback_body import FeedbackBody
from api.openapi import PROBLEMS
from api.schemas import json_response
from api.state import Served
from nornweave.ask.feedback.book import REMEMBERED_DAYS, FeedbackDocument
from nornweave.ask.seen.answers import SeenAnswers

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
