"""Whether a candidate is good enough to be published. Pure: results in, findings out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evals.history import Baseline
from evals.judgments import JudgmentOrigin
from evals.results import ResultScope, ScopeResult, SetResult
from nornweave.config import EvaluationSettings
from nornweave.improve.comparison import EvaluationComparison
from nornweave.improve.records import LAST_STAGE

MEASURES = ("Recall@10", "RR@10")
SOURCES = ("dense", "sparse")
"""Retrieval sources that are watched on their own: a broken one is made up for by the other, until it is needed."""
ALPHA = 0.05
"""How probable a drop may at most be by chance to count: of the answers."""
SOURCE_ALPHA = 0.01
"""Of a retrieval source, whose drop need not be one of the answers."""
WATCHED = tuple((stage, measure) for stage in (LAST_STAGE, *SOURCES) for measure in MEASURES)
SHOWN_QUERIES = 5
LEAST_WORSE = math.floor(-math.log2(ALPHA)) + 1
"""So many queries, all of them worse, are the fewest whose drop is beyond chance."""
SMALL = 12
"""Of a set of so many queries, those that are lost are counted as well: hardly any drop of it is beyond chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateFinding:
    """One finding of the gate.

    Attributes:
        comparison: with what is published, over the queries that are the same; ``None`` where a floor was checked or
            there is nothing to compare with.
        refuses: whether the candidate must not be published because of it.
        warns: whether a person should know of it all the same.
    """

    set_name: str
    stage: str
    measure: str
    value: float
    comparison: EvaluationComparison | None
    refuses: bool
    warns: bool
    text: str


def judge(
    result: SetResult, before: Baseline | None, settings: EvaluationSettings, scope: ResultScope = ResultScope.DOMAIN
) -> tuple[GateFinding, ...]:
    """Judge a generation by the results of one judged set.

    A drop warns if it is larger than the margin, and refuses if it is beyond chance as well (one-sided paired
    randomisation test); a floor refuses if the mean lies below it. Of a set of at most ``SMALL`` queries each that fell
    out of the first ten warns, and too large a share of them refuses.

    Args:
        result: of the candidate, or of what is published.
    """
    run = result.scope(scope)
    if run is None or run.stage(LAST_STAGE) is None:
        return ()
    drops = _drops(result, run, before, settings)
    return (*drops, *_lost(result, run, before, settings), *_floors(result, run, settings))


def refusals(findings: Iterable[GateFinding]) -> tuple[str, ...]:
    """Return short reasons why a candidate must not be published; empty if it may be.

    Losses of the answers are named first; losses of single retrievers only if the answers lost nothing.
    """
    return _say_findings([finding for finding in findings if finding.refuses])


def warnings(findings: Iterable[GateFinding]) -> tuple[str, ...]:
    """Return short texts about losses that refuse nothing."""
    return _say_findings([finding for finding in findings if finding.warns and not finding.refuses])


def _say_findings(findings: Sequence[GateFinding]) -> tuple[str, ...]:
    of_answers = [finding for finding in findings if finding.stage == LAST_STAGE]
    return tuple(finding.text for finding in of_answers or findings)


def holds_back(queries: int, lost_share: float) -> str:
    """Return when a set with this many queries holds a generation back; empty if it never can."""
    lost = math.floor(queries * lost_share) + 1
    said = [f"{lost} of them fell out of the first ten"] if queries <= SMALL and lost <= queries else []
    said += [f"{LEAST_WORSE} of them, or more, got worse beyond chance"] if queries >= LEAST_WORSE else []
    return " or ".join(said)


def worse_queries(findings: Sequence[GateFinding]) -> tuple[tuple[str, str, str, float, float], ...]:
    """Return set, query, measure, before and after for each answer that got worse, worst first."""
    rows = [
        (finding.set_name, change.query, finding.measure, change.before, change.after)
        for finding in findings
        if finding.comparison and finding.stage == LAST_STAGE
        for change in finding.comparison.worse
    ]
    return tuple(sorted(set(rows), key=lambda row: (row[4] - row[3], row[0], row[1], row[2])))


def _drops(
    result: SetResult, run: ScopeResult, before: Baseline | None, settings: EvaluationSettings
) -> Iterable[GateFinding]:
    for stage, measure in WATCHED:
        found = run.stage(stage)
        value = found.metrics[measure].mean if found else 0.0
        compared = None
        if before:
            compared = (
                before.compare(result, run, stage, measure)
                if found
                else before.compare_with_nothing(result, stage, measure)
            )
        if found is None and compared is None:
            continue
        margin, alpha = (settings.margin, ALPHA) if stage == LAST_STAGE else (settings.source_margin, SOURCE_ALPHA)
        dropped = compared is not None and -compared.difference > margin
        yield GateFinding(
            set_name=result.name,
            stage=stage,
            measure=measure,
            value=value,
            comparison=compared,
            refuses=compared is not None and dropped and compared.p_drop < alpha,
            warns=dropped,
            text=_drop_text(result, stage, measure, value, compared, margin),
        )


def _drop_text(
    result: SetResult, stage: str, measure: str, value: float, compared: EvaluationComparison | None, margin: float
) -> str:
    of = f"{result.name}: {measure} of {stage}"
    if compared is None:
        return f"{of} is {value:.3f}; nothing to compare it with"
    changed = f"{of}: {compared.before:.3f} → {compared.after:.3f} over {compared.queries} queries"
    worse = ", ".join(change.query for change in compared.worse[:SHOWN_QUERIES])
    more = ", …" if len(compared.worse) > SHOWN_QUERIES else ""
    which = f"; worse: {worse}{more}" if worse else ""
    return f"{changed} (p {compared.p_drop:.4f} of such a drop by chance, margin {margin:g}){which}"


def _lost(
    result: SetResult, run: ScopeResult, before: Baseline | None, settings: EvaluationSettings
) -> Iterable[GateFinding]:
    """Yield findings on queries of a small set that lost their only right places among the first ten."""
    measure = "Recall@10"
    compared = before.compare(result, run, LAST_STAGE, measure) if before else None
    if compared is None or compared.queries > SMALL:
        return
    if lost := [change.query for change in compared.worse if not change.after]:
        yield GateFinding(
            set_name=result.name,
            stage=LAST_STAGE,
            measure=measure,
            value=compared.after,
            comparison=compared,
            refuses=len(lost) > settings.lost_share * compared.queries,
            warns=True,
            text=f"{result.name}: {len(lost)} of {compared.queries} questions fell out of the first ten: "
            f"{', '.join(lost)}",
        )


def _floors(result: SetResult, run: ScopeResult, settings: EvaluationSettings) -> Iterable[GateFinding]:
    fused = run.stage(LAST_STAGE)
    if fused is None or result.origin not in {JudgmentOrigin.PEOPLE, JudgmentOrigin.PUBLIC}:
        return
    for measure, floor in settings.floors.items():
        value = fused.metrics[measure].mean
        yield GateFinding(
            set_name=result.name,
            stage=LAST_STAGE,
            measure=measure,
            value=value,
            comparison=None,
            refuses=value < floor,
            warns=value < floor,
            text=f"{result.name}: {measure} of the answers is {value:.3f}; the floor is {floor:g}",
        )
