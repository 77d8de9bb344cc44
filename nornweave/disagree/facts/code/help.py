"""Extract the defaults that the help text of a program states: ``"  --pause <s>  seconds (default: 5)\\n"``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Fact
from nornweave.disagree.facts.documentation import documentation_facts
from nornweave.disagree.facts.passage import Passage

_DEFAULT = lazy_pattern(r"default", re.IGNORECASE)
_LINE = lazy_pattern(
    r"[ \t]*(?:[^\"'`\n]{0,60}[\"'`](?:\\[nt])*)?(?P<help>[ \t]*(?:-\w,?[ \t/|]+)?--[a-z][\w-]+(?:[ \t=<\[][^\n]*)?$)"
)
_GOES_ON = lazy_pattern(r"[ \t]*(?P<quote>[\"'`]?)(?P<help>[ \t]{2,}[^\s;{}][^;{}\n]*)")
_ENDS = lazy_pattern(r"(?:\\n)?[\"'`]?(?:[ \t]*[,;)+\\]+)*$")
_FENCE = "```\n"


def help_facts(passage: Passage) -> Iterator[Fact]:
    """Yield the defaults of flags that a program states in its help strings. The side of these facts is ``code``."""
    if "--" not in passage.text or _DEFAULT.search(passage.text) is None:
        return
    is_help, lines = False, []
    for line in passage.text.split("\n"):
        found = _LINE.match(line) or (_GOES_ON.match(line) if is_help else None)
        is_help = found is not None
        lines.append(_only(line, found) if found else " " * len(line))
    text = "\n".join(lines)
    if _DEFAULT.search(text) is None:
        return
    part = replace(
        passage, text=f"{_FENCE}{text}\n{_FENCE}", start=passage.start - len(_FENCE), domain="documentation", format="",
        language=None, title=None, section=None,
    )  # fmt: skip
    for fact in documentation_facts(part):
        if fact.attribute == "default" and fact.form == "list":
            yield replace(fact, side="code", form="option", line=fact.line - 1)


def _only(line: str, found: re.Match[str]) -> str:
    """Return a line in which everything but the help text is replaced by blanks."""
    start, end = found.start("help"), len(line)
    is_quoted = line[:start].rstrip()[-1:] in {"'", '"', "`"}
    ending = _ENDS.search(line) if is_quoted else None
    if ending is not None and ending.start() > start:
        end = ending.start()
    return " " * start + line[start:end] + " " * (len(line) - end)
