"""Who may ask: a bearer token when ``NORNWEAVE_SERVICE_TOKEN`` is set, and nobody from outside when it is not."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Collection, Mapping

from starlette.types import ASGIApp, Receive, Scope, Send

from api.errors import problem_response
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
    """Answers 401 to requests without the token, whatever path they name, except ``open_paths``."""

    def __init__(self, app: ASGIApp, token: str | None, open_paths: Collection[str] = ()) -> None:
        self._app = app
        self._token = token
        self._open_paths = open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass an authorised request on."""
        if scope["type"] != "http" or scope["path"] in self._open_paths or is_authorised(scope, self._token):
            await self._app(scope, receive, send)
            return
        refusal = problem_response(
            401,
            "send the header 'Authorization: Bearer <token>' with the token of this service",
            headers={"WWW-Authenticate": 'Bearer realm="nornweave"'},
        )
        await refusal(scope, receive, send)


def is_loopback(host: str) -> bool:
    """Tell whether nobody but this machine reaches ``host``."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
