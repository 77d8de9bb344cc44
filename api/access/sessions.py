"""Sessions of people who gave a token in a form: a signed cookie that says whose it is and does not hold the token.

``expiry.nonce.who.signature``: nothing is stored, so every serving process knows it, and another key ends all sessions.
"""

from __future__ import annotations

import binascii
import hmac
import json
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from types import MappingProxyType
from typing import Any

from starlette.datastructures import Headers
from starlette.types import Scope

COOKIE = "nornweave_session"
LASTS_S = 12 * 3600
CSRF_HEADER = "x-csrf-token"
CSRF_FIELD = "csrf"
# Browsers keep 4,096 bytes of a cookie, its name and attributes included.
MAX_CHARACTERS = 3_800
NOBODY: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Session:
    """A valid session: the value of its cookie, and whose it is."""

    value: str
    who: Mapping[str, Any]


def new_session(
    secret: str, now: float | None = None, who: Mapping[str, Any] = NOBODY, until: float | None = None
) -> str:
    """Return the value of a new cookie.

    Args:
        now: the present, seconds since 1970.
        who: whose it is, as JSON has it.
        until: when it ends at the latest.
    """
    expires = (time.time() if now is None else now) + LASTS_S
    expires = expires if until is None else min(expires, until)
    spelt = urlsafe_b64encode(json.dumps(dict(who), separators=(",", ":")).encode()).decode().rstrip("=")
    claims = f"{int(expires)}.{secrets.token_urlsafe(12)}.{spelt}"
    return f"{claims}.{_signature(secret, 'session', claims)}"


def is_valid(session: str, secret: str, now: float | None = None) -> bool:
    """Tell whether a cookie was signed with this secret and has not expired."""
    claims, _, signature = session.rpartition(".")
    expires = claims.partition(".")[0]
    if not hmac.compare_digest(signature.encode(), _signature(secret, "session", claims).encode()):
        return False
    moment = time.time() if now is None else now
    # One that lasts longer than any does was made while the clock was wrong.
    return expires.isdecimal() and moment < int(expires) <= moment + LASTS_S


def csrf_token(session: str, secret: str) -> str:
    """Return what a form of this session has to send back, which no other site can know."""
    return _signature(secret, "csrf", session)


def session_of(scope: Scope, secret: str | None) -> Session | None:
    """Return the valid session of a request; ``None`` where there is none, or none is needed."""
    if secret is None:
        return None
    for header in Headers(scope=scope).getlist("cookie"):
        try:
            morsel = SimpleCookie(header).get(COOKIE)
        except CookieError:
            continue
        if morsel and is_valid(morsel.value, secret):
            return Session(morsel.value, _who(morsel.value))
    return None


def is_csrf_token(given: str, session: str, secret: str) -> bool:
    """Tell whether a form or a script sent the token of its session."""
    return hmac.compare_digest(given.encode(), csrf_token(session, secret).encode())


def _who(session: str) -> Mapping[str, Any]:
    """Return whose a session is; it is signed, so it holds what we wrote."""
    spelt = session.split(".")[2]
    try:
        stated = json.loads(urlsafe_b64decode(spelt + "=" * (-len(spelt) % 4)))
    except (binascii.Error, ValueError):
        return NOBODY
    return stated if isinstance(stated, dict) else NOBODY


def _signature(secret: str, purpose: str, text: str) -> str:
    key = hmac.digest(secret.encode(), f"nornweave {purpose}".encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()
