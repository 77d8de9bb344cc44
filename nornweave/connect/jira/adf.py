"""Turn Jira's JSON for text (the Atlassian Document Format) into plain text.

Code stays between fences, lists and tables keep their lines; colours, sizes and ids go.

Source: developer.atlassian.com/cloud/jira/platform/apis/document/structure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nornweave.connect.conversation import as_is, mappings
from nornweave.core.text.dates import since_1970

# People nest lists a few levels deep. Deeper nesting is not theirs.
_MAX_DEPTH = 60
_FENCES = re.compile(r"`{3,}")
_INLINE = frozenset(
    {"text", "hardBreak", "mention", "emoji", "date", "status", "inlineCard", "mediaInline", "inlineExtension"}
)
_LISTS = frozenset({"bulletList", "orderedList", "taskList", "decisionList"})
_CARDS = frozenset({"inlineCard", "blockCard", "embedCard"})

Node = Mapping[str, Any]


def text_of_adf(document: object) -> str:
    """Render a document as text. A string is returned unchanged. Any other value gives an empty text."""
    if isinstance(document, str):
        return document
    return "\n\n".join(_blocks(document, 0)) if isinstance(document, dict) else ""


def _blocks(parent: Node, depth: int) -> Iterator[str]:
    """Yield the blocks of a node that are not blank. Text that stands beside blocks is a separate block."""
    run: list[Node] = []
    for node in mappings(parent.get("content")) if depth < _MAX_DEPTH else ():
        if _kind(node) in _INLINE:
            run.append(node)
            continue
        yield from _paragraph(run)
        run = []
        yield from _block(node, depth + 1)
    yield from _paragraph(run)


def _block(node: Node, depth: int) -> Iterator[str]:
    kind, attributes = _kind(node), _attributes(node)
    if kind == "paragraph":
        yield from _paragraph(mappings(node.get("content")))
    elif kind == "heading":
        level = min(max(as_is(attributes.get("level"), int) or 1, 1), 6)
        yield from (f"{'#' * level} {text}" for text in _paragraph(mappings(node.get("content"))))
    elif kind == "codeBlock":
        yield from _code(node, attributes)
    elif kind in _LISTS:
        yield from _list(node, depth)
    elif kind == "table":
        rows = (" | ".join(_cells(row, depth)) for row in mappings(node.get("content")))
        yield from _unless_blank("\n".join(row for row in rows if row.strip(" |")))
    elif kind == "media" or kind in _CARDS:
        yield from _unless_blank(str(attributes.get("alt") or attributes.get("url") or ""))
    else:
        # Panels, quotes, expands, layouts, extensions: what they hold.
        yield from _unless_blank(as_is(attributes.get("title"), str) or "")
        yield from _blocks(node, depth)


def _code(node: Node, attributes: Node) -> Iterator[str]:
    code = "".join(_inline(mappings(node.get("content")))).strip("\n")
    fence = "`" * (max((len(run) for run in _FENCES.findall(code)), default=2) + 1)
    language = as_is(attributes.get("language"), str) or ""
    if code.strip():
        yield f"{fence}{' '.join(language.split())[:30]}\n{code}\n{fence}"


def _list(node: Node, depth: int) -> Iterator[str]:
    """Yield a list as one block with one line per item.

    If an item has further blocks, they are indented below its line.
    """
    items = []
    number = as_is(_attributes(node).get("order"), int) or 1
    for position, item in enumerate(mappings(node.get("content")), start=max(number, 0)):
        if _kind(item) in _LISTS:
            # Task lists nest without an item around them.
            items += [_indented(block, "  ") for block in _list(item, depth + 1)] if depth < _MAX_DEPTH else []
            continue
        mark = f"{position}. " if node.get("type") == "orderedList" else _mark(item)
        text = "\n".join(_blocks(item, depth))
        if text:
            items.append(mark + _indented(text, " " * len(mark)).lstrip())
    yield from _unless_blank("\n".join(items))


def _mark(item: Node) -> str:
    state = _attributes(item).get("state")
    if item.get("type") != "taskItem":
        return "- "
    return "- [x] " if state == "DONE" else "- [ ] "


def _indented(text: str, blank: str) -> str:
    return "\n".join(blank + line if line else line for line in text.split("\n"))


def _cells(row: Node, depth: int) -> Iterator[str]:
    for cell in mappings(row.get("content")):
        yield " ".join(" ".join(_blocks(cell, depth + 1)).split())


def _paragraph(nodes: Sequence[Node]) -> Iterator[str]:
    yield from _unless_blank("".join(_inline(nodes)).strip())


def _unless_blank(text: str) -> Iterator[str]:
    if text.strip():
        yield text


def _inline(nodes: Sequence[Node]) -> Iterator[str]:
    for node in nodes:
        kind, attributes = _kind(node), _attributes(node)
        if kind == "text":
            yield _marked(as_is(node.get("text"), str) or "", mappings(node.get("marks")))
        elif kind == "hardBreak":
            yield "\n"
        elif kind == "date":
            yield _date(attributes.get("timestamp"))
        else:
            shown = (attributes.get(key) for key in ("text", "alt", "url", "shortName"))
            yield next((each for each in shown if isinstance(each, str) and each), "")


def _marked(text: str, marks: Sequence[Node]) -> str:
    for mark in marks:
        target = as_is(_attributes(mark).get("href"), str)
        if mark.get("type") == "code":
            text = f"`{text}`"
        elif mark.get("type") == "link" and target and target not in text and text.strip():
            text = f"{text} ({target})"
    return text


def _date(timestamp: object) -> str:
    """Return the day of a timestamp, which is a string of milliseconds since 1970."""
    moment = since_1970(str(timestamp), 1_000)
    return moment.date().isoformat() if moment else ""


def _kind(node: Node) -> str:
    return as_is(node.get("type"), str) or ""


def _attributes(node: Node) -> Node:
    return as_is(node.get("attrs"), dict) or {}
