"""Keep versions of tuned values, each with its evidence, and a pointer to the active one.

``plan-000003.json`` is complete and never changes; ``CURRENT`` names the plan in force, or says ``configured``;
``LAST`` holds the highest number given, so that none is given twice. Every step is a rename: a reader sees the old
state or the new one, a killed writer leaves both files and pointer valid.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

from nornweave.core.errors import StoreError
from nornweave.core.files.atomic_write import write_whole
from nornweave.core.files.lock import WriterLock
from nornweave.core.text.dates import utc_text
from nornweave.core.types import Metadata

SCHEMA = 1
CONFIGURED = "configured"
MAX_PLAN_BYTES = 1_000_000
LOCK_WAIT_S = 30.0

_COMPLETE = re.compile(r"plan-(\d{6,9})\.json", re.ASCII)
_POINTER = re.compile(r"plan-(\d{6,9})", re.ASCII)
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """One tuned plan.

    Attributes:
        subject: what the plan is of: a domain's name, or ``fusion``.
        number: from 1, never given twice.
        made_at: ISO 8601, UTC.
        base: digest of the configuration that it was fitted from.
        replaces: the number of the plan that was in force when it was saved; ``None`` for the configured one.
        values: complete: everything that the configured plan says, too.
        evidence: why it was kept: sets, queries, held-out difference, …
    """

    subject: str
    number: int
    made_at: str
    base: str
    replaces: int | None
    values: Metadata
    evidence: Metadata

    @property
    def name(self) -> str:
        """Return the name that people see, ``plan-3``."""
        return f"plan-{self.number}"


class PlanFiles:
    """The tuned plans of one subject, as files below ``folder``; safe to use from several processes."""

    def __init__(self, folder: Path, check: Callable[[Metadata], object]) -> None:
        """Store where they lie; nothing is read or written.

        Args:
            folder: named like the subject.
            check: raises ``ValueError`` for values that are no plan of this subject.
        """
        self.folder = folder
        self._check = check
        self.subject = folder.name
        self._pointer = folder / "CURRENT"
        self._last = folder / "LAST"

    def all(self) -> tuple[int, ...]:
        """Return the numbers of the plans that are there, oldest first; some may be damaged."""
        if not self.folder.is_dir():
            return ()
        return tuple(sorted(int(m[1]) for file in self.folder.iterdir() if (m := _COMPLETE.fullmatch(file.name))))

    def path(self, number: int) -> Path:
        """Return the file of a plan."""
        return self.folder / f"plan-{number:06d}.json"

    def current(self) -> int | None:
        """Return the number of the plan that is pointed at; ``None`` for the configured one.

        Raises:
            StoreError: the pointer is damaged.
        """
        name = self._read_small(self._pointer)
        if name in {"", CONFIGURED}:
            return None
        if not (match := _POINTER.fullmatch(name)):
            expected = f"expected {CONFIGURED!r} or a plan such as 'plan-000001'; go back"
            raise StoreError(f"{self._pointer}: names {name!r}, {expected}")
        return int(match[1])

    def load(self, number: int) -> PlanFile:
        """Read one plan.

        Raises:
            StoreError: there is none of that number, or it is damaged, of another subject or of another version.
        """
        file = self.path(number)
        try:
            if file.stat().st_size > MAX_PLAN_BYTES:
                raise StoreError(f"{file}: larger than {MAX_PLAN_BYTES} bytes; this is not a plan")
            stored = json.loads(file.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
        except FileNotFoundError as error:
            there = ", ".join(f"plan-{one}" for one in self.all()) or "none"
            raise StoreError(f"{self.folder}: no plan-{number}; there are: {there}") from error
        except (OSError, ValueError, RecursionError) as error:
            raise StoreError(f"{file}: cannot be read: {error}") from error
        return _plan_file(stored, file, self.subject, number)

    def save(self, values: Metadata, *, base: str, evidence: Metadata, now: datetime | None = None) -> PlanFile:
        """Write a plan beside the others, under a number that none of them ever had; it is not in force yet.

        Args:
            values: complete, as ``check`` wants them.
            base: what it was fitted from.
            evidence: JSON values without NaN.
            now: of ``made_at``.

        Raises:
            ValueError: the values are no plan, or the evidence is no JSON.
            StoreError: it cannot be written, or another process is writing.
        """
        self._check(values)
        with self._locked():
            number = self._next()
            plan = PlanFile(
                subject=self.subject,
                number=number,
                made_at=utc_text(now or datetime.now(UTC), "seconds"),
                base=base,
                replaces=self._current_or_none(),
                values=MappingProxyType(dict(values)),
                evidence=MappingProxyType(dict(evidence)),
            )
            text = _as_json(plan)
            self._replace(self._last, f"{number}\n")
            self._replace(self.path(number), text)
        return plan

    def activate(self, number: int | None) -> None:
        """Point at a plan, or at the configured one.

        Raises:
            StoreError: there is no such plan, it is damaged, or the pointer cannot be written.
        """
        if number is not None:
            plan = self.load(number)
            try:
                self._check(plan.values)
            except ValueError as error:
                raise StoreError(f"{self.path(number)}: {error}") from error
        with self._locked():
            self._point_at(number)

    def back(self) -> int | None:
        """Go one step back: to the plan that the current one replaced, or to the configured one.

        Returns:
            What is pointed at now. A current or replaced plan that is gone or damaged leads to the configured one.

        Raises:
            StoreError: the configured plan is in force already, or the pointer cannot be written.
        """
        with self._locked():
            if self._read_small(self._pointer) in {"", CONFIGURED}:
                raise StoreError(f"{self.folder}: the configured plan is in force; there is nothing to go back to")
            target = self._replaced()
            self._point_at(target)
        return target

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            with WriterLock(self.folder / "LOCK", purpose="plans", wait_s=LOCK_WAIT_S):
                yield
        except OSError as error:
            raise StoreError(f"{self.folder}: cannot be written: {error}") from error

    def _replaced(self) -> int | None:
        try:
            current = self.current()
            replaced = None if current is None else self.load(current).replaces
            if replaced is not None:
                self._check(self.load(replaced).values)
        except (StoreError, ValueError):
            return None
        return replaced

    def _current_or_none(self) -> int | None:
        try:
            return self.current()
        except StoreError:
            return None

    def _next(self) -> int:
        last = self._read_small(self._last)
        given = int(last) if _NUMBER.fullmatch(last) else 0
        return 1 + max([given, self._current_or_none() or 0, *self.all()])

    def _point_at(self, number: int | None) -> None:
        self._replace(self._pointer, f"{CONFIGURED if number is None else self.path(number).stem}\n")

    def _read_small(self, file: Path) -> str:
        try:
            with file.open(encoding="ascii", errors="replace") as stream:
                return stream.read(100).strip()
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise StoreError(f"{file}: cannot be read: {error}") from error

    def _replace(self, file: Path, text: str) -> None:
        """Replace a file in one step: a reader sees the old one or the new one."""
        try:
            write_whole(file, text)
        except OSError as error:
            raise StoreError(f"{file}: cannot be written: {error}") from error


def _plan_file(stored: Any, file: Path, subject: str, number: int) -> PlanFile:
    expected = {"schema": SCHEMA, "subject": subject, "number": number}
    found = {key: stored.get(key) for key in expected} if isinstance(stored, dict) else stored
    if found != expected:
        raise StoreError(f"{file}: holds {str(found)[:200]}, expected {expected}; it is damaged or another's")
    kinds = {"made_at": str, "base": str, "replaces": int | None, "values": dict, "evidence": dict}
    if wrong := [key for key, kind in kinds.items() if not isinstance(stored.get(key), kind)]:
        raise StoreError(f"{file}: {wrong[0]!r} is {str(stored.get(wrong[0]))[:80]!r}; the file is damaged")
    return PlanFile(
        subject=subject,
        number=number,
        made_at=stored["made_at"],
        base=stored["base"],
        replaces=stored["replaces"],
        values=MappingProxyType(stored["values"]),
        evidence=MappingProxyType(stored["evidence"]),
    )


def _as_json(plan: PlanFile) -> str:
    stored = {
        "schema": SCHEMA,
        "subject": plan.subject,
        "number": plan.number,
        "made_at": plan.made_at,
        "base": plan.base,
        "replaces": plan.replaces,
        "values": dict(plan.values),
        "evidence": dict(plan.evidence),
    }
    try:
        return json.dumps(stored, ensure_ascii=False, indent=1, allow_nan=False, default=dict) + "\n"
    except TypeError as error:
        raise ValueError(f"values or evidence are no JSON: {error}") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
