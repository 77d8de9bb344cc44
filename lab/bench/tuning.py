"""Does tuning help on queries that it never saw: fitted to one half of each judged set, tested on the other."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from evals.judged_files import read_judgments
from evals.judgments import JudgedSet
from evals.runs import SetToRun
from evals.targets import locate
from evals.tuning import MAX_QUERIES, tune, tune_ranking
from evals.tuning.cases import cases_of
from evals.tuning.objective import AllDomains, domain_ranking, scored
from evals.tuning.results import Change, TuningResult, differing
from lab.bench.fusing import SOURCES, workspace
from nornweave.ask.engine import Engine
from nornweave.config import PlanSettings, Settings, SourceWeights
from nornweave.config.plans.active import read_plan, read_ranking
from nornweave.connect.connectors import load_settings
from nornweave.core.access.viewer import OPERATOR
from nornweave.core.types import Domain

# What someone has who knows nothing of their corpus: what tuning should repair.
EQUAL = PlanSettings(
    weights=SourceWeights(dense=0.25, sparse=0.25, fulltext=0.25, structured=0.25),
    literal_weights=SourceWeights(dense=0.25, sparse=0.25, fulltext=0.25, structured=0.25),
    document_share=0,
    function_words=1,
)
# What a small team judges in an afternoon.
_REPAIRED_WITH = 100


@dataclass(frozen=True, slots=True)
class _Row:
    """One half of a set: what tuning on the other made of it.

    Attributes:
        served: with what is in force afterwards: the new plan if it is kept, else the old one.
        anyway: with the new plan whether or not it is kept; what the check saves one from.
    """

    name: str
    half: int
    result: TuningResult
    served: Change
    anyway: Change


def print_tuning(shared: Path, work: Path) -> None:
    """Print the tables; reuses the index in ``work`` if there is one, says so where the judged sets are missing."""
    console = Console(width=180)
    if not all((shared / name).is_dir() for name in SOURCES):
        console.print(f"tuning: no judged sets in {shared}, nothing to measure on")
        return
    settings = load_settings(workspace(shared, work))
    sets = [read_judgments(shared / name) for name in SOURCES]
    with Engine(settings) as engine:
        rows = [_tuned(engine, settings, judged, half, sets, MAX_QUERIES) for judged in sets for half in (0, 1)]
    _print(console, "plans, from those shipped: fitted to one half of a set, tested on the other", rows)
    equal = with_plans(settings, EQUAL)
    with Engine(equal) as engine:
        rows = [_tuned(engine, equal, judged, 0, sets, _REPAIRED_WITH) for judged in sets]
    _print(console, f"plans, from equal weights: fitted to {_REPAIRED_WITH} queries, tested on the other half", rows)
    with Engine(settings) as engine:
        rows = [row for half in (0, 1) for row in _ranked(engine, settings, sets, half)]
    _print(console, "ranking weights, from those shipped: fitted to one half of all, tested on the other", rows)


def with_plans(settings: Settings, plan: PlanSettings) -> Settings:
    """Return settings under which every domain starts from one plan."""
    domains = {domain: one.model_copy(update={"plan": plan}) for domain, one in settings.domains.items()}
    return settings.model_copy(update={"domains": domains})


def half_of(judged: JudgedSet, half: int) -> JudgedSet:
    """Return the queries of a set whose hash is even, or odd, with their judgments."""
    queries = tuple(query for query in judged.queries if hashlib.sha256(query.id.encode()).digest()[0] % 2 == half)
    ids = {query.id for query in queries}
    return replace(judged, queries=queries, judgments=tuple(one for one in judged.judgments if one.query_id in ids))


def _tuned(
    engine: Engine, settings: Settings, judged: JudgedSet, half: int, sets: Sequence[JudgedSet], max_queries: int
) -> _Row:
    domain = locate(engine.as_seen_by(OPERATOR).answers, judged).domain
    # The other sets' halves say what becomes of all domains; the half that is tested on says nothing.
    halves = [SetToRun(half_of(one, half)) for one in sets]
    result = tune(engine, settings, domain, halves, max_queries=max_queries, deadline_s=None)
    plans = (read_plan(result.in_force), read_plan(result.best))
    before, after = _scored(engine, domain, half_of(judged, 1 - half), plans)
    return _row(judged.name, half, result, before, after)


def _scored(
    engine: Engine, domain: Domain, judged: JudgedSet, plans: tuple[PlanSettings, PlanSettings]
) -> list[dict[str, float]]:
    cases = cases_of([locate(engine.as_seen_by(OPERATOR).answers, judged)])
    with ThreadPoolExecutor(1) as executor:
        agent = engine.agents[domain]
        values = scored(plans, cases, lambda plan, case: domain_ranking(agent.with_plan(plan), executor, case))
    return [dict(zip((case.id for case in cases), values[plan].tolist(), strict=True)) for plan in plans]


def _ranked(engine: Engine, settings: Settings, sets: Sequence[JudgedSet], half: int) -> list[_Row]:
    result = tune_ranking(engine, settings, [SetToRun(half_of(one, half)) for one in sets], deadline_s=None)
    weights = (read_ranking(result.in_force), read_ranking(result.best))
    rows = []
    for judged in sets:
        cases = cases_of([locate(engine.as_seen_by(OPERATOR).answers, half_of(judged, 1 - half))])
        executors = {domain: ThreadPoolExecutor(1) for domain in engine.agents}
        values = scored(weights, cases, AllDomains(engine.agents, executors, settings.fusion).ranking_by_weights())
        ids = [case.id for case in cases]
        before, after = (dict(zip(ids, values[one].tolist(), strict=True)) for one in weights)
        rows.append(_row(judged.name, half, result, before, after))
        for executor in executors.values():
            executor.shutdown()
    return rows


def _row(name: str, half: int, result: TuningResult, before: Mapping[str, float], after: Mapping[str, float]) -> _Row:
    served = after if result.kept else before
    return _Row(name, half, result, Change.of(name, before, served), Change.of(name, before, after))


def _print(console: Console, title: str, rows: Sequence[_Row]) -> None:
    """Print the table, and what was changed where something was kept."""
    table = Table(title=title, title_justify="left")
    for column in ("fitted to", "queries", "plans", "s", "held out (p)", "kept", "tested on", "before", "after", "diff",
                   "p gain", "p drop", "if always kept"):  # fmt: skip
        table.add_column(column, justify="left" if column in {"fitted to", "kept"} else "right", no_wrap=True)
    for row in rows:
        served, held_out = row.served, row.result.held_out
        table.add_row(
            f"{row.name} {'ab'[row.half]}",
            str(row.result.queries),
            str(row.result.plans_tried),
            f"{row.result.seconds:.0f}",
            f"{held_out.difference:+.4f} ({held_out.p_gain:.3f})",
            "yes" if row.result.kept else "no",
            str(served.queries),
            f"{served.before:.4f}",
            f"{served.after:.4f}",
            f"{served.difference:+.4f}",
            f"{row.served.p_gain:.3f}",
            f"{served.p_drop:.3f}",
            f"{row.anyway.difference:+.4f}",
        )
    mean = math.fsum(row.served.difference for row in rows) / max(1, len(rows))
    console.print(table)
    console.print(f"mean difference {mean:+.4f}; held out: cross-validated on the half that it was fitted to")
    for text in dict.fromkeys(_verdict(row) for row in rows):
        console.print(text, highlight=False)


def _verdict(row: _Row) -> str:
    """Say what was found; where all sets are fitted together, the same for all."""
    changed = differing(row.result.best, row.result.in_force)
    values = ", ".join(f"{key} {value:g}" for key, value in changed.items()) or "nothing"
    return f"{row.result.subject} {'ab'[row.half]}: {values}. {row.result.reason}"
