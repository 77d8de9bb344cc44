"""The URLs in results: the page of a passage, below the address at which people reach this server."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.requests import Request

from api.access.origins import answered_names, host_name, plain_prefix, prefix_of
from api.pages.addresses import original, passage_address
from api.server.workers import default_port, web_address
from nornweave.ask.views.tools import Link
from nornweave.core.errors import ConfigError
from nornweave.core.supervisor import LOOPBACK
from nornweave.core.types import is_elsewhere

URL_VARIABLE = "NORNWEAVE_URL"


def configured_url(environment: Mapping[str, str]) -> str | None:
    """Return the address that people use, without a final slash; ``None`` if none is configured.

    Raises:
        ConfigError: the address is not the URL of a server.
    """
    url = environment.get(URL_VARIABLE, "").strip().rstrip("/")
    if not url:
        return None
    if not original(url) or "?" in url or "#" in url:
        raise ConfigError(f"{URL_VARIABLE}: {url!r} is not an address such as https://search.example.org")
    if (path := urlsplit(url).path) != plain_prefix(path):
        raise ConfigError(f"{URL_VARIABLE}: the path {path!r} may hold letters, digits and . _ ~ - between slashes")
    return url


def usual_url(environment: Mapping[str, str]) -> str:
    """Return the configured address, else the address of ``nornweave serve`` on this machine."""
    return configured_url(environment) or f"http://{LOOPBACK}:{default_port(None, environment)}"


def permalinks(base: str) -> Link:
    """Return a function that links a passage to its page below ``base``.

    A passage of a remote agent gets that agent's own link.
    """
    return lambda chunk_id, url: (original(url) or "") if is_elsewhere(chunk_id) else base + passage_address(chunk_id)


def page_links(public_url: str | None, request: Request) -> Link:
    """Return a function that links a passage to its page. The arguments are those of ``own_address``."""
    return permalinks(own_address(public_url, request))


def own_address(public_url: str | None, request: Request) -> str:
    """Return ``public_url``, the configured address, or for ``None`` this server's own address without a final slash.

    ``Host`` is what a client wrote. It counts if it is a name of this machine or the address that was reached; any
    other name is not passed on into links that people and models follow.
    """
    if public_url:
        return public_url
    address, port = request.scope.get("server") or (LOOPBACK, None)
    if host_name(request.headers.get("host", "")) in answered_names(address) | {socket.gethostname().lower()}:
        return str(request.base_url).rstrip("/") + prefix_of(request.scope)
    return web_address(request.url.scheme, address, port)


def own_links(base: str) -> Link:
    """Return a function that links a passage to its original, else to its page.

    It is for readers who may have no running server.
    """
    pages = permalinks(base)
    return lambda chunk_id, url: original(url) or pages(chunk_id, url)
