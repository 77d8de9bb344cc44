"""Front matter, inline markup and character references, read the same way when parsing and when chunking."""

from __future__ import annotations

import html
import re
from typing import Any

import mistune

# Python converts no more than 4,300 digits: html.unescape and html.parser raise ValueError.
_LONG = re.compile(r"&#(?=[0-9]{1000})")


def without_long_references(text: str) -> str:
    """Make plain text of references with a thousand digits, which no parser gets through; offsets stay."""
    return _LONG.sub("& ", text)


def unescaped(text: str) -> str:
    """Replace references by their characters; one with a thousand digits stays."""
    return html.unescape(without_long_references(text)) if "&" in text else text


# Front matter stands first, between two lines of three dashes (YAML) or pluses (TOML); nobody writes 64 KB of it.
FRONT_MATTER_BOUND = 65_536
# Inline parsing is meant for headings; what is longer than this is no heading worth parsing.
LINE_BOUND = 1_000

_OPENING = re.compile(r"\A(?P<fence>---|\+\+\+)[ \t]*\r?\n")
_FIRST_KEY = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n){0,50}(?:[\"']?[A-Za-z_][\w .-]{0,80}[\"']?[ \t]*[:=]|\{)")
_SPACES = re.compile(r"\s+")
_ANCHOR = re.compile(r"\s*\{[#.:][^{}]{0,200}\}\s*$")
_UNSEEN = frozenset({"inline_html"})

_markdown = mistune.create_markdown(renderer=None)


def front_matter(text: str) -> tuple[str, int]:
    """Find front matter.

    Returns:
        What stands between the fences (``""`` without front matter) and the offset after the closing line (0).
    """
    opening = _OPENING.match(text)
    if not opening or not _FIRST_KEY.match(text.replace("\r\n", " \n") if "\r" in text[:500] else text, opening.end()):
        return "", 0
    closing = closing_fence(opening["fence"]).search(text, opening.end(), FRONT_MATTER_BOUND)
    if not closing:
        return "", 0
    return text[opening.end() : closing.start()], closing.end()


def closing_fence(fence: str) -> re.Pattern[str]:
    """Return what matches the line that closes front matter which this fence opens, its line end included."""
    endings = r"\+\+\+" if fence == "+++" else r"(?:---|\.\.\.)"
    return re.compile(rf"^{endings}[ \t]*(?:\r?\n|\Z)", re.M)


def plain_line(markdown: str) -> str:
    """Return what a reader sees of one line of Markdown: no tags, emphasis, link targets or escapes."""
    if len(markdown) > LINE_BOUND:
        return one_line(markdown[:LINE_BOUND])
    tokens = _markdown.inline(markdown, {"ref_links": {}})
    return one_line(_ANCHOR.sub("", "".join(_texts(tokens))))


def one_line(text: str) -> str:
    """Collapse every run of blank space."""
    return _SPACES.sub(" ", text).strip()


def _texts(tokens: list[dict[str, Any]]) -> list[str]:
    texts = []
    for token in tokens:
        if "children" in token:
            texts += _texts(token["children"])
        elif token["type"] in {"softbreak", "linebreak"}:
            texts.append(" ")
        elif token["type"] not in _UNSEEN:
            texts.append(str(token.get("raw", "")))
    return texts
