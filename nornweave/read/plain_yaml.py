"""Read untrusted YAML: plain values only, within limits of size and depth.

An alias (``*name``) repeats what an anchor names: nested, kilobytes become gigabytes. libyaml's parser ends the process
when values are nested tens of thousands deep, and reading a number takes time quadratic in its length.
"""

from __future__ import annotations

from typing import cast

import yaml

MAX_DEPTH = 50
"""Lists and mappings inside each other."""
MAX_NUMBER_CHARACTERS = 1_000
"""Characters of a plain value without blanks that starts as a number does."""

_NUMBER_STARTS = frozenset("+-.0123456789")


def load_plain_yaml(text: str) -> object:
    """Read YAML.

    Raises:
        yaml.YAMLError: it is broken, uses an alias, is nested deeper than ``MAX_DEPTH`` or has too long a number; a
            ``MarkedYAMLError`` says where.
        ValueError: a value is none of its kind, such as the date 2024-13-01.
    """
    _check(text)
    return yaml.load(text, Loader=yaml.CSafeLoader)


def _check(text: str) -> None:
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
