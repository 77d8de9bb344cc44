"""Processes of several machines: ``nornweave worker`` and ``nornweave dagster``."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from nornweave.cli.options import messages, settings_of
from nornweave.config import Settings
from nornweave.core.errors import EncoderError
from nornweave.core.files.alive import note_alive
from nornweave.core.types import Domain

if TYPE_CHECKING:
    from nornweave.share.workers.worker import PassageEncoder


def worker(
    context: typer.Context,
    name: Annotated[str, typer.Option(help="Name of this worker, in logs.")] = "",
    runs: Annotated[bool, typer.Option("--runs", help="Execute the runs of Dagster instead of encoding.")] = False,
    run: Annotated[str, typer.Option(metavar="ID", help="Execute this run of Dagster alone, as a job does.")] = "",
    encoder: Annotated[
        str,
        typer.Option(metavar="URL", help="A server that encodes for this worker: OpenAI's /embeddings below this URL."),
    ] = "",
    processes: Annotated[
        int,
        typer.Option(help="Batches at once. A model uses all the cores it is given: start one per core set.", min=1),
    ] = 1,
) -> None:
    """Encode batches of texts for the syncs of other machines, or execute their runs, until SIGTERM."""
    from nornweave.index.object_store import ObjectStore
    from nornweave.share.workers.wiring import broker_of, workers_of
    from nornweave.share.workers.worker import run_worker

    settings = settings_of(context)
    workers = workers_of(settings)
    if run:
        sys.exit(_execute(settings, run))
    broker = broker_of(workers, os.environ)
    name = name or f"worker-{os.getpid()}"
    if runs:
        sys.exit(_work_on_runs(settings, broker, name))
    messages.print(f"worker: batches at {workers.objects}", soft_wrap=True)
    sys.exit(
        run_worker(
            broker,
            ObjectStore(workers.store),
            lambda domain, version: _encoder(settings, domain, version, encoder),
            name=name,
            note=partial(note_alive, settings.data_dir),
            processes=processes,
        )
    )


def _encoder(settings: Settings, name: str, version: str, url: str) -> PassageEncoder:
    """Return a domain's encoder as this machine's settings name it: a message names no model."""
    from nornweave.index.wiring import encoder_of
    from nornweave.models.encoders.served import ServedEncoder

    if name not in {domain.value for domain in Domain}:
        raise EncoderError(f"no domain {name!r}")
    configured = settings.domains[Domain(name)]
    local = encoder_of(settings, configured, like=version)
    return ServedEncoder(local, url, configured.embedding.model) if url else local


def _execute(settings: Settings, run_id: str) -> int:
    from orchestration.worker_run import main

    os.environ["NORNWEAVE_CONFIG"] = str(settings.file)
    return main(run_id)


def _work_on_runs(settings: Settings, broker: str, name: str) -> int:
    from nornweave.core.extras import optional

    with optional("workers", "workers"):
        from orchestration.run_worker import run_runs_worker

    os.environ["NORNWEAVE_CONFIG"] = str(settings.file)
    messages.print("worker: runs of Dagster", soft_wrap=True)
    return run_runs_worker(broker, name=name)


def dagster(
    context: typer.Context, port: Annotated[int, typer.Option(help="Port on loopback.", min=1, max=65535)] = 3000
) -> None:
    """Start the Dagster UI with its schedule and its sensors alone, until Ctrl-C."""
    os.environ["NORNWEAVE_CONFIG"] = str(settings_of(context).file)
    os.execv(sys.executable, [sys.executable, "-m", "orchestration", "--port", str(port)])  # noqa: S606
