"""Viewers, and the access rules of documents.

Which groups may see a document: every statement about it has to be met.

A statement is a list of groups, of which a viewer needs one. Statements come from the source, from the document itself
(front matter) and from what is known of it besides (side file, inbox). Whoever meets all of them sees the document: the
people that one statement allows and the other does not are left out, so that no statement can loosen another.

Tokens of people and programs: a random secret that is shown once, and a line with its hash and groups.

SHA-256 once, without salt: the secret has 256 bits from the operating system, so nobody finds it by trying, whatever a
try costs. A slow hash protects what people think up; here it would only make every request slow.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TypeAlias

import yaml

from nornweave.core.errors import ConfigError, NotPermittedError
from nornweave.core.types import JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """A person or program that asks.

    Attributes:
        sees_everything: may see every document, whatever groups it names.
        operates: may also see and do what concerns the whole service: status, quality, metrics, syncs, the inbox.
        registers: may register agents of other machines, and nothing else.
        makes_tokens: may make tokens for their own programs. A viewer with such a token may not make tokens.
        name: identifies the viewer, for feedback; empty if viewers are not told apart.
    """

    groups: frozenset[str] = frozenset()
    sees_everything: bool = False
    operates: bool = False
    registers: bool = False
    makes_tokens: bool = False
    name: str = ""

    @classmethod
    def in_groups(cls, groups: frozenset[str], operators: Collection[str], name: str = "") -> Viewer:
        """Return a viewer in these groups. A member of one of ``operators`` sees everything and operates."""
        operates = not groups.isdisjoint(operators)
        return cls(groups=groups, sees_everything=operates, operates=operates, name=name)

    def check_operates(self) -> None:
        """Raise unless the viewer may act on the whole service.

        Raises:
            NotPermittedError: the viewer may not. The message is the same for every operation.
        """
        if not self.operates:
            raise NotPermittedError(
                "this is for those who operate the service: the service token, or a group of operators"
            )


REGISTRAR = Viewer(registers=True, name="registration token")
"""An agent that registers itself."""

OPERATOR = Viewer(sees_everything=True, operates=True)
"""Who runs the service: the command line, evaluations, and whoever has the service token where access is configured."""

UNCONFIGURED = "account:anyone:where no access is configured"
"""The account of ``ANYONE``, which no token and no identity provider can name. A line of prose that begins like a
statement is for it alone."""
ANYONE = Viewer(operates=True, groups=frozenset({UNCONFIGURED}))
"""Whoever may ask where no access is configured: nobody is in a group, so what names groups is not shown."""


KEY = "access"
"""The key of metadata that holds a statement."""
ACCESS_NOTICE, VALUE_NOTICE = "access_notice", "value_notice"
"""The keys of metadata that say what of a document's statements is not understood, and which other values are none."""
MAX_GROUPS = 1_000
_EVERY = "every_of"
"""The key of a document's several statements; what a person writes as a mapping never gets this far."""

Statement: TypeAlias = frozenset[str]
"""Groups of which a viewer needs one; an empty one is met by nobody."""
Rule: TypeAlias = tuple[Statement, ...]
"""Statements that must all be met; an empty one is met by everybody."""

EVERYBODY: Rule = ()
NOBODY: Statement = frozenset()


RIGHTS = "rights:source"
"""Among the groups of a source: its documents are for those whom the source itself lets read them, and for nobody until
it has said who they are."""
HELD = "account:"
"""Begins what sign-in has proved of somebody: ``account:email:``, ``account:subject:``."""
_PRINCIPAL = re.compile(r"(?:account|slack|github|gitlab|confluence|jira|atlassian):[a-z]+:\S.*", re.DOTALL)


def is_principal(name: str) -> bool:
    """Tell whether a name is a principal: an account, or the readers of a place in a source (``slack:channel:C1``).

    Only memberships (``core/membership.py``) put somebody in a principal, not tokens or identity providers.
    """
    return _PRINCIPAL.fullmatch(name) is not None


def account(kind: str, name: str) -> str:
    """Return the name of an account. The case of e-mail addresses does not matter."""
    return f"{HELD}{kind}:{group_name(name).casefold() if kind == 'email' else name}"


def storable_groups(names: Iterable[str]) -> frozenset[str]:
    """Return the groups of a viewer that may be stored: plain groups, and accounts that sign-in proved.

    Principals from memberships are left out, because they are looked up for each request.
    """
    return frozenset(name for name in names if name.startswith(HELD) or not is_principal(name))


def is_of_rights(statement: Statement) -> bool:
    """Tell whether a statement comes from the source's own permissions. Then it names only principals."""
    return bool(statement) and UNCONFIGURED not in statement and all(map(is_principal, statement))


def read_statement(value: JsonValue) -> Statement | None:
    """Read a statement out of metadata: one group as text, or a list of groups.

    Returns:
        The statement; ``None`` if there is none. For an invalid value (a number, an empty list, a blank name) it is
        ``NOBODY``, because somebody meant to restrict the document but it is unclear how.
    """
    if value is None:
        return None
    if isinstance(value, str):
        value = (value,)
    if not isinstance(value, Sequence) or not 1 <= len(value) <= MAX_GROUPS:
        return NOBODY
    names = [group_name(each) if isinstance(each, str) else "" for each in value]
    return frozenset(names) if all(names) else NOBODY


def every_of(values: Iterable[JsonValue]) -> JsonValue:
    """Join statements into one metadata value for ``read_rule``; ``None`` if there are none."""
    distinct = tuple(dict.fromkeys(values))
    return (distinct[0] if len(distinct) == 1 else {_EVERY: distinct}) if distinct else None


def group_name(text: str) -> str:
    """Return a group's name in the form in which names are compared: NFC, stripped, case unchanged."""
    return unicodedata.normalize("NFC", text).strip()


def read_rule(*values: JsonValue) -> Rule:
    """Return the rule that requires every statement in these metadata values. Equal statements count once."""
    single = [each for value in values for each in single_statements(value)]
    return all_of([statement for value in single if (statement := read_statement(value)) is not None])


def all_of(*rules: Iterable[Statement]) -> Rule:
    """Join rules into one that requires every statement. Equal statements count once."""
    return tuple(dict.fromkeys(statement for rule in rules for statement in rule))


def rule_of(source_id: str, own: Rule, *sources: Mapping[str, Statement]) -> Rule:
    """Return the rule of a document: its own statements and the statements about its source.

    If the source should decide (``RIGHTS``) but has not stated who may read the document, nobody may read it.

    Args:
        own: the document's own rule.
        sources: mappings from source id to the statement about the source.
    """
    stated = [known[source_id] for known in sources if source_id in known]
    groups = [names for statement in stated if (names := statement - {RIGHTS}) or RIGHTS not in statement]
    unsaid = any(RIGHTS in statement for statement in stated) and not any(map(is_of_rights, own))
    return all_of(own, groups, [NOBODY] if unsaid else [])


def single_statements(value: JsonValue) -> Sequence[JsonValue]:
    """Return the statements in a metadata value that ``every_of`` made. Any other value is a single statement."""
    several = value.get(_EVERY) if isinstance(value, Mapping) else None
    return several if isinstance(several, list | tuple) and len(several) > 1 else (value,)


def is_met(rule: Iterable[Statement], groups: frozenset[str]) -> bool:
    """Tell whether a member of these groups meets a rule."""
    return all(not statement.isdisjoint(groups) for statement in rule)


def encode_rule(rule: Rule) -> str | None:
    """Return a rule as JSON; ``None`` if everybody meets it. Equal rules give equal text."""
    return json.dumps(sorted(sorted(statement) for statement in rule), ensure_ascii=False) if rule else None


def decode_rule(stored: str | None) -> Rule:
    """Read a rule that ``encode_rule`` wrote; ``None`` is the rule that everybody meets.

    Raises:
        ValueError: the text is invalid.
    """
    if stored is None:
        return EVERYBODY
    loaded = json.loads(stored)
    if not isinstance(loaded, list) or not all(isinstance(groups, list) for groups in loaded):
        raise ValueError(f"no rule of access: {stored[:80]!r}")
    return tuple(frozenset(map(str, groups)) for groups in loaded)


def encode_source_rules(groups: Mapping[str, Sequence[str]]) -> str:
    """Return the statements of sources as JSON, by source id. Equal statements give equal text."""
    names = {source: sorted(map(group_name, named)) for source, named in groups.items() if named}
    return json.dumps(names, ensure_ascii=False, sort_keys=True)


def decode_source_rules(stored: str) -> dict[str, Statement]:
    """Return source id → its statement, from a text that ``encode_source_rules`` wrote.

    Raises:
        ValueError: the text is invalid.
    """
    loaded = json.loads(stored)
    if not isinstance(loaded, dict) or not all(isinstance(groups, list) for groups in loaded.values()):
        raise ValueError(f"no rules of sources: {stored[:80]!r}")
    return {source: frozenset(map(str, groups)) for source, groups in loaded.items()}


PREFIX, HASH_PREFIX = "nw_", "sha256:"
MAX_BYTES = 8 << 20
_HASH = re.compile(r"(?:sha256:)?([0-9a-f]{64})")
_KEYS = frozenset({"groups", "name", "expires", "email"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenEntry:
    """One entry of the token file.

    Attributes:
        groups: the groups of the token's owner. If the entry has an ``email``, they contain its account.
        name: the owner's name, for people who read the file.
        expires: the moment when the token becomes invalid; ``None`` for never.
    """

    hashed: str
    groups: frozenset[str]
    name: str = ""
    expires: datetime | None = None

    def is_valid(self, now: datetime) -> bool:
        """Tell whether the token has not expired."""
        return self.expires is None or now < self.expires


def new_token() -> str:
    """Return a new secret of 256 bits."""
    return PREFIX + secrets.token_urlsafe(32)


def hash_of(token: str) -> str:
    """Return the hash of a token, as the file stores it."""
    return f"{HASH_PREFIX}{hashlib.sha256(token.encode('utf-8', 'surrogatepass')).hexdigest()}"


def line_of(token: str, groups: Sequence[str], name: str = "", expires: date | None = None) -> str:
    """Return the line of the token file for a token, which never expires if ``expires`` is ``None``."""
    fields: dict[str, object] = {"groups": list(groups)}
    if name:
        fields["name"] = name
    if expires:
        fields["expires"] = expires.isoformat()
    return f'"{hash_of(token)}": {json.dumps(fields, ensure_ascii=False)}'


def read_tokens(file: Path) -> Mapping[str, TokenEntry]:
    """Read a file of tokens; return its entries by hash.

    The file is a YAML or JSON mapping of hash → groups, or of hash → ``{groups: […], name: …, email: …, expires:
    2027-01-31}``. A hash is the SHA-256 of the token in hexadecimal digits, with or without ``sha256:`` before it.

    Raises:
        ConfigError: the file is missing, unreadable or broken. The message repeats no part of a secret.
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
        raise _broken(file, f"key {place} is not a hash (it is not shown: it may be a token)")
    stated = fields if isinstance(fields, dict) else {"groups": fields}
    if unknown := sorted(str(key) for key in stated if key not in _KEYS):
        raise _broken(file, f"entry {place} has the unknown key {unknown[0]!r}")
    groups = stated.get("groups", [])
    if not isinstance(groups, list) or not all(isinstance(group, str) and group_name(group) for group in groups):
        raise _broken(file, f"the groups of entry {place} are no list of names")
    if reserved := sorted(filter(is_principal, groups)):
        raise _broken(file, f"entry {place} is in {reserved[0]!r}, which only a membership says (access.membership)")
    email = stated.get("email")
    if email is not None and not (isinstance(email, str) and "@" in email.strip("@ ")):
        raise _broken(file, f"'email' of entry {place} is not an e-mail address")
    accounts = [account("email", email)] if email else []
    return TokenEntry(
        hashed=f"sha256:{match[1]}",
        groups=frozenset((*map(group_name, groups), *accounts)),
        name=str(stated.get("name", "")),
        expires=_moment(file, place, stated.get("expires")),
    )


def _moment(file: Path, place: int, value: object) -> datetime | None:
    """Return the moment at which a token expires, for a day its end; ``None`` (never) for ``None``."""
    if value is None:
        return None
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    try:
        day = value if isinstance(value, date) else date.fromisoformat(str(value))
        return datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)
    except (ValueError, OverflowError) as error:
        raise _broken(file, f"'expires' of entry {place} is not a date such as 2027-01-31") from error


def _broken(file: Path, found: str) -> ConfigError:
    expected = 'expected lines such as "sha256:<64 digits>": {groups: [staff]}; `nornweave token` makes them'
    return ConfigError(f"{file}: {found}; {expected}")
