"""Publish again and again while processes read: no read fails, and each answer is of one publication."""

from __future__ import annotations

import json
import random
import re
import sys
import time
from pathlib import Path
from threading import Event
from typing import Any

import psutil

from lab.campaigns.processes import CONTEXT, CampaignChild, until
from lab.campaigns.report import Order, Tally
from lab.campaigns.workspace import NO_MODELS, WORDS
from lab.small_segments import small_segments
from nornweave.ask.engine import Engine
from nornweave.ask.search.question import Question
from nornweave.carry.wiring import store_of
from nornweave.config import Settings
from nornweave.connect.connectors import load_settings
from nornweave.core.access import OPERATOR
from nornweave.core.types import Domain, GenerationId, present
from nornweave.index.generations.kept import number_of
from nornweave.index.manifest import Manifest
from nornweave.ingest.pipeline import run
from nornweave.ingest.records import SyncOptions
from nornweave.ingest.wiring import domain_parts

READERS = 8
KEPT = 3
# Pages that say which release it is, and others; every seventh of these changes with a sync: segments are merged.
PAGES, OTHERS = 6, 42
# One publication in so many is a sync's; the others publish the segments of the one before under a new manifest.
SYNCED_EVERY = 10
PAUSE_S, BETWEEN_S = 0.1, 0.05
STOP_S = 120.0
_RELEASE = re.compile(r"release q(\d+)q")


def publish_while_reading(order: Order) -> Tally:
    """Publish ``order.runs`` times under ``READERS`` processes that ask without a pause to speak of."""
    tally = Tally("publications under readers")
    settings = _workspace(order.folder)
    _publish(settings, 0, order.seed)
    stop = CONTEXT.Event()
    waiting = CONTEXT.Semaphore(0)
    readers = [
        CampaignChild(order.folder / f"reader-{number}.txt", _read_until, settings.file, stop, waiting)
        for number in range(READERS)
    ]
    for _ in readers:
        waiting.acquire(timeout=STOP_S)
    for number in range(1, order.runs + 1):
        if number % SYNCED_EVERY:
            _publish_again(settings)
        else:
            tally.runs["by syncs"] += _publish(settings, number, order.seed)
            tally.runs["of several segments"] += len(_manifest(settings).segments) > 1
        tally.runs["publications"] += 1
        time.sleep(BETWEEN_S)
    stop.set()
    until(lambda: not any(reader.is_running for reader in readers), STOP_S)
    tally.runs["readers"] = READERS
    for reader in readers:
        ended = reader.wait(STOP_S)
        if not tally.ended_well("a reader", ended):
            continue
        read = json.loads(ended.last_line)
        tally.outcomes["answers"] += read["answers"]
        tally.outcomes["changes of generation seen"] += read["changes"]
        tally.outcomes["MiB of memory more at most"] = max(read["grown"], tally.outcomes["MiB of memory more at most"])
        tally.trouble += read["trouble"]
    return tally


def _workspace(folder: Path) -> Settings:
    (folder / "docs").mkdir(parents=True)
    sources = [{"id": "docs", "domain": "documentation", "type": "files", "path": "docs"}]
    config = {"data_dir": "var", "sources": sources, "domains": {"documentation": NO_MODELS}}
    (folder / "nornweave.yaml").write_text(json.dumps(config), encoding="utf-8")
    return load_settings(folder / "nornweave.yaml", {})


def _publish(settings: Settings, number: int, seed: int) -> bool:
    """Change the pages that name a release, and some of the others, and sync."""
    for page in range(PAGES + OTHERS):
        is_named = page < PAGES
        if is_named or number == 0 or page % 7 == number // SYNCED_EVERY % 7:
            words = " ".join(random.Random(f"{seed} {page} {number}").choices(WORDS, k=30))
            said = f"The {WORDS[page]} is in release q{number}q. " if is_named else ""
            title = WORDS[page] if is_named else f"Page {page}"
            file = settings.file.parent / "docs" / f"{page}.md"
            file.write_text(f"# {title}\n\n{said}{words}.\n", encoding="utf-8")
    with small_segments():
        report = run(domain_parts(settings, Domain.DOCUMENTATION), SyncOptions(run_id=str(number), wait_s=10))
    return report.published


def _publish_again(settings: Settings) -> None:
    """Publish the segments that are published, as a generation of their own."""
    files = store_of(settings, Domain.DOCUMENTATION).files
    generation = files.next()
    manifest = _manifest(settings).model_copy(update={"generation": generation})
    files.build_path(generation).write_text(manifest.model_dump_json(), encoding="utf-8")
    files.publish(generation)
    files.prune(KEPT)


def _manifest(settings: Settings) -> Manifest:
    files = store_of(settings, Domain.DOCUMENTATION).files
    current = files.current()
    assert current, "a sync publishes one"
    return files.manifest(current)


def _read_until(config: Path, stop: Event, waiting: Any) -> None:
    """Ask until ``stop``, look for a newer generation before each question, print what came of it."""
    answers, changes, answered_by, trouble = 0, 0, 0, []
    with Engine(load_settings(config, {}), watch=False) as engine:
        waiting.release()
        begun = _memory()
        while not stop.wait(PAUSE_S):
            engine.agents[Domain.DOCUMENTATION].refresh()
            asked = Question(
                text=f"which release is the {WORDS[answers % PAGES]} in", now=present(), viewer=OPERATOR, top_k=PAGES
            )
            document = engine.as_seen_by(OPERATOR).answers.query(asked)
            releases = {match for item in document["items"] for match in _RELEASE.findall(item["content"])}
            answers += 1
            if document["coverage_gaps"] or len(releases) != 1:
                trouble.append(f"answer {answers}: releases {sorted(releases)}, {document['coverage_gaps']}")
                continue
            generation = number_of(GenerationId(document["coverage"]["documentation"]["generation"]))
            if generation < answered_by:
                trouble.append(f"answer {answers}: generation {generation} after {answered_by}")
            changes += generation != answered_by
            answered_by = generation
    outcome = {"answers": answers, "changes": changes, "trouble": trouble[:10], "grown": _memory() - begun}
    sys.stdout.write(f"\n{json.dumps(outcome)}\n")


def _memory() -> int:
    return int(psutil.Process().memory_info().rss) >> 20
