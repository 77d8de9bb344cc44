"""Kill a sync that reads a repository over git's protocol, at any moment; the next one must read all of its tip."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from lab.campaigns.processes import CONTEXT, CampaignChild, EndedProcess, until
from lab.campaigns.report import Order, Tally
from lab.campaigns.upstream import Upstream
from lab.campaigns.workspace import NO_MODELS
from nornweave.carry.wiring import store_of
from nornweave.config import Settings
from nornweave.connect.connectors import load_settings
from nornweave.core.types import Domain

# The share of kills that a sync to the end follows; after the others the next one is killed as well.
FINISHED = 0.4
# The share of kills that fall into the time in which git works, which is a small part of a sync.
IN_GIT = 0.7
# The share of kills that end git's own processes as well, as a machine that stops does.
WITH_GIT = 0.7
_UNFINISHED = ("tmp_*", "*.lock", "*.keep", ".tmp-*", "incoming-*")


def kill_clones(order: Order) -> Tally:
    """Kill ``order.runs`` syncs of a repository that changes all the time.

    A sync that is not killed then publishes what the tip of the repository says, and leaves no unfinished file.
    """
    tally, chance = Tally("kill -9 while cloning"), random.Random(order.seed)
    upstream = Upstream(order.folder / "upstream", chance, files=150)
    settings = _configure(order.folder, upstream.url)
    seconds = _measure(order, settings)
    while tally.runs["kills"] < order.runs and len(tally.trouble) <= order.runs:
        for _ in range(chance.randint(1, 3)):
            tally.runs[f"of upstream: {upstream.change()}"] += 1
        if chance.random() < 0.1:
            _forget_clones(settings)
        kind = "list" if chance.random() < IN_GIT else "sync"
        ended = _kill_one(order, chance.uniform(0, seconds[kind]), with_git=chance.random() < WITH_GIT)
        if ended:
            tally.runs["ended before"] += 1
            tally.ended_well("a sync, before it was killed,", ended)
            seconds[kind] *= 0.9
            continue
        seconds[kind] *= 1.02
        tally.runs["kills"] += 1
        left = sum(1 for pattern in _UNFINISHED for _ in (settings.data_dir / "git").rglob(pattern))
        tally.outcomes["kills that left unfinished files"] += left > 0
        if chance.random() < FINISHED:
            _finish(order, settings, upstream, tally)
    _finish(order, settings, upstream, tally)
    return tally


def _kill_one(order: Order, after_s: float, *, with_git: bool) -> EndedProcess | None:
    """Kill a sync so many seconds after it has begun to read its source; return how it had ended before."""
    has_begun = CONTEXT.Event()
    child = CampaignChild(order.folder / "killed.txt", _sync, order.folder / "nornweave.yaml", has_begun)
    until(lambda: has_begun.is_set() or not child.is_running)
    time.sleep(after_s)
    groups = _children_of(child.pid) if with_git else []
    for group in groups:  # git runs in a session of its own
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    return child.kill()


def _children_of(process: int) -> list[int]:
    """Return the processes that a process has started and that lead a group of their own."""
    try:
        tasks = list(Path(f"/proc/{process}/task").iterdir())
        started = [int(each) for task in tasks for each in (task / "children").read_text().split()]
        return [each for each in started if os.getpgid(each) == each]
    except OSError:
        return []


def published_pages(settings: Settings) -> dict[str, str]:
    """Return the words that are published of each document, by its path."""
    store = store_of(settings, Domain.DOCUMENTATION)
    current = store.current()
    if current is None:
        return {}
    with store.files.open(current) as generation:
        chunks = generation.chunks(np.arange(generation.chunk_count, dtype=np.int32))
    texts: dict[str, list[tuple[tuple[int, int], str]]] = {}
    for chunk in chunks.values():
        texts.setdefault(chunk.path, []).append((chunk.char_range, chunk.content))
    return {path: " ".join(" ".join(text for _, text in sorted(found)).split()) for path, found in texts.items()}


def _configure(folder: Path, url: str) -> Settings:
    config = {
        "data_dir": str(folder / "var"),
        "sources": [{"id": "pages", "domain": "documentation", "type": "git", "url": url}],
        "domains": {"documentation": NO_MODELS},
    }
    file = folder / "nornweave.yaml"
    file.write_text(json.dumps(config), encoding="utf-8")
    return load_settings(file, {})


def _sync(config: Path, has_begun: Any = None) -> None:
    from nornweave.ingest.pipeline import run
    from nornweave.ingest.records import SyncOptions
    from nornweave.ingest.wiring import domain_parts

    settings = load_settings(config, {})
    options = SyncOptions(confirm_deletes=True, run_id="campaign")
    parts = domain_parts(settings, Domain.DOCUMENTATION)
    if has_begun is not None:
        has_begun.set()
    report = run(parts, options)
    print(json.dumps({"unavailable": dict(report.unavailable), "seconds": dict(report.step_seconds)}))  # noqa: T201


def _measure(order: Order, settings: Settings) -> dict[str, float]:
    """Return the seconds that a first sync takes, and those that listing its source does."""
    ended = CampaignChild(order.folder / "sync.txt", _sync, order.folder / "nornweave.yaml").wait()
    _forget_clones(settings)
    steps = json.loads(ended.last_line)["seconds"]
    return {"list": steps["list"], "sync": sum(steps.values())}


def _forget_clones(settings: Settings) -> None:
    """Let the next sync clone afresh."""
    from nornweave.connect.git.remote import remove_unused

    remove_unused(settings.data_dir, [])


def _finish(order: Order, settings: Settings, upstream: Upstream, tally: Tally) -> None:
    ended = CampaignChild(order.folder / "sync.txt", _sync, order.folder / "nornweave.yaml").wait()
    tally.runs["syncs to the end"] += 1
    name = f"after kill {tally.runs['kills']}"
    if not tally.ended_well(f"{name}: sync", ended):
        return
    if unavailable := json.loads(ended.last_line)["unavailable"]:
        tally.trouble.append(f"{name}: {unavailable}")
    wanted = {path: " ".join(text.split()) for path, text in upstream.documents().items()}
    found = published_pages(settings)
    names = sorted(path for path in wanted.keys() | found.keys() if wanted.get(path) != found.get(path))
    if names:
        tally.trouble.append(f"{name}: {len(names)} documents are not those of the tip, such as {names[0]}")
    left = [file.name for pattern in _UNFINISHED for file in (settings.data_dir / "git").rglob(pattern)]
    if left:
        tally.trouble.append(f"{name}: {left[0]} is left")
    tally.outcomes["times equal to the tip"] += not names and not left
