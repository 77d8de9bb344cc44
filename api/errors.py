"""Errors as RFC 9457 problem documents: every error has this shape and never a stack trace.

Below ``/v1`` the member ``error`` says the same as OpenAI's clients read it.

==========================  ======  =====================================================
raised                      status  says
==========================  ======  =====================================================
broken JSON, not UTF-8      400     where
missing or wrong token      401     which header is expected (``auth.py``)
for operators alone         403     who may (``NotPermittedError``)
unknown path, domain,       404     what is there
chunk, document, answer,
older generation
wrong method                405     ``Allow``
body too slow               408     the time (``limits.py``)
body too large              413     the limit (``limits.py``)
not ``application/json``    415     what was found
foreign ``Host``            421     which names are answered (``access/origins.py``)
headers too large, many     431     the limit (``limits.py``)
wrong field, QueryError     422     ``errors``: every field with what is allowed
anything unexpected         500     an id that the log repeats
too many event streams      429     how many are open at a time
many wrong tokens           429     the address sent 30 within a minute
busy, starting, stopping,   503     the reason, ``Retry-After``
no generation, StoreError,
inbox that cannot be written
==========================  ======  =====================================================
"""

from __future__ import annotations

import json
import logging
import math
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Literal, NotRequired

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from typing_extensions import TypedDict

from nornweave.core.errors import (
    EncoderError,
    GenerationNotKeptError,
    NoGenerationError,
    NotPermittedError,
    QueryError,
    SourceUnavailableError,
    StoreError,
)

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
# A body may hold thousands of wrong fields; a reader mends the first few.
MAX_FIELDS = 20
MAX_SHOWN = 80
RETRY_SOON_S, RETRY_UNPUBLISHED_S, RETRY_STORE_S = 2, 30, 10

Handler = Callable[[Request, Any], Awaitable[Response]]


class FieldProblem(TypedDict):
    """A wrong field: its path in the body, and the allowed values."""

    field: str
    detail: str


class ChatError(TypedDict):
    """An error as OpenAI's clients read it; below ``/v1`` it stands beside the other members of a problem."""

    message: str
    type: Literal["invalid_request_error", "rate_limit_error", "server_error"]
    code: str
    param: str | None


class Problem(TypedDict):
    """A problem document.

    ``type`` is ``about:blank`` where the status says it all, otherwise a name that programs can rely on.
    """

    type: str
    title: str
    status: int
    detail: str
    instance: NotRequired[str]
    errors: NotRequired[list[FieldProblem]]
    error: NotRequired[ChatError]


class ProblemError(HTTPException):
    """Ends a request with a problem document.

    Args:
        detail: what was found, what is allowed, what to do.
        kind: short name of the problem, the last part of its ``type``; ``None`` if the status says enough.
        errors: the fields that are wrong.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        kind: str | None = None,
        headers: Mapping[str, str] | None = None,
        errors: Sequence[FieldProblem] = (),
    ) -> None:
        super().__init__(status, detail, headers)
        self.kind = kind
        self.errors = errors

    def response(self) -> Response:
        """Return the response with the problem document."""
        return problem_response(self.status_code, self.detail, kind=self.kind, headers=self.headers, errors=self.errors)


def unavailable(kind: str, detail: str, retry_s: int) -> ProblemError:
    """Return a 503 that says when to come back."""
    return ProblemError(503, detail, kind=kind, headers={"Retry-After": str(retry_s)})


def problem_response(
    status: int,
    detail: str,
    *,
    kind: str | None = None,
    headers: Mapping[str, str] | None = None,
    errors: Sequence[FieldProblem] = (),
    instance: str | None = None,
    extensions: Mapping[str, object] | None = None,
) -> Response:
    """Return a problem document as a response. ``errors`` and ``instance`` are left out if they are empty.

    ``kind`` is the last part of ``type``; ``None`` if the status says it all. ``extensions`` are further members.
    """
    phrase = HTTPStatus(status).phrase
    problem: Problem = {
        "type": f"urn:nornweave:problem:{kind}" if kind else "about:blank",
        "title": kind.replace("-", " ").capitalize() if kind else phrase,
        "status": status,
        "detail": encodable(detail),
    }
    if instance:
        problem["instance"] = instance
    if errors:
        problem["errors"] = [
            {"field": encodable(error["field"]), "detail": encodable(error["detail"])} for error in errors
        ]
    return _ProblemResponse({**problem, **(extensions or {})}, status_code=status, headers=dict(headers or {}))


class _ProblemResponse(Response):
    """A problem document. Below ``/v1`` it also has the ``error`` that chat clients read."""

    media_type = MEDIA_TYPE

    def render(self, content: Any) -> bytes:
        """Return the document as JSON."""
        return json.dumps(content, ensure_ascii=False).encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        if scope["path"].startswith("/v1/"):
            problem = json.loads(bytes(self.body))
            self.body = self.render({"error": chat_error(problem), **problem})
            self.headers["content-length"] = str(len(self.body))
        await super().__call__(scope, receive, send)


def chat_error(problem: Problem) -> ChatError:
    """Return a problem as OpenAI's clients read it."""
    status, wrong = problem["status"], problem.get("errors")
    return {
        "message": problem["detail"],
        "type": "server_error" if status >= 500 else "rate_limit_error" if status == 429 else "invalid_request_error",
        "code": problem["title"].lower().replace(" ", "_"),
        "param": wrong[0]["field"] if wrong else None,
    }


def problem_of(error: Exception) -> ProblemError | None:
    """Return the problem document for one of our errors; ``None`` for an unexpected error."""
    match error:
        case ProblemError():
            return error
        case QueryError():
            return _invalid([{"field": error.field, "detail": error.problem}])
        case NotPermittedError():
            return ProblemError(403, str(error))
        case GenerationNotKeptError():
            return ProblemError(404, str(error), kind="generation-not-kept")
        case NoGenerationError():
            return unavailable("no-generation", str(error), RETRY_UNPUBLISHED_S)
        case StoreError():
            logger.error("what is stored cannot be read or written: %s", error)
            return unavailable("store-unavailable", str(error), RETRY_STORE_S)
        case EncoderError():
            logger.error("a query cannot be encoded: %s", error)
            return unavailable("encoder-unavailable", str(error), RETRY_STORE_S)
        case SourceUnavailableError():
            # The reason names a folder of this machine, which is nobody else's to know.
            logger.error("documents cannot be handed in: %s", error)
            detail = "the inbox cannot be written; the log of the server says why"
            return unavailable("inbox-unavailable", detail, RETRY_STORE_S)
    return None


OURS = (ProblemError, QueryError, NotPermittedError, StoreError, EncoderError, SourceUnavailableError)
"""The errors that ``problem_of`` knows."""


def add_handlers(app: FastAPI) -> None:
    """Answer every error of ``app`` with a problem document."""
    ours: dict[type[Exception], Handler] = dict.fromkeys(OURS, _ours)
    app.exception_handlers.update({**ours, RequestValidationError: _validation, HTTPException: _http})


async def _ours(_request: Request, error: Exception) -> Response:
    problem = problem_of(error)
    assert problem, "handlers are added for errors that are known"
    return problem.response()


async def _http(request: Request, error: HTTPException) -> Response:
    status, headers = error.status_code, error.headers
    if isinstance(error.__cause__, MemoryError):
        return problem_response(413, "the body holds more values than there is memory for; send less at once")
    if isinstance(error.__cause__, RecursionError):
        return _invalid([{"field": "body", "detail": "nested too deeply"}]).response()
    if status == 400 and error.__cause__ is not None:
        return problem_response(400, f"the body is not JSON in UTF-8: {error.__cause__}")
    if status == 404:
        return problem_response(404, f"no such path: {request.url.path}; /openapi.json lists what there is")
    if status == 405:
        allowed = (headers or {}).get("Allow", "another method")
        return problem_response(405, f"{request.method} is not allowed here; allowed: {allowed}", headers=headers)
    return problem_response(status, str(error.detail), headers=headers)


async def _validation(request: Request, error: RequestValidationError) -> Response:
    failures = error.errors()
    broken = next((failure for failure in failures if failure["type"] == "json_invalid"), None)
    if broken:
        place = f"{broken['ctx']['error']} at character {broken['loc'][-1]}"
        return problem_response(400, f"the body is not JSON: {place}")
    if isinstance(error.body, bytes):
        content_type = request.headers.get("content-type", "nothing")
        return problem_response(415, f"send the body as content-type application/json, found {content_type}")
    errors: list[FieldProblem] = [field_problem(failure) for failure in failures[:MAX_FIELDS]]
    return _invalid(errors, hidden=len(failures) - len(errors)).response()


class Unexpected:
    """Turns an unhandled exception into a 500 with an incident id; the log has the traceback under it.

    It is a middleware and not a handler of ``Exception``, because Starlette raises the error again after such a
    handler, and the server would log the error a second time.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        started = False

        async def noting(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except Exception as error:
            if started or scope["type"] != "http":
                raise
            problem = unexpected_problem(error, f"{scope['method']} {encodable(scope['path'])}")
            answer = problem_response(500, problem["detail"], instance=problem["instance"])
            await answer(scope, receive, send)


def unexpected_problem(error: Exception, where: str) -> Problem:
    """Log an unexpected error under a new id; return a problem document that names only this id."""
    occurrence = uuid.uuid4()
    logger.error("error %s at %s", occurrence, where, exc_info=error)
    return {
        "type": "about:blank",
        "title": HTTPStatus(500).phrase,
        "status": 500,
        "detail": f"an unexpected error; the log of the server tells more under {occurrence}",
        "instance": f"urn:uuid:{occurrence}",
    }


def _invalid(errors: Sequence[FieldProblem], hidden: int = 0) -> ProblemError:
    detail = "; ".join(f"{error['field']}: {error['detail']}" for error in errors)
    more = f"; and {hidden} more" if hidden else ""
    return ProblemError(422, detail + more, kind="invalid-request", errors=errors)


def field_problem(failure: Mapping[str, Any]) -> FieldProblem:
    """Return pydantic's error about a field in our words, without the leading body, path or query."""
    location = [str(part) for part in failure["loc"][1:] if part != "[key]"] or [str(failure["loc"][0])]
    field = ".".join(location)
    if failure["type"] == "missing":
        return {"field": field[:MAX_SHOWN], "detail": "is missing"}
    if failure["type"] == "extra_forbidden":
        return {"field": field[:MAX_SHOWN], "detail": "unknown field"}
    message = failure["msg"].removeprefix("Value error, ")
    return {"field": field[:MAX_SHOWN], "detail": f"{message}{_describe_value(failure['input'])}"}


def _describe_value(value: object) -> str:
    """Return the wrong value as a phrase for an error message. Long or nested values are only described."""
    if isinstance(value, str):
        return f", found {value!r}" if len(value) <= MAX_SHOWN else f", found {len(value)} characters"
    if value is None or isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value)):
        return f", found {json.dumps(value)}"
    if isinstance(value, int | float):
        return f", found {value!r}" if abs(value) < 1e18 else ", found a larger number"
    return f", found {'an object' if isinstance(value, Mapping) else 'a list'}"


def encodable(text: str) -> str:
    """Return text that UTF-8 can encode: a lone surrogate becomes a backslash escape."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
