"""Ask the Stack Exchange API: its wrapper, its quota, and the pauses that it asks for.

Source: api.stackexchange.com/docs/wrapper, …/throttle, …/error-handling.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

from nornweave.connect.conversation import as_is
from nornweave.connect.mirror.answers import ApiAnswer, Limits, Trouble
from nornweave.connect.mirror.api_client import ApiClient, Parameters
from nornweave.connect.stackexchange.connector import StackExchangeSettings
from nornweave.core.errors import SourceUnavailableError

PER_PAGE = 100
_THROTTLE_VIOLATION = 502
_PASSING = frozenset({500, _THROTTLE_VIOLATION, 503})
# Clients report that the announced pause is sometimes too short by a moment.
_GRACE_S = 1.0
_UNNAMED_WAIT_S = 60.0
_WAIT = re.compile(r"available in (\d{1,9}) seconds")


class StackExchangeApi(ApiClient):
    """The methods of one site."""

    def __init__(self, settings: StackExchangeSettings, limits: Limits | None) -> None:
        self._site = settings.site or ""
        self._key_name, key = settings.token_name, settings.token
        self._has_key = bool(key)
        self._is_used_up = False
        self._ready_at = 0.0
        secrets = {"key": key} if key else {}
        super().__init__(settings.api_url, secrets=secrets, token_name=self._key_name, limits=limits)

    def begin(self) -> None:
        """Forget that the quota was used up."""
        self._is_used_up = False

    def ask(self, address: str, parameters: Parameters) -> tuple[ApiAnswer, Mapping[str, Any]]:
        """Call a method.

        Args:
            address: relative to the API's.
            parameters: beside site and key.

        Returns:
            The answer and its content.

        Raises:
            SourceUnavailableError: a refusal, no answer, a used-up quota; with what to do.
        """
        if self._is_used_up:
            raise SourceUnavailableError(self._used_up(address))
        self.wait(max(self._ready_at - time.monotonic(), 0.0), address)
        answer = self.get(address, {**parameters, "site": self._site})
        return answer, answer.mapping()

    def trouble(self, answer: ApiAnswer) -> Trouble | None:
        """Tell what is wrong, by the error that an answer names; note the quota and the pause that it asks for."""
        try:
            content = answer.mapping()
        except SourceUnavailableError:
            return super().trouble(answer)  # a proxy may have sent it in place of the API
        backoff = as_is(content.get("backoff"), int) or 0
        if backoff > 0:
            self._ready_at = time.monotonic() + min(backoff, 10**9) + _GRACE_S
        self._is_used_up = content.get("quota_remaining") == 0
        error, name = content.get("error_id"), self._said(content.get("error_name"))
        if error is None:
            return super().trouble(answer)
        if self._is_used_up:
            return Trouble(SourceUnavailableError(self._used_up(answer.url)))
        refusal = SourceUnavailableError(f"{answer.url}: {self._advice_on(name)}")
        pause = max(self._ready_at - time.monotonic(), 0.0)
        if error == _THROTTLE_VIOLATION:
            named = _WAIT.search(str(content.get("error_message")))
            pause = max(float(named[1]) if named else _UNNAMED_WAIT_S, pause)
        return Trouble(refusal, is_passing=error in _PASSING, wait_s=pause or None)

    def _said(self, name: object) -> str:
        return re.sub(r"\W+", " ", self.origin.hide(str(name)))[:100]

    def _advice_on(self, name: str) -> str:
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
