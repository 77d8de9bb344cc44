"""Find where a chunk repeats a text from elsewhere: in titles, heading paths, messages before it."""

from __future__ import annotations

import re

from nornweave.core.text.inline_markup import LINE_BOUND, plain_line

# In fewer words than these the same words are no quotation: "Refunds" stands in many headings.
QUOTED_WORDS = 3
# What separates the parts of a heading path.
_ABOVE = " > "
_CONTEXT_MARK = "[context] "
_WORD = re.compile(r"\w+")
_MARKS = re.compile(r"^[\s#>=*-]+")


class Quoted:
    """Finds a masked text in the titles, heading paths and contexts of other chunks."""

    def __init__(self, text: str) -> None:
        self.words = words_in(plain_line(_MARKS.sub("", text)) if len(text) <= LINE_BOUND else text)
        self._joined = f" {' '.join(self.words)} "
        quoted = r"\W+".join(map(re.escape, self.words))
        self._pattern = re.compile(rf"(?<!\w){quoted}(?!\w)", re.IGNORECASE)

    def cut(self, text: str) -> str:
        """Take every occurrence out of a text."""
        return self._pattern.sub(" ", text)

    def cleared(self, line: str | None) -> str | None:
        """Take it out of a title or a heading path; ``None`` when nothing is left."""
        if line is None:
            return None
        kept = _ABOVE.join(part for part in map(self._cleared, line.split(_ABOVE)) if part)
        return kept or None

    def cleared_lines(self, text: str) -> str:
        """Take it out of a context: heading paths, messages, a question, a line each."""
        lines = []
        for line in text.split("\n"):
            said = line.removeprefix(_CONTEXT_MARK)
            kept = self.cleared(said)
            if kept is not None:
                lines.append(line[: len(line) - len(said)] + kept)
        return "\n".join(lines)

    def _cleared(self, part: str) -> str:
        words = words_in(part)
        if words == self.words:
            return ""
        if len(words) >= QUOTED_WORDS and f" {' '.join(words)} " in self._joined:
            return ""  # the beginning of it, shortened
        if len(self.words) < QUOTED_WORDS:
            return part
        kept = self.cut(part)
        return part if kept == part else " ".join(kept.split())


def words_in(text: str) -> list[str]:
    """Return the words of a text in lower case, in order."""
    return _WORD.findall(text.lower())
