"""Tuned plans as ``nornweave plan`` shows them."""

from __future__ import annotations

from typing import Any

from nornweave.config import Settings
from nornweave.config.tuned_plans import CONFIGURED, PlanFiles, plan_files, plan_in_force
from nornweave.core.errors import StoreError
from nornweave.core.types import Domain


def plans_document(settings: Settings, domain: Domain) -> dict[str, Any]:
    """Return what a domain answers with, and the plans that there are."""
    files = plan_files(settings, domain)
    in_force = plan_in_force(settings, domain)
    return {
        "subject": domain.value,
        "in_force": in_force.name,
        "problem": in_force.problem,
        "plans": [_plan(files, number) for number in files.all()],
    }


def go_back(settings: Settings, domain: Domain) -> dict[str, Any]:
    """Put the plan in force that the present one replaced.

    Raises:
        StoreError: there is nothing to go back to.
    """
    before = plan_in_force(settings, domain).name
    number = plan_files(settings, domain).back()
    return {"subject": domain.value, "from": before, "plan": CONFIGURED if number is None else f"plan-{number}"}


def _plan(files: PlanFiles, number: int) -> dict[str, Any]:
    try:
        plan = files.load(number)
    except StoreError as error:
        return {"plan": f"plan-{number}", "problem": str(error)}
    return {
        "plan": plan.name,
        "made_at": plan.made_at,
        "reason": plan.evidence.get("reason"),
        "queries": plan.evidence.get("queries"),
        "held_out": plan.evidence.get("held_out"),
        "values": plan.values.model_dump(mode="json"),
    }
