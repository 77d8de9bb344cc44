"""What a repository's commits teach: ``python -m lab.history map --base ADDRESS --work FOLDER [NAME…]``.

Each repository is cloned from below the address and synced into a workspace of its own, or found there from the last
time; unless some are named, those of ``history_repositories.txt``, which were chosen by their names. A row says how
often a file that a commit changed is among the first three that the code domain answers its first line with: without a
map, with one learnt from older commits, and with one learnt from these with each other's files.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import time
from pathlib import Path

import numpy as np

from evals.query_map import hits_of, learn, lessons_of, trial
from nornweave.ask.engine import Engine
from nornweave.carry.wiring import store_of
from nornweave.config import Settings
from nornweave.connect.connectors import load_settings
from nornweave.core.text.terminal import print_text
from nornweave.core.types import Domain
from nornweave.improve.comparison import bootstrap_interval, compare
from nornweave.ingest.pipeline import run
from nornweave.ingest.wiring import domain_parts

NAMES = Path(__file__).with_name("history_repositories.txt")


def workspace(repository: str, folder: Path) -> Settings:
    """Return the workspace of a clone of a repository, with its code domain published."""
    if not (folder / "repo").exists():
        subprocess.run(["git", "clone", "--quiet", "--no-checkout", repository, folder / "repo"], check=True)
    file = folder / "nornweave.yaml"
    file.write_text(
        "data_dir: ./var\nsources:\n  - {id: repo, domain: code, type: git, path: repo, history: 1000}\n",
        encoding="utf-8",
    )
    settings = load_settings(file, {})
    if store_of(settings, Domain.CODE).current() is None:
        run(domain_parts(settings, Domain.CODE))
    return settings


def measure(name: str, settings: Settings) -> tuple[float, float]:
    """Print a repository's row; return what a map gains, and what the control does."""
    with Engine(settings, [Domain.CODE], watch=False) as engine:
        lessons = lessons_of(engine.agents[Domain.CODE])
        started = time.perf_counter()
        mapped = trial(engine, Domain.CODE, lessons)
        seconds = time.perf_counter() - started
        without = hits_of(engine, Domain.CODE, lessons, None, map(int, mapped))
        gained = compare(without, mapped)
        control = compare(without, trial(engine, Domain.CODE, lessons, shuffled=True))
        newest = {row: hit for row, hit in mapped.items() if int(row) >= len(lessons.examples) * 4 // 5}
        of_newest = compare(without, newest)
        report = learn(engine, Domain.CODE, settings)
    assert gained
    assert control
    assert of_newest
    state = "in force" if report.query_map else "identity"
    print_text(
        f"{name:<32} {len(lessons.examples):5} {gained.queries:5}  {gained.before:.3f} "
        f"{gained.after:.3f} {control.after:.3f}  {gained.difference:+.3f} [{gained.low:+.3f}, {gained.high:+.3f}]  "
        f"{of_newest.difference:+.3f}  {seconds:4.0f} s  {state}: {report.reason}"
    )
    return gained.difference, control.difference


def main() -> None:
    """Print a row for each repository, and the mean gains with their intervals by repository."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    map_command = commands.add_parser("map")
    map_command.add_argument("names", nargs="*", default=NAMES.read_text(encoding="utf-8").split())
    map_command.add_argument("--base", required=True)
    map_command.add_argument("--work", type=Path, required=True)
    asked = parser.parse_args()
    print_text("repository                  examples tested  without with shuffled  gain [95 %]  newest fifth")
    rows = [measure(name, workspace(f"{asked.base}/{name}", asked.work / name)) for name in asked.names]
    for name, gains in zip(("map", "shuffled"), zip(*rows, strict=True), strict=True):
        low, high = bootstrap_interval(np.array(gains))
        print_text(
            f"{name}: {math.fsum(gains) / len(gains):+.3f} [{low:+.3f}, {high:+.3f}] over {len(gains)} repositories"
        )


if __name__ == "__main__":
    main()
