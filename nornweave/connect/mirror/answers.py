"""Answers of an API, limits of requests, and errors of answers."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urljoin

import httpx

from nornweave.core.errors import SourceUnavailableError

# The wait after a rate limit that names no time; GitHub asks for this much.
_UNNAMED_WAIT_S = 60.0
# A server whose clock is ahead of its database would hide what changes in between.
_OVERLAP = timedelta(minutes=2)
# A number below is one of seconds, and no moment since 1970.
_A_MOMENT = 1e9


class AnswerError(SourceUnavailableError):
    """A request failed. It was refused, its answer was too large, or there was no answer after several attempts.

    Attributes:
        status: the HTTP status of the answer; ``None`` if there was no answer.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class OtherHostError(SourceUnavailableError):
    """An address is not on the API's host."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """The problem with an answer.

    Attributes:
        error: the error to raise if there is no further attempt.
        is_passing: whether another attempt may succeed.
        wait_s: the pause before the next attempt, in seconds; ``None`` for a pause that doubles with each attempt.
    """

    error: SourceUnavailableError
    is_passing: bool = False
    wait_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one request.

    Attributes:
        read_s: the longest time without receiving a byte, in seconds.
        request_s: the longest time from the request to the last byte, in seconds.
        max_bytes: the maximum size of an unpacked answer.
        attempts: the number of attempts after which a temporary failure counts as an error.
        backoff_s: the pause after the first failure, in seconds. It doubles with each further failure.
        max_wait_s: the longest wait for the end of a rate limit, in seconds. A longer limit is an error.
    """

    read_s: float = 20.0
    request_s: float = 120.0
    max_bytes: int = 64 * 1024 * 1024
    attempts: int = 4
    backoff_s: float = 0.5
    max_wait_s: float = 60.0

    def backoff(self, attempt: int) -> float:
        """Return the pause after a failed attempt, in seconds. Attempts count from 0."""
        return min(self.backoff_s * 2.0**attempt, self.max_wait_s)


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """An answer: status, headers and content."""

    url: str
    status: int
    headers: httpx.Headers
    content: bytes

    def json(self) -> Any:
        """Parse the content as JSON.

        Raises:
            SourceUnavailableError: the content is invalid.
        """
        try:
            return json.loads(self.content)
        except (ValueError, RecursionError) as error:
            raise SourceUnavailableError(f"{self.url}: no JSON in the answer; check the address") from error

    def mapping(self) -> Mapping[str, Any]:
        """Parse the content as a JSON object.

        Raises:
            SourceUnavailableError: the content is invalid.
        """
        content = self.json()
        if not isinstance(content, dict):
            raise SourceUnavailableError(f"{self.url}: a JSON {type(content).__name__}; expected an object")
        return content

    def objects(self) -> list[dict[str, Any]]:
        """Parse the content as a JSON list and return its objects.

        Raises:
            SourceUnavailableError: the content is invalid.
        """
        content = self.json()
        if not isinstance(content, list):
            kind = type(content).__name__
            raise SourceUnavailableError(f"{self.url}: a JSON {kind}; expected a list; check the address of the API")
        return [each for each in content if isinstance(each, dict)]

    @property
    def moment(self) -> float:
        """Return the time of the answer in seconds since 1970. It is the server's time if the server states one."""
        try:
            return parsedate_to_datetime(self.headers.get("date", "")).timestamp()
        except (ValueError, TypeError, OverflowError):
            return time.time()

    @property
    def since(self) -> str:
        """Return the time from which a later request asks for changes.

        It is the time of this answer minus some overlap.
        """
        return (datetime.fromtimestamp(self.moment, UTC) - _OVERLAP).strftime("%Y-%m-%dT%H:%M:%SZ")

    @property
    def validators(self) -> dict[str, str]:
        """Return the headers for a conditional request that asks later whether the content changed."""
        names = {"If-None-Match": "etag", "If-Modified-Since": "last-modified"}
        return {sent: self.headers[name] for sent, name in names.items() if name in self.headers}

    @property
    def following(self) -> str | None:
        """Return the next page's address from the ``Link`` header; ``None`` if the answer is the last page."""
        match = re.search(r'<([^<>]{1,4000})>\s*;[^<>,]*\brel="?next\b', self.headers.get("link", ""))
        return urljoin(self.url, match[1]) if match else None


def listed(content: Mapping[str, Any], key: str, place: str) -> list[dict[str, Any]]:
    """Return the objects of the list under a key.

    Raises:
        SourceUnavailableError: there is no list under the key. A missing list must not count as an empty list.
    """
    found = content.get(key)
    if not isinstance(found, list):
        raise SourceUnavailableError(f"{place}: no list {key!r} in the answer; check the address")
    return [each for each in found if isinstance(each, dict)]


def limited_for(answer: ApiAnswer) -> float | None:
    """Return the seconds until a rate limit ends; ``None`` if the answer does not report a rate limit."""
    if answer.status not in (403, 429, 503):
        return None
    wait = _seconds(answer.headers.get("retry-after"))
    for named in ("x-ratelimit", "ratelimit"):
        reset = answer.headers.get(f"{named}-reset", "")
        if wait is None and answer.headers.get(f"{named}-remaining") == "0" and re.fullmatch(r"\d{1,12}", reset):
            # One second more: the server's clock decides, not ours.
            wait = float(reset) - (time.time() if float(reset) > _A_MOMENT else 0.0) + 1
    is_limit = answer.status == 429 or b"secondary rate limit" in answer.content[:2_000]
    if wait is None and is_limit:
        wait = _UNNAMED_WAIT_S
    return None if wait is None else max(wait, 0.0)


def _seconds(value: str | None) -> float | None:
    """Return the seconds to wait by a ``Retry-After`` header; ``None`` if it is missing or invalid.

    The header has a number of seconds or a date.
    """
    if not value:
        return None
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value.strip()):
        return float(value)
    try:
        return parsedate_to_datetime(value).timestamp() - time.time()
    except (ValueError, TypeError, OverflowError):
        return None
