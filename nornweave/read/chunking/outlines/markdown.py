"""The outline of Markdown, from mistune's block parser.

mistune 3 keeps no positions in its tokens, so a state that notes the cursor with every token stands in for its own.
Only blocks are parsed, never the inlines of paragraphs. What mistune would take too long for, or places in another
order than the text's, goes through a scan of lines that knows fences, headings and tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from mistune import Markdown
from mistune.block_parser import BlockParser
from mistune.core import BlockState
from mistune.plugins.table import table

from nornweave.core.text.inline_markup import front_matter, plain_line
from nornweave.core.types import Span
from nornweave.read.chunking.outlines.blocks import (
    Block,
    Kind,
    closes_fence,
    container_blocks,
    even_line_ends,
    lines,
    opened_fence,
    tile,
)

# Characters that mistune may go through again for nested blocks, per character of the text: real pages stay below 4.
_WORK = 16
_MISTUNE_BOUND = 1_000_000

_KINDS: dict[str, Kind] = {"block_code": "code", "table": "table", "heading": "heading"}
_CONTAINERS = frozenset({"list", "block_quote"})
_HTML_HEADING = re.compile(r"\s*<h([1-6])\b[^<>]*>(.*)</h\1\s*>\s*\Z", re.I | re.S)
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+([^\n]*))?$")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_CLOSING_HASHES = re.compile(r"(?:^|[ \t])#+$")


class _TooMuchWork(Exception):  # noqa: N818 - a signal inside this module
    """Nesting makes mistune go through the same text too often."""


class _PlacedState(BlockState):
    """A block state whose top-level tokens know where they start."""

    def __init__(self, parent: _PlacedState | None = None) -> None:
        super().__init__(parent)
        self.rule_start: int | None = None

    def process(self, src: str) -> None:
        super().process(src)
        self.env["work"] = self.env.get("work", 0) + len(src)
        if self.env["work"] > self.env.setdefault("allowed", _WORK * len(src) + 100_000):
            raise _TooMuchWork

    def append_token(self, token: dict[str, Any]) -> None:
        self._place(token)
        super().append_token(token)

    def prepend_token(self, token: dict[str, Any]) -> None:
        self._place(token)
        super().prepend_token(token)

    def add_paragraph(self, text: str) -> None:
        known = len(self.tokens)
        super().add_paragraph(text)
        if len(self.tokens) > known:
            self._place(self.tokens[-1])

    def _place(self, token: dict[str, Any]) -> None:
        token.setdefault("start", self.cursor if self.rule_start is None else self.rule_start)


class _PlacingParser(BlockParser):
    """A block parser that tells the state where the rule that it applies has matched."""

    state_cls = _PlacedState

    def parse_method(self, m: re.Match[str], state: BlockState) -> int | None:
        if not isinstance(state, _PlacedState) or state.parent is not None:
            return super().parse_method(m, state)
        outer, known = state.rule_start, len(state.tokens)
        state.rule_start = m.start()
        end = super().parse_method(m, state)
        for token in state.tokens[known:]:  # a list that something interrupts is inserted without append_token
            token.setdefault("start", m.start())
        state.rule_start = outer
        return end


_parser = _PlacingParser()
table(Markdown(block=_parser))


def outline_markdown(text: str) -> list[Block]:
    """Outline Markdown: front matter, headings (ATX, setext, HTML), code, tables, lists and quotes, paragraphs."""
    _, start = front_matter(text)
    even = even_line_ends(text)
    blocks = _parse(even, start) if len(text) <= _MISTUNE_BOUND else None
    if blocks is None:
        blocks = _scan(even, start)
    front = [Block(Span(0, start), "front")] if start else []
    return tile([*front, *_whole_tables(blocks, even)], text)


def _parse(text: str, start: int) -> list[Block] | None:
    """Parse with mistune; ``None`` when its tokens are out of the text's order or take too much work."""
    state = _PlacedState()
    try:
        state.process(text[start:] + "\n")
        _parser.parse(state)
    except _TooMuchWork:
        return None
    starts = [token["start"] + start for token in state.tokens]
    if not starts:
        return []
    if any(following <= previous for previous, following in zip(starts, starts[1:], strict=False)):
        return None
    ends = [*starts[1:], len(text)]
    spans = (Span(begin, min(end, len(text))) for begin, end in zip(starts, ends, strict=True))
    pairs = zip(state.tokens, spans, strict=True)
    return [block for token, span in pairs if len(span) for block in _blocks(token, span, text)]


def _blocks(token: dict[str, Any], span: Span, text: str) -> Iterator[Block]:
    kind = token["type"]
    if kind == "heading":
        title = plain_line(token.get("text", ""))
        yield Block(span, "heading", token["attrs"]["level"], title) if title else Block(span, "paragraph")
    elif kind in _CONTAINERS:
        yield from container_blocks(text, span)
    elif kind == "block_html":
        yield _html_block(text, span)
    else:
        yield Block(span, _KINDS.get(kind, "paragraph"))


def _html_block(text: str, span: Span) -> Block:
    piece = text[span.start : span.end]
    opening = piece.lstrip()[:8].lower()
    if opening.startswith("<h") and len(piece) < 2_000 and (heading := _HTML_HEADING.match(piece)):
        title = plain_line(heading[2])
        if title:
            return Block(span, "heading", int(heading[1]), title)
    if opening.startswith("<table"):
        return Block(span, "table")
    return Block(span, "code" if opening.startswith("<pre") else "paragraph")


def _whole_tables(blocks: list[Block], text: str) -> Iterator[Block]:
    """Join an HTML table that blank lines cut (Markdown ends an HTML block there) up to its end tag or next heading."""
    opened: Block | None = None
    for block in blocks:
        piece = text[block.span.start : block.span.end]
        if opened is not None and block.kind != "heading":
            opened = Block(Span(opened.span.start, block.span.end), "table")
        elif opened is not None:
            yield opened
            opened = None
            yield block
        elif block.kind == "table" and piece.lstrip()[:6].lower() == "<table":
            opened = block
        else:
            yield block
        if opened is not None and "</table" in piece.lower():
            yield opened
            opened = None
    if opened is not None:
        yield opened


def _scan(text: str, start: int) -> list[Block]:
    """Outline line by line: one pass, whatever the nesting."""
    blocks: list[Block] = []
    fence: str | None = None
    apart = True  # whether the next line of text opens a paragraph
    for line in lines(text, Span(start, len(text))):
        content = text[line.start : line.end].rstrip()
        if fence is not None:
            fence = None if closes_fence(content, fence) else fence
            blocks[-1] = replace(blocks[-1], span=Span(blocks[-1].span.start, line.end))
        elif fence := opened_fence(content):
            blocks.append(Block(line, "code"))
        elif heading := _scan_heading(content, line, None if apart else blocks[-1], text):
            if not apart and heading.span.start == blocks[-1].span.start:
                blocks.pop()
            blocks.append(heading)
            apart = True
        elif not content or not apart:
            blocks[-1:] = [replace(block, span=Span(block.span.start, line.end)) for block in blocks[-1:]]
            apart = apart or not content
        else:
            blocks.append(Block(line, "table" if content.startswith("|") else "paragraph"))
            apart = False
        apart = apart or bool(blocks and blocks[-1].kind == "code")
    return blocks


def _scan_heading(content: str, line: Span, above: Block | None, text: str) -> Block | None:
    if atx := _ATX.match(content[:2_000]):
        title = plain_line(_CLOSING_HASHES.sub("", (atx[2] or "").strip()))
        return Block(line, "heading", len(atx[1]), title) if title else None
    if above is not None and above.kind == "paragraph" and (underline := _SETEXT.match(content[:2_000])):
        title = plain_line(text[above.span.start : above.span.end])
        return Block(Span(above.span.start, line.end), "heading", 1 if underline[1][0] == "=" else 2, title)
    return None
