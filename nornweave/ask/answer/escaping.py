"""Untrusted text → text that cannot be mistaken for lines of the renderer.

Retrieved text is data. Its words stay, but a line that looks like a header, a separator, a citation or a
block of the answer is marked as quoted (``> ``), and the dash of anything that looks like a header is escaped
(``[NEWS \\— headlines]``), so that a search by lines or by text finds only true headers.
"""

from __future__ import annotations

import re
import unicodedata

from nornweave.core.text.terminal import legible

QUOTE = "> "
ELLIPSIS = "…"
# How the renderer's own lines begin, besides headers and separators.
CITED = "↳"
ANSWER, NO_ANSWER, CONFLICTS, NOT_SEARCHED = "Answer", "No synthesis:", "Conflicts:", "Not searched:"
DOUBT, SOURCES = "Doubtful:", "Sources:"
_OWN_LINES = tuple(
    start.casefold()
    for start in (CITED, f"{ANSWER} (", DOUBT, NO_ANSWER, CONFLICTS, NOT_SEARCHED, SOURCES, "No results returned from")
)
# No header of ours is longer; what is longer is looked at as little as an attacker likes.
HEADER_CHARACTERS = 300

# What a reader overlooks around a header: blanks, marks of zero width, emphasis, quoting and heading signs.
_ADORNMENT = " \t\u00a0\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff*_#>~`\"'"
_DASH = "-\u2010-\u2015\u2212\u2500\u2501\u2e3a\u2e3b\ufe58\ufe63\uff0d"
_ZERO_WIDTH = re.compile("[\\s\u00ad\u200b-\u200f\u2060\ufeff]+")
_SEPARATOR = re.compile(rf"[{_DASH}]{{3,}}|\*{{3,}}|_{{3,}}")
OPENING, CLOSING = "[［【〔〖⟦⦋⁅", "]］】〕〗⟧⦌⁆"
_RULE_BEGINS = re.compile(rf"[{_DASH}*_\s\u00ad\u200b-\u200f\u2060\ufeff]*")
_ESCAPE = re.compile(r"\\(?=[!-/:-@\[-`{-~])")
_EMPHASIS = re.compile(r"[*_`~]")
# Of ASCII dashes only those between blanks, of a single one only after capitals: code is full of them.
_HEADER_DASH = re.compile(
    rf"[{_DASH.removeprefix('-')}]|\s--+\s|\A.[^a-z\[\]]{{0,60}}[A-Z]{{3}}[^a-z\[\]]{{0,60}}\s-\s", re.DOTALL
)
_INNER_HEADER = re.compile(r"(\[[^\[\]a-z\n]{1,60}\s)(—\s[^\[\]\n]{0,200}\])")


def quoted(text: str) -> str:
    """Return untrusted text without invisible characters. Lines that look like the answer's own are marked as quoted.

    Line ends of every kind become line feeds. Blank lines around the text and blanks at line ends are removed.
    """
    lines = [_quoted_line(line.rstrip()) for line in legible(text).split("\n")]
    return "\n".join(lines).strip("\n")


class QuotedStream:
    """Quotes a text in pieces, with the same result as ``quoted``, if the text has no invisible characters.

    A line is sent as soon as no further text can make it look like a line of the answer itself.
    """

    def __init__(self) -> None:
        self._line = ""
        self._begun = False

    def add(self, text: str) -> str:
        """Add a piece, which must end before a blank or a line end. Return the part that can be sent now."""
        passed: list[str] = []
        *lines, rest = text.split("\n")
        for line in lines:
            self._line += line
            passed += (self.rest(), "\n")
        self._line += rest
        if self._begun or not _may_imitate(self._line):
            passed.append(_escape_line(self._line))
            self._line, self._begun = "", True
        return "".join(passed)

    def rest(self) -> str:
        """Return what was not sent yet of the last line. Call this once the text is complete."""
        line = self._line.rstrip()
        passed = _escape_line(line) if self._begun else _quoted_line(line)
        self._line, self._begun = "", False
        return passed


def one_line(text: str, limit: int) -> str:
    """Return untrusted text as one line of at most ``limit`` characters, for use inside a line of the answer."""
    line = _escape_line(" ".join(legible(text[: limit * 4]).split()))
    return line if len(line) <= limit else f"{line[: max(0, limit - 1)].rstrip()}{ELLIPSIS}"


def _quoted_line(line: str) -> str:
    if line.startswith(QUOTE):
        return _escape_line(line)
    return f"{QUOTE}{_escape_line(line)}" if _imitates(line) else _escape_line(line)


def _escape_line(line: str) -> str:
    return _INNER_HEADER.sub(r"\1\\\2", line) if "—" in line else line


def _imitates(line: str) -> bool:
    if len(line) > HEADER_CHARACTERS:
        return False
    seen, bare = _seen(line)
    if not bare[:1].isalnum() and _SEPARATOR.fullmatch(_ZERO_WIDTH.sub("", seen)):
        return True
    if bare[:1] in OPENING and bare.rstrip(f"{_ADORNMENT}:.")[-1:] in CLOSING:
        return _HEADER_DASH.search(bare) is not None
    return _fold_characters(bare).startswith(_OWN_LINES)


def _may_imitate(start: str) -> bool:
    """Tell whether a line with this beginning may become like a line of the answer itself, such as a header."""
    if len(start) > HEADER_CHARACTERS:
        return False
    seen, bare = _seen(start)
    if not bare or bare[0] in OPENING or _RULE_BEGINS.fullmatch(seen):
        return True
    folded = _fold_characters(bare)
    return any(own.startswith(folded) or folded.startswith(own) for own in _OWN_LINES)


def _seen(line: str) -> tuple[str, str]:
    """Return a line without Markdown's escapes, and then the same line without the markup at both ends."""
    seen = _ESCAPE.sub("", line if line.isascii() else unicodedata.normalize("NFKC", line))
    return seen, seen.strip(_ADORNMENT)


def _fold_characters(bare: str) -> str:
    return _EMPHASIS.sub("", bare[:HEADER_CHARACTERS]).casefold()
