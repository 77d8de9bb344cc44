"""Ask the Stack Exchange API: its wrapper, its quota, and the pauses that it asks for.

Source: api.stackexchange.com/docs/wrapper, …/throttle, …/error-handling.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

from nornweave.connect.conversation import as_is
from nornweave.connect.mirror.answers import ApiAnswer, Limits
from nornweave.connect.mirror.api_client import ApiClient, Parameters
from nornweave.connect.stackexchange.connector import StackExchangeSettings
from nornweave.core.errors import SourceUnavailableError

PER_PAGE = 100
# Errors come with status 400, whatever their number is; a throttle violation also with its own.
_ERRORS = frozenset({400, 401, 402, 403, 404, 405, 406, 502})
_THROTTLE_VIOLATION = 502
_PASSING = frozenset({500, 503})
# Clients report that the announced pause is sometimes too short by a moment.
_GRACE_S = 1.0
_UNNAMED_WAIT_S = 60.0
_WAIT = re.compile(r"available in (\d{1,9}) seconds")


class StackExchangeApi:
    """The methods of one site."""

    def __init__(self, settings: StackExchangeSettings, limits: Limits | None) -> None:
        self._site = settings.site or ""
        self._key_name, key = settings.token_name, settings.token
        self._has_key = bool(key)
        self._is_used_up = False
        self._ready_at: dict[str, float] = {}
        secrets = {"key": key} if key else {}
        self._client = ApiClient(settings.api_url, secrets=secrets, token_name=self._key_name, limits=limits)

    def begin(self) -> None:
        """Forget that the quota was used up."""
        self._is_used_up = False

    def ask(self, method: str, address: str, parameters: Parameters) -> tuple[ApiAnswer, Mapping[str, Any]]:
        """Call a method.

        Args:
            method: what pauses are about, such as ``questions``.
            address: relative to the API's.
            parameters: beside site and key.

        Returns:
            The answer, and its content: an object with ``items``.

        Raises:
            SourceUnavailableError: a refusal, no answer, a used-up quota; with what to do.
        """
        for attempt in range(self._client.limits.attempts):
            if self._is_used_up:
                raise SourceUnavailableError(self._used_up(address))
            self._client.wait(max(self._ready_at.get(method, 0.0) - time.monotonic(), 0.0), address)
            answer = self._client.get(address, {**parameters, "site": self._site}, allowed=_ERRORS)
            content = answer.mapping() if answer.status != _THROTTLE_VIOLATION else _as_mapping(answer)
            self._note(method, content)
            if "error_id" not in content and answer.status < 300:
                if not isinstance(content.get("items"), list):
                    raise SourceUnavailableError(f"{answer.url}: no list of items in the answer; check api_url")
                return answer, content
            pause = self._pause(answer, content, attempt)
            if pause is None:
                break
            if attempt + 1 < self._client.limits.attempts:
                self._client.wait(pause, answer.url)
        raise SourceUnavailableError(f"{answer.url}: {self._refusal(answer, content)}")

    def _note(self, method: str, content: Mapping[str, Any]) -> None:
        """Remember how long to pause, and that nothing is left of the quota."""
        backoff = as_is(content.get("backoff"), int)
        if backoff is not None and backoff > 0:
            self._ready_at[method] = time.monotonic() + min(backoff, 10**9) + _GRACE_S
        self._is_used_up = content.get("quota_remaining") == 0

    def _pause(self, answer: ApiAnswer, content: Mapping[str, Any], attempt: int) -> float | None:
        """Return how long to wait before the next attempt; ``None`` where another attempt is of no use."""
        error = content.get("error_id")
        if error == _THROTTLE_VIOLATION:
            named = _WAIT.search(str(content.get("error_message")))
            return float(named[1]) if named else _UNNAMED_WAIT_S
        if error in _PASSING or (error is None and answer.status == _THROTTLE_VIOLATION):
            return self._client.limits.backoff(attempt)
        return None

    def _refusal(self, answer: ApiAnswer, content: Mapping[str, Any]) -> str:
        name = self._client.hide(str(content.get("error_name") or f"status {answer.status}"))
        name = re.sub(r"\W+", " ", name)[:100]
        if name == "bad_parameter":
            return f"bad_parameter; check that the site {self._site!r} exists, and the names of its tags"
        if name in ("access_denied", "key_required"):
            return f"{name}; check the app key in {self._key_name}"
        return f"{name}; try again later"

    def _used_up(self, address: str) -> str:
        more = "" if self._has_key else f"; an app key in {self._key_name} raises it from 300 requests to 10,000"
        return (
            f"{address}: today's quota is used up; it is renewed at midnight UTC; what was read is kept, and a sync "
            f"after that continues{more}"
        )


def _as_mapping(answer: ApiAnswer) -> Mapping[str, Any]:
    """Read an error, which a proxy may have sent in place of the API."""
    try:
        return answer.mapping()
    except SourceUnavailableError:
        return {}
