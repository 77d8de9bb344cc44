"""How often the sentences of an answer stand in a judged place: ``python -m lab.extracts CONFIG SET…``.

``CONFIG`` is that of a synced corpus, a set a folder of judged questions with judged lines or messages. All domains are
asked. An answer is right when one of its sentences overlaps a relevant place.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from evals.judged_files import read_judgments
from evals.judgments import Judgment
from nornweave.ask.engine import Engine
from nornweave.ask.fuse.records import Answer
from nornweave.ask.search.question import Question
from nornweave.connect.connectors import load_settings
from nornweave.core.access.viewer import OPERATOR
from nornweave.core.types import present


def answers_rightly(answer: Answer, judgments: Iterable[Judgment]) -> bool:
    """Tell whether a sentence overlaps a judged place."""
    items = {item.chunk_id: item for item in answer.items}
    for sentence in answer.extract:
        item = items[sentence.chunk_id]
        citation = item.citation
        if citation.line_range:
            before = item.item.content[: sentence.span.start].count("\n")
            first = citation.line_range[0] + before
            citation = replace(citation, line_range=(first, first + sentence.text.count("\n")))
        if any(judgment.hit_by(citation) for judgment in judgments):
            return True
    return False


def main(
    config: Annotated[Path, typer.Argument(help="Of a synced corpus.")],
    folders: Annotated[list[Path], typer.Argument(metavar="SET…", help="Judged sets.")],
) -> None:
    """Print the share of questions with a judged place that are answered rightly, per set."""
    with Engine(load_settings(config), watch=False) as engine:
        answers = engine.as_seen_by(OPERATOR).answers
        for folder in folders:
            judged = read_judgments(folder)
            right = total = shown = 0
            for query in judged.queries:
                relevant = judged.relevant.get(query.id)
                if relevant:
                    answer = answers.answer(Question(text=query.text, now=present(), viewer=OPERATOR))
                    total, shown = total + 1, shown + bool(answer.extract)
                    right += answers_rightly(answer, relevant)
            typer.echo(f"{judged.name}: {right} of {total} ({right / total:.3f}), {shown} with a sentence")


if __name__ == "__main__":
    typer.run(main)
