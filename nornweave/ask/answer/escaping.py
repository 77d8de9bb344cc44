"""Untrusted text → text that nobody can take for what the renderer writes itself.

Retrieved text is data. What it says stays, but a line of it that looks like a header, a separator, a citation or a
block of the answer is marked as quoted (``> ``), and the dash of anything that looks like a header is escaped
(``[NEWS \\— headlines]``), so that neither a line-wise nor a simple textual search finds a header that is none.
"""

from __future__ import annotations

import re
import unicodedata

from nornweave.core.text.legible import legible

QUOTE = "> "
ELLIPSIS = "…"
# How the renderer's own lines begin, besides headers and separators.
CITED = "↳"
ANSWER, NO_ANSWER, CONFLICTS, NOT_SEARCHED = "Answer", "No synthesis:", "Conflicts:", "Not searched:"
DOUBT = "Doubtful:"
_OWN_LINES = tuple(
    start.casefold()
    for start in (CITED, f"{ANSWER} (", DOUBT, NO_ANSWER, CONFLICTS, NOT_SEARCHED, "No results returned from")
)
# No header of ours is longer; what is longer is looked at as little as an attacker likes.
HEADER_CHARACTERS = 300

# What a reader overlooks around a header: blanks, marks of zero width, emphasis, quoting and heading signs.
_ADORNMENT = " \t\u00a0\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff*_#>~`\"'"
_DASH = "-\u2010-\u2015\u2212\u2500\u2501\u2e3a\u2e3b\ufe58\ufe63\uff0d"
_ZERO_WIDTH = re.compile("[\\s\u00ad\u200b-\u200f\u2060\ufeff]+")
_SEPARATOR = re.compile(rf"[{_DASH}]{{3,}}|\*{{3,}}|_{{3,}}")
_OPENING, _CLOSING = "[［【〔〖⟦⦋⁅", "]］】〕〗⟧⦌⁆"
# Of ASCII dashes only those between blanks, of a single one only after capitals: code is full of them.
_HEADER_DASH = re.compile(
    rf"[{_DASH.removeprefix('-')}]|\s--+\s|\A.[^a-z\[\]]{{0,60}}[A-Z]{{3}}[^a-z\[\]]{{0,60}}\s-\s", re.DOTALL
)
_INNER_HEADER = re.compile(r"(\[[^\[\]a-z\n]{1,60}\s)(—\s[^\[\]\n]{0,200}\])")


def quoted(text: str) -> str:
    """Return untrusted text line by line; only lines that could be taken for ours change, and unseen characters go.

    Line ends of every kind become line feeds; blank lines around the text and blanks at line ends go.
    """
    lines = [_quoted_line(line.rstrip()) for line in legible(text).split("\n")]
    return "\n".join(lines).strip("\n")


def one_line(text: str, limit: int) -> str:
    """Return untrusted text as one line of at most ``limit`` characters, to stand inside a line of ours."""
    line = _escaped(" ".join(legible(text[: limit * 4]).split()))
    return line if len(line) <= limit else f"{line[: max(0, limit - 1)].rstrip()}{ELLIPSIS}"


def _quoted_line(line: str) -> str:
    if not line:
        return line
    return f"{QUOTE}{_escaped(line)}" if _imitates(line) else _escaped(line)


def _escaped(line: str) -> str:
    return _INNER_HEADER.sub(r"\1\\\2", line) if "—" in line else line


def _imitates(line: str) -> bool:
    if len(line) > HEADER_CHARACTERS:
        return False
    seen = line if line.isascii() else unicodedata.normalize("NFKC", line)
    bare = seen.strip(_ADORNMENT)
    if not bare[:1].isalnum() and _SEPARATOR.fullmatch(_ZERO_WIDTH.sub("", seen)):
        return True
    if bare[:1] in _OPENING and bare.rstrip(f"{_ADORNMENT}:.")[-1:] in _CLOSING:
        return _HEADER_DASH.search(bare) is not None
    return bare.casefold().startswith(_OWN_LINES)
