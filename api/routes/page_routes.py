"""Routes of pages: people get a page, also when something goes wrong; programs get JSON and problem documents."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TypeVar
from urllib.parse import parse_qsl, urlsplit

from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from api.access.origins import OWN_SITE, prefix_of
from api.errors import OURS, problem_of
from api.pages.addresses import ASK, ask_address
from api.pages.rendering import html_response
from api.schemas import prefers_html
from nornweave.core.errors import QueryError

Asked = TypeVar("Asked", bound=BaseModel)
Handler = Callable[..., Response | Awaitable[Response]]
Endpoint = Callable[[Request], Awaitable[Response]]
TITLES: Mapping[object, str] = {
    "invalid-request": "That cannot be asked",
    "no-generation": "Nothing is published yet",
    403: "Refused",
    404: "Not here",
    503: "Not now",
}
"""What a page of an error is called: by the kind of the problem, else by its status."""


class HtmlRoute(Route):
    """A route for clients that prefer HTML. Other clients get the answer of an operation at the same path."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match a request for HTML."""
        match, child = super().matches(scope)
        if match is not Match.NONE and not prefers_html(_accept(scope), otherwise=False):
            return Match.NONE, {}
        return match, child


def both(path: str, endpoint: Endpoint) -> list[Route]:
    """Return the routes of a page and of its data. The ``.json`` route is first, because names may end in it."""
    return [Route(f"{path}.json", endpoint, methods=["GET"]), Route(path, endpoint, methods=["GET"])]


def shown(endpoint: Endpoint, fields: Collection[str] | None = ()) -> Endpoint:
    """Return an endpoint that shows errors as a page to browsers; programs get a problem document.

    Args:
        fields: allowed query parameters; ``None`` leaves the check to the endpoint.
    """

    async def show(request: Request) -> Response:
        try:
            if fields is not None and (unknown := [name for name in request.query_params if name not in fields]):
                raise QueryError(unknown[0][:80], f"unknown field; allowed: {', '.join(sorted(fields)) or 'none'}")
            return await endpoint(request)
        except OURS as error:
            problem = problem_of(error)
            if wants_json(request) or problem is None:
                raise
            title = TITLES.get(problem.kind) or TITLES.get(problem.status_code, "That did not work")
            context = {"title": title, "detail": problem.detail}
            response = html_response(request, "error.html", context, problem.status_code)
            response.headers.update(problem.headers or {})
            return response

    return show


def missing_as_page(otherwise: Handler) -> Handler:
    """Return a handler that answers a 404 with a page for browsers, and in all other cases calls ``otherwise``."""

    async def handle(request: Request, error: HTTPException) -> Response:
        is_read = request.method == "GET" and prefers_html(_accept(request.scope), otherwise=False)
        if error.status_code != 404 or not is_read:
            answer = otherwise(request, error)
            return answer if isinstance(answer, Response) else await answer
        detail = f"There is nothing at {request.url.path[:200]}. Ask for what you are looking for."
        return html_response(request, "error.html", {"title": "No such page", "detail": detail}, 404)

    return handle


def _accept(scope: Scope) -> str:
    return b",".join(value for name, value in scope["headers"] if name == b"accept").decode("latin-1")


def wants_json(request: Request) -> bool:
    """Tell whether a request wants the data of a page, by its suffix or by ``Accept``."""
    return request.url.path.endswith(".json") or not prefers_html(_accept(request.scope), otherwise=True)


def data_address(request: Request, address: str) -> str:
    """Return the address of a page's data as JSON, with the same query."""
    return f"{address}.json?{request.url.query}" if request.url.query else f"{address}.json"


def is_from_here(request: Request) -> bool:
    """Tell whether a request was made by a page of this server or a person, not by another site."""
    return request.headers.get("sec-fetch-site", "none") in OWN_SITE


def came_from(request: Request) -> tuple[str, str]:
    """Return the question of the page in ``Referer`` and the address of its answer; two empty texts for other pages."""
    referer = urlsplit(request.headers.get("referer", ""))
    pairs = parse_qsl(referer.query)
    asked = next((value for name, value in pairs if name == "q"), "")
    if not asked or referer.netloc != request.url.netloc or referer.path != prefix_of(request.scope) + ASK:
        return "", ""
    return asked, ask_address(pairs)


def validated(kind: type[Asked], given: Mapping[str, str | list[str]]) -> Asked:
    """Return query parameters checked by an operation's model; blank fields are left out.

    Raises:
        QueryError: a field is unknown or wrong.
    """
    try:
        return kind.model_validate({name: value for name, value in given.items() if "".join(value).strip()})
    except ValidationError as error:
        first = error.errors()[0]
        raise QueryError(".".join(map(str, first["loc"]))[:80], first["msg"]) from error
