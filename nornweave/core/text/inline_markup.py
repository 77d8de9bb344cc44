"""Front matter, inline markup and character references, read the same way when parsing and when chunking."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

# Python converts no more than 4,300 digits: html.unescape and html.parser raise ValueError.
_LONG = re.compile(r"&#(?=[0-9]{1000})")


def without_long_references(text: str) -> str:
    """Break character references with very many digits, so that nothing decodes them. The length stays the same."""
    return _LONG.sub("& ", text)


def unescaped(text: str) -> str:
    """Replace character references by their characters, except those with very many digits."""
    return html.unescape(without_long_references(text)) if "&" in text else text


# Front matter stands first, between two lines of three dashes (YAML) or pluses (TOML); nobody writes 64 KB of it.
FRONT_MATTER_BOUND = 65_536
# Inline parsing is meant for headings; a longer text is not a heading.
LINE_BOUND = 1_000

# Blank lines and comments may stand above it.
_OPENING = re.compile(
    r"\A\ufeff?(?:[ \t]*\r?\n|[ \t]*<!--(?:(?!-->)[\s\S]){0,4000}-->[ \t]*\r?\n)*"
    r"(?:(?P<fence>---|\+\+\+|;;;)[ \t]*\r?\n|(?=\{\s{0,20}\"))"
)
_FIRST_KEY = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n){0,50}(?:[\"']?[A-Za-z_][\w .-]{0,80}[\"']?[ \t]*[:=]|\{)")
# ``Key: value`` at the head of a page of MkDocs or Pelican, up to a blank line.
_PAIRS = re.compile(
    r"\A\ufeff?((?:[A-Za-z][\w -]{0,40}:(?:[ \t][^\n]*)?\r?\n(?:[ \t]{4,}\S[^\n]*\n)*){1,30})[ \t]*\r?(?:\n|\Z)"
)
_PAIRS_NAME = re.compile(r"^(?:title|date|authors?|slug|category|template):", re.IGNORECASE | re.MULTILINE)
_SPACES = re.compile(r"\s+")
_ANCHOR = re.compile(r"\s*\{[#.:][^{}]{0,200}\}\s*$")
_MARKS = re.compile(r"[\\`*_\[\]<>&!~{]")


class FrontMatter(NamedTuple):
    """The front matter of a page.

    Attributes:
        form: ``yaml``, ``toml``, ``json`` or ``pairs``; empty if the page has no front matter.
        end: the offset in the page at which the front matter ends; 0 if there is none.
    """

    form: str = ""
    head: str = ""
    end: int = 0


def front_matter(text: str) -> FrontMatter:
    """Return the front matter of a page; an empty one if there is none.

    It is between fences, in braces, or it is ``Key: value`` lines that include a title, a date or a similar key.
    """
    opening = _OPENING.match(text)
    if opening is None:
        pairs = _PAIRS.match(text)
        return FrontMatter("pairs", pairs[1], pairs.end()) if pairs and _PAIRS_NAME.search(pairs[1]) else FrontMatter()
    fence, start = opening["fence"], opening.end()
    if fence is None:
        return _braces(text, start)
    if not _FIRST_KEY.match(text.replace("\r\n", " \n") if "\r" in text[: start + 500] else text, start):
        return FrontMatter()
    closing = closing_fence(fence).search(text, start, start + FRONT_MATTER_BOUND)
    form = {"---": "yaml", "+++": "toml", ";;;": "json"}[fence]
    return FrontMatter(form, text[start : closing.start()], closing.end()) if closing else FrontMatter()


def _braces(text: str, start: int) -> FrontMatter:
    """Return the JSON object at ``start`` as front matter; empty if it is invalid or nothing follows it."""
    try:
        _, end = json.JSONDecoder().raw_decode(text[: start + FRONT_MATTER_BOUND], start)
    except (ValueError, RecursionError):
        return FrontMatter()
    line = text.find("\n", end)
    is_alone = line < 0 or text[end:line].strip() or not text[line:].strip()
    return FrontMatter() if is_alone else FrontMatter("json", text[start:end], line + 1)


def closing_fence(fence: str) -> re.Pattern[str]:
    """Return the pattern of the line that closes front matter which ``fence`` opened."""
    endings = r"(?:---|\.\.\.)" if fence == "---" else re.escape(fence)
    return re.compile(rf"^{endings}[ \t]*(?:\r?\n|\Z)", re.M)


def plain_line(markdown: str) -> str:
    """Return the visible text of one line of Markdown, without tags, emphasis, link targets and escapes."""
    if len(markdown) > LINE_BOUND or not _MARKS.search(markdown):
        return one_line(markdown[:LINE_BOUND])
    (inline,) = _parser().parseInline(markdown)
    return one_line(_ANCHOR.sub("", "".join(_texts(inline.children or ()))))


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark")


def one_line(text: str) -> str:
    """Return a text on one line, with one blank for every run of blank space, and none at both ends."""
    return _SPACES.sub(" ", text).strip()


def _texts(tokens: Sequence[Token]) -> Iterator[str]:
    for token in tokens:
        if token.children:
            yield from _texts(token.children)
        elif token.type in {"softbreak", "hardbreak"}:
            yield " "
        elif token.type != "html_inline":
            yield token.content
