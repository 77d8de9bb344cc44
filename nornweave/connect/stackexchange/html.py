"""Convert the HTML of forum posts into plain text; code keeps its lines."""

from __future__ import annotations

import re

from nornweave.read.chunking.outlines.blocks import Kind
from nornweave.read.chunking.outlines.html import HtmlPolicy, read_html

_POSTS = HtmlPolicy(skipped=frozenset({"script", "style"}), marks_code=True, shows_images=True)
_FENCE = "```"
_BLANK_LINES = re.compile(r"\n{3,}")


def text_of_html(source: str) -> str:
    """Render HTML as text: ``pre`` between fences, verbatim; list items after dashes; references resolved."""
    post = read_html(source, _POSTS)
    blocks = (_written(post.text[block.span.start : block.span.end], block.kind) for block in post.blocks)
    return "".join(blocks).strip()


def _written(text: str, kind: Kind) -> str:
    if kind == "code":
        return f"{_FENCE}\n{text.strip(chr(10)).rstrip()}\n{_FENCE}\n\n"
    return _BLANK_LINES.sub("\n\n", text)
