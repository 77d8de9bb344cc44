"""Extract defaults from annotations of a field: struct tags of Go, attributes of Rust."""

from __future__ import annotations

import re

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.code.options import KEYS
from nornweave.disagree.facts.code.reading import Reading
from nornweave.disagree.facts.code.sites import ValueSite
from nornweave.disagree.facts.expressions import read_value
from nornweave.disagree.facts.values import Value

# Read by lines and not by the tree: a chunk may begin within the structure.
FIELDS = {
    "go": lazy_pattern(
        r"^[ \t]*+(?P<name>[A-Za-z]\w{0,79})(?:,[ \t]*+\w{1,80})*+[ \t]++[^\s`][^`\n]{0,80}`(?P<said>[^`\n]{1,800})`",
        re.M,
    ),
    "rust": lazy_pattern(
        r"^[ \t]*+(?P<said>(?:#\[(?:[^\]\[\"]{1,200}+|\"(?:[^\"\\]|\\.){0,400}+\"|\[[^\]\n]{0,200}+\]){0,40}+\]\s*+"
        r"(?://[^\n]*+\s*+)*+){1,8}+)(?:pub(?:\([^)\n]{1,40}\))?\s+)?(?P<name>[a-z_]\w{0,79})\s*:(?!:)", re.M
    ),
}  # fmt: skip
_FUNCTIONS = lazy_pattern(r"serde\([^)]{0,400}\)")
"""Names the function that makes the value."""
_SAID = lazy_pattern(
    r"(?P<key>\w+)\s*+[:=]\s*+(?:\"(?P<string>(?:[^\"\\]|\\.)*+)\"|(?P<code>[^\s,()\]\"][^,\]\n]*?)(?=\s*[,)\]]))"
)
_NAMING = frozenset({"long", "env"})


def read_tags(reading: Reading) -> None:
    """Add the defaults in annotations: ``Soak int `default:"53"``` and ``#[arg(default_value = "90")]`` above a field.

    A default belongs to the field, and to the flag and the variable that the annotation names.
    """
    fields = FIELDS.get(reading.language)
    if fields is None or "efault" not in reading.text:
        return
    around = [site for site in reading.sites if site.role == "class"]
    for found in fields.finditer(reading.text):
        said = [*_SAID.finditer(_FUNCTIONS.sub("", found["said"]))]
        value = next(filter(None, (_value(one) for one in said if KEYS.get(one["key"].lower()) == "default")), None)
        first = min(found.start("name"), found.start("said"))
        parent = next((site for site in reversed(around) if site.start <= first < site.end), None)
        for name in dict.fromkeys(
            (found["name"], *(one["string"] for one in said if one["key"] in _NAMING and one["string"]))
        ):
            site = ValueSite("field", first, found.end(), name, first, parent=parent)
            reading.add(site, value, "default", "option")


def _value(said: re.Match[str]) -> Value | None:
    if said["code"]:
        return read_value(said["code"])
    bare = read_value(said["string"]) if said["string"] else None
    return bare if bare and bare.kind in {"number", "boolean"} else read_value(f'"{said["string"]}"')
