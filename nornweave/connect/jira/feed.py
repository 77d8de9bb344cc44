"""Read the issues of Jira Cloud, with their comments, through its REST API.

The first pass lists whole issues, by the time when they were opened. A later one lists only when each one changed, a
thousand issues a request, and asks for those that did: so it sees whatever came, changed, moved or went.

Source: developer.atlassian.com/cloud/jira/platform/rest/v3: ``search/jql``, ``issue/bulkfetch``, comments of an issue.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from nornweave.connect.conversation import as_is, mappings
from nornweave.connect.jira.connector import JiraSettings
from nornweave.connect.jira.document import comment_body, id_of, is_as_stored, issue_body, jira_document, key_of, loaded
from nornweave.connect.mirror.answers import Limits
from nornweave.connect.mirror.atlassian import MAX_REQUESTS, AtlassianSite, listed
from nornweave.connect.mirror.feed import Body, FeedRecord, Known, Pass, RecordPage
from nornweave.core.errors import ConfigError, DocumentSkipped, SourceUnavailableError
from nornweave.core.types import Document, Domain, Entry, SourceId
from nornweave.read.isolated import parse_apart

# Whole issues, and issues of which only the time is asked for.
WHOLE = 50
BRIEF = 1_000
_API = "rest/api/3"
_COMMENTS_AT_ONCE = 100
_ORDER = "order by created asc, key asc"
# Jira refuses a query that restricts nothing.
_EVERYTHING = 'created >= "-20000d"'
_FIELDS = (
    *("summary", "description", "environment", "status", "resolution", "issuetype", "priority", "labels", "components"),
    *("reporter", "creator", "created", "updated", "comment", "security"),
)
_PROJECT = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}", re.ASCII)
_SITE = "site/"
_MISSING = frozenset({404})


class JiraFeed:
    """The issues of some projects, or of all that the account may read."""

    domain = Domain.CONVERSATIONS
    version = "jira-1"

    def __init__(self, settings: JiraSettings, *, limits: Limits | None = None) -> None:
        """Store the parameters; no request is made yet.

        Raises:
            ConfigError: address, key of a project or token have the wrong form.
        """
        for key in settings.projects:
            if not _PROJECT.fullmatch(key):
                raise ConfigError(f"projects: {key!r}; expected the key of a project, such as 'PAY'")
        self._projects = tuple(dict.fromkeys(settings.projects))
        self._site = AtlassianSite(settings, _advice(settings.token_name), limits)
        self._has_token = bool(settings.token)

    @property
    def scope(self) -> str:
        return json.dumps(["jira", 1, self._site.address, sorted(self._projects)])

    def pages(self, state: Pass, known: Known) -> Iterator[RecordPage]:
        position = state.position or {"token": None, "whole": not known.count("issue/")}
        if state.position is None:
            yield RecordPage(records=(self._read_site(),), position=position)
        for page in self._search(position["token"], is_brief=not position["whole"], known=known):
            yield replace(page, position={**position, "token": page.position})

    def assemble(self, path: str, records: Iterable[tuple[str, Body]], known: Known) -> bytes:
        issue: Body | None = None
        comments = []
        for key, body in records:
            if key.endswith("/0"):
                issue = body
            else:
                comments.append({**body, "body": loaded(body["body"])})
        if issue is None:
            raise DocumentSkipped(f"{path}: not read completely; the next sync brings the rest")
        site = (known.body(_SITE) or {}).get("url") or self._site.address
        content = {
            **issue,
            "description": loaded(issue["description"]),
            "environment": loaded(issue["environment"]),
            "comments": comments,
            "project": path.partition("/")[0],
            "url": f"{site}/browse/{issue['key']}",
        }
        return json.dumps(content, ensure_ascii=False, sort_keys=True).encode("utf-8", "replace")

    def parse(self, source_id: SourceId, entry: Entry, raw: bytes) -> Document:
        return parse_apart(jira_document, source_id, entry, raw)

    def _jql(self) -> str:
        keys = ", ".join(f'"{key}"' for key in self._projects)
        return f"{f'project in ({keys})' if keys else _EVERYTHING} {_ORDER}"

    def _read_site(self) -> FeedRecord:
        """Ask what the site is called, and whether the account is one.

        Jira answers searches of nobody with nothing, which must not be taken for a site where all is deleted.
        """
        content = self._site.get(f"{_API}/serverInfo")
        if content.get("deploymentType", "Cloud") != "Cloud":
            raise SourceUnavailableError(f"{self._site.address}: {_ONLY_CLOUD}")
        if self._has_token:
            self._site.get(f"{_API}/myself")
        url = as_is(content.get("baseUrl"), str) or ""
        is_address = re.fullmatch(r"https?://[^\s<>\"']{1,300}", url)
        return FeedRecord(key=_SITE, document="", body={"url": url.rstrip("/") if is_address else self._site.address})

    def _search(self, token: str | None, *, is_brief: bool, known: Known) -> Iterator[RecordPage]:
        """Yield the parts of the list; their position is the token of the page to go on with."""
        asked: dict[str, Any] = {"jql": self._jql(), "fields": ["updated"] if is_brief else list(_FIELDS)}
        asked["maxResults"] = BRIEF if is_brief else WHOLE
        before: list[object] = []
        for _ in range(MAX_REQUESTS):
            body = {**asked, "nextPageToken": token} if token else asked
            content = self._site.post(f"{_API}/search/jql", body, resumed=token is not None)
            issues = listed(content, "issues", f"{_API}/search/jql")
            ids = [each.get("id") for each in issues]
            if ids and ids == before:
                raise SourceUnavailableError(f"{_API}/search/jql: the same page twice; expected the one after it")
            before = ids
            yield from self._stored(issues, is_brief, known, token)
            token = as_is(content.get("nextPageToken"), str) if content.get("isLast") is not True else None
            yield RecordPage(position=token)
            if token is None:
                return
        raise SourceUnavailableError(f"more than {MAX_REQUESTS:,} pages of issues; expected an end")

    def _stored(
        self, issues: Sequence[Mapping[str, Any]], is_brief: bool, known: Known, token: str | None
    ) -> Iterator[RecordPage]:
        """Store the issues that are not stored as they are now, each with all of its comments at once."""
        same = [each for each in issues if is_as_stored(each, known)]
        changed = [each for each in issues if not is_as_stored(each, known)]
        yield RecordPage(confirmed=tuple(f"issue/{id_of(each)}/" for each in same), position=token)
        for start in range(0, len(changed), WHOLE):
            some: Sequence[Mapping[str, Any]] = changed[start : start + WHOLE]
            kept: tuple[str, ...] = ()
            if is_brief:
                wanted = {"issueIdsOrKeys": [id_of(each) for each in some], "fields": list(_FIELDS)}
                answer = self._site.post(f"{_API}/issue/bulkfetch", wanted)
                given = listed(answer, "issues", f"{_API}/issue/bulkfetch")
                # What was listed a moment ago and is not given stays as it was: the next pass decides.
                left = {id_of(each) for each in some} - {id_of(each) for each in given}
                kept, some = tuple(f"issue/{identity}/" for identity in sorted(left)), given
            records = tuple(record for each in some for record in self._issue(each))
            gone = tuple(f"issue/{id_of(each)}/" for each in some)
            yield RecordPage(records=records, kept=kept, gone=gone, position=token)

    def _issue(self, content: Mapping[str, Any]) -> Iterator[FeedRecord]:
        """Yield an issue and its comments; nothing of one that only some may see."""
        fields = as_is(content.get("fields"), dict) or {}
        if fields.get("security"):
            return
        identity, key = id_of(content), key_of(content)
        path = f"{key.rpartition('-')[0]}/{key}"
        yield FeedRecord(key=f"issue/{identity}/0", document=path, body=issue_body(identity, key, fields))
        for each in self._comments(identity, as_is(fields.get("comment"), dict) or {}):
            if not each.get("visibility"):
                body = comment_body(each)
                yield FeedRecord(key=f"issue/{identity}/comment/{id_of(each)}", document=path, body=body)

    def _comments(self, identity: str, embedded: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Yield the comments of an issue; the search embeds only some of many."""
        comments = mappings(embedded.get("comments"))
        if (as_is(embedded.get("total"), int) or 0) <= len(comments):
            yield from comments
            return
        address, start = f"{_API}/issue/{identity}/comment", 0
        for _ in range(MAX_REQUESTS):
            parameters: dict[str, str | int] = {"startAt": start, "maxResults": _COMMENTS_AT_ONCE, "orderBy": "created"}
            content = self._site.get(address, parameters, allowed=_MISSING)
            comments = mappings(content.get("comments"))
            yield from comments
            start += len(comments)
            if not comments or start >= (as_is(content.get("total"), int) or 0):
                return
        raise SourceUnavailableError(f"{address}: more than {MAX_REQUESTS:,} pages of comments; expected an end")


_ONLY_CLOUD = "not a site of Jira Cloud; Data Center and Server have another API, which is not read"


def _advice(token_name: str) -> Mapping[int, str]:
    return {
        403: f"not allowed; the account of {token_name} needs to be able to use Jira and browse the projects, and to "
        "log in once with a browser if Jira asks for a CAPTCHA",
        404: f"not found; check 'url': {_ONLY_CLOUD}",
        410: "gone; this version of the API was removed, and NornWeave needs an update",
    }
