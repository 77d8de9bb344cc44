"""``python -m lab.contradictions WORKSPACE…``: sentences of two domains that contradict each other, and planted ones.

Without ``--plant``: every alarm over the published generations, for somebody to read. With it: sentences of the
documentation are drawn by chance, denied or given another status or date, and said by somebody in a thread; the share
that is found is printed.
"""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from nornweave.connect.connectors import load_settings
from nornweave.core.types import Domain
from nornweave.disagree.assertions.pairing import AssertingPassage, find_contradictions
from nornweave.disagree.assertions.reading import stretches
from nornweave.index.ledger_file import published
from nornweave.index.passages import read_passages
from nornweave.index.wiring import store_of

_DENIED = (
    (re.compile(r"\b(is|are|can|will|does|do)\b(?! not\b|n't)"), r"\1 not"),
    (re.compile(r"\b(support|return|require|use|allow|accept|contain|provide|include)s\b"), r"does not \1"),
)
_STATUS = re.compile(r"\b(200|201|202|204|301|302|400|401|403|404|409|422|500|502|503)\b")
_DATE = re.compile(r"\b((?:19|20)\d\d-[01]\d-)([0-2]\d)\b")


def altered(sentence: str, chance: random.Random) -> tuple[str, str] | None:
    """Return a kind of change and the sentence after it; ``None`` if there is nothing to change."""
    ways = [("denied", pattern, text) for pattern, text in _DENIED if pattern.search(sentence)]
    if _STATUS.search(sentence) and re.search(r"status|HTTP|return|respon", sentence):
        ways = [("status", _STATUS, "")]
    elif _DATE.search(sentence):
        ways = [("date", _DATE, "")]
    if not ways:
        return None
    kind, pattern, text = chance.choice(ways)
    if kind == "status":
        return kind, pattern.sub(
            lambda found: f"{found[0][0]}{'03' if found[0][1:] != '03' else '04'}", sentence, count=1
        )
    if kind == "date":
        return kind, pattern.sub(lambda found: f"{found[1]}{(int(found[2]) % 28) + 1:02}", sentence, count=1)
    return kind, pattern.sub(text, sentence, count=1)


def planted(passages: list[AssertingPassage], count: int, seed: int) -> dict[str, list[bool]]:
    """Alter sentences one at a time; kind → whether each was found."""
    chance = random.Random(seed)  # noqa: S311 - nothing secret
    sentences = [
        (passage, sentence)
        for passage in passages
        if passage.domain == Domain.DOCUMENTATION
        for _, sentence in stretches(passage.text, code=False)
        if 30 <= len(sentence) <= 200 and re.fullmatch(r"[A-Z`][^|{}<>=;#*\[\]]+\.", sentence.strip())
    ]
    found: dict[str, list[bool]] = {}
    for passage, sentence in chance.sample(sentences, len(sentences)):
        change = altered(" ".join(sentence.split()), chance)
        if change is not None and len(found.setdefault(change[0], [])) < count:
            said = replace(passage, text=f"ann: {change[1]}\nbob: ok", domain="conversations", path="general/1.json",
                           section=None, title="general")  # fmt: skip
            found[change[0]].append(bool(find_contradictions([passage, said])))
    return found


def main(
    workspaces: Annotated[list[Path], typer.Argument(help="Folders with a synced nornweave.yaml.")],
    plant: Annotated[int, typer.Option(help="Instead: alter so many sentences of each kind, a workspace.")] = 0,
    seed: Annotated[int, typer.Option(help="Decides which.")] = 1,
) -> None:
    """Print every contradiction of each workspace, or the share of planted ones that is found."""
    total: Counter[tuple[str, bool]] = Counter()
    for workspace in workspaces:
        settings = load_settings(workspace / "nornweave.yaml", {})
        generations = published(settings)
        passages = read_passages(
            {domain: store_of(settings, Domain(domain)).data_files(name) for domain, name in generations.items()}
        )
        started = time.process_time()
        if plant:
            for kind, outcomes in planted(passages, plant, seed).items():
                total.update((kind, outcome) for outcome in outcomes)
            continue
        conflicts = find_contradictions(passages)
        typer.echo(f"{workspace.name}: {len(passages):,} passages, {len(conflicts)} alarms, "
                   f"{time.process_time() - started:.1f} s")  # fmt: skip
        for one in conflicts:
            typer.echo(f"  {one.attribute}: {one.explanation}")
    for kind in sorted({kind for kind, _ in total}):
        hits, misses = total[kind, True], total[kind, False]
        typer.echo(f"{kind}: {hits} of {hits + misses} found ({hits / (hits + misses):.2f})")


if __name__ == "__main__":
    typer.run(main)
