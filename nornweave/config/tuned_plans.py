"""Tuned plans: versions on disk with their evidence, and the one that a domain answers with.

``data_dir/plans/<domain>/plan-000003.json`` is complete and never changes; ``CURRENT`` names the plan in force, or says
``configured``. Both are written by a rename: a reader sees the old state or the new one, whenever a writer is killed.

A plan is valid only for the configuration that it was fitted from: once a person edits the YAML, the YAML wins. A
damaged plan never stops serving: it is reported, and the configured plan answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nornweave.config import PlanSettings, Settings
from nornweave.core.errors import StoreError
from nornweave.core.files.atomic_write import write_whole
from nornweave.core.files.lock import WriterLock
from nornweave.core.text.dates import utc_text
from nornweave.core.types import Domain, canonical_json, digest, present

CONFIGURED = "configured"
LOCK_WAIT_S = 30.0
_PLAN = re.compile(r"plan-(\d{6,9})", re.ASCII)


class TunedPlan(BaseModel):
    """One tuned plan, as its file holds it.

    Attributes:
        number: from 1.
        made_at: ISO 8601, UTC.
        base: digest of the configured plan that it was fitted from.
        replaces: the number of the plan that it took the place of; ``None`` for the configured one.
        evidence: why it was kept: sets, queries, held-out difference, …
    """

    model_config = ConfigDict(frozen=True, strict=True, validate_by_name=True)

    format: Literal[1] = Field(1, alias="schema")
    subject: str
    number: int
    made_at: str
    base: str
    replaces: int | None
    values: PlanSettings
    evidence: dict[str, Any]

    @property
    def name(self) -> str:
        """Return the name that people see, ``plan-3``."""
        return f"plan-{self.number}"


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


class PlanFiles:
    """The tuned plans of one domain, as files below ``folder``; safe to use from several processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._pointer = folder / "CURRENT"

    def all(self) -> tuple[int, ...]:
        """Return the numbers of the plans that are there, oldest first; some may be damaged."""
        files = self.folder.glob("plan-*.json")
        return tuple(sorted(int(match[1]) for file in files if (match := _PLAN.fullmatch(file.stem))))

    def path(self, number: int) -> Path:
        """Return the file of a plan."""
        return self.folder / f"plan-{number:06d}.json"

    def current(self) -> int | None:
        """Return the number of the plan that is pointed at; ``None`` for the configured one.

        Raises:
            StoreError: the pointer is damaged.
        """
        try:
            name = self._pointer.read_text(encoding="ascii", errors="replace").strip()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"{self._pointer}: cannot be read: {error}") from error
        if name in {"", CONFIGURED}:
            return None
        if not (match := _PLAN.fullmatch(name)):
            expected = f"expected {CONFIGURED!r} or a plan such as 'plan-000001'; go back"
            raise StoreError(f"{self._pointer}: names {name[:80]!r}, {expected}")
        return int(match[1])

    def load(self, number: int) -> TunedPlan:
        """Read one plan.

        Raises:
            StoreError: there is none of that number, or it is damaged or another domain's.
        """
        file = self.path(number)
        try:
            plan = TunedPlan.model_validate_json(file.read_bytes())
        except FileNotFoundError as error:
            there = ", ".join(f"plan-{other}" for other in self.all()) or "none"
            raise StoreError(f"{self.folder}: no plan-{number}; there are: {there}") from error
        except OSError as error:
            raise StoreError(f"{file}: cannot be read: {error}") from error
        except ValidationError as error:
            problem = error.errors()[0]
            raise StoreError(f"{file}: damaged: {'.'.join(map(str, problem['loc']))}: {problem['msg']}") from error
        if (plan.subject, plan.number) != (self.folder.name, number):
            raise StoreError(f"{file}: is {plan.name} of {plan.subject[:80]!r}; it is damaged or another domain's")
        return plan

    def activate(self, plan: PlanSettings, *, base: str, evidence: Mapping[str, Any]) -> TunedPlan:
        """Store a plan under a new number and put it in force; ``base`` is the digest of what it was fitted from.

        Raises:
            ValueError: the evidence is not JSON.
            StoreError: it cannot be written, or another process is writing.
        """
        with self._locked():
            replaces = self._current_or_zero() or None
            tuned = TunedPlan(
                subject=self.folder.name,
                number=1 + max([replaces or 0, *self.all()]),
                made_at=utc_text(present(), "seconds"),
                base=base,
                replaces=replaces,
                values=plan,
                evidence=dict(evidence),
            )
            try:
                text = json.dumps(tuned.model_dump(by_alias=True), ensure_ascii=False, indent=1, allow_nan=False)
            except TypeError as error:
                raise ValueError(f"the evidence is not JSON: {error}") from error
            write_whole(self.path(tuned.number), text + "\n")
            self._point_at(tuned.number)
        return tuned

    def back(self) -> int | None:
        """Go one step back: to the plan that the current one replaced, or to the configured one.

        Returns:
            What is pointed at now. A current or replaced plan that is gone or damaged leads to the configured one.

        Raises:
            StoreError: the configured plan is in force already, or the pointer cannot be written.
        """
        with self._locked():
            if (current := self._current_or_zero()) is None:
                raise StoreError(f"{self.folder}: the configured plan is in force; there is nothing to go back to")
            target = None
            with suppress(StoreError):
                if (replaced := self.load(current).replaces) is not None:
                    target = self.load(replaced).number
            self._point_at(target)
        return target

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            with WriterLock(self.folder / "LOCK", purpose="plans", wait_s=LOCK_WAIT_S):
                yield
        except OSError as error:
            raise StoreError(f"{self.folder}: cannot be written: {error}") from error

    def _current_or_zero(self) -> int | None:
        """Return ``current()``, or 0 if the pointer is damaged."""
        try:
            return self.current()
        except StoreError:
            return 0

    def _point_at(self, number: int | None) -> None:
        write_whole(self._pointer, f"{CONFIGURED if number is None else self.path(number).stem}\n")


def plan_files(settings: Settings, domain: Domain) -> PlanFiles:
    """Return the tuned plans of a domain."""
    return PlanFiles(settings.data_dir / "plans" / domain.value)


def plan_digest(plan: PlanSettings) -> str:
    """Return a digest of the values of a configured plan."""
    return digest(canonical_json(plan.model_dump(mode="json")))


def plan_in_force(settings: Settings, domain: Domain) -> PlanInForce:
    """Return the plan that a domain answers with; never raises for what stands in the files."""
    configured = settings.domains[domain].plan
    files = plan_files(settings, domain)
    try:
        if (number := files.current()) is None:
            return PlanInForce(configured)
        plan = files.load(number)
    except StoreError as error:
        return PlanInForce(configured, problem=f"{error}; the configured plan answers")
    if plan.base != plan_digest(configured):
        why = f"{plan.name} was fitted to another configuration; tune again"
        return PlanInForce(configured, problem=f"{why}; the configured plan answers")
    return PlanInForce(plan.values, plan.name)


def plans_document(settings: Settings, domain: Domain) -> dict[str, Any]:
    """Return what a domain answers with, and the plans that there are, as ``nornweave plan`` prints them."""
    files, in_force = plan_files(settings, domain), plan_in_force(settings, domain)
    plans = [_plan_document(files, number) for number in files.all()]
    return {"subject": domain.value, "in_force": in_force.name, "problem": in_force.problem, "plans": plans}


def _plan_document(files: PlanFiles, number: int) -> dict[str, Any]:
    try:
        plan = files.load(number)
    except StoreError as error:
        return {"plan": f"plan-{number}", "problem": str(error)}
    evidence = {key: plan.evidence.get(key) for key in ("reason", "queries", "held_out")}
    return {"plan": plan.name, "made_at": plan.made_at, **evidence, "values": plan.values.model_dump(mode="json")}
