"""Kill a sync with everything it started, at any moment; the next sync must publish what a first one would have."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

from lab.campaigns.processes import CONTEXT, CampaignChild, command, until
from lab.campaigns.report import Order, Tally
from lab.campaigns.workspace import (
    VERSIONS,
    References,
    State,
    Workspace,
    between,
    differences,
    disorder,
    published_state,
)
from lab.small_segments import small_segments
from nornweave.connect.connectors import load_settings

_STEP_BYTES = 64
# The share of kills that a sync to the end follows; after the others the next one is killed as well.
FINISHED = 0.5


def kill_syncs(order: Order) -> Tally:
    """Kill ``order.runs`` syncs of an installation whose documents keep changing.

    After each, every domain's published generation is one that a whole sync would have published; a sync that is not
    killed then leaves what a first sync of the same documents leaves. A killed sync builds segments, which one that is
    not killed merges.
    """
    tally, moments = Tally("kill -9"), random.Random(order.seed)
    expected = References(order.folder / "reference", order.seed)
    workspace = Workspace(order.folder / "workspace", order.folder / "var", order.seed)
    workspace.write(0)
    started, version = time.monotonic(), 0
    _finish(workspace, order, expected[0], tally, "the first sync")
    seconds = time.monotonic() - started
    since = [0]  # versions that may be published: the last one that was finished, and those that were begun after it
    while tally.runs["kills"] < order.runs and len(tally.trouble) <= order.runs:
        version = (version + 1) % VERSIONS
        workspace.write(version)
        since.append(version)
        name = f"kill {tally.runs['kills'] + 1}"
        started = time.monotonic()
        step = _kill_one(order, workspace, moments.uniform(0, seconds))
        if step:
            tally.runs["kills"] += 1
            tally.outcomes[f"in {step}"] += 1
            trouble = between(workspace.settings, [expected[one] for one in since])
            tally.trouble += [f"{name}: {one}" for one in trouble]
            if moments.random() >= FINISHED:
                continue
            _finish(workspace, order, expected[version], tally, f"after {name}")
        else:
            seconds = 0.8 * min(seconds, time.monotonic() - started)
            tally.runs["ended before"] += 1
            _compare(workspace, expected[version], tally, f"before {name}")
        since = [version]
    _finish(workspace, order, expected[version], tally, "the last sync")
    return tally


def _kill_one(order: Order, workspace: Workspace, after_s: float) -> str:
    """Start a sync and kill it; return the step that it was at, empty when it had ended."""
    step = CONTEXT.Array("c", _STEP_BYTES)
    child = CampaignChild(order.folder / "killed.txt", _sync, workspace.config, step)
    until(lambda: bool(_text(step)) or not child.is_running)
    time.sleep(after_s)
    return _text(step) if child.kill() else ""


def _text(step: Any) -> str:
    return bytes(step.value).decode()


def _sync(config: Path, step: Any) -> None:
    """Do what the command does, saying in shared memory which step it is at."""
    from nornweave.ingest.records import SyncOptions
    from orchestration.instance import open_instance
    from orchestration.runs import materialize

    def at(name: str, _done: int, _total: int) -> None:
        step.value = name.partition(" ")[2].encode()[: _STEP_BYTES - 1]

    settings = load_settings(config, {})
    step.value = b"start"
    with small_segments(), open_instance(settings) as instance:
        materialize(settings, settings.served_domains, SyncOptions(confirm_deletes=True), at, instance)


def _finish(workspace: Workspace, order: Order, expected: State, tally: Tally, name: str) -> None:
    """Sync to the end and compare."""
    ended = command(order.folder / "sync.txt", workspace.config, "sync", "--confirm-deletes", "--json").wait()
    tally.runs["syncs to the end"] += 1
    if ended.code != 0:
        tally.trouble.append(f"{name}: sync ended with {ended.code} {ended.defect}: {ended.last_line}")
    _compare(workspace, expected, tally, name)


def _compare(workspace: Workspace, expected: State, tally: Tally, name: str) -> None:
    trouble = [*differences(published_state(workspace.settings), expected), *disorder(workspace.settings)]
    tally.trouble += [f"{name}: {one}" for one in trouble]
    tally.outcomes["times equal to a first sync"] += not trouble
