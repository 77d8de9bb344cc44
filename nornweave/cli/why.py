"""The command that says why a document is not in an answer: what ``POST /why`` answers, without a server."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Annotated

import typer

from nornweave.ask.search.question import Deadline, Question
from nornweave.cli.options import DomainsOption, JsonOption, messages, output, settings_of
from nornweave.cli.query import FilterOptions, Text, TopK
from nornweave.core.access.viewer import OPERATOR
from nornweave.core.text.terminal import print_json
from nornweave.core.types import Domain, present


def why(
    context: typer.Context,
    text: Text,
    path: Annotated[str, typer.Argument(metavar="PATH[:LINE]", help="As citations print it.")],
    source: Annotated[str | None, typer.Option(metavar="ID", help="The source of the path.")] = None,
    domain: DomainsOption = None,
    top_k: TopK = 10,
    filters: FilterOptions = None,
    as_json: JsonOption = False,
) -> None:
    """Say why a document is not in the answer to a question, by what margin, and what would lift it."""
    from nornweave.ask.engine import Engine
    from nornweave.ask.search.filter_options import parse_filter_options
    from nornweave.ask.why import read_place

    settings = settings_of(context)
    read_filters = parse_filter_options(filters or [], {name: settings.domains[name].filters for name in Domain})
    with Engine(settings, watch=False) as engine:
        question = Question(
            text=text, now=present(), viewer=OPERATOR, domains=tuple(dict.fromkeys(domain)) if domain else None,
            top_k=top_k, filters=read_filters, deadline=Deadline(settings.fusion.timeout_ms),
        )  # fmt: skip
        found = engine.as_seen_by(OPERATOR).answers.why(question, replace(read_place(path), source_id=source))
    if found is None:
        messages.print(f"{path}: no such document or line is published", style="red", soft_wrap=True)
        sys.exit(1)
    if as_json:
        print_json(found)
        return
    output.print(found["words"])
    for retriever, place in found["retrievers"].items():
        output.print(f"   {retriever}: rank {place}")
    if found["rank"]:
        margin = f", {found['margin']:.3f} below the last that is shown" if found["margin"] else ""
        output.print(f"   rank {found['rank']}{margin}")
    if not found["shown"]:
        output.print(f"   what lifts it: {found['change'] or 'nothing that was tried'}", soft_wrap=True)
