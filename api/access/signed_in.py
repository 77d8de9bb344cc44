"""Records of people who signed in at the provider: their latest groups, and the tokens that renew them.

The cookie of a session holds the person and the groups at its beginning. A server without these rows accepts it too,
until it is due to be renewed. The provider's tokens stay here, encrypted with a key derived from that of sessions.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet, InvalidToken

from api.access.own_tokens import OwnTokens
from api.access.sessions import LASTS_S, MAX_CHARACTERS, SIGNED_IN, EndedSessions, derive, new_session
from api.access.shared_rows import SharedRows
from api.access.sign_in import NotRenewedError, SignedIn, SignIn
from nornweave.core.access import hash_of, storable_groups

log = logging.getLogger(__name__)

FILE = "signed_in.sqlite"
TRY_AGAIN_S = 30.0
GRACE_S = 900.0
"""A provider that cannot be asked, or a request beside the one that asks it, ends no session for so long."""


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
