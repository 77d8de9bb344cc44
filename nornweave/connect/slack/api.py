"""Ask Slack's Web API. Its errors have status 200 and the body ``{"ok": false, "error": …}``.

Source: docs.slack.dev/reference/methods, docs.slack.dev/apis/web-api/pagination and …/rate-limits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from nornweave.connect.connectors import SlackSettings
from nornweave.connect.conversation import as_is
from nornweave.connect.mirror.answers import ApiAnswer, Limits, Trouble, listed
from nornweave.connect.mirror.api_client import ApiClient
from nornweave.connect.mirror.feed import PositionLostError, pages_of
from nornweave.core.errors import SourceUnavailableError

# Slack recommends no more than 200, and allows 999; of apps sold outside its marketplace 15.
PER_PAGE = 200
_RATE_LIMITS = frozenset({"ratelimited", "rate_limited", "message_limit_exceeded"})
# The wait after a rate limit without a time.
_UNNAMED_WAITS = dict.fromkeys(_RATE_LIMITS, 30.0)
_PASSING = frozenset({"internal_error", "fatal_error", "service_unavailable", "request_timeout"})
_REFUSED_TOKEN = frozenset(
    {"invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive", "org_login_required"}
)
# These are about one channel; the others can be read.
_OF_A_CHANNEL = frozenset(
    {
        "access_denied",
        "channel_is_limited_access",
        "channel_not_found",
        "is_inactive",
        "method_not_supported_for_channel_type",
        "missing_scope",
        "no_permission",
        "not_in_channel",
        "team_access_not_granted",
    }
)
_UNSHOWN = re.compile(r"[^\w:,.\- ]+")


class SlackError(SourceUnavailableError):
    """Slack refuses a request. The attribute ``code`` is Slack's own error code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def is_of_a_channel(self) -> bool:
        """Tell whether the error concerns only one channel, so that other channels may be readable."""
        return self.code in _OF_A_CHANNEL


class SlackApi(ApiClient):
    """The API methods of one Slack workspace, called with a token."""

    def __init__(self, settings: SlackSettings, limits: Limits | None) -> None:
        self._token_name = settings.token_name
        super().__init__(settings.api_url, token=settings.token, token_name=self._token_name, limits=limits)

    def ask(self, method: str, **parameters: str | int) -> tuple[ApiAnswer, Mapping[str, Any]]:
        """Call an API method. Return the answer and its content.

        Raises:
            SlackError: Slack refuses. The message says what to do.
            PositionLostError: Slack does not know the cursor any more.
            SourceUnavailableError: Slack does not answer, gives an invalid answer, or limits the rate for too long.
        """
        answer = self.get(method, parameters)
        return answer, answer.mapping()

    def trouble(self, answer: ApiAnswer) -> Trouble | None:
        """Return the problem with an answer, including Slack's message; ``None`` if there is no problem."""
        found = super().trouble(answer)
        content = {} if found else answer.mapping()
        if found or content.get("ok") is True:
            return found
        method = urlsplit(answer.url).path.rpartition("/")[2]
        code = self._shown(content.get("error")) or "no error named"
        if code == "invalid_cursor":
            return Trouble(PositionLostError(f"{method}: the cursor is not valid any more"))
        wait = answer.headers.get("retry-after", "")
        return Trouble(
            SlackError(code, f"{method}: {code}; {self._remedy(code, content)}"),
            is_passing=code in _RATE_LIMITS | _PASSING,
            wait_s=float(wait) if re.fullmatch(r"\d{1,9}", wait) else _UNNAMED_WAITS.get(code),
        )

    def listed(self, method: str, key: str, **parameters: str) -> Iterator[Mapping[str, Any]]:
        """Yield the items that an API method lists, over all pages.

        Raises:
            SlackError: Slack refuses. The message says what to do.
            SourceUnavailableError: Slack does not answer, gives an invalid answer, limits the rate for too long, or
                refuses a cursor that it has just sent.
        """
        try:
            for found, _ in self.pages(method, key, **parameters):
                yield from found
        except PositionLostError as error:
            raise SourceUnavailableError(f"{error}; try again later") from error

    def ids(self, method: str, channel: str) -> Iterator[object]:
        """Yield the ids that an API method lists for a channel, over all pages. The errors are those of ``listed``."""

        def ask(at: str | None) -> tuple[list[object], str | None]:
            _, content = self.ask(method, channel=channel, limit=PER_PAGE, **({"cursor": at} if at else {}))
            found = as_is(content.get("members"), list)
            if found is None:
                raise SourceUnavailableError(f"{method}: no list 'members' in the answer; check api_url")
            return found, next_cursor(content)

        return (each for found, _ in pages_of(ask, None, method) for each in found)

    def pages(
        self, method: str, key: str, *, cursor: str | None = None, **parameters: str
    ) -> Iterator[tuple[list[dict[str, Any]], str | None]]:
        """Yield the pages of a list, each with the cursor of the next page; ``None`` for the last page."""

        def ask(at: str | None) -> tuple[list[dict[str, Any]], str | None]:
            _, content = self.ask(method, limit=PER_PAGE, **parameters, **({"cursor": at} if at else {}))
            return listed(content, key, method), next_cursor(content)

        return pages_of(ask, cursor, method)

    def _remedy(self, code: str, content: Mapping[str, Any]) -> str:
        if code in _REFUSED_TOKEN:
            return f"the token is refused; renew {self._token_name}"
        if code == "missing_scope":
            needed, provided = self._shown(content.get("needed")), self._shown(content.get("provided"))
            return f"add the scope {needed or '?'} to the app and install it again; {self._token_name} has {provided}"
        if code == "not_allowed_token_type":
            return f"{self._token_name} has to be a bot token (xoxb-…) or a user token (xoxp-…)"
        if code in _OF_A_CHANNEL:
            return "invite the app to the channel, or leave the channel out"
        if code in _RATE_LIMITS:
            return "what was read is kept; the next sync continues"
        return "try again later"

    def _shown(self, value: object) -> str:
        """Return a text of the server as it is shown in messages, without secrets."""
        return _UNSHOWN.sub("?", self.origin.hide(as_is(value, str) or ""))[:200]


def next_cursor(content: Mapping[str, Any]) -> str | None:
    """Return the cursor of the next page; ``None`` on the last page."""
    return as_is((as_is(content.get("response_metadata"), dict) or {}).get("next_cursor"), str) or None
