"""What each stage of fusion does to relevance: the same recalled items fused in different ways, on judged sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from evals.judged_files import read_judgments
from evals.matches import JudgedHits
from evals.measures import Metric, measure
from evals.searching import PathSearcher
from evals.targets import RunTarget, locate
from lab.bench.fusing import SOURCES, workspace
from nornweave.ask.engine import Engine
from nornweave.ask.pipeline import answer_from, to_recalled
from nornweave.ask.search.fan_out import merge_items
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import Citation, RecallResponse
from nornweave.config.fusion import CALIBRATED_WEIGHTS, STRETCHED_WEIGHTS, FusionSettings, RankWeights
from nornweave.connect.connectors import load_settings
from nornweave.core.access.viewer import OPERATOR
from nornweave.core.types import Domain, present

_QUERIES = 250
MEASURES = ("Recall@10", "RR@10")


@dataclass(frozen=True, slots=True)
class _Asked:
    """A judged query with what the domains answered."""

    query: str
    question: Question
    responses: Mapping[Domain, RecallResponse]


def _weights(weights: RankWeights) -> FusionSettings:
    return FusionSettings(**{f"rank_weight_{name}": value for name, value in asdict(weights).items()})


def _one(signal: str, value: float) -> FusionSettings:
    """Only the score and one signal."""
    nothing = dict.fromkeys(RankWeights.__slots__, 0.0)
    return _weights(RankWeights(**{**nothing, "score": 1 - value, signal: value}))


ROWS: Mapping[str, FusionSettings] = {
    "score alone": _one("score", 1.0),
    "+ corroboration .03": _one("corroboration", 0.03),
    "+ recency .01": _one("recency", 0.01),
    "+ domain .02": _one("domain", 0.02),
    "+ length .01": _one("length", 0.01),
    "calibrated defaults": _weights(CALIBRATED_WEIGHTS),
    "half of the weights for min-max": _weights(
        RankWeights(score=0.75, corroboration=0.075, recency=0.075, domain=0.05, length=0.05)
    ),
    "weights for min-max": _weights(STRETCHED_WEIGHTS),
    "weights for min-max, and min-max": FusionSettings(normalization="minmax"),
    "no merging (threshold 1)": FusionSettings(dedup_similarity_threshold=1.0),
    "losers not demoted": FusionSettings(conflict_demotion_penalty=0.0),
}


def print_ranking(shared: Path, work: Path, rows: Mapping[str, FusionSettings] = ROWS) -> None:
    """Print Recall@10 and MRR@10 per set, all domains asked, none named, for each way of fusing."""
    config = workspace(shared, work)
    console = Console(width=160)
    table = Table(title="fused answers, all domains, none named: Recall@10 / MRR@10", title_justify="left")
    table.add_column("fusion")
    figures: dict[str, dict[str, str]] = {name: {} for name in ("merged by score, not fused", *rows)}
    with Engine(load_settings(config)) as engine:
        for name in SOURCES:
            target = locate(PathSearcher(engine.path), read_judgments(shared / name))
            asked = _recalled(engine, target)
            table.add_column(f"{name} ({len(asked)})")
            figures["merged by score, not fused"][name] = _figure(target, asked, None)
            for row, settings in rows.items():
                figures[row][name] = _figure(target, asked, settings)
    for row, by_set in figures.items():
        table.add_row(row, *by_set.values())
    console.print(table)


def _recalled(engine: Engine, target: RunTarget) -> list[_Asked]:
    step = max(1, len(target.queries) // _QUERIES)
    asked = []
    for query in target.queries[::step]:
        question = Question(text=query.text, now=present(), viewer=OPERATOR)
        responses = {
            Domain(one.domain_id): one
            for one in engine.as_seen_by(OPERATOR).answers.answer(question).recalled.responses
        }
        asked.append(_Asked(query.id, question, responses))
    return asked


def _figure(target: RunTarget, asked: Sequence[_Asked], settings: FusionSettings | None) -> str:
    rankings, grades = {}, {}
    for one in asked:
        relevant = target.relevant[one.query]
        hits = JudgedHits(relevant, target.domain, target.held)
        rankings[one.query] = hits.places(_ranking(one, settings), by_document=hits.whole_documents)
        grades[one.query] = {judgment.key: judgment.grade for judgment in relevant}
    metrics: Mapping[str, Metric] = measure(rankings, grades, MEASURES)
    return " / ".join(f"{metrics[name].mean:.3f}".removeprefix("0") for name in MEASURES)


def _ranking(asked: _Asked, settings: FusionSettings | None) -> Iterable[Citation]:
    if settings is None:
        items = merge_items([response.items for response in asked.responses.values()], asked.question.top_k)
        return [item.citation for item in items]
    answered = answer_from(asked.question, to_recalled(asked.question, {}, asked.responses), settings)
    return [ranked.citation for ranked in answered.items]
