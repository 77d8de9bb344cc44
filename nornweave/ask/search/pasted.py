"""Pasted text in questions: tracebacks, places in files, texts that are too long to search."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import takewhile
from typing import NamedTuple

from nornweave.core.text.decode import composed

SEARCHED_CHARACTERS = 4_096
"""Of a question; more says nothing that these do not."""
MAX_PLACES = 24
MAX_TAILS = 12
"""Folders of a path that are tried: those of another machine stand before those of the source."""
FIXED_WORDS = 3
"""So many words of a message that is made of values stand in a text in its order."""

_PYTHON_TRACEBACK = "Traceback (most recent call last):"
_FRAME = re.compile(r"(?<!\S)File \"[^\"\n]{1,500}\", line \d+")
_PLACE = re.compile(
    r"(?<![\w.@~+-])(?P<path>[\w.@~+-]*(?:[/\\][\w.@~+-]{1,99}){0,20}\.[A-Za-z]\w{0,9}|[\w.@~+-]+(?:[/\\][\w.@~+-]{1,99}){1,20})"
    r"(?:[\"'`)\]]*,? (?:on |at )?lines? |[\"'`]?(?::(?:line )?| ?\()|(?:\?[\w=&-]*)?#L?)(?P<line>\d{1,7})(?!\w|\.\d)"
)

_TEXT = re.compile(r"\"([^\"\n]+)\"|'([^'\n]+)'|`([^`\n]+)`")
# What stands in a message for a value.
_VALUE = re.compile(r"%[-+ #0-9.*]*[a-zA-Z]|[#$]?\{[^{}\n]*\}|\\\([^()\n]*\)")
_WORDS = re.compile(r"\w+")


class Place(NamedTuple):
    """A line of a file named in a text. ``path`` may begin with folders of another machine."""

    path: str
    line: int


def places_in(text: str) -> tuple[Place, ...]:
    """Return the distinct places in a text, in order: ``a/b.py:12``, ``a.py line 12``, ``a.py#L12``."""
    found = (Place(match["path"].replace("\\", "/"), int(match["line"])) for match in _PLACE.finditer(text))
    return tuple(dict.fromkeys(found))[:MAX_PLACES]


def without_lines(text: str) -> str:
    """Return a text with the places in it as paths, without their lines."""
    return _PLACE.sub(lambda match: match["path"], text)


def tails(path: str) -> list[str]:
    """Return a path and its ends: ``a/b.py`` → ``a/b.py``, ``b.py``. Ends without ``/`` and ``.`` are left out."""
    parts = [part for part in path.split("/") if part not in {"", ".", ".."}]
    ends = ["/".join(parts[start:]) for start in range(max(0, len(parts) - MAX_TAILS), len(parts))]
    return [*ends[:1], *(end for end in ends[1:] if "/" in end or "." in end)]


def nearest_paths(named: str, paths: Iterable[str]) -> list[str]:
    """Return the paths that a path in a text means, sorted: those that end most alike, whole ones first.

    ``a.py`` is ``a.py`` rather than ``lib/a.py``, and ``/home/x/lib/a.py`` is ``lib/a.py``.
    """
    parts = [*reversed(named.lower().split("/"))]
    alike = dict[str, tuple[int, bool]]()
    for path in paths:
        own = [*reversed(path.lower().split("/"))]
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(parts, own, strict=False)))
        alike[path] = shared, shared == len(own)
    best = max(alike.values(), default=(0, False))
    return sorted(path for path, how in alike.items() if how == best and best[0])


def said_words(text: str) -> str:
    """Return the words of a text in lower case between blanks, as in ``" two words "``; empty if it has none."""
    words = _WORDS.findall(text.lower())
    return f" {' '.join(words)} " if words else ""


def messages_in(code: str, words: str, *, with_values: bool = False) -> list[str]:
    """Return the texts in quotation marks whose words stand in ``words`` in their order, without their values.

    Args:
        words: the words of a message, as ``said_words`` returns them, with anything in the place of the values.
        with_values: whether only texts that hold the place of a value are returned.
    """
    texts = (text for found in _TEXT.findall(code) if (text := "".join(found)).count(" ") >= FIXED_WORDS - 1)
    parted = map(_VALUE.split, texts)
    return [" ".join(parts) for parts in parted if len(parts) > with_values and _are_said(parts, words)]


def _are_said(parts: Iterable[str], words: str) -> bool:
    fixed, at = [said for part in parts if (said := said_words(part))], 0
    if sum(part.count(" ") - 1 for part in fixed) < FIXED_WORDS:
        return False
    for part in fixed:
        if (at := words.find(part, at)) < 0:
            return False
        at += len(part) - 1
    return True


def searched_text(text: str) -> tuple[str, str]:
    """Return the part of a question to search, and a note on the rest; the note is empty if all is searched.

    In a traceback the error comes first, then the frames, innermost first, because the beginning counts most. Of
    other texts that are too long both ends are kept, because the question stands before or after the pasted text.
    """
    text = composed(text)
    asked, kept = text, ""
    before, marker, trace = text.rpartition(_PYTHON_TRACEBACK)
    if marker and _FRAME.search(trace):
        lead = before.partition(marker)[0][: SEARCHED_CHARACTERS // 4]
        asked, kept = "\n".join([*_innermost_first(trace), lead]), "its error and innermost frames"
    elif len(text) > SEARCHED_CHARACTERS:
        half = SEARCHED_CHARACTERS // 2 - 2
        asked, kept = f"{text[:half]} … {text[-half:]}", "both its ends"
    if len(text) <= SEARCHED_CHARACTERS:
        return asked[:SEARCHED_CHARACTERS], ""
    return asked[:SEARCHED_CHARACTERS], (
        f"The question was shortened: of its {len(text):,} characters {SEARCHED_CHARACTERS:,} were searched, {kept}."
    )


def _innermost_first(trace: str) -> list[str]:
    """Return the message of a traceback, then its frames with their code, last one first."""
    starts = [match.start() for match in _FRAME.finditer(trace)]
    frames = [trace[start:end] for start, end in zip(starts, [*starts[1:], len(trace)], strict=True)]
    last, *rest = [line for line in frames[-1].splitlines() if line.strip()]
    own = [last, *(line for line in rest if line[:1].isspace())]
    message = [line for line in rest if not line[:1].isspace()]
    return [*message, *own, *(frame.strip("\n") for frame in reversed(frames[:-1]))]
