"""Set machines and people up: ``worker``, ``dagster``, ``publish``, the ``roles`` of PostgreSQL and ``token``."""

from __future__ import annotations

import os
import sys
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from nornweave.cli.options import DomainsOption, JsonOption, messages, output, settings_of
from nornweave.config import Settings
from nornweave.core.access import group_name, line_of, new_token
from nornweave.core.errors import ConfigError, EncoderError
from nornweave.core.process import note_alive
from nornweave.core.text.terminal import print_json, print_text
from nornweave.core.types import Domain

if TYPE_CHECKING:
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
    from nornweave.carry.object_store import ObjectStore
    from nornweave.carry.workers.app import run_worker
    from nornweave.carry.workers.encoder import broker_of, workers_of

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
    from nornweave.carry.postgresql.schema import role_statements

    print_text(role_statements(storage_schemas(settings), workspace_schema(settings.storage)))
