"""Results of evaluations ↔ their history."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from evals.results import ITEMS, ResultScope, ScopeResult, SetResult
from nornweave import __version__
from nornweave.connect.git.program import git_command, git_environment
from nornweave.improve.comparison import EvaluationComparison, compare
from nornweave.improve.history import EvaluationHistory
from nornweave.improve.records import Evaluation, QueryValue, StageMetric, Values, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySubject:
    """The evaluated generation.

    Attributes:
        verdict: see ``evaluations.Verdict``.
    """

    run_id: str
    generation: str
    verdict: Verdict
    at: datetime = field(default_factory=lambda: datetime.now(UTC))


@dataclass(frozen=True, slots=True)
class Baseline:
    """An earlier evaluation, with its values by query if they are kept.

    Attributes:
        values: (stage, measure) → (query, digest) → value.
    """

    evaluation: Evaluation
    values: Mapping[tuple[str, str], Values]

    def compare(self, result: SetResult, run: ScopeResult, stage: str, measure: str) -> EvaluationComparison | None:
        """Compare over the queries that are the same in both; ``None`` if there are none."""
        after = run.stage(stage)
        if after is None or measure not in after.metrics:
            return None
        return compare(self._of(result, stage, measure), after.metrics[measure].values)

    def compare_with_nothing(self, result: SetResult, stage: str, measure: str) -> EvaluationComparison | None:
        """Compare with a stage that answered no query now; ``None`` if it answered none before either."""
        return compare(self._of(result, stage, measure), dict.fromkeys(result.digests, 0.0))

    def _of(self, result: SetResult, stage: str, measure: str) -> dict[str, float]:
        """Return the values of the queries that did not change."""
        values = self.values.get((stage, measure), {})
        return {query: value for (query, digest), value in values.items() if result.digests.get(query) == digest}


def to_history_record(
    result: SetResult, run: ScopeResult, subject: HistorySubject
) -> tuple[Evaluation, tuple[QueryValue, ...]]:
    """Return one run as a record for the history."""
    evaluation = Evaluation(
        evaluation_id=uuid.uuid4().hex,
        run_id=subject.run_id,
        at=subject.at,
        domain=result.subject,
        set_name=result.name,
        origin=result.origin.value,
        scope=run.scope.value,
        generation=subject.generation,
        verdict=subject.verdict,
        commit=code_version(),
        queries=result.queries,
        measured=result.measured,
        missing=len(result.missing),
        failed=len(run.failures),
        p50_ms=run.p50_ms,
        p95_ms=run.p95_ms,
        metrics=tuple(
            StageMetric(stage.stage, measure, metric.mean, metric.low, metric.high)
            for stage in run.stages
            for measure, metric in stage.metrics.items()
        ),
    )
    values = tuple(
        QueryValue(stage.stage, query, result.digests[query], measure, value)
        for stage in run.stages
        for measure, metric in stage.metrics.items()
        if measure != ITEMS
        for query, value in metric.values.items()
    )
    return evaluation, values


def baseline(
    history: EvaluationHistory, result: SetResult, scope: ResultScope, *, generation: str | None = None
) -> Baseline | None:
    """Return the newest evaluation of the same set and scope, without refused candidates.

    With a named generation, outdated evaluations are left out too: a candidate must not look good beside a generation
        that newer
    code has made look bad.

    Args:
        generation: only evaluations of this one.
    """
    found = history.evaluations(domain=result.subject, set_name=result.name, scope=scope.value, generation=generation)
    passed_over = {Verdict.REFUSED, *([Verdict.OUTDATED] if generation else [])}
    for evaluation in found:
        if evaluation.verdict not in passed_over:
            return Baseline(evaluation, history.values(evaluation.evaluation_id))
    return None


DEADLINE_S = 5.0


@lru_cache(maxsize=1)
def code_version() -> str:
    """Return the version; in a checkout with the commit, and with ``-changed`` if files differ from it.

    ``0.1.0+1c423bb-changed``; never raises.
    """
    root = Path(__file__).parent.parent
    if not (root / ".git").exists():
        return __version__
    commit = _git(root, "rev-parse", "--short", "HEAD")
    changed = "-changed" if _git(root, "status", "--porcelain", "--untracked-files=no") else ""
    return f"{__version__}+{commit}{changed}" if commit else __version__


def _git(root: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            git_command(root, *arguments),
            env=git_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=DEADLINE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace").strip() if done.returncode == 0 else ""
