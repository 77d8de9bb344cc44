"""Extract facts from pieces of code that no grammar can parse, such as parts of literals."""

from __future__ import annotations

from nornweave.core.text.patterns import lazy_pattern
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
_OPENED = lazy_pattern(
    r"[ \t]*['\":]?([A-Za-z_@$][\w.$-]{0,80})['\"]?\s{0,3}(?:=>|:=|:|=)\s{0,3}[^'\"\n]{0,80}[{(]\s*(?:[#/].*)?$"
)


def read_fragments(reading: Reading) -> None:
    """Read ``name: value`` line by line in a short part whose tree has errors; in longer ones little is lost."""
    if len(reading.text) > MAX_CHARACTERS:
        return
    stated = {reading.passage.line_of(fact.span.start - reading.passage.start) for fact in reading.facts.values()}
    opened: list[tuple[int, str]] = []
    offset = 0
    for number, line in enumerate(reading.text.splitlines(keepends=True)):
        indent = len(line) - len(line.lstrip())
        while opened and opened[-1][0] >= indent:
            opened.pop()
        inside = _OPENED.match(line.rstrip("\r\n"))
        if inside is not None:
            opened.append((indent, inside[1]))
        elif number not in stated:
            _read_line(offset, line.rstrip("\r\n"), [name for _, name in opened], reading)
        offset += len(line)


def _read_line(start: int, line: str, opened: list[str], reading: Reading) -> None:
    found = _LINE.match(line[:600])
    if found is None:
        return
    text = _COMMENT.sub("", found["value"]).rstrip().rstrip(",;").rstrip()
    text = text.removesuffix("}").rstrip() if text.count("}") > text.count("{") else text
    value = reading.constants.read(text)
    name = found["name"].strip("'\":")
    is_key = name.lower() in KEYS and opened
    if value is None or is_key or (name.lower() in NAMING_KEYS and value.kind == "string"):
        return
    at = start + found.start("name")
    owner = " ".join((reading.base.owner, *opened))
    is_default = reading.base.is_default or says_default(owner) or reading.base.is_class or name[:1] == "#"
    if not (is_default or opened or "," in line or line.rstrip().endswith(";")):
        return  # a variable of its own
    site = ValueSite("pair", at, start + found.end("name") + 1, name, at)
    site.value = (start + found.start("value"), start + found.start("value") + len(text))
    reading.add(site, value, "default" if is_default or value.is_fallback else "value", owner=owner)
