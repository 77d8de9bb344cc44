"""Ask an HTTP API: within deadlines and sizes, politely when it limits its rate, and never another host."""

from __future__ import annotations

import json
import re
import ssl
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

import httpx

from nornweave.core.errors import ConfigError, SourceUnavailableError

_TOKEN = re.compile(r"[\x21-\x7e]+")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_MAX_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
# The wait after a rate limit that names no time; GitHub asks for this much.
_UNNAMED_WAIT_S = 60.0
# The last moment that a message can name, 9999-01-01.
_LATEST = 253_370_764_800.0

Parameters = Mapping[str, str | int]


class AnswerError(SourceUnavailableError):
    """One request failed: it is refused, its answer is too large, or there is none after several attempts.

    Attributes:
        status: of the answer; ``None`` when there was none.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class OtherHostError(SourceUnavailableError):
    """An address leads to a host that is not the API's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one request may take.

    Attributes:
        read_s: seconds without a byte.
        request_s: seconds from the request to the last byte.
        max_bytes: of an answer, unpacked.
        attempts: requests until a failure that may pass counts.
        backoff_s: the first pause after a failure; it doubles.
        max_wait_s: a rate limit is waited for when it ends within so many seconds.
    """

    read_s: float = 20.0
    request_s: float = 120.0
    max_bytes: int = 64 * 1024 * 1024
    attempts: int = 4
    backoff_s: float = 0.5
    max_wait_s: float = 60.0


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """An answer: its status, its headers and its whole content."""

    url: str
    status: int
    headers: httpx.Headers
    content: bytes

    def json(self) -> Any:
        """Read the content as JSON.

        Raises:
            SourceUnavailableError: it is something else.
        """
        try:
            return json.loads(self.content)
        except (ValueError, RecursionError) as error:
            raise SourceUnavailableError(f"{self.url}: no JSON in the answer; check the address") from error

    def mapping(self) -> Mapping[str, Any]:
        """Read the content as a JSON object.

        Raises:
            SourceUnavailableError: it is something else.
        """
        content = self.json()
        if not isinstance(content, dict):
            raise SourceUnavailableError(f"{self.url}: a JSON {type(content).__name__}; expected an object")
        return content

    @property
    def moment(self) -> float:
        """Return when it was made, in seconds since 1970, by the server's clock; by ours if the server does not say."""
        try:
            return parsedate_to_datetime(self.headers.get("date", "")).timestamp()
        except (ValueError, TypeError, OverflowError):
            return time.time()

    @property
    def validators(self) -> dict[str, str]:
        """Return the headers with which the next request asks for what changed since."""
        names = {"If-None-Match": "etag", "If-Modified-Since": "last-modified"}
        return {sent: self.headers[name] for sent, name in names.items() if name in self.headers}

    @property
    def following(self) -> str | None:
        """Return the address of the next page, as the ``Link`` header names it."""
        match = re.search(r'<([^<>]{1,4000})>\s*;[^<>,]*\brel="?next\b', self.headers.get("link", ""))
        return urljoin(self.url, match[1]) if match else None


class ApiClient:
    """Asks one API; credentials go to its host only, and are never part of a message."""

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
        hosts: frozenset[str] = frozenset(),
        limits: Limits | None = None,
    ) -> None:
        """Store the parameters; no request is made yet.

        Args:
            base_url: of the API; relative addresses are joined to it.
            headers: sent with every request.
            auth: user and password or token, sent as HTTP Basic.
            token: sent as a bearer token.
            token_name: where the secret comes from, for messages, such as the environment variable's name.
            secrets: parameters of the query that every request has and no message shows.
            advice: status → what to do.
            hosts: further hosts that may be asked, ``host`` or ``host:port``, by the API's scheme or by https; they
                must not be given where there is a token.
            limits: of each request.

        Raises:
            ConfigError: the address or the token has the wrong form, or the token would be sent unencrypted.
        """
        self._secrets = dict(secrets or {})
        self._unshown = [each for each in (token, auth and auth[1], *self._secrets.values()) if each]
        for secret in self._unshown or (None,):
            _check(base_url, secret, token_name)
        self.limits = limits or Limits()
        self._base = base_url.rstrip("/") + "/"
        self._host = urlsplit(self._base)[:2]
        if hosts and self._unshown:
            raise ConfigError(f"{token_name}: expected no token where several hosts are asked")
        self._hosts = hosts
        self._token_name = token_name
        self._advice = dict(advice or {})
        sent = {"User-Agent": "nornweave", "Accept": "application/json", **(headers or {})}
        if token:
            sent["Authorization"] = f"Bearer {token}"
        self._client = httpx.Client(
            headers=sent, auth=auth, timeout=self.limits.read_s, follow_redirects=False, verify=_certificates()
        )
        weakref.finalize(self, self._client.close)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

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
        """Ask for an address.

        Args:
            address: relative to the API's, or a whole one on its host.
            parameters: of the query.
            headers: of this request.
            allowed: statuses beside success that the caller understands, such as 304 and 404.
            follow: follow redirects; otherwise they are answers, if ``allowed`` has their status.
            wanted: says by status and headers whether the content is read; it comes back empty otherwise.

        Raises:
            AnswerError: no answer, a refusal, an answer that is too large; with what was answered and what to do.
            OtherHostError: the address is another host's.
            SourceUnavailableError: a rate limit that ends too late.
        """
        return self._ask("GET", address, parameters, headers, allowed, follow=follow, wanted=wanted)

    def post(self, address: str, body: Mapping[str, Any], *, allowed: frozenset[int] = frozenset()) -> ApiAnswer:
        """Send JSON that changes nothing (a query); see ``get``."""
        return self._ask("POST", address, None, None, allowed, body=body)

    def wait(self, seconds: float, url: str) -> None:
        """Wait as long as an API asks for.

        Raises:
            SourceUnavailableError: it asks for more than ``max_wait_s``.
        """
        if seconds > self.limits.max_wait_s:
            until = datetime.fromtimestamp(min(time.time() + seconds, _LATEST), UTC)
            raise SourceUnavailableError(
                f"{url}: rate limit until {until:%Y-%m-%dT%H:%M:%SZ}; what was read is kept, and a sync after that "
                f"continues; {self._token_name} may raise the limit"
            )
        time.sleep(seconds)

    def hide(self, text: str) -> str:
        """Return what a server said without the secrets, which it may repeat."""
        for secret in self._unshown:
            text = text.replace(secret, "…").replace(quote(secret, safe=""), "…")
        return text

    def _ask(
        self,
        method: str,
        address: str,
        parameters: Parameters | None,
        headers: Mapping[str, str] | None,
        allowed: frozenset[int],
        *,
        body: Mapping[str, Any] | None = None,
        follow: bool = True,
        wanted: Callable[[ApiAnswer], bool] | None = None,
    ) -> ApiAnswer:
        url = urljoin(self._base, address)
        self._require_host(url)
        problem, status = "", None
        for attempt in range(self.limits.attempts):
            try:
                answer = self._send(method, url, parameters, headers, body, follow=follow, wanted=wanted)
            except httpx.InvalidURL as error:
                raise AnswerError(f"{url!r}: not a URL ({error})") from error
            except httpx.RequestError as error:
                problem, pause, status = f"no answer ({type(error).__name__})", self._backoff(attempt), None
            else:
                if 200 <= answer.status < 300 or answer.status in allowed:
                    return answer
                limited = limited_for(answer)
                if limited is None and answer.status < 500:
                    raise AnswerError(f"{answer.url}: {self._refusal(answer.status)}", answer.status)
                problem, status = f"status {answer.status}", answer.status
                pause = self._backoff(attempt) if limited is None else limited
            if attempt + 1 < self.limits.attempts:
                self.wait(pause, url)
        raise AnswerError(f"{url}: {problem}, {self.limits.attempts} times; try again later", status)

    def _send(
        self,
        method: str,
        url: str,
        parameters: Parameters | None,
        headers: Mapping[str, str] | None,
        body: Mapping[str, Any] | None,
        *,
        follow: bool,
        wanted: Callable[[ApiAnswer], bool] | None,
    ) -> ApiAnswer:
        """Send one request and follow its redirects on the hosts that may be asked."""
        for _ in range(_MAX_REDIRECTS + 1):
            query = {**(parameters or {}), **self._secrets} or None
            request = self._client.build_request(method, url, params=query, headers=headers, json=body)
            answer = self._receive(request, wanted)
            target = answer.headers.get("location")
            if not follow or answer.status not in _REDIRECTS or not target:
                return answer
            url, parameters = urljoin(answer.url, target), None
            self._require_host(url)
        raise SourceUnavailableError(f"{url}: redirected more than {_MAX_REDIRECTS} times; check the address")

    def _receive(self, request: httpx.Request, wanted: Callable[[ApiAnswer], bool] | None) -> ApiAnswer:
        deadline = time.monotonic() + self.limits.request_s
        response = self._client.send(request, stream=True)
        try:
            answer = ApiAnswer(self._shown(response.url), response.status_code, response.headers, b"")
            if wanted is not None and not wanted(answer):
                return answer
            content = bytearray()
            for piece in response.iter_bytes():
                content += piece
                if len(content) > self.limits.max_bytes:
                    url, limit = self._shown(request.url), f"{self.limits.max_bytes:,}"
                    raise AnswerError(f"{url}: an answer of more than {limit} bytes; expected a page")
                if time.monotonic() > deadline:
                    raise httpx.ReadTimeout("the answer did not end in time", request=request)
            return ApiAnswer(answer.url, answer.status, answer.headers, bytes(content))
        finally:
            response.close()

    def _require_host(self, url: str) -> None:
        try:
            host = urlsplit(url)[:2]
        except ValueError:
            host = ("", "")
        is_further = host[1] in self._hosts and host[0] in (self._host[0], "https")
        if host != self._host and not is_further:
            raise OtherHostError(f"{self._base}: leads to {self.hide(url)!r} on another host; check the address")

    def _shown(self, url: httpx.URL) -> str:
        for name in self._secrets:
            url = url.copy_remove_param(name)
        return str(url)

    def _backoff(self, attempt: int) -> float:
        return min(self.limits.backoff_s * 2.0**attempt, self.limits.max_wait_s)

    def _refusal(self, status: int) -> str:
        refused = f"the token is refused; renew {self._token_name}"
        known = {401: refused, 403: f"not allowed; {self._token_name} has no right to read this"}
        return f"status {status}: {self._advice.get(status) or known.get(status) or 'unexpected; check the address'}"


def limited_for(answer: ApiAnswer) -> float | None:
    """Return the seconds until a rate limit ends; ``None`` when the answer is about something else."""
    if answer.status not in (403, 429, 503):
        return None
    wait = _seconds(answer.headers.get("retry-after"))
    if wait is None and answer.headers.get("x-ratelimit-remaining") == "0":
        reset = answer.headers.get("x-ratelimit-reset", "")
        # One second more: the server's clock decides, not ours.
        wait = float(reset) - time.time() + 1 if re.fullmatch(r"\d{1,12}", reset) else None
    is_limit = answer.status == 429 or b"secondary rate limit" in answer.content[:2_000]
    if wait is None and is_limit:
        wait = _UNNAMED_WAIT_S
    return None if wait is None else max(wait, 0.0)


def _seconds(value: str | None) -> float | None:
    """Read ``Retry-After``: seconds, or a date."""
    if not value:
        return None
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value.strip()):
        return float(value)
    try:
        return parsedate_to_datetime(value).timestamp() - time.time()
    except (ValueError, TypeError, OverflowError):
        return None


@lru_cache(maxsize=1)
def _certificates() -> ssl.SSLContext:
    """Read the certificates once: they take 80 ms, longer than everything else that makes a client."""
    return httpx.create_ssl_context()


def _check(base_url: str, secret: str | None, token_name: str) -> None:
    try:
        parts = urlsplit(base_url)
        scheme, host, hostname = parts.scheme, parts.netloc, parts.hostname
    except ValueError:
        scheme, host, hostname = "", "", None
    if scheme not in ("http", "https") or not host or "@" in host:
        raise ConfigError("the address of the API: expected such as 'https://api.example.org', without a password")
    if secret is not None and not _TOKEN.fullmatch(secret):
        raise ConfigError(f"{token_name}: expected printable characters without blanks (it is not shown here)")
    if secret and scheme == "http" and hostname not in _LOOPBACK:
        raise ConfigError(f"{base_url!r} would send {token_name} unencrypted; expected https")
