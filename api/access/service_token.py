"""The check of bearer tokens, if ``NORNWEAVE_SERVICE_TOKEN`` or ``access`` is set; else only this machine may ask.

People may give the token in a form instead; their browser then sends a session (``sessions.py``).
"""

from __future__ import annotations

import hmac
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from urllib.parse import unquote

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from api.access.door import VIEWER, Door
from api.access.sessions import CSRF_HEADER, is_csrf_token
from api.errors import ProblemError, problem_response
from nornweave.ask.agents.exchange import GROUPS_HEADER
from nornweave.config import Settings
from nornweave.config.base import is_loopback
from nornweave.core.access import Viewer, group_name, read_tokens
from nornweave.core.errors import ConfigError
from nornweave.core.membership import read_members

# `/agents/register`, `/agents/{id}` and `/agents/{id}/heartbeat`.
_REGISTRATION = re.compile(r"/agents/[^/]+(/heartbeat)?")

MIN_TOKEN_BITS = 32
"""What the service token's own characters show of chance, where others than this machine can try tokens.

16 random hexadecimal digits show 34 at least (of 4,000 tries; 47 at the median), 12 of base64 36 at the median.
"""
MIN_KEY_CHARACTERS = 32
SESSION_KEY_VARIABLE = "NORNWEAVE_SESSION_KEY"
TOKEN_VARIABLE = "NORNWEAVE_SERVICE_TOKEN"  # noqa: S105 - the name of the variable


def service_token(environment: Mapping[str, str]) -> str | None:
    """Return the configured token without blanks around it, ``None`` when there is none."""
    return environment.get(TOKEN_VARIABLE, "").strip() or None


def shown_bits(token: str) -> float:
    """Return how random a token looks, in bits, by its characters and by the steps between them.

    In a repetition or a row (``abcabc``, ``12345678``) all steps are the same. Words are not recognised.
    """
    codes = [ord(each) for each in token[:200]]
    of_characters = _entropy(codes)
    of_steps = (
        _entropy([code - before for code, before in zip(codes[step:], codes, strict=False)])
        + of_characters * step / len(codes)
        for step in range(1, len(codes) // 2 + 1)
    )
    return min([of_characters, *of_steps])


def _entropy(values: Sequence[int]) -> float:
    return -sum(count * math.log2(count / len(values)) for count in Counter(values).values())


def registration_token(settings: Settings, environment: Mapping[str, str]) -> str | None:
    """Return the token with which agents register; ``None`` if none is configured.

    Raises:
        ConfigError: its variable is not set.
    """
    variable = settings.agents.registration_token_env if settings.agents else None
    return None if variable is None else _required(settings, environment, "agents.registration_token_env", variable)


def shared_session_key(environment: Mapping[str, str]) -> str | None:
    """Return the session key that several machines share; ``None`` if each machine makes its own.

    Raises:
        ConfigError: the key can be guessed.
    """
    key = environment.get(SESSION_KEY_VARIABLE, "").strip()
    if key and (len(key) < MIN_KEY_CHARACTERS or shown_bits(key) < MIN_TOKEN_BITS):
        raise ConfigError(f"{SESSION_KEY_VARIABLE} can be guessed; expected 64 characters of `openssl rand -hex 32`")
    return key or None


def client_secret(settings: Settings, environment: Mapping[str, str]) -> str | None:
    """Return this client's secret at the identity provider; ``None`` if none is configured.

    Raises:
        ConfigError: its variable is not set.
    """
    variable = settings.access.oidc.client_secret_env if settings.access and settings.access.oidc else None
    return None if variable is None else _required(settings, environment, "access.oidc.client_secret_env", variable)


def _required(settings: Settings, environment: Mapping[str, str], key: str, variable: str) -> str:
    value = environment.get(variable, "").strip()
    if not value:
        raise ConfigError(f"{settings.file}: {key}: the variable {variable} is not set")
    return value


def check_listening(host: str, token: str | None, settings: Settings) -> None:
    """Refuse to start where others could reach an open API, or where no configuration fills the groups of a source.

    Raises:
        ConfigError: ``host`` is reachable by others and no token is needed, or the service token
            can be guessed; a source names groups and nothing says who is in them; the file of tokens is missing or
            broken.
    """
    if settings.access and settings.access.tokens:
        read_tokens(settings.access.tokens)
    if settings.access and settings.access.membership.file:
        read_members(settings.access.membership.file)
    restricted = [source.id for source in settings.sources if source.restricted_to]
    if settings.access is None and restricted:
        raise ConfigError(
            f"{settings.file}: source {restricted[0]!r} is for groups ('access'), and nothing says who is in a group; "
            "configure 'access:' at the top (docs/security.md), or take 'access' (or 'rights') out of the source"
        )
    if token is not None and shown_bits(token) < MIN_TOKEN_BITS and not is_loopback(host):
        raise ConfigError(
            f"host {host!r}: {TOKEN_VARIABLE} can be guessed: it is short, or repeats itself; expected at least 16 "
            "random characters, for instance from `openssl rand -hex 32`"
        )
    if token is None and settings.access is None and not is_loopback(host):
        raise ConfigError(
            f"host {host!r}: whoever reaches it could read everything; set {TOKEN_VARIABLE} to a secret "
            "that clients send as bearer token, or listen on 127.0.0.1"
        )


def is_authorised(scope: Scope, token: str | None) -> bool:
    """Tell whether a request carries the service token. Without a configured token every request is authorised."""
    if token is None:
        return True
    header: bytes = dict(scope["headers"]).get(b"authorization", b"")
    scheme, _, given = header.partition(b" ")
    # In constant time, so that how long a refusal takes tells nothing about the token.
    return hmac.compare_digest(given.strip(), token.encode()) and scheme.lower() == b"bearer"


class BearerAuth:
    """Finds the viewer of each request. Answers 401 to requests without a valid token or session.

    Args:
        open_paths: paths that need no token. If a token is sent all the same, its viewer is stored.
        forms: paths that check the CSRF token of a session themselves, in a field of their form.
        login: makes the answer to a browser that asks for a page, instead of the 401.
    """

    def __init__(
        self,
        app: ASGIApp,
        door: Door,
        open_paths: Collection[str] = (),
        forms: Collection[str] = (),
        login: Callable[[Scope], Response | None] = lambda _: None,
    ) -> None:
        self._app = app
        self._door = door
        self._open_paths = open_paths
        self._forms = forms
        self._login = login

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass an authorised request on, with its viewer."""
        # Who handed the request over from another process of ours has asked already.
        if scope["type"] != "http" or VIEWER in scope:
            await self._app(scope, receive, send)
            return
        try:
            refusal = await self._refusal(scope)
        except ProblemError as error:
            refusal = error.response()
        if refusal is None or scope["path"] in self._open_paths:
            await self._app(scope, receive, send)
        else:
            await refusal(scope, receive, send)

    async def _refusal(self, scope: Scope) -> Response | None:
        """Store the viewer in the request's scope; return a refusal if the request may not pass, else ``None``.

        Raises:
            ProblemError: 503, access rights cannot be looked up now.
        """
        viewer = await self._door.by_header(scope)
        if viewer is None:
            found = await self._door.by_session(scope)
            if found is None:
                return self._login(scope) or _unauthorised()
            session, viewer = found
            if not self._is_meant(scope, session.value):
                return problem_response(
                    403, f"send the header {CSRF_HEADER!r} with the token of the page, or log in anew"
                )
        if viewer.registers and not _REGISTRATION.fullmatch(scope["path"]):
            return problem_response(403, "this token registers agents, and nothing else")
        scope[VIEWER] = on_behalf(viewer, Headers(scope=scope))
        return None

    def _is_meant(self, scope: Scope, session: str) -> bool:
        """Tell whether a request with a session only reads, or has the CSRF token that one of our pages sends."""
        if scope["method"] in {"GET", "HEAD"} or scope["path"] in self._forms:
            return True
        return is_csrf_token(Headers(scope=scope).get(CSRF_HEADER, ""), session, self._door.secret or "")


def _unauthorised() -> Response:
    return problem_response(
        401,
        "send the header 'Authorization: Bearer <token>' with a token of this service",
        headers={"WWW-Authenticate": 'Bearer realm="nornweave"'},
    )


def on_behalf(viewer: Viewer, headers: Headers) -> Viewer:
    """Return the viewer limited to the groups that a request names, never with more rights than the sender."""
    stated = headers.getlist(GROUPS_HEADER)
    if not stated:
        return viewer
    named = frozenset(group_name(unquote(group)) for value in stated for group in value.split(",") if group)
    groups = named if viewer.sees_everything else named & viewer.groups
    return replace(viewer, groups=groups, sees_everything=False, operates=False)
