"""What a repository says of its own drift: ``.drift.toml``, else ``[tool.nornweave.drift]`` of ``pyproject.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from nornweave.core.errors import ConfigError
from nornweave.core.files.paths import PathFilter
from nornweave.disagree.drift.records import RULES, Finding

FILE_NAME = ".drift.toml"
MAX_BYTES = 1_000_000
_KINDS = tuple(dict.fromkeys(rule.id.rpartition("/")[2] for rule in RULES.values()))


class DriftSettings(BaseModel):
    """The settings of a repository.

    Attributes:
        exclude: globs of files that are left out, beside those of ``--exclude``.
        off: kinds of disagreement that are not reported, such as ``version``.
        fail_from: the confidence, in [0, 1], from which a finding of a full scan makes the exit status 1.
        pages: glob of documentation → globs of the code that it is about; with other code it is not compared.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    exclude: tuple[str, ...] = ()
    off: tuple[str, ...] = ()
    fail_from: float | None = Field(default=None, ge=0, le=1)
    pages: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)

    @field_validator("off")
    @classmethod
    def _are_kinds(cls, kinds: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := [kind for kind in kinds if kind not in _KINDS]:
            raise ValueError(f"{unknown[0]!r} is no kind; allowed are: {', '.join(_KINDS)}")
        return kinds

    @cached_property
    def _subjects(self) -> list[tuple[PathFilter, PathFilter]]:
        return [(PathFilter((page,)), PathFilter(code)) for page, code in self.pages.items()]

    def reports(self, finding: Finding) -> bool:
        """Say whether a finding is of a kind that is on, and of a page that is about this code."""
        is_on = finding.rule.rpartition("/")[2] not in self.off
        about = [code for page, code in self._subjects if page.matches(finding.second.path)]
        return is_on and (not about or any(code.matches(finding.first.path) for code in about))


NO_SETTINGS = DriftSettings()


def read_settings(root: Path) -> DriftSettings:
    """Read the settings of a folder; the defaults where it has none.

    Raises:
        ConfigError: a file cannot be read, is no TOML, or a key or glob in it is wrong.
    """
    file = root / FILE_NAME
    said = _table(file)
    if said is None:
        file = root / "pyproject.toml"
        said = _table(file) or {}
        for table in ("tool", "nornweave", "drift"):
            said = said.get(table, {}) if isinstance(said, dict) else {}
    try:
        settings = DriftSettings.model_validate(said)
        PathFilter(exclude=settings.exclude)
        for page, code in settings.pages.items():
            PathFilter((page,), code)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        place = ".".join(map(str, problem["loc"])) or "drift"
        raise ConfigError(f"{file.name}: {place}: {problem['msg']}") from error
    except ConfigError as error:
        raise ConfigError(f"{file.name}: {error}") from error
    return settings


def _table(file: Path) -> dict[str, Any] | None:
    try:
        if file.is_symlink() or not file.is_file():
            return None
        if file.stat().st_size > MAX_BYTES:
            raise ConfigError(f"{file.name}: larger than {MAX_BYTES:,} bytes")
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{file.name}: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{file.name}: {error}") from error
