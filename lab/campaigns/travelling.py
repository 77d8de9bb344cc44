"""Kill publishers in the middle of uploads and replicas in the middle of downloads: what answers is always whole."""

from __future__ import annotations

import hashlib
import json
import os
import random
import time
from pathlib import Path
from typing import Any

from lab.campaigns.processes import CampaignChild, command, until
from lab.campaigns.replicating import DOMAIN, lines_of, replicate, write_corpus
from lab.campaigns.report import Order, Tally
from lab.campaigns.workspace import NO_MODELS
from lab.s3_server import BUCKET, s3_server
from lab.small_segments import small_segments
from nornweave.carry.parts import ObjectStore
from nornweave.carry.publication import Publication, PublishedCommit, read_state
from nornweave.config import PublishSettings, Settings
from nornweave.connect.connectors import load_settings
from nornweave.ingest.pipeline import run
from nornweave.ingest.records import SyncOptions
from nornweave.ingest.wiring import domain_parts

REPLICAS = 3
# Pages, how many of them name a release, and after how many releases each of the others changes.
PAGES, CHANGED, OTHERS_EVERY = 40, 6, 7
PAUSE_S = 0.05
WITHIN_S = 120.0


def kill_travellers(order: Order) -> Tally:
    """Publish ``order.runs`` times; kill the upload, a replica, both or none, and look at everything after each."""
    tally = Tally("generations on the way")
    with s3_server() as port:
        _Campaign(order, tally, port).run()
    return tally


class _Campaign:
    def __init__(self, order: Order, tally: Tally, port: int) -> None:
        # Any will do; replicas and uploads inherit them.
        os.environ |= dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "campaign")
        self._order = order
        self._tally = tally
        self._chance = random.Random(order.seed)
        self._publish: dict[str, Any] = {
            "url": f"s3://{BUCKET}/campaign",
            "endpoint": f"http://127.0.0.1:{port}",
            "region": "us-east-1",
            "allow_http": True,
            "keep_generations": 2,
            "grace_hours": 0.02,
        }
        self._settings = _workspace(order.folder, self._publish)
        self._stop = order.folder / "stop"
        self._places = {number: order.folder / f"replica-{number}" for number in range(REPLICAS)}
        self._outputs: list[Path] = []
        self._replicas = {number: self._start(number) for number in self._places}

    def run(self) -> None:
        """Do it all, then let everything come to rest and compare."""
        for release in range(1, self._order.runs + 1):
            self._sync(release)
            self._upload()
            if self._chance.random() < 0.4:
                self._kill_replica()
            self._tally.trouble += [f"release {release}: {problem}" for problem in self._problems()]
        last = command(self._order.folder / "last.txt", self._settings.file, "publish").wait(WITHIN_S)
        self._tally.ended_well("the last upload", last)
        self._come_to_rest(self._order.runs)
        self._stop.touch()
        for replica in self._replicas.values():
            replica.wait(WITHIN_S)
        for output in self._outputs:
            self._tally.trouble += [" ".join(words) for words in lines_of(output, "trouble")]
            self._tally.outcomes["answers"] += sum(int(words[0]) for words in lines_of(output, "answers"))
            self._tally.outcomes["changes of release seen"] += len(lines_of(output, "seen"))

    def _start(self, number: int) -> CampaignChild:
        output = self._order.folder / f"replica-{number}-{len(self._outputs)}.txt"
        self._outputs.append(output)
        return CampaignChild(output, replicate, self._publish, self._places[number], self._stop, PAUSE_S)

    def _sync(self, release: int) -> None:
        _write(self._settings.file.parent / "docs", release)
        with small_segments():
            run(domain_parts(self._settings, DOMAIN), SyncOptions(run_id=str(release), wait_s=10))
        self._tally.runs["publications"] += 1

    def _upload(self) -> None:
        upload = command(self._order.folder / "upload.txt", self._settings.file, "publish")
        if self._chance.random() < 0.6:
            time.sleep(self._chance.uniform(0.0, 1.0))
            self._tally.runs["uploads killed"] += upload.kill() is None
        ended = upload.wait(WITHIN_S)
        if ended.code not in {0, -9}:
            self._tally.trouble.append(f"an upload {ended.cause}")

    def _kill_replica(self) -> None:
        number = self._chance.choice(list(self._places))
        time.sleep(self._chance.uniform(0.0, 1.5))
        if ended := self._replicas[number].kill():
            self._tally.trouble.append(f"replica {number} {ended.cause}")
        else:
            self._tally.runs["replicas killed"] += 1
        self._replicas[number] = self._start(number)

    def _problems(self) -> list[str]:
        """Read what the store says, as a replica that starts now would."""
        store = ObjectStore(PublishSettings.model_validate(self._publish))
        if not (state := Publication(store, DOMAIN.value).state()):
            return []  # every upload so far was killed
        commit = read_state(PublishedCommit, state, "the commit")
        problems = []
        for name, file in commit.files.items():
            found = hashlib.sha256()
            for key in file.parts:
                part = store.read(key)
                found.update(part.content if part else b"")
            problems += [] if found.hexdigest() == file.sha256 else [f"{name} is damaged"]
        self._tally.outcomes["states of the store that were whole"] += not problems
        self._tally.outcomes["of them of several segments"] += (
            not problems and sum(name.endswith("-000.duckdb") for name in commit.files) > 1
        )
        return problems

    def _come_to_rest(self, release: int) -> None:
        def has(output: Path) -> bool:
            return any(words[0] == str(release) for words in lines_of(output, "seen"))

        newest = {number: output for output in self._outputs for number in [int(output.stem.split("-")[1])]}
        until(lambda: all(map(has, newest.values())), WITHIN_S)
        for number, output in newest.items():
            if has(output):
                self._tally.outcomes["replicas at the last release"] += 1
            else:
                said = output.read_text(encoding="utf-8", errors="replace")[-300:] if output.exists() else ""
                self._tally.trouble.append(f"replica {number} never answered from release {release}: {said}")


def _workspace(folder: Path, publish: dict[str, Any]) -> Settings:
    sources = [{"id": "docs", "domain": DOMAIN.value, "type": "files", "path": "docs"}]
    _write(folder / "docs", 0)
    config = {"data_dir": "var", "sources": sources, "domains": {DOMAIN.value: NO_MODELS}, "publish": publish}
    (folder / "nornweave.yaml").write_text(json.dumps(config), encoding="utf-8")
    return load_settings(folder / "nornweave.yaml", {})


def _write(folder: Path, release: int) -> None:
    write_corpus(folder, release, PAGES, CHANGED, others_every=OTHERS_EVERY)
