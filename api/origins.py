"""Which page sent a request: no page of another site may change anything here or use the tools.

A page that is open in a browser reaches every port of its machine. It can send forms, files and texts to them without
asking first. It cannot forge two headers: ``Origin`` names the page's site, and ``Sec-Fetch-Site`` says how that site
is related to this server. Programs send neither.

Sources: RFC 6454 (origin), W3C Fetch Metadata, Model Context Protocol 2025-11-25 ("Streamable HTTP", security warning).
"""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from api.errors import problem_response

READING = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing."""
OWN_SITE = ("same-origin", "none")
"""Values of ``Sec-Fetch-Site``: a page of this server, or a person who typed the address."""
TOOLS = "/mcp"
"""The path at which every method is checked: the protocol demands it."""


def foreign_page(headers: Headers, own: Collection[str]) -> str | None:
    """Say which header names a page of another origin; ``None`` if a page of this server or a program sent it.

    Another port of this machine is another origin. A page without an origin of its own (``null``) is foreign.

    Args:
        headers: of the request.
        own: origins of the pages of this server, in lower case: ``http://127.0.0.1:8082``.
    """
    for origin in headers.getlist("origin"):
        if origin.lower() not in own:
            return f"found Origin {origin!r}, expected {' or '.join(sorted(own))}"
    site = headers.get("sec-fetch-site", "same-origin")
    return None if site in OWN_SITE else f"found Sec-Fetch-Site {site!r}, expected {' or '.join(map(repr, OWN_SITE))}"


class OriginGuard:
    """Answers 403 to what pages of other sites send, except reading.

    Args:
        app: what is guarded.
        public_url: the address at which people open the pages, where a proxy calls this server by another name.
    """

    def __init__(self, app: ASGIApp, public_url: str | None = None) -> None:
        self._app = app
        public = urlsplit((public_url or "").lower())
        self._public = {f"{public.scheme}://{public.netloc}"} if public_url else set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        foreign = self._foreign_page(scope) if _is_guarded(scope) else None
        if foreign is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close"})
        else:
            detail = f"{foreign}: pages of other sites may not do this; behind a proxy, set NORNWEAVE_URL"
            await problem_response(403, detail)(scope, receive, send)

    def _foreign_page(self, scope: Scope) -> str | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "").strip().lower()
        own = {f"{scheme}://{host}" for scheme in ("http", "https")}  # a proxy before this server may speak https
        return foreign_page(headers, own | self._public)


def _is_guarded(scope: Scope) -> bool:
    method: str = scope.get("method", "")  # a websocket has none
    return scope["type"] != "lifespan" and (method not in READING or scope["path"].rstrip("/") == TOOLS)
