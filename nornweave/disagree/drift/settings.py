"""A repository's settings for drift: ``.drift.toml``, else ``[tool.nornweave.drift]`` of ``pyproject.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from nornweave.core.errors import ConfigError, DocumentError
from nornweave.core.files.paths import PathFilter
from nornweave.core.sandbox import run_apart
from nornweave.core.types import JsonValue
from nornweave.disagree.drift.records import GONE, RULES, STALE, Finding

FILE_NAME = ".drift.toml"
MAX_BYTES = 1_000_000
TABLE_S = 5.0
"""Of processor time to parse a file."""
_KINDS = tuple(dict.fromkeys(rule.id.rpartition("/")[2] for rule in (*RULES.values(), GONE, STALE)))


class DriftSettings(BaseModel):
    """The settings of a repository.

    Attributes:
        exclude: globs of files that are left out, beside those of ``--exclude``.
        off: kinds of disagreement that are not reported, such as ``version``.
        fail_from: the confidence, in [0, 1], from which a finding of a full scan makes the exit status 1.
        pages: glob of pages → globs of the code that they are about. The pages are not compared with other code.
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
        """Tell whether the settings allow a finding: its kind is not off, and its page is about the finding's code."""
        is_on = finding.rule.rpartition("/")[2] not in self.off
        about = [code for page, code in self._subjects if page.matches(finding.second.path)]
        return is_on and (not about or any(code.matches(finding.first.path) for code in about))


NO_SETTINGS = DriftSettings()


def read_settings(root: Path) -> DriftSettings:
    """Return the settings of a folder. If the folder has no settings, return the defaults.

    Raises:
        ConfigError: a file cannot be read, is not TOML, or a key or glob in it is wrong.
    """
    for file in (root / FILE_NAME, root / "pyproject.toml"):
        try:
            if file.is_symlink() or not file.is_file():
                continue
            with file.open("rb") as opened:
                raw = opened.read(MAX_BYTES + 1)
            # Somebody else's file may take tomllib for ever, or nest what nobody can send on.
            settings = DriftSettings.model_validate(run_apart(read_table, {"name": file.name}, raw, cpu_s=TABLE_S))
            PathFilter(exclude=settings.exclude)
            for page, code in settings.pages.items():
                PathFilter((page,), code)
        except OSError as error:
            raise ConfigError(f"{file.name}: {error.strerror}") from error
        except (DocumentError, ConfigError) as error:
            raise ConfigError(f"{file.name}: {error}") from error
        return settings
    return NO_SETTINGS


def read_table(values: Mapping[str, JsonValue], raw: bytes) -> object:
    """Read the settings from a TOML file. In ``pyproject.toml`` they are in our own table.

    Raises:
        DocumentError: the file is too large, not TOML, nested too deeply, or a key in it is wrong.
    """
    if len(raw) > MAX_BYTES:
        raise DocumentError(f"larger than {MAX_BYTES:,} bytes")
    try:
        said: Any = tomllib.loads(raw.decode("utf-8"))
        for table in () if values["name"] == FILE_NAME else ("tool", "nornweave", "drift"):
            said = said.get(table, {}) if isinstance(said, dict) else {}
        return DriftSettings.model_validate(said).model_dump(mode="json")
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        raise DocumentError(f"{'.'.join(map(str, problem['loc'])) or 'drift'}: {problem['msg']}") from error
    except ValueError as error:
        raise DocumentError(str(error)) from error
    except RecursionError as error:
        raise DocumentError("is nested too deeply") from error
