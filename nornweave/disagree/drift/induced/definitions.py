"""The constants of a repository: the values of names that are defined in one file, for all others."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.expressions import read_value
from nornweave.disagree.facts.names import words_of
from nornweave.disagree.facts.values import Value

MAX_FOLLOWED = 4
"""Constants that are defined by constants, one behind the other."""
_DEFINED = lazy_pattern(
    r"(?:^[ \t]*\#[ \t]*define[ \t]+(?P<macro>[A-Z]\w{2,})[ \t]+"
    r"|(?<![\w.$])(?P<name>[A-Z][A-Z0-9_]{3,}|[dD]efault[A-Z]\w*)(?:[ \t]*:[ \t]*[^=\n;,(){}]{1,40}|[ \t]+[\w.]{2,30})?"
    r"[ \t]*:?=(?![=>])[ \t]*)(?P<value>(?:\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|[^\n;\"'#]){1,120}?)"
    r"[ \t]*(?:;|,?[ \t]*(?://|/\*|\#[^\w])[^\n]*|,?$)",
    re.MULTILINE,
)
_ALONE = lazy_pattern(r"[A-Za-z_]\w*(?:(?:\.|::)\w+)*$")


@dataclass(frozen=True, slots=True)
class Definition:
    """The value of a constant as it is written, and its place. ``line`` counts from 0."""

    written: str
    path: str
    line: int
    start: int
    end: int

    @property
    def value(self) -> Value | None:
        """The literal that the constant holds; ``None`` if it holds another expression."""
        value = read_value(self.written)
        return value if value is not None and value.is_literal else None


class Definitions:
    """Constants by the last part of their names."""

    def __init__(self, texts: Iterable[tuple[str, str]]) -> None:
        """Take the constants of programs, each given as path and text."""
        self._by_name: dict[str, list[Definition]] = defaultdict(list)
        for path, text in texts:
            line = at = 0
            for match in _DEFINED.finditer(text):
                line, at = line + text.count("\n", at, match.start("value")), match.start("value")
                name = match["macro"] or match["name"]
                self._by_name[name].append(Definition(match["value"].strip(), path, line, at, match.end("value")))

    def find(self, written: str, path: str) -> Definition | None:
        """Return the definition that a name means in the file ``path``; ``None`` if it is missing or uncertain.

        If several definitions differ, the one in this file is preferred, or the one in the file named like the class.
        """
        for _ in range(MAX_FOLLOWED):
            owner, name = _parts(written)
            found = self._by_name.get(name, [])
            near = [one for one in found if one.path == path] or [
                one for one in found if owner and PurePosixPath(one.path).stem == owner
            ]
            chosen = near or found
            if len({one.written for one in chosen}) != 1:
                return None
            if chosen[0].value is not None:
                return chosen[0]
            if not _ALONE.match(chosen[0].written):
                return None
            written, path = chosen[0].written, chosen[0].path
        return None

    def name(self, written: str, path: str) -> str:
        """Return the string that a constant holds, if it is a name (``RETRIES = "attempts"``); empty otherwise."""
        found = self.find(written, path)
        value = found.value if found else None
        return value.text if value is not None and value.kind == "string" and words_of(value.text) else ""


def _parts(written: str) -> tuple[str, str]:
    """Return the class that is written before a constant, and its own name. The class is empty if none is written."""
    parts: Sequence[str] = re.split(r"\.|::|->", written)
    return (parts[-2] if len(parts) > 1 else ""), parts[-1]
