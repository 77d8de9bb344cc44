"""The command that says what changed between two moments: what ``GET /generations/{a}/diff/{b}`` answers."""

from __future__ import annotations

from typing import Annotated

import typer

from nornweave.cli.options import DOMAIN, JsonOption, settings_of
from nornweave.core.access.viewer import OPERATOR
from nornweave.core.text.terminal import print_json, print_text
from nornweave.core.types import Domain, present
from nornweave.index.generations.moves import read_as_of


def diff(
    context: typer.Context,
    a: Annotated[str, typer.Argument(help="An RFC 3339 time, or a generation such as gen-000012.")],
    b: Annotated[str, typer.Argument(help="The same; usually the later one.")],
    domain: Annotated[
        Domain | None, typer.Option(help="Only this domain: generations are numbered in each.", **DOMAIN)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the documents, facts, conflicts and answers to judged questions that changed between two moments."""
    from evals.sets import judged_questions
    from nornweave.ask.engine import Engine
    from nornweave.ask.views.changes import changes_text

    settings = settings_of(context)
    moments = read_as_of(a, present(), "A"), read_as_of(b, present(), "B")
    with Engine(settings, [domain] if domain else settings.served_domains, watch=False) as engine:
        changes = engine.as_seen_by(OPERATOR).changes.between(*moments, domain, judged_questions)
    if as_json:
        print_json(changes)
    else:
        print_text(changes_text(changes))
