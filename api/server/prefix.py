"""The path of another site below which this server stands: ``https://example.org/nw``, behind a proxy.

Inside, every path is the same as without a proxy. The prefix is added to all output: redirects here, pages in
``pages/rendering.py``, links in ``links.py``.

The prefix is the path of ``NORNWEAVE_URL``. If that is not set, it is ``root_path`` of the app that mounts
this one, or the header ``X-Forwarded-Prefix``. Any client can send that header. It must be a path of plain segments or
is ignored, so the addresses made with it lead to the same host.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
