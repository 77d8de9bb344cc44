"""Members of channels, repositories, spaces and projects, from the sources and from the operator's file.

A *principal* is a name such as ``slack:channel:C1``; a document states which ones may read it. A *grant* says whom a
principal consists of: accounts (``slack:user:U1``, ``account:email:ann@example.org``), other principals, groups
(``group:staff``), or ``*`` for everybody who may ask. Somebody is in a principal if a chain of grants leads there from
what sign-in proved of them.

Every grant has the moment at which its source said so. After the bound it counts no more: who cannot be asked about is
in nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from math import inf
from pathlib import Path
from typing import TypeAlias

import yaml
from pydantic import TypeAdapter

from nornweave.core.access import HELD, account, group_name, is_principal, storable_groups
from nornweave.core.errors import ConfigError, StoreError
from nornweave.core.files.writing import write_whole
from nornweave.core.files.yaml_files import line_of

log = logging.getLogger(__name__)

EVERYBODY_WHO_ASKS = "*"
GROUP = "group:"
"""Begins a member that is a group of a token or of the identity provider."""
MAX_BYTES = 256 << 20
_FILE, _USER = "the file", ":user:"
ATLASSIAN_USER = "atlassian:user:"
"""Begins accounts that are the same on all sites."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """The members of a principal.

    Attributes:
        verified_at: when the source named these members, in seconds since 1970; ``None`` means just now.
        unread: why the members could not be read this time; ``None`` if they were read. Until ``max_age_s``, the
            members that were read before count.
        also_unread: further principals whose members could not be read. Principals that no longer exist are left out.
    """

    principal: str
    members: frozenset[str] = frozenset()
    verified_at: float | None = None
    unread: str | None = None
    also_unread: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """The stored members of a principal, with the time at which the source named them."""

    members: tuple[str, ...]
    verified_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipTable:
    """The principals of one source and their members.

    Attributes:
        origin: the service that defines the names. Equal names of one service are the same principal.
        tried_at: when the source was last asked, in seconds since 1970.
        grants: principal → its members.
        problems: what the last reading could not read, with reasons.
    """

    origin: str
    tried_at: float
    grants: Mapping[str, Granted] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    def read_again(self, grants: Iterable[Grant], now: float) -> MembershipTable:
        """Return the table after a complete reading of its source. Principals that ``grants`` lacks are removed."""
        kept: dict[str, Granted] = {}
        problems = []
        for grant in grants:
            if grant.unread is None:
                at = now if grant.verified_at is None else min(now, grant.verified_at)
                kept[grant.principal] = Granted(members=tuple(sorted(grant.members)), verified_at=at)
                continue
            problems.append(f"{grant.principal}: {grant.unread}")
            names = self.grants.keys() & {grant.principal, *grant.also_unread}
            kept |= {name: self.grants[name] for name in names}
        return MembershipTable(origin=self.origin, tried_at=now, grants=kept, problems=tuple(problems))

    def not_read(self, problem: str, now: float) -> MembershipTable:
        """Return the table after a failed reading of its source. Earlier grants stay until they are too old."""
        return MembershipTable(origin=self.origin, tried_at=now, grants=self.grants, problems=(problem,))


_TABLE = TypeAdapter(MembershipTable)


def named(service: str, kind: str, name: str, server: str = "") -> str:
    """Return the name of a GitHub or GitLab principal. For a private server, the name includes ``server``."""
    return f"{service}:{kind}:{name.casefold()}{f'@{server}' if server else ''}"


def membership_file(data_dir: Path, source_id: str) -> Path:
    """Return the path of a source's table."""
    return data_dir / "membership" / f"{source_id}.json"


def read_table(file: Path) -> MembershipTable | None:
    """Return the table in a file; ``None`` if there is no file.

    Raises:
        StoreError: the file cannot be read.
    """
    try:
        return _TABLE.validate_json(file.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise StoreError(f"{file}: cannot be read ({error}); the next refresh writes it anew") from error


def write_table(file: Path, table: MembershipTable) -> None:
    """Replace a source's table atomically.

    Raises:
        StoreError: it cannot be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, _TABLE.dump_json(table).decode())
    except OSError as error:
        raise StoreError(f"{file}: cannot be written: {error}") from error


def read_members(file: Path) -> tuple[Mapping[str, frozenset[str]], float]:
    """Read the operator's file: the accounts and principals of each person, account or group.

    ::

        verified_at: 2027-01-31          # optional: the day of the last check
        members:
          ann@example.org: [github:user:ann]
          group:engineering: [confluence:space:ENG]

    Returns:
        Member → the names that it belongs to, and the time of ``verified_at`` in seconds since 1970. Without
        ``verified_at`` the time is infinity, so that the file never becomes too old.

    Raises:
        ConfigError: the file is missing, unreadable or broken.
    """
    try:
        loaded = yaml.safe_load(file.read_bytes()[:MAX_BYTES].decode("utf-8"))
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{file}:{mark.line + 1}" if mark else f"{file}"
        raise ConfigError(f"{where}: is not YAML in UTF-8: {error}") from error
    members = loaded.get("members", {}) if isinstance(loaded, dict) else None
    if not isinstance(members, dict) or not {"members", "verified_at"}.issuperset(loaded):
        raise ConfigError(f"{file}: expected the keys 'members' (a mapping) and 'verified_at' (a date)")
    read: defaultdict[str, frozenset[str]] = defaultdict(frozenset)
    for key, value in members.items():
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, list) or not all(isinstance(name, str) and is_principal(name) for name in names):
            where = f"{file}{line_of(file, ['members', str(key)])}: {key!r}"
            raise ConfigError(f"{where}: expected a list of names such as github:user:ann or slack:channel:C1")
        read[_member(file, key)] |= frozenset(map(_as_compared, names))
    return read, _moment(file, loaded.get("verified_at"))


def _member(file: Path, key: object) -> str:
    text = key if isinstance(key, str) else ""
    if is_principal(text):
        return _as_compared(text)
    if text.startswith(GROUP) and (name := group_name(text.removeprefix(GROUP))):
        return f"{GROUP}{name}"
    if "@" in text.strip("@ "):
        return account("email", text)
    where = f"{file}{line_of(file, ['members', str(key)])}: {key!r}"
    raise ConfigError(f"{where}: expected an e-mail address, group:NAME, or an account such as slack:user:U1")


def _as_compared(principal: str) -> str:
    """Return a principal's name in the form in which names are compared: lower case for GitHub and GitLab."""
    return principal.casefold() if principal.startswith(("github:", "gitlab:")) else principal


def _moment(file: Path, value: object) -> float:
    if value is None:
        return inf
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC).timestamp()
    where = f"{file}{line_of(file, ['verified_at'])}"
    raise ConfigError(f"{where}: verified_at: {value!r} is not a date such as 2027-01-31")


_Grants: TypeAlias = Mapping[str, Sequence[tuple[str, float, str]]]
"""By member: principals, each with the moment at which that was verified, and who says so."""
_CLOCKS_DIFFER_S = 300
# Resolving somebody in 1,500 channels takes 8 ms. A changed table counts at once; the age limit up to 1 s late.
_REMEMBERED_S, _MOST_REMEMBERED = 1.0, 1_024


@dataclass(frozen=True, slots=True)
class Reached:
    """Why somebody belongs to a principal: through which member of it, and which source names this member."""

    member: str
    said_by: str


@dataclass(frozen=True, slots=True)
class KnownPrincipal:
    """A principal as a source describes it. ``counts`` tells whether the description is recent enough to use."""

    members: tuple[str, ...]
    verified_at: float
    source_id: str
    counts: bool


class Memberships:
    """Resolves the principals that somebody belongs to. Every method is thread-safe.

    For each question, files that have changed are read again.
    """

    def __init__(
        self,
        data_dir: Path,
        sources: Iterable[str],
        *,
        file: Path | None = None,
        max_age_s: float = 86_400.0,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Store the parameters.

        Args:
            sources: the ids of sources that decide who may read. Tables of other sources are ignored.
            file: the operator's file of members.
            max_age_s: grants that are older do not count.
            now: the clock, in seconds since 1970.
        """
        self._tables = {source: membership_file(data_dir, source) for source in sorted(sources)}
        self._file, self._max_age_s, self._now = file, max_age_s, now
        self._lock = threading.Lock()
        self._state: object = None
        self._grants: _Grants = {}
        self._remembered: dict[object, tuple[_Grants, float, frozenset[str]]] = {}

    def expanded(self, names: Collection[str], accounts: Collection[str] = ()) -> frozenset[str]:
        """Return somebody's groups and all principals that they belong to now.

        Args:
            names: groups, and accounts that sign-in proved. Other principals are ignored.
            accounts: accounts that were proved in another way.
        """
        asked, grants, now = (storable_groups(names), frozenset(accounts)), self._current(), self._now()
        known = self._remembered.get(asked)
        if known is None or known[0] is not grants or not 0 <= now - known[1] < _REMEMBERED_S:
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()
            known = self._remembered[asked] = (grants, now, asked[0].union(accounts, self.reached(*asked)))
        return known[2]

    def reached(self, names: Collection[str], accounts: Collection[str] = ()) -> Mapping[str, Reached]:
        """Return principal → how somebody belongs to it now.

        If this takes several steps (a person, their group, its channel), the last step of the shortest way is returned.
        """
        grants, now = self._current(), self._now()
        found: dict[str, Reached] = {}
        first = (name if is_principal(name) else f"{GROUP}{name}" for name in storable_groups(names))
        queue = [*sorted((*first, *accounts)), EVERYBODY_WHO_ASKS]
        for member in queue:
            for principal, verified_at, said_by in grants.get(member, ()):
                if principal not in found and self.counts(verified_at, now):
                    found[principal] = Reached(member, said_by)
                    queue.append(principal)
        return found

    def known(self) -> Mapping[str, KnownPrincipal]:
        """Return name → principal. A principal whose name two services use is left out."""
        now = self._now()
        return {
            name: KnownPrincipal(granted.members, granted.verified_at, source, self.counts(granted.verified_at, now))
            for name, (source, granted) in self._stated().items()
        }

    def addresses(self) -> Sequence[str]:
        """Return the e-mail addresses that sources and the file of members name, sorted."""
        prefix = account("email", "")
        return sorted(member.removeprefix(prefix) for member in self._current() if member.startswith(prefix))

    def unknown(self, configured: Iterable[str]) -> Sequence[str]:
        """Return the principals in the configuration and in the file of members that no source has, sorted.

        An account is unknown only if some source names accounts of its kind, because a public repository names nobody.
        Before each source was asked, the result is empty.

        Args:
            configured: names of groups and principals. A principal that the file of members defines is known.
        """
        if not all(map(Path.exists, self._tables.values())):
            return ()
        grants = [(member, *grant) for member, grants in self._current().items() for grant in grants]
        there = {*self._stated(), *(member for member, _, _, said_by in grants if said_by != _FILE)}
        filed = [(member, principal) for member, principal, _, said_by in grants if said_by == _FILE]
        used = {*configured, *(member for member, _ in filed)}
        missing = {name for name in used ^ {name for _, name in filed} if is_principal(name)} - there
        services = {name.partition(_USER)[0] for name in there if _USER in name}
        return sorted(
            name
            for name in missing
            if not name.startswith(HELD) and (_USER not in name or name.partition(_USER)[0] in services)
        )

    def counts(self, verified_at: float, now: float) -> bool:
        """Tell whether a grant of this time is recent enough. A time in the future does not count (wrong clock)."""
        return verified_at == inf or -_CLOCKS_DIFFER_S <= now - verified_at < self._max_age_s

    def _current(self) -> _Grants:
        state = [_state_of(each) for each in (self._file, *self._tables.values()) if each]
        with self._lock:
            if state != self._state:
                self._state, self._grants = state, self._read()
            return self._grants

    def _stated(self) -> Mapping[str, tuple[str, Granted]]:
        return _newest({source: table for source, file in self._tables.items() if (table := _table_or_none(file))})

    def _read(self) -> _Grants:
        """Return member → grants, read from all files. A file that cannot be read grants nothing."""
        grants: defaultdict[str, list[tuple[str, float, str]]] = defaultdict(list)
        for principal, (source, granted) in self._stated().items():
            for member in granted.members:
                grants[member].append((principal, granted.verified_at, source))
        if self._file:
            try:
                members, verified_at = read_members(self._file)
            except ConfigError as error:
                log.error("nobody is in anything by the file of members until it is mended: %s", error)
            else:
                for member, principals in members.items():
                    grants[member] += [(each, verified_at, _FILE) for each in sorted(principals)]
        return grants


def expanded(memberships: Memberships | None, names: Collection[str], accounts: Collection[str] = ()) -> frozenset[str]:
    """Return ``memberships.expanded(…)``. If ``memberships`` is ``None``, return the groups without any principal."""
    return memberships.expanded(names, accounts) if memberships else storable_groups(names)


def _newest(tables: Mapping[str, MembershipTable]) -> Mapping[str, tuple[str, Granted]]:
    """Return principal → its newest grant and the source of it. A name that two services use is left out.

    For example, a Confluence space and another service's space may have the same key.
    """
    chosen: dict[str, tuple[str, Granted]] = {}
    origins: defaultdict[str, set[str]] = defaultdict(set)
    for source, table in tables.items():
        for principal, granted in table.grants.items():
            origins[principal].add(table.origin)
            if principal not in chosen or chosen[principal][1].verified_at < granted.verified_at:
                chosen[principal] = (source, granted)
    ambiguous = (name for name, known in origins.items() if len(known) > 1 and not name.startswith(ATLASSIAN_USER))
    for principal in sorted(ambiguous):
        log.error("%s is said of by %s: nobody is in it", principal, " and ".join(sorted(origins[principal])))
        del chosen[principal]
    return chosen


def _table_or_none(file: Path) -> MembershipTable | None:
    try:
        return read_table(file)
    except StoreError as error:
        log.error("%s; it lets nobody see anything until then", error)
        return None


def _state_of(file: Path) -> tuple[int, int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
