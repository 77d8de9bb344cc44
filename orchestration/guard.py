"""Access control for Dagster's UI: local people and programs or a proxy, never a page of another site.

Dagster's web server trusts whoever reaches it: it reads neither ``Host`` nor ``Origin``, and takes mutations by ``GET``
and with any content type. A page that is open in a browser reaches every port of its machine.

==========================================  ======
refused                                     status
==========================================  ======
``Host`` is neither of this machine nor the
public one                                  421
``Origin`` or ``Sec-Fetch-Site`` of others  403
no token where one is set                   401
a method that is not for reading            405
GraphQL that is not JSON                    415
==========================================  ======

Websockets pass the first three checks and are refused with 403. Sources: RFC 9110 section 7.4 (misdirected requests),
RFC 6454 (origin), W3C Fetch Metadata.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import logging
from collections.abc import Mapping
from urllib.parse import urlsplit

from dagster._check import CheckError
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.access.door import TOKEN_VARIABLE, is_authorised, service_token
from api.access.origins import LOCAL_NAMES, foreign_page, host_name, path_below, plain_prefix
from api.errors import problem_response
from nornweave.core.errors import ConfigError

GRAPHQL = "/graphql"
URL_VARIABLE = "NORNWEAVE_DAGSTER_URL"
READING = ("GET", "HEAD")
HEADERS = {
    # No other page may frame the UI (clickjacking) or load its answers.
    "X-Frame-Options": "SAMEORIGIN",
    "Content-Security-Policy": "frame-ancestors 'self'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

# Errors of Dagster's web server over requests that it cannot read. Its answer 500 is held back.
_TRIPPED = (ValueError, TypeError, AttributeError, LookupError, RecursionError, CheckError)
log = logging.getLogger(__name__)

Refusal = tuple[int, str]
"""Status and explanation."""


def public_url(environment: Mapping[str, str]) -> str | None:
    """Return the configured address at which a proxy on this machine serves the UI; ``None`` if there is none.

    Raises:
        ConfigError: the value is not an address, or no token is set, which a public address needs.
    """
    url = environment.get(URL_VARIABLE, "").strip().rstrip("/")
    parts = urlsplit(url)
    plain = f"{parts.scheme}://{parts.netloc}{plain_prefix(parts.path)}"
    if url and (parts.scheme not in {"http", "https"} or not parts.hostname or url != plain):
        raise ConfigError(f"{URL_VARIABLE}: {url!r} is not an address such as https://example.org/dagster")
    if url and not service_token(environment):
        raise ConfigError(f"{URL_VARIABLE} is set and {TOKEN_VARIABLE} is not: everybody could start and stop syncs")
    return url or None


class Guard:
    """Passes permitted requests to Dagster's web server and answers others with a problem document.

    Args:
        app: Dagster's web server.
        token: programs send it as a bearer token, browsers as the password of Basic authentication. With ``None``
            nobody needs a token. There is no cookie, because browsers send a cookie to every port of a machine but
            Basic credentials to one port.
        public_url: the UI's address behind a proxy on this machine. The proxy may keep the path of this address in
            requests or remove it.
    """

    def __init__(self, app: ASGIApp, token: str | None, public_url: str | None = None) -> None:
        self._app = app
        self._token = token
        public = urlsplit((public_url or "").lower())
        self._prefix = urlsplit(public_url or "").path
        self._public = f"{public.scheme}://{public.netloc}" if public_url else None
        self._names = LOCAL_NAMES | ({host_name(public.netloc)} if public_url else set())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to the app, or refuse it: another host, a page of another origin, or no token."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        scope = {**scope, "path": path_below(scope["path"], self._prefix) or scope["path"]}
        refused = self._refusal(scope)
        if refused is None:
            await self._pass_on(scope, receive, send)
            return
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})  # 403; uvicorn (0.54) logs an error for any other refusal
            return
        status, detail = refused
        challenge = {"WWW-Authenticate": 'Basic realm="nornweave", charset="UTF-8"'} if status == 401 else {}
        await problem_response(status, detail, headers=challenge)(scope, receive, send)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let Dagster answer. Turn its failures on bad requests (Dagster 1.13: 500) into 404 or 400."""
        answered = True

        async def sending(message: Message) -> None:
            nonlocal answered
            if message["type"] == "http.response.start":
                answered = message["status"] != 500
            if answered:
                await headed(message)

        headed = _with_headers(send)
        status, detail = 500, "the Dagster UI failed; the log says why"
        try:
            await self._app({**scope, "path": self._prefix + scope["path"]}, receive, sending)
        except _TRIPPED as error:
            if answered or scope["type"] != "http":
                raise
            log.info("%s: %s: %s", scope["path"][:200], type(error).__name__, error)
            is_body = scope["path"] == GRAPHQL
            status, detail = (400, "the body is no GraphQL request") if is_body else (404, "no such run, log or file")
        if not answered:
            await problem_response(status, detail)(scope, receive, headed)

    def _refusal(self, scope: Scope) -> Refusal | None:
        headers = Headers(scope=scope)
        if refused := self._foreign_host(headers) or self._foreign_page(scope, headers):
            return refused
        if not (is_authorised(scope, self._token) or _has_password(headers, self._token)):
            return 401, "send the service token: as bearer token, or as the password of Basic authentication"
        return _not_reading(scope, headers) if scope["type"] == "http" else None

    def _foreign_host(self, headers: Headers) -> Refusal | None:
        named = headers.getlist("host")
        if len(named) == 1 and host_name(named[0]) in self._names:
            return None
        expected = ", ".join(sorted(self._names))
        return 421, f"found Host {', '.join(named)!r}, expected one of {expected}; behind a proxy, set {URL_VARIABLE}"

    def _foreign_page(self, scope: Scope, headers: Headers) -> Refusal | None:
        """Return the refusal of a request from a page of another origin; ``None`` for any other request.

        Following a link from such a page to the UI is permitted.
        """
        named = headers["host"].strip().lower()
        is_public = self._public is not None and host_name(named) not in LOCAL_NAMES
        foreign = foreign_page(headers, {self._public or "" if is_public else f"http://{named}"})
        if foreign is None or ("origin" not in headers and _follows_link(scope, headers)):
            return None
        return 403, f"{foreign}: pages of other sites may not use the Dagster UI"


def _follows_link(scope: Scope, headers: Headers) -> bool:
    """Tell whether a person follows a link in a browser. The linking site cannot read the answer."""
    opens = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == ("navigate", "document")
    return opens and scope["type"] == "http" and scope["method"] in READING


def _has_password(headers: Headers, token: str | None) -> bool:
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    try:
        _, _, password = base64.b64decode(credentials.strip(), validate=True).partition(b":")
    except (binascii.Error, ValueError):
        return False
    return scheme.lower() == "basic" and hmac.compare_digest(password, (token or "").encode())


def _not_reading(scope: Scope, headers: Headers) -> Refusal | None:
    """Return the refusal of a request that may write; ``None`` for a request that is permitted.

    GraphQL is permitted as a ``POST`` of JSON, because pages of other sites cannot send JSON.
    """
    if scope["path"] != GRAPHQL:
        return None if scope["method"] in READING else (405, f"{scope['method']} is only for {GRAPHQL}")
    if scope["method"] != "POST":
        return 405, f"GraphQL takes POST only, found {scope['method']}"
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    return None if media_type == "application/json" else (415, f"expected application/json, found {media_type!r}")


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.append(name, value)  # two content security policies hold both
        await send(message)

    return sending
