"""What surrounds every page: navigation, session, and how its data are had as JSON."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from api.pages.addresses import ASK, CONFLICTS, QUALITY, STATUS
from api.sessions import csrf_token, session_of
from api.state import Serving

NAVIGATION = ((ASK, "Ask"), (CONFLICTS, "Conflicts"), (QUALITY, "Quality"), (STATUS, "Status"), ("/docs", "API"))


def shell_of(request: Request, current: str, json_href: str = "") -> dict[str, Any]:
    """Return what the frame of a page shows.

    Args:
        request: for the page.
        current: address of the page in the navigation; empty for none.
        json_href: where the same data are JSON; empty for none.
    """
    serving: Serving = request.app.state.serving
    session = session_of(request.scope, serving.token)
    return {
        "navigation": NAVIGATION if session or serving.token is None or current else (),
        "current": current,
        "json_href": json_href,
        "csrf": csrf_token(session, serving.token) if session and serving.token else "",
        "alone": serving.alone.value if serving.alone else "",
    }
