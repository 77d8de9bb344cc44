"""Webhooks of the services of sources: check the sender, find the sources, and queue them for a sync.

A service is told this server's address and a secret. It then posts an event when something changes, signed with the
secret. An event says only that something changed: the sync that follows asks the source itself. So a forged or repeated
one could at most cause a sync, and does not.

Sources: docs.github.com "Validating webhook deliveries"; docs.gitlab.com "Webhooks"; docs.slack.dev "Verifying requests
from Slack"; developer.atlassian.com "Webhooks" (Jira Cloud), "Managing Webhooks" (Confluence).
"""

from __future__ import annotations

import hmac
import logging
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from nornweave.config import Settings
from nornweave.config.sources import HookedSettings
from nornweave.core.errors import NornWeaveError, StoreError
from nornweave.core.types import digest

log = logging.getLogger(__name__)

SLACK_WITHIN_S = 300
"""By how much the time of one of Slack's requests may differ from ours."""
REMEMBERED_S = 3 * 86_400.0
"""For so long a delivery is known again: GitHub sends old ones again for three days when a person asks it to."""

Headers = Mapping[str, str]
"""Of a request, by name in lower case."""


class ReplayedError(NornWeaveError):
    """The event was received before."""


def _by_hub(header: str) -> Callable[[str, Headers, bytes, float], bool]:
    """Return a function ``is_signed`` for a ``HookService``. It checks the WebSub signature in the named header."""

    def is_signed(secret: str, headers: Headers, body: bytes, _now: float) -> bool:
        expected = f"sha256={hmac.digest(secret.encode(), body, 'sha256').hex()}"
        return hmac.compare_digest(headers.get(header, "").encode(), expected.encode())

    return is_signed


def _by_token(secret: str, headers: Headers, _body: bytes, _now: float) -> bool:
    return hmac.compare_digest(headers.get("x-gitlab-token", "").encode(), secret.encode())


def _by_slack(secret: str, headers: Headers, body: bytes, now: float) -> bool:
    stamp = headers.get("x-slack-request-timestamp", "")
    if not (stamp.isascii() and stamp.isdecimal() and len(stamp) < 16 and abs(now - int(stamp)) <= SLACK_WITHIN_S):
        return False
    expected = f"v0={hmac.digest(secret.encode(), b'v0:%b:%b' % (stamp.encode(), body), 'sha256').hex()}"
    return hmac.compare_digest(headers.get("x-slack-signature", "").encode(), expected.encode())


@dataclass(frozen=True, slots=True)
class HookService:
    """A service, such as GitHub, that posts events.

    Attributes:
        is_signed: a function that tells whether a request was signed with a secret. Its arguments are the secret, the
            headers, the body, and the current time in seconds since 1970.
        delivery: the header with the id of a delivery, which stays the same if the delivery is repeated; empty if the
            service has no such header.
        repository: the keys in an event under which its repository is named, from the outermost to the innermost.
    """

    is_signed: Callable[[str, Headers, bytes, float], bool]
    delivery: str = ""
    repository: tuple[str, ...] = ()


SERVICES: Mapping[str, HookService] = MappingProxyType(
    {
        "github": HookService(_by_hub("x-hub-signature-256"), "x-github-delivery", ("repository", "full_name")),
        "gitlab": HookService(_by_token, "idempotency-key", ("project", "path_with_namespace")),
        "slack": HookService(_by_slack),
        "confluence": HookService(_by_hub("x-hub-signature"), "x-atlassian-webhook-identifier"),
        "jira": HookService(_by_hub("x-hub-signature"), "x-atlassian-webhook-identifier"),
    }
)


class HookKeys:
    """The secrets of the sources, by service."""

    def __init__(self, settings: Settings, environment: Mapping[str, str]) -> None:
        """Read the secrets. Log the names of missing secrets."""
        self.settings = settings
        self._sources: list[tuple[HookedSettings, str]] = []
        for source in settings.sources:
            if isinstance(source, HookedSettings) and source.webhook_secret_env:
                if secret := environment.get(source.webhook_secret_env, "").strip():
                    self._sources.append((source, secret))
                else:
                    unset = f"webhook_secret_env names {source.webhook_secret_env}, which is not set"
                    log.warning("source %s: webhooks are refused: %s", source.id, unset)

    def signers(self, service: str, headers: Headers, body: bytes, now: float) -> list[HookedSettings]:
        """Return the sources whose secret signed a request of a service."""
        candidates = [(source, secret) for source, secret in self._sources if service in source.hook_services]
        signed = SERVICES[service].is_signed
        # Try every secret, even after a match: the time then reveals nothing.
        right = {secret for secret in {secret for _, secret in candidates} if signed(secret, headers, body, now)}
        return [source for source, secret in candidates if secret in right]


def find_sources(service: str, event: Mapping[str, Any], sources: Sequence[HookedSettings]) -> list[str]:
    """Return the ids of the sources for the event's repository.

    If the event names no repository, return the ids of all sources.
    """
    name: Any = event
    for key in SERVICES[service].repository or ("",):
        name = name.get(key) if isinstance(name, Mapping) else None
    return [source.id for source in sources if not isinstance(name, str) or _is_at(source, name)]


def _is_at(source: HookedSettings, repository: str) -> bool:
    """Tell whether a source's address ends with a repository's name, ``owner/name``."""
    places = (str(getattr(source, key) or "").rstrip("/").removesuffix(".git") for key in source.place_keys)
    return any(f"/{place.replace(':', '/')}".lower().endswith(f"/{repository.lower()}") for place in places)


def marks_of(service: str, headers: Headers, body: bytes) -> list[str]:
    """Return the marks that identify a repeated event: its signed content, and the id of its delivery if it has one."""
    delivery = headers.get(SERVICES[service].delivery, "")
    return [digest(service, "body", body), *([digest(service, "delivery", delivery)] if delivery else [])]


class HookQueue:
    """The sources that wait for a sync. They are in a small SQLite file that all processes of a machine share.

    Further events for a waiting source are only counted. They do not cause a second sync.
    """

    def __init__(self, data_dir: Path) -> None:
        self._file = data_dir / "hooks.sqlite"

    def put(self, marks: Sequence[str], sources: Sequence[str]) -> int:
        """Add an event for its sources. It is on disk when this method returns.

        Returns:
            The number of ``sources`` that were not waiting before.

        Raises:
            ReplayedError: one of the marks was received before.
            StoreError: the queue cannot be written.
        """
        now, added = time.time(), 0
        with self._writing() as connection:
            connection.execute("delete from seen where at < ?", [now - REMEMBERED_S])
            for mark in marks:
                if not connection.execute("insert or ignore into seen values (?, ?)", [mark, now]).rowcount:
                    raise ReplayedError("this event came before")
            for source in sources:
                events = "insert into told values (?, 1) on conflict do update set events = events + 1 returning events"
                ((count,),) = connection.execute(events, [source]).fetchall()
                added += count == 1
        return added

    def waiting(self) -> dict[str, int]:
        """Return the number of waiting events by source.

        Raises:
            StoreError: the queue cannot be read.
        """
        if not self._file.exists():
            return {}
        with self._writing() as connection:
            return dict(connection.execute("select source, events from told order by source").fetchall())

    def done(self, taken: Mapping[str, int]) -> None:
        """Remove the events that a sync has handled. Later events stay in the queue.

        Raises:
            StoreError: the queue cannot be written.
        """
        with self._writing() as connection:
            connection.executemany("delete from told where source = ? and events = ?", list(taken.items()))

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._file, timeout=5)) as connection, connection:
                connection.execute("create table if not exists seen (mark text primary key, at real)")
                connection.execute("create index if not exists seen_at on seen (at)")
                connection.execute("create table if not exists told (source text primary key, events integer)")
                yield connection
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"{self._file}: what webhooks tell cannot be kept: {error}") from error
