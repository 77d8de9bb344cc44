"""Disagreements of people, rewritten from public threads: what detection finds of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.conflicts.shares import Share
from nornweave.disagree.assertions.alike import SentenceEncoder
from nornweave.disagree.assertions.pairing import find_contradictions
from nornweave.disagree.assertions.passage import AssertingPassage

OWN = Path(__file__).parents[1] / "labelled" / "natural.jsonl"


@dataclass(frozen=True)
class NaturalCase:
    """Two passages of one thread's subject, what somebody asks, and whether they disagree about that."""

    case_id: str
    origin: str
    kind: str
    half: str
    is_conflict: bool
    question: str
    sides: tuple[AssertingPassage, AssertingPassage]

    def is_found(self, encode: SentenceEncoder) -> bool:
        """Tell whether an answer that holds both passages would show a conflict."""
        return bool(find_contradictions(self.sides, question=self.question, encode=encode))


def load_cases(path: Path = OWN) -> list[NaturalCase]:
    """Load labelled cases, in the order of the file."""
    rows = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return [
        NaturalCase(row["id"], row["origin"], row["kind"], row["half"], row["conflict"], row["question"],
                    (_side(row["a"], "a"), _side(row["b"], "b")))
        for row in rows
    ]  # fmt: skip


def _side(row: dict[str, Any], place: str) -> AssertingPassage:
    heading = {"title" if row["domain"] == "code" else "section": row["heading"]}
    return AssertingPassage(
        text=row["text"], domain=row["domain"], source_id=place, path=row["path"], place=place, **heading
    )


def figures(cases: Sequence[NaturalCase], encode: SentenceEncoder) -> Iterator[tuple[str, Share]]:
    """Yield what is measured → its share: found of each kind, and alarms over pairs that only look like it."""
    shown = {case.case_id: case.is_found(encode) for case in cases}
    for name, is_conflict in (("found", True), ("wrong alarms", False)):
        chosen = [case for case in cases if case.is_conflict is is_conflict]
        for kind in (None, *sorted({case.kind for case in chosen})):
            alike = [case for case in chosen if kind in {None, case.kind}]
            yield f"{name}: {kind or 'all'}", Share(sum(shown[case.case_id] for case in alike), len(alike))
