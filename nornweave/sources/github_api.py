"""A source of GitHub issues and pull requests through the REST API, one document each."""

from __future__ import annotations

import re
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import httpx

from nornweave.errors import ConfigError, DocumentError, SourceUnavailableError, TransientDocumentError
from nornweave.parsing.conversation import as_is, mappings, parse_time
from nornweave.parsing.isolated import parse_apart
from nornweave.sources.github import read_issue, write_issues
from nornweave.types import Document, Domain, Entry, Listing, SourceId

API_VERSION = "2022-11-28"
PER_PAGE = 100
# 200,000 issues; a server that sends more pages than this sends the same ones for ever.
_MAX_PAGES = 2_000
_ATTEMPTS = 4
_BACKOFF_S = 0.5
# What GitHub asks for after a secondary rate limit that names no time.
_UNNAMED_WAIT_S = 60.0
_REPOSITORY = re.compile(r"[\w-][\w.-]*/[\w.-]*[\w-][\w.-]*", re.ASCII)
_PATH = re.compile(r"issues/([0-9]{1,12})")
_TOKEN = re.compile(r"[\x21-\x7e]+")
_LOOPBACK = frozenset({"localhost", "127.0.0.1"})


class GithubApiSource:
    """The issues and pull requests of one repository; ``close`` ends its connections."""

    domain = Domain.CONVERSATIONS
    version = "github-api-1"

    def __init__(
        self,
        id: SourceId,  # noqa: A002 - the port's name for it
        repository: str,
        *,
        api_url: str = "https://api.github.com",
        token: str | None = None,
        timeout_s: float = 20.0,
        max_wait_s: float = 60.0,
        backoff_s: float = _BACKOFF_S,
    ) -> None:
        """Store the parameters; no request is made yet.

        Args:
            id: the source's id.
            repository: ``owner/name``.
            api_url: of GitHub Enterprise ``https://HOST/api/v3``.
            token: sent to ``api_url`` only, and never part of a message.
            timeout_s: of each request.
            max_wait_s: a rate limit is waited for when it ends within so many seconds.
            backoff_s: the first pause after a failed request; it doubles.

        Raises:
            ConfigError: repository, URL or token have the wrong form.
        """
        _check(repository, api_url, token)
        self.id = id
        self._repository = repository
        self._max_wait_s = max_wait_s
        self._backoff_s = backoff_s
        headers = {
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": API_VERSION,
            "User-Agent": "nornweave",
        }
        if token:
            headers["Authorization"] = f"Bearer {token}"
        # httpx takes the token off when a redirect leads to another host.
        self._client = httpx.Client(headers=headers, timeout=timeout_s, follow_redirects=True)
        self._base = f"{api_url.rstrip('/')}/repos/{repository}"
        weakref.finalize(self, self._client.close)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def list(self) -> Listing:
        """List every issue and pull request, open and closed.

        Raises:
            SourceUnavailableError: the API refuses, does not answer, or its rate limit ends too late to wait.
        """
        # Oldest first: what is opened meanwhile comes last and shifts no page.
        url = f"{self._base}/issues?state=all&sort=created&direction=asc&per_page={PER_PAGE}"
        entries = {entry.path: entry for each in self._pages(url) if (entry := _entry(each)) is not None}
        return Listing(tuple(sorted(entries.values(), key=lambda entry: entry.path)))

    def fetch(self, entry: Entry) -> bytes:
        """Read an issue and its comments; of a pull request also reviews and review comments.

        Raises:
            TransientDocumentError: any refusal; the next listing tells whether it is gone.
        """
        match = _PATH.fullmatch(entry.path)
        if match is None:
            raise DocumentError(f"{entry.path!r} is not a path of this source; expected one such as 'issues/12'")
        number = match[1]
        try:
            issue = as_is(_json(self._get(f"{self._base}/issues/{number}")), dict) or {}
            comments = self._comments(number, is_pull="pull_request" in issue)
        except SourceUnavailableError as error:
            raise TransientDocumentError(str(error)) from error
        return write_issues([read_issue({**issue, "comments": comments})])

    def parse(self, entry: Entry, raw: bytes) -> Document:
        """Build the document."""
        return parse_apart("github", self.id, entry, raw)

    def _comments(self, number: str, *, is_pull: bool) -> Sequence[dict[str, Any]]:
        parts = [f"issues/{number}/comments"]
        if is_pull:
            parts += [f"pulls/{number}/comments", f"pulls/{number}/reviews"]
        return [each for part in parts for each in self._pages(f"{self._base}/{part}?per_page={PER_PAGE}")]

    def _pages(self, url: str) -> Iterator[dict[str, Any]]:
        for _ in range(_MAX_PAGES):
            response = self._get(url)
            content = _json(response)
            if not isinstance(content, list):
                raise SourceUnavailableError(f"{url}: a JSON {type(content).__name__}; expected a list; check api_url")
            yield from mappings(content)
            following = response.links.get("next", {}).get("url")
            if not following:
                return
            if _host(following) != _host(url):
                raise SourceUnavailableError(f"{url}: its next page {following!r} is on another host; check api_url")
            url = following
        raise SourceUnavailableError(f"{url}: more than {_MAX_PAGES} pages; expected an end")

    def _get(self, url: str) -> httpx.Response:
        """Ask once, and again after a failure that may pass: no answer, 5xx, a rate limit that ends soon.

        Raises:
            SourceUnavailableError: with what was answered and what to do.
        """
        problem = ""
        for attempt in range(_ATTEMPTS):
            try:
                response = self._client.get(url)
            except httpx.TooManyRedirects as error:
                raise SourceUnavailableError(f"{url}: redirected without end; check api_url and repository") from error
            except httpx.InvalidURL as error:
                raise SourceUnavailableError(f"{url!r}: no URL ({error}); check api_url") from error
            except httpx.RequestError as error:
                problem, wait = f"no answer ({type(error).__name__})", self._backoff_s * 2**attempt
            else:
                if response.is_success:
                    return response
                problem, wait = self._refusal(response, url), self._pause(response, attempt)
            if attempt + 1 < _ATTEMPTS:
                time.sleep(wait)
        raise SourceUnavailableError(f"{url}: {problem}, {_ATTEMPTS} times; try again later")

    def _pause(self, response: httpx.Response, attempt: int) -> float:
        limited = _limited_for(response)
        return self._backoff_s * 2**attempt if limited is None else limited

    def _refusal(self, response: httpx.Response, url: str) -> str:
        """Name the problem of an answer that may pass.

        Raises:
            SourceUnavailableError: it will not, or not soon enough.
        """
        limited = _limited_for(response)
        if limited is not None and limited > self._max_wait_s:
            until = datetime.fromtimestamp(min(time.time() + limited, _LATEST), UTC)
            raise SourceUnavailableError(
                f"{url}: rate limit until {until:%Y-%m-%dT%H:%M:%SZ}; sync again after that, or set GITHUB_TOKEN"
            )
        if limited is None and not response.is_server_error:
            raise SourceUnavailableError(f"{url}: {_advice(response.status_code, self._repository)}")
        return f"status {response.status_code}"


# The last moment that a message can name, 9999-01-01.
_LATEST = 253_370_764_800.0


def _limited_for(response: httpx.Response) -> float | None:
    """Return the seconds until a rate limit ends; ``None`` when the answer is about something else."""
    if response.status_code not in (403, 429):
        return None
    headers = response.headers
    wait = _number(headers.get("retry-after"))
    if wait is None and headers.get("x-ratelimit-remaining") == "0":
        reset = _number(headers.get("x-ratelimit-reset"))
        # One second more: the server's clock decides, not ours.
        wait = None if reset is None else reset - time.time() + 1
    if wait is None and (response.status_code == 429 or "secondary rate limit" in response.text[:2_000]):
        wait = _UNNAMED_WAIT_S
    return None if wait is None else max(wait, 0.0)


def _number(value: str | None) -> float | None:
    return float(value) if value is not None and re.fullmatch(r"\d{1,12}", value) else None


def _advice(status: int, repository: str) -> str:
    advice = {
        401: "the token is refused; renew GITHUB_TOKEN",
        403: "not allowed; the token needs read access to issues and pull requests",
        404: f"not found; check that {repository!r} exists, and that the token may read it if it is private",
        410: f"gone; {repository!r} has its issues turned off, or the issue was deleted",
    }
    return f"status {status}: {advice.get(status, 'unexpected; check api_url and repository')}"


def _json(response: httpx.Response) -> object:
    try:
        content: object = response.json()
    except (ValueError, RecursionError) as error:
        raise SourceUnavailableError(f"{response.url}: no JSON in the answer; check api_url") from error
    return content


def _entry(issue: Mapping[str, Any]) -> Entry | None:
    number = issue.get("number")
    if not isinstance(number, int):
        return None
    updated = issue.get("updated_at")
    gate = f"{updated}-{issue.get('comments')}"
    return Entry(path=f"issues/{number}", gate=gate, updated_at=parse_time(updated))


def _host(url: str) -> tuple[str, str] | None:
    try:
        return urlsplit(url)[:2]
    except ValueError:
        return None


def _check(repository: str, api_url: str, token: str | None) -> None:
    if not _REPOSITORY.fullmatch(repository):
        raise ConfigError(f"repository: {repository!r}; expected 'owner/name'")
    scheme, host = _host(api_url) or ("", "")
    if scheme not in ("http", "https") or not host or "@" in host:
        raise ConfigError("api_url: expected such as 'https://api.github.com', without user or password")
    if token is not None and not _TOKEN.fullmatch(token):
        raise ConfigError("GITHUB_TOKEN: expected printable characters without blanks (it is not shown here)")
    if token and scheme == "http" and host.split(":")[0] not in _LOOPBACK:
        raise ConfigError(f"api_url: {api_url!r} would send the token unencrypted; expected https")
