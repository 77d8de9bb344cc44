"""Read the issues, merge requests and the wiki of a GitLab project from its REST API, version 4.

A pass lists issues, then merge requests: all of them, or those that changed since the last one. A page begins at the
moment at which the one before it ended, so that what goes meanwhile shifts none. Each thread is stored with all of its
comments at once; they are asked for where it changed. A comment that goes changes its thread's count and not its time,
and no list tells of a thread that is gone: a pass for changes asks again for those that were confirmed longest ago.
The wiki is one answer.

Source: docs.gitlab.com/api, /user/permissions and /user/project/issues/confidential_issues.
"""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Any, ClassVar
from urllib.parse import quote, urlsplit

from nornweave.connect.connectors import GitlabSettings
from nornweave.connect.conversation import as_is, conversation_document, load_stored, mappings
from nornweave.connect.github import Forge, thread_bytes
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
from nornweave.core.access import RIGHTS, account
from nornweave.core.errors import DocumentSkipped
from nornweave.core.membership import EVERYBODY_WHO_ASKS, Grant, named
from nornweave.core.types import ContentHash, Document, Domain, Entry, SourceId, digest, freeze
from nornweave.read.file import parse_version, read_document

ISSUES, MERGE_REQUESTS = "issues", "merge_requests"
# A pass for changes asks whether so many issues, and merge requests, are still there, each with one request.
AGAIN = 100
_PUBLIC = "https://gitlab.com"
_LOGIN = re.compile(r"[\w.-]{1,255}", re.ASCII)
_THREAD_PAGE = re.compile(r"/(?:issues|work_items|merge_requests)/\d+$")
_FORGES = {kind: Forge("gitlab", mark, _THREAD_PAGE, "note_") for kind, mark in ((ISSUES, "#"), (MERGE_REQUESTS, "!"))}
_SUFFIXES = {"asciidoc": ".adoc", "org": ".org", "rdoc": ".rdoc"}
_GUEST, _PLANNER, _REPORTER = 10, 15, 20
# By principal: the features of a public project that have to be for everybody so that it is, and the role that is
# needed otherwise. Guests of a private project see neither code nor merge requests.
_READERS: Mapping[str, tuple[Sequence[str], int]] = {
    "issues": ((ISSUES,), _GUEST),
    "confidential": ((), _PLANNER),
    "merges": ((MERGE_REQUESTS, "repository"), _REPORTER),
    "wiki": (("wiki",), _GUEST),
    "code": (("repository",), _REPORTER),
}
_INTERNAL = "whoever has an account may read an internal project, and no list of those is asked for; its members may"


class ProjectFeed(Feed):
    """A base class for feeds of one project. It asks who may read the project."""

    principals: ClassVar[Sequence[str]]

    def __init__(self, settings: GitlabSettings, *, limits: Limits | None = None) -> None:
        self._project, self._url = settings.project or "", settings.url.rstrip("/")
        self._has_rights = RIGHTS in settings.restricted_to
        self.client = self._client = ApiClient(
            f"{self._url}/api/v4",
            token=settings.token,
            token_name=settings.token_name,
            advice=_advice(self._project, settings.token_name),
            limits=limits,
        )
        # Without rights, issues that only some may see are not read: what was read with them is thrown away.
        rights = ["rights"] if self._has_rights else []
        self.scope = json.dumps(["gitlab", 1, self._url, self._project, settings.domain.value, *rights])

    def pages(self, state: Pass, known: Known) -> Iterator[RecordPage]:
        project = self._client.get(f"projects/{quote(self._project, safe='')}").mapping()
        return self._pages(f"projects/{int(project['id'])}", project, state, known)

    @abstractmethod
    def _pages(self, place: str, project: Mapping[str, Any], state: Pass, known: Known) -> Iterator[RecordPage]:
        """Read the issues, merge requests or wiki of a project. ``place`` is the address of the project in the API."""

    def origin(self, known: Known) -> str:  # noqa: ARG002
        """Return the server. Several sources may read projects of the same server."""
        return self._url

    def members(self, known: Known) -> Iterator[Grant]:
        """Yield grants for the members of the project by their roles, including members through groups.

        A public project may be open to everybody. Grants get no later date than the stored issues, because an issue
        that became confidential must not stay open for long.
        """
        project = self._client.get(f"projects/{quote(self._project, safe='')}").mapping()
        unread, people = None, dict[str, Mapping[str, Any]]()
        try:
            listed = linked(self._client, f"projects/{int(project['id'])}/members/all")
            people = {each["username"]: each for each in listed if _is_active(each)}
        except AnswerError as error:
            if error.status not in (401, 403, 404):
                raise
            unread = f"status {error.status}: its members are not told"
        for name in self.principals:
            features, role = _READERS[name]
            is_open = project.get("visibility") == "public" and features
            is_open = is_open and all(project.get(f"{each}_access_level") == "enabled" for each in features)
            inside = (login for login, each in people.items() if (as_is(each.get("access_level"), int) or 0) >= role)
            yield Grant(
                principal=self._principal(name, self._project),
                members=frozenset(
                    {EVERYBODY_WHO_ASKS} if is_open else {self._principal("user", login) for login in inside}
                ),
                verified_at=self._seen_at(known) if name == "issues" else None,
                unread=None if is_open else unread,
            )
        for login, each in people.items():
            if "@" in (email := as_is(each.get("email") or each.get("public_email"), str) or ""):
                yield Grant(principal=self._principal("user", login), members=frozenset({account("email", email)}))
        if project.get("visibility") == "internal":
            yield Grant(principal=self._principal("internal", self._project), unread=_INTERNAL)

    def _seen_at(self, known: Known) -> float:
        """Return the start time of the last complete pass. Before there is one, return the start time of this pass."""
        state = known.state()
        return float((state.since or {}).get("began_at") or state.began_at)

    def _principal(self, kind: str, name: str) -> str:
        """Return the name of a principal. On a server other than gitlab.com the name includes the server."""
        return named("gitlab", kind, name, "" if self._url == _PUBLIC else urlsplit(self._url).netloc)


class GitlabFeed(ProjectFeed):
    """The issues and merge requests of a project."""

    domain = Domain.CONVERSATIONS
    version = "gitlab-1"
    parser = staticmethod(conversation_document)
    principals = ("issues", "confidential", "merges", "code")

    def _pages(self, place: str, project: Mapping[str, Any], state: Pass, known: Known) -> Iterator[RecordPage]:
        notes: dict[str, Any] = {**(state.since or {}), "began_at": state.began_at}
        kinds = [kind for kind in _FORGES if project.get(f"{kind}_access_level") != "disabled"]
        stages = {kind: partial(self._read_list, f"{place}/{kind}", kind, state, known, notes) for kind in kinds}
        again = {f"again {kind}": partial(self._ask_again, f"{place}/{kind}", kind, state, known) for kind in kinds}
        yield RecordPage(listed=tuple(f"{kind}/" for kind in _FORGES if kind not in kinds), position=state.position)
        yield from staged(state, {**stages, **({} if state.is_full else again)}, notes)

    def assemble(self, path: str, records: Iterable[tuple[str, Body]], known: Known) -> bytes:  # noqa: ARG002
        """Return an issue or a merge request with its comments."""
        return thread_bytes(path, records, self._project, _FORGES[path.partition("/")[0]])

    def readers(self, path: str, known: Known) -> Sequence[Collection[str]]:
        """Return who may read a document: the readers of issues, or those of merge requests.

        A confidential issue has fewer readers: its author, its assignees, and members with a sufficient role.
        """
        opening = known.body(f"{path}/0")
        if opening is None:
            return []
        if path.startswith(f"{MERGE_REQUESTS}/"):
            return [(self._principal("merges", self._project),)]
        only = opening.get("only_for")
        people = [self._principal("user", login) for login in only or ()]
        closed = [(self._principal("confidential", self._project), *people)] if only is not None else []
        return [(self._principal("issues", self._project),), *closed]

    def _read_list(
        self, place: str, kind: str, state: Pass, known: Known, notes: dict[str, Any], at: list[Any] | None
    ) -> Iterator[RecordPage]:
        """Read the list of one kind from the position ``at`` on; ``None`` means its start.

        Record in ``notes`` the time from which the next pass reads changes.
        """
        since = None if state.is_full else (state.since or {}).get(kind)
        for answer, following in pages_of(partial(self._page_of, place, since), at, kind):
            if at is None:
                notes[kind] = answer.since
            yield from self._threads(place, kind, answer.objects(), known, here=at, is_changed=since is not None)
            yield RecordPage(position=following)
            at = following

    def _page_of(self, place: str, since: str | None, at: list[Any] | None) -> tuple[ApiAnswer, list[Any] | None]:
        """Ask for a page of the threads that changed after ``since``; of all threads if that is ``None``.

        Return the answer and the next position, which is a moment and a page number; ``None`` after the last page.
        """
        order = "updated" if since else "created"
        after, page = at or (since, 1)
        asked: dict[str, str | int] = {"scope": "all", "state": "all", "order_by": f"{order}_at", "sort": "asc"}
        begins = {f"{order}_after": after} if after else {}
        answer = self._client.get(place, {**asked, **begins, "per_page": PER_PAGE, "page": page})
        if answer.following is None:
            return answer, None
        last = [str(each[f"{order}_at"]) for each in answer.objects()][-1:]
        return answer, [after, page + 1] if last in ([], [after]) else [*last, 1]

    def _threads(
        self,
        place: str,
        kind: str,
        listed: Iterable[Mapping[str, Any]],
        known: Known,
        *,
        here: list[Any] | None = None,
        is_changed: bool = False,
    ) -> Iterator[RecordPage]:
        """Store the threads that differ from their stored version.

        Args:
            is_changed: whether the threads changed recently. Their comments are then read even if the thread's time is
                the same, because GitLab does not update that time for a comment within a minute of a change.
        """
        same, hidden = list[str](), list[str]()
        for content in listed:
            document = f"{kind}/{int(content['iid'])}"
            opening = _opening(content)
            if "only_for" in opening and not self._has_rights:
                hidden.append(f"{document}/")
            elif known.body(f"{document}/0") == opening and not (is_changed and opening["said"]):
                same.append(f"{document}/")
            else:
                yield RecordPage(
                    records=(FeedRecord(key=f"{document}/0", document=document, body=opening),
                             *self._comments(f"{place}/{int(content['iid'])}", document, opening)),
                    gone=(f"{document}/",),
                    position=here,
                )  # fmt: skip
        yield RecordPage(confirmed=tuple(same), gone=tuple(hidden), position=here)

    def _comments(self, place: str, document: str, opening: Body) -> list[FeedRecord]:
        """Return the comments that people wrote, without internal comments."""
        try:
            threads = list(linked(self._client, f"{place}/discussions")) if opening["said"] else []
        except AnswerError as error:
            if error.status != 404:
                raise
            threads = []  # deleted a moment ago; the next pass removes it
        notes = chain.from_iterable(mappings(each.get("notes")) for each in threads)
        return [
            FeedRecord(key=f"{document}/note/{int(each['id'])}", document=document, body=_note(each))
            for each in notes
            if not (each.get("system") or each.get("internal") or each.get("confidential"))
        ]

    def _ask_again(self, place: str, kind: str, state: Pass, known: Known, _: None) -> Iterator[RecordPage]:
        """Ask whether some stored threads still exist, and whether they are unchanged."""
        numbers = least_confirmed(known, f"{kind}/", state.began_at, AGAIN)
        if numbers:
            asked = "&".join((f"scope=all&state=all&per_page={PER_PAGE}", *(f"iids[]={each}" for each in numbers)))
            there = list(linked(self._client, place, asked))
            yield from self._threads(place, kind, there, known)
            gone = set(numbers).difference(str(each["iid"]) for each in there)
            yield RecordPage(gone=tuple(f"{kind}/{each}/" for each in sorted(gone)))


def wiki_document(source_id: SourceId, entry: Entry, raw: bytes, *, domain: Domain) -> Document:
    """Build the document of a wiki page, in the same way as that of a file with the page's format.

    Raises:
        DocumentSkipped: the page is empty.
        DocumentError: the content is too large, or the feed did not write it.
    """
    page = load_stored(raw, entry.path)
    text = as_is(page.get("content"), str) or ""
    if not text.strip():
        raise DocumentSkipped("no text on the page")
    known = {"title": as_is(page.get("title"), str), "url": as_is(page.get("url"), str), "source_type": "gitlab"}
    described = replace(entry, metadata=freeze({**entry.metadata, **known}))
    document = read_document(source_id, described, text.encode("utf-8", "replace"), domain=domain, is_handed_in=True)
    return replace(document, content_hash=ContentHash(digest(raw)))


class GitlabWiki(ProjectFeed):
    """The pages of a project's wiki."""

    domain = Domain.DOCUMENTATION
    version = f"gitlab-wiki-1,{parse_version()}"
    parser = staticmethod(wiki_document)
    options = MappingProxyType({"domain": Domain.DOCUMENTATION})
    principals = ("wiki", "code")

    def _pages(self, place: str, project: Mapping[str, Any], state: Pass, known: Known) -> Iterator[RecordPage]:  # noqa: ARG002
        is_there = project.get("wiki_access_level") != "disabled"
        pages = self._client.get(f"{place}/wikis", {"with_content": 1}).objects() if is_there else []
        base = as_is(project.get("web_url"), str) or f"{self._url}/{self._project}"
        yield RecordPage(records=tuple(_page(each, base) for each in pages), listed=("wiki/",), expected=len(pages))

    def assemble(self, path: str, records: Iterable[tuple[str, Body]], known: Known) -> bytes:  # noqa: ARG002
        """Return a wiki page as JSON."""
        return json.dumps(next(body for _, body in records), ensure_ascii=False, sort_keys=True).encode(
            "utf-8", "replace"
        )

    def readers(self, path: str, known: Known) -> Sequence[Collection[str]]:  # noqa: ARG002
        """Return the readers of the wiki."""
        return [(self._principal("wiki", self._project),)]


def _page(content: Mapping[str, Any], base: str) -> FeedRecord:
    slug, kind = str(content["slug"]), as_is(content.get("format"), str) or ""
    body = {key: as_is(content.get(key), str) or "" for key in ("title", "content")}
    url = f"{base}/-/wikis/{quote(slug)}"
    return FeedRecord(key=f"wiki/{slug}", document=f"{slug}{_SUFFIXES.get(kind, '.md')}", body={**body, "url": url})


def _opening(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of a thread, with GitHub's field names.

    A confidential issue also has its author and assignees.
    """
    author, state = _login(content.get("author")), content.get("state")
    assigned = (_login(each) for each in mappings(content.get("assignees")))
    only = (
        {"only_for": sorted({login for login in (author, *assigned) if login})} if content.get("confidential") else {}
    )
    return {
        "id": int(content["id"]),
        "number": int(content["iid"]),
        "title": as_is(content.get("title"), str),
        "body": as_is(content.get("description"), str),
        "state": "open" if state == "opened" else as_is(state, str),
        "html_url": as_is(content.get("web_url"), str),
        "labels": [each for each in as_is(content.get("labels"), list) or () if isinstance(each, str)],
        "user": {"login": author},
        "created_at": as_is(content.get("created_at"), str),
        "updated_at": as_is(content.get("updated_at"), str),
        "reactions": {"total_count": as_is(content.get("upvotes"), int) or 0},
        "said": as_is(content.get("user_notes_count"), int) or 0,
        **only,
    }


def _note(content: Mapping[str, Any]) -> Body:
    """Return a comment's record, with GitHub's field names, including the commented file and line."""
    place = as_is(content.get("position"), dict) or {}
    return {
        "id": int(content["id"]),
        "body": as_is(content.get("body"), str),
        "user": {"login": _login(content.get("author"))},
        "created_at": as_is(content.get("created_at"), str),
        "path": as_is(place.get("new_path") or place.get("old_path"), str),
        "line": as_is(place.get("new_line") or place.get("old_line"), int),
    }


def _login(person: object) -> str | None:
    login = as_is((as_is(person, dict) or {}).get("username"), str) or ""
    return login if _LOGIN.fullmatch(login) else None


def _is_active(member: Mapping[str, Any]) -> bool:
    """Tell whether a member may use the project.

    The result is ``False`` if the member is blocked or waits for a seat.
    """
    return (
        bool(_login(member)) and member.get("state") == "active" and member.get("membership_state") in (None, "active")
    )


def _advice(project: str, token_name: str) -> Mapping[int, str]:
    return {
        403: f"not allowed; {token_name} needs the scope read_api, and its owner the right to read this",
        404: f"not found; check that {project!r} exists, and that {token_name} may read it if it is private",
    }
