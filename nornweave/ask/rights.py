"""Who may see a document, and the statements behind that.

The decision is the mask's own (``index/searching/visibility.py``): a document is looked for in the generation as the
person sees it, and the statements are those of the mask. Nothing is decided a second time here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from typing_extensions import TypedDict

from nornweave.ask.search.agent import Agent
from nornweave.config import Settings
from nornweave.core.access import (
    ACCESS_NOTICE,
    ANYONE,
    OPERATOR,
    RIGHTS,
    Rule,
    Statement,
    Viewer,
    account,
    group_name,
    is_met,
    is_of_rights,
    is_principal,
    read_tokens,
)
from nornweave.core.errors import NoGenerationError
from nornweave.core.membership import Reached, expanded
from nornweave.core.text.dates import utc_text
from nornweave.core.types import Domain, present
from nornweave.index.searching.counting import RuledDocument

SAID_BY = {
    "document": "the document or what stands beside it says so",
    "source": "nornweave.yaml",
    "index": "nornweave.yaml, as the last sync read it",
    "rights": "the source lets them read it",
    "unread": "the source has not said whom it lets read it",
}


class StatementDocument(TypedDict):
    """Groups of which a viewer needs one. ``by`` tells who made the statement, as a key of ``SAID_BY``."""

    groups: list[str]
    by: str


class PersonDocument(TypedDict):
    """A person with groups, whether they may see a document, and the reasons."""

    name: str
    groups: list[str]
    may_see: bool
    reason: str


class PrincipalDocument(TypedDict):
    """The direct members of a principal. ``verified_at`` is ``None`` if nothing is known of it."""

    name: str
    members: int
    verified_at: str | None
    counts: bool
    source_id: str | None


class RightsDocument(TypedDict):
    """Who may see a document. A viewer must meet all statements; without any, everybody may see it."""

    domain_id: str
    source_id: str
    source_path: str
    generation: str
    unrestricted: bool
    statements: list[StatementDocument]
    principals: list[PrincipalDocument]
    operators: list[str]
    people: list[PersonDocument]
    notices: list[str]


@dataclass(frozen=True, slots=True)
class Person:
    """A person who may ask.

    Attributes:
        shut_out: why the person may not ask; empty if they may.
        reached: principal → how the person belongs to it.
    """

    name: str
    viewer: Viewer
    shut_out: str = ""
    reached: Mapping[str, Reached] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlacedDocument:
    """A published document, and the agent of its domain."""

    agent: Agent
    ruled: RuledDocument

    def is_shown_to(self, person: Person) -> bool:
        """Tell whether this person may see the document."""
        with self.agent.generation.use(person.viewer) as generation:
            return not person.shut_out and bool(generation.seen_places([(self.ruled.source_id, self.ruled.path)]))


def documents_at(agents: Mapping[Domain, Agent], path: str) -> list[PlacedDocument]:
    """Return the documents at a path or ``source/path``; if there are none, those whose paths end with it.

    Args:
        path: it may end with line numbers, as in citations.

    Raises:
        StoreError: a published generation cannot be read.
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
    """Return a person for each token in the file of tokens, and for each e-mail address that memberships name.

    People are sorted by name. Expired tokens are included; addresses that a token names are not repeated.

    Raises:
        ConfigError: the file of tokens cannot be read.
    """
    access, now, memberships = settings.access, present(), settings.memberships
    if access is None:
        return []
    entries = read_tokens(access.tokens).values() if access.tokens else ()
    people = [
        Person(
            entry.name or entry.hashed[:15],
            Viewer.in_groups(expanded(memberships, entry.groups), access.operators, entry.hashed),
            "" if entry.is_valid(now) else f"the token expired at {entry.expires:%Y-%m-%dT%H:%M:%SZ}",
            memberships.reached(entry.groups) if memberships else {},
        )
        for entry in entries
    ]
    held = frozenset[str]().union(*(entry.groups for entry in entries))
    addresses = memberships.addresses() if memberships else ()
    people += (person_in(settings, [each]) for each in addresses if account("email", each) not in held)
    return sorted(people, key=lambda person: (person.name, sorted(person.viewer.groups)))


def person_in(settings: Settings, names: Iterable[str]) -> Person:
    """Return a person with these groups; without ``access`` in the configuration nobody has groups.

    Args:
        names: groups, e-mail addresses (with ``@``) or accounts (``slack:user:U1``).
    """
    given = [group_name(name) for name in names]
    accounts = frozenset(name for name in given if is_principal(name))
    groups = frozenset(account("email", name) if "@" in name else name for name in given if not is_principal(name))
    if settings.access is None:
        return Person(", ".join(sorted(given)), ANYONE)
    memberships = settings.memberships
    viewer = Viewer.in_groups(expanded(memberships, groups, accounts), settings.access.operators)
    reached = memberships.reached(groups, accounts) if memberships else {}
    return Person(", ".join(sorted(given)), viewer, reached=reached)


def rights_document(settings: Settings, placed: PlacedDocument, people: Sequence[Person]) -> RightsDocument:
    """Return who may see a document, and whether each of some people may."""
    access, ruled = settings.access, placed.ruled
    unread = ruled.metadata.get(ACCESS_NOTICE)
    notices = [f"not understood: {unread}"] if unread else []
    if access is None and not is_met(ruled.rule, ANYONE.groups):
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
        "principals": _principals(settings, ruled.rule),
        "operators": sorted(access.operators) if access else [],
        "people": [
            {
                "name": person.name,
                "groups": _shown_groups(person),
                "may_see": placed.is_shown_to(person),
                "reason": _reason(settings, placed, person),
            }
            for person in people
        ],
        "notices": notices,
    }


def statement_text(statement: StatementDocument) -> str:
    """Return a sentence about a statement: the groups that it allows, and its origin."""
    return f"for {' or '.join(statement['groups']) or 'nobody'} ({SAID_BY[statement['by']]})"


def _statement(settings: Settings, placed: PlacedDocument, statement: Statement) -> StatementDocument:
    restricted = settings.restricted_sources(placed.agent.domain).get(placed.ruled.source_id, ())
    configured = frozenset(map(group_name, restricted)) - {RIGHTS}
    if is_of_rights(statement):
        by = "rights"
    elif statement in placed.ruled.own:
        by = "unread" if not statement and RIGHTS in restricted else "document"
    elif not statement:
        by = "unread"
    else:
        by = "source" if statement == configured else "index"
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
    ways = [_way(person, min(statement & groups)) for statement in rule if is_of_rights(statement)]
    met = f"every statement about it is met{'; ' * bool(ways)}{'; '.join(ways)}"
    return met if rule else "nothing restricts it: it is for everybody who may ask"


def _way(person: Person, principal: str) -> str:
    """Return how a person is a member of a principal, and the source of that membership."""
    chain, said_by = [principal], ""
    while reached := person.reached.get(chain[-1]):
        said_by = said_by or reached.said_by
        chain.append(reached.member)
    return f"{' has '.join(map(_shown, chain))}{f' ({said_by} says so)' if said_by else ''}"


def _shown_groups(person: Person) -> list[str]:
    """Return a person's groups and proved accounts, without those that follow from membership."""
    return sorted(map(_shown, person.viewer.groups - person.reached.keys()))


def _shown(name: str) -> str:
    return name.removeprefix(account("email", ""))


def _principals(settings: Settings, rule: Rule) -> list[PrincipalDocument]:
    """Return the known members of each principal in a rule."""
    memberships = settings.memberships
    stated = memberships.known() if memberships else {}
    names = sorted({name for statement in rule if is_of_rights(statement) for name in statement})
    found: list[PrincipalDocument] = []
    for name in names:
        known = stated.get(name)
        found.append(
            {
                "name": name,
                "members": len(known.members) if known else 0,
                "verified_at": utc_text(datetime.fromtimestamp(known.verified_at, UTC), "seconds") if known else None,
                "counts": known is not None and known.counts,
                "source_id": known.source_id if known else None,
            }
        )
    return found
