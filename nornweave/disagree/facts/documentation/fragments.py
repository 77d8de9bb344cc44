"""Read comments in source code that no parser could read, each with the line below it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from nornweave.core.text.patterns import lazy_pattern

MAX_FRAGMENTS = 400
_MARKED = lazy_pattern(r"[ \t]*(?://|#(?!\[|!|define|include|if|el|end|undef|pragma)|/\*|\*|--(?=\s))")
_WORD = lazy_pattern(r"[A-Za-z_$][\w$]*")
_KEYWORDS = frozenset(
    """
    abstract async attr_accessor class const constexpr def default defp export extern final fn fun func function
    impl interface internal inline lateinit let local mod mut module override package private protected pub
    public readonly record sealed static struct sub trait type unsigned val var virtual void volatile
    """.split()  # noqa: SIM905
)
_NAME_FIRST = frozenset({".go"})


@dataclass(frozen=True, slots=True)
class DocumentedFragment:
    """A comment in a text, and the name that stands below it; empty if none does."""

    start: int
    end: int
    subject: str


def fragments_of(text: str, path: str) -> list[DocumentedFragment]:
    """Split a stretch of source into its comments, in order; at most ``MAX_FRAGMENTS``."""
    found: list[DocumentedFragment] = []
    begin, at = -1, 0
    is_name_first = PurePosixPath(path).suffix in _NAME_FIRST
    for line in text.splitlines(keepends=True):
        if _MARKED.match(line):
            begin = at if begin < 0 else begin
        elif begin >= 0:
            found.append(DocumentedFragment(begin, at, _declared(line, is_name_first=is_name_first)))
            begin = -1
        at += len(line)
    if begin >= 0:
        found.append(DocumentedFragment(begin, at, ""))
    return found[:MAX_FRAGMENTS]


def _declared(line: str, *, is_name_first: bool) -> str:
    """Return the name that a line declares: in Go its first word, elsewhere the last before ``=``, ``(`` or ``:``."""
    head: str = re.split(r"[=({;:`]", line[:200], maxsplit=1)[0]
    names = [match[0] for match in _WORD.finditer(head) if match[0] not in _KEYWORDS]
    if not names or len(names) > 5 or re.search(r"[.!?]\s", head):
        return ""
    return names[0] if is_name_first else names[-1]
