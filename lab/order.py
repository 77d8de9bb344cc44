"""``python -m lab.order``: fit the order of the first places to questions with known places.

A file of questions (``answers_NAME.jsonl``) has on each line a ``question`` and the ``places`` that answer it, each a
``path`` with the lines ``from`` and ``to``. Its workspace is ``WORKSPACES/NAME/nornweave.yaml``, synced. The first item
that answers is compared with each of the first ten that do not, all comparisons of a question weigh one, and the
coefficients are those of a logistic model over the differences. Files are left out of the fit in turn to measure it;
those behind ``--try`` are only measured, as counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from lab.conflicts.fitting import Bag, fit
from nornweave.ask.engine import Engine
from nornweave.ask.fuse.order import PLACES, features, order
from nornweave.ask.fuse.records import FusedItem
from nornweave.ask.search.question import Question
from nornweave.connect.connectors import load_settings
from nornweave.core.access import OPERATOR
from nornweave.core.types import present

L2 = 25.0
"""Inverse variance of the coefficients' prior, of features with variance 1; without evidence the score alone counts."""
FREE = "score"
"""The feature whose coefficient has next to no prior."""


@dataclass(frozen=True, slots=True)
class Case:
    """A question: its first items by their own scores, and which of them answer."""

    question: str
    items: tuple[FusedItem, ...]
    answers: frozenset[str]

    def rank(self, model: Mapping[str, float] | None) -> int:
        """Return the rank of the first item that answers by a model or by the scores alone, 0 if none does."""
        items = order(self.items, self.question, model) if model else self.items
        return next((rank for rank, item in enumerate(items, 1) if item.chunk_id in self.answers), 0)


def main(
    workspaces: Annotated[Path, typer.Argument(help="Folder of the workspaces.")],
    files: Annotated[list[Path], typer.Argument(help="Questions to fit with.")],
    tried: Annotated[list[Path] | None, typer.Option("--try", help="Questions to measure with.")] = None,
) -> None:
    """Fit the order, print how often an answer is first, in three and in ten, and the coefficients."""
    cases = {file: [*cases_of(file, workspaces)] for file in files}
    before: list[int] = []
    after: list[int] = []
    for file, own in cases.items():
        model = fitted([case for other, its in cases.items() if other != file for case in its])
        ranks = [case.rank(None) for case in own], [case.rank(model) for case in own]
        typer.echo(f"{file.stem}: {_counts(ranks[0])} -> {_counts(ranks[1])}")
        before, after = before + ranks[0], after + ranks[1]
    model = fitted([case for own in cases.values() for case in own])
    typer.echo(f"each left out: {_counts(before)} -> {_counts(after)}")
    for file in tried or ():
        own = [*cases_of(file, workspaces)]
        ranks = [case.rank(None) for case in own], [case.rank(model) for case in own]
        typer.echo(f"{file.stem}: {_counts(ranks[0])} -> {_counts(ranks[1])}")
    typer.echo({name: round(value, 3) for name, value in model.items()})


def cases_of(file: Path, workspaces: Path) -> Iterator[Case]:
    """Yield the questions of a file that have places."""
    settings = load_settings(workspaces / file.stem.rpartition("_")[2] / "nornweave.yaml")
    with Engine(settings, watch=False) as engine:
        answers = engine.as_seen_by(OPERATOR).answers
        for asked in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
            if asked["places"]:
                fused = answers.answer(Question(text=asked["question"], now=present(), viewer=OPERATOR)).fused
                first = [
                    replace(item, score=item.score - item.signals.get("order", 0.0)) for item in fused.items[:PLACES]
                ]
                yield Case(
                    asked["question"],
                    tuple(sorted(first, key=lambda item: -item.score)),
                    frozenset(item.chunk_id for item in first if any(_is_at(item, place) for place in asked["places"])),
                )


def fitted(cases: Sequence[Case]) -> dict[str, float]:
    """Return the coefficients that are fitted to questions."""
    read = [[features(item, case.question) for item in case.items] for case in cases]
    rows = [row for own in read for row in own]
    spread = {name: float(np.std([row[name] for row in rows])) or 1.0 for name in rows[0]}
    spread[FREE] /= L2
    bags = []
    for case, own in zip(cases, read, strict=True):
        is_right = [item.chunk_id in case.answers for item in case.items]
        wrong = [row for row, answers in zip(own, is_right, strict=True) if not answers]
        for row in wrong if any(is_right) else ():
            for sign in (1, -1):
                right = own[is_right.index(True)]
                difference = {name: sign * (right[name] - row[name]) / spread[name] for name in spread}
                bags.append(Bag(sign > 0, (difference,), 1 / len(wrong)))
    return {name: weight / spread[name] for name, weight in fit(bags, l2=L2).weights.items()}


def _is_at(item: FusedItem, place: Mapping[str, Any]) -> bool:
    cited = (item.citation, *item.item.folded, *item.corroborated_by)
    return any(
        each.source_path == place["path"]
        and (each.line_range is None or (each.line_range[0] <= place["to"] and place["from"] <= each.line_range[1]))
        for each in cited
    )


def _counts(ranks: Sequence[int]) -> str:
    found = [sum(0 < rank <= most for rank in ranks) for most in (1, 3, PLACES)]
    return f"{found[0]}, {found[1]}, {found[2]} of {len(ranks)}"


if __name__ == "__main__":
    typer.run(main)
