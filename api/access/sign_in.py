"""Sign-in in the browser: OpenID Connect's authorization code flow with PKCE, and the people who signed in.

A sign-in that has begun is a signed cookie of the browser, for ten minutes. ``state``, ``nonce`` and PKCE's verifier
are derived from the cookie with the key of sessions. So every serving process with that key can finish it, nothing is
stored, and neither the cookie nor the address reveals the verifier.

Of people who signed in there are rows: their latest groups, and the tokens that renew them. The cookie of a session
holds the person and the groups at its beginning. A server without these rows accepts it too, until it is due to be
renewed. The provider's tokens stay here, encrypted with a key derived from that of sessions.

Sources: OpenID Connect Core 1.0, RFC 6749 (OAuth 2.0), RFC 7636 (PKCE), RFC 9207 (``iss``), OpenID Connect RP-Initiated
Logout 1.0, RFC 9700 (what attackers try).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import re
import sqlite3
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit

import httpx
from cryptography.fernet import Fernet, InvalidToken

from api.access.oidc import ASK_AGAIN_S, DISCOVERY, Identity, Provider, UnreadableError, fetch_description, fetch_json
from api.access.sessions import LASTS_S, MAX_CHARACTERS, SIGNED_IN, EndedSessions, derive, is_valid, new_session, who_of
from api.access.tokens import OwnTokens, SharedRows
from api.errors import ProblemError, unavailable
from api.pages.addresses import CALLBACK, LOGOUT
from nornweave.config.access import OidcSettings, checked_address
from nornweave.core.access import hash_of, storable_groups

log = logging.getLogger(__name__)

COOKIE = "nornweave_sign_in_"
"""Begins the name of the cookie; the first digits of ``state`` end it, for several may be under way."""
WITHIN_S = 600
# What is asked for is kept in the cookie if it is not longer; else the first page is shown afterwards.
MAX_TARGET_CHARACTERS = 1_500
MAX_CODE_CHARACTERS = 4_096
# Of each of two addresses, while somebody waits for the page.
LOOK_S = 3.0
_REFUSALS = (400, 401, 403)
_ERROR = re.compile(r"[a-z_]{1,60}")
_STATE = re.compile(r"[0-9a-f]{64}")

FILE = "signed_in.sqlite"
TRY_AGAIN_S = 30.0
GRACE_S = 900.0
"""A provider that cannot be asked, or a request beside the one that asks it, ends no session for so long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A sign-in that has begun.

    Attributes:
        cookie: the name of its cookie; ``value``: the cookie's value, valid for ``WITHIN_S``.
        target: the path that somebody asked for.
    """

    cookie: str
    value: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """The identity of a person, the ID token for signing out, and a refresh token if the provider gave one."""

    identity: Identity
    id_token: str
    refresh_token: str | None


class NotRenewedError(Exception):
    """The provider does not confirm any more that the person is signed in."""


class SignIn:
    """The steps of signing in at the provider. Methods that ask the provider block until it answers."""

    def __init__(
        self,
        settings: OidcSettings,
        provider: Provider,
        key: str,
        client_secret: str | None = None,
        *,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Store the parameters. The provider is asked when somebody signs in.

        Args:
            key: the key of sessions.
            client_secret: the secret of this service at the provider; ``None`` if it has none.
        """
        self._settings, self._provider, self._secret, self._now = settings, provider, client_secret, now
        self._key = key
        self._lock = threading.Lock()
        self._described: Mapping[str, Any] = {}
        self._read_at, self._tried_at = float("-inf"), float("-inf")
        self._looking = threading.Lock()
        self._answers, self._looked_at = True, float("-inf")
        self.host = urlsplit(settings.issuer).netloc

    def begin(self, base: str, target: str) -> tuple[Begun, str]:
        """Return a new sign-in, and the address at the provider to which the browser is sent.

        Args:
            base: the address of this server as people know it.
            target: the path that the person asked for.

        Raises:
            ProblemError: 503, the provider's description lacks this address, or the provider does not answer now.
        """
        address = self._place("authorization_endpoint")
        self._check_answers(address)
        target = target if len(target) <= MAX_TARGET_CHARACTERS else "/"
        value = new_session(self._key, who={"next": target}, until=time.time() + WITHIN_S, purpose="sign-in")
        verifier, state = (derive(self._key, purpose, value) for purpose in ("verifier", "state"))
        challenge = urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
        asked = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": base + CALLBACK,
            "scope": " ".join(self._settings.scopes),
            "state": state,
            "nonce": derive(self._key, "nonce", value),
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return Begun(cookie=COOKIE + state[:16], value=value, target=target), _with_query(address, asked)

    def begun(self, state: str, cookies: Mapping[str, str]) -> Begun | None:
        """Return the sign-in of a state; ``None`` if this browser began none or it has expired.

        Args:
            cookies: the cookies of the request, by name.
        """
        name = COOKIE + state[:16]
        value = cookies.get(name, "") if _STATE.fullmatch(state) else ""
        if not value or not is_valid(value, self._key, purpose="sign-in"):
            return None
        is_its = hmac.compare_digest(derive(self._key, "state", value), state)
        return Begun(cookie=name, value=value, target=str(who_of(value).get("next", "/"))) if is_its else None

    def finish(self, base: str, given: Mapping[str, str], begun: Begun) -> SignedIn:
        """Redeem the code with which the provider sent the browser back. Return the person who signed in.

        Args:
            base: the same address as in ``begin``.
            given: the query parameters; ``begun`` has checked their ``state``.

        Raises:
            ProblemError: 400, another issuer answered; 403, the provider refuses, or the person may not ask here; 503,
                the provider cannot be asked.
        """
        says_iss = self._document().get("authorization_response_iss_parameter_supported") is True
        if given.get("iss", None if says_iss else self._settings.issuer) != self._settings.issuer:
            raise ProblemError(400, "this answer is not of the provider at which the sign-in began")
        if error := given.get("error"):
            named = error if _ERROR.fullmatch(error) else "an error"
            raise ProblemError(403, f"the provider did not sign you in: {named}")
        if not 0 < len(code := given.get("code", "")) <= MAX_CODE_CHARACTERS:
            raise ProblemError(400, "this answer of the provider has no code")
        tokens = self._tokens({
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": base + CALLBACK,
            "code_verifier": derive(self._key, "verifier", begun.value),
        })  # fmt: skip
        signed_in = self._signed_in(tokens, derive(self._key, "nonce", begun.value))
        if signed_in is None:
            log.warning("a sign-in is refused: %s", tokens.get("error", "the ID token is not valid for this client"))
            raise ProblemError(403, "the provider's answer does not say who you are; sign in again")
        if not self._provider.admits(signed_in.identity.groups):
            raise ProblemError(403, "you are in none of the groups that may ask here")
        return signed_in

    def renew(self, name: str, refresh_token: str) -> SignedIn:
        """Return the same person with new tokens, for which the provider is asked.

        Args:
            name: the name of the identity to which the new tokens must belong.

        Raises:
            NotRenewedError: the provider names nobody or another person.
            ProblemError: 503, it cannot be asked.
        """
        tokens = self._tokens({"grant_type": "refresh_token", "refresh_token": refresh_token})
        signed_in = self._signed_in({"refresh_token": refresh_token, **tokens}, None)
        if signed_in is None or signed_in.identity.name != name:
            raise NotRenewedError(str(tokens.get("error", "no ID token of the same person")))
        return signed_in

    def leave_address(self, base: str, id_token: str | None) -> str | None:
        """Return the provider's address for signing out; ``None`` if it has none or does not answer now."""
        try:
            address = self._place("end_session_endpoint")
            self._check_answers(address)
        except ProblemError:
            return None
        asked = {"client_id": self._settings.client_id, "post_logout_redirect_uri": base + LOGOUT}
        return _with_query(address, asked if id_token is None else {"id_token_hint": id_token, **asked})

    def _signed_in(self, tokens: Mapping[str, Any], nonce: str | None) -> SignedIn | None:
        id_token, refresh = tokens.get("id_token"), tokens.get("refresh_token")
        identity = self._provider.signed_in(id_token, nonce) if isinstance(id_token, str) else None
        if identity is None or not isinstance(id_token, str):
            return None
        return SignedIn(
            identity=identity, id_token=id_token, refresh_token=refresh if isinstance(refresh, str) else None
        )

    def _tokens(self, form: Mapping[str, str]) -> Mapping[str, Any]:
        """Return the answer of the token endpoint, even if the answer is a refusal.

        Raises:
            ProblemError: 503, there is no answer.
        """
        client, secret = str(self._settings.client_id), self._secret
        ways = self._document().get("token_endpoint_auth_methods_supported")
        by_header = secret is not None and (not isinstance(ways, list) or "client_secret_basic" in ways)
        # In the header both are written as in a form (RFC 6749, 2.3.1).
        header = (quote_plus(client), quote_plus(secret)) if secret and by_header else None
        named = {} if by_header else {"client_id": client, **({"client_secret": secret} if secret else {})}
        try:
            return fetch_json(self._place("token_endpoint"), {**form, **named}, header, also=_REFUSALS)
        except (OSError, ValueError, UnreadableError, httpx.HTTPError) as error:
            raise self._unreached(error) from error

    def _place(self, name: str) -> str:
        try:
            return checked_address(str(self._document().get(name, "")))
        except ValueError as error:
            raise self._unreached(f"{name}: {error}") from error

    def _document(self) -> Mapping[str, Any]:
        """Return the provider's description. If it cannot be read now, return the description that was read last.

        Raises:
            ProblemError: 503, the description could never be read.
        """
        with self._lock:
            is_due = self._now() - self._read_at > self._settings.keys_fresh_s
            if is_due and self._now() - self._tried_at >= ASK_AGAIN_S:
                self._tried_at = self._now()
                try:
                    self._described = fetch_description(self._settings.issuer)
                    self._read_at = self._now()
                except (OSError, ValueError, UnreadableError, httpx.HTTPError) as error:
                    if not self._described:
                        raise self._unreached(error) from error
                    log.warning("what %s says of itself cannot be read again: %s", self._settings.issuer, error)
            if not self._described:
                raise self._unreached("a moment ago")
            return self._described

    def _check_answers(self, address: str) -> None:
        """Check that the provider answers, before a browser is sent there. A result is used again for a moment.

        An answer at ``address`` or at the provider's description is enough, because browsers may reach an address that
        this machine does not reach.

        Raises:
            ProblemError: 503, there is no answer at either address.
        """
        with self._looking:
            if self._now() - self._read_at < ASK_AGAIN_S:
                return
            if self._now() - self._looked_at >= ASK_AGAIN_S:
                self._answers = any(map(_is_there, (self._settings.issuer.rstrip("/") + DISCOVERY, address)))
                self._looked_at = self._now()
            if not self._answers:
                raise self._unreached("it does not answer")

    def _unreached(self, why: object) -> ProblemError:
        log.error("%s cannot be asked to sign somebody in: %s", self._settings.issuer, why)
        return unavailable("provider-unavailable", f"{self.host}, where people sign in, does not answer now", 10)


def _is_there(address: str) -> bool:
    """Tell whether an address answers soon. Status 404 and 5xx do not count, because a proxy may send them."""
    try:
        with httpx.stream("GET", address, timeout=LOOK_S, follow_redirects=False) as response:
            return response.status_code < httpx.codes.INTERNAL_SERVER_ERROR and response.status_code != 404
    except httpx.HTTPError:
        return False


def _with_query(address: str, asked: Mapping[str, str | None]) -> str:
    return f"{address}{'&' if urlsplit(address).query else '?'}{urlencode(asked)}"


@dataclass(frozen=True, slots=True)
class SignedInPerson:
    """A person who signed in.

    Attributes:
        asked_at: when the provider named the groups, seconds since 1970.
        try_at: the provider is not asked again before this time.
        sealed: the provider's tokens, encrypted.
        is_renewable: whether there is a refresh token.
    """

    groups: frozenset[str]
    asked_at: float
    try_at: float
    is_renewable: bool
    sealed: str


class SignedInPeople:
    """People by session, known to all serving processes of a machine; every method may be called from any thread."""

    def __init__(
        self, data_dir: Path, key: str, sign_in: SignIn, ended: EndedSessions, renew_s: float, own: OwnTokens | None
    ) -> None:
        """Store the parameters and the place of the file.

        Args:
            key: the key of sessions.
            renew_s: the time after which the provider is asked again.
            own: the tokens that people made, which lose the groups that their makers lose; ``None`` if nobody can.
        """
        self._own = own
        self._key, self._sign_in, self._ended, self._renew_s = key, sign_in, ended, renew_s
        self._fernet = Fernet(urlsafe_b64encode(bytes.fromhex(derive(key, "sealing", "tokens"))))
        self._rows = SharedRows(
            data_dir / FILE,
            "create table if not exists people (session text primary key, groups text, asked_at real, try_at real,"
            " is_renewable integer, sealed text)",
            "select * from people",
            lambda rows: {row[0]: SignedInPerson(frozenset(json.loads(row[1])), *row[2:]) for row in rows},
            "who signed in cannot be written down",
        )

    def groups(self, session: str, who: Mapping[str, Any]) -> frozenset[str] | None:
        """Return the groups of a session; ``None`` if the provider named them too long ago.

        Args:
            who: the content of the session's cookie.
        """
        kept = self._kept(session)
        if kept is None:
            return frozenset(map(str, who.get("groups", ()))) if time.time() < who.get("until", 0) else None
        lasts = self._renew_s + (GRACE_S if kept.is_renewable else 0)
        return kept.groups if time.time() < kept.asked_at + lasts else None

    def is_due(self, session: str) -> bool:
        """Tell whether the provider has to be asked again."""
        kept, now = self._kept(session), time.time()
        return kept is not None and kept.is_renewable and now >= max(kept.asked_at + self._renew_s, kept.try_at)

    def begin(self, signed_in: SignedIn) -> str:
        """Store a new session and return its cookie; forget sessions that have ended.

        Raises:
            StoreError: the file cannot be written.
        """
        identity, due = signed_in.identity, time.time() + self._renew_s
        who = {"kind": SIGNED_IN, "name": identity.name, "groups": sorted(identity.groups), "until": int(due)}
        until = None if signed_in.refresh_token else due
        session = new_session(self._key, who=who, until=until)
        if len(session) > MAX_CHARACTERS:
            # This machine keeps the groups beside the session; other machines do not accept the cookie.
            session = new_session(self._key, who={**who, "groups": [], "until": 0}, until=until)
        self._keep(session, signed_in)
        return session

    def renew(self, session: str, name: str) -> None:
        """Ask the provider again, unless another process does; end the session if the provider does not confirm it.

        Args:
            name: the name of the session's person.

        Raises:
            StoreError: the file cannot be written.
            ProblemError: 503, the provider cannot be asked; it is asked again after ``TRY_AGAIN_S``.
        """
        now = time.time()
        claim = "update people set try_at = ? where session = ? and try_at <= ? and asked_at <= ?"
        claimed = self._rows.change((claim, [now + TRY_AGAIN_S, hash_of(session), now, now - self._renew_s]))
        kept = self._kept(session)
        if kept is None or not claimed:
            return
        try:
            signed_in = self._sign_in.renew(name, self._tokens(kept).get("refresh_token", ""))
        except NotRenewedError as error:
            log.info("a session is not renewed and ends: %s", error)
            self.end(session)
            return
        self._keep(session, signed_in)

    def end(self, session: str) -> str | None:
        """End a session. Return its ID token for signing out; ``None`` if there is none. Errors are as in ``begin``."""
        kept = self._kept(session)
        self._ended.end(session)
        if kept is None:
            return None
        self._rows.change(("delete from people where session = ?", [hash_of(session)]))
        return self._tokens(kept).get("id_token")

    def _kept(self, session: str) -> SignedInPerson | None:
        try:
            return self._rows.current().get(hash_of(session))
        except sqlite3.Error as error:
            log.error("who signed in cannot be read; their sessions last until they are due: %s", error)
            return None

    def _tokens(self, kept: SignedInPerson) -> Mapping[str, str]:
        """Return the provider's tokens by name; empty if they were encrypted with another key."""
        try:
            opened: dict[str, str] = json.loads(self._fernet.decrypt(kept.sealed))
        except InvalidToken:
            return {}
        return opened

    def _keep(self, session: str, signed_in: SignedIn) -> None:
        tokens = {"id_token": signed_in.id_token, "refresh_token": signed_in.refresh_token}
        sealed = self._fernet.encrypt(json.dumps({name: token for name, token in tokens.items() if token}).encode())
        groups, now = json.dumps(sorted(signed_in.identity.groups)), time.time()
        row = [hash_of(session), groups, now, 0.0, signed_in.refresh_token is not None, sealed.decode()]
        self._rows.change(
            ("delete from people where asked_at < ?", [now - LASTS_S]),
            ("insert or replace into people values (?, ?, ?, ?, ?, ?)", row),
        )
        if self._own:
            self._own.narrow(signed_in.identity.name, storable_groups(signed_in.identity.groups))
