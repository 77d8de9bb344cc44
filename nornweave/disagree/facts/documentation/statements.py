"""Find the words that announce a statement (``default``, ``requires``, ``HTTP``) and read on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.documentation import properties
from nornweave.disagree.facts.documentation.defaults import default
from nornweave.disagree.facts.documentation.statement import Statement

MAX_STATED = 20
"""Statements of one sentence; one with more is a table or generated."""

# Lower case, as the text that is searched: one pattern finds the words, then each says which reader it is for.
_WORDS: dict[str, str] = {
    "default": r"default(?:s|ed|ing)?\b",
    "requires": r"(?:requires?|needs?|must have|supports?|compatible with|runs on|works with|works on|accepts"
                r"|allows|prerequisites?|"
                r"required)(?![\w-])",
    "status": r"(?:http|status(?: code)?|error code|response code|(?:responds?|repl(?:y|ies)|answers?|fails?) with)\b|"
              r"[1-5]\d\d(?= [a-z])",
}  # fmt: skip
_ANNOUNCES = lazy_pattern(rf"\b(?:{'|'.join(_WORDS.values())})")
_KINDS = tuple((kind, lazy_pattern(pattern)) for kind, pattern in _WORDS.items())
# What tells quickly that a stretch has none of them; the most frequent come first.
_STEMS = (
    "default", "require", "status", "http", "need", "must have", "support", "compatible", "runs on", "works", "accepts",
    "allows", "prerequisite", "error", " code", " with",
)  # fmt: skip
_NUMBERED = lazy_pattern(r"\b[1-5]\d\d [a-z]")


def lowered(text: str) -> str:
    """Return a text in lower case, of the same length."""
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(one.lower() if len(one.lower()) == 1 else one for one in text)


def announced(lower: str, start: int, end: int) -> bool:
    """Tell quickly whether anything may be stated in a stretch of lower-case text."""
    part = lower[start:end]
    for stem in _STEMS:  # a loop: three times as fast as ``any`` over a generator
        if stem in part:
            return True
    return _NUMBERED.search(part) is not None


def statements(text: str, lower: str, start: int, end: int) -> Iterator[Statement]:
    """Yield what one sentence says, in order; the same attribute is read from one value only once."""
    seen: set[tuple[str, int]] = set()
    for match in _ANNOUNCES.finditer(lower, start, end):
        in_code = text.count("`", start, match.start()) % 2
        for kind, pattern in _KINDS:
            own = pattern.match(lower, match.start(), end)
            if own is None or (in_code and kind != "status"):
                continue
            for one in _READERS[kind](text, start, end, own):
                if len(seen) >= MAX_STATED:
                    return
                if (one.attribute, one.end) not in seen:
                    seen.add((one.attribute, one.end))
                    yield one


_Reader = Callable[[str, int, int, "re.Match[str]"], Iterator[Statement]]
_READERS: dict[str, _Reader] = {
    "default": default,
    "requires": properties.requires,
    "status": properties.status,
}
