"""Kill the reading of an API at random requests, and compare what was read in the end with a reading in one go."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from lab.apis import STAND_INS
from lab.apis.server import Api, serving
from lab.campaigns.processes import CampaignChild
from lab.campaigns.report import Order, Tally
from nornweave.connect.mirror.api_client import Limits
from nornweave.connect.mirror.mirrored import MirroredSource

DOCUMENTS = 400
# Of the longest reading; a killed one is waited for no longer.
DEADLINE_S = 300.0
LIMITS = Limits(backoff_s=0.01, max_wait_s=5.0)


def kill_readings(order: Order, documents: int = DOCUMENTS) -> Tally:
    """Kill readings ``order.runs`` times for each API."""
    tally = Tally("kill -9 while an API is read")
    for name in STAND_INS:
        _kill(name, order, documents, tally)
    return tally


def read(name: str, url: str, folder: Path) -> Mapping[str, str]:
    """Read an API to the end; return the mark of each document, by path."""
    settings = STAND_INS[name].settings(url)
    source = MirroredSource(settings, STAND_INS[name].feed(settings, limits=LIMITS), folder)
    listing = source.list()
    if listing.problem:
        raise RuntimeError(listing.problem)
    return {entry.path: entry.gate for entry in listing.entries}


def _kill(name: str, order: Order, documents: int, tally: Tally) -> None:
    choose = random.Random(f"{name} {order.seed}")
    server = STAND_INS[name].large(documents)
    with serving(server), tempfile.TemporaryDirectory(dir=order.folder) as whole:
        wanted = read(name, server.url, Path(whole))
        requests = len(server.requests)
        killed = 0
        while killed < order.runs:
            with tempfile.TemporaryDirectory(dir=order.folder) as place:
                killed += _until_read(
                    name, server, Path(place), choose, order.runs - killed, max(1, requests // 8), tally
                )
                found = read(name, server.url, Path(place))
            tally.outcomes["readings equal to one without kills"] += found == wanted
            if found != wanted:
                lost, more = len(wanted.keys() - found.keys()), len(found.keys() - wanted.keys())
                tally.trouble.append(
                    f"{name}, seed {order.seed}, kill {killed}: {lost} documents lost, {more} too many"
                )
    tally.runs["kills"] += killed
    tally.notes.append(f"{name}: {len(wanted):,} documents, {requests:,} requests in one go")


def _until_read(name: str, server: Api, place: Path, choose: random.Random, most: int, span: int, tally: Tally) -> int:
    """Start readings and kill them after a random number of requests, until one comes to its end; count the kills."""
    for killed in range(most):
        last = len(server.requests) + choose.randint(1, span)
        child = CampaignChild(place / "said", read, name, server.url, place)
        deadline = time.monotonic() + DEADLINE_S
        while child.is_running and len(server.requests) < last:
            if time.monotonic() > deadline:
                child.kill()
                raise TimeoutError(f"{name}: no request for {DEADLINE_S:.0f} s")
            time.sleep(choose.random() * 0.002)
        if ended := child.kill():
            tally.ended_well(f"{name}: a reading, before it was killed,", ended)
            return killed
    return most
