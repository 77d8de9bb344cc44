"""``/login`` and ``/logout``: a session for people, where a token is set. ``/web/…``: style sheet and script."""

from __future__ import annotations

from urllib.parse import parse_qs, urlencode, urlsplit

import anyio
import anyio.to_thread
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Scope

from api.access.origins import client_address
from api.access.sessions import COOKIE, CSRF_FIELD, LASTS_S, MAX_CHARACTERS, is_csrf_token, new_session, session_of
from api.errors import ProblemError
from api.pages.addresses import ASK, JUDGE, LOGIN, LOGOUT, SYNC, local
from api.pages.rendering import FILES, PAGE_HEADERS, file_response, html_response
from api.schemas import prefers_html
from api.server.prefix import prefix_of
from api.state import service_of

OPEN_PATHS = frozenset({LOGIN, *FILES})
FORMS = frozenset({LOGIN, LOGOUT, JUDGE, SYNC})
# Of a wrong token; guessing costs a connection for as long.
PAUSE_S = 0.5
MAX_FORM_BYTES = 8192
_PAGES = ("/conflicts", "/quality", "/status")


async def login(request: Request) -> Response:
    """Show the form; go on where the browser has a session already, or where none is needed."""
    door = service_of(request).door
    target = local(request.query_params.get("next", ASK))
    if door.is_open or door.by_session(request.scope):
        return _redirect(target)
    return html_response(request, "login.html", {"next": target, "error": ""})


async def enter(request: Request) -> Response:
    """Compare the token and start a session."""
    door = service_of(request).door
    fields = await form_of(request)
    target = local(fields.get("next", ASK))
    if door.is_open or door.secret is None:
        return _redirect(target)
    entry = await door.enter(fields.get("token", "").strip(), client_address(request.scope))
    if entry is None:
        await anyio.sleep(PAUSE_S)
        return _again(request, target, "This is not the token of this service, nor one of somebody who may ask.")
    session = new_session(door.secret, who=entry.who, until=entry.until)
    if len(session) > MAX_CHARACTERS:
        return _again(request, target, "This token names more groups than a session can hold; send it as bearer token.")
    response = _redirect(target)
    response.set_cookie(
        COOKIE,
        session,
        max_age=LASTS_S,
        path=prefix_of(request.scope) or "/",
        httponly=True,
        samesite="strict",
        # A proxy may speak TLS for this server: the browser says of its own page how it was reached.
        secure="https" in {request.url.scheme, urlsplit(request.headers.get("origin", "")).scheme},
    )
    return response


def _again(request: Request, target: str, error: str) -> Response:
    return html_response(request, "login.html", {"next": target, "error": error}, 401)


async def leave(request: Request) -> Response:
    """End the session here and take it from the browser.

    Raises:
        StoreError: it cannot be ended here.
        ProblemError: see ``checked_form``.
    """
    await checked_form(request)
    door = service_of(request).door
    session = session_of(request.scope, door.secret)
    if session and door.ended:
        await anyio.to_thread.run_sync(door.ended.end, session.value)
    response = _redirect(LOGIN)
    response.delete_cookie(COOKIE, path=prefix_of(request.scope) or "/", httponly=True, samesite="strict")
    return response


async def part(request: Request) -> Response:
    """Return what the pages are made of."""
    return file_response(request.url.path)


def redirect_to_login(scope: Scope) -> Response | None:
    """Send a browser that asks for a page to the form; whoever asks for anything else gets the 401."""
    path: str = scope["path"]
    is_page = path == ASK or path in _PAGES or path.startswith(("/passages/", "/conflicts/"))
    accept = Headers(scope=scope).get("accept", "")
    if scope["method"] != "GET" or not is_page or not prefers_html(accept, otherwise=False):
        return None
    query = scope["query_string"].decode("latin-1")
    return _redirect(f"{LOGIN}?{urlencode({'next': path + ('?' + query if query else '')})}")


async def checked_form(request: Request) -> dict[str, str]:
    """Return the fields of a form that one of our pages sent.

    With a session the form has its CSRF token. Without one, ``origins.py`` has refused what other sites send.

    Raises:
        ProblemError: 403, another site made the browser send it; 413 or 415, it is no small form.
    """
    secret = service_of(request).door.secret
    fields = await form_of(request)
    session = session_of(request.scope, secret)
    if session and secret and not is_csrf_token(fields.get(CSRF_FIELD, ""), session.value, secret):
        raise ProblemError(403, "this form comes from another site, or from a page of another session; load it anew")
    return fields


async def browsers_form(request: Request) -> dict[str, str]:
    """Return the fields of a form that a browser sent from one of our pages: for what programs have commands for.

    Raises:
        ProblemError: see ``checked_form``.
    """
    if not {"origin", "sec-fetch-site"} & set(request.headers):
        raise ProblemError(403, "only a page of this server may ask for that; programs use `nornweave sync`")
    return await checked_form(request)


async def form_of(request: Request) -> dict[str, str]:
    """Return the fields of a form; of several with one name the last.

    Raises:
        ProblemError: 413 or 415, it is no small form.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise ProblemError(415, "send a form: content-type application/x-www-form-urlencoded")
    body = await request.body()
    if len(body) > MAX_FORM_BYTES:
        raise ProblemError(413, f"the form is larger than the {MAX_FORM_BYTES} bytes that are allowed")
    parsed = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=20)
    return {name: values[-1] for name, values in parsed.items()}


def _redirect(target: str) -> RedirectResponse:
    return RedirectResponse(target, status_code=303, headers=PAGE_HEADERS)


routes = [
    Route(LOGIN, login, methods=["GET"]),
    Route(LOGIN, enter, methods=["POST"]),
    Route(LOGOUT, leave, methods=["POST"]),
    *(Route(path, part, methods=["GET"]) for path in FILES),
]
