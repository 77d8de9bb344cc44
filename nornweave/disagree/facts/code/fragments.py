"""Extract facts from pieces of code that no grammar can parse, such as parts of literals."""

from __future__ import annotations

import re

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Attribute
from nornweave.disagree.facts.code.options import KEYS, NAMING_KEYS
from nornweave.disagree.facts.code.reading import Reading, says_default
from nornweave.disagree.facts.code.sites import ValueSite

MAX_CHARACTERS = 4_000
"""Of a part."""
_LINE = lazy_pattern(
    r"[ \t]*(?:(?:private|public|protected|internal|static|final|const|readonly|pub|let|var|val|export)\s){0,4}"
    r"(?P<name>['\":]?[A-Za-z_#@$][\w.$-]{0,80}['\"]?)\??"
    r"(?:\s{0,3}:\s{0,2}[A-Za-z_][\w.\[\]<>| ?,]{0,60}?(?=\s?=))?"
    r"\s{0,40}(?:=>|:=|:(?!:)|=(?![=>]))\s{0,40}(?P<value>\S[^\n]{0,400})"
)
_COMMENT = lazy_pattern(r"\s(?:#|//|--|/\*).*$")


def read_fragments(reading: Reading) -> None:
    """Add the values in lines ``name: value`` of a short passage that cannot be parsed. A long passage is not read."""
    if len(reading.text) > MAX_CHARACTERS:
        return
    stated = {reading.passage.line_of(fact.span.start - reading.passage.start) for fact in reading.facts.values()}
    opened: list[tuple[int, str]] = []
    offset = 0
    for number, line in enumerate(reading.text.splitlines(keepends=True)):
        indent = len(line) - len(line.lstrip())
        while opened and opened[-1][0] >= indent:
            opened.pop()
        found = _LINE.match(line[:600].rstrip())
        text = _COMMENT.sub("", found["value"]).rstrip(" \t,;") if found else ""
        if found and text.endswith(("{", "(")):
            opened.append((indent, found["name"].strip("'\":")))
        elif found and number not in stated:
            _add(offset, found, text, [name for _, name in opened], reading)
        offset += len(line)


def _add(start: int, found: re.Match[str], text: str, opened: list[str], reading: Reading) -> None:
    text = text.removesuffix("}").rstrip() if text.count("}") > text.count("{") else text
    value = reading.constants.read(text)
    name = found["name"].strip("'\":")
    if value is None or name.lower() in KEYS or (name.lower() in NAMING_KEYS and value.kind == "string"):
        return
    owner = " ".join((reading.base.owner, *opened))
    is_default = reading.base.is_default or says_default(owner) or reading.base.is_class or name[:1] == "#"
    if is_default or opened or "," in found[0] or found[0].endswith(";"):  # others are variables of their own
        at, behind = start + found.start("name"), start + found.start("value")
        site = ValueSite("pair", at, start + found.end("name") + 1, name, at, (behind, behind + len(text)))
        attribute: Attribute = "default" if is_default or value.is_fallback else "value"
        reading.add(site, value, attribute, owner=owner)
