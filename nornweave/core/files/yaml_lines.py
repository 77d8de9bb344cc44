"""Where something stands in a YAML file, for messages about it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import yaml


def line_of(file: Path, path: Sequence[str]) -> str:
    """Return ``:LINE`` of a key in a YAML file, or of the nearest key that contains it; empty if there is neither."""
    try:
        node = yaml.compose(file.read_text(encoding="utf-8"), yaml.SafeLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return ""
    line = None
    for part in path:
        children = {}
        if isinstance(node, yaml.SequenceNode):
            children = {str(place): (child, child) for place, child in enumerate(node.value)}
        elif isinstance(node, yaml.MappingNode):
            children = {key.value: (key, child) for key, child in node.value}
        if part not in children:
            break
        line, node = children[part][0].start_mark.line, children[part][1]
    return "" if line is None else f":{line + 1}"
