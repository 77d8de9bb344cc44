"""Read the issues of Jira Cloud, with their comments, through its REST API.

A pass lists only when each issue changed, a thousand issues a request, and asks for those that are not stored so: it
sees whatever came, changed, moved or went. Texts are JSON (the Atlassian Document Format) and become plain text: code
stays between fences, lists and tables keep their lines; colours, sizes and ids go.

Sources: developer.atlassian.com/cloud/jira/platform/rest/v3: ``search/jql``, ``issue/bulkfetch``, comments of an issue;
developer.atlassian.com/cloud/jira/platform/apis/document/structure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from nornweave.connect.connectors import JiraSettings
from nornweave.connect.conversation import (
    as_is,
    clean,
    clean_name,
    conversation_document,
    mappings,
    parse_time,
    to_canonical,
)
from nornweave.connect.mirror.api_client import AnswerError, Limits, listed
from nornweave.connect.mirror.atlassian import REFUSED, AtlassianSite, group_named, id_of, user_named, with_people
from nornweave.connect.mirror.feed import Body, Feed, FeedRecord, Known, Pass, RecordPage, pages_of
from nornweave.core.access import RIGHTS
from nornweave.core.errors import DocumentSkipped, SourceUnavailableError
from nornweave.core.membership import EVERYBODY_WHO_ASKS, Grant
from nornweave.core.text.dates import since_1970
from nornweave.core.types import Domain, Message

# Issues per request: with their times only, and complete.
BRIEF = 1_000
WHOLE = 50
_API = "rest/api/3"
_SEARCH = f"{_API}/search/jql"
_BULK = f"{_API}/issue/bulkfetch"
_COMMENTS_AT_ONCE = 100
_ORDER = "order by created asc, key asc"
# Jira refuses a query that restricts nothing.
_EVERYTHING = 'created >= "-20000d"'
_FIELDS = (
    *("summary", "description", "environment", "status", "resolution", "issuetype", "priority", "labels", "components"),
    *("reporter", "creator", "created", "updated", "comment", "security"),
)
_SITE = "site/"
_ONLY_CLOUD = "not a site of Jira Cloud; Data Center and Server have another API, which is not read"
_RIGHTS = "browse the projects, and to log in once with a browser if Jira asks for a CAPTCHA"
_MISSING = frozenset({404})
_NOT_TOLD = "its permission scheme cannot be read; the account needs to administer the project"
VALUES = 50

# People nest lists a few levels deep. Deeper nesting is not theirs.
_MAX_DEPTH = 60
_FENCES = re.compile(r"`{3,}")
_INLINE = frozenset(
    {"text", "hardBreak", "mention", "emoji", "date", "status", "inlineCard", "mediaInline", "inlineExtension"}
)
_LISTS = frozenset({"bulletList", "orderedList", "taskList", "decisionList"})
_CARDS = frozenset({"inlineCard", "blockCard", "embedCard"})

Node = Mapping[str, Any]


class JiraFeed(Feed):
    """The issues of some projects, or of all that the account may read."""

    domain = Domain.CONVERSATIONS
    version = "jira-3"
    parser = staticmethod(conversation_document)

    def __init__(self, settings: JiraSettings, *, limits: Limits | None = None) -> None:
        projects = ", ".join(f'"{key}"' for key in dict.fromkeys(settings.projects))
        self._jql = f"{f'project in ({projects})' if projects else _EVERYTHING} {_ORDER}"
        self.client = self._site = AtlassianSite(settings, "Jira", _RIGHTS, limits)
        self._has_token = bool(settings.token)
        self._has_rights = RIGHTS in settings.restricted_to
        # Without rights, issues that only some may see are not read: what was read with them is thrown away.
        rights = ["rights"] if self._has_rights else []
        self.scope = json.dumps(["jira", 2, self._site.address, sorted(set(settings.projects)), *rights])

    def pages(self, state: Pass, known: Known) -> Iterator[RecordPage]:
        if state.position is None:
            yield RecordPage(records=(self._read_site(),))
        at, before = (state.position or {}).get("token"), None
        for issues, following in pages_of(self._search, at, _SEARCH):
            ids = [each.get("id") for each in issues]
            if ids and ids == before:
                raise SourceUnavailableError(f"{_SEARCH}: the same page twice; expected the one after it")
            before = ids
            yield from self._store_changed(issues, known, at)
            yield RecordPage(position={"token": following})
            at = following

    def assemble(self, path: str, records: Iterable[tuple[str, Body]], known: Known) -> bytes:
        bodies = dict(records)
        issue = next((body for key, body in bodies.items() if key.endswith("/0")), None)
        if issue is None:
            raise DocumentSkipped(f"{path}: not read completely; the next sync brings the rest")
        site = (known.body(_SITE) or {}).get("url") or self._site.address
        comments = [body for body in bodies.values() if body is not issue]
        return issue_bytes(issue, comments, path.partition("/")[0], f"{site}/browse/{issue['id']}")

    def origin(self, known: Known) -> str:  # noqa: ARG002
        """Return the address of the site. Several sources may read projects of the same site."""
        return self._site.site

    def readers(self, path: str, known: Known) -> Sequence[Collection[str]]:
        """Return the readers of an issue: those of its project, and those of its security level if it has one."""
        issue = known.body(known.key_of(path) or "")
        if issue is None or "id" not in issue:
            return []
        project = path.partition("/")[0]
        level = [(f"jira:level:{project}:{issue['level']}",)] if "level" in issue else []
        return [(f"jira:project:{project}",), *level]

    def members(self, known: Known) -> Iterator[Grant]:
        """Yield grants that say who may browse the projects, and who is in the security levels and the groups.

        The grants of a project get no later date than the stored security levels, because an issue with a new level
        must not stay open for long.
        """
        return with_people(self._browsers(known), self._in_group, self._about)

    def _browsers(self, known: Known) -> Iterator[Grant]:
        for project in sorted({entry.path.partition("/")[0] for entry in known.documents()}):
            scheme = self._of_project(project, "permissionscheme", {"expand": "permissions"})
            if scheme is None:
                yield Grant(principal=f"jira:project:{project}", unread=_NOT_TOLD)
                continue
            permissions = mappings(scheme.get("permissions"))
            holders = [each for each in permissions if each.get("permission") == "BROWSE_PROJECTS"]
            yield from self._grants_of_holders(f"jira:project:{project}", project, holders, known.state().listed_at)
            security = self._of_project(project, "issuesecuritylevelscheme", {}) or {}
            for level in (id_of(each.get("id")) for each in mappings(security.get("levels"))):
                principal = f"jira:level:{project}:{level}"  # a role in a level is that of the issue's project
                try:
                    members = list(self._values(f"{_API}/issuesecurityschemes/level/member", {"levelId": level}))
                except AnswerError as error:
                    if error.status not in REFUSED:
                        raise
                    yield Grant(principal=principal, unread=f"status {error.status}: the account needs to be an admin")
                    continue
                yield from self._grants_of_holders(principal, project, members)

    def _of_project(self, project: str, what: str, asked: Mapping[str, str | int]) -> Mapping[str, Any] | None:
        """Return a property of a project; ``None`` if it has no such property or the account may not see it."""
        answer = self._site.get(f"{_API}/project/{project}/{what}", asked, allowed=frozenset(REFUSED))
        return None if answer.status in REFUSED else answer.mapping()

    def _grants_of_holders(
        self, principal: str, project: str, permissions: Iterable[Mapping[str, Any]], verified_at: float | None = None
    ) -> Iterator[Grant]:
        """Yield a grant whose members are the holders of the permissions.

        Yield another grant, marked as unread, for each kind of holder that is not supported.
        """
        members: set[str] = set()
        unknown: set[str] = set()
        for holder in (as_is(each.get("holder"), dict) or {} for each in permissions):
            kind, value = (
                str(holder.get("type")),
                as_is(holder.get("value"), str) or as_is(holder.get("parameter"), str),
            )
            found = self._holder(kind, value, project)
            members.update(found or ())
            unknown |= {clean_name(kind)} if found is None else set()
        yield Grant(principal=principal, members=frozenset(members), verified_at=verified_at)
        for kind in sorted(unknown):
            unread = f"who is in it as {kind} is not followed, and does not see it by that"
            yield Grant(principal=f"{principal}:{kind}", unread=unread)

    def _holder(self, kind: str, value: str | None, project: str) -> list[str] | None:
        """Return the people and groups that hold a permission; ``None`` if this kind of holder is not supported."""
        if kind == "anyone":
            return [EVERYBODY_WHO_ASKS]
        if kind in ("user", "group"):
            name = user_named(value) if kind == "user" else group_named(value)
            return [name] if name else None
        if kind == "projectRole":
            role = self._of_project(project, f"role/{id_of(value)}", {})
            actors = mappings(role.get("actors")) if role else []
            users = (user_named((as_is(each.get("actorUser"), dict) or {}).get("accountId")) for each in actors)
            groups = (group_named((as_is(each.get("actorGroup"), dict) or {}).get("groupId")) for each in actors)
            return [name for name in (*users, *groups) if name] if role else None
        if kind == "applicationRole":
            answer = self._site.get(f"{_API}/applicationrole", allowed=frozenset(REFUSED))
            roles = mappings(answer.json()) if answer.status not in REFUSED else []
            chosen = (each for each in roles if value in (None, "", each.get("key")))
            groups = (group_named(one.get("groupId")) for each in chosen for one in mappings(each.get("groupDetails")))
            return [name for name in groups if name] or None
        return None

    def _in_group(self, identity: str) -> Iterator[Mapping[str, Any]]:
        return self._values(f"{_API}/group/member", {"groupId": identity})

    def _about(self, accounts: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        for account in accounts:
            answer = self._site.get(f"{_API}/user", {"accountId": account}, allowed=frozenset(REFUSED))
            if answer.status not in REFUSED:
                yield answer.mapping()

    def _values(self, address: str, asked: Mapping[str, str | int]) -> Iterator[Mapping[str, Any]]:
        """Yield the items of a list over all its pages."""

        def ask(start: int | None) -> tuple[list[dict[str, Any]], int | None]:
            at = start or 0
            content = self._site.get(address, {**asked, "startAt": at, "maxResults": VALUES}).mapping()
            found = listed(content, "values", address)
            return found, None if content.get("isLast") is not False or not found else at + len(found)

        return (each for found, _ in pages_of(ask, None, address) for each in found)

    def _read_site(self) -> FeedRecord:
        """Ask for the site's name, and check that the account may log in.

        The check is necessary because Jira answers an anonymous search with an empty list. That must not look as if all
        issues were deleted.
        """
        content = self._site.get(f"{_API}/serverInfo").mapping()
        if content.get("deploymentType", "Cloud") != "Cloud":
            raise SourceUnavailableError(f"{self._site.address}: {_ONLY_CLOUD}")
        if self._has_token:
            self._site.get(f"{_API}/myself")
        url = as_is(content.get("baseUrl"), str) or ""
        is_address = re.fullmatch(r"https?://[^\s<>\"']{1,300}", url)
        return FeedRecord(key=_SITE, body={"url": url.rstrip("/") if is_address else self._site.address})

    def _search(self, token: str | None) -> tuple[list[dict[str, Any]], str | None]:
        """Return issues with the time of their last change, and the token of the next page; ``None`` at the end."""
        asked = {"jql": self._jql, "fields": ["updated"], "maxResults": BRIEF}
        content = self._site.post(_SEARCH, {**asked, "nextPageToken": token} if token else asked).mapping()
        following = as_is(content.get("nextPageToken"), str) if content.get("isLast") is not True else None
        return listed(content, "issues", _SEARCH), following

    def _store_changed(
        self, issues: Sequence[Mapping[str, Any]], known: Known, token: str | None
    ) -> Iterator[RecordPage]:
        """Store the issues that differ from their stored version, each with its comments. ``token`` is their page."""
        position = {"token": token}
        changed = [id_of(each.get("id")) for each in issues if not _is_as_stored(each, known)]
        same = {id_of(each.get("id")) for each in issues}.difference(changed)
        yield RecordPage(confirmed=_keys(same), position=position)
        for start in range(0, len(changed), WHOLE):
            asked = changed[start : start + WHOLE]
            answer = self._site.post(_BULK, {"issueIdsOrKeys": asked, "fields": list(_FIELDS)})
            given = listed(answer.mapping(), "issues", _BULK)
            gone = _keys(id_of(each.get("id")) for each in given)
            # A listed issue that is not returned stays as stored: the next pass decides.
            kept = tuple(key for key in _keys(asked) if key not in gone)
            records = tuple(record for each in given for record in self._issue(each))
            yield RecordPage(records=records, kept=kept, gone=gone, position=position)

    def _issue(self, content: Mapping[str, Any]) -> Iterator[FeedRecord]:
        """Yield an issue and its comments. If ``rights`` is not set, restricted issues are left out."""
        fields = as_is(content.get("fields"), dict) or {}
        security = fields.get("security")
        if security and not self._has_rights:
            return
        identity, key = id_of(content.get("id")), key_of(content)
        path = f"{key.rpartition('-')[0]}/{key}"
        level = {"level": id_of((as_is(security, dict) or {}).get("id"))} if security else {}
        yield FeedRecord(key=f"issue/{identity}/0", document=path, body={**issue_body(content, fields), **level})
        for each in self._comments(identity, as_is(fields.get("comment"), dict) or {}):
            if not each.get("visibility"):
                body = comment_body(each)
                yield FeedRecord(key=f"issue/{identity}/comment/{body['id']}", document=path, body=body)

    def _comments(self, identity: str, embedded: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Yield all comments of an issue. If there are many, only some are embedded, and the others are requested."""
        address = f"{_API}/issue/{identity}/comment"

        def ask(start: int | None) -> tuple[list[dict[str, Any]], int | None]:
            at = start or 0
            asked: dict[str, str | int] = {"startAt": at, "maxResults": _COMMENTS_AT_ONCE, "orderBy": "created"}
            answer = self._site.get(address, asked, allowed=_MISSING)
            content = answer.mapping() if answer.status not in _MISSING else {}
            comments = mappings(content.get("comments"))
            at += len(comments)
            return comments, at if comments and at < (as_is(content.get("total"), int) or 0) else None

        comments = mappings(embedded.get("comments"))
        if (as_is(embedded.get("total"), int) or 0) <= len(comments):
            yield from comments
        else:
            yield from (each for page, _ in pages_of(ask, None, address) for each in page)


def _is_as_stored(content: Mapping[str, Any], known: Known) -> bool:
    """Tell whether an issue is the same as its stored version. A changed comment also changes the issue's time."""
    before = known.body(f"issue/{id_of(content.get('id'))}/0")
    updated = (as_is(content.get("fields"), dict) or {}).get("updated")
    return before is not None and (before.get("updated"), before.get("id")) == (updated, content.get("key"))


def _keys(identities: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"issue/{identity}/" for identity in sorted(identities))


_KEY = re.compile(r"([A-Za-z][A-Za-z0-9_]{0,99})-[0-9]{1,12}", re.ASCII)
_LATEST = datetime.max.replace(tzinfo=UTC)


def issue_body(content: Mapping[str, Any], fields: Mapping[str, Any]) -> Body:
    """Return an issue's record."""
    components = (_named(each, "name") for each in mappings(fields.get("components")))
    labels = (each for each in as_is(fields.get("labels"), list) or () if isinstance(each, str))
    return {
        "id": key_of(content),
        "summary": _line(fields.get("summary")),
        "description": text_of_adf(fields.get("description")),
        "environment": text_of_adf(fields.get("environment")).strip(),
        "status": _named(fields.get("status"), "name"),
        "resolution": _named(fields.get("resolution"), "name"),
        "type": _named(fields.get("issuetype"), "name"),
        "priority": _named(fields.get("priority"), "name"),
        "names": [name for each in (*labels, *components) if (name := clean_name(each))],
        "author": _named(fields.get("reporter"), "displayName") or _named(fields.get("creator"), "displayName"),
        "created": as_is(fields.get("created"), str),
        "updated": as_is(fields.get("updated"), str),
    }


def comment_body(content: Mapping[str, Any]) -> Body:
    """Return a comment's record."""
    return {
        "id": id_of(content.get("id")),
        "author": _named(content.get("author"), "displayName"),
        "created": as_is(content.get("created"), str),
        "body": text_of_adf(content.get("body")),
    }


def key_of(content: Mapping[str, Any]) -> str:
    """Return the key of an issue.

    Raises:
        ValueError: the key is invalid.
    """
    text = str(content.get("key"))
    if not _KEY.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not the key of an issue")
    return text


def issue_bytes(issue: Body, comments: Sequence[Body], project: str, url: str) -> bytes:
    """Return the conversation of an issue. The id of its first message is the issue's key."""
    key, kind, priority = issue["id"], issue["type"] or None, issue["priority"] or None
    environment = f"Environment: {issue['environment']}" if issue["environment"] else ""
    reported = (part for part in (issue["summary"], issue["description"], environment) if part.strip())
    opening = _message({**issue, "body": "\n\n".join(reported)}, key, project)
    said = sorted((_message(each, key, project) for each in comments), key=_moment)
    header = {
        "format": "jira",
        "title": f"{key} {issue['summary']}".strip(),
        "url": url,
        "updated_at": issue["updated"],
        "metadata": {
            "source_type": "jira",
            "state": issue["status"].lower() or None,
            "tags": list(dict.fromkeys(name for name in (*issue["names"], kind, priority) if name)),
            "issue_type": kind,
            "priority": priority,
            "resolution": issue["resolution"] or None,
            "permalink": url,
            "thread_permalink": f"{url}?focusedCommentId={{id}}",
        },
    }
    return to_canonical(header, [message for message in (opening, *said) if message.body])


def _message(content: Body, key: str, project: str) -> Message:
    return Message(
        id=content["id"],
        speaker=content["author"] or "unknown",
        body=clean(content["body"]),
        thread_id=key,
        timestamp=parse_time(content["created"]),
        channel=project,
    )


def _moment(message: Message) -> tuple[datetime, int, str]:
    return message.timestamp or _LATEST, len(message.id), message.id


def _named(value: object, key: str) -> str:
    return _line((as_is(value, dict) or {}).get(key))


def _line(value: object) -> str:
    return clean_name(as_is(value, str) or "")


def text_of_adf(document: object) -> str:
    """Render a document as text. A string is returned unchanged. Any other value gives an empty text."""
    if isinstance(document, str):
        return document
    return "\n\n".join(_blocks(document, 0)) if isinstance(document, dict) else ""


def _blocks(parent: Node, depth: int) -> Iterator[str]:
    """Yield the blocks of a node that are not blank. Text that stands beside blocks is a separate block."""
    run: list[Node] = []
    for node in mappings(parent.get("content")) if depth < _MAX_DEPTH else ():
        if _kind(node) in _INLINE:
            run.append(node)
            continue
        yield from _paragraph(run)
        run = []
        yield from _block(node, depth + 1)
    yield from _paragraph(run)


def _block(node: Node, depth: int) -> Iterator[str]:
    kind, attributes = _kind(node), _attributes(node)
    if kind == "paragraph":
        yield from _paragraph(mappings(node.get("content")))
    elif kind == "heading":
        level = min(max(as_is(attributes.get("level"), int) or 1, 1), 6)
        yield from (f"{'#' * level} {text}" for text in _paragraph(mappings(node.get("content"))))
    elif kind == "codeBlock":
        yield from _code(node, attributes)
    elif kind in _LISTS:
        yield from _list(node, depth)
    elif kind == "table":
        rows = (" | ".join(_cells(row, depth)) for row in mappings(node.get("content")))
        yield from _unless_blank("\n".join(row for row in rows if row.strip(" |")))
    elif kind == "media" or kind in _CARDS:
        yield from _unless_blank(str(attributes.get("alt") or attributes.get("url") or ""))
    else:
        # Panels, quotes, expands, layouts, extensions: what they hold.
        yield from _unless_blank(as_is(attributes.get("title"), str) or "")
        yield from _blocks(node, depth)


def _code(node: Node, attributes: Node) -> Iterator[str]:
    code = "".join(_inline(mappings(node.get("content")))).strip("\n")
    fence = "`" * (max((len(run) for run in _FENCES.findall(code)), default=2) + 1)
    language = as_is(attributes.get("language"), str) or ""
    if code.strip():
        yield f"{fence}{' '.join(language.split())[:30]}\n{code}\n{fence}"


def _list(node: Node, depth: int) -> Iterator[str]:
    """Yield a list as one block with one line per item.

    If an item has further blocks, they are indented below its line.
    """
    items = []
    number = as_is(_attributes(node).get("order"), int) or 1
    for position, item in enumerate(mappings(node.get("content")), start=max(number, 0)):
        if _kind(item) in _LISTS:
            # Task lists nest without an item around them.
            items += [_indented(block, "  ") for block in _list(item, depth + 1)] if depth < _MAX_DEPTH else []
            continue
        mark = f"{position}. " if node.get("type") == "orderedList" else _mark(item)
        text = "\n".join(_blocks(item, depth))
        if text:
            items.append(mark + _indented(text, " " * len(mark)).lstrip())
    yield from _unless_blank("\n".join(items))


def _mark(item: Node) -> str:
    state = _attributes(item).get("state")
    if item.get("type") != "taskItem":
        return "- "
    return "- [x] " if state == "DONE" else "- [ ] "


def _indented(text: str, blank: str) -> str:
    return "\n".join(blank + line if line else line for line in text.split("\n"))


def _cells(row: Node, depth: int) -> Iterator[str]:
    for cell in mappings(row.get("content")):
        yield " ".join(" ".join(_blocks(cell, depth + 1)).split())


def _paragraph(nodes: Sequence[Node]) -> Iterator[str]:
    yield from _unless_blank("".join(_inline(nodes)).strip())


def _unless_blank(text: str) -> Iterator[str]:
    if text.strip():
        yield text


def _inline(nodes: Sequence[Node]) -> Iterator[str]:
    for node in nodes:
        kind, attributes = _kind(node), _attributes(node)
        if kind == "text":
            yield _marked(as_is(node.get("text"), str) or "", mappings(node.get("marks")))
        elif kind == "hardBreak":
            yield "\n"
        elif kind == "date":
            yield _date(attributes.get("timestamp"))
        else:
            shown = (attributes.get(key) for key in ("text", "alt", "url", "shortName"))
            yield next((each for each in shown if isinstance(each, str) and each), "")


def _marked(text: str, marks: Sequence[Node]) -> str:
    for mark in marks:
        target = as_is(_attributes(mark).get("href"), str)
        if mark.get("type") == "code":
            text = f"`{text}`"
        elif mark.get("type") == "link" and target and target not in text and text.strip():
            text = f"{text} ({target})"
    return text


def _date(timestamp: object) -> str:
    """Return the day of a timestamp, which is a string of milliseconds since 1970."""
    moment = since_1970(str(timestamp), 1_000)
    return moment.date().isoformat() if moment else ""


def _kind(node: Node) -> str:
    return as_is(node.get("type"), str) or ""


def _attributes(node: Node) -> Node:
    return as_is(node.get("attrs"), dict) or {}
