"""Find the plan that each domain answers with: the configured one, or a tuned one that was fitted from it.

Tuned plans are in ``data_dir/plans/<domain>/``, the ranking weights across domains (``RankWeights``) in
``data_dir/plans/fusion/``. A plan is valid only for the configuration that it was fitted from: once a person edits the
YAML, the YAML wins. A damaged plan never stops serving: it is reported, and the configured plan answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import ValidationError

from nornweave.config import PlanSettings, Settings
from nornweave.config.fusion import CALIBRATED_WEIGHTS, FusionSettings, RankWeights
from nornweave.config.plans.versioned_files import CONFIGURED, PlanFile, PlanFiles
from nornweave.core.errors import StoreError
from nornweave.core.types import Domain, Metadata, canonical_json, digest

FUSION = "fusion"
"""The subject of plans that rank across domains."""


@dataclass(frozen=True, slots=True)
class PlanInForce:
    """The plan that a domain answers with.

    Attributes:
        name: ``configured`` or ``plan-3``.
        problem: why the plan that ``CURRENT`` names does not answer; ``None`` when it does or none is named.
    """

    plan: PlanSettings
    name: str = CONFIGURED
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class RankingInForce:
    """The ranking weights for calibrated scores; ``weights`` is ``None`` if the settings decide."""

    weights: RankWeights | None = None
    name: str = CONFIGURED
    problem: str | None = None


def plan_files(settings: Settings, domain: Domain | None) -> PlanFiles:
    """Return the plans of a domain; ``None`` for those that rank across domains."""
    if domain is None:
        return PlanFiles(settings.data_dir / "plans" / FUSION, read_ranking)
    return PlanFiles(settings.data_dir / "plans" / domain.value, read_plan)


def plan_digest(plan: PlanSettings) -> str:
    """Return a digest of the values of a configured plan."""
    return digest(canonical_json(plan.model_dump(mode="json")))


def ranking_digest(weights: RankWeights) -> str:
    """Identify configured ranking weights by their values."""
    return digest(canonical_json({name: float(value) for name, value in asdict(weights).items()}))


def plan_in_force(settings: Settings, domain: Domain) -> PlanInForce:
    """Return the plan that a domain answers with; never raises for what stands in the files."""
    configured = settings.domains[domain].plan
    try:
        plan = _named(plan_files(settings, domain), plan_digest(configured))
        if plan is None:
            return PlanInForce(configured)
        return PlanInForce(read_plan(plan.values), plan.name)
    except (StoreError, ValueError) as error:
        return PlanInForce(configured, problem=f"{error}; the configured plan answers")


def ranking_in_force(settings: Settings) -> RankingInForce:
    """Return the weights that rank calibrated scores; ``rank_weight_*`` of the settings win over a tuned plan."""
    fusion = settings.fusion
    try:
        plan = _named(plan_files(settings, None), ranking_digest(fusion.rank_weights("calibrated")))
        if plan is None:
            return RankingInForce()
        if stated := [
            f"rank_weight_{one}" for one in RankWeights.__slots__ if getattr(fusion, f"rank_weight_{one}") is not None
        ]:
            return RankingInForce(problem=f"{plan.name} is not used: the settings say {', '.join(stated)}")
        return RankingInForce(read_ranking(plan.values), plan.name)
    except (StoreError, ValueError) as error:
        return RankingInForce(problem=f"{error}; the configured weights rank")


def read_plan(values: Metadata) -> PlanSettings:
    """Validate the values of a domain's plan.

    Raises:
        ValueError: they are none; says which key is wrong.
    """
    try:
        return PlanSettings.model_validate(_thawed(values))
    except ValidationError as error:
        raise ValueError(_explain(error)) from error


def read_ranking(values: Metadata) -> RankWeights:
    """Validate ranking weights, each in [0, 1] and not all 0.

    Raises:
        ValueError: one is missing, unknown or out of range.
    """
    names = tuple(asdict(CALIBRATED_WEIGHTS))
    if set(values) != set(names):
        raise ValueError(f"ranking weights {sorted(values)}; expected {', '.join(names)}")
    try:
        checked = FusionSettings.model_validate({f"rank_weight_{name}": values[name] for name in names})
    except ValidationError as error:
        raise ValueError(_explain(error)) from error
    weights = {name: getattr(checked, f"rank_weight_{name}") for name in names}
    if None in weights.values() or not any(weights.values()):
        raise ValueError(f"ranking weights {weights}; expected numbers of which one is above 0")
    return RankWeights(**weights)


def _named(files: PlanFiles, base: str) -> PlanFile | None:
    """Return the plan that is pointed at.

    Raises:
        StoreError: it cannot be read, or was fitted from another configuration.
    """
    number = files.current()
    if number is None:
        return None
    plan = files.load(number)
    if plan.base != base:
        raise StoreError(f"{plan.name} was fitted to another configuration; tune again")
    return plan


def _thawed(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _thawed(value) if isinstance(value, Mapping) else value for key, value in values.items()}


def _explain(error: ValidationError) -> str:
    problem = error.errors()[0]
    where = ".".join(map(str, problem["loc"])) or "values"
    return f"{where}: {str(problem['input'])[:80]!r}: {problem['msg']}"
