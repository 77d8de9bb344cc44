"""``python -m lab.access``: the property of access, over as many random cases as are asked for."""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lab.access.comparing import indexes
from lab.access.corpora import PLANS, random_corpus, random_query, random_viewer

VIEWERS, QUERIES = 4, 25
"""Of each corpus; a question of a viewer is a case."""


def main(
    cases: Annotated[int, typer.Option(help="Questions of viewers to compare.", min=1)] = 10_000,
    seed: Annotated[int, typer.Option(help="Another one tries other corpora.")] = 1,
) -> None:
    """Compare a restricted index with one that never had what is hidden; exits with 1 if any answer differs."""
    console, started = Console(), time.monotonic()
    compared = hidden = corpora = 0
    found: list[str] = []
    while compared < cases:
        chance = random.Random(f"{seed} {corpora}")
        written = random_corpus(chance)
        with tempfile.TemporaryDirectory(prefix="nornweave-access-") as folder, indexes(Path(folder), written) as pair:
            for viewer in [random_viewer(chance) for _ in range(VIEWERS)]:
                hidden += sum(not one.is_seen_by(viewer) for one in written)
                found += [f"corpus {corpora}: {one}" for one in pair.other_differences(viewer)]
                for _ in range(QUERIES):
                    text, plan = random_query(chance), chance.choice(PLANS)
                    filters = {"path_glob": "part-00[0-5]/**"} if chance.random() < 0.1 else {}
                    differs = pair.differences(viewer, text, plan=plan, filters=filters)
                    found += [f"corpus {corpora}, {sorted(viewer.groups)}, {text!r}: {one}" for one in differs]
                    compared += 1
        corpora += 1
        if corpora % 10 == 0:
            console.print(f"{compared:,} cases, {len(found)} differences")
        if found:
            break
    for one in found[:10]:
        console.print(one, markup=False, soft_wrap=True)
    seconds = time.monotonic() - started
    console.print(
        f"{compared:,} cases over {corpora} corpora, {hidden:,} documents hidden, "
        f"{len(found)} differences, {seconds:.0f} s"
    )
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    typer.run(main)
