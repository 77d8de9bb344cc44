"""The command line (contract §3). Results on stdout, everything else on stderr; exit 0 done, 1 failed, 2 wrong use."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from nornweave.cli_parts import DomainsOption, JsonOption, messages, output, print_json, settings_of
from nornweave.cli_quality import add_quality_commands
from nornweave.documents import FusionResult
from nornweave.errors import ConfigError, NornWeaveError, QueryError
from nornweave.fusion.records import ConflictStrategy
from nornweave.types import Domain, GenerationId

app = typer.Typer(
    name="nornweave",
    help="Knowledge retrieval over code, documentation, conversations and research that a team can trust.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _configure(
    context: typer.Context,
    config: Annotated[Path, typer.Option(help="The configuration file.")] = Path("nornweave.yaml"),
) -> None:
    logging.basicConfig(
        level=os.environ.get("LOG_LEVEL", "WARNING").upper(), stream=sys.stderr, format="%(levelname)s %(message)s"
    )
    context.obj = config


@app.command()
def sync(
    context: typer.Context,
    domain: DomainsOption = None,
    full: Annotated[bool, typer.Option(help="Read and chunk everything again.")] = False,
    confirm_deletes: Annotated[bool, typer.Option(help="Carry out the removals that were held back.")] = False,
    accept_quality: Annotated[
        bool, typer.Option(help="Publish even what the judged sets say is worse than what is published.")
    ] = False,
    wait: Annotated[float, typer.Option(help="Seconds to wait for another sync of the same domain.", min=0)] = 60,
    as_json: JsonOption = False,
) -> None:
    """Bring the index up to date with the sources and publish it (a Dagster run, visible in its UI)."""
    from nornweave.progress import ProgressBars
    from nornweave.sync import SyncOptions

    settings = settings_of(context)
    from orchestration.instance import open_instance
    from orchestration.runs import materialize

    options = SyncOptions(full=full, confirm_deletes=confirm_deletes, accept_quality=accept_quality, wait_s=wait)
    with ProgressBars(messages) as bars, open_instance(settings) as instance:
        run = materialize(settings, domain or settings.served_domains, options, bars, instance)
    from nornweave.report import print_sync, sync_document, sync_failed

    if as_json:
        print_json(sync_document(run.outcomes))
    else:
        print_sync(output, run.outcomes)
    sys.exit(1 if sync_failed(messages, run.outcomes, run.failed_after) else 0)


@app.command()
def query(
    context: typer.Context,
    text: Annotated[str, typer.Argument(help="What to look for, in your own words or as an identifier.")],
    domain: DomainsOption = None,
    top_k: Annotated[int, typer.Option(help="How many items, 1 to 100.", min=1, max=100)] = 10,
    filters: Annotated[
        list[str] | None,
        typer.Option("--filter", metavar="D.KEY=VALUE", help="Only what passes, e.g. code.language=python."),
    ] = None,
    explain: Annotated[bool, typer.Option(help="Show what each source, weight and bonus gave each item.")] = False,
    text_form: Annotated[
        bool, typer.Option("--text", help="Plain text with a section a domain, as a model would read it.")
    ] = False,
    synthesize: Annotated[bool, typer.Option(help="Let the configured model write an answer that cites.")] = False,
    strategy: Annotated[
        ConflictStrategy | None, typer.Option(metavar="S", help="How conflicts are resolved, e.g. FLAG.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(help="At most so much text, at four characters a token.", min=1)
    ] = None,
    min_score: Annotated[float | None, typer.Option(help="Nothing below this score.", min=0, max=1)] = None,
    diversity: Annotated[
        float | None, typer.Option(help="How much other domains count beside the score.", min=0, max=1)
    ] = None,
    timeout_ms: Annotated[int, typer.Option(help="Answer with what is there after this long.", min=1)] = 5000,
    as_json: JsonOption = False,
) -> None:
    """Search the published generations and fuse what they find into one answer."""
    from nornweave.answer import Question
    from nornweave.engine import Engine
    from nornweave.recall.filters import parse_filter_options
    from nornweave.report import print_answer

    settings = settings_of(context)
    served = domain or settings.served_domains
    declared = {one: settings.domains[one].filters for one in Domain}
    question = Question(
        text=text,
        domains=tuple(dict.fromkeys(domain)) if domain else None,
        top_k=top_k,
        filters=parse_filter_options(filters or [], declared),
        timeout_ms=timeout_ms,
        explain=explain,
        strategy=strategy,
        max_tokens=max_tokens,
        min_score=min_score,
        diversity=diversity,
        synthesize=synthesize,
    )
    with Engine(settings, served, watch=False) as engine:
        answered = engine.answer(question)
    result = answered.document()
    if as_json:
        print_json(result)
    elif text_form:
        output.out(answered.text(settings.fusion.fusion_max_chars_per_source), highlight=False)
    else:
        print_answer(output, result)
    for line in _shortfalls(result):
        messages.print(line, style="yellow", markup=False, soft_wrap=True)
    sys.exit(0 if any(one["searched"] for one in result["coverage"].values()) else 1)


def _shortfalls(result: FusionResult) -> list[str]:
    """Say what was not searched, or not as it should have been."""
    gaps = [f"not searched: {gap['domain_id']}: {gap['reason']}" for gap in result["coverage_gaps"]]
    details = result["synthesis_details"]
    if details and details["reason"]:
        gaps.append(f"no synthesis: {details['reason']}" if result["synthesis"] is None else details["reason"])
    notices = [f"{domain}: {notice}" for domain, one in result["coverage"].items() for notice in one.get("notices", [])]
    return gaps + notices


@app.command()
def status(context: typer.Context, domain: DomainsOption = None, as_json: JsonOption = False) -> None:
    """Show generations, counts, freshness, failed documents, held deletions and the last runs."""
    from nornweave.report import domain_status, print_status

    settings = settings_of(context)
    statuses = {one.value: domain_status(settings, one) for one in domain or settings.served_domains}
    if as_json:
        print_json(statuses)
    else:
        print_status(output, statuses)


@app.command()
def rollback(
    context: typer.Context,
    domain: Annotated[Domain, typer.Argument(help="The domain.", metavar="D")],
    generation: Annotated[
        str | None, typer.Argument(help="The generation; the one before the current if left out.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Point a domain at an older generation; the next sync that finds a change publishes a new one."""
    from nornweave.workspace import store_of

    store = store_of(settings_of(context), domain)
    before = store.current()
    after = store.rollback(GenerationId(generation) if generation else None)
    if as_json:
        print_json({"domain": domain.value, "from": before, "generation": after})
    else:
        output.print(f"{domain.value}: {before} → {after}", highlight=False)


@app.command()
def conflicts(
    context: typer.Context,
    settled: Annotated[bool, typer.Option(help="Also show what was settled.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show what the domains disagree about: both sides, what probably holds, and since when."""
    from nornweave.ledger_book import ledger_document, refresh_ledger
    from nornweave.report import print_ledger

    settings = settings_of(context)
    document = ledger_document(settings, refresh_ledger(settings))
    if as_json:
        print_json(document)
    else:
        print_ledger(output, document, settled=settled)
    for notice in document["notices"]:
        messages.print(notice, style="yellow", markup=False, soft_wrap=True)


@app.command()
def serve(
    context: typer.Context,
    host: Annotated[str, typer.Option(help="Where to listen; anything but this machine needs a token.")] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option(help="FUSION_PORT or 8082, for an agent alone AGENT_PORT or 8081.", min=0, max=65535)
    ] = None,
    agent: Annotated[Domain | None, typer.Option(metavar="D", help="Serve one domain alone, also at the root.")] = None,
    workers: Annotated[
        int | None,
        typer.Option(help="Processes; each holds the index. One a CPU while the index is small.", min=1, max=64),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Serve the HTTP API until Ctrl-C."""
    from api.serving import serve as serve_api
    from api.workers import usual_workers

    settings = settings_of(context)
    announce = (lambda url: print_json({"url": url})) if as_json else None
    count = workers or usual_workers(settings)
    sys.exit(serve_api(settings, host, port, agent, announce=announce, workers=count))


@app.command()
def up(
    context: typer.Context,
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    dagster_port: Annotated[int, typer.Option(help="Port of the Dagster UI.")] = 3000,
) -> None:
    """Start the API and the Dagster UI with its schedule and its sensors, until Ctrl-C."""
    from api.auth import check_listening, service_token
    from api.serving import default_port
    from nornweave.supervisor import up as supervise

    check_listening(host, service_token(os.environ))
    port = default_port(None, os.environ)
    sys.exit(supervise(settings_of(context), host=host, port=port, dagster_port=dagster_port))


add_quality_commands(app)


def main() -> None:
    """Run the command line; errors that NornWeave raises on purpose are messages, not traces."""
    try:
        app()
    except (ConfigError, QueryError) as error:
        messages.print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)
    except (NornWeaveError, ValueError) as error:
        messages.print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
