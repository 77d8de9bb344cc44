"""Sessions of people who gave the token in a form: a cookie that is made from the token and does not hold it.

``expiry.nonce.signature``: nothing is stored, so every serving process knows it, and another token ends all sessions.
"""

from __future__ import annotations

import hmac
import secrets
import time
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers
from starlette.types import Scope

COOKIE = "nornweave_session"
LASTS_S = 12 * 3600
CSRF_HEADER = "x-csrf-token"
CSRF_FIELD = "csrf"


def new_session(token: str, now: float | None = None) -> str:
    """Return the value of a new cookie."""
    expires = int((time.time() if now is None else now) + LASTS_S)
    claims = f"{expires}.{secrets.token_urlsafe(12)}"
    return f"{claims}.{_signature(token, 'session', claims)}"


def is_valid(session: str, token: str, now: float | None = None) -> bool:
    """Tell whether a cookie was made from this token and has not expired."""
    claims, _, signature = session.rpartition(".")
    expires = claims.partition(".")[0]
    if not hmac.compare_digest(signature.encode(), _signature(token, "session", claims).encode()):
        return False
    return expires.isdecimal() and int(expires) > (time.time() if now is None else now)


def csrf_token(session: str, token: str) -> str:
    """Return what a form of this session has to send back, which no other site can know."""
    return _signature(token, "csrf", session)


def session_of(scope: Scope, token: str | None) -> str | None:
    """Return the valid session of a request; ``None`` where there is none, or none is needed."""
    if token is None:
        return None
    for header in Headers(scope=scope).getlist("cookie"):
        try:
            morsel = SimpleCookie(header).get(COOKIE)
        except CookieError:
            continue
        if morsel and is_valid(morsel.value, token):
            return morsel.value
    return None


def is_csrf_token(given: str, session: str, token: str) -> bool:
    """Tell whether a form or a script sent the token of its session."""
    return hmac.compare_digest(given.encode(), csrf_token(session, token).encode())


def _signature(token: str, purpose: str, text: str) -> str:
    key = hmac.digest(token.encode(), f"nornweave {purpose}".encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()
