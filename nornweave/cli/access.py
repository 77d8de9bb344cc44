"""``nornweave access``: who may see a document, whether somebody may, and which rule says so."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from nornweave.cli.options import DomainsOption, JsonOption, messages, settings_of
from nornweave.config import Settings
from nornweave.core.errors import ConfigError, QueryError, SourceUnavailableError, StoreError
from nornweave.core.text.terminal import counted, print_json, print_text
from nornweave.core.types import Domain

if TYPE_CHECKING:
    from nornweave.ask.rights import Person, RightsDocument

access_app = typer.Typer(help="Say who may see a document, and why.", no_args_is_help=True)

MAX_CANDIDATES = 20
PathArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="PATH", help="As citations print it; SOURCE/PATH and the end of a path do too.")
]


@access_app.command()
def who(
    context: typer.Context,
    path: PathArgument,
    domain: DomainsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show who may see a document, and which settings or metadata say so."""
    from nornweave.ask.rights import people_of

    settings = settings_of(context)
    found = _rights(settings, path, domain, people_of(settings))
    if as_json:
        print_json(found)
        return
    _print_rule(found)
    operators = [f"operators ({', '.join(found['operators'])})"] if found["operators"] else []
    besides = [*operators, *(["the service token"] if settings.access else []), "the command line"]
    print_text(f"   besides: {', '.join(besides)}")
    hidden_from = 0
    for person in found["people"]:
        if "@" in person["name"] and not person["may_see"]:  # a source may know thousands of them
            hidden_from += 1
            continue
        verdict = "may see it" if person["may_see"] else f"may not see it: {person['reason']}"
        print_text(f"   {person['name']} ({', '.join(person['groups']) or 'in no group'}): {verdict}")
    if hidden_from:
        print_text(f"   {hidden_from:,} more, known by an address: may not see it")


@access_app.command()
def can(
    context: typer.Context,
    person: Annotated[
        str, typer.Argument(help="A name in the file of tokens, an address of e-mail; with --groups, groups.")
    ],
    path: PathArgument,
    groups: Annotated[bool, typer.Option("--groups", help="PERSON is groups, with commas between them.")] = False,
    domain: DomainsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say whether a person may see a document with any of their tokens, and why. The exit code is 1 if they may not."""
    from nornweave.ask.rights import people_of, person_in
    from nornweave.config.load import did_you_mean

    settings = settings_of(context)
    if groups:
        people = [person_in(settings, next(csv.reader([person], skipinitialspace=True), []))]
    else:
        known = people_of(settings)
        people = [each for each in known if each.name == person]
        if not people and "@" in person:
            people = [person_in(settings, [person])]
        if not people:
            meant = did_you_mean(person, [each.name for each in known])
            raise QueryError("PERSON", f"no token is {person!r}'s{meant}; --groups takes names of groups instead")
    found = _rights(settings, path, domain, people)
    may_see = any(each["may_see"] for each in found["people"])
    if as_json:
        print_json({"may_see": may_see, **found})
    else:
        print_text("yes" if may_see else "no")
        for each in found["people"]:
            print_text(f"   {person} ({', '.join(each['groups']) or 'in no group'}): {each['reason']}")
        _print_rule(found)
    sys.exit(0 if may_see else 1)


@access_app.command()
def refresh(
    context: typer.Context,
    sources: Annotated[list[str] | None, typer.Argument(help="Ids of sources with 'rights: source'; else all.")] = None,
) -> None:
    """Ask sources for members of groups, without reading documents.

    The exit code is 1 if a source does not list all members. It is 2 if the operator's file of members is broken; the
    sources are asked even then.
    """
    from nornweave.carry.publishing import refresh_workspace
    from nornweave.connect.connectors import open_source
    from nornweave.connect.mirror.mirrored import MirroredSource
    from nornweave.core.access import RIGHTS
    from nornweave.core.membership import read_members

    settings = settings_of(context)
    there = {source.id: source for source in settings.sources if RIGHTS in source.restricted_to}
    if settings.replica_of or not there:
        why = "this is a replica, whose publisher asks" if there else "no source has 'rights: source'"
        raise QueryError("SOURCES", f"there is nothing to ask: {why}")
    if unknown := sorted(set(sources or ()) - there.keys()):
        raise QueryError("SOURCES", f"no source {unknown[0]!r} has 'rights: source'; those are: {', '.join(there)}")
    is_whole = True
    for name in sources or there:
        try:
            opened = open_source(there[name], settings.own_files)
            table = opened.refresh_members() if isinstance(opened, MirroredSource) else None
            problems = table.problems if table else ("it cannot be asked",)
            known = f"{len(table.grants):,} principals" if table else "nothing is known"
        except (ConfigError, SourceUnavailableError, StoreError) as error:
            problems, known = (str(error),), "as before"
        is_whole = is_whole and not problems
        print_text(f"{name}: {known}")
        for problem in problems:
            messages.print(f"{name}: not said now: {problem}", style="yellow", soft_wrap=True)
    refresh_workspace(settings)
    if notice := settings.principals_notice:
        messages.print(f"access: {notice}", style="yellow", soft_wrap=True)
    if settings.access and settings.access.membership.file:
        read_members(settings.access.membership.file)
    sys.exit(0 if is_whole else 1)


def _rights(settings: Settings, path: str, domains: list[Domain] | None, people: Sequence[Person]) -> RightsDocument:
    """Return who may see the only document at a path, and whether each of ``people`` may see it.

    ``domains`` are searched; ``None`` searches all served domains.

    Raises:
        QueryError: no document is published at this path, or several are. The message names the documents.
    """
    from nornweave.ask.engine import Engine
    from nornweave.ask.rights import documents_at, rights_document

    with closing(Engine(settings, domains or settings.served_domains)) as engine:  # not started: no encoder is needed
        for agent in engine.agents.values():
            agent.refresh()
        placed = documents_at(engine.agents, path)
        if not placed:
            raise QueryError("PATH", f"no document is published at {path!r}; `nornweave find` shows paths")
        rights = [rights_document(settings, each, people) for each in placed[:MAX_CANDIDATES]]
    if len(rights) > 1:
        candidates = "".join(f"\n   {_place(each)}" for each in rights)
        more = f"\n   and {len(placed) - len(rights)} more" if len(placed) > len(rights) else ""
        raise QueryError("PATH", f"{path!r} may be any of these; say SOURCE/PATH, or --domain:{candidates}{more}")
    return rights[0]


def _place(found: RightsDocument) -> str:
    return f"{found['domain_id']} {found['source_id']}/{found['source_path']}"


def _print_rule(found: RightsDocument) -> None:
    from nornweave.ask.rights import statement_text

    said = " and ".join(map(statement_text, found["statements"]))
    print_text(f"{_place(found)}: {said or 'for everybody who may ask; nothing restricts it'}")
    for each in found["principals"]:
        state = "" if each["counts"] else "; that is too long ago, nobody is in it"
        when = f"{counted(each['members'], 'member')}, as {each['source_id']} said at {each['verified_at']}{state}"
        print_text(f"   {each['name']}: {when if each['source_id'] else 'no source says who is in it: nobody is'}")
    for notice in found["notices"]:
        messages.print(notice, style="yellow", soft_wrap=True)
