"""Who may ask: a bearer token when ``NORNWEAVE_SERVICE_TOKEN`` is set, and nobody from outside when it is not.

People may give the token in a form instead; their browser then sends a session (``sessions.py``).
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Callable, Collection, Mapping

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from api.errors import problem_response
from api.sessions import CSRF_HEADER, is_csrf_token, session_of
from nornweave.errors import ConfigError

TOKEN_VARIABLE = "NORNWEAVE_SERVICE_TOKEN"  # noqa: S105 - the name of the variable


def service_token(environment: Mapping[str, str]) -> str | None:
    """Return the configured token without blanks around it, ``None`` when there is none."""
    return environment.get(TOKEN_VARIABLE, "").strip() or None


def check_listening(host: str, token: str | None) -> None:
    """Refuse to listen where others can reach an API without a token.

    Raises:
        ConfigError: ``host`` is not this machine alone and no token is set.
    """
    if token is None and not is_loopback(host):
        raise ConfigError(
            f"host {host!r}: whoever reaches it could read everything; set {TOKEN_VARIABLE} to a secret "
            "that clients send as bearer token, or listen on 127.0.0.1"
        )


def is_authorised(scope: Scope, token: str | None) -> bool:
    """Tell whether a request carries the token; without a configured token all do."""
    if token is None:
        return True
    header: bytes = dict(scope["headers"]).get(b"authorization", b"")
    scheme, _, given = header.partition(b" ")
    # In constant time, so that how long a refusal takes tells nothing about the token.
    return hmac.compare_digest(given.strip(), token.encode()) and scheme.lower() == b"bearer"


class BearerAuth:
    """Answers 401 to requests without the token or a session, whatever path they name, except ``open_paths``.

    Args:
        app: what is guarded.
        token: that clients send; ``None`` asks for none.
        open_paths: need no token.
        forms: paths that check the CSRF token of a session themselves, in a field of their form.
        login: answers a browser that asks for a page, instead of the 401.
    """

    def __init__(
        self,
        app: ASGIApp,
        token: str | None,
        open_paths: Collection[str] = (),
        forms: Collection[str] = (),
        login: Callable[[Scope], Response | None] = lambda _: None,
    ) -> None:
        self._app = app
        self._token = token
        self._open_paths = open_paths
        self._forms = forms
        self._login = login

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass an authorised request on."""
        if scope["type"] != "http" or scope["path"] in self._open_paths or is_authorised(scope, self._token):
            await self._app(scope, receive, send)
            return
        session = session_of(scope, self._token)
        if session is None:
            refusal = self._login(scope) or _unauthorised()
        elif self._is_meant(scope, session):
            await self._app(scope, receive, send)
            return
        else:
            refusal = problem_response(
                403, f"send the header {CSRF_HEADER!r} with the token of the page, or log in anew"
            )
        await refusal(scope, receive, send)

    def _is_meant(self, scope: Scope, session: str) -> bool:
        """Tell whether a request with a session comes from our pages: other sites can make a browser send a cookie."""
        if scope["method"] in {"GET", "HEAD"} or scope["path"] in self._forms:
            return True
        return is_csrf_token(Headers(scope=scope).get(CSRF_HEADER, ""), session, self._token or "")


def _unauthorised() -> Response:
    return problem_response(
        401,
        "send the header 'Authorization: Bearer <token>' with the token of this service",
        headers={"WWW-Authenticate": 'Bearer realm="nornweave"'},
    )


def is_loopback(host: str) -> bool:
    """Tell whether nobody but this machine reaches ``host``."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
