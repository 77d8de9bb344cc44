"""``/login``, ``/callback`` and ``/logout``: a session for people. ``/web/…``: style sheet and script.

People sign in at the identity provider if a client of it is configured, else with a token in a form. The form stays
at ``/login?token``.

The cookie of a session is strict: a browser that comes from the provider sends it only after a page of ours leads it
on. A form may not be redirected to the provider either, because of the content security policy. So a page leads on both
times.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from urllib.parse import parse_qs, urlencode, urlsplit

import anyio
import anyio.to_thread
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Scope

from api.access.origins import client_address, prefix_of
from api.access.sessions import (
    COOKIE,
    CSRF_FIELD,
    LASTS_S,
    MAX_CHARACTERS,
    SIGNED_IN,
    is_csrf_token,
    new_session,
    session_of,
)
from api.errors import ProblemError
from api.pages.addresses import (
    ASK,
    CALLBACK,
    CONFLICTS,
    DISMISS,
    FIND,
    JUDGE,
    LOGIN,
    LOGOUT,
    QUALITY,
    SOURCES_FORM,
    STATUS,
    SYNC,
    TOKENS,
    TOKENS_FORM,
    WHY,
    local,
    own_address,
)
from api.pages.rendering import FILES, PAGE_HEADERS, file_response, html_response, shown
from api.schemas import prefers_html
from api.state import service_of

OPEN_PATHS = frozenset({LOGIN, CALLBACK, LOGOUT, *FILES})
FORMS = frozenset({LOGIN, LOGOUT, JUDGE, SYNC, DISMISS, SOURCES_FORM, TOKENS_FORM})
# Of a wrong token; guessing costs a connection for as long.
PAUSE_S = 0.5
MAX_FORM_BYTES = 8192
_PAGES = (CONFLICTS, QUALITY, STATUS, TOKENS, FIND, WHY)


async def login(request: Request) -> Response:
    """Send the browser to the provider or show the form. A browser that needs no login is sent to its target.

    A provider that does not answer is said to be down, with 503.
    """
    service = service_of(request)
    door, secret = service.door, service.door.secret
    target = local(request.query_params.get("next", ASK))
    if secret is None or await door.by_session(request.scope):
        return _redirect(target)
    if door.sign_in is None or "token" in request.query_params:
        return html_response(request, "login.html", {"next": target, "error": ""})
    if request.headers.get("sec-fetch-site") == "cross-site":
        return _lead_on(request, target)  # with the cookie, if there is one
    base = own_address(service.public_url, request)
    try:
        begun, address = await door.ask_provider(partial(door.sign_in.begin, base, target))
    except ProblemError as error:
        page = _not_signed_in(request, error.status_code, f"{error.detail}. Try again in a moment.", target)
        page.headers.update(error.headers or {})
        return page
    response = RedirectResponse(address, status_code=303, headers=PAGE_HEADERS)
    _set_cookie(request, response, begun.cookie, begun.value, base)
    return response


async def callback(request: Request) -> Response:
    """Start the session of a person whom the provider sent back, and open the page that they asked for.

    Raises:
        ProblemError: 404, no provider is configured; 503, it cannot be asked.
        StoreError: the session cannot be stored.
    """
    service, given = service_of(request), request.query_params
    door = service.door
    if door.sign_in is None or door.people is None or door.ended is None:
        raise ProblemError(404, "no identity provider signs people in here; `access.oidc.client_id` names one")
    begun = door.sign_in.begun(given.get("state", ""), request.cookies)
    if begun is None or len(given.multi_items()) != len(given):
        return _not_signed_in(
            request, 400, "This browser began no such sign-in, or began it more than ten minutes ago."
        )
    if not await anyio.to_thread.run_sync(door.ended.end, begun.value):
        return _not_signed_in(request, 400, "This sign-in is over; it cannot be used twice.")
    base, address = own_address(service.public_url, request), client_address(request.scope)
    door.check_attempts(address, begun.value)
    try:
        signed_in = await door.ask_provider(partial(door.sign_in.finish, base, given, begun))
    except ProblemError as error:
        if error.status_code < 500:
            door.attempts.note(address, begun.value, is_right=False)
        return _not_signed_in(request, error.status_code, f"{error.detail}.", begun.target)
    session = await anyio.to_thread.run_sync(door.people.begin, signed_in)
    response = _lead_on(request, begun.target)
    _set_cookie(request, response, COOKIE, session, base)
    response.delete_cookie(begun.cookie, path=_cookie_path(request, CALLBACK), httponly=True)
    return response


async def enter(request: Request) -> Response:
    """Compare the token and start a session."""
    door = service_of(request).door
    fields = await form_of(request)
    target = local(fields.get("next", ASK))
    if door.is_open or door.secret is None:
        return _redirect(target)
    entry = await door.enter(fields.get("token", "").strip(), client_address(request.scope))
    if entry is not None and not entry.who:
        return _again(request, target, "This token was made for a program: send it as bearer token.")
    if entry is None:
        await anyio.sleep(PAUSE_S)
        return _again(request, target, "This is not the token of this service, nor one of somebody who may ask.")
    session = new_session(door.secret, who=entry.who, until=entry.until)
    if len(session) > MAX_CHARACTERS:
        return _again(request, target, "This token names more groups than a session can hold; send it as bearer token.")
    response = _redirect(target)
    # A proxy may speak TLS for this server: the browser says of its own page how it was reached.
    _set_cookie(request, response, COOKIE, session, request.headers.get("origin", ""))
    return response


def _again(request: Request, target: str, error: str) -> Response:
    return html_response(request, "login.html", {"next": target, "error": error}, 401)


def _set_cookie(request: Request, response: Response, name: str, value: str, base: str) -> None:
    """Set the cookie of a session, or of a sign-in that has begun.

    The browser sends the cookie of a sign-in even on the way back from the provider, which is another site.
    """
    is_session = name == COOKIE
    response.set_cookie(
        name,
        value,
        max_age=LASTS_S if is_session else None,
        path=_cookie_path(request, "/" if is_session else CALLBACK),
        httponly=True,
        samesite="strict" if is_session else "lax",
        secure="https" in {request.url.scheme, urlsplit(base).scheme},
    )


def _cookie_path(request: Request, path: str) -> str:
    prefix = prefix_of(request.scope)
    return prefix if prefix and path == "/" else prefix + path


def _lead_on(request: Request, address: str) -> Response:
    """Return a page that sends the browser on at once."""
    prefix = prefix_of(request.scope) if address.startswith("/") else ""
    context = {"title": "One moment", "detail": "", "next": "", "onward": address, "prefix": prefix}
    return html_response(request, "signing_in.html", context)


def _not_signed_in(
    request: Request, status: int, detail: str, target: str = ASK, title: str = "Not signed in"
) -> Response:
    context = {"title": title, "detail": detail, "next": urlencode({"next": target}), "onward": "", "prefix": ""}
    return html_response(request, "signing_in.html", context, status)


async def leave(request: Request) -> Response:
    """End the session and delete its cookie. A browser that signed in at the provider is sent there to sign out.

    Raises:
        StoreError: the session cannot be ended here.
        ProblemError: as ``checked_form``.
    """
    await checked_form(request)
    service = service_of(request)
    door, base = service.door, own_address(service.public_url, request)
    session = session_of(request.scope, door.secret)
    response: Response = _redirect(LOGOUT if door.sign_in else LOGIN)
    if session and door.people and door.sign_in and session.who.get("kind") == SIGNED_IN:
        id_token = await anyio.to_thread.run_sync(door.people.end, session.value)
        with suppress(ProblemError):  # it cannot be asked where that is
            leave_address = await door.ask_provider(partial(door.sign_in.leave_address, base, id_token))
            response = _lead_on(request, leave_address or LOGOUT)
    elif session and door.ended:
        await anyio.to_thread.run_sync(door.ended.end, session.value)
    response.delete_cookie(COOKIE, path=_cookie_path(request, "/"), httponly=True, samesite="strict")
    return response


async def signed_out(request: Request) -> Response:
    """Show that nobody is signed in, with a link to sign in. Signing in at once would undo the logout."""
    door = service_of(request).door
    if door.sign_in is None or await door.by_session(request.scope):
        return _redirect(ASK)
    detail = f"Your session here has ended. {door.sign_in.host} may still know you, and sign you in without asking."
    return _not_signed_in(request, 200, detail, title="Signed out")


async def part(request: Request) -> Response:
    """Return a file of the pages."""
    return file_response(request.url.path)


def redirect_to_login(scope: Scope) -> Response | None:
    """Return a redirect to the login if a browser asks for a page; ``None`` otherwise, which becomes a 401."""
    path: str = scope["path"]
    is_page = path == ASK or path in _PAGES or path.startswith(("/passages/", "/conflicts/"))
    accept = Headers(scope=scope).get("accept", "")
    if scope["method"] != "GET" or not is_page or not prefers_html(accept, otherwise=False):
        return None
    query = scope["query_string"].decode("latin-1")
    return _redirect(f"{LOGIN}?{urlencode({'next': path + ('?' + query if query else '')})}")


async def checked_form(request: Request) -> dict[str, str]:
    """Return the fields of a form that one of our pages sent.

    In a session, the form must have the session's CSRF token. Otherwise ``origins.py`` refuses forms of other sites.

    Raises:
        ProblemError: 403, another site made the browser send it; 413 or 415, it is too large or not a form.
    """
    secret = service_of(request).door.secret
    fields = await form_of(request)
    session = session_of(request.scope, secret)
    if session and secret and not is_csrf_token(fields.get(CSRF_FIELD, ""), session.value, secret):
        raise ProblemError(403, "this form comes from another site, or from a page of another session; load it anew")
    return fields


async def browsers_form(request: Request) -> dict[str, str]:
    """Return the fields of a form that a browser sent from one of our pages. Programs use commands instead.

    Raises:
        ProblemError: as ``checked_form``.
    """
    if not {"origin", "sec-fetch-site"} & set(request.headers):
        raise ProblemError(403, "only a page of this server may ask for that; programs use `nornweave sync`")
    return await checked_form(request)


async def form_of(request: Request) -> dict[str, str]:
    """Return the fields of a form. If a name occurs several times, the last value is used.

    Raises:
        ProblemError: 413 or 415, it is too large or not a form.
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
    Route(LOGIN, shown(login, None), methods=["GET"]),
    Route(CALLBACK, shown(callback, None), methods=["GET"]),
    Route(LOGOUT, signed_out, methods=["GET"]),
    Route(LOGIN, enter, methods=["POST"]),
    Route(LOGOUT, leave, methods=["POST"]),
    *(Route(path, part, methods=["GET"]) for path in FILES),
]
