"""Read blocks in braces: HCL (``variable "x" { default = 3 }``), nginx (``name value;``), and Dockerfiles."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nornweave.disagree.facts.configuration.entries import MAX_DEPTH, Entry, items_of, lines_of, without_comment
from nornweave.disagree.facts.configuration.sections import section_entries

_ASSIGNED = re.compile(r"[ \t]*\"?(?P<key>[A-Za-z_][\w.\-]{0,79})\"?[ \t]{0,60}(?:=(?!=)|:(?=[ \t]))[ \t]*")
_DIRECTIVE = re.compile(r"[ \t]*(?P<key>[A-Za-z_][\w.\-]{0,79})[ \t]+")
_WORD = re.compile(r"[\w.\-]{1,80}")
_EXPOSED = re.compile(r"[ \t]*EXPOSE[ \t]+(?P<value>\d{2,5})(?:/\w{3,4})?[ \t]*$", re.IGNORECASE)
_ENVIRONMENT = re.compile(
    r"[ \t]*ENV[ \t]+(?P<key>[A-Za-z_]\w{0,79})[ \t]+(?P<value>[^\s=][^\n]{0,300})$", re.IGNORECASE
)
_FLAG = re.compile(r"--(?P<key>[a-z][a-z-]{1,40})[= ](?P<value>\d[\w.]{0,20})")


def block_entries(text: str) -> Iterator[Entry]:
    """Yield the settings of HCL and of files like nginx's, in order; the words of a block's head are keys above."""
    stack: list[tuple[str, ...]] = []
    for at, line in lines_of(text):
        bare = line.strip()
        parents = tuple(key for keys in stack for key in keys)
        if bare.startswith(("#", "//")):
            continue
        if bare.endswith("{") or "{ " in bare:
            if len(stack) < MAX_DEPTH and not bare.endswith("}"):
                stack.append(tuple(_WORD.findall(bare[: bare.index("{")]))[:3])
            continue
        if bare.startswith("}"):
            if stack:
                stack.pop()
            continue
        if entry := _statement(line, at, parents):
            yield entry


def _statement(line: str, at: int, parents: tuple[str, ...]) -> Entry | None:
    match = _ASSIGNED.match(line)
    is_directive = match is None and line.rstrip().endswith(";")
    if is_directive:
        match = _DIRECTIVE.match(line)
    if match is None:
        return None
    value = without_comment(line[match.end() :], "#").rstrip(";, \t")
    if not value or (is_directive and " " in value):
        return None
    end = at + match.end() + len(value)
    return Entry(match["key"], value, at + match.start("key"), end, parents, items_of(value))


def dockerfile_entries(text: str) -> Iterator[Entry]:
    """Yield what a Dockerfile sets: ``ENV``, ``ARG``, the port that it exposes, the flags of its health check."""
    for entry in section_entries(text):
        is_argument = text[max(0, entry.start - 4) : entry.start].upper() == "ARG "
        yield Entry("default", entry.value, entry.start, entry.end, ("docker", entry.key)) if is_argument else entry
    for at, line in lines_of(text):
        if match := _EXPOSED.match(line):
            yield Entry("port", match["value"], at, at + match.end("value"), ("docker",))
        elif match := _ENVIRONMENT.match(line):
            yield Entry(match["key"], match["value"].strip(), at + match.start("key"), at + match.end("value"))
        elif line.startswith("HEALTHCHECK"):
            for flag in _FLAG.finditer(line):
                yield Entry(flag["key"], flag["value"], at + flag.start(), at + flag.end(), ("docker", "healthcheck"))
