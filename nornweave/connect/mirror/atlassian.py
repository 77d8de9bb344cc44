"""What the feeds of Confluence and Jira share: the site, the credentials, and what the site says when it refuses."""

from __future__ import annotations

import re

from nornweave.connect.conversation import as_is, clean_name, mappings
from nornweave.connect.mirror.answers import ApiAnswer, Limits, Trouble
from nornweave.connect.mirror.api_client import ApiClient
from nornweave.connect.mirror.feed import PositionLostError
from nornweave.connect.mirror.settings import AtlassianSettings
from nornweave.core.errors import ConfigError, SourceUnavailableError

_MESSAGE_CHARACTERS = 300
_ID = re.compile(r"[0-9]{1,20}")
_LOGIN_FAILED = frozenset({"AUTHENTICATED_FAILED", "AUTHENTICATION_DENIED"})


class AtlassianSite(ApiClient):
    """One site of Atlassian Cloud, asked with the rights of one account.

    Attributes:
        address: of the site, without the ``/wiki`` of its Confluence.
    """

    def __init__(self, settings: AtlassianSettings, product: str, rights: str, limits: Limits | None) -> None:
        """Store the parameters; no request is made yet.

        Args:
            settings: the site with or without ``/wiki``; with a user, user and token are sent as HTTP Basic, else the
                token as a bearer token; without a token, only what everybody may read is read.
            rights: that the account needs, for messages.

        Raises:
            ConfigError: the address or the token has the wrong form, or there is a user without a token.
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

    def trouble(self, answer: ApiAnswer) -> Trouble | None:
        """Tell what is wrong, in the site's words."""
        place = answer.url.partition("?")[0]
        # Jira answers a token that it refuses like nobody's: with what everybody may read, which is nothing.
        if answer.headers.get("x-seraph-loginreason", "").upper() in _LOGIN_FAILED:
            return Trouble(SourceUnavailableError(f"{place}: {self._refused}"))
        if answer.status == 400:
            # So a site says too that it does not know a page of a list any more.
            return Trouble(PositionLostError(f"{place}: status 400: {self._said(answer)}"))
        return super().trouble(answer)

    def _said(self, answer: ApiAnswer) -> str:
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
    """Return an id as a site writes it, as text of digits.

    Raises:
        ValueError: it is something else.
    """
    text = str(value)
    if isinstance(value, bool) or not isinstance(value, int | str) or not _ID.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not an id")
    return text
