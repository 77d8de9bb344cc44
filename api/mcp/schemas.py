"""The JSON Schemas that clients are shown of a tool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, TypeAdapter

from nornweave.config import USUAL_FILTERS, Settings
from nornweave.core.types import Domain


def own_filters(settings: Settings, domains: Sequence[Domain]) -> str:
    """Name the filters that the team has declared itself, by domain; empty without any."""
    usual = {each.key for each in USUAL_FILTERS}
    named = {
        domain.value: [
            f"{each.key} ({each.type})"
            for each in settings.domains[domain].filters
            if each.is_declared and each.key not in usual
        ]
        for domain in domains
    }
    return "; ".join(f"{domain}: {', '.join(filters)}" for domain, filters in named.items() if filters)


def input_schema(arguments: type[BaseModel], domains: Sequence[Domain], filters: str = "") -> dict[str, Any]:
    """Return the schema of a tool's arguments, which names the domains that are served and the team's own filters."""
    schema: dict[str, Any] = _without_titles(arguments.model_json_schema())
    schema.pop("description", None)
    properties = schema.setdefault("properties", {})
    names = {"type": "string", "enum": [domain.value for domain in domains]}
    if "domains" in properties:
        properties["domains"]["anyOf"][0]["items"] = names
    if filters and "filters" in properties:
        properties["filters"]["description"] += f" The team's own: {filters}."
    if "domain" in properties:
        properties["domain"]["anyOf"][0] = names
    return schema


def output_schema(result: type) -> dict[str, Any]:
    """Return the schema of a tool's result, a ``TypedDict``."""
    schema: dict[str, Any] = _without_titles(TypeAdapter(result).json_schema())
    return schema


def _without_titles(node: Any) -> Any:
    """Leave out the titles that pydantic makes of names: they cost an agent tokens and say nothing."""
    if isinstance(node, list):
        return [_without_titles(one) for one in node]
    if not isinstance(node, dict):
        return node
    # A property may be called title: its value is a schema.
    kept = {key: value for key, value in node.items() if key != "title" or not isinstance(value, str)}
    return {key: _without_titles(value) for key, value in kept.items()}
