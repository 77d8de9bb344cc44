"""Read the pages and blog posts of Confluence Cloud through its REST API.

A pass asks for the spaces, then for pages, then for blog posts, and settles at its end which titles stand above each
page. The first pass brings bodies with the lists. A later one lists everything without bodies, 250 pages a request, and
asks only for the bodies whose version changed: so it sees whatever came, changed, moved or went, and needs no list of
changes and none of the trash.

Source: developer.atlassian.com/cloud/confluence/rest/v2.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from nornweave.connect.confluence.connector import ConfluenceSettings
from nornweave.connect.confluence.document import (
    Content,
    changed_trails,
    confluence_document,
    contents_of,
    page_bytes,
    spaces_of,
)
from nornweave.connect.confluence.lists import SPACE_KEY, WITHOUT_BODIES, ConfluenceLists, PeopleReader
from nornweave.connect.mirror.answers import Limits
from nornweave.connect.mirror.atlassian import AtlassianSite
from nornweave.connect.mirror.feed import Body, FeedRecord, Known, Pass, RecordPage
from nornweave.core.errors import ConfigError
from nornweave.core.types import Document, Domain, Entry, JsonValue, SourceId
from nornweave.read.isolated import parse_apart

STAGES = ("spaces", "pages", "blogposts", "trails")
# Of a list with bodies: a body may have megabytes. Of one without: as many as the API gives.
WITH_BODIES = 50
_MAX_SPACES = 100
_TRAILS_AT_ONCE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step(RecordPage):
    """A part of a stage; ``position`` is the cursor of the page to go on with, ``None`` for the first one."""

    position: JsonValue = None
    is_end: bool = False


class ConfluenceFeed:
    """The pages and blog posts of some spaces, or of all that the account may read."""

    domain = Domain.DOCUMENTATION
    version = "confluence-2"

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
        return json.dumps(["confluence", 1, self._site.address, sorted(self._spaces)])

    def pages(self, state: Pass, known: Known) -> Iterator[RecordPage]:
        self._people = PeopleReader(self._site)
        position = state.position or {"stage": STAGES[0], "cursor": None, "with_bodies": not known.count("body/")}
        first = STAGES.index(position["stage"])
        for number, stage in enumerate(STAGES[first:], start=first):
            cursor = position["cursor"] if number == first else None
            for step in self._read(stage, cursor, known, with_bodies=position["with_bodies"]):
                is_last = step.is_end and number + 1 < len(STAGES)
                at, following = (STAGES[number + 1], None) if is_last else (stage, step.position)
                position = {**position, "stage": at, "cursor": following}
                yield replace(step, position=position)

    def assemble(self, path: str, records: Iterable[tuple[str, Body]], known: Known) -> bytes:
        """Return a page with its body, the titles above it and the names of those it mentions, as JSON."""
        return page_bytes(path, records, known)

    def parse(self, source_id: SourceId, entry: Entry, raw: bytes) -> Document:
        return parse_apart(confluence_document, source_id, entry, raw)

    def _read(self, stage: str, cursor: str | None, known: Known, *, with_bodies: bool) -> Iterator[_Step]:
        if stage == "spaces":
            yield _Step(records=self._lists.spaces(), confirmed=("user/",), is_end=True)
        elif stage == "trails":
            yield from self._trails(known)
        else:
            yield from self._contents(stage, cursor, known, with_bodies=with_bodies)

    def _contents(self, stage: str, cursor: str | None, known: Known, *, with_bodies: bool) -> Iterator[_Step]:
        """List everything, by id: what is written meanwhile comes last and shifts no page."""
        parameters = {**self._lists.parameters(known), "sort": "id"}
        parameters |= {"limit": WITH_BODIES, "body-format": "storage"} if with_bodies else {"limit": WITHOUT_BODIES}
        spaces = spaces_of(known)
        for content, results, following in self._lists.pages_of(stage, parameters, cursor):
            contents = contents_of(results, spaces, self._lists.base(content), stage)
            if with_bodies:
                yield self._stored(contents, known, cursor)
            else:
                yield from self._stored_if_changed(stage, contents, known, cursor)
            yield _Step(position=following, is_end=following is None)
            cursor = following

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
            # What was listed a moment ago and is not given stays as it was: the next pass decides.
            left = set(asked) - {each.id for each in given}
            yield replace(self._stored(given, known, cursor), kept=_keys_of(sorted(left)))
        yield _Step(
            records=tuple(each.meta for each in same),
            confirmed=tuple(f"{kind}/{each.id}/" for each in same for kind in ("body", "trail")),
            position=cursor,
        )

    def _stored(self, contents: Sequence[Content], known: Known, cursor: str | None) -> _Step:
        """Store pages with their bodies, and the names of the people in them."""
        records = [record for each in contents for record in (each.meta, each.body())]
        moved = [each for each in contents if not each.is_at_its_place(known)]
        return _Step(
            records=(*records, *self._people.unknown(contents, known)),
            confirmed=tuple(f"trail/{each.id}/" for each in contents),
            gone=tuple(f"trail/{each.id}/" for each in moved),
            position=cursor,
        )


def _keys_of(identities: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{kind}/{identity}/" for identity in identities for kind in ("meta", "body", "trail"))


def _advice(token_name: str) -> Mapping[int, str]:
    return {
        403: f"not allowed; the account of {token_name} needs to be able to use Confluence and view the spaces",
        404: "not found; check that 'url' is a site of Confluence Cloud (Data Center and Server have another API) and "
        f"that the account of {token_name} may read the spaces",
        410: "gone; this version of the API was removed, and NornWeave needs an update",
    }
