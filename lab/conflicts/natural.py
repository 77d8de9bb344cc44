"""Disagreements of people, rewritten from public threads: what detection finds of them, and the model of sentences."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from lab.conflicts.fitting import FittingCase, cross_validate, fit_cases
from lab.conflicts.repositories import Repository, texts
from lab.conflicts.shares import Share
from nornweave.disagree.assertions.pairing import candidates, features, find_contradictions
from nornweave.disagree.assertions.passage import AssertingPassage
from nornweave.disagree.conflicts.model import Model

OWN = Path(__file__).parents[1] / "labelled" / "natural.jsonl"
PASSAGE = 1_500
"""Characters of a passage of a repository, about."""
L2 = 0.3
CHANCE_WEIGHT = 0.1
"""What a pair of sentences of a repository counts, in labelled cases; nearly all of them are no disagreement."""


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

    @cached_property
    def is_found(self) -> bool:
        """Tell whether an answer that holds both passages would show a conflict."""
        return bool(find_contradictions(self.sides, question=self.question))

    @property
    def described(self) -> list[dict[str, float]]:
        """The features of the pairs of sentences that are weighed."""
        return _described(self.sides)


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


def _described(passages: Sequence[AssertingPassage]) -> list[dict[str, float]]:
    return [
        features(each.one, each.other, passages[each.first], passages[each.second]) for each in candidates(passages)
    ]


def figures(cases: Sequence[NaturalCase]) -> Iterator[tuple[str, Share]]:
    """Yield what is measured → its share: found of each kind, and alarms over pairs that only look like it."""
    for name, is_conflict in (("found", True), ("wrong alarms", False)):
        chosen = [case for case in cases if case.is_conflict is is_conflict]
        for kind in (None, *sorted({case.kind for case in chosen})):
            alike = [case for case in chosen if kind in {None, case.kind}]
            yield f"{name}: {kind or 'all'}", Share(sum(case.is_found for case in alike), len(alike))


def chance_pairs(repository: Repository) -> list[dict[str, float]]:
    """Describe what would be weighed between code and documentation of a repository."""
    passages = []
    for path, role, text in texts(repository.root):
        for start in range(0, len(text), PASSAGE):
            part = text[start : start + PASSAGE]
            passages.append(
                AssertingPassage(
                    text=part, domain=role, source_id=role, path=path, place=f"{path}:{start}", start=start
                )
            )
    return _described(passages)


def fit_sentences(cases: Sequence[NaturalCase], repositories: Sequence[Repository]) -> tuple[Model, list[float]]:
    """Fit the model of sentences; return it, and the confidence of each case by a model without its origin's cases."""
    labelled = [_case(case.origin, case.is_conflict, case.described) for case in cases]
    chance = [_case(each.name, False, [pair], CHANCE_WEIGHT) for each in repositories for pair in chance_pairs(each)]
    unseen = cross_validate([*labelled, *chance], l2=L2)[: len(cases)]
    return fit_cases([*labelled, *chance], l2=L2), unseen


def _case(group: str, is_conflict: bool, described: list[dict[str, float]], weight: float = 1.0) -> FittingCase:
    return FittingCase(group, is_conflict, lambda _model: described, weight)
