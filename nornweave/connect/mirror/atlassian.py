"""What the feeds of Confluence and Jira share: the site, the credentials, and what the site says when it refuses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from nornweave.connect.conversation import as_is, clean_name, mappings
from nornweave.connect.mirror.answers import ApiAnswer, Limits
from nornweave.connect.mirror.api_client import ApiClient, Parameters
from nornweave.connect.mirror.feed import PositionLostError
from nornweave.connect.mirror.settings import AtlassianSettings
from nornweave.core.errors import ConfigError, SourceUnavailableError

# Ten million pages of 50; a site that sends more sends the same ones for ever.
MAX_REQUESTS = 200_000
_BAD_REQUEST = frozenset({400})
_MESSAGE_CHARACTERS = 300


class AtlassianSite:
    """One site of Atlassian Cloud, asked with the rights of one account.

    Attributes:
        address: of the site, without the ``/wiki`` of its Confluence.
    """

    def __init__(self, settings: AtlassianSettings, advice: Mapping[int, str], limits: Limits | None) -> None:
        """Store the parameters; no request is made yet.

        Args:
            settings: the site with or without ``/wiki``; with a user, user and token are sent as HTTP Basic, else the
                token as a bearer token; without a token, only what everybody may read is read.
            advice: status → what to do.
            limits: of each request.

        Raises:
            ConfigError: the address or the token has the wrong form, or there is a user without a token.
        """
        user, self._token = settings.user, settings.token
        if user and not self._token:
            raise ConfigError(f"{settings.token_name}: not set; expected the API token of {user!r}")
        self.address = re.sub(r"/wiki\Z", "", (settings.url or "").rstrip("/")).rstrip("/")
        self._refused = _refused(user, settings.token_name)
        self._client = ApiClient(
            self.address,
            auth=(user, self._token) if user and self._token else None,
            token=None if user else self._token,
            token_name=settings.token_name,
            advice={401: self._refused, **advice},
            limits=limits,
        )

    def get(
        self,
        address: str,
        parameters: Parameters | None = None,
        *,
        resumed: bool = False,
        allowed: frozenset[int] = frozenset(),
    ) -> Mapping[str, Any]:
        """Ask for an address below the site's.

        Args:
            address: without a slash in front.
            parameters: of the query.
            resumed: the request names a page of a list: status 400 says that the site does not know it any more.
            allowed: statuses beside success that mean an empty answer.

        Raises:
            PositionLostError: the page is unknown.
            SourceUnavailableError: no answer, no JSON object, or a refusal, in the site's words.
        """
        answer = self._client.get(address, parameters, allowed=_BAD_REQUEST | allowed)
        return {} if answer.status in allowed else self._content(answer, resumed=resumed)

    def post(self, address: str, body: Mapping[str, Any], *, resumed: bool = False) -> Mapping[str, Any]:
        """Send a query as JSON; see ``get``."""
        return self._content(self._client.post(address, body, allowed=_BAD_REQUEST), resumed=resumed)

    def _content(self, answer: ApiAnswer, *, resumed: bool) -> Mapping[str, Any]:
        place = answer.url.partition("?")[0]
        # Jira answers a token that it refuses like nobody's: with what everybody may read, which is nothing.
        if answer.headers.get("x-seraph-loginreason", "").upper() in {"AUTHENTICATED_FAILED", "AUTHENTICATION_DENIED"}:
            raise SourceUnavailableError(f"{place}: {self._refused}")
        if answer.status not in _BAD_REQUEST:
            return answer.mapping()
        if resumed:
            raise PositionLostError(f"{place}: the list has to be read from its start: {self._said(answer)}")
        raise SourceUnavailableError(f"{place}: status 400: {self._said(answer)}")

    def _said(self, answer: ApiAnswer) -> str:
        """Return the messages of ``{"errorMessages": […]}`` or ``{"errors": [{"title": …}]}``."""
        try:
            content = answer.mapping()
        except SourceUnavailableError:
            return "no reason given"
        messages = [*(as_is(content.get("errorMessages"), list) or ()), content.get("message")]
        messages += [each.get("detail") or each.get("title") for each in mappings(content.get("errors"))]
        said = "; ".join(clean_name(each) for each in messages if isinstance(each, str))
        shown = said.replace(self._token, "…") if self._token else said
        return shown[:_MESSAGE_CHARACTERS] or "no reason given"


def listed(content: Mapping[str, Any], key: str, address: str) -> list[dict[str, Any]]:
    """Return the list under a key.

    Raises:
        SourceUnavailableError: there is none.
    """
    if not isinstance(content.get(key), list):
        raise SourceUnavailableError(f"{address}: no list {key!r} in the answer; check the address")
    return mappings(content[key])


def _refused(user: str | None, token_name: str) -> str:
    whose = f"that it belongs to {user!r}" if user else "that key 'user' is set if it is an account's API token"
    return f"the token is refused; renew {token_name}, and check {whose}"
