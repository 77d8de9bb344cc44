"""Filters of a domain: built in, common to all domains, and declared by a team.

A built-in filter looks at a column that the store fills. A declared one has a type and says where in a document its
value stands (its origins)::

    filters:
      - {key: environment, type: keyword, from: [metadata.environment, front_matter.environment]}
      - {key: service, type: keyword, from: "path:services/{service}/**"}
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, StringConstraints, model_validator

from nornweave.config.base import FrozenSettings

BuiltInType: TypeAlias = Literal["string", "datetime", "list", "date_range"]
DeclaredType: TypeAlias = Literal["keyword", "integer", "number", "boolean", "date"]

ORIGINS = "front_matter.KEY, metadata.KEY, path:GLOB with a {key} in it, source.id or source.type"
PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_-]*)\}")
MAX_ORIGINS = 8
MAX_DECLARED = 64
_NAMED = re.compile(r"(front_matter|metadata)\.([^\s.\"\x00-\x1f]{1,100}(?:\.[^\s.\"\x00-\x1f]{1,100}){0,7})")
_SOURCE = frozenset({"source.id", "source.type"})
_COLUMN = "declared."


class FilterSettings(FrozenSettings):
    """A filter of a domain.

    Attributes:
        column: the column in the store, a plain name and no SQL expression.
        origins: the places of a document that can hold the value of a declared filter. The first place with a value
            counts. Empty for a built-in filter.
    """

    key: str
    type: BuiltInType | DeclaredType
    column: str
    origins: tuple[str, ...] = ()

    @property
    def is_declared(self) -> bool:
        """Tell whether the filter reads its values from the documents (``origins``)."""
        return bool(self.origins)


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class DeclaredFilter(FrozenSettings):
    """A filter in ``nornweave.yaml``."""

    key: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]*$", max_length=64)]
    type: DeclaredType
    origins: Annotated[tuple[str, ...], BeforeValidator(_as_list), Field(min_length=1, max_length=MAX_ORIGINS)] = Field(
        alias="from"
    )

    @model_validator(mode="after")
    def _has_known_origins(self) -> DeclaredFilter:
        for origin in self.origins:
            if problem := self._problem(origin):
                message = f"from: {origin!r} {problem}"
                raise ValueError(message)
        return self

    def _problem(self, origin: str) -> str | None:
        if origin in _SOURCE:
            return None if self.type == "keyword" else f"is a name; type {self.type!r} cannot hold it, keyword can"
        if origin.startswith("path:"):
            return _path_problem(origin.removeprefix("path:"), self.key)
        return None if _NAMED.fullmatch(origin) else f"is not a known origin; expected {ORIGINS}"

    def settings(self) -> FilterSettings:
        """Return the filter's settings with its column."""
        return FilterSettings(key=self.key, type=self.type, column=_COLUMN + self.key, origins=self.origins)


class DomainFilters(FrozenSettings):
    """The declared filters of one domain."""

    filters: Annotated[tuple[DeclaredFilter, ...], Field(max_length=MAX_DECLARED)] = ()


def _path_problem(glob: str, key: str) -> str | None:
    if len(glob) > 500 or glob.startswith("/") or ".." in glob.split("/"):
        return "is not a path inside a source: at most 500 characters, no leading '/', no '..'"
    names = PLACEHOLDER.findall(glob)
    if names.count(key) != 1:
        return f"does not say where the value stands; write {{{key}}} once in it, such as path:docs/{{{key}}}/**"
    if not set("{}").isdisjoint(PLACEHOLDER.sub("", glob)):
        return "has a brace that belongs to no {name}; names are lower-case letters, digits, '_' and '-'"
    if any(len(PLACEHOLDER.findall(part)) > 1 for part in glob.split("/")):
        return "has two names between two slashes; where one ends cannot be told"
    return None


def _usual(key: str, kind: DeclaredType, *names: str) -> FilterSettings:
    origins = [f"{place}.{name}" for name in names for place in ("metadata", "front_matter")]
    return DeclaredFilter.model_validate({"key": key, "type": kind, "from": origins}).settings()


# They work where documents have these fields. A team that uses such a key otherwise declares its own.
USUAL_FILTERS = (
    _usual("category", "keyword", "category"),
    _usual("environment", "keyword", "environment"),
    _usual("confidence", "number", "confidence", "confidence_score"),
    _usual("error_category", "keyword", "error_category"),
)


def with_usual_and_declared(
    built_in: Sequence[FilterSettings], declared: Sequence[DeclaredFilter]
) -> tuple[FilterSettings, ...]:
    """Return all filters of a domain: built-in filters, ``USUAL_FILTERS`` that are not redeclared, declared filters.

    Raises:
        ValueError: a key is declared twice, or a built-in filter has it.
    """
    reserved = {each.key: each for each in built_in}
    own: dict[str, FilterSettings] = {}
    for each in declared:
        if each.key in reserved:
            there = reserved[each.key]
            message = (
                f"{each.key!r} (type {each.type}, from {', '.join(each.origins)}) collides with the built-in filter "
                f"{there.key!r} (type {there.type}, of {there.column}); choose another key"
            )
            raise ValueError(message)
        if each.key in own:
            message = f"{each.key!r} is declared twice; every filter needs its own key"
            raise ValueError(message)
        own[each.key] = each.settings()
    usual = [each for each in USUAL_FILTERS if each.key not in own and each.key not in reserved]
    return (*built_in, *usual, *own.values())
