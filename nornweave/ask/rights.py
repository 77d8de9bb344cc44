"""Who may see a document, and which statements say so.

The decision is the mask's own (``index/searching/visibility.py``): a document is looked for in the generation as the
person sees it, and the statements are those that the mask is made of. Nothing is decided a second time here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from typing_extensions import TypedDict

from nornweave.ask.search.agent import Agent
from nornweave.config import Settings
from nornweave.core.access import (
    ACCESS_NOTICE,
    ANYONE,
    OPERATOR,
    Statement,
    Viewer,
    group_name,
    read_tokens,
)
from nornweave.core.errors import NoGenerationError
from nornweave.core.types import Domain, present
from nornweave.index.searching.counting import RuledDocument

SAID_BY = {
    "document": "the document or what stands beside it says so",
    "source": "nornweave.yaml",
    "index": "nornweave.yaml, as the last sync read it",
}


class StatementDocument(TypedDict):
    """Groups of which a viewer needs one; a key of ``SAID_BY`` says who states it."""

    groups: list[str]
    by: str


class PersonDocument(TypedDict):
    """A token of the file: whose it is, and whether it shows the document."""

    name: str
    groups: list[str]
    may_see: bool


class PlaceDocument(TypedDict):
    """Which published document is meant."""

    domain_id: str
    source_id: str
    source_path: str
    generation: str


class RightsDocument(PlaceDocument):
    """Who may see a document: all statements have to be met; without any, it is for everybody who may ask."""

    unrestricted: bool
    statements: list[StatementDocument]
    operators: list[str]
    people: list[PersonDocument]
    notices: list[str]


class MetStatementDocument(StatementDocument):
    """A statement, and those of somebody's groups that meet it."""

    met_by: list[str]


class ViewerDocument(TypedDict):
    """What decides for somebody in groups; a person with several tokens comes in as each of them."""

    groups: list[str]
    may_see: bool
    reason: str
    statements: list[MetStatementDocument]


class DecisionDocument(PlaceDocument):
    """Whether somebody may see a document."""

    person: str
    may_see: bool
    viewers: list[ViewerDocument]
    notices: list[str]


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who may ask; ``shut_out`` says why they may not."""

    name: str
    viewer: Viewer
    shut_out: str = ""


@dataclass(frozen=True, slots=True)
class PlacedDocument:
    """A published document, and the agent that answers from it."""

    agent: Agent
    ruled: RuledDocument

    def __str__(self) -> str:
        return f"{self.agent.domain.value} {self.ruled.source_id}/{self.ruled.path}"

    @property
    def document(self) -> PlaceDocument:
        """Name it."""
        return {
            "domain_id": self.agent.domain.value,
            "source_id": self.ruled.source_id,
            "source_path": self.ruled.path,
            "generation": str(self.agent.generation.name),
        }

    def is_shown_to(self, person: Person) -> bool:
        """Tell whether what answers this person's questions has the document."""
        place = self.ruled.source_id, self.ruled.path
        with self.agent.generation.use(person.viewer) as generation:
            return not person.shut_out and bool(generation.seen_places([place]))


def documents_at(agents: Mapping[Domain, Agent], path: str, source_id: str | None = None) -> list[PlacedDocument]:
    """Return what a path may mean: the documents at it, or at ``source/path``; without one, those whose paths end so.

    Raises:
        StoreError: what was published of a domain cannot be read.
    """
    placed: list[PlacedDocument] = []
    for agent in agents.values():
        with suppress(NoGenerationError), agent.generation.use(OPERATOR) as generation:
            placed += [PlacedDocument(agent, ruled) for ruled in generation.ruled_documents(path)]
    placed = [each for each in placed if source_id in (None, each.ruled.source_id)]
    return [each for each in placed if path in (each.ruled.path, f"{each.ruled.source_id}/{each.ruled.path}")] or placed


def people_of(settings: Settings) -> list[Person]:
    """Return whom the file of tokens lets in or did, one for each token, by name.

    Raises:
        ConfigError: the file cannot be read.
    """
    access, now = settings.access, present()
    entries = read_tokens(access.tokens).values() if access and access.tokens else ()
    people = [
        Person(
            entry.name or entry.hashed[:15],
            Viewer.in_groups(entry.groups, access.operators if access else (), entry.hashed),
            "" if entry.is_valid(now) else f"the token expired at {entry.expires:%Y-%m-%dT%H:%M:%SZ}",
        )
        for entry in entries
    ]
    return sorted(people, key=lambda person: (person.name, sorted(person.viewer.groups)))


def person_in(settings: Settings, groups: Iterable[str]) -> Person:
    """Return somebody in groups; where no access is configured nobody is in one."""
    names = frozenset(map(group_name, groups))
    viewer = Viewer.in_groups(names, settings.access.operators) if settings.access else ANYONE
    return Person(", ".join(sorted(names)), viewer)


def rights_document(settings: Settings, placed: PlacedDocument) -> RightsDocument:
    """Return who may see a document; raises as ``people_of``."""
    return {
        **placed.document,
        "unrestricted": not placed.ruled.rule,
        "statements": [_statement(settings, placed, statement) for statement in placed.ruled.rule],
        "operators": sorted(settings.access.operators) if settings.access else [],
        "people": [
            {"name": person.name, "groups": sorted(person.viewer.groups), "may_see": placed.is_shown_to(person)}
            for person in people_of(settings)
        ],
        "notices": _notices(settings, placed),
    }


def decision_document(
    settings: Settings, placed: PlacedDocument, name: str, people: Sequence[Person]
) -> DecisionDocument:
    """Return whether somebody may see a document, by any of their tokens."""
    viewers = [_decided(settings, placed, person) for person in people]
    return {
        **placed.document,
        "person": name,
        "may_see": any(viewer["may_see"] for viewer in viewers),
        "viewers": viewers,
        "notices": _notices(settings, placed),
    }


def statement_text(statement: StatementDocument) -> str:
    """Say whom a statement allows, and who makes it."""
    return f"for {' or '.join(statement['groups']) or 'nobody'} ({SAID_BY[statement['by']]})"


def _statement(settings: Settings, placed: PlacedDocument, statement: Statement) -> StatementDocument:
    configured = settings.restricted_sources(placed.agent.domain).get(placed.ruled.source_id, ())
    makers = {
        "document": placed.ruled.own,
        "source": [frozenset(map(group_name, configured))] if configured else [],
    }
    by = next((maker for maker, rule in makers.items() if statement in rule), "index")
    return {"groups": sorted(statement), "by": by}


def _decided(settings: Settings, placed: PlacedDocument, person: Person) -> ViewerDocument:
    groups = person.viewer.groups
    statements: list[MetStatementDocument] = [
        {**_statement(settings, placed, statement), "met_by": sorted(statement & groups)}
        for statement in placed.ruled.rule
    ]
    missed = [statement_text(each) for each in statements if not each["met_by"]]
    if person.shut_out:
        reason = person.shut_out
    elif person.viewer.sees_everything and settings.access:
        reason = f"{' and '.join(sorted(groups.intersection(settings.access.operators)))} see everything (operators)"
    elif not statements:
        reason = "nothing restricts it: it is for everybody who may ask"
    else:
        reason = f"not met: {' and '.join(missed)}" if missed else "every statement about it is met"
    return {
        "groups": sorted(groups), "may_see": placed.is_shown_to(person), "reason": reason, "statements": statements
    }  # fmt: skip


def _notices(settings: Settings, placed: PlacedDocument) -> list[str]:
    unread = placed.ruled.metadata.get(ACCESS_NOTICE)
    notices = [f"not understood: {unread}"] if unread else []
    if placed.ruled.rule and settings.access is None:
        notices.append("no 'access:' is configured: nobody is in a group, and only the command line shows it")
    if settings.access and settings.access.oidc:
        notices.append("whom the identity provider puts into groups is not known here: ask with --groups")
    return notices
