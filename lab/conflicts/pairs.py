"""Labelled pairs of passages, and what detection says of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from lab.conflicts.shares import Figures, figures
from nornweave.disagree.conflicts import MIN_CONFIDENCE, FactConflict, LocatedFact, find_conflicts
from nornweave.disagree.facts.extract import extract_facts
from nornweave.disagree.facts.passage import Passage
from nornweave.read.chunking.languages import language_of

OWN = Path(__file__).parents[1] / "labelled" / "conflicts.jsonl"
"""The repository's own pairs: written with the first detector, so they are published but steer nothing."""
SHARED = Path("conflicts") / "pairs.jsonl"
"""Pairs of other repositories, in a folder of judged sets from elsewhere."""
NAMED_KINDS = frozenset({"default", "timeout", "limit", "versions", "boolean", "enum", "port"})
"""Kinds of pairs that state the value of a named setting."""

_FORMATS = {
    ".md": "markdown", ".mdx": "markdown", ".markdown": "markdown", ".rst": "rst", ".txt": "text", ".html": "html",
    ".yaml": "yaml", ".yml": "yaml", ".json": "json", ".toml": "toml", ".ini": "ini", ".cfg": "ini",
}  # fmt: skip
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two passages and whether they contradict each other, as somebody decided who read them.

    Attributes:
        group: the repository that both come from; fitting never trains on the group that it measures.
        kind: what they state: ``timeout``, ``default``, …; of the own pairs the split.
        label: ``conflict``, ``agree``, ``compatible`` or ``unrelated``.
    """

    pair_id: str
    group: str
    kind: str
    label: str
    why: str
    sides: tuple[Passage, Passage]

    @property
    def is_conflict(self) -> bool:
        """Tell whether the label says that they contradict each other."""
        return self.label == "conflict"

    @property
    def is_named_setting(self) -> bool:
        """Tell whether documentation and code state the value of a named setting."""
        return self.kind in NAMED_KINDS and {side.domain for side in self.sides} == {"documentation", "code"}


@dataclass(frozen=True, slots=True)
class PairOutcome:
    """What detection said of a pair.

    Attributes:
        conflicts: at any confidence, the most confident first.
    """

    pair: Pair
    facts: tuple[tuple[LocatedFact, ...], tuple[LocatedFact, ...]]
    conflicts: tuple[FactConflict, ...]
    threshold: float

    @property
    def confidence(self) -> float:
        """That the two sides contradict each other, in [0, 1]; 0 where nothing is compared."""
        return max((conflict.confidence for conflict in self.conflicts), default=0.0)

    @property
    def is_alarm(self) -> bool:
        """Tell whether somebody would be told."""
        return any(conflict.confidence >= self.threshold for conflict in self.conflicts)

    @property
    def is_right(self) -> bool:
        """Tell whether detection and label agree."""
        return self.is_alarm == self.pair.is_conflict


def load_pairs(path: Path) -> tuple[Pair, ...]:
    """Read labelled pairs in either format, in the order of the file."""
    with path.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines if line.strip()]
    return tuple(_own_pair(row) if "split" in row else _pair(row) for row in rows)


def _pair(row: dict[str, Any]) -> Pair:
    sides = (_side(row["a"]), _side(row["b"]))
    return Pair(row["id"], group_of(row["source"]), row["kind"], row["label"], row["why"], sides)


def group_of(source: str) -> str:
    """Return the repository of a source: ``owner/name @ commit``, ``owner/name#12``; else what precedes a comma."""
    found = _REPOSITORY.match(source)
    return found[0] if found else source.partition(",")[0]


def _side(side: dict[str, Any]) -> Passage:
    """Read a side. Its title is the heading path, of which the last part is the title of the passage."""
    path = side["path"]
    heading = side["title"]
    stamp = datetime.fromisoformat(side["date"]).replace(tzinfo=UTC) if side.get("date") else None
    return Passage(
        text=side["text"],
        domain=side["domain"],
        language=language_of(path),
        format=_format(path, side["domain"]),
        path=path,
        title=heading.split(" > ")[-1] or None,
        section=heading if side["domain"] != "code" or " > " in heading else None,
        timestamp=stamp,
    )


def _format(path: str, domain: str) -> str:
    if domain == "conversations":
        return "github"
    return _FORMATS.get(PurePosixPath(path).suffix.lower()) or language_of(path) or "text"


def _own_pair(row: dict[str, Any]) -> Pair:
    label = "conflict" if row["conflict"] else "compatible"
    return Pair(row["id"], row["id"], row["split"], label, row["note"], (_own_side(row["a"]), _own_side(row["b"])))


def _own_side(side: dict[str, Any]) -> Passage:
    stamp = side.get("timestamp")
    known = {name: side[name] for name in ("language", "format", "title", "section") if name in side}
    return Passage(
        text=side["text"],
        domain=side["domain"],
        path=side["path"],
        timestamp=datetime.fromisoformat(stamp) if stamp else None,
        **known,
    )


def located(passage: Passage, chunk_id: str) -> tuple[LocatedFact, ...]:
    """Return the facts of a passage, as detection gets them."""
    return tuple(
        LocatedFact(
            fact=fact,
            domain=passage.domain,
            source_id=passage.domain,
            path=passage.path,
            section=passage.section,
            title=passage.title,
            updated_at=passage.timestamp,
            chunk_id=chunk_id,
        )
        for fact in extract_facts(passage)
    )


def judge(pairs: Iterable[Pair], threshold: float = MIN_CONFIDENCE) -> Iterator[PairOutcome]:
    """Run detection over each pair by itself.

    Args:
        threshold: confidence from which a conflict is an alarm.
    """
    for pair in pairs:
        first, second = (located(side, f"{pair.pair_id}-{at}") for at, side in enumerate(pair.sides))
        conflicts = sorted(find_conflicts((*first, *second), min_confidence=0.0), key=lambda one: -one.confidence)
        yield PairOutcome(pair, (first, second), tuple(conflicts), threshold)


def measured(outcomes: Iterable[PairOutcome]) -> Figures:
    """Return precision and recall of some pairs."""
    return figures((outcome.pair.is_conflict, outcome.is_alarm) for outcome in outcomes)


def rows(outcomes: Sequence[PairOutcome]) -> Iterator[tuple[str, Figures]]:
    """Yield figures of all pairs, of named settings in documentation and code, and of each kind."""
    yield "all", measured(outcomes)
    named = [outcome for outcome in outcomes if outcome.pair.is_named_setting]
    if named:
        yield "documentation against code, named settings", measured(named)
    for kind in sorted({outcome.pair.kind for outcome in outcomes}):
        yield kind, measured(outcome for outcome in outcomes if outcome.pair.kind == kind)
