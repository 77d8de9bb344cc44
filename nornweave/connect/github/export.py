"""Read GitHub issues and pull requests, and JSON dumps of them.

The REST API's shapes are read, and those of ``gh issue list --json`` (``createdAt``, ``author``). The body of an issue
is its first message, under the issue's id; each comment, review and review comment follows under its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import unquote

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
from nornweave.connect.files.exports import FolderSource
from nornweave.connect.mirror.feed import Body
from nornweave.core.errors import DocumentError
from nornweave.core.types import Entry, JsonValue, Listing, Message, digest

COMMENT_KEYS = ("comments", "review_comments", "reviewComments", "reviews")
_LISTS = ("issues", "pull_requests", "pulls", "items", "nodes", "comments", "review_comments")
# Of the API, and as people see it; the host may be an enterprise's own.
_API_PATH = re.compile(r"/repos/([\w.-]+/[\w.-]+)(?:/(?:issues|pulls)/(\d+))?")
_WEB_PATH = re.compile(r"//[^/]+/([\w.-]+/[\w.-]+)/(?:issues|pull)/(\d+)")


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
    said = [message for each in (*embedded, *comments) if (message := _comment(each)) is not None]
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


def _comment(content: Mapping[str, Any]) -> Message | None:
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
