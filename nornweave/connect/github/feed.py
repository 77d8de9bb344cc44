"""Read the issues, pull requests and discussions of a repository from GitHub's API.

A pass lists issues (with the reviews of pull requests), then the comments and the review comments of the whole
repository, then discussions. Lists are asked for by ``since``, with the ``ETag`` of the last answer: where nothing
changed, a pass is four requests, three of which GitHub does not count. No list tells what was deleted or transferred: a
pass for changes asks for those issues again that were confirmed longest ago.

Discussions and what is asked again are read by GraphQL, which needs a token.

Source: docs.github.com/rest (2022-11-28).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from nornweave.connect.connectors import GithubSettings
from nornweave.connect.conversation import as_is, conversation_document, mappings
from nornweave.connect.github.export import GITHUB, thread_bytes
from nornweave.connect.github.graphql import GithubGraphql
from nornweave.connect.mirror.answers import AnswerError, ApiAnswer, Limits
from nornweave.connect.mirror.api_client import ApiClient
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
from nornweave.core.membership import EVERYBODY_WHO_ASKS, Grant, named
from nornweave.core.types import Domain

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
                records = tuple(record for each in listed for record in _comment(name, each))
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


def _comment(stage: str, content: Mapping[str, Any]) -> Iterator[FeedRecord]:
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
