"""Read the pages and blog posts of Confluence Cloud through its REST API.

A pass asks for the spaces, then for pages, then for blog posts, and settles at its end which titles stand above each
page. The first pass brings bodies with the lists. A later full pass lists without bodies and asks only for those whose
version changed; a pass for changes lists the newest first and ends where the last one began. It also lists what is in
the trash, deleted or archived, all of it, because nothing tells when something came there.

Source: developer.atlassian.com/cloud/confluence/rest/v2.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from nornweave.connect.confluence.connector import ConfluenceSettings
from nornweave.connect.confluence.content import (
    Content,
    changed_trails,
    contents_of,
    id_of,
    modified_at,
    page_bytes,
    spaces_of,
)
from nornweave.connect.confluence.document import confluence_document
from nornweave.connect.confluence.lists import (
    SPACE_KEY,
    WITHOUT_BODIES,
    ConfluenceLists,
    PeopleReader,
    endless,
    since_of,
)
from nornweave.connect.conversation import parse_time
from nornweave.connect.mirror.answers import Limits
from nornweave.connect.mirror.atlassian import MAX_REQUESTS, AtlassianSite
from nornweave.connect.mirror.feed import Body, FeedRecord, Known, Pass, RecordPage
from nornweave.core.errors import ConfigError
from nornweave.core.types import Document, Domain, Entry, JsonValue, SourceId
from nornweave.read.isolated import parse_apart

STAGES = ("spaces", "pages", "blogposts", "trails")
# Of a list with bodies: a body may have megabytes. Of one without: as many as the API gives.
WITH_BODIES = 50
# What is written while a list is read may carry a time before that.
_OVERLAP = timedelta(minutes=10)
_MAX_SPACES = 100
_TRAILS_AT_ONCE = 500
# What is not current; blog posts cannot be archived.
_GONE = {"pages": "trashed,deleted,archived", "blogposts": "trashed,deleted"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step(RecordPage):
    """A part of a stage; ``position`` is the cursor of the page to go on with, ``None`` for the first one."""

    position: JsonValue = None
    since: Mapping[str, str] = field(default_factory=dict)
    is_change: bool = False
    is_end: bool = False


class ConfluenceFeed:
    """The pages and blog posts of some spaces, or of all that the account may read."""

    domain = Domain.DOCUMENTATION
    version = "confluence-1"

    def __init__(self, settings: ConfluenceSettings, *, limits: Limits | None = None) -> None:
        """Store the parameters; no request is made yet.

        Raises:
            ConfigError: address, key of a space or token have the wrong form, or there are too many spaces.
        """
        for key in settings.spaces:
            if not SPACE_KEY.fullmatch(key):
                raise ConfigError(f"spaces: {key!r}; expected the key of a space, such as 'ENG'")
        if len(settings.spaces) > _MAX_SPACES:
            found = len(settings.spaces)
            raise ConfigError(f"spaces: {found}; expected at most {_MAX_SPACES}, or none for every space")
        self._spaces = tuple(dict.fromkeys(settings.spaces))
        self._site = AtlassianSite(settings, _advice(settings.token_name), limits)
        self._lists = ConfluenceLists(self._site, self._spaces)
        self._people = PeopleReader(self._site)

    @property
    def scope(self) -> str:
        """What is read."""
        return json.dumps(["confluence", 1, self._site.address, sorted(self._spaces)])

    def pages(self, state: Pass, known: Known) -> Iterator[RecordPage]:
        """Read the spaces; see ``Feed.pages``."""
        self._people = PeopleReader(self._site)
        position = state.position or {
            "stage": STAGES[0],
            "cursor": None,
            "since": dict(state.since or {}),
            "with_bodies": not known.count("body/"),
            "changed": state.is_full,
        }
        first = STAGES.index(position["stage"])
        for number, stage in enumerate(STAGES[first:], start=first):
            cursor = position["cursor"] if number == first else None
            for step in self._read(stage, cursor, position, state, known):
                is_last = step.is_end and number + 1 < len(STAGES)
                position = {
                    **position,
                    "stage": STAGES[number + 1] if is_last else stage,
                    "cursor": None if is_last else step.position,
                    "since": {**position["since"], **step.since},
                    "changed": position["changed"] or step.is_change,
                }
                yield replace(step, position=position, since=position["since"])

    def assemble(self, path: str, records: Iterable[tuple[str, Body]], known: Known) -> bytes:
        """Return a page with its body, the titles above it and the names of those it mentions, as JSON."""
        return page_bytes(path, records, known)

    def parse(self, source_id: SourceId, entry: Entry, raw: bytes) -> Document:
        """Build the document."""
        return parse_apart(confluence_document, source_id, entry, raw)

    def _read(
        self, stage: str, cursor: str | None, position: Mapping[str, Any], state: Pass, known: Known
    ) -> Iterator[_Step]:
        if stage == "spaces":
            yield self._read_spaces(known)
        elif stage == "trails":
            yield from self._trails(known) if position["changed"] else (_Step(is_end=True),)
        elif state.is_full:
            yield from self._all(stage, cursor, known, with_bodies=position["with_bodies"])
        else:
            yield from self._changed(stage, cursor, (state.since or {}).get(stage), known)

    def _read_spaces(self, known: Known) -> _Step:
        records = self._lists.spaces()
        is_change = any(known.body(record.key) != record.body for record in records)
        lost = {key.split("/")[1] for key, _ in known.under("space/")} - {each.key.split("/")[1] for each in records}
        pages = known.under("meta/") if lost else ()
        gone = [key.split("/")[1] for key, page in pages if page.get("space_id") in lost]
        return _Step(
            records=records,
            confirmed=("user/",),
            gone=(*(f"space/{each}/" for each in lost), *_keys_of(gone)),
            is_change=is_change or bool(lost),
            is_end=True,
        )

    def _all(self, stage: str, cursor: str | None, known: Known, *, with_bodies: bool) -> Iterator[_Step]:
        """List everything, by id: what is written meanwhile comes last and shifts no page."""
        parameters = {**self._lists.parameters(known), "sort": "id"}
        parameters |= {"limit": WITH_BODIES, "body-format": "storage"} if with_bodies else {"limit": WITHOUT_BODIES}
        if cursor is None:
            yield _Step(since=self._lists.newest(stage, known))
        spaces = spaces_of(known)
        for _ in range(MAX_REQUESTS):
            content, results, following = self._lists.page_of(stage, parameters, cursor)
            contents = contents_of(results, spaces, self._lists.base(content), stage)
            if with_bodies:
                yield self._stored(contents, known, cursor)
            else:
                yield from self._stored_if_changed(stage, contents, known, cursor)
            yield _Step(position=following, is_end=following is None)
            if following is None:
                return
            cursor = following
        raise endless(stage)

    def _changed(self, stage: str, cursor: str | None, before: str | None, known: Known) -> Iterator[_Step]:
        """List the newest first, back to where the last pass began."""
        parameters = {**self._lists.parameters(known), "sort": "-modified-date", "limit": WITH_BODIES}
        moment = parse_time(before)
        limit = moment - _OVERLAP if moment else None
        spaces = spaces_of(known)
        for _ in range(MAX_REQUESTS):
            content, results, following = self._lists.page_of(stage, parameters, cursor)
            since = since_of(stage, results, before) if cursor is None else {}
            fresh = [each for each in results if limit is None or (modified_at(each) or limit) >= limit]
            contents = contents_of(fresh, spaces, self._lists.base(content), stage)
            is_end = following is None or len(fresh) < len(results)
            yield from self._stored_if_changed(stage, contents, known, cursor)
            if is_end:
                yield from self._removed(stage, known, cursor)
            yield _Step(position=None if is_end else following, since=since, is_end=is_end)
            if is_end:
                return
            cursor = following
        raise endless(stage)

    def _removed(self, stage: str, known: Known, position: str | None) -> Iterator[_Step]:
        """Remove what the site says is not current any more."""
        parameters = {**self._lists.parameters(known), "status": _GONE[stage], "limit": WITHOUT_BODIES}
        cursor: str | None = None
        for _ in range(MAX_REQUESTS):
            _, results, cursor = self._lists.page_of(stage, parameters, cursor, is_optional=True)
            gone = [each for each in map(_id_in, results) if known.body(f"meta/{each}/") is not None]
            if gone:
                yield _Step(gone=_keys_of(gone), position=position, is_change=True)
            if cursor is None:
                return
        raise endless(stage)

    def _trails(self, known: Known) -> Iterator[_Step]:
        """Store the titles above each page where they changed, some pages at a time."""
        changed: list[FeedRecord] = []
        for record in changed_trails(known):
            changed.append(record)
            if len(changed) == _TRAILS_AT_ONCE:
                yield _Step(records=tuple(changed))
                changed = []
        yield _Step(records=tuple(changed), is_end=True)

    def _stored_if_changed(
        self, stage: str, contents: Sequence[Content], known: Known, cursor: str | None
    ) -> Iterator[_Step]:
        """Store a list without bodies: those of other versions are asked for, the others are as they were."""
        same = [each for each in contents if each.is_as(known)]
        changed = [each for each in contents if not each.is_as(known)]
        for start in range(0, len(changed), WITH_BODIES):
            asked = [each.id for each in changed[start : start + WITH_BODIES]]
            parameters: dict[str, str | int] = {"id": ",".join(asked), "limit": WITH_BODIES, "status": "current"}
            content, results, _ = self._lists.page_of(stage, {**parameters, "body-format": "storage"}, None)
            given = contents_of(results, spaces_of(known), self._lists.base(content), stage)
            # What was listed a moment ago and is not given stays as it was: the next full pass decides.
            left = set(asked) - {each.id for each in given}
            yield replace(self._stored(given, known, cursor), kept=_keys_of(sorted(left)))
        yield _Step(
            records=tuple(each.meta for each in same),
            confirmed=tuple(f"{kind}/{each.id}/" for each in same for kind in ("body", "trail")),
            position=cursor,
            is_change=any(known.body(each.meta.key) != each.meta.body for each in same),
        )

    def _stored(self, contents: Sequence[Content], known: Known, cursor: str | None) -> _Step:
        """Store pages with their bodies, and the names of the people in them."""
        records = [record for each in contents for record in (each.meta, each.body())]
        moved = [each for each in contents if not each.is_at_its_place(known)]
        changed = any(known.body(each.meta.key) != each.meta.body for each in contents)
        return _Step(
            records=(*records, *self._people.unknown(contents, known)),
            confirmed=tuple(f"trail/{each.id}/" for each in contents),
            gone=tuple(f"trail/{each.id}/" for each in moved),
            position=cursor,
            is_change=changed,
        )


def _keys_of(identities: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{kind}/{identity}/" for identity in identities for kind in ("meta", "body", "trail"))


def _id_in(content: Mapping[str, Any]) -> str:
    return id_of(content["id"])


def _advice(token_name: str) -> Mapping[int, str]:
    return {
        403: f"not allowed; the account of {token_name} needs to be able to use Confluence and view the spaces",
        404: "not found; check that 'url' is a site of Confluence Cloud (Data Center and Server have another API) and "
        f"that the account of {token_name} may read the spaces",
        410: "gone; this version of the API was removed, and NornWeave needs an update",
    }
