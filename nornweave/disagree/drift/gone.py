"""Names that pages write as code and that the code had at the base, and has nowhere at the head.

Flags, variables of the environment, keys, routes, choices, paths and symbols: whatever its spelling, a name is declared
where a program has it, as an identifier or in a string, outside of comments. That it existed is never guessed: a name
that the code did not have at the base says nothing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from nornweave.core.errors import ConfigError
from nornweave.core.text.legible import lines_of
from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import digest
from nornweave.disagree.drift.files import SourceFile, git
from nornweave.disagree.drift.findings import MAX_ALSO
from nornweave.disagree.drift.induced.code import code_words
from nornweave.disagree.drift.records import GONE, Finding, Place
from nornweave.disagree.facts.expressions import read_value

CONFIDENCE = 0.9
MAX_LOOKED_UP = 20
"""Names of which git is asked what removed them."""
MAX_GONE = 200
LEAST = 4
"""Letters and digits of a name."""
_FENCE = lazy_pattern(r"^[ \t]*(```|~~~)")
_CODE = lazy_pattern(r"``([^`\n]{2,200})``|`([^`\n]{2,200})`")
_WORD = lazy_pattern(r"--?[A-Za-z][\w-]+|/?[\w.@-]+(?:/[\w.@-]+)+/?|[A-Za-z_$][\w$]*(?:[-.:][\w$]+)*")
_FLAG = lazy_pattern(r"--[a-z][\w-]+|-[a-z]\w{2,}")
_VARIABLE = lazy_pattern(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+")
_PARTS = lazy_pattern(r"[^./:\s]+")

TextOf = Callable[[SourceFile], str]


@dataclass(frozen=True, slots=True)
class _Mention:
    """A name on a page; ``line`` from 0."""

    written: str
    path: str
    line: int

    @property
    def name(self) -> str:
        """The name alone, or the path of a file."""
        return self.written.lstrip("-").strip("/")

    @property
    def key(self) -> str:
        """What all its spellings have in common."""
        return _key(self.written)


def gone(
    root: Path, commits: tuple[str, str], old: Sequence[SourceFile], new: Sequence[SourceFile], text_of: TextOf
) -> list[Finding]:
    """Return a finding for each name that commits removed from the code while pages still say it.

    Args:
        commits: base and head.
        old, new: the files of either; blobs tell which changed.
    """
    there = {(file.path, file.version) for file in new}
    changed = [file for file in old if file.kind == "code" and (file.path, file.version) not in there]
    if not changed:
        return []
    removed = _places_of(changed, text_of)
    files = {file.path for file in old} - {file.path for file in new}
    said: dict[str, list[_Mention]] = defaultdict(list)
    for mention in _mentions(new, text_of):
        if mention.key in removed or mention.name in files:
            said[mention.name].append(mention)
    left = _places_of([file for file in new if file.kind == "code"], text_of) if said else {}
    found = []
    for name, mentions in sorted(said.items()):
        if name in files:
            found.append(((name, 0), mentions))
        elif mentions[0].key not in left:
            found.append((removed[mentions[0].key], mentions))
    versions = {file.path: file for file in new if file.kind == "documentation"}
    versions |= {file.path: file for file in changed}
    return [
        _finding(place, mentions, _removed_by(root, commits, mentions[0].name, place[0]) if at < MAX_LOOKED_UP else "",
                 lambda path: lines_of(text_of(versions[path])))
        for at, (place, mentions) in enumerate(found[:MAX_GONE])
    ]  # fmt: skip


def _places_of(files: Iterable[SourceFile], text_of: TextOf) -> dict[str, tuple[str, int]]:
    """Return the keys of all names of programs, each with path and line of its first place."""
    places: dict[str, tuple[str, int]] = {}
    for file in files:
        for word, line in code_words(text_of(file), PurePosixPath(file.path).suffix):
            for part in (word, *_PARTS.findall(word)):
                places.setdefault(_key(part), (file.path, line))
    return places


def _key(written: str) -> str:
    """Return a name without what differs between spellings: ``--max-size``, ``MAX_SIZE`` and ``maxSize`` are one."""
    return re.sub(r"[^0-9a-z/.:]", "", written.lower()).strip("./:")


def _mentions(files: Iterable[SourceFile], text_of: TextOf) -> Iterator[_Mention]:
    """Yield the names that pages mark as code; of blocks of code flags and variables alone."""
    for file in files:
        if file.kind != "documentation":
            continue
        is_fenced = False
        for line, text in enumerate(lines_of(text_of(file))):
            if _FENCE.match(text):
                is_fenced = not is_fenced
                continue
            stretches = [text] if is_fenced else [one or other for one, other in _CODE.findall(text)]
            for stretch in stretches:
                words = _WORD.findall(stretch)
                for word in words:
                    is_telling = _FLAG.fullmatch(word) or _VARIABLE.fullmatch(word)
                    is_alone = not is_fenced and len(words) == 1 and not _is_literal(word)
                    if len(_key(word)) >= LEAST and (is_telling or is_alone):
                        yield _Mention(word, file.path, line)


def _is_literal(word: str) -> bool:
    """Tell whether a word is ``true``, ``null`` or the like: code that has it no more had no such name."""
    value = read_value(word)
    return value is not None and value.kind in {"boolean", "none", "unlimited"}


def _finding(
    place: tuple[str, int], mentions: Sequence[_Mention], commit: str, lines: Callable[[str], Sequence[str]]
) -> Finding:
    path, line = place
    first = mentions[0]
    is_file = first.name == path
    by = f", removed by {commit}" if commit else ""
    pages = [
        Place(path=one.path, line=one.line + 1, side="documentation", value=one.written, text=lines(one.path)[one.line])
        for one in mentions
    ]
    what = "a file that is gone" if is_file else f"which the code no longer has; it was in {path}:{line + 1}"
    return Finding(
        rule=GONE.id,
        name=first.written,
        attribute="gone",
        message=f"{first.path}:{first.line + 1} says {first.written}, {what}{by}",
        fingerprint=digest("drift-1", "gone", first.path, first.written),
        confidence=CONFIDENCE,
        first=Place(
            path=path, line=line + 1, side="code", value=f"gone{by}", text="" if is_file else lines(path)[line]
        ),
        second=pages[0],
        also=tuple(pages[1 : MAX_ALSO + 1]),
        moved="first",
        was=first.written,
    )


def _removed_by(root: Path, commits: tuple[str, str], written: str, path: str) -> str:
    """Return the newest commit of a range that changed how often a file has a name; empty if git does not say."""
    word = re.findall(r"[\w-]+", written)[-1]
    try:
        raw = git(root, "log", "--format=%h %s", "-1", f"-S{word}", f"{commits[0]}..{commits[1]}", "--", path)
    except ConfigError:
        return ""
    return raw.decode("utf-8", "replace").strip()[:80]
