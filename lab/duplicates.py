"""How well duplicates are merged: precision and recall on pairs that were labelled by reading.

The pairs of ``labelled/duplicates.jsonl`` go through ``deduplicate``, two items at a time.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from nornweave.ask.fuse.deduplication.merge import deduplicate
from nornweave.ask.fuse.records import DedupedItems, FusedItem
from nornweave.ask.search.records import Citation, RecallItem
from nornweave.core.types import ChunkId
from nornweave.models.encoders import Vectors, load_encoder
from nornweave.models.encoders.loading import machine_cache
from nornweave.models.encoders.port import Wanted

LABELLED = Path(__file__).with_name("labelled") / "duplicates.jsonl"
MODEL = "sentence-transformers/all-MiniLM-L6-v2"

Split: TypeAlias = Literal["dev", "test"]
PairVectors: TypeAlias = "tuple[Vectors, Vectors] | None"


@dataclass(frozen=True, slots=True)
class PairSide:
    """One text of a pair, and where it stands."""

    text: str
    domain: str
    path: str
    title: str | None = None


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """Two texts, and whether one reader wants to read only one of them.

    Attributes:
        note: why it is labelled as it is.
        split: thresholds and rules are chosen on ``dev`` alone.
    """

    id: str
    a: PairSide
    b: PairSide
    duplicate: bool
    note: str
    split: Split


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of a pair."""

    pair: LabelledPair
    outcome: DedupedItems

    @property
    def merged(self) -> bool:
        """Tell whether one item is left."""
        return len(self.outcome.items) == 1


@dataclass(frozen=True, slots=True)
class MeasuredPairs:
    """How often merging was right: precision, recall and F1 in [0, 1], and the counts behind them."""

    right: int
    wrong: int
    missed: int

    @property
    def precision(self) -> float:
        """Of the merged pairs, those that are duplicates; 1 if nothing was merged."""
        return self.right / (self.right + self.wrong) if self.right + self.wrong else 1.0

    @property
    def recall(self) -> float:
        """Of the duplicates, those that were merged; 1 if there are none."""
        return self.right / (self.right + self.missed) if self.right + self.missed else 1.0

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        return 2 * self.right / (2 * self.right + self.wrong + self.missed) if self.right else 0.0


def read_pairs(path: Path = LABELLED) -> tuple[LabelledPair, ...]:
    """Read labelled pairs, in the order of the file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return tuple(_pair(json.loads(line)) for line in lines if line.strip())


def _pair(line: dict[str, object]) -> LabelledPair:
    fields = {name: value for name, value in line.items() if name not in {"a", "b"}}
    return LabelledPair(a=PairSide(**line["a"]), b=PairSide(**line["b"]), **fields)  # type: ignore[arg-type]


def judge(pair: LabelledPair, vectors: PairVectors = None, threshold: float = 0.85) -> Judged:
    """Send a pair through ``deduplicate``.

    Args:
        vectors: of ``a`` and ``b``; ``None`` leaves embeddings aside.
    """
    first, second = vectors if vectors is not None else (None, None)
    items = (_fused("a", pair.a, 0.9, first), _fused("b", pair.b, 0.8, second))
    return Judged(pair, deduplicate(items, threshold))


def measure(judged: Sequence[Judged]) -> MeasuredPairs:
    """Count what was merged rightly, wrongly and not."""
    return MeasuredPairs(
        right=sum(one.merged and one.pair.duplicate for one in judged),
        wrong=sum(one.merged and not one.pair.duplicate for one in judged),
        missed=sum(one.pair.duplicate and not one.merged for one in judged),
    )


def embed(pairs: Sequence[LabelledPair], precision: Wanted = "auto") -> list[tuple[Vectors, Vectors]]:
    """Embed both texts of each pair with the default model."""
    encoder = load_encoder(MODEL, cache_dir=machine_cache(Path("var/models")), precision=precision)
    vectors = encoder.encode([side.text for pair in pairs for side in (pair.a, pair.b)])
    return [(vectors[place], vectors[place + 1]) for place in range(0, len(vectors), 2)]


def _fused(name: str, side: PairSide, score: float, vector: Vectors | None) -> FusedItem:
    citation = Citation(
        domain_id=side.domain, source_id="labelled", source_path=side.path, timestamp=None, line_range=None,
        char_range=(0, len(side.text)), page=None, section=None, message_ids=None, url=None, title=side.title,
        revision=None, stale=False,
    )  # fmt: skip
    item = RecallItem(
        chunk_id=ChunkId(name), content=side.text, score=score, citation=citation, sources={}, vector=vector
    )
    return FusedItem(
        item=item, agent=f"{side.domain}-memory", domain=side.domain, relevance=score,
        encoder=None if vector is None else MODEL,
    )  # fmt: skip
