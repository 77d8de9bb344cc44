"""Read the issues, pull requests and discussions of a repository from GitHub's API.

A pass lists issues (with the reviews of pull requests), then the comments and the review comments of the whole
repository, then discussions. Lists are asked for by ``since``, with the ``ETag`` of the last answer: where nothing
changed, a pass is four requests, three of which GitHub does not count. No list tells what was deleted or transferred: a
pass for changes asks for those issues again that were confirmed longest ago.

Discussions and what is asked again are read by GraphQL, which needs a token.

JSON dumps of issues and pull requests are read as well: the REST API's shapes, and those of ``gh issue list --json``
(``createdAt``, ``author``). The body of an issue is its first message, under the issue's id; each comment, review and
review comment follows under its own.

Sources: docs.github.com/rest (2022-11-28), docs.github.com/graphql.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from nornweave.connect.connectors import GithubSettings
from nornweave.connect.conversation import (
    as_is,
    clean,
    clean_name,
    conversation_document,
    gather_threads,
    load_documents,
    mappings,
    parse_time,
    to_canonical,
)
from nornweave.connect.files.source import FolderSource
from nornweave.connect.mirror.api_client import AnswerError, ApiAnswer, ApiClient, Limits
from nornweave.connect.mirror.feed import (
    PER_PAGE,
    Body,
    Feed,
    FeedRecord,
    Known,
    Pass,
    RecordPage,
    least_confirmed,
    linked,
    pages_of,
    staged,
)
from nornweave.core.errors import DocumentError, SourceUnavailableError
from nornweave.core.membership import EVERYBODY_WHO_ASKS, Grant, named
from nornweave.core.types import Domain, Entry, JsonValue, Listing, Message, digest

API_VERSION = "2022-11-28"
# A pass for changes asks in one request whether this many issues still exist.
AGAIN = 100
_PATHS = {"issues": "issues", "comments": "issues/comments", "review_comments": "pulls/comments"}
_NUMBER = re.compile(r"/(?:issues|pulls|pull)/(\d{1,12})")
# The stored fields of an answer.
_FIELDS = (
    *("id", "node_id", "number", "title", "body", "state", "html_url", "created_at", "updated_at", "submitted_at"),
    *("comments", "path", "line", "original_line"),
)
_PUBLIC = "https://api.github.com"
_LOGIN = re.compile(r"[\w-]{1,100}(\[bot\])?", re.ASCII)
_MAY_NOT_LIST = "who may read is told to those who may write to the repository and are members of its organisation"

log = logging.getLogger(__name__)

_SAID = """
fragment said on DiscussionComment {
  id body createdAt author { login }
  replies(first: 50) { nodes { id body createdAt author { login } } }
}
"""
_DISCUSSIONS = """
query ($owner: String!, $name: String!, $after: String, $field: DiscussionOrderField!, $direction: OrderDirection!) {
  repository(owner: $owner, name: $name) {
    discussions(first: 25, after: $after, orderBy: {field: $field, direction: $direction}) {
      pageInfo { hasNextPage endCursor }
      nodes {
        id number title body url createdAt updatedAt author { login } category { name } isAnswered
        labels(first: 20) { nodes { name } }
        comments(first: 50) { pageInfo { hasNextPage endCursor } nodes { ...said } }
      }
    }
  }
}
"""
_COMMENTS = """
query ($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) {
    discussion(number: $number) {
      comments(first: 50, after: $after) { pageInfo { hasNextPage endCursor } nodes { ...said } }
    }
  }
}
"""
_STILL_THERE = """
query ($owner: String!, $name: String!) { repository(owner: $owner, name: $name) { ASKED } }
fragment numbered on IssueOrPullRequest { ... on Issue { number } ... on PullRequest { number } }
"""
_NEWEST_FIRST = {"field": "UPDATED_AT", "direction": "DESC"}

COMMENT_KEYS = ("comments", "review_comments", "reviewComments", "reviews")
_LISTS = ("issues", "pull_requests", "pulls", "items", "nodes", "comments", "review_comments")
# Of the API, and as people see it; the host may be an enterprise's own.
_API_PATH = re.compile(r"/repos/([\w.-]+/[\w.-]+)(?:/(?:issues|pulls)/(\d+))?")
_WEB_PATH = re.compile(r"//[^/]+/([\w.-]+/[\w.-]+)/(?:issues|pull)/(\d+)")


class GithubFeed(Feed):
    """The issues, pull requests and discussions of one repository."""

    domain = Domain.CONVERSATIONS
    version = "github-api-4"
    parser = staticmethod(conversation_document)

    def __init__(self, settings: GithubSettings, *, limits: Limits | None = None) -> None:
        self._repository = settings.repository or ""
        self._api_url = settings.api_url.rstrip("/")
        self.client = self._client = ApiClient(
            self._api_url,
            headers={"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": API_VERSION},
            token=settings.token,
            token_name=settings.token_name,
            advice=_advice(self._repository, settings.token_name),
            limits=limits,
        )
        self.scope = f"1,{self._api_url},{self._repository}"
        self._graphql = GithubGraphql(self._client, self._repository, self._api_url) if settings.token else None

    def pages(self, state: Pass, known: Known) -> Iterator[RecordPage]:
        notes: dict[str, Any] = dict(state.since or {})
        lists = {name: partial(self._read_list, name, state, known, notes) for name in _PATHS}
        yield from staged(
            state,
            {
                **lists,
                "discussions": partial(self._discussions, state, notes),
                "again": lambda _: self._asked_again(state, known),
            },
            notes,
        )

    def assemble(self, path: str, records: Iterable[tuple[str, Body]], known: Known) -> bytes:  # noqa: ARG002
        """Return an issue with its comments, reviews and review comments."""
        return thread_bytes(path, records, self._repository, GITHUB)

    def readers(self, path: str, known: Known) -> Sequence[Collection[str]]:  # noqa: ARG002
        """Return the readers of the repository."""
        return [(self._principal("repo", self._repository),)]

    def members(self, known: Known) -> Iterator[Grant]:  # noqa: ARG002
        """Yield grants for the readers of the repository: everybody, its organisation's members, or its collaborators.

        For GitHub the collaborators include all people who have access through a team, through the organisation's base
        permission, or as an owner.
        """
        principal = self._principal("repo", self._repository)
        repository = self._client.get(f"repos/{self._repository}").mapping()
        visibility = repository.get("visibility") or ("public" if repository.get("private") is False else "private")
        if visibility == "public":
            yield Grant(principal=principal, members=frozenset({EVERYBODY_WHO_ASKS}))
            return
        lists = [f"repos/{self._repository}/collaborators"]
        if visibility == "internal":
            lists.append(f"orgs/{self._repository.partition('/')[0]}/members")
        try:
            people = [each for address in lists for each in linked(self._client, address)]
        except AnswerError as error:
            if error.status not in (403, 404):
                raise
            yield Grant(principal=principal, unread=f"status {error.status}: {_MAY_NOT_LIST}")
            return
        may = (each for each in people if (as_is(each.get("permissions"), dict) or {}).get("pull") is not False)
        logins = (as_is(each.get("login"), str) or "" for each in may)
        members = frozenset(self._principal("user", login) for login in logins if _LOGIN.fullmatch(login))
        yield Grant(principal=principal, members=members)

    def _principal(self, kind: str, name: str) -> str:
        """Return the name of a principal. On a server other than github.com the name includes the server."""
        own = self._api_url == _PUBLIC
        return named("github", kind, name, "" if own else urlsplit(self._api_url).netloc)

    def _discussions(self, state: Pass, notes: dict[str, Any], cursor: str | None) -> Iterator[RecordPage]:
        if self._graphql:
            yield from self._graphql.discussions(state, notes, cursor)
        else:  # they cannot be read now; stored ones stay
            yield RecordPage(kept=("discussions/",))

    def _asked_again(self, state: Pass, known: Known) -> Iterator[RecordPage]:
        if not state.is_full and self._graphql:
            yield self._graphql.asked_again(least_confirmed(known, "issues/", state.began_at, AGAIN))

    def _read_list(
        self, name: str, state: Pass, known: Known, notes: dict[str, Any], url: str | None
    ) -> Iterator[RecordPage]:
        """Read the list ``name``, such as ``issues``, from the address ``url`` on; from its start if that is ``None``.

        Record in ``notes`` what the next pass needs.
        """
        before = {} if state.is_full else (state.since or {}).get(name) or {}
        for answer, following in pages_of(partial(self._page_of, name, before), url, name):
            if answer.status == 304:
                return
            listed = answer.objects()
            if url is None:
                # An ETag belongs to one page. New items come after a full page and do not change it.
                etag = answer.headers.get("etag") if len(listed) < PER_PAGE else None
                notes[name] = {"at": before.get("at") or answer.since, "etag": etag}
            if not state.is_full:
                notes[name] = _advance_since(notes[name], listed)
            records: tuple[FeedRecord, ...] = ()
            if name == "issues":
                yield from self._issues(listed, known, here=url)
            else:
                records = tuple(record for each in listed for record in _listed_comment(name, each))
            yield RecordPage(records=records, position=following)
            url = following

    def _page_of(self, name: str, before: Mapping[str, Any], url: str | None) -> tuple[ApiAnswer, str | None]:
        headers = {"If-None-Match": before["etag"]} if before.get("etag") else {}
        # Oldest first: what is opened or changed meanwhile comes last and shifts no page.
        parameters: dict[str, str | int] = {"sort": "created", "direction": "asc", "per_page": PER_PAGE}
        if name == "issues":
            parameters["state"] = "all"
        if before.get("at"):
            parameters |= {"sort": "updated", "since": before["at"]}
        address = f"repos/{self._repository}/{_PATHS[name]}"
        first = partial(self._client.get, address, parameters, headers=headers, allowed=frozenset({304}))
        answer = first() if url is None else self._client.get(url)
        return answer, answer.following

    def _issues(self, listed: Sequence[Mapping[str, Any]], known: Known, *, here: str | None) -> Iterator[RecordPage]:
        """Store issues with the data that lists lack: the reviews of pull requests. Also find deleted comments.

        A pull request is stored together with its reviews. A pass that was interrupted therefore asks only for missing
        reviews.
        """
        plain: list[FeedRecord] = []
        confirmed: list[str] = []
        for each in listed:
            record = _issue(each)
            before = known.body(record.key)
            is_new = before is None or before.get("updated_at") != record.body.get("updated_at")
            has_lost = is_new and known.count(f"{record.document}/comment/") > (as_is(each.get("comments"), int) or 0)
            if is_new and ("pull_request" in each or has_lost):
                yield self._with_parts(record, is_pull="pull_request" in each, has_lost=has_lost, here=here)
            else:
                plain.append(record)
                confirmed.append(f"{record.document}/review/")
        yield RecordPage(records=tuple(plain), confirmed=tuple(confirmed), position=here)

    def _with_parts(self, record: FeedRecord, *, is_pull: bool, has_lost: bool, here: str | None) -> RecordPage:
        document, number = record.document, record.document.rpartition("/")[2]
        records, gone = [record], []
        if is_pull:
            gone.append(f"{document}/review/")
            reviews = linked(self._client, f"repos/{self._repository}/pulls/{number}/reviews")
            records += [_comment_record(document, "review", each) for each in reviews if each.get("body")]
        if has_lost:
            gone.append(f"{document}/comment/")
            comments = linked(self._client, f"repos/{self._repository}/issues/{number}/comments")
            records += [_comment_record(document, "comment", each) for each in comments]
        return RecordPage(records=tuple(records), gone=tuple(gone), position=here)


def _issue(content: Mapping[str, Any]) -> FeedRecord:
    document = f"issues/{int(content['number'])}"
    body = {**_kept(content), "labels": [each.get("name") for each in mappings(content.get("labels"))]}
    return FeedRecord(key=f"{document}/0", document=document, body=body)


def _listed_comment(stage: str, content: Mapping[str, Any]) -> Iterator[FeedRecord]:
    """Yield the record of a listed comment. Yield nothing if the comment does not name its issue."""
    about = _NUMBER.search(str(content.get("issue_url") or content.get("pull_request_url") or ""))
    if about is not None:
        yield _comment_record(f"issues/{about[1]}", stage.removesuffix("s"), content)


def _comment_record(document: str, kind: str, content: Mapping[str, Any]) -> FeedRecord:
    return FeedRecord(key=f"{document}/{kind}/{content['id']}", document=document, body=_kept(content))


def _kept(content: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: content[key] for key in _FIELDS if content.get(key) is not None}
    login = (as_is(content.get("user"), dict) or {}).get("login")
    count = (as_is(content.get("reactions"), dict) or {}).get("total_count")
    return {**kept, "user": {"login": login}, "reactions": {"total_count": count or 0}}


def _advance_since(since: Mapping[str, Any], listed: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return ``since`` with the time of the newest change.

    The old ETag is removed, because it belongs to another list.
    """
    newest = max((str(each.get("updated_at") or "") for each in listed), default="")
    return {"at": newest, "etag": None} if newest > since["at"] else dict(since)


def _advice(repository: str, token_name: str) -> Mapping[int, str]:
    return {
        403: f"not allowed; {token_name} needs read access to issues and pull requests",
        404: f"not found; check that {repository!r} exists, and that {token_name} may read it if it is private",
        410: f"gone; {repository!r} has its issues turned off",
    }


class GithubGraphql:
    """GraphQL requests for one repository. GitHub answers them only with a token."""

    def __init__(self, client: ApiClient, repository: str, api_url: str) -> None:
        self._client = client
        self._repository = repository
        self._address = f"{api_url.removesuffix('/v3')}/graphql"

    def discussions(self, state: Pass, notes: dict[str, Any], cursor: str | None) -> Iterator[RecordPage]:
        """Read the discussions.

        A full pass reads all of them; other passes stop at the newest discussion that is stored.

        Args:
            notes: updated here for the next pass.
            cursor: the cursor of the first page to read; ``None`` for the start of the list.
        """
        before = {} if state.is_full else (state.since or {}).get("discussions") or {}
        order = {"field": "CREATED_AT", "direction": "ASC"} if state.is_full else _NEWEST_FIRST

        def ask(after: str | None) -> tuple[list[dict[str, Any]] | None, str | None]:
            answer, repository = self._query(_DISCUSSIONS + _SAID, {"after": after, **order})
            connection = repository.get("discussions") if repository else None
            if not isinstance(connection, dict):
                return None, None
            nodes = mappings(connection.get("nodes"))
            if after is None:
                newest = nodes[0].get("updatedAt") if nodes and not state.is_full else None
                notes["discussions"] = {"at": newest or before.get("at") or answer.since}
            fresh = [each for each in nodes if str(each.get("updatedAt") or "") >= (before.get("at") or "")]
            return fresh, _next(connection) if len(fresh) == len(nodes) else None

        for fresh, following in pages_of(ask, cursor, "discussions"):
            if fresh is None:
                yield RecordPage(kept=("discussions/",))
                return
            records = tuple(record for each in fresh for record in self._discussion(each))
            gone = tuple(f"discussions/{each['number']}/" for each in fresh)
            yield RecordPage(records=records, gone=gone, position=following)

    def asked_again(self, numbers: Sequence[str]) -> RecordPage:
        """Ask which of some issues and pull requests still exist. The API's lists do not show deletions."""
        asked = " ".join(f"n{each}: issueOrPullRequest(number: {each}) {{ ...numbered }}" for each in numbers)
        _, there = self._query(_STILL_THERE.replace("ASKED", asked), {}) if numbers else (None, None)
        if there is None:
            return RecordPage()
        is_there = {each: str((there.get(f"n{each}") or {}).get("number")) == each for each in numbers}
        return RecordPage(
            confirmed=tuple(f"issues/{each}/" for each in numbers if is_there[each]),
            gone=tuple(f"issues/{each}/" for each in numbers if not is_there[each]),
        )

    def _discussion(self, content: Mapping[str, Any]) -> Iterator[FeedRecord]:
        document = f"discussions/{content['number']}"

        def ask(after: str | None) -> tuple[list[dict[str, Any]], str | None]:
            comments = content.get("comments") or {}
            if after is not None:
                _, repository = self._query(_COMMENTS + _SAID, {"number": content["number"], "after": after})
                comments = ((repository or {}).get("discussion") or {}).get("comments") or {}
            return mappings(comments.get("nodes")), _next(comments)

        state = "answered" if content.get("isAnswered") else "open"
        kept = {key: content.get(key) for key in ("id", "number", "title", "body", "createdAt", "updatedAt", "author")}
        labels = [each.get("name") for each in mappings((content.get("labels") or {}).get("nodes"))]
        opening = {**kept, "html_url": content.get("url"), "state": state, "labels": labels}
        yield FeedRecord(key=f"{document}/0", document=document, body=opening)
        for each in (each for page, _ in pages_of(ask, None, document) for each in page):
            for said in (each, *mappings((each.get("replies") or {}).get("nodes"))):
                body = {key: said.get(key) for key in ("id", "body", "createdAt", "author")}
                yield FeedRecord(key=f"{document}/comment/{said['id']}", document=document, body=body)

    def _query(self, query: str, variables: Mapping[str, JsonValue]) -> tuple[ApiAnswer, Mapping[str, Any] | None]:
        """Ask GraphQL about the repository. Return the HTTP answer, and the repository's data in it.

        The data is ``None`` if the token may not read the repository.

        Raises:
            SourceUnavailableError: GraphQL answers with another error.
        """
        owner, _, name = self._repository.partition("/")
        body = {"query": query, "variables": {"owner": owner, "name": name, **variables}}
        answer = self._client.post(self._address, body)
        content = answer.mapping()
        repository = (as_is(content.get("data"), dict) or {}).get("repository")
        errors = mappings(content.get("errors"))
        if isinstance(repository, dict):  # one of several requested objects is missing
            errors = [each for each in errors if each.get("type") != "NOT_FOUND"]
        if errors and {each.get("type") for each in errors} <= {"FORBIDDEN", "INSUFFICIENT_SCOPES"}:
            log.warning("discussions of %s are left out: %s", self._repository, errors[0].get("message"))
            return answer, None
        if errors or not isinstance(repository, dict):
            problem = errors[0].get("message") if errors else "no repository in the answer"
            raise SourceUnavailableError(f"discussions of {self._repository}: {str(problem)[:300]}")
        return answer, repository


def _next(connection: Mapping[str, Any]) -> str | None:
    """Return the cursor of the next page of a GraphQL connection; ``None`` on the last page."""
    page = connection.get("pageInfo") or {}
    return page.get("endCursor") if page.get("hasNextPage") else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """One issue or pull request. If ``opening`` is ``None``, only its comments are known."""

    repository: str | None
    number: str
    opening: Message | None
    comments: tuple[Message, ...]
    title: str = ""
    state: str | None = None
    labels: tuple[str, ...] = ()
    url: str | None = None
    updated_at: datetime | None = None


def read_issue(content: Mapping[str, Any], comments: Iterable[Mapping[str, Any]] = ()) -> Issue:
    """Read one issue with its embedded comments and with further comments.

    The comments are sorted by time. A comment without content, such as a bare approval, is left out.
    """
    repository, number = _place(content)
    embedded = [each for key in COMMENT_KEYS for each in mappings(_nodes(content.get(key)))]
    said = [message for each in (*embedded, *comments) if (message := _comment_message(each)) is not None]
    title = clean_name(as_is(content.get("title"), str) or "")
    body = clean(as_is(content.get("body"), str) or "")
    opening = _message(content, f"{title}\n\n{body}" if body else title)
    return Issue(
        repository=repository,
        number=number,
        opening=opening if opening.body else None,
        comments=tuple(sorted(said, key=lambda each: each.timestamp or datetime.max.replace(tzinfo=UTC))),
        title=title,
        state=(as_is(content.get("state"), str) or "").lower() or None,
        labels=tuple(_labels(content)),
        url=as_is(content.get("html_url") or content.get("url"), str),
        updated_at=parse_time(content.get("updated_at") or content.get("updatedAt")),
    )


def _place(content: Mapping[str, Any]) -> tuple[str | None, str]:
    """Return the repository of an issue (``None`` if no field states it) and its number (``0`` if it is unknown)."""
    repository = number = None
    named = content.get("repository")
    if isinstance(named, dict):
        repository = as_is(named.get("full_name") or named.get("nameWithOwner"), str)
    for key in ("issue_url", "pull_request_url", "issue", "pull_request", "repository_url", "html_url", "url"):
        url = as_is(content.get(key), str) or ""
        match = _API_PATH.search(url) or _WEB_PATH.search(url)
        if match is not None:
            repository, number = repository or match[1], number or match[2]
    given = content.get("number") or content.get("issue_number")
    return repository, str(given) if isinstance(given, int | str) else number or "0"


def _nodes(value: object) -> object:
    return value.get("nodes") if isinstance(value, dict) else value


def _labels(content: Mapping[str, Any]) -> Iterator[str]:
    labels = _nodes(content.get("labels"))
    for label in labels if isinstance(labels, list) else ():
        name = label.get("name") if isinstance(label, dict) else label
        if isinstance(name, str) and name.strip():
            yield clean_name(_last_part(name))


def _comment_message(content: Mapping[str, Any]) -> Message | None:
    body = clean(as_is(content.get("body"), str) or "")
    if not body:
        return None
    path, line = content.get("path"), content.get("line") or content.get("original_line")
    if isinstance(path, str):
        # A review comment says "this", so the commented file and line belong to it.
        body = f"{path}:{line} {body}" if isinstance(line, int) else f"{path} {body}"
    return _message(content, clean(body))


def _last_part(name: str) -> str:
    """Return a name. If it is an address, as in migration archives, return only the last part of the address."""
    return unquote(name.rstrip("/").rpartition("/")[2]) if name.startswith(("https://", "http://")) else name


def _message(content: Mapping[str, Any], body: str) -> Message:
    user = content.get("user") or content.get("author")
    login = user.get("login") if isinstance(user, dict) else user
    moment = next(
        (content[key] for key in ("created_at", "createdAt", "submitted_at", "submittedAt") if key in content), None
    )
    identifier = next((content[key] for key in ("id", "node_id", "number", "url") if content.get(key)), "0")
    return Message(
        id=clean(re.split(r"[/#]", str(identifier))[-1]),
        speaker=clean_name(_last_part(login)) if isinstance(login, str) and login.strip() else "ghost",
        body=body,
        timestamp=parse_time(moment),
        reactions=_reactions(content),
    )


def _reactions(content: Mapping[str, Any]) -> int:
    summary = content.get("reactions")
    if isinstance(summary, dict):
        return max(as_is(summary.get("total_count"), int) or 0, 0)
    groups = mappings(summary if summary is not None else content.get("reactionGroups"))
    return sum(as_is((as_is(each.get("users"), dict) or {}).get("totalCount"), int) or 0 for each in groups)


class Forge(NamedTuple):
    """How a service such as GitHub writes the number of a thread, names its page, and links to its comments."""

    name: str
    mark: str
    page: re.Pattern[str]
    anchor: str


GITHUB = Forge("github", "#", _WEB_PATH, "issuecomment-")


def write_issues(issues: Sequence[Issue], name: str, forge: Forge = GITHUB) -> bytes:
    """Write issues as one conversation. If there are several issues, ``name`` is the title."""
    several = len({issue.repository for issue in issues if issue.repository}) > 1
    messages: list[Message] = []
    for issue in issues:
        thread = f"{issue.repository or ''}#{issue.number}" if several else issue.number
        said = (issue.opening, *issue.comments) if issue.opening else issue.comments
        messages += [replace(each, thread_id=thread, channel=issue.repository) for each in said]
    only = issues[0] if len(issues) == 1 else None
    url = only.url or "" if only else ""
    header: dict[str, JsonValue] = {
        "format": forge.name,
        "title": f"{forge.mark}{only.number} {only.title}".rstrip() if only else name,
        "url": url or None,
        "updated_at": only.updated_at.isoformat() if only and only.updated_at else None,
        "metadata": {
            "source_type": forge.name,
            "tags": sorted({label for issue in issues for label in issue.labels}),
            "state": only.state if only else None,
            "thread_permalink": f"{url}#{forge.anchor}{{id}}" if forge.page.search(url) else None,
        },
    }
    return to_canonical(header, gather_threads(messages))


def thread_bytes(path: str, records: Iterable[tuple[str, Body]], repository: str, forge: Forge) -> bytes:
    """Return the conversation of one thread: its opening, which has the key ``PATH/0``, and its comments."""
    bodies, number = dict(records), path.rpartition("/")[2]
    opening = bodies.pop(f"{path}/0", {})
    place, said = {"full_name": repository}, list(bodies.values())
    content = {"number": number, **opening, "repository": place, "comments": said}
    return write_issues([read_issue(content)], number, forge)


class GithubDumpSource(FolderSource):
    """JSON files of issues and pull requests in the REST API's form, with their comments.

    Each file is one document. But a file with several JSON documents, such as pages of ``gh api --paginate`` or one
    issue per line, gives one document per issue. The path of such a document begins with the path of the file.
    """

    version = "github-5"
    suffixes = (".json", ".jsonl", ".ndjson")
    has_types = False
    parser = staticmethod(conversation_document)

    def list(self) -> Listing:
        """List the files. For a file with several JSON documents, list its issues instead."""
        listed = super().list()
        entries: list[Entry] = []
        problem = listed.problem
        for file in listed.entries:
            try:
                issues, is_paged = self._issues(file.path)
            except DocumentError as error:  # its issues may still be there
                problem = problem or str(error)
                is_paged = False
            if is_paged:
                entries += (
                    replace(file, path=path, gate=digest(write_issues([issue], path)))
                    for path, issue in _paths(file.path, issues).items()
                )
            else:
                entries.append(file)
        return replace(listed, entries=tuple(sorted(entries, key=attrgetter("path"))), problem=problem)

    def fetch(self, entry: Entry) -> bytes:
        """Read one file with its issues as threads, or one issue of a file.

        Raises:
            DocumentError: the JSON is broken, or it contains no issues and no comments. The message names line and
                column of broken JSON.
        """
        file = next(
            (path for path in (entry.path, *map(str, PurePosixPath(entry.path).parents)) if self.mark(path)), ""
        )
        issues, is_paged = self._issues(file or entry.path)
        if is_paged:
            issue = _paths(file, issues).get(entry.path)
            issues = [issue] if issue else []
        return write_issues(issues, PurePosixPath(entry.path).stem)

    def _issues(self, path: str) -> tuple[Sequence[Issue], bool]:
        """Return a file's issues, and whether it holds several JSON documents."""
        documents = load_documents(self.read(path), path)
        return _issues(each for _, document in documents for each in _flat(document)), len(documents) > 1


def _paths(file: str, issues: Sequence[Issue]) -> dict[str, Issue]:
    """Return the issues of a file by document path.

    The path consists of the file's path, the repository if the file has several, and the number of the issue.
    """
    several = len({issue.repository for issue in issues}) > 1
    return {
        "/".join(filter(None, (file, issue.repository if several else None, issue.number))): issue for issue in issues
    }


def _flat(content: object) -> Iterator[dict[str, Any]]:
    """Yield the issues and comments in nested JSON: in lists, pages, ``{"issues": […]}`` and ``{"12": [comments]}``."""
    if isinstance(content, list):
        for each in content:
            yield from _flat(each) if isinstance(each, list) else mappings([each])
    elif isinstance(content, dict):
        if "title" in content or "body" in content:
            yield content
            return
        for key, value in content.items():
            if key in _LISTS:
                yield from mappings(_nodes(value))
            elif key.isdigit():
                yield from ({"number": key, **each} for each in mappings(value))


def _issues(objects: Iterable[Mapping[str, Any]]) -> list[Issue]:
    """Group comments with their issues, in the order of the file.

    Comments whose issue is missing form an issue alone.
    """
    objects = tuple(objects)
    issues = {_place(each): each for each in objects if "title" in each}
    by_number = {number: (repository, number) for repository, number in issues}
    comments: dict[tuple[str | None, str], list[Mapping[str, Any]]] = {}
    for each in objects:
        if "title" not in each and "body" in each:
            repository, number = _place(each)
            about = by_number.get(number) if repository is None else None
            comments.setdefault(about or (repository, number), []).append(each)
    found = [read_issue(content, comments.pop(place, ())) for place, content in issues.items()]
    for (repository, number), said in comments.items():
        found.append(replace(read_issue({}, said), repository=repository, number=number, opening=None))
    return [issue for issue in found if issue.opening is not None or issue.comments]
