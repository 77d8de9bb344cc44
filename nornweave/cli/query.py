"""Commands that ask the index without a server: ``query``, ``why``, ``find`` and ``diff`` answer as the API does."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from nornweave.ask.search.question import ConflictStrategy, Deadline, Question
from nornweave.cli.options import DOMAIN, DomainsOption, JsonOption, SourcesOption, messages, output, settings_of
from nornweave.core.access import OPERATOR
from nornweave.core.errors import QueryError
from nornweave.core.text.terminal import counted, print_json, print_text
from nornweave.core.types import Domain, present
from nornweave.index.generations.moves import read_as_of

if TYPE_CHECKING:
    from nornweave.ask.fuse.records import Answer
    from nornweave.ask.seen.texts import SeenTexts
    from nornweave.ask.views.answer import FusionResult
    from nornweave.ask.views.texts import FindDocument, NotLookedAtDocument
    from nornweave.config import Settings

Text: TypeAlias = Annotated[str, typer.Argument(help="What to look for, in your own words or as an identifier.")]
TopK: TypeAlias = Annotated[int, typer.Option(help="Number of items, 1 to 100.", min=1, max=100)]
FilterOptions: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--filter", metavar="D.KEY=VALUE", help="Return only items that match, e.g. code.language=python."),
]
Explain: TypeAlias = Annotated[bool, typer.Option(help="Show what each source, weight and bonus gave each item.")]
AsText: TypeAlias = Annotated[
    bool, typer.Option("--text", help="Print plain text with one section per domain, as a model would read it.")
]
Synthesize: TypeAlias = Annotated[bool, typer.Option(help="Let the configured model write an answer with citations.")]
Strategy: TypeAlias = Annotated[
    ConflictStrategy | None, typer.Option(metavar="S", help="How conflicts are resolved, e.g. FLAG.")
]
MaxTokens: TypeAlias = Annotated[
    int | None, typer.Option(help="Return at most this many tokens of text (4 characters each).", min=1)
]
MinScore: TypeAlias = Annotated[float | None, typer.Option(help="Leave out items below this score.", min=0, max=1)]
Diversity: TypeAlias = Annotated[
    float | None, typer.Option(help="Weight of other domains against the score, 0 to 1.", min=0, max=1)
]
Timeout: TypeAlias = Annotated[
    int | None,
    typer.Option(help="Answer after this time with what has arrived; default: fusion_timeout_seconds.", min=1),
]
AsOfOption: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="T", help="Answer from what was published then: an RFC 3339 time, or a generation."),
]


def query(
    context: typer.Context,
    text: Text,
    domain: DomainsOption = None,
    top_k: TopK = 10,
    filters: FilterOptions = None,
    explain: Explain = False,
    text_form: AsText = False,
    synthesize: Synthesize = False,
    strategy: Strategy = None,
    max_tokens: MaxTokens = None,
    min_score: MinScore = None,
    diversity: Diversity = None,
    timeout_ms: Timeout = None,
    as_of: AsOfOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search the published generations and fuse the results into one answer."""
    from nornweave.ask.engine import Engine
    from nornweave.ask.search.filters import parse_filter_options

    settings = settings_of(context)
    read_filters = parse_filter_options(filters or [], {name: settings.domains[name].filters for name in Domain})
    with Engine(settings, domain or settings.served_domains, watch=False) as engine:
        question = Question(  # the clock starts when everything is loaded
            text=text, now=present(), viewer=OPERATOR, query_id=str(uuid.uuid4()), trace_id=uuid.uuid4().hex,
            domains=tuple(dict.fromkeys(domain)) if domain else None, top_k=top_k, filters=read_filters,
            deadline=Deadline(timeout_ms or settings.fusion.timeout_ms), explain=explain, strategy=strategy,
            max_tokens=max_tokens, min_score=min_score, diversity=diversity, synthesize=synthesize,
            as_of=read_as_of(as_of, present(), "--as-of") if as_of else None,
        )  # fmt: skip
        answered = engine.as_seen_by(OPERATOR).answers.answer(question)
    characters = settings.fusion.fusion_max_chars_per_source if text_form else None
    sys.exit(_print_answer(answered, as_json=as_json, characters=characters))


def _print_answer(answered: Answer, *, as_json: bool, characters: int | None) -> int:
    """Print an answer, and return the exit code: 0, or 1 if no domain was searched.

    If ``characters`` is given, print the answer as plain text with at most this many characters per domain.
    """
    from nornweave.ask.answer.text_renderer import render_answer
    from nornweave.ask.views.answer import answer_document
    from nornweave.cli.report import print_answer

    result = answer_document(answered)
    if as_json:
        print_json(result)
    elif characters is not None:
        print_text(render_answer(answered, characters))
    else:
        print_answer(result)
    for line in _shortfalls(answered, result):
        messages.print(line, style="yellow", soft_wrap=True)
    return 0 if any(covered["searched"] for covered in result["coverage"].values()) else 1


def _shortfalls(answered: Answer, result: FusionResult) -> list[str]:
    """Return sentences about domains that were not searched or only in part, and about a missing text."""
    gaps = [f"not searched: {gap.name}: {gap.reason}" for gap in answered.recalled.coverage_gaps]
    details = result["synthesis_details"]
    if details and details["reason"]:
        gaps.append(f"no synthesis: {details['reason']}" if result["synthesis"] is None else details["reason"])
    coverage = result["coverage"].items()
    notices = [f"{domain}: {notice}" for domain, covered in coverage for notice in covered.get("notices", [])]
    return gaps + notices


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
    """Explain why a document is not in the answer to a question, by what margin, and which change would help."""
    from nornweave.ask.engine import Engine
    from nornweave.ask.search.filters import parse_filter_options
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
    if found["hidden"]:
        messages.print(f"not shown: {counted(found['hidden'], 'line')} of hidden text", style="yellow")
    for domain in found["not_searched"]:
        messages.print(f"not searched: {domain['domain_id']}: {domain['reason']}", style="yellow", soft_wrap=True)
    return 0 if found["matches"] else 1


SourceOption: TypeAlias = Annotated[str | None, typer.Option(metavar="ID", help="Only this source.")]


def uses(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="A name of code: add, or Ledger.add for one of several.")],
    source: SourceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find the uses of a name: calls, imports, subclasses, other places; exit 1 if there is none."""
    with _code_texts(settings_of(context)) as (texts, deadline):
        found = texts.uses(name, deadline, source)
    if as_json:
        print_json(found)
    else:
        for definition in found["definitions"]:
            place = f"{definition['source_id']} {definition['path']}:{definition['line']}"
            print_text(f"{place}: defines {definition['name']}")
        for use in found["references"]:
            lines = ",".join(map(str, use["lines"]))
            meant = f"resolved, {use['definition']}" if use["definition"] else "by name"
            print_text(f"{use['source_id']} {use['path']}:{lines}: {use['kind']} ({meant})")
        print_text(f"{found['resolved']} resolved, {found['by_name']} by name, in {found['documents']} files looked at")
    _say_not_looked_at(found["not_looked_at"])
    sys.exit(0 if found["references"] else 1)


def graph(
    context: typer.Context,
    file: Annotated[str, typer.Argument(help="The path of a file of code, as citations print it.")],
    source: SourceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show which files a file imports, and which files import it. The exit code is 1 if the file is not published."""
    with _code_texts(settings_of(context)) as (texts, deadline):
        found = texts.graph(file, deadline, source)
    if found is None:
        messages.print(f"{file}: no such file of code is published", style="red", soft_wrap=True)
        sys.exit(1)
    if as_json:
        print_json(found)
    else:
        for title, files in (("depends on", found["depends_on"]), ("used by", found["used_by"])):
            print_text(f"{title} {len(files)}")
            for other in files:
                print_text(f"   {other['path']}: {', '.join(other['names']) or 'the module'}")
        if found["outside"]:
            print_text(f"outside: {', '.join(found['outside'])}")
    _say_not_looked_at(found["not_looked_at"])


@contextmanager
def _code_texts(settings: Settings) -> Iterator[tuple[SeenTexts, float]]:
    """Yield the texts of the code domain, and the deadline for reading them."""
    from nornweave.ask.engine import Engine

    with closing(Engine(settings, [Domain.CODE])) as engine:  # not started: no encoder is needed
        for agent in engine.agents.values():
            agent.refresh()
        yield engine.as_seen_by(OPERATOR).texts, Deadline(settings.fusion.timeout_ms).at


def _say_not_looked_at(left: list[NotLookedAtDocument]) -> None:
    for each in left:
        count = "some" if each["documents"] is None else each["documents"]
        messages.print(f"not looked at: {count} documents: {each['reason']}", style="yellow", soft_wrap=True)


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
