"""Comments and docstrings of source code: where they stand, and what they say of the line below."""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

MAX_REMARK = 160
OPENING = 2000

_C_LIKE = re.compile(
    r"(?P<line>//[^\n]*)|(?P<block>/\*[\s\S]*?(?:\*/|\Z))|\"(?:[^\"\\\n]|\\.){0,2000}\"|'(?:[^'\\\n]|\\.){0,2000}'|`[^`]{0,8000}`"
)
_TRIPLE = r"\"\"\"[\s\S]*?(?:\"\"\"|\Z)|\'\'\'[\s\S]*?(?:\'\'\'|\Z)"
_HASHED = re.compile(
    rf"(?P<block>(?m:^[ \t]*)[rRuU]?(?:{_TRIPLE}))|{_TRIPLE}|"
    r"\"(?:[^\"\\\n]|\\.){0,2000}\"|'(?:[^'\\\n]|\\.){0,2000}'|(?P<line>(?<![\w$&{])\#(?![{!])[^\n]*)"
)
HASH_LANGUAGES = frozenset({"python", "ruby", "yaml", "toml", "ini", "env", "dockerfile"})
_MARKS = re.compile(
    r"^[ \t]*(?:///?!?|/\*\*?!?|\*/|\*|#+:?|[rRuU]?\"\"\"|[rRuU]?''')|\*/[ \t]*$|(?:\"\"\"|''')[ \t]*$", re.MULTILINE
)
# ``NAME = value`` and ``name: type``, which a string below documents.
_DOCUMENTED = re.compile(
    r"[ \t]*[A-Za-z_]\w*(?:[ \t]*:[^\n]{1,200})?[ \t]*=[^\n]|[ \t]*[a-z_]+: [\w\[\]., |]{1,120}$|[ \t]*#|[ \t]*[)\]}]"
)
_NEXT_LINE = re.compile(r"[ \t]*\n[ \t]*")
_COMMENT_LINE = {True: re.compile(r"[ \t]*#(?!\[)"), False: re.compile(r"[ \t]*(?://|\*|/\*)")}
_TRAILING = {True: re.compile(r"#[ \t]*([^\n]{3,160})"), False: re.compile(r"(?://|/\*)[ \t]*([^\n]{3,160})")}


@dataclass(frozen=True, slots=True)
class Remark:
    """A comment or docstring without its marks and its indentation, which prose would take for a code block.

    Attributes:
        starts: of each line, its place in ``text`` and its place in the source, ascending.
    """

    text: str
    starts: tuple[tuple[int, int], ...]

    def place(self, offset: int) -> int:
        """Return where in the source a character of ``text`` stands; an end that closes a line stays on it."""
        at, source = self.starts[max(0, bisect_right(self.starts, (offset, sys.maxsize)) - 1)]
        return source + offset - at


def comment_blocks(text: str, language: str) -> Iterator[Remark]:
    """Find comments and docstrings, in order; line comments that follow each other are one."""
    for start, end in _blocks(text, language):
        block = _MARKS.sub(lambda match: " " * len(match[0]), text[start:end])
        yield _undented(block, start)


def _blocks(text: str, language: str) -> Iterator[tuple[int, int]]:
    hashed = language in HASH_LANGUAGES
    pending: tuple[int, int] | None = None
    for match in (_HASHED if hashed else _C_LIKE).finditer(text):
        if match.lastgroup is None:
            continue
        start, end = match.span()
        if hashed and match.lastgroup == "block" and not _opens_docstring(text, start):
            continue
        if pending and match.lastgroup == "line" and _NEXT_LINE.fullmatch(text, pending[1], start):
            pending = pending[0], end
            continue
        if pending:
            yield pending
        pending = (start, end)
    if pending:
        yield pending


def _undented(block: str, start: int) -> Remark:
    lines = block.split("\n")
    indents = [len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()]
    common = min(indents, default=0)
    kept: list[str] = []
    starts: list[tuple[int, int]] = []
    at, source = 0, start
    for number, line in enumerate(lines):
        cut = min(common, len(line)) if number else len(line) - len(line.lstrip())
        starts.append((at, source + cut))
        kept.append(line[cut:].rstrip())
        at += len(kept[-1]) + 1
        source += len(line) + 1
    return Remark("\n".join(kept), tuple(starts))


def _opens_docstring(text: str, start: int) -> bool:
    """Tell a docstring that begins here from the end of one whose beginning the passage has lost."""
    before = text[:start].rstrip()
    return not before or before[-1] == ":" or bool(_DOCUMENTED.match(before, before.rfind("\n") + 1))


def remark_at(text: str, at: int, language: str) -> str:
    """Return the comment at the end of the line and the comment lines right above it, shortened."""
    line_start = text.rfind("\n", 0, at) + 1
    line_end = text.find("\n", at)
    hashed = language in HASH_LANGUAGES
    trailing = _TRAILING[hashed].search(text, at, line_end if line_end >= 0 else len(text))
    above: list[str] = []
    while line_start > 0 and len(above) < 3:
        previous = text.rfind("\n", 0, line_start - 1) + 1
        line = text[previous : line_start - 1]
        if not _COMMENT_LINE[hashed].match(line):
            break
        above.append(line.strip(" \t/#*"))
        line_start = previous
    return " ".join([trailing[1] if trailing else "", *reversed(above)]).strip()[:MAX_REMARK]


def opening_remark(text: str, language: str) -> str:
    """Return how the first comment of a passage begins, if the passage begins with it."""
    for start, end in _blocks(text[:OPENING], language):
        said = _MARKS.sub(" ", text[start:end])
        return " ".join(said.split())[:MAX_REMARK] if not text[:start].strip() else ""
    return ""
