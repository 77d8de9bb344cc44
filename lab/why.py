"""``python -m lab.why CORPORA.yaml``: undo the causes that ``why`` states of judged documents that are missed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from api.arrival import arrive
from api.query_body import QueryBody
from evals.judgments import JudgedQuery, Judgment
from lab.answerable.cases import SEED, Corpus, read_corpora
from nornweave.ask.engine import Engine
from nornweave.ask.search.question import Question
from nornweave.ask.seen.answers import SeenAnswers
from nornweave.ask.why import SoughtPlace
from nornweave.connect.connectors import load_settings
from nornweave.core.access.viewer import OPERATOR
from nornweave.core.types import Domain, present
from nornweave.index.conditions import AtPath

TIMEOUT_MS = 60_000


def main(
    corpora: Annotated[Path, typer.Argument(help="Which corpora there are, as `python -m lab.answerable` reads them.")],
    sample: Annotated[int, typer.Option(help="Missed documents of each corpus.")] = 50,
) -> None:
    """Print per corpus, stage and change how many are in the ten once the change is made."""
    typer.echo("| corpus | missed | in the ten after the change | stages | changes |\n|---|---|---|---|---|")
    total: Counter[str] = Counter()
    for corpus in read_corpora(corpora):
        with Engine(load_settings(corpus.config), watch=False) as engine:
            answers = engine.as_seen_by(OPERATOR).answers
            stages: Counter[str] = Counter()
            changes: Counter[str] = Counter()
            lifted = 0
            for query, judgment, domain in _missed(corpus, answers, sample):
                stage, change, is_in = _undone(engine, query, judgment, domain)
                stages[stage] += 1
                changes[change] += is_in
                lifted += is_in
            count = stages.total()
            total.update(missed=count, lifted=lifted)
            typer.echo(f"| {corpus.name} | {count} | {lifted} | {_listed(stages)} | {_listed(changes)} |")
    typer.echo(f"| all | {total['missed']} | {total['lifted']} ({total['lifted'] / max(1, total['missed']):.2f}) | | |")


def _missed(corpus: Corpus, answers: SeenAnswers, sample: int) -> Iterator[tuple[JudgedQuery, Judgment, Domain | None]]:
    """Yield questions with a judged document that is not in the ten, over all domains, drawn by a fixed seed."""
    draw = random.Random(SEED)  # noqa: S311
    found = 0
    for judged, domain in corpus.sets:
        for query in draw.sample(judged.queries, len(judged.queries)):
            relevant = judged.relevant.get(query.id, ())
            if found >= sample or not relevant:
                continue
            items = answers.answer(_question(query, domain)).items
            missed = [one for one in relevant if not any(one.hit_by(item.citation) for item in items)]
            if missed:
                found += 1
                yield query, draw.choice(missed), domain


def _undone(engine: Engine, query: JudgedQuery, judgment: Judgment, domain: Domain | None) -> tuple[str, str, bool]:
    """Return the stage that is stated, the kind of change, and whether the judged place is in the ten after it."""
    answers = engine.as_seen_by(OPERATOR).answers
    line = judgment.lines[0] if judgment.lines else _line_of(engine, judgment)
    document = answers.why(_question(query, domain), SoughtPlace(judgment.path, line, domain=domain))
    if document is None:
        return "not indexed", "none", False
    if document["stage"] is None or document["changed"] is None:
        return document["stage"] or "shown", "none", False
    question = QueryBody(**document["changed"]).question(tuple(Domain), arrive(TIMEOUT_MS, OPERATOR))
    items = answers.answer(question).items
    kind = document["change"].partition(":")[0].replace(f" {judgment.path}", " its path")
    return document["stage"], kind, any(judgment.hit_by(item.citation) for item in items[:10])


def _line_of(engine: Engine, judgment: Judgment) -> int | None:
    """Return a line of the chunk that holds the judged message; ``None`` where a whole document is judged."""
    for agent in engine.agents.values() if judgment.message_id else ():
        with agent.generation.use(OPERATOR) as index:
            numbers = np.flatnonzero(index.within([AtPath(judgment.path)])).astype(np.int32)
            for chunk in index.chunks(numbers).values():
                if judgment.message_id in chunk.message_ids:
                    return chunk.line_range[0]
    return None


def _question(query: JudgedQuery, domain: Domain | None) -> Question:
    filters = {domain: query.filters} if domain and query.filters else {}
    return Question(text=query.text, now=present(), viewer=OPERATOR, filters=filters)


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common() if count)


if __name__ == "__main__":
    typer.run(main)
