"""A model's text → its checked form, as a whole or while it is written.

The text is cut into parts at blanks outside of brackets, and each part is checked alone: entities become the letters
that they stand for, invisible letters are removed; then come its citations (``citations``) and its links (``links``).
The result is quoted line by line (``escaping``). The parts depend on the text alone, so it does not matter in which
pieces it arrives.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from html.entities import html5

from nornweave.ask.answer.escaping import CLOSING, OPENING, QuotedStream
from nornweave.ask.answer.synthesis.citations import LONGEST_BRACKET, Citations
from nornweave.ask.answer.synthesis.links import Links
from nornweave.core.text.legible import IGNORABLE, JOINERS, legible
from nornweave.models.language_model import Prompt

DEEPEST = 5
"""Entities that stand for entities, and brackets inside of brackets, are read so often; those of a text with more are
broken."""

_TOKENS = re.compile(rf"[\s{re.escape(OPENING + CLOSING)}]|[^\s{re.escape(OPENING + CLOSING)}]+")
_ENTITY = re.compile(r"&(?:#[0-9]{1,16}|#[xX][0-9a-fA-F]{1,16}|[A-Za-z][A-Za-z0-9]{1,31});")
# Joiners and variation selectors stay in scripts and emoji that need them.
_INVISIBLE = re.compile(f"(?:^|(?<=[\x00-\x7f]))[{IGNORABLE}{JOINERS}]+|[{IGNORABLE}]+")
_FENCE = re.compile(r"( {0,3})(`{3,}|~{3,})(.*)")
_NO_BRACKETS = str.maketrans(dict.fromkeys(OPENING, "(") | dict.fromkeys(CLOSING, ")"))
_BLANK, _WORD = re.compile(r"\s"), re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class CheckedText:
    """A model's answer after all checks.

    Attributes:
        text: every known citation is ``[domain:chunk_id]`` in its own bracket, unknown ones are removed; the only links
            are addresses of passages; no line looks like a header or separator of the answer.
        cited: the ids of the cited chunks, in order, each once.
        unknown: citations of chunks that the prompt does not allow, as written, in order, each once.
        links_left_out: how many addresses were removed.
    """

    text: str
    cited: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    links_left_out: int = 0


def check_written(text: str, prompt: Prompt) -> CheckedText:
    """Return the checked form of a whole text that answers a prompt."""
    stream = CheckedStream(prompt)
    stream.add(text)
    stream.rest()
    return stream.checked()


class CheckedStream:
    """Checks a model's text in pieces, with the same result as ``check_written``."""

    def __init__(self, prompt: Prompt) -> None:
        self._citations = Citations(prompt.allowed.values())
        self._links = Links(prompt.urls, prompt.messages[-1]["content"])
        self._lines = QuotedStream()
        self._word: list[str] = []
        self._part: list[str] = []
        self._length = 0
        self._opened: deque[int] = deque()
        self._passed: list[str] = []
        self._blank = ""

    def add(self, piece: str) -> str:
        """Add a piece of the model's text; return the part that can be sent now."""
        self._word.append(piece)
        if not _BLANK.search(piece):
            return ""
        text = "".join(self._word)
        last = "" if text[-1].isspace() else text.split()[-1]
        settled = text[: len(text) - len(last)].rstrip()
        self._word = [text[len(settled) :]]
        return self._pass_on("".join(map(self._checked_part, self._parts(settled))))

    def rest(self) -> str:
        """Return the part that was not sent yet, once the text is complete. An open code fence is closed."""
        parts = (*self._parts("".join(self._word)), "".join(self._part))
        self._word = []
        passed = self._pass_on("".join(map(self._checked_part, parts)) + self._lines.rest())
        self._blank = ""
        return passed + self._pass_on(_end_of_fence("".join(self._passed)))

    def checked(self) -> CheckedText:
        """Return the text that was sent, with the findings in it."""
        text, unknown = "".join(self._passed), tuple(self._citations.unknown)
        return CheckedText(text, self._citations.cited(text), unknown, self._links.left_out)

    def _parts(self, text: str) -> Iterator[str]:
        """Add a text, which must end before a blank or be the last one. Yield the parts that are now complete."""
        for token in _TOKENS.findall(_WORD.sub(lambda word: _as_seen(word[0]), legible(text))):
            if token.isspace():
                yield from self._complete_part()
            elif token in OPENING:
                self._opened.append(self._length)
            elif token in CLOSING and self._opened:
                self._opened.pop()
            self._part.append(token)
            self._length += len(token)
        yield from self._complete_part()

    def _complete_part(self) -> Iterator[str]:
        while self._opened and self._length - self._opened[0] > LONGEST_BRACKET:
            self._opened.popleft()
        if self._part and not self._part[-1].isspace() and not self._opened:
            yield "".join(self._part)
            self._part, self._length = [], 0

    def _checked_part(self, part: str) -> str:
        for _ in range(DEEPEST):
            checked = self._links.take_out(self._citations.check(part))
            if checked == part:
                return self._lines.add(part)
            part = checked
        return self._lines.add(part.translate(_NO_BRACKETS))

    def _pass_on(self, text: str) -> str:
        """Return the part of a text to send now. Blanks at its end are kept and sent only if more text follows."""
        text = self._blank + text
        passed = text.rstrip()
        self._blank = text[len(passed) :]
        if not self._passed:
            passed = passed.lstrip()
        self._passed += [passed] if passed else []
        return passed


def _as_seen(word: str) -> str:
    """Return a word as readers see it: entities are resolved, invisible letters removed."""
    for _ in range(DEEPEST):
        seen = _INVISIBLE.sub("", legible(_ENTITY.sub(_character, word)))
        if seen == word:
            return word
        word = seen
    return _ENTITY.sub(lambda entity: f"& {entity[0][1:]}", word)


def _character(entity: re.Match[str]) -> str:
    return unescape(entity[0]) if entity[0][1] == "#" else html5.get(entity[0][1:], entity[0])


def _end_of_fence(text: str) -> str:
    """Return the line that closes an open code fence; empty if none is open."""
    open_fence: re.Match[str] | None = None
    for line in text.split("\n"):
        fence = _FENCE.fullmatch(line)
        if fence is None:
            continue
        if open_fence is None:
            open_fence = None if fence[2][0] == "`" in fence[3] else fence
        elif fence[2].startswith(open_fence[2]) and not fence[3].strip():
            open_fence = None
    return f"\n{open_fence[1]}{open_fence[2]}" if open_fence else ""
