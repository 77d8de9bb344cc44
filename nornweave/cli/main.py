"""The command line. Results on stdout, everything else on stderr; exit code 0 done, 1 failed, 2 wrong use.

``sync --strict`` ends with 3 when nothing but single documents failed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nornweave import __version__
from nornweave.cli import quality, receipt
from nornweave.cli.access import access_app
from nornweave.cli.agents import agents_app
from nornweave.cli.drift import drift
from nornweave.cli.init import init
from nornweave.cli.operate import dagster, doctor, publish, roles, token, worker
from nornweave.cli.options import (
    DOMAIN,
    DomainsOption,
    GroupedCommands,
    JsonOption,
    SourcesOption,
    messages,
    output,
    run,
    settings_of,
)
from nornweave.cli.push import push
from nornweave.cli.query import diff, find, graph, query, uses, why
from nornweave.core.errors import ConfigError, StoreError
from nornweave.core.installation import use_bundled_packages
from nornweave.core.process import end_silently, heed_signals
from nornweave.core.text.terminal import configure_logging, print_json
from nornweave.core.types import Domain, GenerationId

if TYPE_CHECKING:
    from nornweave.config import Settings

app = typer.Typer(
    name="nornweave",
    cls=GroupedCommands,
    help="Knowledge retrieval over code, documentation, conversations and research that a team can trust.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nornweave {__version__}")
        raise typer.Exit


@app.callback()
def _configure(
    context: typer.Context,
    config: Annotated[
        Path, typer.Option(help="The configuration file.", envvar="NORNWEAVE_CONFIG", show_envvar=False)
    ] = Path("nornweave.yaml"),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print results and errors only.")] = False,
    verbose: Annotated[
        int, typer.Option("--verbose", "-v", count=True, help="Log what is done; twice, all.", show_default=False)
    ] = 0,
    _: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    if quiet or verbose:  # in the environment, for the processes that a command starts
        os.environ["LOG_LEVEL"] = "ERROR" if quiet else "INFO" if verbose == 1 else "DEBUG"
    configure_logging(os.environ)
    context.obj = config


@app.command()
def sync(
    context: typer.Context,
    domain: DomainsOption = None,
    source: SourcesOption = None,
    dry_run: Annotated[bool, typer.Option(help="Say what would be read and removed, and stop.")] = False,
    full: Annotated[bool, typer.Option(help="List, read and chunk everything again.")] = False,
    confirm_deletes: Annotated[bool, typer.Option(help="Carry out the removals that were held back.")] = False,
    accept_quality: Annotated[bool, typer.Option(help="Publish even if judged sets say that quality dropped.")] = False,
    strict: Annotated[
        bool, typer.Option(help="Exit 3 when a document cannot be read and nothing else failed.")
    ] = False,
    wait: Annotated[float, typer.Option(help="Seconds to wait for another sync of the same domain.", min=0)] = 60,
    progress_file: Annotated[Path | None, typer.Option(hidden=True)] = None,
    as_json: JsonOption = False,
) -> None:
    """Bring the index up to date with the sources and publish it (a Dagster run, visible in its UI)."""
    from nornweave.cli.sync import preview_sync, run_sync
    from nornweave.ingest.records import SyncOptions

    settings, sources = settings_of(context), tuple(source or ())
    options = SyncOptions(
        full=full, confirm_deletes=confirm_deletes, accept_quality=accept_quality, sources=sources, wait_s=wait
    )
    if settings.replica_of:
        raise ConfigError(f"{settings.file}: is a replica of {settings.replica_of}; sync where it is published")
    domains = settings.domains_of(options.sources, domain)
    if dry_run:
        sys.exit(preview_sync(settings, domains, options, as_json=as_json))
    _check_databases(settings, os.environ)
    sys.exit(run_sync(settings, domains, options, progress_file, strict=strict, as_json=as_json))


def _check_databases(settings: Settings, environment: Mapping[str, str]) -> None:
    """Fail at once if a PostgreSQL server does not answer, before slow imports."""
    from nornweave.carry.wiring import database_checks

    for check in database_checks(settings, environment).values():
        check()


app.command()(query)


@app.command()
def status(
    context: typer.Context,
    domain: DomainsOption = None,
    access: Annotated[bool, typer.Option("--access", help="List hidden documents, and why they are hidden.")] = False,
    left_out: Annotated[bool, typer.Option("--left-out", help="List all files that are not read, and why.")] = False,
    source: Annotated[str | None, typer.Argument(help="With --left-out: the source; default: all.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show generations, counts, freshness, failed documents, held deletions and the last runs."""
    from nornweave.ask.views.status import access_document, left_out_document, status_document
    from nornweave.cli.report import print_access, print_left_out, print_status

    settings = settings_of(context)
    if source and not left_out:
        raise ConfigError(f"{source}: a source is named with --left-out")
    if left_out:
        document = left_out_document(settings, source)
        if as_json:
            print_json(document)
        else:
            print_left_out(document["sources"])
        return
    if access:
        seen = {served.value: access_document(settings, served) for served in domain or settings.served_domains}
        if as_json:
            print_json(seen)
        else:
            print_access(seen)
        return
    statuses = {served.value: status_document(settings, served) for served in domain or settings.served_domains}
    if as_json:
        print_json(statuses)
    else:
        print_status(statuses)


@app.command()
def rollback(
    context: typer.Context,
    domain: Annotated[Domain, typer.Argument(help="The domain.", metavar="D", **DOMAIN)],
    generation: Annotated[
        str | None, typer.Argument(help="The generation; default: the one before the current.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Point a domain at an older generation; the next sync that finds a change publishes a new one."""
    from nornweave.carry.wiring import store_of

    store = store_of(settings_of(context), domain)
    before = None
    with suppress(StoreError):  # the pointer is damaged: going back mends it
        before = store.current()
    after = store.rollback(GenerationId(generation) if generation else None)
    if as_json:
        print_json({"domain": domain.value, "from": before, "generation": after})
    else:
        output.print(f"{domain.value}: {before} → {after}")


conflicts_app = typer.Typer()
app.add_typer(conflicts_app, name="conflicts", rich_help_panel=None)
app.add_typer(access_app, name="access")
app.add_typer(agents_app, name="agents")


@conflicts_app.callback(invoke_without_command=True)
def conflicts(
    context: typer.Context,
    settled: Annotated[bool, typer.Option(help="Also show what was settled.")] = False,
    dismissed: Annotated[bool, typer.Option(help="Show what somebody said is no conflict instead.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show conflicts between the domains: both sides, the one that probably holds, and since when."""
    if context.invoked_subcommand:
        return
    from nornweave.ask.views.ledger import ledger_document
    from nornweave.carry.ledger_file import published
    from nornweave.cli.report import print_ledger
    from nornweave.ingest.ledger import refresh_ledger

    settings = settings_of(context)
    document = ledger_document(refresh_ledger(settings), published(settings))
    if as_json:
        print_json(document)
    else:
        print_ledger(document, settled=settled, dismissed=dismissed)
    for notice in document["notices"]:
        messages.print(notice, style="yellow", soft_wrap=True)


@conflicts_app.command()
def dismiss(
    context: typer.Context,
    conflict_id: Annotated[str, typer.Argument(metavar="ID", help="Of a conflict in the ledger or in an answer.")],
    undo: Annotated[bool, typer.Option("--undo", help="Take it back.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Say that two statements are no conflict. This applies in every document that states them, until it is undone."""
    from nornweave.carry.ledger_file import dismiss

    pair = dismiss(settings_of(context), conflict_id, undo=undo)
    if as_json:
        print_json({"id": pair, "dismissed": not undo})
    else:
        output.print(f"{conflict_id}: {'a conflict again' if undo else 'not a conflict'}")


@app.command()
def serve(
    context: typer.Context,
    host: Annotated[str, typer.Option(help="Address to listen on; other than loopback needs a token.")] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option(help="FUSION_PORT or 8082, for an agent alone AGENT_PORT or 8081.", min=0, max=65535)
    ] = None,
    agent: Annotated[
        Domain | None, typer.Option(metavar="D", help="Serve one domain alone, also at the root.", **DOMAIN)
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            help="Serving processes; each holds the index. Default: one per CPU while it is small.", min=1, max=64
        ),
    ] = None,
    from_url: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="URL", help="Serve what another machine publishes there, such as s3://bucket/prefix."
        ),
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="With --from: where the copy is kept. Default: the user's cache folder.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Serve the HTTP API until Ctrl-C."""
    from api.server.serving import serve as serve_api
    from api.server.workers import usual_workers

    announce = (lambda url: print_json({"url": url})) if as_json else None
    with _settings_to_serve(context, from_url, data_dir) as (settings, is_outdated):
        _check_databases(settings, {})  # runs are recorded elsewhere
        count = workers or usual_workers(settings)
        code = serve_api(settings, host, port, agent, announce=announce, workers=count, is_outdated=is_outdated)
    sys.exit(code)


@contextmanager
def _settings_to_serve(
    context: typer.Context, from_url: str | None, data_dir: Path | None
) -> Iterator[tuple[Settings, Callable[[], bool]]]:
    """Yield the settings to serve with, and a function that tells whether they have changed since its last call.

    With ``--from``, the settings are those of a replica. Otherwise they never change.
    """
    if from_url is None:
        yield settings_of(context), lambda: False
        return
    from nornweave.cli.replica import replica

    with replica(from_url, data_dir, context.obj) as follower:
        yield follower.settings, follower.has_new_settings


@app.command()
def mcp(context: typer.Context) -> None:
    """Serve the tools for agents over standard input and output (Model Context Protocol), until the input ends."""
    from api.mcp.server import serve_stdio

    serve_stdio(settings_of(context))


@app.command()
def slack(context: typer.Context) -> None:
    """Answer questions in the channels of Slack that the configuration names, until Ctrl-C."""
    from nornweave.core.installation import optional

    with optional("slack", "the Slack app"):
        from api.slack import serve_slack

    serve_slack(settings_of(context), os.environ, lambda line: messages.print(line, soft_wrap=True))


@app.command()
def up(
    context: typer.Context,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option(help="Port of the API and the page: FUSION_PORT or 8082.", min=1, max=65535)
    ] = None,
    dagster_port: Annotated[int, typer.Option(help="Port of the Dagster UI.", min=1, max=65535)] = 3000,
) -> None:
    """Start the API and the Dagster UI with its schedule and its sensors, until Ctrl-C."""
    end_silently()  # an exception, raised in the middle of an import, may be swallowed there
    from api.access.door import check_listening, service_token
    from api.server.workers import default_port
    from nornweave.core.supervisor import up as supervise

    settings = settings_of(context)
    _check_databases(settings, os.environ)
    check_listening(host, service_token(os.environ), settings)
    api_port = port if port is not None else default_port(None, os.environ)
    sys.exit(supervise(settings.file, settings.data_dir, host=host, port=api_port, dagster_port=dagster_port))


MORE_COMMANDS: dict[str, Callable[..., None]] = {
    "find": find, "uses": uses, "graph": graph, "why": why, "init": init,
    "diff": diff, "doctor": doctor, "drift": drift, "publish": publish,
    "push": push, "receipt": receipt.receipt, "key": receipt.key, "eval": quality.evaluate,
    "evaluations": quality.evaluations, "token": token, "roles": roles,
    "worker": worker, "dagster": dagster,
}  # fmt: skip
for name, command in MORE_COMMANDS.items():
    app.command(name)(command)


def main() -> None:
    """Run the command line."""
    heed_signals()
    use_bundled_packages()
    run(app)


if __name__ == "__main__":
    main()
