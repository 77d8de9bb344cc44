"""The viewer of a request, by the token in its header or by its session.

=====================  =======================================================================================
configured             viewer of a request
=====================  =======================================================================================
nothing                anyone: nobody is in a group
the service token      with the token, anyone, as without configuration
``access``             the service token: the operator; a token of the file or of the provider: somebody in groups
=====================  =======================================================================================

Bearer tokens are checked if ``NORNWEAVE_SERVICE_TOKEN`` or ``access`` is set; else only this machine may ask. People
may give the token in a form instead; their browser then sends a session (``sessions.py``).
"""

from __future__ import annotations

import hmac
import logging
import math
import re
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

import anyio
import anyio.to_thread
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from api.access.origins import client_address
from api.access.sessions import (
    CSRF_HEADER,
    SIGNED_IN,
    EndedSessions,
    Session,
    derive,
    is_csrf_token,
    session_key,
    session_of,
)
from api.access.tokens import OwnToken, OwnTokens, TokenFile, broken_access
from api.errors import ProblemError, problem_response
from nornweave.ask.agents.exchange import GROUPS_HEADER
from nornweave.config import Settings
from nornweave.config.access import AccessSettings
from nornweave.config.base import is_loopback
from nornweave.core.access import (
    ANYONE,
    HASH_PREFIX,
    OPERATOR,
    REGISTRAR,
    TokenEntry,
    Viewer,
    group_name,
    hash_of,
    read_tokens,
)
from nornweave.core.errors import ConfigError, StoreError
from nornweave.core.membership import Memberships, expanded, read_members

if TYPE_CHECKING:
    from api.access.oidc import Provider
    from api.access.sign_in import SignedInPeople, SignIn

log = logging.getLogger(__name__)

T = TypeVar("T")

VIEWER = "nornweave.viewer"
"""Where the ASGI scope of a request holds its viewer: no client can write there."""
# Requests that wait for a provider's keys; those whose key is known do not.
_WAITING_FOR_KEYS = 4
_ANSWERS_WITHIN_S = 12.0
_SERVICE: Mapping[str, Any] = {"kind": "service"}

# `/agents/register`, `/agents/{id}` and `/agents/{id}/heartbeat`.
_REGISTRATION = re.compile(r"/agents/[^/]+(/heartbeat)?")

MIN_TOKEN_BITS = 32
"""What the service token's own characters show of chance, where others than this machine can try tokens.

16 random hexadecimal digits show 34 at least (of 4,000 tries; 47 at the median), 12 of base64 36 at the median.
"""
MIN_KEY_CHARACTERS = 32
SESSION_KEY_VARIABLE = "NORNWEAVE_SESSION_KEY"
TOKEN_VARIABLE = "NORNWEAVE_SERVICE_TOKEN"  # noqa: S105 - the name of the variable


def viewer_of(scope: Scope) -> Viewer:
    """Return the viewer on whose behalf a request is answered.

    Raises:
        PermissionError: no viewer was determined; the request must not be answered.
    """
    viewer = scope.get(VIEWER)
    if not isinstance(viewer, Viewer):
        raise PermissionError(f"{scope.get('path')!r} is answered before its viewer is known")
    return viewer


@dataclass(frozen=True, slots=True)
class DoorEntry:
    """A person or a program that showed a valid token.

    Attributes:
        who: the content of their session; empty for tokens that open no session.
        until: when the session ends at the latest, seconds since 1970; ``None`` for no limit of its own.
    """

    viewer: Viewer
    who: Mapping[str, Any]
    until: float | None = None


class Door:
    """Finds the viewer of a request. Every method may be called from any thread."""

    def __init__(
        self,
        service_token: str | None,
        access: AccessSettings | None = None,
        data_dir: Path | None = None,
        registration_token: str | None = None,
        client_secret: str | None = None,
        shared_key: str | None = None,
        memberships: Memberships | None = None,
    ) -> None:
        """Read the configuration of access.

        Args:
            service_token: the token of the whole service; ``None`` if none is set.
            access: the key ``access`` of the configuration; ``None`` if it is missing.
            data_dir: the folder that holds the ended sessions and, with ``access``, the key of sessions.
            registration_token: lets agents register, and nothing else.
            client_secret: the secret of this service at the identity provider, if there is one.
            shared_key: the key of sessions to use instead of the one in ``data_dir``.
            memberships: returns the principals of a person; without it nobody has principals.

        Raises:
            ConfigError: the key of sessions can be neither read nor made.
        """
        self._service_token = service_token
        self._registration_token = registration_token
        self._memberships = memberships
        self._operators = frozenset(access.operators) if access else frozenset()
        self._file = TokenFile(access.tokens) if access and access.tokens else None
        self._provider = _provider(access, names_accounts=memberships is not None) if access else None
        self._by_service_token = ANYONE
        self.attempts = Attempts()
        self.ended = EndedSessions(data_dir) if data_dir else None
        self._waiting = anyio.CapacityLimiter(_WAITING_FOR_KEYS)
        self.secret = service_token
        if access and data_dir:
            # Another service token ends all sessions, as without access.
            self.secret = f"{shared_key or session_key(data_dir)} {service_token or ''}"
        if access:
            # Another one ends the tokens that were made with this one.
            mark = derive(self.secret or "", "maker", service_token or "")[:12]
            self._by_service_token = replace(OPERATOR, makes_tokens=True, name=f"service token {mark}")
        self.max_token_days = access.max_token_days if access else 0
        self.own_tokens = OwnTokens(data_dir) if data_dir and self.max_token_days else None
        self.sign_in: SignIn | None = None
        self.people: SignedInPeople | None = None
        oidc = access.oidc if access else None
        if oidc and oidc.client_id and self._provider and data_dir and self.secret and self.ended:
            from api.access.sign_in import SignedInPeople, SignIn

            self.sign_in = SignIn(oidc, self._provider, self.secret, client_secret)
            self.people = SignedInPeople(data_dir, self.secret, self.sign_in, self.ended, oidc.renew_s, self.own_tokens)

    @property
    def is_open(self) -> bool:
        """Tell whether requests are answered without a token."""
        return self.secret is None

    async def enter(self, token: str, address: str) -> DoorEntry | None:
        """Return the entry of a token; ``None`` if the token is not valid.

        Raises:
            ProblemError: 429, the address sent many wrong tokens; 503, access rights cannot be looked up now.
        """
        self.check_attempts(address, token)
        entry = await self._entry(token)
        self.attempts.note(address, token, is_right=entry is not None)
        return entry

    def check_attempts(self, address: str, token: str) -> None:
        """Refuse to compare a token if its address has sent many wrong tokens.

        Raises:
            ProblemError: 429, the address has sent many wrong tokens.
        """
        if not self.attempts.may_try(address, token):
            detail = f"{MAX_FAILURES} wrong tokens came from this address within {WINDOW_S:g} s"
            raise ProblemError(429, detail, headers={"Retry-After": f"{WINDOW_S:g}"})

    async def _entry(self, token: str) -> DoorEntry | None:
        # In constant time, so that how long a refusal takes tells nothing about the token.
        if self._service_token and hmac.compare_digest(token.encode(), self._service_token.encode()):
            return DoorEntry(self._by_service_token, _SERVICE)
        if self._provider and self._provider.takes(token):
            if self._provider.has_to_wait(token):
                identity = await anyio.to_thread.run_sync(self._provider.identity, token, limiter=self._waiting)
            else:
                identity = self._provider.identity(token)
            if identity is None or not self._provider.admits(identity.groups):
                return None
            who = {"kind": "oidc", "name": identity.name, "groups": sorted(identity.groups)}
            return DoorEntry(self._viewer(identity.groups, identity.name), who, max(identity.expires, time.time()))
        entry = self._file.find(token) if self._file and token else None
        if entry:
            return self._of_entry(entry)
        own = self.own_tokens.find(token) if self.own_tokens else None
        viewer = self._of_own(own) if own else None
        if own is None or viewer is None or self.own_tokens is None:
            return None
        await anyio.to_thread.run_sync(self.own_tokens.note_use, own)
        return DoorEntry(viewer, {})

    async def by_header(self, scope: Scope) -> Viewer | None:
        """Return the viewer of the ``Authorization`` header; ``None`` without a valid token. Raises as ``enter``."""
        header: bytes = dict(scope["headers"]).get(b"authorization", b"")
        scheme, _, given = header.partition(b" ")
        if self._registration_token and hmac.compare_digest(given.strip(), self._registration_token.encode()):
            return REGISTRAR
        if self.is_open:
            return ANYONE
        if scheme.lower() != b"bearer":
            return None
        try:
            entry = await self.enter(given.strip().decode(), client_address(scope))
        except UnicodeDecodeError:
            return None
        return entry.viewer if entry else None

    async def by_session(self, scope: Scope) -> tuple[Session, Viewer] | None:
        """Return the session of a request and its viewer; ``None`` if no session is valid or its person may not ask.

        Raises:
            ProblemError: 503, as ``enter``.
        """
        session = session_of(scope, self.secret)
        if session is None or (self.ended and self.ended.has_ended(session.value)):
            return None
        is_signed_in = session.who.get("kind") == SIGNED_IN
        viewer = await self._signed_in(session) if is_signed_in else self._returning(session.who)
        return (session, viewer) if viewer else None

    async def _signed_in(self, session: Session) -> Viewer | None:
        """Return the viewer of a person who signed in at the provider; ``None`` if this person may not ask any more.

        The provider is asked again if its last answer is too old.
        """
        if self.people is None or self._provider is None:
            return None
        name = str(session.who.get("name"))
        if self.people.is_due(session.value):
            try:
                await self.ask_provider(partial(self.people.renew, session.value, name))
            except (ProblemError, StoreError) as error:
                log.warning("a session is not renewed now: %s", error)
            if self.ended and self.ended.has_ended(session.value):
                return None
        groups = self.people.groups(session.value, session.who)
        return self._viewer(groups, name) if groups is not None and self._provider.admits(groups) else None

    async def ask_provider(self, work: Callable[[], T]) -> T:
        """Return the result of ``work``, which asks the provider. It runs in a thread, and few such calls run at once.

        Raises:
            ProblemError: 503, the work takes too long. Errors of the work are raised as they are.
        """
        try:
            with anyio.fail_after(_ANSWERS_WITHIN_S):
                return await anyio.to_thread.run_sync(work, limiter=self._waiting, abandon_on_cancel=True)
        except TimeoutError as error:
            raise broken_access() from error

    def _returning(self, who: Mapping[str, Any]) -> Viewer | None:
        """Return the viewer of a session's content; ``None`` if its token was removed or its person may not ask."""
        if who.get("kind") == "service":
            return self._by_service_token if self._service_token else None
        if who.get("kind") == "file" and self._file:
            entry = self._file.entry(str(who.get("hash")))
            return self._of_entry(entry).viewer if entry else None
        groups = frozenset(map(str, who.get("groups", ())))
        if who.get("kind") == "oidc" and self._provider and self._provider.admits(groups):
            return self._viewer(groups, str(who.get("name")))
        return None

    def _of_entry(self, entry: TokenEntry) -> DoorEntry:
        until = entry.expires.timestamp() if entry.expires else None
        viewer = self._viewer(entry.groups, entry.hashed)
        return DoorEntry(viewer, {"kind": "file", "hash": entry.hashed}, until)

    def _of_own(self, token: OwnToken) -> Viewer | None:
        """Return the viewer of a token that a person made; ``None`` if its maker may not ask any more.

        The viewer never sees more than the maker could see when the token was made, nor more than the maker can see
        now.
        """
        groups, operators = frozenset(token.groups), self._operators if token.scope == "operate" else frozenset()
        if token.maker == self._by_service_token.name:
            operates = token.scope == "operate"
            return Viewer(sees_everything=operates, operates=operates, name=token.maker)
        if token.maker.startswith(HASH_PREFIX):
            entry = self._file.entry(token.maker) if self._file else None
            return Viewer.in_groups(self._expanded(groups & entry.groups), operators, token.maker) if entry else None
        is_known = self._provider and self._provider.knows(token.maker) and self._provider.admits(groups)
        return Viewer.in_groups(self._expanded(groups), operators, token.maker) if is_known else None

    def _viewer(self, groups: frozenset[str], name: str) -> Viewer:
        return replace(Viewer.in_groups(self._expanded(groups), self._operators, name), makes_tokens=True)

    def _expanded(self, groups: frozenset[str]) -> frozenset[str]:
        return expanded(self._memberships, groups)


def _provider(access: AccessSettings, *, names_accounts: bool) -> Provider | None:
    """Return the identity provider; ``None`` if none is configured. Its library is loaded only if one is configured."""
    if access.oidc is None:
        return None
    from api.access.oidc import Provider

    return Provider(access.oidc, names_accounts=names_accounts)


K = TypeVar("K")
V = TypeVar("V")

MAX_FAILURES = 30
"""Wrong tokens of one address within ``WINDOW_S``; the next one is not compared."""
WINDOW_S = 60.0
MAX_ADDRESSES = 10_000
MAX_ACCEPTED = 1_000


class Attempts:
    """Counts the wrong tokens of each address; every method may be called from any thread.

    People behind one proxy share its address. So a token that was right a moment ago is always compared, however many
    wrong ones its address sends. Each serving process counts for itself.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()
        self._accepted: OrderedDict[str, None] = OrderedDict()

    def may_try(self, address: str, token: str) -> bool:
        """Tell whether a token of this address may be compared."""
        with self._lock:
            failures = self._failures.get(address, ())
            since = self._now() - WINDOW_S
            recent = sum(at > since for at in failures)
            return recent < MAX_FAILURES or hash_of(token) in self._accepted

    def note(self, address: str, token: str, *, is_right: bool) -> None:
        """Remember whether the token was right. The latest addresses and right tokens are kept."""
        with self._lock:
            if is_right:
                _push(self._accepted, hash_of(token), None, MAX_ACCEPTED)
            else:
                failures = self._failures.pop(address, None) or deque(maxlen=MAX_FAILURES)
                failures.append(self._now())
                _push(self._failures, address, failures, MAX_ADDRESSES)


def _push(kept: OrderedDict[K, V], key: K, value: V, limit: int) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > limit:
        kept.popitem(last=False)


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
