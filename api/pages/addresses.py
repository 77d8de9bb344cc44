"""Permalinks of the pages, and the check of links in documents."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote, urlencode, urlsplit

from nornweave.core.types import is_elsewhere

ASK, CONFLICTS, QUALITY, STATUS, LOGIN, LOGOUT = "/", "/conflicts", "/quality", "/status", "/login", "/logout"
CALLBACK = "/callback"
TOKENS, TOKENS_FORM = "/tokens", "/tokens/form"
FIND, WHY = "/find", "/why"
JUDGE = "/feedback/form"
DISMISS = "/conflicts/form"
SYNC, SOURCES_FORM = "/status/sync", "/status/sources"


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
