"""Who may see a document, and which statements say so.

The decision is the mask's own (``index/searching/visibility.py``): a document is looked for in the generation as the
person sees it, and the statements are those that the mask is made of. Nothing is decided a second time here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from typing_extensions import TypedDict

from nornweave.ask.search.agent import Agent
from nornweave.config import Settings
from nornweave.core.access import ACCESS_NOTICE, ANYONE, OPERATOR, Statement, Viewer, group_name, is_met, read_tokens
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
    """Somebody in groups, whether they may see a document, and what decides."""

    name: str
    groups: list[str]
    may_see: bool
    reason: str


class RightsDocument(TypedDict):
    """Who may see a document: all statements have to be met; without any, it is for everybody who may ask."""

    domain_id: str
    source_id: str
    source_path: str
    generation: str
    unrestricted: bool
    statements: list[StatementDocument]
    operators: list[str]
    people: list[PersonDocument]
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

    def is_shown_to(self, person: Person) -> bool:
        """Tell whether what answers this person's questions has the document."""
        with self.agent.generation.use(person.viewer) as generation:
            return not person.shut_out and bool(generation.seen_places([(self.ruled.source_id, self.ruled.path)]))


def documents_at(agents: Mapping[Domain, Agent], path: str) -> list[PlacedDocument]:
    """Return what a path may mean: the documents at it, or at ``source/path``; without one, those whose paths end so.

    Args:
        path: also with the lines behind it, as citations have them.

    Raises:
        StoreError: what was published of a domain cannot be read.
    """
    placed: list[PlacedDocument] = []
    for agent in agents.values():
        with suppress(NoGenerationError), agent.generation.use(OPERATOR) as generation:
            placed += [PlacedDocument(agent, ruled) for ruled in generation.ruled_documents(path)]
    bare = re.sub(r":\d+(-\d+)?$", "", path)
    if not placed and bare != path:
        return documents_at(agents, bare)
    return [each for each in placed if path in (each.ruled.path, f"{each.ruled.source_id}/{each.ruled.path}")] or placed


def people_of(settings: Settings) -> list[Person]:
    """Return whom the file of tokens lets in or did, one for each token, by name.

    Raises:
        ConfigError: the file cannot be read.
    """
    access, now = settings.access, present()
    if access is None or access.tokens is None:
        return []
    people = [
        Person(
            entry.name or entry.hashed[:15],
            Viewer.in_groups(entry.groups, access.operators, entry.hashed),
            "" if entry.is_valid(now) else f"the token expired at {entry.expires:%Y-%m-%dT%H:%M:%SZ}",
        )
        for entry in read_tokens(access.tokens).values()
    ]
    return sorted(people, key=lambda person: (person.name, sorted(person.viewer.groups)))


def person_in(settings: Settings, groups: Iterable[str]) -> Person:
    """Return somebody in groups; where no access is configured nobody is in one."""
    names = frozenset(map(group_name, groups))
    viewer = Viewer.in_groups(names, settings.access.operators) if settings.access else ANYONE
    return Person(", ".join(sorted(names)), viewer)


def rights_document(settings: Settings, placed: PlacedDocument, people: Sequence[Person]) -> RightsDocument:
    """Return who may see a document, and whether some people may."""
    access, ruled = settings.access, placed.ruled
    unread = ruled.metadata.get(ACCESS_NOTICE)
    notices = [f"not understood: {unread}"] if unread else []
    if ruled.rule and access is None:
        notices.append("no 'access:' is configured: nobody is in a group, and only the command line shows it")
    if access and access.oidc:
        notices.append("whom the identity provider puts into groups is not known here: ask with --groups")
    return {
        "domain_id": placed.agent.domain.value,
        "source_id": ruled.source_id,
        "source_path": ruled.path,
        "generation": str(placed.agent.generation.name),
        "unrestricted": not ruled.rule,
        "statements": [_statement(settings, placed, each) for each in ruled.rule],
        "operators": sorted(access.operators) if access else [],
        "people": [
            {
                "name": person.name,
                "groups": sorted(person.viewer.groups),
                "may_see": placed.is_shown_to(person),
                "reason": _reason(settings, placed, person),
            }
            for person in people
        ],
        "notices": notices,
    }


def statement_text(statement: StatementDocument) -> str:
    """Say whom a statement allows, and who makes it."""
    return f"for {' or '.join(statement['groups']) or 'nobody'} ({SAID_BY[statement['by']]})"


def _statement(settings: Settings, placed: PlacedDocument, statement: Statement) -> StatementDocument:
    configured = settings.restricted_sources(placed.agent.domain).get(placed.ruled.source_id, ())
    is_configured = bool(configured) and statement == frozenset(map(group_name, configured))
    by = "document" if statement in placed.ruled.own else "source" if is_configured else "index"
    return {"groups": sorted(statement), "by": by}


def _reason(settings: Settings, placed: PlacedDocument, person: Person) -> str:
    if person.shut_out:
        return person.shut_out
    groups, rule = person.viewer.groups, placed.ruled.rule
    if person.viewer.sees_everything and settings.access:
        return f"{' and '.join(sorted(groups.intersection(settings.access.operators)))} see everything (operators)"
    missed = [_statement(settings, placed, statement) for statement in rule if not is_met([statement], groups)]
    if missed:
        return f"not met: {' and '.join(map(statement_text, missed))}"
    return "every statement about it is met" if rule else "nothing restricts it: it is for everybody who may ask"
