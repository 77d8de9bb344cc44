"""How long a publication takes until replicas answer from it, and what several of them answer a second."""

from __future__ import annotations

import json
import os
import random
import statistics
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from lab.campaigns.processes import CampaignChild, until
from lab.campaigns.replicating import DOMAIN, LATELY_S, lines_of, replicate, write_corpus
from lab.s3_server import BUCKET, s3_server
from nornweave.config import Settings
from nornweave.connect.connectors import load_settings
from nornweave.core.errors import PublicationError
from nornweave.core.sandbox.limits import cpu_count
from nornweave.index.arrays import arrays_file
from nornweave.index.wiring import file_store_of
from nornweave.ingest.pipeline import run
from nornweave.ingest.records import SyncOptions
from nornweave.ingest.wiring import domain_parts
from nornweave.share.publishing import publish_domains
from nornweave.share.records import Published

REPLICAS = 4
# 15,000 passages, which are about 100 MB with the arrays beside the file; a release writes a tenth of them anew.
PAGES, CHANGED, SECTIONS, DIMENSIONS = 750, 75, 20, 384
VOCABULARY = 20_000
PUBLICATIONS = 4
ASK_EVERY_S, MEASURE_S = 0.1, 10.0
WITHIN_S = 300.0


def print_travelling(folder: Path) -> None:
    """Print both tables: over a folder, and over an S3 server of one Python process on the same machine."""
    os.environ |= dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "bench")  # any will do
    settings = _workspace(folder)
    table = Table(
        "store", "MB", "upload s", "visible on all after the pointer, s", "from the start, s", "failed", box=None
    )
    with s3_server() as port:
        stores: dict[str, dict[str, Any]] = {
            "folder": {"url": f"file://{folder.resolve()}/store"},
            "S3 server": {"url": f"s3://{BUCKET}/bench", "endpoint": f"http://127.0.0.1:{port}", "allow_http": True},
        }
        for name, publish in stores.items():
            table.add_row(
                name, *_measure(settings, folder / name.replace(" ", "-"), {"region": "us-east-1", **publish})
            )
    Console().print(table)
    Console().print(_throughput(folder))


def _workspace(folder: Path) -> Settings:
    _write(folder / "docs", 0)
    sources = [{"id": "docs", "domain": DOMAIN.value, "type": "files", "path": "docs"}]
    domains = {
        DOMAIN.value: {
            "embedding": {"model": f"hash:{DIMENSIONS}", "dimensions": DIMENSIONS},
            "reranking": {"model": None},
        }
    }
    config = {"data_dir": "var", "sources": sources, "domains": domains}
    (folder / "nornweave.yaml").write_text(json.dumps(config), encoding="utf-8")
    settings = load_settings(folder / "nornweave.yaml", {})
    _sync(settings, 0)
    _write(folder / "docs", 1)
    _sync(settings, 1)
    return settings


def _write(folder: Path, release: int) -> None:
    letters = random.Random(1)
    vocabulary = ["".join(letters.choices("abcdefghiklmnoprstuvw", k=7)) for _ in range(VOCABULARY)]
    write_corpus(folder, release, PAGES, CHANGED, sections=SECTIONS, vocabulary=vocabulary)


def _sync(settings: Settings, release: int) -> None:
    run(domain_parts(settings, DOMAIN), SyncOptions(run_id=str(release), wait_s=10))


def _with_store(settings: Settings, publish: dict[str, Any]) -> Settings:
    config = json.loads(settings.file.read_text(encoding="utf-8"))
    settings.file.write_text(json.dumps({**config, "publish": publish}), encoding="utf-8")
    return load_settings(settings.file, {})


def _measure(settings: Settings, folder: Path, publish: dict[str, Any]) -> list[str]:
    """Publish some times under replicas that answer; return the cells of a row."""
    settings = _with_store(settings, publish)
    publish_domains(settings, [DOMAIN])
    folder.mkdir()
    stop = folder / "stop"
    outputs = [folder / f"{number}.txt" for number in range(REPLICAS)]
    replicas = [
        CampaignChild(output, replicate, publish, folder / output.stem, stop, ASK_EVERY_S) for output in outputs
    ]
    until(lambda: all(lines_of(output, "seen") for output in outputs), WITHIN_S)
    uploads, visible, whole = [], [], []
    files = file_store_of(settings, DOMAIN).files
    for number in range(PUBLICATIONS):
        release = number % 2
        files.point_at(files.all()[release])
        started = time.time()
        copied = publish_domains(settings, [DOMAIN], full=True)[DOMAIN]
        if not isinstance(copied, Published):  # why it failed, in words
            raise PublicationError(str(copied))
        pointed = time.time()
        until(lambda: all(_seen(output, release, started) for output in outputs), WITHIN_S)  # noqa: B023 - called at once
        last = max(_seen(output, release, started) for output in outputs)
        uploads.append(pointed - started)
        visible.append(last - pointed)
        whole.append(last - started)
    stop.touch()
    for replica in replicas:
        replica.wait(WITHIN_S)
    failed = sum(len(lines_of(output, "trouble")) for output in outputs)
    asked = sum(int(words[0]) for output in outputs for words in lines_of(output, "answers"))
    current = files.path(files.all()[0])
    size = (current.stat().st_size + arrays_file(current).stat().st_size) / 1e6
    cells = [_spread(values) for values in (uploads, visible, whole)]
    return [f"{size:.0f}", *cells, f"{failed} of {asked:,}"]


def _seen(output: Path, release: int, since: float) -> float:
    """Return when an output first answered from a release after a moment; 0 if it has not."""
    times = [float(words[1]) for words in lines_of(output, "seen") if words[0] == str(release)]
    return next((moment for moment in times if moment > since), 0.0)


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} (at most {max(values):.2f})"


def _throughput(folder: Path) -> Table:
    """Return what one to four replicas answer a second, each asked by one client without a pause.

    One replica uses somewhat more than a core. So several are held against what the cores would answer if each answer
    took the CPU time that it takes when one replica is alone.
    """
    table = Table("replicas", "answers a second", "cores busy", "of what the cores could do", box=None)
    publish = {"url": f"file://{folder.resolve()}/store"}
    alone: tuple[float, float] | None = None
    for count in range(1, REPLICAS + 1):
        stop = folder / f"stop-{count}"
        outputs = [folder / f"asked-{count}-{number}.txt" for number in range(count)]
        replicas = [
            CampaignChild(output, replicate, publish, folder / "folder" / str(number), stop, 0.0)
            for number, output in enumerate(outputs)
        ]
        until(lambda: all(lines_of(output, "seen") for output in outputs), WITHIN_S)  # noqa: B023 - called at once
        time.sleep(MEASURE_S)
        stop.touch()
        for replica in replicas:
            replica.wait(WITHIN_S)
        lately = [words for output in outputs for words in lines_of(output, "lately")]
        rate = sum(int(answers) for answers, _ in lately) / LATELY_S
        busy = sum(float(cpu_s) for _, cpu_s in lately) / LATELY_S
        alone = alone or (rate, busy)
        could = min(count * alone[0], cpu_count() * alone[0] / alone[1])
        table.add_row(str(count), f"{rate:.1f}", f"{busy:.2f}", f"{rate / could:.0%}")
    return table
