"""Publish again and again under replicas that are asked all the time: no question may fail."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from lab.campaigns.processes import CampaignChild, until
from lab.campaigns.replicating import DOMAIN, lines_of, replicate, write_corpus
from lab.campaigns.report import Order, Tally
from lab.campaigns.workspace import NO_MODELS
from lab.s3_server import BUCKET, s3_server
from nornweave.config import Settings
from nornweave.connect.connectors import load_settings
from nornweave.core.errors import PublicationError
from nornweave.index.wiring import file_store_of
from nornweave.ingest.pipeline import run
from nornweave.ingest.records import SyncOptions
from nornweave.ingest.wiring import domain_parts
from nornweave.share.publishing import publish_domains
from nornweave.share.standing import Published

REPLICAS = 4
PAGES = 20
ASK_EVERY_S, POLL_S = 0.02, 0.1
WITHIN_S = 120.0


def swap_replicas(order: Order) -> Tally:
    """Publish two releases in turn, ``order.runs`` times; go on when all replicas have answered from the last."""
    os.environ |= dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "campaign")  # any will do
    tally = Tally("swaps of replicas")
    with s3_server() as port:
        publish = {
            "url": f"s3://{BUCKET}/swaps",
            "endpoint": f"http://127.0.0.1:{port}",
            "region": "us-east-1",
            "allow_http": True,
            "keep_generations": 2,
            "grace_hours": 0.05,
        }
        settings = _two_releases(order.folder, publish)
        _publish(settings, 0)
        stop = order.folder / "stop"
        outputs = [order.folder / f"{number}.txt" for number in range(REPLICAS)]
        arguments = (stop, ASK_EVERY_S, POLL_S)
        replicas = [CampaignChild(each, replicate, publish, order.folder / each.stem, *arguments) for each in outputs]
        until(lambda: all(lines_of(output, "seen") for output in outputs), WITHIN_S)
        for number in range(1, order.runs + 1):
            _publish(settings, number % 2)
            if not until(lambda: all(len(lines_of(each, "seen")) > number for each in outputs), WITHIN_S):  # noqa: B023
                tally.trouble.append(f"publication {number} was not seen by all replicas")
                break
            tally.runs["publications"] += 1
        stop.touch()
        for replica in replicas:
            replica.wait(WITHIN_S)
    for output in outputs:
        tally.trouble += [" ".join(words) for words in lines_of(output, "trouble")]
        tally.outcomes["answers"] += sum(int(words[0]) for words in lines_of(output, "answers"))
        tally.outcomes["swaps seen"] += len(lines_of(output, "seen")) - 1
    return tally


def _two_releases(folder: Path, publish: dict[str, Any]) -> Settings:
    sources = [{"id": "docs", "domain": DOMAIN.value, "type": "files", "path": "docs"}]
    config = {"data_dir": "var", "sources": sources, "domains": {DOMAIN.value: NO_MODELS}}
    file = folder / "nornweave.yaml"
    for release in (0, 1):
        write_corpus(folder / "docs", release, PAGES, PAGES)
        file.write_text(json.dumps(config), encoding="utf-8")
        run(domain_parts(load_settings(file, {}), DOMAIN), SyncOptions(run_id=str(release), wait_s=10))
    file.write_text(json.dumps({**config, "publish": publish}), encoding="utf-8")
    return load_settings(file, {})


def _publish(settings: Settings, release: int) -> None:
    files = file_store_of(settings, DOMAIN).files
    files.point_at(files.all()[release])
    copied = publish_domains(settings, [DOMAIN])[DOMAIN]
    if not isinstance(copied, Published):  # why it failed, in words
        raise PublicationError(str(copied))
