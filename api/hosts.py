"""By which names the API may be called: against DNS rebinding, where nothing but the address guards it.

A page of some site can have its name resolved to 127.0.0.1 once it is loaded; the browser then takes this API for that
site's own and lets the page read it. What the browser cannot change is the name in ``Host``.
Source: RFC 9110, section 7.4 ("Rejecting Misdirected Requests").
"""

from __future__ import annotations

from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from api.errors import problem_response

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})


def host_name(header: str) -> str:
    """Return the name or address of a ``Host`` header, without its port, in lower case."""
    name, colon, port = header.strip().lower().rpartition(":")
    return name if colon and (port.isdecimal() or not port) and not _is_inside(header) else header.strip().lower()


def _is_inside(header: str) -> bool:
    """Tell whether the last colon belongs to an IPv6 address, which stands in brackets."""
    return header.rstrip().endswith("]")


def client_address(scope: Scope) -> str:
    """Return the address that a request came from; empty if it is not known (a socket in the file system)."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def answered_names(host: str) -> frozenset[str]:
    """Return the names that are answered when listening on ``host`` alone."""
    return LOCAL_NAMES | {f"[{host}]".lower() if ":" in host else host.lower()}


class HostGuard:
    """Answers 421 to requests that call this server by a name other than ``names``; ``None`` answers to every name."""

    def __init__(self, app: ASGIApp, names: Collection[str] | None) -> None:
        self._app = app
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on that is meant for this server."""
        if self._names is None or scope["type"] != "http" or self._is_meant(scope):
            await self._app(scope, receive, send)
            return
        refusal = problem_response(
            421, f"call this server {' or '.join(sorted(self._names))}, or set a token and a host of your own"
        )
        await refusal(scope, receive, send)

    def _is_meant(self, scope: Scope) -> bool:
        named = Headers(scope=scope).getlist("host")
        return len(named) == 1 and host_name(named[0]) in (self._names or ())
