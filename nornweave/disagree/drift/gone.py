"""Names that pages write as code and that the code had at the base but not at the head.

Flags, variables of the environment, keys, routes, choices, paths and symbols: whatever its spelling, a name is declared
where a program has it, as an identifier or in a string, outside of comments. A former name is never guessed: a name
that the code did not have at the base is ignored.

If another name replaced it, this spelling is gone: ``long = "max-size"`` that became ``long = "limit"`` is
renamed, although a field still has the name ``max_size``. The reverse case is a page that renames a name of the code.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import TypeVar

from nornweave.core.errors import ConfigError
from nornweave.core.text.legible import lines_of
from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import digest
from nornweave.disagree.drift.files import SourceFile, git
from nornweave.disagree.drift.findings import MAX_ALSO
from nornweave.disagree.drift.induced.code import code_words
from nornweave.disagree.drift.options import documented_options
from nornweave.disagree.drift.records import GONE, Finding, Place
from nornweave.disagree.facts.expressions import read_value

CONFIDENCE = 0.9
MAX_LOOKED_UP = 20
"""Names of which git is asked what removed them."""
MAX_GONE = 200
LEAST = 4
"""Letters and digits of a name."""
MAX_CHANGED = 2_000
"""Words between the first and the last change of a file: of more no pairs of old and new are looked for."""
MAX_RENAMED = 3
"""Words that stand in the place of as many others."""
_FENCE = lazy_pattern(r"^[ \t]*(```|~~~)")
_CODE = lazy_pattern(r"``([^`\n]{2,200})``|`([^`\n]{2,200})`")
_WORD = lazy_pattern(
    r"--?[A-Za-z][\w-]+|/?[\w.@-]+(?:/[\w.@-]+)+/?|(?<!\S)/[A-Za-z][\w.-]*|[A-Za-z_$][\w$]*(?:(?:::|[-.:])[\w$]+)*"
)
_FLAG = lazy_pattern(r"--[a-z][\w-]+|-[a-z]\w{2,}")
_VARIABLE = lazy_pattern(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+")
_KEY = lazy_pattern(r"[ \t]*-?[ \t]*([a-z]\w*_\w+)[ \t]*[:=](?!=)")
"""A key that a line of a configuration sets; one word says too little."""
_USED = lazy_pattern(
    r"(?:^[ \t]*|[.(=,!{\[>&:][ \t]*|\b(?:await|return|new|yield|in) )(?P<call>[A-Za-z_$][\w$]*)\("
    r"|(?<=[.:])(?P<member>[A-Z][A-Z0-9]*_[A-Z0-9_]+)\b|[\"'](?P<route>/[\w-]+(?:/[\w{}:-]+)+)[\"']"
)
"""What a line of a program calls, a member of what it names, and a route in a string."""
_UNMARKED = lazy_pattern(r"(?<![\w-])--[a-z][\w-]+|(?<![\w./-])[A-Za-z]\w*_\w+")
"""What is spelt so is a name also where a page does not mark it as code."""
_WORDS = lazy_pattern(r"[^,\s]+")
_PARTS = lazy_pattern(r"[^./:,\s]+")
_QUALIFIER = lazy_pattern(r"::|[.]")
_URL = lazy_pattern(r"\bhttps?://[\w.:\[\]{}<>-]+(/[\w{}.:-]+(?:/[\w{}.:-]+)+)")

_TELLING = lazy_pattern(r"^--?[A-Za-z]|\w[-_/.]\w|[a-z][A-Z]|^/\w")
"""As only names are spelt."""

TextOf = Callable[[SourceFile], str]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Mention:
    """A name on a page. ``line`` counts from 0."""

    written: str
    path: str
    line: int

    @property
    def name(self) -> str:
        """The name alone, or the path of a file."""
        return _bare(self.written).lstrip("/")

    @property
    def spellings(self) -> tuple[str, str]:
        """The name as code spells it, also without the slash of a route."""
        return _bare(self.written), self.name

    @property
    def key(self) -> str:
        """The key that all its spellings share."""
        return _key(self.written)

    @property
    def keys(self) -> Sequence[str]:
        """Its key, and further keys in code: ``Error`` of ``pkg::Error``, ``/b/c`` of ``/mounted/b/c``."""
        parts = self.key.split("/")
        if self.written[0] == "/":
            return [self.key, *("/".join(parts[at:]) for at in range(1, len(parts) - 1))]
        _, last = self.qualified
        return [self.key, last] if last else [self.key]

    @property
    def qualified(self) -> tuple[str, str]:
        """The keys of a symbol's class or package and of its name; empty for other names."""
        *owners, last = _QUALIFIER.split(self.written)
        is_symbol = owners and len(_key(last)) >= LEAST and ("::" in self.written or re.search("[A-Z_]", last))
        return (_key(owners[-1]), _key(last)) if is_symbol else ("", "")


def gone(
    root: Path, commits: tuple[str, str], old: Sequence[SourceFile], new: Sequence[SourceFile], text_of: TextOf
) -> list[Finding]:
    """Return a finding for each name that commits removed from the code and pages still use, or the reverse.

    Args:
        commits: base and head.
        old, new: the files of both; their blobs show which changed.
    """
    before, after = ({file.path: file for file in files} for files in (old, new))
    changed = [file for file in old if after.get(file.path, file).version != file.version or file.path not in after]
    code = [file for file in changed if file.kind == "code"]
    pages = [after[file.path] for file in changed if file.kind == "documentation" and file.path in after]
    if not code and not pages:
        return []
    removed, files = _places_of(code, text_of), before.keys() - after.keys()
    renamed = {
        word: (file.path, line) for file in code if file.path in after for word, line in _renamed(file, after, text_of)
    }
    said: dict[str, list[_Mention]] = defaultdict(list)
    for mention in _mentions(new, text_of):
        if (
            not removed.keys().isdisjoint(mention.keys)
            or mention.name in files
            or not renamed.keys().isdisjoint(mention.spellings)
        ):
            said[mention.spellings[0]].append(mention)
    of_pages = [one for page in pages for one in _renamed_on(before[page.path], page, text_of)]
    programs = [file for file in new if file.kind == "code"] if said or of_pages else []
    left = _places_of(programs, text_of)
    known = {_key(part) for path in after for part in (path, *_PARTS.findall(path))} | left.keys()
    spelt = _spelt(programs, text_of) if of_pages or renamed else set()
    found = []
    for _, mentions in sorted(said.items()):
        name = mentions[0].name
        lost = next((one for one in mentions[0].spellings if one in renamed and one not in spelt), None)
        if name in files:
            found.append(((name, 0), mentions))
        elif lost is not None:
            found.append((renamed[lost], mentions))
        elif left.keys().isdisjoint(mentions[0].keys):
            key = next((one for one in mentions[0].keys if one in removed), "")
            owner, last = mentions[0].qualified
            if key and (key != last or owner in removed or owner in known):
                found.append((removed[key], mentions))
    there = {**after, **{file.path: file for file in code}}
    reports = [
        _finding(place, mentions, _removed_by(root, commits, mentions[0].name, place[0]) if at < MAX_LOOKED_UP else "",
                 lambda path: lines_of(text_of(there[path])))
        for at, (place, mentions) in enumerate(found[:MAX_GONE])
    ]  # fmt: skip
    misnamed: dict[tuple[str, str], list[_Mention]] = defaultdict(list)
    for was, now in of_pages:
        if not spelt.isdisjoint(was.spellings) and was.key in left and now.key not in known:
            misnamed[was.written, now.written].append(now)
    return reports + [
        _misnamed(left[_key(was)], was, mentions, lambda path: lines_of(text_of(after[path])))
        for (was, _), mentions in sorted(misnamed.items())[:MAX_GONE]
    ]


def _renamed(file: SourceFile, after: Mapping[str, SourceFile], text_of: TextOf) -> Iterator[tuple[str, int]]:
    """Yield each word of a program that another word replaced at the head, with its line at the base."""
    was, now = (list(code_words(text_of(one), PurePosixPath(file.path).suffix)) for one in (file, after[file.path]))
    for (old, line), (new, _) in _replaced(was, now, lambda one: one[0]):
        parts = _WORDS.findall(old), _WORDS.findall(new)
        for one, other in zip(*parts, strict=True) if len(parts[0]) == len(parts[1]) else ():
            if _spelling(one) != _spelling(other):
                yield _bare(one), line


def _renamed_on(old: SourceFile, new: SourceFile, text_of: TextOf) -> Iterator[tuple[_Mention, _Mention]]:
    """Yield each name of a page with the one that replaced it at the head."""
    was, now = list(_mentions([old], text_of)), list(_mentions([new], text_of))
    for one, other in _replaced(was, now, lambda mention: mention.written):
        is_telling = _TELLING.search(one.written) and _TELLING.search(other.written)
        if is_telling and one.key != other.key:
            yield one, other


def _replaced(was: Sequence[_T], now: Sequence[_T], key: Callable[[_T], str]) -> Iterator[tuple[_T, _T]]:
    """Yield pairs of an old item and the new one in its place, if only a few items changed."""
    old, new = ([key(one) for one in side] for side in (was, now))
    lead = _shared(old, new)
    tail = _shared(old[lead:][::-1], new[lead:][::-1])
    old, new = old[lead : len(old) - tail], new[lead : len(new) - tail]
    if max(len(old), len(new)) > MAX_CHANGED:
        return
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "replace" and j - i == m - k <= MAX_RENAMED:
            yield from zip(was[lead + i : lead + j], now[lead + k : lead + m], strict=True)


def _shared(old: Sequence[str], new: Sequence[str]) -> int:
    """Return how many words two sequences share at their beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))


def _spelt(files: Iterable[SourceFile], text_of: TextOf) -> set[str]:
    """Return the names and strings of programs as spelt, and the parts of dotted ones."""
    words = {word for file in files for word, _ in code_words(text_of(file), PurePosixPath(file.path).suffix)}
    return {_bare(part) for word in words for part in (*_WORDS.findall(word), *_PARTS.findall(word))}


def _bare(word: str) -> str:
    """Return a word without the dashes of a flag and a final slash."""
    return word.lstrip("-").rstrip("/")


def _spelling(word: str) -> str:
    """Return a form of a word that is the same for equal names: ``max_size`` and ``max-size``."""
    return word.lower().replace("-", "_").strip("_/")


def _places_of(files: Iterable[SourceFile], text_of: TextOf) -> dict[str, tuple[str, int]]:
    """Return the keys of all names of programs, each with path and line of its first place."""
    places: dict[str, tuple[str, int]] = {}
    for file in files:
        for word, line in code_words(text_of(file), PurePosixPath(file.path).suffix):
            for part in (word, *_PARTS.findall(word)):
                places.setdefault(_key(part), (file.path, line))
    return places


def _key(written: str) -> str:
    """Return a key that all spellings of a name share: ``--max-size``, ``MAX_SIZE`` and ``maxSize``."""
    return re.sub(r"[^0-9a-z/.:]", "", written.lower()).strip("./:")


def _mentions(files: Iterable[SourceFile], text_of: TextOf) -> Iterator[_Mention]:
    """Yield names that pages mark as code, explain, or spell as code. In code blocks only some kinds count."""
    for file in files:
        if file.kind != "documentation":
            continue
        is_fenced, explained = False, defaultdict(list)
        for written, line in documented_options(text_of(file)):
            explained[line].append(written)
        for line, text in enumerate(lines_of(text_of(file))):
            if _FENCE.match(text):
                is_fenced = not is_fenced
                continue
            marked = [] if is_fenced else [one or other for one, other in _CODE.findall(text)]
            said = {word for word in explained[line] if _TELLING.search(word)}
            said |= {
                match[match.lastgroup or 0]
                for match in (_USED.finditer(text) if is_fenced else ())
                if match.lastgroup != "call" or _TELLING.search(match["call"])
            }
            said |= (
                set(_URL.findall(text))
                if is_fenced
                else {*_URL.findall(text), *_UNMARKED.findall(_CODE.sub(" ", text))}
            )
            for stretch in [text] if is_fenced else marked:
                words = _WORD.findall(stretch)
                key = _KEY.match(stretch) if is_fenced else None
                for word in words:
                    is_telling = _FLAG.fullmatch(word) or _VARIABLE.fullmatch(word) or (key and word == key[1])
                    is_route = word[0] == "/" and words[0].isupper()  # GET /lamps
                    is_alone = not is_fenced and (len(words) == 1 or is_route) and not _is_literal(word)
                    said |= {word} if is_telling or is_alone else set()
            yield from (_Mention(word, file.path, line) for word in sorted(said) if len(_key(word)) >= LEAST)


def _is_literal(word: str) -> bool:
    """Tell whether a word is ``true``, ``null`` or a similar literal, which is no name."""
    value = read_value(word)
    return value is not None and value.kind in {"boolean", "none", "unlimited"}


def _finding(
    place: tuple[str, int], mentions: Sequence[_Mention], commit: str, lines: Callable[[str], Sequence[str]]
) -> Finding:
    path, line = place
    first = mentions[0]
    is_file = first.name == path
    by = f", removed by {commit}" if commit else ""
    pages = _places(mentions, lines)
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


def _misnamed(
    place: tuple[str, int], was: str, mentions: Sequence[_Mention], lines: Callable[[str], Sequence[str]]
) -> Finding:
    """Return the finding for pages that use a name of their own for something that the code still has."""
    (path, line), now, pages = place, mentions[0], _places(mentions, lines)
    return Finding(
        rule=GONE.id,
        name=now.written,
        attribute="gone",
        message=f"{now.path}:{now.line + 1} says {now.written}, which the code does not have; "
        f"it has {was} in {path}:{line + 1}",
        fingerprint=digest("drift-1", "gone", now.path, now.written),
        confidence=CONFIDENCE,
        first=Place(path=path, line=line + 1, side="code", value=was, text=lines(path)[line]),
        second=pages[0],
        also=tuple(pages[1 : MAX_ALSO + 1]),
        moved="second",
        was=was,
    )


def _places(mentions: Sequence[_Mention], lines: Callable[[str], Sequence[str]]) -> list[Place]:
    return [
        Place(path=one.path, line=one.line + 1, side="documentation", value=one.written, text=lines(one.path)[one.line])
        for one in mentions
    ]


def _removed_by(root: Path, commits: tuple[str, str], written: str, path: str) -> str:
    """Return the newest commit of a range that changed how often a name occurs in a file; empty if unknown."""
    word = re.findall(r"[\w-]+", written)[-1]
    try:
        raw = git(root, "log", "--format=%h %s", "-1", f"-S{word}", f"{commits[0]}..{commits[1]}", "--", path)
    except ConfigError:
        return ""
    return raw.decode("utf-8", "replace").strip()[:80]
