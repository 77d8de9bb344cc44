"""Add a source to the text of ``nornweave.yaml``, or remove one; comments and layout of everything else stay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from nornweave.core.errors import ConfigError
from nornweave.core.text.lines import lines_of


def with_source(text: str, keys: Mapping[str, Any], remark: str) -> str:
    """Return the text with one more source, in one line with a remark behind it.

    Raises:
        ConfigError: the text is laid out in a way that cannot be edited.
    """
    node, line = _sources_node(text), _flow(keys)
    if node is None:
        edited = f"{text.rstrip()}\nsources:\n  - {line}   # {remark}\n" if text.strip() else f"sources:\n  - {line}\n"
    elif node.flow_style and node.value:
        before = text[: node.end_mark.index - 1].rstrip()
        edited = f"{before.removesuffix(',')}, {line}{text[node.end_mark.index - 1 :]}"
    elif node.flow_style and text.lstrip().startswith("{"):
        edited = f"{text[: node.start_mark.index]}[{line}]{text[node.end_mark.index :]}"
    elif node.flow_style:
        edited = f"{text[: node.start_mark.index].rstrip()}\n  - {line}   # {remark}{text[node.end_mark.index :]}"
    else:
        lines = text.splitlines(keepends=True)
        after = _last_line(text, node.value[-1]) + 1
        ends = "" if lines[after - 1].endswith("\n") else "\n"
        added = f"{ends}{' ' * node.start_mark.column}- {line}   # {remark}\n"
        edited = "".join([*lines[:after], added, *lines[after:]])
    return _checked(text, edited, [*_sources(text), dict(keys)])


def without_source(text: str, source_id: str) -> str:
    """Return the text without a source.

    Raises:
        ConfigError: no source has this id; the text is laid out in a way that cannot be edited.
    """
    sources, node = _sources(text), _sources_node(text)
    places = [
        place for place, source in enumerate(sources) if isinstance(source, dict) and source.get("id") == source_id
    ]
    if not places or node is None:
        raise ConfigError(f"sources: no source has the id {source_id!r}")
    place, items = places[0], node.value
    item = items[place]
    left = [*sources[:place], *sources[place + 1 :]]
    if node.flow_style:
        start, end = item.start_mark.index, item.end_mark.index
        if place + 1 < len(items):
            end = items[place + 1].start_mark.index
        elif place:
            start = items[place - 1].end_mark.index
        return _checked(text, text[:start] + text[end:], left)
    if not left:
        start = text.rindex(":", 0, node.start_mark.index) + 1
        return _checked(text, f"{text[:start]} []{text[_end_of_line(text, _last_line(text, item)) :]}", left)
    lines = text.splitlines(keepends=True)
    edited = "".join([*lines[: item.start_mark.line], *lines[_last_line(text, item) + 1 :]])
    return _checked(text, edited, left)


def _flow(keys: Mapping[str, Any]) -> str:
    return yaml.safe_dump(
        dict(keys), default_flow_style=True, sort_keys=False, width=10_000, allow_unicode=True
    ).strip()


def _sources_node(text: str) -> yaml.SequenceNode | None:
    """Return where the sources stand; ``None`` where the text names none."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    pairs = root.value if isinstance(root, yaml.MappingNode) else []
    node = next((value for key, value in pairs if key.value == "sources"), None)
    if node is not None and not isinstance(node, yaml.SequenceNode):
        raise ConfigError("sources: is no list; write `sources: []`")
    return node


def _sources(text: str) -> list[Any]:
    raw = yaml.safe_load(text) or {}
    return list(raw.get("sources") or []) if isinstance(raw, dict) else []


def _last_line(text: str, node: yaml.Node) -> int:
    """Return the line, from 0, on which a node ends: the mark at the end of a block stands before what follows it."""
    lines = lines_of(text)
    last: int = node.end_mark.line
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and text[node.end_mark.index :].strip():
        last -= 1
    while last > node.start_mark.line and (not lines[last].strip() or lines[last].lstrip().startswith("#")):
        last -= 1
    return last


def _end_of_line(text: str, line: int) -> int:
    return sum(len(each) for each in text.splitlines(keepends=True)[: line + 1]) - 1


def _checked(text: str, edited: str, sources: list[Any]) -> str:
    """Return an edited text that says what it should, and otherwise what it did."""
    try:
        before, after = yaml.safe_load(text) or {}, yaml.safe_load(edited)
    except yaml.YAMLError as error:
        raise ConfigError("sources: the layout of the file cannot be edited; edit it by hand") from error
    if after != {**before, "sources": sources}:
        raise ConfigError("sources: the layout of the file cannot be edited; edit it by hand")
    return edited
