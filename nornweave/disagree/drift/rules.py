"""The kinds of disagreement, with their names and descriptions."""

from __future__ import annotations

from dataclasses import dataclass

from nornweave.core.types import Attribute


@dataclass(frozen=True, slots=True)
class DriftRule:
    """A kind of disagreement; ``id`` never changes, as baselines and dashboards know it."""

    id: str
    name: str
    description: str


_KINDS = (
    ("default", "DefaultDiffers", "Documentation and code give another default for the same setting.", "default"),
    ("value", "ValueDiffers", "Documentation and code give another value for the same constant or setting.",
     "value setting"),
    ("version", "VersionDiffers", "Documentation and manifests require another version.", "requires"),
    ("status", "StatusDiffers", "Documentation and code name another HTTP status.", "status"),
)  # fmt: skip
RULES = {
    attribute: DriftRule(f"nornweave/{kind}", name, description)
    for kind, name, description, attributes in _KINDS
    for attribute in attributes.split()
}
"""Attribute of a fact → its rule."""

ALL_RULES = tuple(dict.fromkeys(RULES.values()))
WORDS: dict[Attribute, str] = {
    "default": "default", "value": "value", "setting": "setting", "status": "HTTP status",
    "requires": "required version",
}  # fmt: skip
"""Attribute → what people call it."""


def rule_of(attribute: str) -> DriftRule:
    """Return the rule of an attribute; of one that is not known the most general."""
    return RULES.get(attribute, RULES["value"])
