"""``nornweave access``: who may see a document, whether somebody may, and which rule says so."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from nornweave.cli.options import DomainsOption, JsonOption, messages, settings_of
from nornweave.core.errors import QueryError
from nornweave.core.text.terminal import print_json, print_text
from nornweave.core.types import Domain

if TYPE_CHECKING:
    from nornweave.ask.rights import PlacedDocument
    from nornweave.config import Settings

access_app = typer.Typer(help="Say who may see a document, and why.", no_args_is_help=True)

PathArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="PATH", help="As citations print it; SOURCE/PATH and the end of a path do too.")
]
SourceOption: TypeAlias = Annotated[str | None, typer.Option(metavar="ID", help="The source of the path.")]


@access_app.command()
def who(
    context: typer.Context,
    path: PathArgument,
    source: SourceOption = None,
    domain: DomainsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show who may see a document, and who says so."""
    from nornweave.ask.rights import rights_document, statement_text

    settings = settings_of(context)
    with _document(settings, path, source, domain, as_json=as_json) as placed:
        found = rights_document(settings, placed)
    if as_json:
        print_json(found)
        return
    said = " and ".join(map(statement_text, found["statements"]))
    print_text(f"{placed}: {said or 'for everybody who may ask; nothing restricts it'}")
    operators = [f"operators ({', '.join(found['operators'])})"] if found["operators"] else []
    besides = [*operators, *(["the service token"] if settings.access else []), "the command line"]
    print_text(f"   besides: {', '.join(besides)}")
    for person in found["people"]:
        verdict = "may see it" if person["may_see"] else "may not see it"
        print_text(f"   {person['name']} ({', '.join(person['groups']) or 'in no group'}): {verdict}")
    _print_notices(found["notices"])


@access_app.command()
def can(
    context: typer.Context,
    person: Annotated[str, typer.Argument(help="A name in the file of tokens; with --groups, groups.")],
    path: PathArgument,
    groups: Annotated[bool, typer.Option("--groups", help="PERSON is groups, with commas between them.")] = False,
    source: SourceOption = None,
    domain: DomainsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say whether somebody may see a document, and why; exit 1 for no."""
    from nornweave.ask.rights import decision_document, people_of, person_in, statement_text
    from nornweave.config.load import did_you_mean

    settings = settings_of(context)
    if groups:
        people = [person_in(settings, next(csv.reader([person], skipinitialspace=True), []))]
    else:
        known = people_of(settings)
        people = [each for each in known if each.name == person]
        if not people:
            meant = did_you_mean(person, [each.name for each in known])
            raise QueryError("PERSON", f"no token is {person!r}'s{meant}; --groups takes names of groups instead")
    with _document(settings, path, source, domain, as_json=as_json) as placed:
        found = decision_document(settings, placed, person, people)
    if as_json:
        print_json(found)
    else:
        print_text(
            f"{'yes' if found['may_see'] else 'no'}: {person} {'may' if found['may_see'] else 'may not'} see {placed}"
        )
        for viewer in found["viewers"]:
            print_text(f"   {', '.join(viewer['groups']) or 'in no group'}: {viewer['reason']}")
            for statement in viewer["statements"]:
                met = f"met by {', '.join(statement['met_by'])}" if statement["met_by"] else "not met"
                print_text(f"      {statement_text(statement)}: {met}")
        _print_notices(found["notices"])
    sys.exit(0 if found["may_see"] else 1)


@contextmanager
def _document(
    settings: Settings, path: str, source: str | None, domains: list[Domain] | None, *, as_json: bool
) -> Iterator[PlacedDocument]:
    """Give the one document that is meant; where several may be, list them and end with exit code 2.

    Raises:
        QueryError: none is published there.
    """
    from nornweave.ask.engine import Engine
    from nornweave.ask.rights import documents_at

    with closing(Engine(settings, domains or settings.served_domains)) as engine:  # not started: no encoder is needed
        for agent in engine.agents.values():
            agent.refresh()
        placed = documents_at(engine.agents, path, source)
        if not placed:
            raise QueryError("PATH", f"no document is published at {path!r}; `nornweave find` shows paths")
        if len(placed) > 1:
            messages.print(f"{path} may be any of these; say --source, --domain or more of the path:", style="red")
            if as_json:
                print_json({"candidates": [one.document for one in placed]})
            else:
                for one in placed:
                    print_text(f"   {one}")
            sys.exit(2)
        yield placed[0]


def _print_notices(notices: list[str]) -> None:
    for notice in notices:
        messages.print(notice, style="yellow", soft_wrap=True)
