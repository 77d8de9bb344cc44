"""Read a GitHub repository's discussions by GraphQL, and ask which of its issues still exist.

Source: docs.github.com/graphql.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nornweave.connect.conversation import as_is, mappings
from nornweave.connect.mirror.answers import ApiAnswer
from nornweave.connect.mirror.api_client import ApiClient
from nornweave.connect.mirror.feed import FeedRecord, Pass, RecordPage, pages_of
from nornweave.core.errors import SourceUnavailableError
from nornweave.core.types import JsonValue

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
_AGAIN = """
query ($owner: String!, $name: String!) { repository(owner: $owner, name: $name) { ASKED } }
fragment numbered on IssueOrPullRequest { ... on Issue { number } ... on PullRequest { number } }
"""
_NEWEST_FIRST = {"field": "UPDATED_AT", "direction": "DESC"}


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
        _, there = self._query(_AGAIN.replace("ASKED", asked), {}) if numbers else (None, None)
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
