"""How well conflicts are noticed: precision and recall on pairs that were labelled by reading.

``python -m evals.conflicts`` prints the table of ``labelled/conflicts.jsonl``, ``--errors`` every pair that was judged
wrongly, ``--cosine`` what the cosine of the two texts alone would be worth.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from nornweave.claims.extract import extract_claims
from nornweave.claims.passage import Passage
from nornweave.fusion.detect import find_disagreements
from nornweave.fusion.records import Detector, Disagreement, TaggedItem
from nornweave.recall.records import Citation, RecallItem
from nornweave.types import ChunkId, freeze

LABELLED = Path(__file__).parent / "labelled" / "conflicts.jsonl"
SPLITS = ("dev", "test", "fresh")
# PIPELINE's fourth heuristic: below this cosine two items that match one query are said to oppose each other.
OPPOSED_BELOW = 0.3
# The normal quantile of a 95 % interval.
_Z = 1.959964

Split = Literal["dev", "test", "fresh"]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two passages and whether they contradict each other, as somebody decided who read them.

    Attributes:
        detector: which of PIPELINE's heuristics describes the contradiction; ``None`` for a hard negative.
        note: why.
        tagged: both, as fusion gets them.
    """

    pair_id: str
    split: Split
    detector: Detector | None
    note: str
    tagged: tuple[TaggedItem, TaggedItem]

    @property
    def is_conflict(self) -> bool:
        """Tell whether the label says that they contradict each other."""
        return self.detector is not None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What detection said of a pair."""

    pair: Pair
    found: Disagreement | None

    @property
    def is_right(self) -> bool:
        """Tell whether detection and label agree."""
        return (self.found is not None) == self.pair.is_conflict


@dataclass(frozen=True, slots=True)
class Share:
    """A share of some pairs, with its 95 % interval; all in [0, 1]. Of nothing it is 0, in [0, 1]."""

    hits: int
    of: int

    @property
    def value(self) -> float:
        """The share itself."""
        return self.hits / self.of if self.of else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's score interval (Wilson, JASA 1927): honest for small numbers and near 0 and 1."""
        if not self.of:
            return 0.0, 1.0
        spread = _Z * math.sqrt(self.value * (1 - self.value) / self.of + _Z**2 / (4 * self.of**2))
        middle = self.value + _Z**2 / (2 * self.of)
        scale = 1 + _Z**2 / self.of
        return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:.3f} [{low:.2f}, {high:.2f}]  {self.hits}/{self.of}"


@dataclass(frozen=True, slots=True)
class Figures:
    """Precision: alarms that are right. Recall: contradictions that are found, by whichever detector."""

    precision: Share
    recall: Share

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        total = self.precision.value + self.recall.value
        return 2 * self.precision.value * self.recall.value / total if total else 0.0


def load_pairs(path: Path = LABELLED) -> tuple[Pair, ...]:
    """Read labelled pairs, in the order of the file."""
    with path.open(encoding="utf-8") as lines:
        return tuple(_pair(json.loads(line)) for line in lines if line.strip())


def _pair(row: dict[str, Any]) -> Pair:
    detector = Detector(row["detector"]) if row["conflict"] else None
    tagged = (_tagged(row["a"], f"{row['id']}-a"), _tagged(row["b"], f"{row['id']}-b"))
    return Pair(row["id"], row["split"], detector, row["note"], tagged)


def passage_of(side: dict[str, Any]) -> Passage:
    """Read one side of a pair; ``timestamp`` is ISO 8601."""
    stamp = side.get("timestamp")
    known = {name: side[name] for name in ("language", "format", "title", "section") if name in side}
    return Passage(
        text=side["text"],
        domain=side["domain"],
        path=side["path"],
        timestamp=datetime.fromisoformat(stamp) if stamp else None,
        **known,
    )


def _tagged(side: dict[str, Any], chunk_id: str) -> TaggedItem:
    return tagged_item(passage_of(side), chunk_id)


def tagged_item(passage: Passage, chunk_id: str) -> TaggedItem:
    """Make of a passage what fusion gets: an item with its claims."""
    is_code = passage.domain == "code"
    citation = Citation(
        domain_id=passage.domain,
        source_id="labelled",
        source_path=passage.path,
        timestamp=passage.timestamp,
        line_range=None,
        char_range=(0, len(passage.text)),
        page=None,
        section=passage.section,
        message_ids=None,
        url=None,
        title=passage.title,
        revision=None,
        stale=False,
    )
    metadata = freeze({"function_name": passage.title if is_code else None})
    item = RecallItem(
        chunk_id=ChunkId(chunk_id), content=passage.text, score=0.5, citation=citation, sources={}, metadata=metadata
    )
    return TaggedItem(
        item=item,
        source_agent=passage.domain,
        source_domain=passage.domain,
        agent_latency_ms=0.0,
        score=0.5,
        claims=tuple(extract_claims(passage)),
    )


def judge(pairs: Iterable[Pair]) -> tuple[Outcome, ...]:
    """Run detection over each pair by itself."""
    return tuple(Outcome(pair, next(iter(find_disagreements(pair.tagged)), None)) for pair in pairs)


def figures(outcomes: Sequence[Outcome], detector: Detector | None = None) -> Figures:
    """Measure.

    Args:
        detector: its alarms make the precision, the pairs labelled with it the recall; ``None`` for all together.
    """
    alarms = [one for one in outcomes if one.found and detector in {None, one.found.detector}]
    conflicts = [one for one in outcomes if one.pair.is_conflict and detector in {None, one.pair.detector}]
    return Figures(
        Share(sum(one.pair.is_conflict for one in alarms), len(alarms)),
        Share(sum(one.found is not None for one in conflicts), len(conflicts)),
    )


def rows(outcomes: Sequence[Outcome]) -> Iterator[tuple[str, str, Figures]]:
    """Yield split, detector and figures, all together first."""
    names: tuple[tuple[str, Detector | None], ...] = (("all", None), *((one.value, one) for one in Detector))
    for split in ("every", *SPLITS):
        chosen = [one for one in outcomes if split in {"every", one.pair.split}]
        for name, detector in names:
            yield split, name, figures(chosen, detector)


def print_table(outcomes: Sequence[Outcome], console: Console) -> None:
    """Print one line per split and detector."""
    table = Table(title=f"Conflicts, {len(outcomes)} labelled pairs: share [95 % interval] hits/of")
    for heading in ("split", "detector", "precision", "recall", "F1"):
        table.add_column(heading, no_wrap=True)
    for split, name, measured in rows(outcomes):
        table.add_row(split, name, str(measured.precision), str(measured.recall), f"{measured.f1:.3f}")
    console.print(table)


def print_errors(outcomes: Iterable[Outcome], console: Console) -> None:
    """Print what was judged wrongly, with both texts."""
    for one in outcomes:
        if not one.is_right:
            kind = "MISSED" if one.pair.is_conflict else "FALSE ALARM"
            console.print(f"\n{kind} {one.pair.pair_id} ({one.pair.split}): {one.pair.note}", markup=False)
            if one.found:
                console.print(f"  said: {one.found.detector} {one.found.explanation}", markup=False)
            for tagged in one.pair.tagged:
                console.print(f"  {tagged.item.citation.source_path}: {tagged.item.content[:300]!r}", markup=False)


def below_cosine(
    pairs: Sequence[Pair], encode: Callable[[list[str]], np.ndarray[Any, np.dtype[np.float32]]]
) -> Figures:
    """Measure PIPELINE's fourth heuristic as it is written: everything below ``OPPOSED_BELOW`` opposes each other."""
    left = encode([pair.tagged[0].item.content for pair in pairs])
    right = encode([pair.tagged[1].item.content for pair in pairs])
    low = np.einsum("ij,ij->i", left, right) < OPPOSED_BELOW
    alarms = [pair for pair, is_low in zip(pairs, low, strict=True) if is_low]
    conflicts = sum(pair.is_conflict for pair in pairs)
    hits = sum(pair.is_conflict for pair in alarms)
    return Figures(Share(hits, len(alarms)), Share(hits, conflicts))


def main(
    path: Annotated[Path, typer.Option(help="Labelled pairs.")] = LABELLED,
    errors: Annotated[bool, typer.Option("--errors", help="Print what was judged wrongly.")] = False,
    cosine: Annotated[bool, typer.Option("--cosine", help="Measure cosine < 0.3 alone; loads the encoder.")] = False,
    cache: Annotated[Path, typer.Option(help="Where the converted encoder is kept.")] = Path("var/models"),
) -> None:
    """Print precision and recall of conflict detection on labelled pairs."""
    console = Console(width=140)
    outcomes = judge(load_pairs(path))
    print_table(outcomes, console)
    if errors:
        print_errors(outcomes, console)
    if cosine:
        measured = below_cosine([one.pair for one in outcomes], _encoder(cache))
        console.print(f"cosine < {OPPOSED_BELOW} alone: precision {measured.precision}, recall {measured.recall}")


def _encoder(cache: Path) -> Callable[[list[str]], np.ndarray[Any, np.dtype[np.float32]]]:
    from nornweave.embedding.loading import load_encoder  # takes a second, and few ask for it
    from nornweave.embedding.models import MINILM

    return load_encoder(MINILM, cache_dir=cache).encode


if __name__ == "__main__":
    typer.run(main)
