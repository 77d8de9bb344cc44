"""``nornweave publish``: copy what is published to the object store that the configuration names."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from nornweave.cli.options import DomainsOption, JsonOption, messages, output, settings_of
from nornweave.core.text.terminal import print_json


def publish(
    context: typer.Context,
    domain: DomainsOption = None,
    take_over: Annotated[bool, typer.Option(help="Go on where another publisher was the last one.")] = False,
    full: Annotated[bool, typer.Option(help="Copy files again that the store has, as after damage there.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Copy what is published to the object store of `publish:`, for replicas; a sync does so by itself."""
    from nornweave.ask.views.status import copy_document
    from nornweave.share.publishing import publish_domains

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
