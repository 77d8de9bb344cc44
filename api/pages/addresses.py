"""Permalinks of passages and pages, the check of links in documents, and places of passages in words.

A place is a breadcrumb, a place in the document, a day.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from starlette.requests import Request

from api.access.origins import answered_names, host_name, plain_prefix, prefix_of
from api.pages.text_runs import TextRun, runs_of
from api.server.workers import default_port, web_address
from nornweave.ask.views.tools import Link
from nornweave.core.errors import ConfigError
from nornweave.core.supervisor import LOOPBACK
from nornweave.core.text.dates import iso_moment
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


ASK, CONFLICTS, QUALITY, STATUS, LOGIN, LOGOUT = "/", "/conflicts", "/quality", "/status", "/login", "/logout"
CALLBACK = "/callback"
TOKENS, TOKENS_FORM = "/tokens", "/tokens/form"
FIND, WHY = "/find", "/why"
JUDGE = "/feedback/form"
DISMISS = "/conflicts/form"
SYNC, SOURCES_FORM = "/status/sync", "/status/sources"

SECTION = " > "
"""Between the headings of a section's path."""
_FORGES = {"github": "GitHub", "gitlab": "GitLab", "gitea": "Gitea", "codeberg": "Codeberg", "bitbucket": "Bitbucket"}


def ask_address(pairs: Sequence[tuple[str, str]], suffix: str = "") -> str:
    """Return the address of the page that answers a question: ``/?q=…``. ``suffix`` is put after its path."""
    return f"{ASK}{suffix}?{urlencode(pairs)}" if pairs else f"{ASK}{suffix}"


def why_address(pairs: Sequence[tuple[str, str]]) -> str:
    """Return the address of the page that explains why ``path`` is not among the results of a question."""
    return f"{WHY}?{urlencode(pairs)}"


def passage_address(chunk_id: str) -> str:
    """Return the permalink of a passage; empty for a passage of a remote agent, which has no page here."""
    return "" if is_elsewhere(chunk_id) else f"/passages/{quote(chunk_id, safe='')}"


def conflict_address(entry_id: str) -> str:
    """Return the permalink of an entry of the ledger."""
    return f"{CONFLICTS}/{quote(entry_id, safe='')}"


def original(url: object) -> str | None:
    """Return the URL if a reader may open it (absolute ``http`` or ``https``), else ``None``."""
    if not isinstance(url, str) or len(url) > 2048 or not url.isprintable() or " " in url:
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return url if parts.scheme in {"http", "https"} and parts.hostname else None


def local(path: str) -> str:
    """Return the address to open after the login: ``path`` if it is on this server, else the first page.

    Browsers read ``//host`` and ``/\\host`` as another server, and they drop control characters.
    """
    is_local = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable() and "\\" not in path
    return path if is_local else ASK


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedPlace:
    """The place of a passage.

    Attributes:
        domain: its domain.
        crumbs: source, path and sections, outermost first.
        detail: the lines, page or messages in words; empty if they are unknown.
        day: the day of the document, ``2026-01-20``; empty if unknown.
        href: the permalink of the passage; empty if unknown.
        original: the address of the original with its lines, if a link may be followed; else ``None``.
        opens: the text of the link to ``original``.
        spot: path and line, as editors read them.
        revision: short name of the version; empty where there is none.
        stale: whether there is a newer version that could not be read.
    """

    domain: str
    crumbs: tuple[tuple[TextRun, ...], ...]
    detail: str
    day: str
    href: str = ""
    original: str | None = None
    opens: str = ""
    spot: str = ""
    revision: str = ""
    stale: bool = False


def place_of(citation: Mapping[str, Any], chunk_id: str = "") -> CitedPlace:
    """Return the place of a citation, or of a side of a conflict."""
    sections = (citation.get("section") or "").split(SECTION)
    if sections[-1] == citation.get("title"):  # which stands below as the heading
        sections.pop()
    crumbs = [citation.get("source_id") or citation.get("agent_id"), citation["source_path"], *sections]
    lines = citation.get("line_range")
    url, opens = _opened(citation.get("url"), lines)
    return CitedPlace(
        domain=citation["domain_id"],
        crumbs=tuple(runs_of(crumb) for crumb in crumbs if crumb),
        detail=detail_of(citation),
        day=day_of(citation["timestamp"]),
        href=passage_address(chunk_id) if chunk_id else "",
        original=url,
        opens=opens,
        spot=f"{citation['source_path']}:{lines[0]}" if lines else citation["source_path"],
        revision=citation.get("revision") or "",
        stale=bool(citation.get("stale")),
    )


def _opened(url: object, lines: Sequence[int] | None) -> tuple[str | None, str]:
    """Return the address of the original, with its lines on a forge, and the text of the link."""
    address = original(url)
    if address is None:
        return None, ""
    host = urlsplit(address).hostname or ""
    name = next((name for part, name in _FORGES.items() if part in host), "")
    if any(part in address for part in ("/blob/", "/src/commit/", "/src/branch/")) and lines and "#" not in address:
        address += f"#L{lines[0]}-{'' if name == 'GitLab' else 'L'}{lines[1]}"
    return address, f"Open on {name}" if name else "Open original"


def detail_of(citation: Mapping[str, Any]) -> str:
    """Return the cited part of the document in words: its page, lines or messages."""
    if citation.get("page") is not None:
        return f"page {citation['page']}"
    if citation.get("message_ids"):
        count = len(citation["message_ids"])
        return f"{count} message{'s' if count != 1 else ''}"
    if citation.get("line_range"):
        first, last = citation["line_range"]
        return f"line {first}" if first == last else f"lines {first}–{last}"
    return ""


def day_of(timestamp: str | None) -> str:
    """Return the UTC day of an ISO 8601 time; empty for ``None``."""
    moment = iso_moment(timestamp)
    return f"{moment:%Y-%m-%d}" if moment else (timestamp or "")[:10]


def age_of(timestamp: datetime | str | None, now: datetime) -> str:
    """Return how long ago a time was: ``4 minutes ago``; empty for ``None``."""
    if not timestamp:
        return ""
    moment = datetime.fromisoformat(timestamp) if isinstance(timestamp, str) else timestamp
    seconds = max(0.0, (now - (moment if moment.tzinfo else moment.replace(tzinfo=UTC))).total_seconds())
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {unit}{'s' if count != 1 else ''} ago"
    return "just now"
