"""Text with markup → sentences, with offsets: a light splitter that keeps every character's place.

Markup is blanked out, never removed, so that an offset into the masked text is one into the text. Code blocks (fenced,
indented, literal), tables, front matter, link targets and URLs are no prose and say nothing here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_HEAD = 200
MAX_SENTENCE = 600
"""What is longer was not written for people."""

_SPACES = re.compile(r"[^\n]")
_FRONT_MATTER = re.compile(r"\A(?P<fence>---|\+\+\+)[ \t]*\n.*?(?:^(?P=fence)[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"```.*?(?:```|\Z)|^~~~.*?(?:^~~~|\Z)", re.DOTALL | re.MULTILINE)
_INLINE_CODE_IN_HTML = re.compile(r"</?(?:code|tt|kbd|samp)\b[^<>]{0,200}>", re.IGNORECASE)
_HIDDEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<(?P<tag>script|style|pre|head|nav|table)\b[^<>]{0,500}>.*?(?:</(?P=tag)\s*>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_BLOCK_TAG = re.compile(
    r"</?(?:p|div|li|ul|ol|dl|dt|dd|br|tr|td|th|section|article|main|header|footer|blockquote|body|html)\b[^<>]{0,500}>",
    re.IGNORECASE,
)
_HEADING_TAG = re.compile(r"<h[1-6]\b[^<>]{0,500}>(?P<text>.{0,300}?)</h[1-6]\s*>", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,500}>")
_LINK = re.compile(
    r"!?\[(?P<label>[^\[\]\n]{0,200})\](?:\((?:[^()\n]|\([^()\n]*\)){0,500}\)|\[[^\[\]\n]{0,100}\])"
    r"|\[\d{1,3}(?:[,–-]\s?\d{1,3}){0,9}\]"
)
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+]{1,11}://[^\s<>`]+")
_UNDERLINED = re.compile(r"__(?=\w)|(?<=\w)__")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s+(?P<text>.*?)\s*#*\s*\Z")
# A heading whose section was flattened on to its line: "## Errors — The service answers 422 for what ...".
_RUN_ON = re.compile(r"\s{0,3}#{1,6}\s+(?P<text>[^\n]{1,80}?)\s[—–]\s+(?=[^\s—–]+(?:\s+[^\s]+){3})")
_UNDERLINE = re.compile(r"\s{0,3}([=\-~^\"'#*+.`])\1{2,}\s*\Z")
_ITEM = re.compile(r"\s*(?:[-*+•–]|\(?\d{1,3}[.)]|#\.|\[[ x]\])\s+")
_DIRECTIVE = re.compile(r"\s*\.\.\s")
_FIELD = re.compile(r"\s*:[A-Za-z][\w ]{0,60}:\s")
_STRUCTURE = re.compile(
    r"\s{0,3}#{1,6}\s|\s*(?:\||\+[-=]{2}|={3,}|\.\.\s)|\s{0,3}([=\-~^\"'#*+.`])\1{2,}\s*\Z|\s*-{3,}\s+-"
)
_CODE = re.compile(r"[{};=$<>|\\]|\(\)|^\s*\w+\(|^\s*[$>%#]")
_ESCAPE = re.compile(r"\\(?=[-.()*_`#<>!|\[\]{}+~:/])")
_CODE_SPACES = re.compile(r"` ?([^`]{1,200}?) ?`")
_PROSE_DIRECTIVE = re.compile(
    r"\s*\.\.\s+(?:note|warning|important|tip|caution|attention|hint|versionadded|versionchanged|deprecated)::"
)
_SPEAKER = re.compile(r"(?P<name>@?[^\W\d_][\w.'-]{0,30}(?: [^\W\d_][\w.'-]{0,30}){0,3}): ")
_BREAK = re.compile(r"(?<=[.!?])[\"')\]*_`]{0,3}\s+(?=[\"'(\[*_`]{0,2}[^\Wa-z]|[\"'(\[]?[`#@/])")
# Who chats begins sentences in lower case.
_CHAT_BREAK = re.compile(rf"{_BREAK.pattern}|(?<=[^\W_][.!?])\s+(?=[a-z])")
_ABBREVIATED = re.compile(
    r"(?:\b(?:e\.g|i\.e|vs|cf|etc|al|approx|resp|incl|max|min|no|nr|fig|figs|sec|eq|ref|refs|dr|mr|mrs|ms|st|inc|ltd|co"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)|\b[A-Z])\.\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a passage.

    Attributes:
        text: without markup, blank space collapsed.
        start, end: where it stands in the passage's text.
        heading: the nearest heading inside the passage above it, empty without one.
        lead: the line that introduces the list it stands in, empty outside lists.
        head: the beginning of its paragraph or item, up to the sentence: what a definition defines.
        speaker: who says it; empty outside conversations.
    """

    text: str
    start: int
    end: int
    heading: str = ""
    lead: str = ""
    head: str = ""
    speaker: str = ""


@dataclass(frozen=True, slots=True)
class _Block:
    """A paragraph, a list item or a message."""

    start: int
    end: int
    heading: str
    lead: str
    speaker: str


def mask(text: str) -> str:
    """Blank out markup, code blocks and addresses; same length, line breaks kept."""
    if text.startswith(("---", "+++")):
        text = _FRONT_MATTER.sub(_blank, text)
    if "```" in text or "~~~" in text:
        text = _FENCE.sub(_blank, text)
    if "<" in text:
        text = _mask_tags(text)
    if "[" in text:
        text = _LINK.sub(_label, text)
    if "://" in text:
        text = _ADDRESS.sub(_blank, text)
    if "__" in text:
        text = _UNDERLINED.sub("  ", text)
    return text.replace("**", "  ")


def _mask_tags(text: str) -> str:
    text = _HIDDEN.sub(_blank, text)
    text = _HEADING_TAG.sub(_as_heading, text)
    text = _INLINE_CODE_IN_HTML.sub(lambda match: "`".center(len(match[0])), text)
    text = _BLOCK_TAG.sub(lambda match: "\n" + _blank(match)[1:], text)
    return _TAG.sub(_blank, text)


def _blank(match: re.Match[str]) -> str:
    return _SPACES.sub(" ", match[0])


def _label(match: re.Match[str]) -> str:
    """Keep what a reader sees of a link."""
    if match["label"] is None or match[0].startswith("!"):
        return " " * len(match[0])
    start = match.start("label") - match.start()
    return " " * start + match["label"] + " " * (len(match[0]) - start - len(match["label"]))


def _as_heading(match: re.Match[str]) -> str:
    start = match.start("text") - match.start()
    inner = _TAG.sub(_blank, match["text"]).replace("\n", " ")
    return "\n# ".ljust(start) + inner + "\n".ljust(len(match[0]) - start - len(inner))


def sentences(text: str, *, conversation: bool = False) -> Iterator[Sentence]:
    """Cut a passage's text into sentences, in order.

    Args:
        conversation: whether lines start with ``speaker: ``.
    """
    masked = mask(text)
    for block in _Blocks(masked, conversation):
        yield from _split(masked, block)


def _split(masked: str, block: _Block) -> Iterator[Sentence]:
    text = masked[block.start : block.end]
    at = 0
    breaks = _CHAT_BREAK if block.speaker else _BREAK
    for cut in [*breaks.finditer(text), None]:
        end = cut.start() if cut else len(text)
        if cut and _ABBREVIATED.search(text, max(at, end - 8), end):
            continue
        piece = text[at:end]
        bare = piece.strip()
        if 2 < len(bare) <= MAX_SENTENCE:
            start = block.start + at + len(piece) - len(piece.lstrip())
            squeezed = _squeezed(bare)
            head = " ".join(text[: min(at, MAX_HEAD * 2)].split())[:MAX_HEAD] if at else ""
            yield Sentence(squeezed, start, start + len(bare), block.heading, block.lead, head, block.speaker)
        at = cut.end() if cut else end


def _squeezed(text: str) -> str:
    """Collapse blank space, also inside backticks; drop the backslashes of Markdown's escapes."""
    text = " ".join(text.split())
    if "\\" in text:
        text = _ESCAPE.sub("", text)
    return _CODE_SPACES.sub(r"`\1`", text) if "` " in text else text


class _Blocks:
    """Groups lines to blocks while they pass by."""

    def __init__(self, masked: str, conversation: bool) -> None:
        self._text = masked
        self._conversation = conversation
        self._heading = ""
        self._lead = ""
        self._start = self._end = -1
        self._block_lead = self._speaker = ""
        self._previous = ""
        self._hidden = -1

    def __iter__(self) -> Iterator[_Block]:
        at = 0
        for line in self._text.splitlines(keepends=True):
            yield from self._take(line, at)
            at += len(line)
        yield from self._close()

    def _take(self, line: str, at: int) -> Iterator[_Block]:
        bare = line.strip()
        if not bare:
            yield from self._close()
            self._previous = ""
        elif not self._is_hidden(line):
            run_on = _RUN_ON.match(line)
            if run_on:
                yield from self._close()
                self._heading, self._lead = run_on["text"], ""
                yield from self._prose(line[run_on.end() :], bare, at + run_on.end())
            elif _STRUCTURE.match(line):
                yield from self._structure(line)
            else:
                yield from self._prose(line, bare, at)
            if bare.endswith("::") and not self._conversation:
                self._hidden = _indent(line)

    def _is_hidden(self, line: str) -> bool:
        """Tell whether a line belongs to a literal block or a directive, which is indented."""
        if self._hidden >= 0 and _indent(line) > self._hidden:
            return True
        self._hidden = -1
        fresh = self._start < 0 and not self._lead and not self._conversation
        return fresh and line.startswith("    ") and not _ITEM.match(line) and bool(_CODE.search(line))

    def _structure(self, line: str) -> Iterator[_Block]:
        title = _HEADING.match(line)
        if title:
            yield from self._close()
            self._heading, self._lead = title["text"], ""
        elif _UNDERLINE.match(line) and self._previous:
            self._start = self._end = -1  # the line above was no paragraph
            self._heading, self._lead = self._previous, ""
        else:
            yield from self._close()
            if _DIRECTIVE.match(line) and not _PROSE_DIRECTIVE.match(line):
                self._hidden = _indent(line)
        self._previous = ""

    def _prose(self, line: str, bare: str, at: int) -> Iterator[_Block]:
        speaker = _SPEAKER.match(line) if self._conversation else None
        opening = speaker or _ITEM.match(line) or (None if self._conversation else _FIELD.match(line))
        if opening:
            yield from self._close()
        if self._start < 0:
            begin = opening.end() if opening and opening.re is not _FIELD else _indent(line)
            self._start = at + begin
            self._speaker = speaker["name"] if speaker else ""
            self._block_lead = self._lead if opening else ""
            self._previous = "" if opening else bare
        else:
            self._previous = ""
        self._end = at + len(line.rstrip())

    def _close(self) -> Iterator[_Block]:
        if self._end > self._start >= 0:
            yield _Block(self._start, self._end, self._heading, self._block_lead, self._speaker)
            last = self._text[max(self._start, self._end - 200) : self._end]
            self._lead = " ".join(last.split()) if last.endswith(":") else self._block_lead
        self._start = self._end = -1


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
