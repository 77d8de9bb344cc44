"""Responses of pages: templates, escaped and with their headers; people get a page, also when something goes wrong."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from fastapi.responses import FileResponse
from markupsafe import Markup, escape
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from api.access.door import VIEWER
from api.access.origins import OWN_SITE, prefix_of
from api.access.sessions import csrf_token, session_of
from api.errors import OURS, ProblemError, problem_of
from api.pages.addresses import ASK, CONFLICTS, QUALITY, STATUS, age_of, ask_address, day_of
from api.pages.text_runs import CITE, HIT, UNSEEN, TextRun, runs_of
from api.schemas import prefers_html
from api.state import service_of
from nornweave.core.access import Viewer
from nornweave.core.errors import QueryError
from nornweave.core.types import present

if TYPE_CHECKING:
    from jinja2 import Environment

NAVIGATION = ((ASK, "Ask"), (CONFLICTS, "Conflicts"), (QUALITY, "Quality"), (STATUS, "Status"), ("/docs", "API"))
FOR_OPERATORS = frozenset({QUALITY, STATUS})
_AWAY = 'rel="noreferrer noopener nofollow" target="_blank"'
# Texts are escaped: a quotation mark before a slash is one of a template.
_OWN_ADDRESS = re.compile(r'(\s(?:href|action|src|data-(?:root|next|copy-link))=")(/(?!/))')
WEB = Path(__file__).parent.parent / "web"
FILES = {
    "/web/page.css": ("page.css", "text/css"),
    "/web/page.js": ("page.js", "text/javascript"),
}


def policy(form_action: str) -> str:
    """Return the content security policy of a page. ``form_action`` is where its forms may be sent."""
    own = ("style-src 'self'", "script-src 'self'", "img-src 'self' data:", "connect-src 'self'")
    nobody = ("base-uri 'none'", "frame-ancestors 'none'")
    return "; ".join(("default-src 'none'", *own, f"form-action {form_action}", *nobody))


HEADERS = {
    "Content-Security-Policy": policy("'self'"),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}
# A page depends on its viewer and on the moment; the same address answers HTML and JSON.
PAGE_HEADERS = {**HEADERS, "Cache-Control": "no-store", "Vary": "Accept, Cookie"}


def html_response(
    request: Request,
    template: str,
    context: Mapping[str, Any],
    status: int = 200,
    *,
    current: str = "",
    json_href: str = "",
) -> Response:
    """Return a whole page: navigation, session, and a link to its data as JSON.

    Args:
        request: for the page.
        current: address of the page in the navigation; empty for none.
        json_href: the address of the same data as JSON; empty for none.
    """
    service = service_of(request)
    session, secret = session_of(request.scope, service.door.secret), service.door.secret
    viewer: Viewer | None = request.scope.get(VIEWER)
    shown = NAVIGATION if viewer else ()
    text = (
        _environment()
        .get_template(template)
        .render(
            navigation=[one for one in shown if (viewer and viewer.operates) or one[0] not in FOR_OPERATORS],
            current=current,
            json_href=json_href,
            may_dismiss=bool(viewer and viewer.operates) and service.sources_file is not None,
            makes_tokens=bool(viewer and viewer.makes_tokens) and service.door.own_tokens is not None,
            csrf=csrf_token(session.value, secret) if session and secret else "",
            alone=service.alone.value if service.alone else "",
            **context,
        )
    )
    if prefix := prefix_of(request.scope):
        text = _OWN_ADDRESS.sub(rf"\1{prefix}\2", text)
    return Response(text, status_code=status, headers=PAGE_HEADERS, media_type="text/html")


def file_response(path: str) -> Response:
    """Return a file of the pages. Its address changes with its contents, so browsers may cache it for long.

    Raises:
        ProblemError: 404, there is no such part.
    """
    if path not in FILES:
        raise ProblemError(404, f"no such path: {path[:200]}")
    name, media_type = FILES[path]
    headers = {**HEADERS, "Cache-Control": "public, max-age=31536000, immutable"}
    return FileResponse(WEB / name, media_type=media_type, headers=headers)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(WEB / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["runs"] = printed
    environment.filters["day"] = day_of
    environment.filters["age"] = lambda moment: age_of(moment, present())
    environment.globals["assets"] = {
        name.partition(".")[2]: f"{path}?v={_version(name)}" for path, (name, _) in FILES.items()
    }
    return environment


def printed(runs: Iterable[TextRun] | str) -> Markup:
    """Return a text or runs as HTML. Neighbouring runs of the same style and link share one element."""
    runs = runs_of(runs) if isinstance(runs, str) else runs
    parts: list[str] = []
    for (style, href), group in groupby(runs, key=itemgetter(2, 3)):
        text = "".join(map(_printed_run, group))
        if style == CITE:
            parts.append(f'<a class="cite" href="{escape(href)}" data-passage>{text}</a>')
            continue
        text = f"<{style}>{text}</{style}>" if style else text
        parts.append(f'<a href="{escape(href)}" {_AWAY}>{text}</a>' if href else text)
    return Markup("".join(parts))  # noqa: S704 - every run is escaped


def _printed_run(run: TextRun) -> str:
    text = str(escape(run.text))
    if run.kind == HIT:
        return f"<mark>{text}</mark>"
    if run.kind == UNSEEN:
        return f'<span class="odd" title="a character that nobody sees">{text}</span>'
    return f'<span class="t-{run.kind}">{text}</span>' if run.kind else text


def _version(name: str) -> str:
    return hashlib.sha256((WEB / name).read_bytes()).hexdigest()[:12]


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
