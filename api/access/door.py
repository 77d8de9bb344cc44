"""The viewer of a request, by the token in its header or by its session.

=====================  =======================================================================================
configured             viewer of a request
=====================  =======================================================================================
nothing                anyone: nobody is in a group
the service token      with the token, anyone, as without configuration
``access``             the service token: the operator; a token of the file or of the provider: somebody in groups
=====================  =======================================================================================
"""

from __future__ import annotations

import hmac
import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread
from starlette.types import Scope

from api.access.origins import client_address
from api.access.own_tokens import OwnToken, OwnTokens
from api.access.sessions import SIGNED_IN, EndedSessions, Session, derive, session_key, session_of
from api.access.token_file import TokenFile, broken_access
from api.errors import ProblemError
from nornweave.config.access import AccessSettings
from nornweave.core.access import ANYONE, HASH_PREFIX, OPERATOR, REGISTRAR, TokenEntry, Viewer, hash_of
from nornweave.core.errors import StoreError
from nornweave.core.membership import Memberships, expanded

if TYPE_CHECKING:
    from api.access.oidc import Provider
    from api.access.sign_in import SignIn
    from api.access.signed_in import SignedInPeople

log = logging.getLogger(__name__)

T = TypeVar("T")

VIEWER = "nornweave.viewer"
"""Where the ASGI scope of a request holds its viewer: no client can write there."""
# Requests that wait for a provider's keys; those whose key is known do not.
_WAITING_FOR_KEYS = 4
_ANSWERS_WITHIN_S = 12.0
_SERVICE: Mapping[str, Any] = {"kind": "service"}


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
            from api.access.sign_in import SignIn
            from api.access.signed_in import SignedInPeople

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
