"""Find the anchors of a page's headings, so that a section can be cited."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from bs4 import Tag

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
# How far the anchor of a heading is looked for: elements above it, and nodes inside it.
_ABOVE = 4
_INSIDE = 50


def name_headings(body: Tag) -> None:
    """Give every heading the id under which the page links to it."""
    opened: set[int] = set()
    for heading in body.find_all(HEADINGS):
        anchor = _own_anchor(heading) or _of_parent(heading, opened) or _of_sibling(heading)
        opened.update(id(parent) for parent in islice(heading.parents, _ABOVE))
        if anchor:
            heading["id"] = anchor


def _own_anchor(heading: Tag) -> str | None:
    if own := heading.get("id"):
        return str(own)
    for inner in islice(_inside(heading), _INSIDE):
        if inner.name not in ("a", "span"):
            continue
        if name := inner.get("id") or inner.get("name"):
            return str(name)
        target = str(inner.get("href") or "")
        if len(target) > 1 and target.startswith("#"):
            return target[1:]
    return None


def _inside(heading: Tag) -> Iterator[Tag]:
    """Yield the elements inside of a heading, in order; ``Tag.descendants`` first walks to the last one."""
    waiting = heading.contents[_INSIDE::-1]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, Tag):
            yield inner
            waiting += inner.contents[_INSIDE::-1]


def _of_parent(heading: Tag, opened: set[int]) -> str | None:
    """Return the id of the section that the heading opens; ``opened`` are those that an earlier heading opened."""
    for parent in islice(heading.parents, _ABOVE):
        if parent.name in ("body", "main", "article", "html", "[document]") or id(parent) in opened:
            return None
        if parent.get("id"):
            return str(parent["id"])
    return None


def _of_sibling(heading: Tag) -> str | None:
    """Return the name of a target that stands right before the heading."""
    before = heading.find_previous_sibling()
    if isinstance(before, Tag) and before.name in ("a", "span") and not before.contents:
        name = before.get("id") or before.get("name")
        return str(name) if name else None
    return None
