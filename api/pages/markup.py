"""Documents as blocks that a template prints: Markdown and reStructuredText, code in its colours, messages.

Nothing here makes HTML. A block has a tag of the list below and runs of text, which the template escapes; raw HTML of
a document stays text, and only ``http`` and ``https`` addresses become links.

Documents of all formats become Markdown lines first, each with the number of its original line. Invisible text is left
out. Content that a directive would include, run or fetch is only named. Pygments' tokens become marks of a few kinds;
the style sheet has a colour for each. Messages have speaker, time and text.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING
from zlib import crc32

from api.pages.addresses import original
from api.pages.text_runs import Mark, TextRun, highlighted, marked_code
from nornweave.core.text.messages import INDENT, NOBODY, split_line
from nornweave.core.text.spans import Lines
from nornweave.core.text.terminal import lines_of
from nornweave.core.types import Span
from nornweave.read.blocks.block import Block as ReadBlock
from nornweave.read.blocks.block import Blocks, rows_of
from nornweave.read.blocks.block import lines as lines_in
from nornweave.read.blocks.html import PAGE, read_html
from nornweave.read.blocks.reader import FORMATS, read_blocks

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token
    from markdown_it.tree import SyntaxTreeNode
    from pygments.lexer import Lexer

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

NumberedLine = tuple[int, str]

_SHOWN = replace(PAGE, marks_code=True)
_SPECIAL = re.compile(r"([\\*_\[\]<>#~])|(?<!\S)([-+]|\d+[.)])(?=\s)")
_CODE = re.compile(r"(``.+?``)")
_CODE_OF_HTML = re.compile(r"(`[^`\n]+`)")
_ITEM = re.compile(r" *- ")
_HEAD = re.compile(r"^[\s.!?=+\[]*((?:[\w-]+(?::[\w-]+)*)?)(?:::|[,\]])?\s*(.*)$")
_FENCE = re.compile(r"`{3}|~{3}|<|\{%")
_ANNOUNCES = re.compile(r"\.\. |\[[\w,]|[-.]{4,}$|#\+")
_OPTION = re.compile(r"\s+:[\w-]+:")
_FIELD = re.compile(r":([A-Za-z][\w .-]{0,60}):(?:\s+(.*)|$)")
_UNSAID = re.compile(r"\s*\.\. (?:_[^:]*:|\|)")
# Roles and references of reStructuredText; what stands between two backticks each is code in both languages.
_INLINE: Mapping[str, Sequence[tuple[re.Pattern[str], str]]] = {
    "asciidoc": (
        (re.compile(r"(?:link:|(?=https?:))([^\s\[\]]+)\[([^\[\]]+)\]"), r"[\2](\1)"),
        (re.compile(r"(?:<<[^<>,]*,\s*|xref:[^\s\[\]]+\[)([^<>\[\]]+)(?:>>|\])"), r"\1"),
        (re.compile(r"(?<![\w*])\*(?=\S)([^*]+)\*(?![\w*])"), r"**\1**"),
        (re.compile(r"`?(?<!\w)\+(?=\S)([^+`]+)\+(?!\w)`?"), r"`\1`"),
    ),
    "org": (
        (re.compile(r"\[\[([^\[\]]+)\]\[([^\[\]]+)\]\]"), r"[\2](\1)"),
        (re.compile(r"(?<!\w)[=~](?=\S)([^=~]+)[=~](?!\w)"), r"`\1`"),
        (re.compile(r"(?<![\w*])\*(?=\S)([^*]+)\*(?![\w*])"), r"**\1**"),
        (re.compile(r"(?<![\w/:])/(?=\S)([^/]+)/(?![\w/])"), r"*\1*"),
    ),
    "rst": (
        (re.compile(r":[\w:.+-]+:`([^`<]*?)(?:\s*<[^`>]*>)?`"), r"``\1``"),
        (re.compile(r"`([^`<]*?)\s*<([^`>\s]+)>`__?"), r"[\1](\2)"),
        (re.compile(r"(?<![`\w])`([^`]+)`_{0,2}(?!`)"), r"\1"),
    ),
}

# Lexers are regular expressions, some of them of more than quadratic cost (Pygments 2.21: 24,000 lines `x` take that of
# C# 200 s), and they hold the interpreter. A single match of 20,000 hostile characters took at most 16 ms; between two
# matches the time is looked at.
MAX_COLOURED_CHARACTERS = 40_000
MAX_COLOURED_LINE = 1_000
COLOURED_WITHIN_S = 0.15
_LEXERS = {
    "bash": "bash",
    "c": "c",
    "cpp": "cpp",
    "csharp": "csharp",
    "dockerfile": "docker",
    "go": "go",
    "java": "java",
    "javascript": "javascript",
    "json": "json",
    "kotlin": "kotlin",
    "php": "php",
    "python": "python",
    "ruby": "ruby",
    "rust": "rust",
    "shell": "bash",
    "sql": "sql",
    "swift": "swift",
    "terraform": "terraform",
    "toml": "toml",
    "typescript": "typescript",
    "tsx": "tsx",
    "yaml": "yaml",
}
# Pygments' types of tokens; the most special first: a docstring is a string, and reads like a comment.
_KINDS = (
    ("Comment", "comment"),
    ("Literal.String.Doc", "comment"),
    ("Literal.String", "string"),
    ("Literal.Number", "number"),
    ("Keyword.Constant", "number"),
    ("Keyword", "keyword"),
    ("Operator.Word", "keyword"),
    ("Name.Function", "definition"),
    ("Name.Class", "definition"),
    ("Name.Decorator", "definition"),
    ("Name.Tag", "keyword"),
    ("Name.Attribute", "definition"),
)

HUES = 6
_NO_NAME = frozenset("`\"'(){}[]<>=/#*|")


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


def markdown_lines(text: str, format: str, first_line: int = 1) -> list[NumberedLine]:  # noqa: A002
    """Return a document as Markdown.

    Args:
        format: of the document; a format that ``read.blocks`` does not know is Markdown already.
    """
    numbers = Lines(text)
    if format == "html":
        readable = read_html(text, _SHOWN)
        tags = sorted(readable.tags)

        def tag_line(offset: int) -> int:
            start = tags[max(0, bisect_right(tags, offset) - 1)]
            return numbers.at(readable.tags[start]) + readable.text.count("\n", start, offset)

        writer = _Writer(Blocks(readable.text, readable.blocks), format, tag_line, first_line - 1)
    else:
        writer = _Writer(read_blocks(text, format), format, numbers.at, first_line - 1)
    return list(writer.written(writer.read.blocks))


@dataclass(frozen=True, slots=True)
class _Writer:
    read: Blocks
    format: str
    number_at: Callable[[int], int]
    above: int

    def written(self, blocks: Iterable[ReadBlock]) -> Iterator[NumberedLine]:
        """Yield the lines of blocks, with a blank line between two blocks."""
        was_item, last = False, 0
        for block in blocks:
            source = self._lines(block.span)
            if not source:
                continue
            is_item = self.format == "html" and block.kind == "list"
            if not (was_item and is_item):
                yield last or source[0][0], ""
            was_item, last = is_item, source[-1][0]
            yield from self._block(block, source)

    def _block(self, block: ReadBlock, source: Sequence[NumberedLine]) -> Iterator[NumberedLine]:
        first, first_line = source[0]
        if block.kind == "front":
            yield from self._code(replace(block, info="yaml"), source)
        elif block.kind == "note" and block.parts:
            head = _HEAD.match(first_line)
            name, said = head.groups() if head else ("", first_line)
            shown = f"**{name}** {self._inline(said)}" if name else f"**{said.strip(chr(34))}**"
            yield first, f"> {shown}"
            yield from ((number, f"> {line}".rstrip()) for number, line in self.written(block.parts))
        elif block.kind == "term" and block.parts:
            yield first, f"- {self._inline(first_line)}"
            yield from ((number, f"  {line}".rstrip()) for number, line in self.written(block.parts))
        elif self.format == "markdown" and (block.kind != "code" or _FENCE.match(first_line)):
            yield from source
        elif block.kind == "heading":
            number = source[-2][0] if self.format == "rst" and len(source) > 1 else first  # above its underline
            yield number, f"{'#' * min(block.level, 6)} {self._inline(block.info)}"
        elif block.kind == "code":
            yield from self._code(block, source)
        elif block.kind == "table" and (rows := rows_of(self.read.text, block)):
            for place, row in enumerate(rows):
                number = self._number(row.span.start)
                yield number, self._inline(row.line)
                if place == 0:
                    yield number, f"|{' --- |' * len(row.cells)}"
        else:
            yield from ((number, self._line(line)) for number, line in source)

    def _lines(self, span: Span) -> list[NumberedLine]:
        """Return the lines of a span, without blank lines at its ends and without their common indentation."""
        text = self.read.text
        found = [(self._number(line.start), text[line.start : line.end].rstrip()) for line in lines_in(text, span)]
        filled = [place for place, (_, line) in enumerate(found) if line]
        shown = found[filled[0] : filled[-1] + 1] if filled else []
        margin = min((len(line) - len(line.lstrip()) for _, line in shown if line), default=0)
        return [(number, line[margin:]) for number, line in shown]

    def _number(self, offset: int) -> int:
        return self.number_at(offset) + self.above

    def _code(self, block: ReadBlock, source: Sequence[NumberedLine]) -> Iterator[NumberedLine]:
        """Yield code as a fenced block, without the lines that introduce it."""
        body = list(source)
        while self.format != "html" and body and (not body[0][1] or _ANNOUNCES.match(body[0][1])):
            is_directive = body.pop(0)[1].startswith(".. ")
            while is_directive and body and _OPTION.match(body[0][1]):
                body.pop(0)
        margin = min((len(line) - len(line.lstrip()) for _, line in body if line), default=0)
        if body:
            yield body[0][0] - 1, f"~~~~~~ {block.info}"
            yield from ((number, line[margin:]) for number, line in body)
            yield body[-1][0], "~~~~~~"

    def _line(self, line: str) -> str:
        """Return a line of a paragraph as Markdown. A field of RST gets a bold name and a line break."""
        if self.format == "rst":
            if field := _FIELD.match(line):
                return f"**{field[1]}:** {self._inline(field[2] or '')}  "
            if _UNSAID.match(line) or line.strip() == "::":
                return ""
            line = line[:-1] if line.endswith("::") else line
        bullet = _ITEM.match(line) if self.format == "html" else None
        start = bullet.end() if bullet else 0
        return line[:start] + self._inline(line[start:])

    def _inline(self, line: str) -> str:
        """Return a line with its inline markup as Markdown. In HTML only code is marked."""
        pieces = (_CODE_OF_HTML if self.format == "html" else _CODE).split(line)
        return "".join(piece if place % 2 else self._marked(piece) for place, piece in enumerate(pieces))

    def _marked(self, text: str) -> str:
        if self.format in {"html", "man"}:
            return _SPECIAL.sub(r"\\\1\2", text)
        for pattern, replacement in _INLINE.get(self.format, ()):
            text = pattern.sub(replacement, text)
        return text


def colours_of(text: str, language: str, within_s: float = COLOURED_WITHIN_S) -> list[Mark]:
    """Return the coloured parts of a text, in order and without overlaps.

    Args:
        text: the code; a long text gets no colours.
        language: as chunks name it; code in an unknown language gets no colours.
        within_s: CPU seconds of this thread; the code after that gets no colours.
    """
    lexer = _lexer(language)
    if lexer is None or len(text) > MAX_COLOURED_CHARACTERS or max(map(len, text.split("\n"))) > MAX_COLOURED_LINE:
        return []
    return list(_marks(lexer, text, time.thread_time() + within_s))


def _marks(lexer: Lexer, text: str, end_s: float) -> Iterator[Mark]:
    # Not `get_tokens`, which changes line ends and blank space: positions would be those of another text.
    for start, token, value in lexer.get_tokens_unprocessed(text):
        if time.thread_time() > end_s:
            return
        if value and (kind := _kind(token)):
            yield Mark(start, start + len(value), kind)


@cache
def _kind(token: object) -> str:
    name = f"{token}.".removeprefix("Token.")
    return next((kind for type_, kind in _KINDS if name.startswith(f"{type_}.")), "")


def _lexer(language: str) -> Lexer | None:
    if language not in _LEXERS:
        return None
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(_LEXERS[language], stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageView:
    """A message, or lines before the first message, which have no speaker.

    Attributes:
        speaker: the name of the speaker; empty if unknown.
        letter: the letter shown as the avatar.
        hue: the colour of the avatar, the same number for the same speaker.
        time: the time of day in UTC; empty if unknown.
        blocks: the text, as markup.
        number: the number of its first line in the document.
        cited: whether it is in the cited part.
    """

    speaker: str
    letter: str
    hue: int
    blocks: tuple[Block, ...]
    number: int
    cited: bool
    time: str = ""


def messages_of(
    text: str, terms: Collection[str], *, first_line: int = 1, cited: range = range(0), ids: Sequence[str] = ()
) -> tuple[MessageView, ...]:
    """Return the messages of a text.

    Args:
        text: the text of a conversation.
        terms: the words to mark.
        first_line: the number of the text's first line.
        cited: the numbers of the cited lines.
        ids: the ids of the cited messages, or of all messages if no lines are cited. Ids of Slack give the time.
    """
    messages = tuple(_messages(text, terms, first_line, cited))
    dated = [message.number for message in messages if message.speaker and (message.cited or not cited)]
    if len(dated) != len(ids):
        return messages
    times = dict(zip(dated, map(_time_of, ids), strict=True))
    return tuple(replace(message, time=times.get(message.number, "")) for message in messages)


def _messages(text: str, terms: Collection[str], first_line: int, cited: range) -> Iterator[MessageView]:
    groups: list[tuple[int, str, list[str]]] = []
    for number, line in enumerate(lines_of(text), first_line):
        speaker, said = _spoken(line)
        if speaker or not groups or line.startswith(NOBODY):
            groups.append((number, speaker, [said.removeprefix(NOBODY)]))
        else:
            groups[-1][2].append(line.removeprefix(INDENT))
    for number, speaker, lines in groups:
        name = speaker.strip()
        yield MessageView(
            speaker=name,
            letter=name[:1].upper(),
            hue=crc32(name.casefold().encode()) % HUES,
            blocks=blocks_of("\n".join(lines), terms, first_line=number, breaks=True),
            number=number,
            cited=number < cited.stop and cited.start < number + len(lines),
        )


def _spoken(line: str) -> tuple[str, str]:
    """Return the speaker and the text of a line. The speaker is empty if the line does not begin with a name."""
    speaker, said = split_line(line)
    is_name = 0 < len(speaker) <= 40 and not set(speaker) & _NO_NAME
    return (speaker, said) if is_name and len(speaker.split()) <= 4 else ("", line)


def _time_of(message_id: str) -> str:
    """Return the time of a Slack message from its id (``1768211090.000100``); empty for other ids."""
    seconds, dot, fraction = message_id.partition(".")
    if not (dot and seconds.isdecimal() and fraction.isdecimal() and len(seconds) == 10):
        return ""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%H:%M")
