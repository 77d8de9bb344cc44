"""How often the sentences of an answer stand in a judged place: ``python -m lab.extracts CONFIG SET…``.

``CONFIG`` is that of a synced corpus, a set a folder of judged questions. All domains are asked. A sentence is right
when it overlaps a relevant place. The page also shows sentences that are only what comes nearest.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from evals.judged_files import read_judgments
from evals.judgments import Judgment
from nornweave.ask.answer.extract import nearest
from nornweave.ask.engine import Engine
from nornweave.ask.fuse.records import Answer, ExtractedSentence
from nornweave.ask.search.question import Question
from nornweave.connect.connectors import load_settings
from nornweave.core.access.viewer import OPERATOR
from nornweave.core.types import present

SEED = 20261124


def main(
    config: Annotated[Path, typer.Argument(help="Of a synced corpus.")],
    folders: Annotated[list[Path], typer.Argument(metavar="SET…", help="Judged sets.")],
    sample: Annotated[int, typer.Option(help="Questions of each set.")] = 200,
) -> None:
    """Print for each set how many answers begin with a right sentence, hold one, and show any; then the page's."""
    typer.echo("| set | questions | first is right | one is right | any shown | page: first | one | any |")
    typer.echo("|---|---|---|---|---|---|---|---|")
    with Engine(load_settings(config), watch=False) as engine:
        answers = engine.as_seen_by(OPERATOR).answers
        for folder in folders:
            judged = read_judgments(folder)
            queries = [query for query in judged.queries if judged.relevant.get(query.id)]
            drawn = random.Random(SEED).sample(queries, min(sample, len(queries)))  # noqa: S311
            counts = Counter[int]()
            for query in drawn:
                answer = answers.answer(Question(text=query.text, now=present(), viewer=OPERATOR))
                for column, sentences in enumerate((answer.extract, answer.extract or nearest(answer))):
                    told = [_is_right(one, answer, judged.relevant[query.id]) for one in sentences]
                    counts.update({3 * column: any(told[:1]), 3 * column + 1: any(told), 3 * column + 2: bool(told)})
            shares = " | ".join(f"{counts[column] / len(drawn):.3f}" for column in range(6))
            typer.echo(f"| {judged.name} | {len(drawn)} | {shares} |")


def _is_right(sentence: ExtractedSentence, answer: Answer, relevant: Sequence[Judgment]) -> bool:
    """Tell whether a sentence overlaps a judged place."""
    item = next(item for item in answer.items if item.chunk_id == sentence.chunk_id)
    citation = item.citation
    if citation.line_range:
        first = citation.line_range[0] + item.item.content[: sentence.span.start].count("\n")
        citation = replace(citation, line_range=(first, first + sentence.text.count("\n")))
    return any(judgment.hit_by(citation) for judgment in relevant)


if __name__ == "__main__":
    typer.run(main)
