"""What surrounds every page: navigation, session, and how its data are had as JSON."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from api.access.door import VIEWER
from api.access.sessions import csrf_token, session_of
from api.pages.addresses import ASK, CONFLICTS, QUALITY, STATUS
from api.state import service_of
from nornweave.core.access.viewer import Viewer

NAVIGATION = ((ASK, "Ask"), (CONFLICTS, "Conflicts"), (QUALITY, "Quality"), (STATUS, "Status"), ("/docs", "API"))
FOR_OPERATORS = frozenset({QUALITY, STATUS})


def shell_of(request: Request, current: str, json_href: str = "") -> dict[str, Any]:
    """Return what the frame of a page shows.

    Args:
        request: for the page.
        current: address of the page in the navigation; empty for none.
        json_href: where the same data are JSON; empty for none.
    """
    service = service_of(request)
    session, secret = session_of(request.scope, service.door.secret), service.door.secret
    viewer: Viewer | None = request.scope.get(VIEWER)
    shown = NAVIGATION if viewer else ()
    return {
        "navigation": [one for one in shown if (viewer and viewer.operates) or one[0] not in FOR_OPERATORS],
        "current": current,
        "json_href": json_href,
        "csrf": csrf_token(session.value, secret) if session and secret else "",
        "alone": service.alone.value if service.alone else "",
    }
