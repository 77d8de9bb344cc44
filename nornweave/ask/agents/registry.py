"""The registry of remote agents: a SQLite file of limited size that all serving processes share and that lasts."""

from __future__ import annotations

import hmac
import json
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from nornweave.core.errors import ConflictingAgentError, NotPermittedError, StoreError
from nornweave.core.types import NO_METADATA, Domain, JsonValue, freeze

MAX_FILTERS = 100


class RemoteState(StrEnum):
    """The state that an agent reports. An agent whose lease has expired is ``STOPPED``."""

    STARTING = "STARTING"
    READY = "READY"
    DEGRADED = "DEGRADED"
    DRAINING = "DRAINING"
    STOPPED = "STOPPED"


ASKED_STATES = frozenset({RemoteState.READY, RemoteState.DEGRADED})

Key = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]


class Capabilities(BaseModel):
    """Fields that an agent accepts beyond ``query_text`` and ``top_k``. Unknown fields are ignored."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    filters: Annotated[list[Key], Field(max_length=MAX_FILTERS, description="the filters that it takes")] = []
    accepts: Annotated[
        list[Key],
        Field(
            max_length=MAX_FILTERS,
            description="fields of a recall that it takes beside `query_text`, `top_k` and `filters`: "
            "`timeout_ms`, `expand`, `rerank`, `explain`, `now`",
        ),
    ] = []
    description: Annotated[str, StringConstraints(max_length=1_000)] = ""

    @classmethod
    def read(cls, stored: Mapping[str, JsonValue]) -> Self:
        """Return the capabilities in a stored JSON object."""
        return cls.model_validate(dict(stored))


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A registered agent.

    Attributes:
        url: the address of the agent's server, which answers at ``<url>/recall``.
        state: the state that the agent reported last.
        registered_at, seen_at, expires_at: seconds since 1970.
    """

    agent_id: str
    domain: Domain
    url: str
    capabilities: Mapping[str, JsonValue] = field(default_factory=lambda: NO_METADATA)
    state: RemoteState
    registered_at: float
    seen_at: float
    expires_at: float

    def state_at(self, now: float) -> RemoteState:
        """Return the agent's state, ``STOPPED`` if its lease has expired.

        A lease that lies in the future by more than its length counts as expired too: the clock was set back.
        """
        lease_s = self.expires_at - self.seen_at
        return self.state if self.seen_at - lease_s <= now < self.expires_at else RemoteState.STOPPED


@dataclass(frozen=True, slots=True)
class Registrant:
    """The caller who registers, renews or removes an agent.

    Attributes:
        secret: the agent's token; ``None`` if the caller sent none.
        operates: whether the caller is an operator, who needs no token.
    """

    secret: str | None = None
    operates: bool = False


OPERATOR = Registrant(operates=True)

FILE = "agents.sqlite"
PATIENCE_S = 5.0
# An agent whose lease ran out is shown, and its silence is a coverage gap, for a day.
REMEMBERED_S = 86_400.0
MOST_REGISTRATIONS = 256
_VERSION = 2
_TABLE = """
create table if not exists registrations (
  agent_id text not null,
  url text not null,
  domain_id text not null,
  capabilities text not null,
  state text not null,
  registered_at real not null,
  seen_at real not null,
  expires_at real not null,
  token text,
  primary key (agent_id, url)
) without rowid
"""
_PUT = """
insert into registrations (agent_id, url, domain_id, capabilities, state, registered_at, seen_at, expires_at)
values (:agent_id, :url, :domain_id, :capabilities, :state, :now, :now, :expires_at)
on conflict (agent_id, url) do update
set domain_id = excluded.domain_id, capabilities = excluded.capabilities, state = excluded.state,
    seen_at = excluded.seen_at, expires_at = excluded.expires_at
"""
_BEAT = """
update registrations
set seen_at = :now, expires_at = :expires_at, state = coalesce(:state, state)
where agent_id = :agent_id and (:url is null or url = :url)
"""
_REMOVE = "delete from registrations where agent_id = :agent_id and (:url is null or url = :url)"
_FORGET = "delete from registrations where expires_at < :before"
_ELSEWHERE = "select url from registrations where agent_id = :agent_id and url <> :url and expires_at > :now"
_MOVE = "delete from registrations where agent_id = :agent_id and url <> :url"
_KNOWN = "select 1 from registrations where agent_id = :agent_id and url = :url"
_HELD = "select token from registrations where agent_id = :agent_id and token is not null limit 1"
_HOLD = "update registrations set token = :token where agent_id = :agent_id"
_COUNT = "select count(*) from registrations where not (agent_id = :agent_id and url = :url)"
_ALL = "select * from registrations order by domain_id, agent_id, url"


class Registry:
    """The registered agents. Every method may be called from any thread, in any number of processes."""

    def __init__(self, folder: Path, lease_s: float, now: Callable[[], float] = time.time) -> None:
        """Store the place of the file. The first registration makes it.

        Args:
            lease_s: for how many seconds after its last heartbeat an agent is asked.
            now: returns the time in seconds since 1970. All processes must use the same clock.
        """
        self._file = folder / FILE
        self.lease_s = lease_s
        self._now = now

    def register(
        self,
        agent_id: str,
        domain: Domain,
        url: str,
        capabilities: Mapping[str, JsonValue],
        state: RemoteState = RemoteState.READY,
        by: Registrant = OPERATOR,
    ) -> tuple[bool, str | None]:
        """Register an agent at an address. Its name belongs to the owner of its token.

        Returns:
            Whether the agent is new at this address, and a new token for it. The token is ``None`` if the agent sent
            one or already has one.

        Raises:
            ConflictingAgentError: the agent is alive at another address, or the registry is full.
            NotPermittedError: the name belongs to an agent with another token.
            StoreError: the file cannot be written now.
        """
        now = self._now()
        values = {
            "agent_id": agent_id,
            "url": url,
            "domain_id": domain.value,
            "capabilities": json.dumps(dict(capabilities)),
            "state": state.value,
            "now": now,
            "expires_at": now + self.lease_s,
        }
        with self._transaction() as connection:
            connection.execute(_FORGET, {"before": now - REMEMBERED_S})
            held = self._check_token(connection, agent_id, by)
            self._check_room(connection, values)
            known = connection.execute(_KNOWN, values).fetchone()
            connection.execute(_MOVE, values)
            connection.execute(_PUT, values)
            made = None if held or by.secret else secrets.token_urlsafe(32)
            secret = made or by.secret
            token = sha256(secret.encode()).hexdigest() if secret else held
            connection.execute(_HOLD, {"agent_id": agent_id, "token": token})
        return known is None, made

    def beat(
        self, agent_id: str, url: str | None = None, state: RemoteState | None = None, by: Registrant = OPERATOR
    ) -> int:
        """Renew an agent's lease; return the number of renewed leases, which is 0 for an unknown agent.

        Args:
            url: the lease is renewed only at this address; ``None`` for any address.
            state: the new state; ``None`` leaves the state as it is.

        Raises:
            NotPermittedError: the name belongs to an agent with another token.
        """
        now = self._now()
        values = {"agent_id": agent_id, "url": url, "state": state.value if state else None}
        with self._transaction() as connection:
            self._check_token(connection, agent_id, by)
            return connection.execute(_BEAT, {**values, "now": now, "expires_at": now + self.lease_s}).rowcount

    def remove(self, agent_id: str, url: str | None = None, by: Registrant = OPERATOR) -> int:
        """Remove an agent, at any address if ``url`` is ``None``; return the number of removed agents (0 or 1).

        Raises:
            NotPermittedError: the name belongs to an agent with another token.
        """
        with self._transaction() as connection:
            self._check_token(connection, agent_id, by)
            return connection.execute(_REMOVE, {"agent_id": agent_id, "url": url}).rowcount

    def registrations(self) -> tuple[Registration, ...]:
        """Return the registered agents by domain and name. Agents whose lease expired a day ago are left out.

        Raises:
            StoreError: the file cannot be read.
        """
        if not self._file.exists():
            return ()
        oldest = self._now() - REMEMBERED_S
        with self._open() as connection:
            rows = connection.execute(_ALL).fetchall()
        try:
            return tuple(_registration(row) for row in rows if row["expires_at"] > oldest)
        except (ValueError, TypeError) as error:
            message = f"{self._file}: is damaged ({error}); move it away: agents register again by themselves"
            raise StoreError(message) from error

    def _check_token(self, connection: sqlite3.Connection, agent_id: str, by: Registrant) -> str | None:
        """Return the hash of an agent's token, ``None`` if the name is free. Raise if the caller has another token."""
        row = connection.execute(_HELD, {"agent_id": agent_id}).fetchone()
        given = sha256((by.secret or "").encode()).hexdigest()
        if row and not by.operates and not hmac.compare_digest(given, row["token"]):
            raise NotPermittedError(
                f"agent {agent_id!r} has a token of its own: send the one that its first registration answered with, "
                "or that it brought; the name is free when the agent is removed, or a day after its lease has run out"
            )
        return row["token"] if row else None

    def _check_room(self, connection: sqlite3.Connection, values: Mapping[str, object]) -> None:
        if connection.execute(_ELSEWHERE, values).fetchone():
            raise ConflictingAgentError(
                f"agent {values['agent_id']!r} is registered at another address; choose another agent_id, remove it "
                f"there first, or wait until its lease of {self.lease_s:g} s has run out"
            )
        if connection.execute(_COUNT, values).fetchone()[0] >= MOST_REGISTRATIONS:
            connection.execute("delete from registrations where expires_at < :now", values)
        if connection.execute(_COUNT, values).fetchone()[0] >= MOST_REGISTRATIONS:
            raise ConflictingAgentError(f"{MOST_REGISTRATIONS} agents are registered; no more are taken")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._open() as connection:
            connection.execute("begin immediate")
            try:
                yield connection
                connection.execute("commit")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("rollback")
                raise

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._file, timeout=PATIENCE_S, isolation_level=None)) as connection:
                connection.row_factory = sqlite3.Row
                self._make(connection)
                yield connection
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"{self._file}: the registry of agents cannot be used now: {error}") from error

    def _make(self, connection: sqlite3.Connection) -> None:
        version = connection.execute("pragma user_version").fetchone()[0]
        if version == 0:
            connection.execute(_TABLE)
            connection.execute(f"pragma user_version = {_VERSION}")
        elif version == 1:
            connection.execute("alter table registrations add column token text")
            connection.execute(f"pragma user_version = {_VERSION}")
        elif version != _VERSION:
            found = f"is of version {version}, this program writes version {_VERSION}"
            raise StoreError(f"{self._file} {found}; move it away: agents register again by themselves")


def _registration(row: sqlite3.Row) -> Registration:
    capabilities = json.loads(row["capabilities"])
    if not isinstance(capabilities, dict):
        raise TypeError("capabilities are not a mapping")
    return Registration(
        agent_id=row["agent_id"],
        domain=Domain(row["domain_id"]),
        url=row["url"],
        capabilities=freeze(capabilities),
        state=RemoteState(row["state"]),
        registered_at=row["registered_at"],
        seen_at=row["seen_at"],
        expires_at=row["expires_at"],
    )
