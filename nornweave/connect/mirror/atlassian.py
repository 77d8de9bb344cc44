"""Common parts of the Confluence and Jira feeds: site, credentials, error messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from nornweave.config.sources import AtlassianSettings
from nornweave.connect.conversation import as_is, clean_name, mappings
from nornweave.connect.mirror.api_client import AnswerError, ApiAnswer, ApiClient, Limits, Trouble
from nornweave.connect.mirror.feed import PositionLostError
from nornweave.core.access import account
from nornweave.core.errors import ConfigError, SourceUnavailableError
from nornweave.core.membership import ATLASSIAN_USER, Grant

_MESSAGE_CHARACTERS = 300
_ID = re.compile(r"[0-9]{1,20}")
_ACCOUNT = re.compile(r"\w[\w:.-]{0,199}", re.ASCII)
_GROUP = "atlassian:group:"
REFUSED = (400, 403, 404)
"""Statuses of what an account may not ask for; other things can be asked for all the same."""
_LOGIN_FAILED = frozenset({"AUTHENTICATED_FAILED", "AUTHENTICATION_DENIED"})


class AtlassianSite(ApiClient):
    """One site of Atlassian Cloud, read with the rights of one account.

    Attributes:
        address: the address of the site, without the ``/wiki`` of its Confluence.
    """

    def __init__(self, settings: AtlassianSettings, product: str, rights: str, limits: Limits | None) -> None:
        """Store the parameters. No request is made.

        Args:
            settings: the site with or without ``/wiki``. If a user is set, user and token are sent as HTTP Basic;
                otherwise the token is sent as a bearer token. Without a token only public content is read.
            rights: the rights that the account needs, for messages.

        Raises:
            ConfigError: the address or the token has the wrong form, or a user is set without a token.
        """
        user, token, owner = settings.user, settings.token, settings.token_name
        if user and not token:
            raise ConfigError(f"{owner}: not set; expected the API token of {user!r}")
        whose = f"that it belongs to {user!r}" if user else "that key 'user' is set if it is an account's API token"
        self._refused = f"the token is refused; renew {owner}, and check {whose}"
        self.address = re.sub(r"/wiki\Z", "", (settings.url or "").rstrip("/")).rstrip("/")
        super().__init__(
            self.address,
            auth=(user, token) if user and token else None,
            token=None if user else token,
            token_name=owner,
            advice={
                401: self._refused,
                403: f"not allowed; the account of {owner} needs to be able to use {product} and {rights}",
                404: f"not found; check that 'url' is a site of {product} Cloud (Data Center and Server have another "
                f"API, which is not read), and that the account of {owner} may read it",
                410: "gone; this version of the API was removed, and NornWeave needs an update",
            },
            limits=limits,
        )

    @property
    def site(self) -> str:
        """The address of the site. It is the same for both products, even if requests go through the gateway."""
        return re.sub(r"/ex/(jira|confluence)/", "/ex/", self.address)

    def trouble(self, answer: ApiAnswer) -> Trouble | None:
        """Return the problem with an answer, including the messages of the site; ``None`` if there is no problem."""
        place = answer.url.partition("?")[0]
        # Jira treats a refused token like an anonymous request: it answers with public issues, usually none.
        if answer.headers.get("x-seraph-loginreason", "").upper() in _LOGIN_FAILED:
            return Trouble(SourceUnavailableError(f"{place}: {self._refused}"))
        if answer.status == 400:
            # The site gives the same answer for an expired page of a list.
            return Trouble(PositionLostError(f"{place}: status 400: {self._error_messages(answer)}"))
        return super().trouble(answer)

    def _error_messages(self, answer: ApiAnswer) -> str:
        """Return the messages of ``{"errorMessages": […]}`` or ``{"errors": [{"title": …}]}``."""
        try:
            content = answer.mapping()
        except SourceUnavailableError:
            return "no reason given"
        messages = [*(as_is(content.get("errorMessages"), list) or ()), content.get("message")]
        messages += [each.get("detail") or each.get("title") for each in mappings(content.get("errors"))]
        said = self.origin.hide("; ".join(clean_name(each) for each in messages if isinstance(each, str)))
        return said[:_MESSAGE_CHARACTERS] or "no reason given"


def id_of(value: object) -> str:
    """Return an id as a string of digits.

    Raises:
        ValueError: the id is invalid.
    """
    text = str(value)
    if isinstance(value, bool) or not isinstance(value, int | str) or not _ID.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not an id")
    return text


def user_named(account_id: object) -> str | None:
    """Return the principal of an account, which is the same on all sites; ``None`` for an invalid id."""
    is_id = isinstance(account_id, str) and _ACCOUNT.fullmatch(account_id)
    return f"{ATLASSIAN_USER}{account_id}" if is_id else None


def group_named(group_id: object) -> str | None:
    """Return the principal of a group; ``None`` for an invalid id."""
    return f"{_GROUP}{group_id}" if isinstance(group_id, str) and _ACCOUNT.fullmatch(group_id) else None


def with_people(
    grants: Iterable[Grant],
    in_group: Callable[[str], Iterable[Mapping[str, Any]]],
    about: Callable[[Sequence[str]], Iterable[Mapping[str, Any]]],
) -> Iterator[Grant]:
    """Yield the grants, then a grant for each group in them, and a grant for each person.

    The grant of a group has its members. The grant of a person has the person's address. People whose account is closed
    or unknown get no grant here, but another site may grant them access.

    Args:
        in_group: a function that asks for the people in a group.
        about: a function that asks for the data of people, given their ids.

    Raises:
        SourceUnavailableError: the site does not answer.
    """
    grants = list(grants)
    named = {name for grant in grants for name in grant.members}
    people: dict[str, Mapping[str, Any]] = {}
    for group in sorted(name for name in named if name.startswith(_GROUP)):
        try:
            inside = {name: each for each in in_group(group.removeprefix(_GROUP)) if (name := _active(each))}
        except AnswerError as error:
            if error.status not in REFUSED:
                raise
            yield Grant(principal=group, unread=f"status {error.status}: the account may not list its members")
            continue
        people |= inside
        yield Grant(principal=group, members=frozenset(inside))
    alone = sorted(name for name in named if name.startswith(ATLASSIAN_USER) and name not in people)
    if alone:
        told = about([name.removeprefix(ATLASSIAN_USER) for name in alone])
        people |= {name: each for each in told if (name := _active(each))}
    for grant in grants:
        gone = (name for name in grant.members if name.startswith(ATLASSIAN_USER) and name not in people)
        yield replace(grant, members=grant.members.difference(gone))
    addresses = {name: email for name, each in people.items() if "@" in (email := _address(each))}
    for name, email in sorted(addresses.items()):
        yield Grant(principal=name, members=frozenset({account("email", email)}))
    if people and not addresses:
        unread = "no address of anybody; name accounts in access.membership.file"
        yield Grant(principal="atlassian:user", unread=unread, also_unread=frozenset(people))


def _active(person: Mapping[str, Any]) -> str | None:
    """Return the principal of an account; ``None`` if the account is closed."""
    is_closed = person.get("active") is False or person.get("accountStatus") in ("inactive", "closed")
    return None if is_closed else user_named(person.get("accountId"))


def _address(person: Mapping[str, Any]) -> str:
    return as_is(person.get("emailAddress"), str) or as_is(person.get("email"), str) or ""
