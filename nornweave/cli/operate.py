"""Commands of operators: set machines and people up, and look for problems that keep NornWeave from working."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from nornweave.cli.options import DomainsOption, JsonOption, messages, output, settings_of
from nornweave.config import Settings
from nornweave.core.access import group_name, line_of, new_token
from nornweave.core.errors import ConfigError, EncoderError
from nornweave.core.process import note_alive
from nornweave.core.text.terminal import print_json, print_text
from nornweave.core.types import Domain, present

if TYPE_CHECKING:
    from nornweave.cli.checks import CheckFinding
    from nornweave.models.encoders.port import Encoder


def worker(
    context: typer.Context,
    name: Annotated[str, typer.Option(help="Name of this worker, in logs.")] = "",
    processes: Annotated[
        int,
        typer.Option(help="Batches at once. A model uses all the cores it is given: start one per core set.", min=1),
    ] = 1,
) -> None:
    """Encode batches of texts for the syncs of other machines until SIGTERM."""
    from nornweave.carry.parts import ObjectStore
    from nornweave.carry.workers import broker_of, run_worker, workers_of

    settings = settings_of(context)
    workers = workers_of(settings)
    messages.print(f"worker: batches at {workers.objects}", soft_wrap=True)
    sys.exit(
        run_worker(
            broker_of(workers, os.environ),
            ObjectStore(workers.store),
            lambda domain, version: _encoder(settings, domain, version),
            name=name or f"worker-{os.getpid()}",
            note=partial(note_alive, settings.data_dir),
            processes=processes,
        )
    )


def _encoder(settings: Settings, name: str, version: str) -> Encoder:
    """Return the encoder of a domain, with this machine's model and the precision of ``version`` from the message."""
    from nornweave.carry.wiring import encoder_of

    if name not in {domain.value for domain in Domain}:
        raise EncoderError(f"no domain {name!r}")
    return encoder_of(settings, settings.domains[Domain(name)], like=version)


def dagster(
    context: typer.Context,
    port: Annotated[int, typer.Option(help="Port on loopback.", min=1, max=65535)] = 3000,
    home: Annotated[
        bool, typer.Option("--home", help="Write dagster.yaml, print its folder for DAGSTER_HOME, and end.")
    ] = False,
) -> None:
    """Start only the Dagster UI with its schedule and sensors, until Ctrl-C."""
    settings = settings_of(context)
    if home:
        from orchestration.instance import write_instance

        print_text(str(write_instance(settings)))
        return
    os.environ["NORNWEAVE_CONFIG"] = str(settings.file)
    os.execv(sys.executable, [sys.executable, "-m", "orchestration", "--port", str(port)])  # noqa: S606


def publish(
    context: typer.Context,
    domain: DomainsOption = None,
    take_over: Annotated[bool, typer.Option(help="Go on where another publisher was the last one.")] = False,
    full: Annotated[bool, typer.Option(help="Copy files again that the store has, as after damage there.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Copy the published generations to the object store of `publish:`, for replicas. Each sync does this, too."""
    from nornweave.ask.views.status import copy_document
    from nornweave.carry.publishing import publish_domains

    settings = settings_of(context)
    domains = domain or settings.served_domains
    outcomes = publish_domains(settings, domains, take_over=take_over, full=full)
    if as_json:
        print_json({domain.value: copy_document(settings, domain) for domain in domains})
    for published, outcome in outcomes.items():
        if isinstance(outcome, str):
            messages.print(f"{published.value}: {outcome}", style="red", soft_wrap=True)
        elif not as_json:
            output.print(
                f"{published.value}: gen-{outcome.number:06d} in {outcome.url}"
                if outcome
                else f"{published.value}: nothing is published yet"
            )
    sys.exit(1 if any(isinstance(outcome, str) for outcome in outcomes.values()) else 0)


def token(
    group: Annotated[list[str] | None, typer.Option("--group", metavar="G", help="A group; may be repeated.")] = None,
    name: Annotated[str, typer.Option(help="Whose it is, for who reads the file.")] = "",
    expires: Annotated[
        datetime | None, typer.Option(formats=["%Y-%m-%d"], metavar="DATE", help="The last day on which it is valid.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make a token for a member of groups, and its line for the file of tokens. The token is shown once."""
    groups = [group_name(name) for name in group or []]
    if not all(groups):
        raise ConfigError("--group: a group needs a name")
    made = new_token()
    line = line_of(made, groups, name, expires.date() if expires else None)
    if as_json:
        print_json({"token": made, "line": line})
        return
    is_read = sys.stdout.isatty()  # a program gets the token alone, and a person beside it the rest
    if is_read:
        messages.print("The token, for whoever sends it; it is not shown again:", style="bold", soft_wrap=True)
    print_text(made)
    said = "Its line for the file that 'access.tokens' names, which a running server reads at once:"
    messages.print(said, style="bold", soft_wrap=True)
    messages.print(line, soft_wrap=True)


def roles(context: typer.Context) -> None:
    """Print the SQL that an administrator of PostgreSQL runs once: schemas, roles and their rights."""
    from nornweave.carry.wiring import storage_schemas, workspace_schema

    settings = settings_of(context)
    if settings.storage is None:
        raise ConfigError(f"{settings.file}: has no storage: the domains are stored in files below {settings.data_dir}")
    from nornweave.carry.postgresql.server import role_statements

    print_text(role_statements(storage_schemas(settings), workspace_schema(settings.storage)))


STYLES = {"ok": "green", "warning": "yellow", "error": "red"}


def doctor(context: typer.Context, as_json: JsonOption = False) -> None:
    """Look for problems that keep NornWeave from working, and say what to do about them.

    It looks at the configuration, sources, models, disk, clock and ports. Local sources are listed; remote sources
    are asked for one page. The exit code is 1 if something does not work.
    """
    settings = settings_of(context)
    findings = []
    for finding in examine(settings):
        findings.append(finding)
        if not as_json:
            _print(finding)
    if as_json:
        print_json([dataclasses.asdict(finding) for finding in findings])
    sys.exit(1 if any(finding.level == "error" for finding in findings) else 0)


def examine(settings: Settings) -> Iterator[CheckFinding]:
    """Run all checks, the quick ones first."""
    from api.server.workers import default_port
    from nornweave.cli import checks

    yield checks.CheckFinding("configuration", str(settings.file), "ok", f"{len(settings.sources)} sources")
    yield from checks.look_at_disk(settings.data_dir)
    databases = list(checks.look_at_databases(settings, os.environ))
    yield from databases
    yield from checks.look_at_history(settings, os.environ)
    is_stored = all(finding.level == "ok" for finding in databases)
    domains = settings.served_domains
    yield from checks.look_at_clock(checks.published_at(settings, domains if is_stored else ()), present())
    remedy = "stop it, or take another port: `nornweave serve --port N`, FUSION_PORT"
    yield checks.look_at_port("the page and the API", default_port(None, os.environ), remedy)
    yield checks.look_at_port("Dagster's UI", 3000, "stop it, or take another port: `nornweave up --dagster-port N`")
    yield from checks.look_at_access(settings, os.environ)
    sources = [(source, checks.look_at_source(settings, source, os.environ)) for source in settings.sources]
    yield from (finding for _, finding in sources)
    yield from checks.look_at_models(settings, domains)
    yield checks.look_at_vector_index(settings, domains)
    for domain in domains if is_stored else ():
        readable = any(source.domain is domain and finding.level != "error" for source, finding in sources)
        yield from checks.look_at_index(settings, domain, can_sync=readable or settings.inbox(domain).exists())
        yield from checks.look_at_judged(settings, domain)
    if is_stored:
        yield from checks.look_at_judged_across(settings)


def _print(finding: CheckFinding) -> None:
    line = Text(f"{finding.level:<8}", style=STYLES[finding.level])
    line.append(f"{finding.check} {finding.subject}".rstrip() + f": {finding.text}", style="default")
    output.print(line, soft_wrap=True)
    if finding.remedy:
        output.print(Text(f"        → {finding.remedy}"), soft_wrap=True)
