"""Sessions of people who gave a token in a form: a signed cookie that names its owner and does not hold the token.

``expiry.nonce.who.signature``: nothing is stored, so every serving process can check it. A new key ends all sessions.
If several tokens open sessions, the key is made once and stored. Ended sessions are remembered: a cookie that
somebody copied is not valid after its owner logged out.
"""

from __future__ import annotations

import binascii
import hmac
import json
import logging
import secrets
import sqlite3
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from types import MappingProxyType
from typing import Any

from starlette.datastructures import Headers
from starlette.types import Scope

from api.access.tokens import SharedRows
from nornweave.core.access import hash_of
from nornweave.core.errors import ConfigError
from nornweave.core.files.writing import write_new

log = logging.getLogger(__name__)

COOKIE = "nornweave_session"
LASTS_S = 12 * 3600
CSRF_HEADER = "x-csrf-token"
CSRF_FIELD = "csrf"
# Browsers keep 4,096 bytes of a cookie, its name and attributes included.
MAX_CHARACTERS = 3_800
SIGNED_IN = "signed-in"
"""The kind of a session of somebody who signed in at the identity provider."""
NOBODY: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Session:
    """A valid session: the value of its cookie and its person."""

    value: str
    who: Mapping[str, Any]


def new_session(
    secret: str,
    now: float | None = None,
    who: Mapping[str, Any] = NOBODY,
    until: float | None = None,
    purpose: str = "session",
) -> str:
    """Return the value of a new cookie.

    Args:
        now: the present, seconds since 1970.
        who: the owner of the session, as JSON values.
        until: when the session ends at the latest; ``None`` if it lasts as long as any session.
        purpose: the cookie is valid for this purpose only.
    """
    expires = (time.time() if now is None else now) + LASTS_S
    expires = expires if until is None else min(expires, until)
    spelt = urlsafe_b64encode(json.dumps(dict(who), separators=(",", ":")).encode()).decode().rstrip("=")
    claims = f"{int(expires)}.{secrets.token_urlsafe(12)}.{spelt}"
    return f"{claims}.{derive(secret, purpose, claims)}"


def is_valid(session: str, secret: str, now: float | None = None, purpose: str = "session") -> bool:
    """Tell whether a cookie was signed with this secret and has not expired."""
    claims, _, signature = session.rpartition(".")
    expires = claims.partition(".")[0]
    if not hmac.compare_digest(signature.encode(), derive(secret, purpose, claims).encode()):
        return False
    moment = time.time() if now is None else now
    # One that lasts longer than any does was made while the clock was wrong.
    return expires.isdecimal() and moment < int(expires) <= moment + LASTS_S


def csrf_token(session: str, secret: str) -> str:
    """Return the secret that a form of this session has to send back. No other site can know it."""
    return derive(secret, "csrf", session)


def session_of(scope: Scope, secret: str | None) -> Session | None:
    """Return the valid session of a request; ``None`` if there is none or the API is open."""
    if secret is None:
        return None
    valid = (value for value in cookies(scope, COOKIE) if is_valid(value, secret))
    return next((Session(value, who_of(value)) for value in valid), None)


def cookies(scope: Scope, name: str) -> Iterator[str]:
    """Yield every value that a request sends for a cookie."""
    for header in Headers(scope=scope).getlist("cookie"):
        try:
            morsel = SimpleCookie(header).get(name)
        except CookieError:
            continue
        if morsel:
            yield morsel.value


def is_csrf_token(given: str, session: str, secret: str) -> bool:
    """Tell whether a form or a script sent the token of its session."""
    return hmac.compare_digest(given.encode(), csrf_token(session, secret).encode())


def who_of(session: str) -> Mapping[str, Any]:
    """Return the content of a session. It is signed, so this server wrote it."""
    spelt = session.split(".")[2]
    try:
        stated = json.loads(urlsafe_b64decode(spelt + "=" * (-len(spelt) % 4)))
    except (binascii.Error, ValueError):
        return NOBODY
    return stated if isinstance(stated, dict) else NOBODY


def derive(secret: str, purpose: str, text: str) -> str:
    """Return 64 hexadecimal digits made from a text and a purpose. Only the owner of the secret can compute them."""
    key = hmac.digest(secret.encode(), f"nornweave {purpose}".encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()


KEY_FILE = "session.key"


def session_key(data_dir: Path) -> str:
    """Return the key of sessions; make it if there is none. If several processes make one, the first one is used.

    Raises:
        ConfigError: the key can be neither read nor written.
    """
    file = data_dir / KEY_FILE
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            write_new(file, secrets.token_hex(32).encode())
        key = file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: the key of sessions cannot be read or written: {error}") from error
    if len(key) < 32:
        raise ConfigError(f"{file}: holds no key; remove it: another one is made, and people log in anew")
    return key


ENDED_FILE = "sessions.sqlite"


class EndedSessions:
    """Hashes of ended sessions, shared by all serving processes of a machine. Methods may be called from any thread."""

    def __init__(self, data_dir: Path) -> None:
        self._rows = SharedRows(
            data_dir / ENDED_FILE,
            "create table if not exists ended (session text primary key, at real)",
            "select session from ended",
            lambda rows: frozenset(session for (session,) in rows),
            f"the session could not be ended here, it lasts {LASTS_S // 3600} hours",
        )

    def end(self, session: str) -> bool:
        """Remember that a session ended. Return ``False`` if it had ended before. Expired sessions are forgotten.

        Raises:
            StoreError: the file cannot be written.
        """
        forgotten = ("delete from ended where at < ?", [time.time() - LASTS_S])
        ended = ("insert or ignore into ended values (?, ?)", [hash_of(session), time.time()])
        return self._rows.change(forgotten, ended) == 1

    def has_ended(self, session: str) -> bool:
        """Tell whether a session was ended. If the file cannot be read, the last known sessions are used."""
        try:
            return hash_of(session) in self._rows.current()
        except sqlite3.Error as error:
            log.error("which sessions have ended cannot be read, those known stay: %s", error)
            return hash_of(session) in self._rows.last
