"""The command ``nornweave doctor``."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer
from rich.text import Text

from nornweave.cli.options import JsonOption, output, settings_of
from nornweave.config import Settings
from nornweave.core.text.terminal import print_json
from nornweave.core.types import present

if TYPE_CHECKING:
    from nornweave.cli.checks import CheckFinding

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
