"""Tuned plans as ``nornweave plan`` shows them."""

from __future__ import annotations

from typing import Any

from nornweave.config import Settings
from nornweave.config.plans.active import plan_files, plan_in_force, ranking_in_force
from nornweave.config.plans.versioned_files import CONFIGURED
from nornweave.core.errors import StoreError
from nornweave.core.types import Domain


def plans_document(settings: Settings, domain: Domain | None) -> dict[str, Any]:
    """Return what a domain answers with, and the plans that there are; ``None`` for the weights across domains."""
    files = plan_files(settings, domain)
    in_force = ranking_in_force(settings) if domain is None else plan_in_force(settings, domain)
    return {
        "subject": "fusion" if domain is None else domain.value,
        "in_force": in_force.name,
        "problem": in_force.problem,
        "plans": [_plan(settings, domain, number) for number in files.all()],
    }


def go_back(settings: Settings, domain: Domain | None) -> dict[str, Any]:
    """Put the plan in force that the present one replaced.

    Raises:
        StoreError: there is nothing to go back to.
    """
    before = plans_document(settings, domain)["in_force"]
    number = plan_files(settings, domain).back()
    after = CONFIGURED if number is None else f"plan-{number}"
    return {"subject": "fusion" if domain is None else domain.value, "from": before, "plan": after}


def _plan(settings: Settings, domain: Domain | None, number: int) -> dict[str, Any]:
    try:
        plan = plan_files(settings, domain).load(number)
    except StoreError as error:
        return {"plan": f"plan-{number}", "problem": str(error)}
    evidence = dict(plan.evidence)
    return {
        "plan": plan.name,
        "made_at": plan.made_at,
        "reason": evidence.get("reason"),
        "queries": evidence.get("queries"),
        "held_out": evidence.get("held_out"),
        "values": dict(plan.values),
    }
