"""Read TOML, INI, properties, ``.env`` and shell: ``key = value`` below ``[section]`` headers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nornweave.disagree.facts.configuration.entries import Entry, items_of, lines_of, without_comment

MAX_LIST_LINES = 200
_SETTING = re.compile(
    r"[ \t]*(?:export[ \t]+|readonly[ \t]+|local[ \t]+|ENV[ \t]+|ARG[ \t]+|set[ \t]+)?"
    r"(?P<key>[A-Za-z_][\w.\-]{0,79}|\"[\w.\-/@ ]{1,79}\")[ \t]{0,40}(?:[:?+]?=|:(?=[ \t]))[ \t]*"
)
_SECTION = re.compile(r"\[{1,2}(?P<name>[\w.\-\"' :/\t]{1,120})\]{1,2}[ \t]*(?:[#;][^\n]*)?$")
_INLINE = re.compile(
    r"(?P<key>[A-Za-z_][\w\-]{0,60})[ \t]{0,8}=[ \t]{0,8}(?P<value>\"[^\"]{0,200}\"|'[^']{0,200}'|[^,{}\[\]\"']{1,200})"
)


def section_entries(text: str) -> Iterator[Entry]:
    """Yield the settings of TOML, INI, properties, ``.env`` and shell, in order."""
    section: tuple[str, ...] = ()
    pending: tuple[Entry, list[str]] | None = None
    for at, line in lines_of(text):
        if pending is not None:
            pending, done = _continued(pending, line, at)
            if done is not None:
                yield done
            if pending is not None or done is not None:
                continue
        bare = line.lstrip(" \t")
        if bare[:1] in {"#", ";", "!", ""}:
            continue
        header = _SECTION.match(bare) if bare[0] == "[" else None
        if header is not None:
            section = tuple(part.strip("\"' ") for part in re.split(r"[.:]", header["name"]) if part.strip("\"' "))
            continue
        match = _SETTING.match(line)
        if match is None:
            continue
        entry = _setting(match, line, at, section)
        if (entry.value.startswith("[") and entry.items is None and "]" not in entry.value) or not entry.value:
            pending = (entry, [entry.value])
        elif entry.value.startswith("{"):
            yield from _inline_table(entry)
        else:
            yield entry


def _setting(match: re.Match[str], line: str, at: int, section: tuple[str, ...]) -> Entry:
    key = match["key"].strip('"')
    value = without_comment(line[match.end() :].rstrip(" \t\\"), "#;")
    end = at + match.end() + len(value)
    return Entry(key, value, at + match.start("key"), end, section, items_of(value))


def _continued(
    pending: tuple[Entry, list[str]], line: str, at: int
) -> tuple[tuple[Entry, list[str]] | None, Entry | None]:
    """Read one more line of a list: in brackets (TOML), or indented below its key (INI).

    Returns:
        What is still open, and the list if it ends here.
    """
    entry, parts = pending
    bare = without_comment(line, "#;")
    in_brackets = entry.value.startswith("[")
    is_inside = in_brackets or (line[:1] in {" ", "\t"} and bool(bare))
    if not is_inside or len(parts) > MAX_LIST_LINES:
        items = tuple(part for part in parts if part)
        ended = (
            Entry(entry.key, "", entry.start, entry.end, entry.parents, items) if items and not in_brackets else None
        )
        return None, ended if ended is None or not bare else None
    parts.append(bare)
    grown = Entry(entry.key, entry.value, entry.start, at + len(line.rstrip()), entry.parents)
    if in_brackets and bare.endswith("]") and bare.count('"') % 2 == 0:
        return None, Entry(grown.key, "", grown.start, grown.end, grown.parents, items_of(" ".join(parts)))
    return (grown, parts), None


def _inline_table(entry: Entry) -> Iterator[Entry]:
    at = entry.end - len(entry.value)
    for match in _INLINE.finditer(entry.value):
        end = match.start("value") + len(match["value"].rstrip())
        parents = (*entry.parents, entry.key)
        yield Entry(match["key"], match["value"].strip(), at + match.start("key"), at + end, parents)
