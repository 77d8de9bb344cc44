"""The names by which this server is called: refuse foreign ones and other sites' pages, remove its path's prefix.

A page of some site can have its name resolved to 127.0.0.1 (DNS rebinding). Where nothing but the address guards the
API, only its own names are answered.

A page that is open in a browser reaches every port of its machine. It can send forms, files and texts to them without
asking first. It cannot forge two headers: ``Origin`` names the page's site, and ``Sec-Fetch-Site`` says how that site
is related to this server. Programs send neither. No page of another site may change anything here, ask anything
or use the tools.

Behind a proxy this server stands below the path of another site: ``https://example.org/nw``. Inside, every path is the
same as without a proxy. The prefix is added to all output: redirects here, pages in ``pages/rendering.py``, links in
``pages/addresses.py``.

The prefix is the path of ``NORNWEAVE_URL``. If that is not set, it is ``root_path`` of the app that mounts
this one, or the header ``X-Forwarded-Prefix``. Any client can send that header. It must be a path of plain segments or
is ignored, so the addresses made with it lead to the same host.

Sources: RFC 6454 (origin), W3C Fetch Metadata, Model Context Protocol 2025-11-25 ("Streamable HTTP", security warning).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
    """Return the names to which a server answers if it listens only on ``host``: ``host`` and the local names."""
    return LOCAL_NAMES | {f"[{host}]".lower() if ":" in host else host.lower()}


class HostGuard:
    """Answers 421 to requests whose ``Host`` is not in ``names``; with ``None`` every name is answered."""

    def __init__(self, app: ASGIApp, names: Collection[str] | None) -> None:
        self._app = app
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on if its ``Host`` is one of the names."""
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


READING = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing."""
OWN_SITE = ("same-origin", "none")
"""Values of ``Sec-Fetch-Site``: a page of this server, or a person who typed the address."""
TOOLS = "/mcp"
"""The path at which every method is checked: the protocol demands it."""


def foreign_page(headers: Headers, own: Collection[str]) -> str | None:
    """Return which header shows that a page of another origin sent the request: ``found Origin …, expected …``.

    ``None`` means that one of our pages or a program sent it.

    Another port of this machine is another origin. A page without an origin of its own (``null``) is foreign.

    Args:
        own: origins of the pages of this server, in lower case: ``http://127.0.0.1:8082``.
    """
    for origin in headers.getlist("origin"):
        if origin.lower() not in own:
            return f"found Origin {origin!r}, expected {' or '.join(sorted(own))}"
    site = headers.get("sec-fetch-site", "same-origin")
    return None if site in OWN_SITE else f"found Sec-Fetch-Site {site!r}, expected {' or '.join(map(repr, OWN_SITE))}"


class OriginGuard:
    """Answers 403 to requests from pages of other sites, except when a person follows a link.

    Otherwise a page of another site could ask a question by an image or a frame, in the name of its visitor.

    Args:
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
    if scope["type"] == "lifespan":
        return False
    method: str = scope.get("method", "")  # a websocket has none
    return method not in READING or scope["path"].rstrip("/") == TOOLS or _is_embedded(Headers(scope=scope))


def _is_embedded(headers: Headers) -> bool:
    """Tell whether a page loads the address as a part of itself, such as an image or a frame."""
    followed = headers.get("sec-fetch-mode", "navigate") == "navigate"
    return not followed or headers.get("sec-fetch-dest", "document") != "document"


_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._~-]{1,64}){1,8}")
_PREFIX = "nornweave.prefix"


def plain_prefix(path: str) -> str:
    """Return a path without a final slash; empty unless all its segments are plain and none is ``..``."""
    path = path.rstrip("/")
    return path if _PATH.fullmatch(path) else ""


def prefix_of(scope: Scope) -> str:
    """Return the prefix of a request's addresses: ``/nw``, or an empty text."""
    prefix: str = scope.get(_PREFIX, "")
    return prefix


class Prefix:
    """Removes the prefix from the path of a request and adds it to the address of a redirect.

    Args:
        public_url: the address at which people open the pages; ``None`` if none is configured.
    """

    def __init__(self, app: ASGIApp, public_url: str | None = None) -> None:
        self._app = app
        self._configured = None if public_url is None else plain_prefix(urlsplit(public_url).path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        mounted = scope.get("root_path", "").rstrip("/")
        stated = Headers(scope=scope).getlist("x-forwarded-prefix")
        prefix = self._configured
        if prefix is None:
            prefix = plain_prefix(mounted) or (plain_prefix(stated[0]) if len(stated) == 1 else "")
        # A proxy may leave the configured prefix in the path, and so does a person on this machine who follows a link.
        path = path_below(scope["path"], mounted) or path_below(scope["path"], self._configured or "") or scope["path"]

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                target = headers.get("location", "")
                if target.startswith("/") and not target.startswith("//"):
                    headers["location"] = prefix + target
            await send(message)

        await self._app({**scope, "path": path, "root_path": "", _PREFIX: prefix}, receive, sending)


def path_below(path: str, prefix: str) -> str:
    """Return the part of a path after a prefix, with its slash; empty if the path does not begin with the prefix."""
    return path[len(prefix) :] or "/" if prefix and f"{path}/".startswith(f"{prefix}/") else ""
