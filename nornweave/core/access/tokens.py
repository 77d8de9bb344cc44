"""Tokens of people and programs: a random secret that is shown once, and a line with its hash and groups.

SHA-256 once, without salt: the secret has 256 bits from the operating system, so nobody finds it by trying, whatever a
try costs. A slow hash protects what people think up; here it would only make every request slow.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import yaml

from nornweave.core.access.rules import group_name
from nornweave.core.errors import ConfigError

PREFIX = "nw_"
MAX_BYTES = 8 << 20
_HASH = re.compile(r"(?:sha256:)?([0-9a-f]{64})")
_KEYS = frozenset({"groups", "name", "expires"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenEntry:
    """What the file says of one token.

    Attributes:
        name: whose it is, for the reader of the file.
        expires: the moment from which on it is worth nothing; ``None`` for never.
    """

    hashed: str
    groups: frozenset[str]
    name: str = ""
    expires: datetime | None = None

    def is_valid(self, now: datetime) -> bool:
        """Tell whether it has not expired."""
        return self.expires is None or now < self.expires


def new_token() -> str:
    """Return a new secret of 256 bits."""
    return PREFIX + secrets.token_urlsafe(32)


def hash_of(token: str) -> str:
    """Return what the file keeps of a token."""
    return f"sha256:{hashlib.sha256(token.encode('utf-8', 'surrogatepass')).hexdigest()}"


def line_of(token: str, groups: Sequence[str], name: str = "", expires: date | None = None) -> str:
    """Return the line of the file for a token."""
    fields: dict[str, object] = {"groups": list(groups)}
    if name:
        fields["name"] = name
    if expires:
        fields["expires"] = expires.isoformat()
    return f'"{hash_of(token)}": {json.dumps(fields, ensure_ascii=False)}'


def read_tokens(file: Path) -> Mapping[str, TokenEntry]:
    """Read a file of tokens; return its entries by hash.

    A YAML or JSON mapping of hash → groups, or of hash → ``{groups: […], name: …, expires: 2027-01-31}``. A hash is the
    SHA-256 of the token in hexadecimal digits, with or without ``sha256:`` before it.

    Raises:
        ConfigError: it is missing, unreadable or broken; nothing of a secret is repeated.
    """
    try:
        with file.open("rb") as opened:
            raw = opened.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise _broken(file, f"it is larger than {MAX_BYTES} bytes")
        loaded = yaml.safe_load(raw.decode("utf-8"))
    except OSError as error:
        raise _broken(file, f"it cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        where = "" if line is None else f" (line {line + 1})"
        raise _broken(file, f"it is not YAML in UTF-8{where}") from error
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise _broken(file, f"it holds a {type(loaded).__name__}")
    return {entry.hashed: entry for entry in (_entry(file, at, *pair) for at, pair in enumerate(loaded.items(), 1))}


def _entry(file: Path, place: int, key: object, fields: object) -> TokenEntry:
    match = _HASH.fullmatch(str(key).lower())
    if match is None:
        raise _broken(file, f"key {place} is no hash (it is not shown: it may be a token)")
    stated = fields if isinstance(fields, dict) else {"groups": fields}
    if unknown := sorted(str(key) for key in stated if key not in _KEYS):
        raise _broken(file, f"entry {place} has the unknown key {unknown[0]!r}")
    groups = stated.get("groups", [])
    if not isinstance(groups, list) or not all(isinstance(group, str) and group_name(group) for group in groups):
        raise _broken(file, f"the groups of entry {place} are no list of names")
    return TokenEntry(
        hashed=f"sha256:{match[1]}",
        groups=frozenset(map(group_name, groups)),
        name=str(stated.get("name", "")),
        expires=_moment(file, place, stated.get("expires")),
    )


def _moment(file: Path, place: int, value: object) -> datetime | None:
    """Read the last day, or the moment, of a token."""
    if value is None:
        return None
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    try:
        day = value if isinstance(value, date) else date.fromisoformat(str(value))
        return datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)
    except (ValueError, OverflowError) as error:
        raise _broken(file, f"'expires' of entry {place} is no date such as 2027-01-31") from error


def _broken(file: Path, found: str) -> ConfigError:
    expected = 'expected lines such as "sha256:<64 digits>": {groups: [staff]}; `nornweave token` makes them'
    return ConfigError(f"{file}: {found}; {expected}")
