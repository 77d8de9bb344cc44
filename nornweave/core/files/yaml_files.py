"""Read untrusted YAML: plain values only, within limits of size and depth; find the line of a key, for messages.

An alias (``*name``) repeats what an anchor names: nested, kilobytes become gigabytes. libyaml's parser ends the process
when values are nested tens of thousands deep, and reading a number takes time quadratic in its length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, cast

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


MAX_DEPTH = 50
"""Lists and mappings inside each other."""
MAX_NUMBER_CHARACTERS = 1_000
"""Characters of a plain value without blanks that starts as a number does."""

_NUMBER_STARTS = frozenset("+-.0123456789")


def load_plain_yaml(text: str) -> object:
    """Read YAML and return its value.

    Raises:
        yaml.YAMLError: the text is broken, uses an alias, is nested deeper than ``MAX_DEPTH`` or has a number that is
            too long. A ``MarkedYAMLError`` says where.
    """
    check_yaml(text)
    return yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader


class Pairs:
    """A mapping as it is written: its keys are in their order, and a key may be repeated."""

    def __init__(self, pairs: Iterable[tuple[object, object]]) -> None:
        self._pairs = tuple(pairs)

    def items(self) -> tuple[tuple[object, object], ...]:
        """Return keys and values."""
        return self._pairs


def load_pairs(text: str) -> object:
    """Read YAML with every mapping as ``Pairs``. Nothing is merged, and custom tags are ignored.

    Raises:
        yaml.YAMLError: for the same reasons as ``load_plain_yaml``.
    """
    check_yaml(text)
    return yaml.load(text, Loader=_PairsLoader)  # noqa: S506 - a safe loader


class _Loader(yaml.CSafeLoader):
    """A YAML loader that keeps invalid dates and numbers, such as 2024-13-01, as text."""


def _or_text(construct: Callable[[Any, yaml.ScalarNode], object]) -> Callable[[Any, yaml.ScalarNode], object]:
    def constructed(loader: yaml.CSafeLoader, node: yaml.ScalarNode) -> object:
        try:
            return construct(loader, node)
        except (ValueError, OverflowError):
            return node.value

    return constructed


for _kind in ("timestamp", "int", "float"):
    _construct = getattr(yaml.CSafeLoader, f"construct_yaml_{_kind}")
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _or_text(_construct))


class _PairsLoader(_Loader):
    """A YAML loader that keeps mappings as they are written."""


def _as_written(loader: Any, node: yaml.Node) -> object:
    if isinstance(node, yaml.MappingNode):
        return Pairs(loader.construct_pairs(node, deep=True))
    return loader.construct_sequence(node, deep=True) if isinstance(node, yaml.SequenceNode) else node.value


for _tag in (None, *(f"tag:yaml.org,2002:{name}" for name in ("map", "set", "omap", "pairs", "merge"))):
    _PairsLoader.add_constructor(_tag, _as_written)


def check_yaml(text: str) -> None:
    """Raise the errors of ``load_plain_yaml`` without constructing values."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise _refused(event, f"*{event.anchor} is an alias; write what it stands for")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise _refused(event, f"lists and mappings are nested deeper than {MAX_DEPTH}")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.ScalarEvent) and _is_long_number(event):
            raise _refused(event, f"a number has {len(event.value)} characters; expected {MAX_NUMBER_CHARACTERS}")


def _is_long_number(scalar: yaml.ScalarEvent) -> bool:
    value = scalar.value
    return len(value) > MAX_NUMBER_CHARACTERS and value[0] in _NUMBER_STARTS and not any(map(str.isspace, value))


def _refused(event: yaml.Event, problem: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=cast("yaml.Mark | None", event.start_mark))
