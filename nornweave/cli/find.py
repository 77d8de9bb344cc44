"""The command that finds lines: what ``GET /find`` answers, without a server."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from nornweave.ask.search.question import Deadline
from nornweave.cli.options import DomainsOption, JsonOption, SourcesOption, messages, settings_of
from nornweave.core.access.viewer import OPERATOR
from nornweave.core.errors import QueryError
from nornweave.core.text.terminal import print_json, print_text

if TYPE_CHECKING:
    from nornweave.ask.views.texts import FindDocument


def find(
    context: typer.Context,
    text: Annotated[str, typer.Argument(help="What a line holds, letter by letter.")],
    regex: Annotated[bool, typer.Option("--regex", help="TEXT is a regular expression of RE2.")] = False,
    domain: DomainsOption = None,
    source: SourcesOption = None,
    path_glob: Annotated[
        str | None, typer.Option(metavar="GLOB", help="Only documents at such paths, e.g. 'src/**'.")
    ] = None,
    document: Annotated[str | None, typer.Option(metavar="PATH", help="Only the document at this path.")] = None,
    ignore_case: Annotated[bool, typer.Option("--ignore-case", "-i", help="Match upper and lower case.")] = False,
    limit: Annotated[int, typer.Option(help="At most so many lines.", min=1, max=1000)] = 100,
    as_json: JsonOption = False,
) -> None:
    """Find lines in the published documents by exact text or by a regular expression; exit 1 if there is none."""
    from nornweave.ask.engine import Engine
    from nornweave.ask.search.records import FindQuery
    from nornweave.index.searching.finding import MAX_PATTERN_CHARACTERS, LinePattern

    if not 0 < len(text) <= MAX_PATTERN_CHARACTERS or {"\n", "\r", "\0"} & set(text):
        raise QueryError("text", f"expected one line of 1 to {MAX_PATTERN_CHARACTERS} characters")
    filters = {**({"source": source} if source else {}), **({"path_glob": path_glob} if path_glob else {})}
    query = FindQuery(
        pattern=LinePattern(text, regex, ignores_case=ignore_case), limit=limit,
        domains=tuple(domain or ()), filters=filters, document=document,
    )  # fmt: skip
    settings = settings_of(context)
    with closing(Engine(settings, domain or settings.served_domains)) as engine:  # not started: no encoder is needed
        for agent in engine.agents.values():
            agent.refresh()
        found = engine.as_seen_by(OPERATOR).texts.find(query, Deadline(settings.fusion.timeout_ms).at)
    sys.exit(_print_lines(found, as_json=as_json))


def _print_lines(found: FindDocument, *, as_json: bool) -> int:
    if as_json:
        print_json(found)
    else:
        for match in found["matches"]:
            place = f"{match['domain_id']} {match['source_id']} {match['source_path']}:{match['line']}"
            print_text(f"{place}: {match['text'].strip()}")
    if found["truncated"]:
        messages.print("there are more lines, or the time was up; narrow it down, or raise --limit", style="yellow")
    for domain in found["not_searched"]:
        messages.print(f"not searched: {domain['domain_id']}: {domain['reason']}", style="yellow", soft_wrap=True)
    return 0 if found["matches"] else 1
