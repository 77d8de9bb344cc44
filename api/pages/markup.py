"""Markdown and reStructuredText as blocks that a template prints.

Nothing here makes HTML. A block has a tag of the list below and runs of text, which the template escapes; raw HTML of
a document stays text, and only ``http`` and ``https`` addresses become links.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from api.pages.addresses import original
from api.pages.code_colours import colours_of
from api.pages.markdown_text import markdown_lines
from api.pages.text_runs import TextRun, highlighted, marked_code
from nornweave.core.text.legible import lines_of
from nornweave.read.blocks.reader import FORMATS

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token
    from markdown_it.tree import SyntaxTreeNode

MAX_CHARACTERS = 60_000
"""Of a text that is read as markup; a longer one is shown as it is."""
MARKUP = FORMATS | {"docx", "pptx", "xlsx", "epub", "ipynb", "eml", "stackexchange", "stackoverflow"}
"""Formats of documents whose text is markup; that of office formats became Markdown when it was read."""
_TAGS = {
    "paragraph": "p", "heading": "heading", "bullet_list": "ul", "ordered_list": "ol", "list_item": "li",
    "blockquote": "quote", "fence": "pre", "code_block": "pre", "html_block": "p", "table": "table", "tr": "tr",
    "th": "th", "td": "td", "hr": "rule",
}  # fmt: skip
_MARKED = re.compile(r"\A(?:[-*+>]|#{1,6}|\d{1,3}[.)]) +")
_LANGUAGE = re.compile(r"[\w+#.-]+\s*")
_CELL = re.compile(r"(?<!\\)\|")
_BREAK = re.compile(r" *<br ?/?> *")
_STYLES = {"strong": "strong", "em": "em", "s": "del"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A paragraph, a heading, a list, a table, a fence or a part of one.

    Attributes:
        tag: ``p``, ``heading``, ``ul``, ``ol``, ``li``, ``quote``, ``pre``, ``line`` of a fence, ``table``, ``tr``,
            ``th``, ``td`` or ``rule``.
        lines: the numbers of the first and the last line in the document.
        runs: its own text.
        blocks: the blocks inside it.
        level: the level of a heading, or the number with which an ordered list begins.
        cited: whether it is in the cited lines.
    """

    tag: str
    lines: tuple[int, int]
    runs: tuple[TextRun, ...] = ()
    blocks: tuple[Block, ...] = ()
    level: int = 1
    cited: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """Properties that all blocks of one text share: line numbers, terms, cited lines, and whether lines break."""

    numbers: Sequence[int]
    terms: Collection[str]
    cited: range
    breaks: bool

    def lines(self, node: SyntaxTreeNode, within: tuple[int, int] | None) -> tuple[int, int]:
        """Return the first and last line number of a node. If it has none, return ``within``, those of its parent."""
        if node.map is None or not self.numbers:
            return within or (1, 1)
        first = min(node.map[0], len(self.numbers) - 1)
        return self.numbers[first], self.numbers[max(first, min(node.map[1], len(self.numbers)) - 1)]


def blocks_of(
    text: str,
    terms: Collection[str],
    *,
    format: str = "markdown",  # noqa: A002
    first_line: int = 1,
    cited: range = range(0),
    breaks: bool = False,
) -> tuple[Block, ...]:
    """Return the blocks of a text with markup.

    Args:
        text: the text of a document or a passage.
        terms: words to mark.
        format: the format of the document. Office formats are read as Markdown.
        first_line: the number of the text's first line.
        cited: the numbers of the cited lines.
        breaks: keep the line breaks of the text, as in messages.
    """
    if breaks:
        lines = list(_fences_apart(enumerate(lines_of(text), first_line)))
    else:
        lines = markdown_lines(text, format if format in FORMATS else "markdown", first_line)
    reading = _Reading(numbers=[number for number, _ in lines], terms=terms, cited=cited, breaks=breaks)
    from markdown_it.tree import SyntaxTreeNode

    root = SyntaxTreeNode(_parser().parse("\n".join(line.expandtabs(4) for _, line in lines)))
    return tuple(_blocks(root.children, reading, None))


def _fences_apart(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield lines with each fence on a line of its own. In a chat, text may stand beside a fence."""
    is_open = False
    for number, line in lines:
        before, *pieces = line.split("```")
        if before.strip() or not pieces:
            yield number, before
        for place, piece in enumerate(pieces, 1):
            is_open = not is_open
            is_language = is_open and place == len(pieces) and _LANGUAGE.fullmatch(piece)
            yield number, f"```{piece if is_language else ''}"
            if piece.strip() and not is_language:
                yield number, piece


def sentence_runs(text: str, terms: Collection[str]) -> tuple[TextRun, ...]:
    """Return the runs of one sentence, without the mark of a list, a heading or a table row."""
    line = _MARKED.sub("", " ".join(text.split()))
    if line.startswith("|"):
        line = " · ".join(filter(None, (cell.strip() for cell in _CELL.split(_BREAK.sub(", ", line).strip("|")))))
    (inline,) = _parser().parseInline(line)
    return tuple(_runs(inline.children or [], terms))


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def _blocks(nodes: Sequence[SyntaxTreeNode], reading: _Reading, within: tuple[int, int] | None) -> Iterator[Block]:
    for node in nodes:
        tag = _TAGS.get(node.type)
        if tag is None:  # thead and tbody: what they hold stands in the table itself
            yield from _blocks(node.children, reading, within)
        elif tag == "pre":
            at = (node.map[0] if node.map else 0) + (node.type == "fence")
            start = reading.numbers[min(at, len(reading.numbers) - 1)]
            yield _fence(node.content.rstrip("\n"), (node.info.split() or [""])[0], start, reading)
        else:
            yield _block(node, tag, reading, within)


def _block(node: SyntaxTreeNode, tag: str, reading: _Reading, within: tuple[int, int] | None) -> Block:
    lines = reading.lines(node, within)
    own = node.children[:1] if tag == "li" and node.children and node.children[0].is_nested else []
    tight = own and own[0].type == "paragraph" and own[0].hidden
    inline = own[0].children if tight else [child for child in node.children if child.type == "inline"]
    rest = node.children[1:] if tight else [child for child in node.children if child.type != "inline"]
    runs = [run for child in inline for run in _runs(_tokens(child), reading.terms, reading.breaks)]
    level = int(node.tag[1:]) if tag == "heading" else int(node.attrs.get("start", 1)) if tag == "ol" else 1
    is_leaf = bool(runs) or tag in {"tr", "rule"}
    return Block(
        tag=tag,
        lines=lines,
        runs=tuple(runs),
        blocks=tuple(_blocks(rest, reading, lines)),
        level=level,
        cited=is_leaf and lines[0] < reading.cited.stop and reading.cited.start <= lines[1],
    )


def _tokens(node: SyntaxTreeNode) -> Sequence[Token]:
    return (node.token.children if node.token else None) or ()


def _fence(text: str, language: str, first: int, reading: _Reading) -> Block:
    lines = marked_code(lines_of(text), colours_of(text, language.lower()), reading.terms)
    blocks = tuple(
        Block(tag="line", lines=(number, number), runs=runs, cited=number in reading.cited)
        for number, runs in enumerate(lines, first)
    )
    return Block(tag="pre", lines=(first, first + max(0, len(blocks) - 1)), blocks=blocks)


def _runs(tokens: Sequence[Token], terms: Collection[str], breaks: bool = False) -> Iterator[TextRun]:
    """Yield the runs of a line. If styles are nested, a run has the innermost style, but code has precedence."""
    styles: list[str] = []
    href = ""
    for token in tokens:
        kind = token.type.partition("_")[0]
        if token.type == "link_open":
            href = original(token.attrs.get("href")) or ""
        elif token.type == "link_close":
            href = ""
        elif token.nesting > 0:
            styles.append(_STYLES.get(kind, ""))
        elif token.nesting < 0:
            styles.pop()
        elif kind in {"softbreak", "hardbreak"}:
            yield TextRun("\n" if breaks or kind == "hardbreak" else " ")
        else:
            style = "code" if kind == "code" else styles[-1] if styles else "em" if kind == "image" else ""
            # The one way to break a line in a cell of a table; all other HTML stays text.
            for place, part in enumerate(_BREAK.split(token.content) if kind == "text" else (token.content,)):
                if place:
                    yield TextRun("\n")
                for run in highlighted(part, terms):
                    yield run._replace(style=style, href=href)
