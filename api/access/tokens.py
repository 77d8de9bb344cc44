"""The file of tokens, and tokens that people make for their programs; all serving processes share their files.

Each is read again whenever it changes, so a removed token is refused at once.

A token has the groups that its maker had at that moment, less those that the identity provider has taken from the maker
since. This server learns of them when a session of the maker begins or is renewed. The file is a table that all serving
processes of a machine share, so a revoked token is refused from the next request on.
"""

from __future__ import annotations

import json
import logging
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from api.errors import ProblemError, unavailable
from nornweave.core.access import TokenEntry, hash_of, new_token, read_tokens
from nornweave.core.errors import ConfigError, StoreError
from nornweave.core.types import present

log = logging.getLogger(__name__)

RETRY_S = 5
FileState: TypeAlias = tuple[int, int, int]
"""When a file was changed, in nanoseconds, its size and its inode."""

T = TypeVar("T")

WAIT_S = 5
SETTLED_NS = 1_000_000_000


class TokenFile:
    """Finds the entries of tokens in the file of tokens. Every method may be called from any thread."""

    def __init__(self, file: Path) -> None:
        """Read the file. A broken file admits nobody until it is corrected.

        A server checks the file before it starts (``check_listening``); a process restarted later must not fail.
        """
        self._file = file
        self._lock = threading.Lock()
        self._version = state_of(file)
        self._entries = self._read()

    def find(self, token: str) -> TokenEntry | None:
        """Return the entry of a token; ``None`` if it is unknown or has expired.

        Raises:
            ProblemError: 503, the file cannot be read now.
        """
        return self.entry(hash_of(token))

    def entry(self, hashed: str) -> TokenEntry | None:
        """Return the entry of a token by its hash; ``None`` if it is unknown or has expired. Raises as ``find``."""
        # The time that it takes may tell how much of a hash is right; that says nothing about a token with this hash.
        entry = self._current().get(hashed)
        return entry if entry and entry.is_valid(present()) else None

    def _current(self) -> Mapping[str, TokenEntry]:
        """Return the entries of the file by hash.

        Raises:
            ProblemError: 503, the file is broken, so nobody knows which tokens were removed from it.
        """
        state = state_of(self._file)
        with self._lock:
            if state != self._version:
                self._version, self._entries = state, self._read()
            if self._entries is None:
                raise broken_access()
            return self._entries

    def _read(self) -> Mapping[str, TokenEntry] | None:
        try:
            return read_tokens(self._file)
        except ConfigError as error:
            log.error("no token of the file is accepted until it is mended: %s", error)
            return None


def state_of(file: Path) -> FileState | None:
    """Return values that change whenever a file changes; ``None`` if there is no file."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def broken_access() -> ProblemError:
    """Return a 503 which says that access rights cannot be looked up now."""
    detail = "who may ask cannot be looked up now; the log of the server says why"
    return unavailable("access-unavailable", detail, RETRY_S)


class SharedRows(Generic[T]):
    """One table of a file, and the value made of its rows. Every method may be called from any thread."""

    def __init__(self, file: Path, schema: str, query: str, make: Callable[[Sequence[Any]], T], failure: str) -> None:
        """Store the parameters. The file is neither read nor written.

        Args:
            schema: the statement that makes the table if there is none.
            query: the statement that reads the rows.
            make: makes the value of the rows.
            failure: the message when the rows cannot be changed.
        """
        self._file, self._schema, self._query, self._make, self._failure = file, schema, query, make, failure
        self._lock = threading.Lock()
        self._state: FileState | None = None
        self._made = make(())

    @property
    def last(self) -> T:
        """Return the value that was read last."""
        return self._made

    def current(self) -> T:
        """Return the current value. Without a file, it is the value made of no rows.

        Raises:
            sqlite3.Error: the file cannot be read.
        """
        state = state_of(self._file)
        with self._lock:
            if state is None:
                self._state, self._made = None, self._make(())
            elif state != self._state:
                with closing(sqlite3.connect(f"{self._file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
                    self._made = self._make(connection.execute(self._query).fetchall())
                # Clocks of files tick every few milliseconds: another change may have the same time.
                is_settled = time.time_ns() - state[0] > SETTLED_NS
                self._state = state if is_settled else None
            return self._made

    def change(self, *statements: tuple[str, Sequence[Any]]) -> int:
        """Execute statements in one transaction. Return how many rows the last statement changed.

        Raises:
            StoreError: the file cannot be written.
        """
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._file, timeout=WAIT_S, isolation_level=None)) as connection:
                connection.execute(self._schema)
                connection.execute("begin immediate")
                changed = [connection.execute(statement, values).rowcount for statement, values in statements]
                connection.execute("commit")
                return changed[-1]
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"{self._failure}: {error}") from error


FILE = "tokens.sqlite"
MAX_EACH = 50
"""Tokens of one person that have not expired."""
Scope: TypeAlias = Literal["ask", "operate"]


@dataclass(frozen=True, slots=True)
class OwnToken:
    """A token without its secret. Times are UTC, as text that sorts in order of time.

    Attributes:
        maker: the name of the viewer who made it.
        groups: the maker's groups when the token was made.
        used_on: the last day on which it was used; ``None`` for never.
    """

    id: str
    hashed: str
    name: str
    maker: str
    groups: tuple[str, ...]
    scope: Scope
    made_at: str
    expires_at: str
    used_on: str | None


class OwnTokens:
    """Makes, finds and revokes tokens of people. Every method may be called from any thread."""

    def __init__(self, data_dir: Path) -> None:
        self._rows = SharedRows(
            data_dir / FILE,
            "create table if not exists tokens (id text primary key, hashed text unique, name text, maker text,"
            " groups text, scope text, made_at text, expires_at text, used_on text)",
            "select * from tokens order by made_at, id",
            lambda rows: {row[1]: OwnToken(*(*row[:4], tuple(json.loads(row[4])), *row[5:])) for row in rows},
            "the tokens that people made cannot be written",
        )

    def find(self, token: str) -> OwnToken | None:
        """Return the record of a token; ``None`` if it is unknown or has expired.

        Raises:
            ProblemError: 503, the file cannot be read.
        """
        found = self._current().get(hash_of(token))
        return found if found and _written(present()) < found.expires_at else None

    def listed(self, maker: str | None = None) -> Sequence[OwnToken]:
        """Return the tokens of a maker, or for ``None`` all tokens, oldest first. Expired tokens are left out.

        Raises:
            ProblemError: 503, the file cannot be read.
        """
        now = _written(present())
        return [each for each in self._current().values() if maker in {None, each.maker} and now < each.expires_at]

    def make(
        self, maker: str, name: str, groups: Iterable[str], scope: Scope, days: int
    ) -> tuple[str, OwnToken] | None:
        """Make a token and return it with its record; ``None`` if its maker has ``MAX_EACH`` already.

        Raises:
            StoreError: the file cannot be written.
        """
        secret, now, groups = new_token(), present(), tuple(sorted(groups))
        moments = _written(now), _written(now + timedelta(days=days))
        made = OwnToken(secrets.token_hex(8), hash_of(secret), name, maker, groups, scope, *moments, None)
        statement = (
            "insert into tokens select ?, ?, ?, ?, ?, ?, ?, ?, null"
            " where (select count(*) from tokens where maker = ?) < ?"
        )
        row = [made.id, made.hashed, name, maker, json.dumps(groups), scope, *moments]
        changed = self._rows.change(
            ("delete from tokens where expires_at <= ?", [_written(now)]), (statement, [*row, maker, MAX_EACH])
        )
        return (secret, made) if changed else None

    def revoke(self, token_id: str, maker: str | None = None) -> bool:
        """Remove a token; if ``maker`` is given, only if it made the token. Return whether the token was removed.

        Raises:
            StoreError: the file cannot be written.
        """
        return bool(
            self._rows.change(("delete from tokens where id = ? and coalesce(?, maker) = maker", [token_id, maker]))
        )

    def narrow(self, maker: str, groups: Collection[str]) -> None:
        """Take from a maker's tokens the groups that the maker is no longer in. These groups do not come back.

        Raises:
            StoreError: the file cannot be written.
        """
        try:
            own = [each for each in self._rows.current().values() if each.maker == maker]
        except (sqlite3.Error, ValueError):
            return  # while the file cannot be read, no token is accepted
        kept = {each.id: [group for group in each.groups if group in groups] for each in own}
        changes = [("update tokens set groups = ? where id = ?", [json.dumps(kept[each.id]), each.id])
                   for each in own if len(kept[each.id]) < len(each.groups)]  # fmt: skip
        if changes:
            self._rows.change(*changes)

    def note_use(self, token: OwnToken) -> None:
        """Store today as the day of last use. If the file cannot be written, the token still works."""
        today = present().date().isoformat()
        if token.used_on == today:
            return
        try:
            self._rows.change(("update tokens set used_on = ? where id = ?", [today, token.id]))
        except StoreError as error:
            log.warning("the last use of a token is not noted: %s", error)

    def _current(self) -> dict[str, OwnToken]:
        try:
            return self._rows.current()
        except (sqlite3.Error, ValueError) as error:
            log.error("no token that people made is accepted until their file can be read: %s", error)
            raise broken_access() from error


def _written(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds")
