"""The names of the people and bots of a Slack workspace."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from nornweave.connect.conversation import as_is
from nornweave.connect.mirror.feed import FeedRecord, Known
from nornweave.connect.slack.api import SlackApi, SlackError
from nornweave.connect.slack.text import user_name

log = logging.getLogger(__name__)

PREFIX = "user/"
# People and bots that the list of users lacks, such as those of other workspaces, are asked for one by one.
_MAX_LOOKUPS = 100


class People:
    """Name by id; empty for those whose name Slack does not tell."""

    def __init__(self, api: SlackApi, known: Known, *, ask_again: bool) -> None:
        """Read the names that are stored.

        Args:
            api: asked for those that are not.
            known: holds them.
            ask_again: ask once more for those whose name Slack did not tell before.
        """
        stored = {key.split("/")[1]: str(body.get("name") or "") for key, body in known.under(PREFIX)}
        self.names = {identifier: name for identifier, name in stored.items() if name or not ask_again}
        self._api = api
        self._lookups = 0
        self._found: list[FeedRecord] = []

    def require(self, identifiers: Iterable[str]) -> None:
        """Ask for the names of people and bots who are not known."""
        for identifier in sorted(identifiers):
            if identifier not in self.names and identifier[0] in "UWB" and self._lookups < _MAX_LOOKUPS:
                self._lookups += 1
                self.names[identifier] = self._name(identifier)
                self._found.append(person_record(identifier, self.names[identifier]))

    def taken(self) -> list[FeedRecord]:
        """Return the records of those who were asked for since the last call."""
        found, self._found = self._found, []
        return found

    def _name(self, identifier: str) -> str:
        method, kind = ("bots.info", "bot") if identifier.startswith("B") else ("users.info", "user")
        try:
            _, content = self._api.ask(method, **{kind: identifier})
        except SlackError as error:
            log.debug("%s has no name: %s", identifier, error)
            return ""
        return user_name(as_is(content.get(kind), dict) or {})


def people_in(users: Iterable[Mapping[str, Any]]) -> list[FeedRecord]:
    """Return the records of listed users: deleted ones, guests and bots too, who have said something once."""
    return [person_record(each["id"], user_name(each)) for each in users if isinstance(each.get("id"), str)]


def person_record(identifier: str, name: str) -> FeedRecord:
    """Return the record of a person or a bot."""
    return FeedRecord(key=f"{PREFIX}{identifier}/", document="", body={"name": name})
