"""Tokens that people make for their programs: shown once, kept as hashes, each for asking or for operating.

A token has the groups that its maker had at that moment, less those that the identity provider has taken from the maker
since. This server learns of them when a session of the maker begins or is renewed. The file is a table that all serving
processes of a machine share, so a revoked token is refused from the next request on.
"""

from __future__ import annotations

import json
import logging
import secrets
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, TypeAlias

from api.access.shared_files import SharedRows, broken_access
from nornweave.core.access import hash_of, new_token
from nornweave.core.errors import StoreError
from nornweave.core.types import present

log = logging.getLogger(__name__)

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
