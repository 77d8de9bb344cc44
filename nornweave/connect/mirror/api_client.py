"""Ask an HTTP API: with deadlines and size limits, within its rate limit, and only its own host.

Its answers, limits of requests, and errors of answers.
"""

from __future__ import annotations

import json
import math
import re
import socket
import ssl
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import lru_cache, partial
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

import httpx

from nornweave.core.errors import ConfigError, SourceUnavailableError
from nornweave.core.network import ACCEPTED, check_public, decoded, public_addresses, through_proxy, unusable_proxy

_TOKEN = re.compile(r"[\x21-\x7e]+")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})

# The wait after a rate limit that names no time; GitHub asks for this much.
_UNNAMED_WAIT_S = 60.0
# A server whose clock is ahead of its database would hide what changes in between.
_OVERLAP = timedelta(minutes=2)
# A number below is one of seconds, and no moment since 1970.
_A_MOMENT = 1e9


class ApiOrigin:
    """The host of an API.

    Args:
        base_url: the address to which relative addresses are joined.
        secrets: secrets that are sent only to the API's host.
        parameters: query parameters that are added to every request. Their values are secrets too.
        token_name: where the secrets come from, for messages.

    Raises:
        ConfigError: the address or a secret has the wrong form, or a secret would be sent unencrypted or elsewhere.
    """

    def __init__(
        self,
        base_url: str,
        secrets: Iterable[str | None],
        parameters: Mapping[str, str],
        token_name: str,
    ) -> None:
        self.parameters = parameters
        self._secrets = [each for each in (*secrets, *parameters.values()) if each]
        self._base = base_url.rstrip("/") + "/"
        self._host = _place(base_url)[:2]
        scheme, host, hostname = _place(base_url)
        if scheme not in ("http", "https") or not host or "@" in host:
            raise ConfigError("the address of the API: expected such as 'https://api.example.org', without a password")
        if not all(map(_TOKEN.fullmatch, self._secrets)):
            raise ConfigError(f"{token_name}: expected printable characters without blanks (it is not shown here)")
        if self._secrets and scheme == "http" and hostname not in _LOOPBACK:
            raise ConfigError(f"{base_url!r} would send {token_name} unencrypted; expected https")

    def address(self, target: str, page: str | None = None) -> str:
        """Return the full URL of an address, which is relative to the address of ``page``, or else of the API.

        Raises:
            OtherHostError: the address is on another host.
        """
        url = urljoin(page or self._base, target)
        scheme, host, _ = _place(url)
        if host != self._host[1] or scheme not in (self._host[0], "https"):
            raise OtherHostError(f"{self._base}: leads to {self.hide(url)!r} on another host; check the address")
        return url

    def hide(self, text: str) -> str:
        """Return a text of the server with our secrets removed. A server may repeat them in its messages."""
        for secret in self._secrets:
            text = text.replace(secret, "…").replace(quote(secret, safe=""), "…")
        return text

    def shown(self, url: httpx.URL) -> str:
        """Return the address of a request as it is shown in messages."""
        for name in self.parameters:
            url = url.copy_remove_param(name)
        return str(url)


def _place(url: str) -> tuple[str, str, str | None]:
    """Return the scheme, the host with its port, and the host alone of an address.

    The host alone is ``None`` if the address has no host.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return "", "", None
    return parts.scheme, parts.netloc, parts.hostname


_MAX_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
# The last moment that a message can name, 9999-01-01.
_LATEST = 253_370_764_800.0

Parameters = Mapping[str, str | int]


class ApiClient:
    """A client of one API. Credentials are sent only to the API's host, and never appear in messages.

    The connections are closed when nothing refers to the client any more.

    Args:
        base_url: the address of the API. Relative addresses are joined to it.
        auth: the user, and a password or token. They are sent as HTTP Basic.
        token: the token to send as a bearer token.
        token_name: where the secret comes from, such as the name of an environment variable. It is used in messages.
        secrets: query parameters that are added to every request and never shown in messages.
        advice: HTTP status → what to do, for messages.
        public_only: connect to public hosts only.

    Attributes:
        ends_at: the time by ``time.monotonic()`` after which the client makes no request and does not wait.
    """

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str] | None = None,
        auth: tuple[str, str] | None = None,
        token: str | None = None,
        token_name: str = "token",  # noqa: S107 - a name, not a token
        secrets: Mapping[str, str] | None = None,
        advice: Mapping[int, str] | None = None,
        limits: Limits | None = None,
        public_only: bool = False,
    ) -> None:
        """Store the parameters. No request is made. The errors are those of ``ApiOrigin``."""
        self.limits = limits or Limits()
        self.origin = ApiOrigin(base_url, (token, auth and auth[1]), dict(secrets or {}), token_name)
        self._token_name = token_name
        self._advice = dict(advice or {})
        bearer = {"Authorization": f"Bearer {token}"} if token else {}
        self.requests = 0
        self.ends_at = math.inf
        sent = {"User-Agent": "nornweave", "Accept": "application/json", **(headers or {}), **ACCEPTED, **bearer}
        self._line = _Line(public_only=public_only)
        self._heeds_proxies = not public_only
        trusts = self._heeds_proxies and not unusable_proxy()  # httpx fails even over an unused one
        self._client = httpx.Client(
            headers=sent, auth=auth, timeout=self.limits.read_s, verify=_certificates(), trust_env=trusts
        )
        weakref.finalize(self, self._client.close)

    def get(
        self,
        address: str,
        parameters: Parameters | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        allowed: frozenset[int] = frozenset(),
        follow: bool = True,
        wanted: Callable[[ApiAnswer], bool] | None = None,
    ) -> ApiAnswer:
        """Request an address.

        Args:
            address: an address relative to the API's, or a full address on its host.
            allowed: HTTP statuses, such as 304 and 404, that the caller handles like success.
            follow: whether redirects are followed. Otherwise a redirect is returned if ``allowed`` has its status.
            wanted: a function that decides, by status and headers, whether the content is read. Otherwise the content
                is empty.

        Raises:
            AnswerError: there was no answer, a refusal, or an answer that is too large. The message says what was
                answered and what to do.
            OtherHostError: the address is on another host.
            SourceUnavailableError: the API's rate limit ends too late.
        """
        send = partial(self._send, parameters=parameters, headers=headers, follow=follow, wanted=wanted)
        return self._ask(address, send, allowed)

    def post(self, address: str, body: Mapping[str, Any]) -> ApiAnswer:
        """Post a query as JSON and return the answer. The errors are those of ``get``."""
        return self._ask(address, partial(self._send, body=body), frozenset())

    def wait(self, seconds: float, url: str) -> None:
        """Wait for the time that an API demands.

        Raises:
            SourceUnavailableError: the API asks for a wait of more than ``max_wait_s``.
        """
        if seconds > self.limits.max_wait_s:
            until = datetime.fromtimestamp(min(time.time() + seconds, _LATEST), UTC)
            raise SourceUnavailableError(
                f"{url}: rate limit until {until:%Y-%m-%dT%H:%M:%SZ}; what was read is kept, and a sync after that "
                f"continues; {self._token_name} may raise the limit"
            )
        self._check_time(url, seconds)
        time.sleep(seconds)

    def _check_time(self, url: str, seconds: float = 0.0) -> None:
        if time.monotonic() + seconds >= self.ends_at:
            raise SourceUnavailableError(f"{url}: the time for this source is used up; the next sync goes on here")

    def trouble(self, answer: ApiAnswer) -> Trouble | None:
        """Return the problem with an answer of unexpected status; ``None`` if there is no problem.

        Subclasses override this method for APIs that report errors in a special way.
        """
        if 200 <= answer.status < 300:
            return None
        limited = limited_for(answer)
        if limited is None and answer.status < 500:
            return Trouble(AnswerError(f"{answer.url}: {self._refusal(answer.status)}", answer.status))
        error = self._repeated(answer.url, f"status {answer.status}", answer.status)
        return Trouble(error, is_passing=True, wait_s=limited)

    def _ask(self, address: str, send: Callable[[str], ApiAnswer], allowed: frozenset[int]) -> ApiAnswer:
        url = self.origin.address(address)
        attempt = 0
        if self._heeds_proxies and (wrong := unusable_proxy(url)):
            raise AnswerError(f"{url}: {wrong}")
        while True:
            self._check_time(url)
            try:
                answer = send(url)
            except httpx.InvalidURL as error:
                raise AnswerError(f"{url!r}: not a URL ({error})") from error
            except httpx.RequestError as error:
                by = through_proxy(url) if self._heeds_proxies else ""
                trouble = Trouble(self._repeated(url, f"no answer ({type(error).__name__}{by})"), is_passing=True)
            else:
                found = None if answer.status in allowed else self.trouble(answer)
                if found is None:
                    return answer
                trouble = found
            if not trouble.is_passing or attempt + 1 >= self.limits.attempts:
                raise trouble.error
            self.wait(self.limits.backoff(attempt) if trouble.wait_s is None else trouble.wait_s, url)
            attempt += 1

    def _repeated(self, url: str, problem: str, status: int | None = None) -> AnswerError:
        return AnswerError(f"{url}: {problem}, {self.limits.attempts} times; try again later", status)

    def _send(
        self,
        url: str,
        *,
        parameters: Parameters | None = None,
        headers: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        follow: bool = True,
        wanted: Callable[[ApiAnswer], bool] | None = None,
    ) -> ApiAnswer:
        """Send one request, a POST if it has a ``body``, and follow redirects on the permitted host if ``follow``."""
        method = "GET" if body is None else "POST"
        for _ in range(_MAX_REDIRECTS + 1):
            query = {**(parameters or {}), **self.origin.parameters} or None
            request = self._client.build_request(
                method, url, params=query, headers=headers, json=body, extensions={"trace": self._line.trace}
            )
            answer = self._receive(request, wanted)
            target = answer.headers.get("location")
            if not follow or answer.status not in _REDIRECTS or not target:
                return answer
            url, parameters = self.origin.address(target, answer.url), None
        raise SourceUnavailableError(f"{url}: redirected more than {_MAX_REDIRECTS} times; check the address")

    def _receive(self, request: httpx.Request, wanted: Callable[[ApiAnswer], bool] | None) -> ApiAnswer:
        deadline = min(time.monotonic() + self.limits.request_s, self.ends_at)
        self.requests += 1
        url = self.origin.shown(request.url)
        # Each byte of a header may take as long as ``read_s``: the connection is ended from outside.
        hang_up = threading.Timer(deadline - time.monotonic(), self._line.hang_up)
        hang_up.daemon = True
        hang_up.start()
        try:
            with closing(self._client.send(request, stream=True)) as response:
                answer = self._read(response, wanted, deadline)
            if time.monotonic() < deadline:
                return answer
        except httpx.RequestError:
            if time.monotonic() < deadline:
                raise
        finally:
            hang_up.cancel()
        self._check_time(url)
        raise AnswerError(f"{url}: the answer did not end in time; try again later")

    def _read(self, response: httpx.Response, wanted: Callable[[ApiAnswer], bool] | None, deadline: float) -> ApiAnswer:
        answer = ApiAnswer(self.origin.shown(response.url), response.status_code, response.headers, b"")
        if wanted is not None and not wanted(answer):
            return answer
        content = bytearray()
        try:
            for piece in decoded(response.iter_raw(), response.headers.get("content-encoding", "")):
                content += piece
                if len(content) > self.limits.max_bytes:
                    limit = f"{self.limits.max_bytes:,}"
                    raise AnswerError(f"{answer.url}: an answer of more than {limit} bytes; expected a page")
                if time.monotonic() > deadline:
                    break
        except ValueError as error:
            raise AnswerError(f"{answer.url}: {error}") from error
        return replace(answer, content=bytes(content))

    def _refusal(self, status: int) -> str:
        refused = f"the token is refused; renew {self._token_name}"
        known = {401: refused, 403: f"not allowed; {self._token_name} has no right to read this"}
        return f"status {status}: {self._advice.get(status) or known.get(status) or 'unexpected; check the address'}"


class _Line:
    """The client's current connection, known from httpcore's trace events."""

    def __init__(self, *, public_only: bool) -> None:
        self._public_only = public_only
        self._stream: Any = None

    def trace(self, event: str, facts: Mapping[str, Any]) -> None:
        """Check the host before connecting, and the address of the connection before a request is sent.

        Raises:
            SourceUnavailableError: only public hosts are allowed, and this host is not public.
        """
        if event == "connection.connect_tcp.started" and self._public_only:
            public_addresses(facts["host"])
        elif event in {"connection.connect_tcp.complete", "connection.start_tls.complete"}:
            self._stream = facts["return_value"]
            address = self._stream.get_extra_info("server_addr")[0]
            try:
                if self._public_only:
                    check_public(address, address)
            except SourceUnavailableError:
                self._stream.close()
                raise

    def hang_up(self) -> None:
        if self._stream is not None:
            with suppress(OSError):  # it has ended
                socket.socket.shutdown(self._stream.get_extra_info("socket"), socket.SHUT_RDWR)


@lru_cache(maxsize=1)
def _certificates() -> ssl.SSLContext:
    """Load the certificates once, because that takes 80 ms, longer than all other steps of making a client."""
    return httpx.create_ssl_context()


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
