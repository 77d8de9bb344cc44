"""Join words that are hyphenated at the end of a line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

_BROKEN_WORD = re.compile(r"([^\W\d_][\w'’-]*)[-\u2010\u00ad]$")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_KEPT_PREFIXES = frozenset(
    {
        "all",
        "cross",
        "end",
        "ex",
        "half",
        "high",
        "long",
        "low",
        "non",
        "quasi",
        "real",
        "self",
        "short",
        "state",
        "well",
    }
)
_SECOND_PARTS = frozenset(
    {"aware", "based", "driven", "free", "level", "like", "oriented", "scale", "sized", "specific", "term", "wise"}
)
_BROKEN_RANGE = re.compile(r"\d[-–]$")
_SUSPENDED = frozenset({"and", "or", "to", "und", "oder"})  # "short- and long-term"


def ends_broken(text: str) -> bool:
    """Tell whether a line ends inside a word."""
    return bool(_BROKEN_WORD.search(text[-60:]))


class Hyphens:
    """Decides whether a hyphen at the end of a line belongs to the word, by how the document writes it elsewhere."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._words: Counter[str] = Counter()
        broken = False
        for line in lines:
            words = _WORD.findall(line.casefold())
            cut = ends_broken(line)
            self._words.update(words[broken : len(words) - cut])
            broken = cut

    def joined(self, lines: Iterable[str]) -> str:
        """Join the lines of a paragraph."""
        parts: list[str] = []
        for line in lines:
            if parts:
                parts[-1], separator = self.seam(parts[-1], line)
                parts.append(separator)
            parts.append(line)
        return "".join(parts)

    def seam(self, line: str, following: str) -> tuple[str, str]:
        """Return ``line`` without its hyphen where that has to go, and what stands between it and ``following``."""
        broken = _BROKEN_WORD.search(line[-60:])
        rest = _WORD.match(following)
        if not broken or not rest:
            return line, "" if _BROKEN_RANGE.search(line[-9:]) and following[:1].isdigit() else " "
        if line.endswith("\u00ad"):
            return line[:-1], ""
        first, second = broken.group(1), rest.group()
        if second.casefold() in _SUSPENDED and not self._words[f"{first}-{second}".casefold()]:
            return line, " "
        return (line if self._is_compound(first, second) else line[:-1]), ""

    def _is_compound(self, first: str, second: str) -> bool:
        if second[0].isupper() or "-" in first or first.casefold() == second.casefold():
            return True
        head = second.split("-")[0].casefold()
        joined = self._words[f"{first}{head}".casefold()]
        hyphenated = self._words[f"{first}-{second}".casefold()] + self._words[f"{first}-{head}".casefold()]
        if joined != hyphenated:
            return hyphenated > joined
        known = self._words[first.casefold()] > 0 and len(first) > 2
        return first.casefold() in _KEPT_PREFIXES or (known and self._is_second_part(head))

    def _is_second_part(self, word: str) -> bool:
        """Tell whether a compound like "user-provided" may end so; "ing" and "tion" are no words of their own."""
        return word in _SECOND_PARTS or (len(word) > 4 and word.endswith(("ed", "ing")) and self._words[word] > 0)
