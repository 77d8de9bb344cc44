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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice, takewhile
from pathlib import Path

from nornweave.connect.git.program import GitFailedError, stream_git
from nornweave.core.errors import ConfigError
from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.text.terminal import lines_of
from nornweave.core.types import digest
from nornweave.disagree.conflicts.records import PLACE_WORDS
from nornweave.disagree.drift.files import GIT_S, SourceFile, format_of, git, is_for_tools
from nornweave.disagree.drift.findings import MAX_ALSO
from nornweave.disagree.drift.induced.code import CodeToken, code_words, tokens_of_code
from nornweave.disagree.drift.options import documented_options
from nornweave.disagree.drift.records import Finding, Place, Which
from nornweave.disagree.facts.expressions import read_value
from nornweave.disagree.facts.names import words_of

CONFIDENCE = 0.9
MAX_LOOKED_UP = 20
"""Names of which git is asked what removed them."""
MAX_GONE = 200
LEAST = 4
"""Letters and digits of a name."""
MAX_CHANGED = 2_000
"""Words between the first and the last change of a file: of more no pairs of old and new are looked for."""
MAX_REPLACED = 3
"""Words that stand in the place of as many others."""
NEAR = 24
"""Tokens around a letter among which the long name of its option stands."""
_FENCE = lazy_pattern(r"^[ \t]*(```|~~~)")
_CODE = lazy_pattern(r"``([^`\n]{2,200})``|`([^`\n]{2,200})`")
_CODE_TAG, _TAG = lazy_pattern(r"</?(?:code|tt|kbd|samp|dt)\b[^<>]*>", re.IGNORECASE), lazy_pattern(r"<[^<>`]*>")
_WORD = lazy_pattern(
    r"--?[A-Za-z][\w-]+|/?[\w.@-]+(?:/[\w.@-]+)+/?|(?<!\S)/[A-Za-z][\w.-]*|[A-Za-z_$][\w$]*(?:(?:::|[-.:])[\w$]+)*"
)
_FLAG = lazy_pattern(r"--[a-z][\w-]+|-[a-z][\w-]{2,}")
_LETTER, _LONG = lazy_pattern(r"(?<![\w-])-[A-Za-z0-9](?![\w-])"), lazy_pattern(r"(?<![\w-])(?:\\?-)?-[a-z][\w-]{2,}")
_VARIABLE = lazy_pattern(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+")
_KEY = lazy_pattern(r"[ \t]*-?[ \t]*([a-z]\w*_\w+|[a-z]+[A-Z]\w+)(?:[ \t]*[:=](?!=)|\.set\()")
"""A key that a line of a configuration sets; one word says too little."""
_USED = lazy_pattern(
    r"(?:^[ \t]*|[.(=,!{\[>&:][ \t]*|\b(?:await|return|new|yield|in) )(?P<call>[A-Za-z_$][\w$]*)\("
    r"|(?<=[.:])(?P<member>[A-Z][A-Z0-9]*_[A-Z0-9_]+)\b|[\"'](?P<route>/[\w-]+(?:/[\w{}:-]+)+)[\"']"
    r"|(?<![\w.:])(?P<type>[A-Z]\w*(?:::[A-Z]\w*)+|[A-Z]\w*(?=\.new\b))"
    r"|(?<![\w.>])(?P<owner>[\w$@]+(?:(?:\.|->)\w+)*)(?:\.|->)(?P<assigned>[a-z]\w*)[ \t]*=(?![=>~])"
)
"""What a line of a program calls, makes and sets, a member of what it names, and a route in a string."""
_UNMARKED = lazy_pattern(
    r"(?<![\w-])--[a-z][\w-]+|(?<![\w./-])[A-Za-z]\w*_\w+|^[ \t]*[-*+][ \t]+(?P<route>/[a-z][\w/{}:.-]*)[ \t]*$"
)
"""What is spelt so is a name also where a page does not mark it as code; so is a route that is an item of a list."""
_GIVES = frozenset(("=", ":", "=>"))
_WORDS = lazy_pattern(r"[^,\s]+")
_PARTS = lazy_pattern(r"[^./:,\s]+")
_QUALIFIER = lazy_pattern(r"::|->|[.]")
_FILE = lazy_pattern(r"/[\w.-]*\.\w+$|/.*/")
_URL = lazy_pattern(r"\bhttps?://[\w.:\[\]{}<>-]+(/[\w{}.:-]+(?:/[\w{}.:-]+)+)")

_TELLING = lazy_pattern(r"^--?[A-Za-z]|\w[-_/.]\w|[a-z][A-Z]|^/\w")
"""As only names are spelt."""
_THING = (
    r"the|this|these|a|an|and|or|old|support (?:for|of)|use of|command|line|option|flag|setting|key|parameter|argument"
    r"|variable|property|field|method|function|class|type|name|route|endpoint|header|column|file|alias|switch|module"
    r"|(?:in|since|with) (?:version )?v?\d[\w.]*"
)
_HAS_BEEN = r"is|are|was|were|has|have|had|been|be|being|will|got|now|since|also|already|long"
_PAST = r"deprecated|obsolete|removed|dropped|discontinued|renamed?"
_BESIDE = rf"[^\w`\n]|`[^`\n]*`|\b(?:{_THING})s?\b"
_MARKED_AS_GONE = (
    r"\b(?:old|former|formerly|previous|legacy|deprecated|obsolete)\b[^.;\n]{0,20}?NAME"
    rf"|\b(?:{_PAST}|renamed from)\b(?:{_BESIDE}){{1,16}}?NAME"
    rf"|NAME`{{0,2}}(?:{_BESIDE}|\b(?:{_HAS_BEEN})\b){{0,20}}?"
    rf"\b(?:(?:{_PAST}|replaced)\b(?! (?:if|when|unless|until|once|while)\b)|no longer\b)"
    r"|\badd\w* (?:\w+ ){0,3}columns?\b[^\n]*(?:\n[^\n]*){0,6}?NAME"  # the reader's own
)
"""What a page says of a name that it knows to be gone: *removed* has the name, or what it is, as object or subject."""
_UNREAD_PROGRAMS = (
    "*.sh", "*.bash", "*.zsh", "*.fish", "*.pl", "*.pm", "*.scala", "*.groovy", "*.gradle",
    "*.m4", "*.ac", "*.am", "*.mk", "*.cmake", "*akefile",
)  # fmt: skip
"""Programs that drift does not read, and that may have a name."""
_HEADING = lazy_pattern(r"(?:#+|=+) (?P<title>[^\n]+)")
_OF_THE_PAST = lazy_pattern(r"deprecat|obsolete|removed|renam|migrat|upgrad", re.IGNORECASE)
"""What a page says about names that it knows to be gone."""

TextOf = Callable[[SourceFile], str]


@dataclass(frozen=True, slots=True)
class _Mention:
    """A name on a page. ``line`` counts from 0; ``beside`` holds the long flags on the line of a one-letter name.

    ``owner`` is what a name is set on: ``config.lamp`` of ``config.lamp.level = 3``.
    """

    written: str
    path: str
    line: int
    beside: tuple[str, ...] = ()
    owner: str = ""

    @property
    def name(self) -> str:
        """The name alone, or the path of a file."""
        return _bare(self.written).lstrip("/")

    @property
    def sought(self) -> str:
        """What unread programs write if they have the name: of a route ``/lamps`` the word *lamps* says nothing."""
        return f"/{self.name}" if self.written[0] == "/" and "/" not in self.name else self.name

    @property
    def spellings(self) -> tuple[str, ...]:
        """Spellings of the name in code: as written, without the slash of a route, and the last part of a class."""
        *_, last = self.written.split("::")
        return _bare(self.written), self.name, *([last] if last != self.written and last[:1].isupper() else [])

    @property
    def key(self) -> str:
        """The key that all spellings of the name share."""
        return _key(self.written)

    def is_explained(self, near: frozenset[str]) -> bool:
        """Tell whether all words of a long flag in ``beside`` are in ``near``."""
        return any(set(words_of(one)) <= near for one in self.beside)

    @property
    def keys(self) -> Sequence[str]:
        """The key of the name, and keys of its parts: ``Error`` of ``pkg::Error``, ``/b/c`` of ``/mounted/b/c``."""
        parts = self.key.split("/")
        if self.written[0] == "/":
            return [self.key, *("/".join(parts[at:]) for at in range(1, len(parts) - 1))]
        _, last = self.qualified
        last = last or (_key(self.written[5:]) if self.written.startswith("--no-") else "")
        return [self.key, last] if last else [self.key]

    @property
    def qualified(self) -> tuple[str, str]:
        """Two keys of a symbol, of its class or package and of its own name; both are empty for other names."""
        *owners, last = _QUALIFIER.split(self.written)
        is_symbol = owners and len(_key(last)) >= LEAST and ("::" in self.written or re.search("[A-Z_]", last))
        return (_key(owners[-1]), _key(last)) if is_symbol else ("", "")


@dataclass(frozen=True, slots=True)
class _Renamed:
    """A word of a program that another word replaced.

    Attributes:
        role: the function that is called with the word, empty if there is no call; ``None`` if the old or the new word
            is not a string.
        has_dash: whether the word is written as a flag.
        near: the words around it.
        owner: what it is read from, ``options`` of ``options.level``; empty for other words.
    """

    word: str
    path: str
    line: int
    role: str | None
    has_dash: bool
    near: frozenset[str]
    owner: str = ""

    def is_of(self, mention: _Mention) -> bool:
        """Tell whether a mention may mean this word. A single letter needs its dash, or its long name beside it."""
        if self.owner:  # ``lamp_options.level`` is what ``config.lamp.level = 3`` sets
            mine, theirs = ({*words_of(owner)} - PLACE_WORDS for owner in (self.owner, mention.owner))
            return bool(mention.owner) and (not mine.isdisjoint(theirs) or not (mine or theirs))
        return len(self.word) > 1 or (mention.written[0] == "-" and (self.has_dash or mention.is_explained(self.near)))


def gone(
    root: Path, commits: tuple[str, str], old: Sequence[SourceFile], new: Sequence[SourceFile], text_of: TextOf,
    unread: Iterable[str] = (),
) -> list[Finding]:  # fmt: skip
    """Return a finding for each name that commits removed from code and pages still use, or that only pages renamed.

    Args:
        commits: base and head.
        old, new: the files of both commits; their blobs show which files changed.
        unread: the programs at the head that drift does not read.
    """
    before, after = ({file.path: file for file in files} for files in (old, new))
    changed = [file for file in old if after.get(file.path, file).version != file.version or file.path not in after]
    code = [file for file in changed if file.kind == "code" and not is_for_tools(file.path)]
    pages = [after[file.path] for file in changed if file.kind == "documentation" and file.path in after]
    if not code and not pages:
        return []
    removed, files = _places_of(code, text_of, _declares), before.keys() - after.keys()
    renamed: dict[str, list[_Renamed]] = defaultdict(list)
    for one in (one for file in code if file.path in after for one in _renamed(file, after, text_of)):
        renamed[one.word].append(one)
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
    spelt, spelt_flags = _spelt(programs, text_of) if said or of_pages else (set[str](), set[str]())
    flags = {_key(word) for word in spelt_flags}
    # A word of a help text that both commits have was never a flag: *do not detach*.
    still = _places_of([after[file.path] for file in code if file.path in after], text_of, _declares) if said else {}
    unsure = still.keys() - {_key(word) for word in _spelt(code, text_of)[1]} if said else set()
    texts = _texts(programs, text_of, renamed) if renamed else set()
    found = []
    for _, mentions in sorted(said.items()):
        name, is_flag = mentions[0].name, mentions[0].written[0] == "-"
        owner, last = mentions[0].qualified
        is_own = owner in removed or owner in known
        setting = next((one for one in mentions if one.owner), mentions[0])
        lost = next((one for spelling in mentions[0].spellings if is_own or _key(spelling) != last
                     for one in renamed.get(spelling, ())
                     if _is_lost(one, setting, spelt_flags if is_flag else spelt, texts)), None)  # fmt: skip
        if name in files:
            found.append(((name, 0), mentions))
        elif lost is not None:
            found.append(((lost.path, lost.line), mentions))
        elif len(mentions[0].key) > 1 and (flags if is_flag else left.keys()).isdisjoint(mentions[0].keys):
            key = next((one for one in mentions[0].keys if one in removed), "")
            if key and (key != last or is_own) and not (is_flag and key in unsure):
                found.append((removed[key], mentions))
    there = {**after, **{file.path: file for file in code}}
    asked = [*(mentions[0].sought for _, mentions in found[:MAX_GONE]), *(now.sought for _, now in of_pages[:MAX_GONE])]
    elsewhere = _in_unread_programs(root, commits[1], asked, unread)
    found = [
        (place, unmarked)
        for place, mentions in found
        if mentions[0].sought not in elsewhere
        if (unmarked := [one for one in mentions if not _is_marked_as_gone(one, text_of(after[one.path]))])
    ]
    reports = [
        _finding(place, mentions, _removed_by(root, commits, mentions[0].name, place[0]) if at < MAX_LOOKED_UP else "",
                 lambda path: lines_of(text_of(there[path])))
        for at, (place, mentions) in enumerate(found[:MAX_GONE])
    ]  # fmt: skip
    misnamed: dict[tuple[str, str], list[_Mention]] = defaultdict(list)
    for was, now in of_pages:
        is_spelt = not (spelt_flags if was.written[0] == "-" else spelt).isdisjoint(was.spellings)
        if is_spelt and was.key in left and now.key not in known and now.sought not in elsewhere:
            misnamed[was.written, now.written].append(now)
    return reports + [
        _misnamed(left[_key(was)], was, mentions, lambda path: lines_of(text_of(after[path])))
        for (was, _), mentions in sorted(misnamed.items())[:MAX_GONE]
    ]


_STATUS = lazy_pattern(r"\b(?:HTTP|status(?: codes?)?)[ :`*]{1,4}([1-5]\d\d)\b(?!\.\d)", re.IGNORECASE)
_VERSION = lazy_pattern(
    r"\b[A-Za-z][\w+#-]*[`*)]{0,2} (?:version )?(?:>=? ?)?v?(\d+(?:\.\d+)*)(?:\+"
    r"| (?:or|and) (?:newer|later|above|higher|greater))"
    r"|\brequires? [A-Za-z][\w+#-]* (?:>=? ?)?v?(\d+(?:\.\d+)+)", re.IGNORECASE
)  # fmt: skip
_CHOICES = lazy_pattern(
    r"(?:possible values|allowed values|choices|one of|either):? ?"
    r"([`\"'\w-]{2,40}(?:(?:, | or |, or |\|)[`\"'\w-]{2,40})+)", re.IGNORECASE
)  # fmt: skip
"""Statuses, required versions and choices on a page."""


def others_stated(files: Sequence[SourceFile], text_of: TextOf) -> dict[str, tuple[int, int]]:
    """Return two numbers for each kind: how many different items pages state, and how many of these code has too.

    The kinds are names, lists of choices, statuses and required versions.
    """
    code = [file for file in files if file.kind == "code"]
    known = _places_of(code, text_of).keys()
    numbers = {number for file in code for number in re.findall(r"\d+(?:\.\d+)*", text_of(file))}
    names = {one.key: one for one in _mentions(files, text_of)}.values()
    pages = [text_of(file) for file in files if file.kind == "documentation"]
    statuses, versions, choices = (
        {next(filter(None, match.groups())) for page in pages for match in pattern.finditer(page)}
        for pattern in (_STATUS, _VERSION, _CHOICES)
    )
    listed = [[_key(word) for word in re.findall(r"[\w-]{2,}", one) if word != "or"] for one in choices]
    return {
        "names": (len(names), sum(not known.isdisjoint(one.keys) for one in names)),
        "lists of choices": (len(listed), sum(known >= set(one) for one in listed)),
        "statuses": (len(statuses), len(statuses & numbers)),
        "required versions": (len(versions), len(versions & numbers)),
    }


def aligned(was: Sequence[str], now: Sequence[str]) -> Iterator[tuple[int, int | None]]:
    """Yield the index of each old item that changed, and the index of the new item that replaced it.

    The second index is ``None`` if the old item was removed. Nothing is yielded for large changes.
    """
    lead = _shared(was, now)
    tail = _shared(was[lead:][::-1], now[lead:][::-1])
    old, new = was[lead : len(was) - tail], now[lead : len(now) - tail]
    if max(len(old), len(new)) > MAX_CHANGED:
        return
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "replace" and j - i == m - k <= MAX_REPLACED:
            yield from zip(range(lead + i, lead + j), range(lead + k, lead + m), strict=True)
        elif tag == "delete" and j - i <= MAX_REPLACED:
            yield from ((at, None) for at in range(lead + i, lead + j))


def _shared(old: Sequence[str], new: Sequence[str]) -> int:
    """Return how many words two sequences share at their beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))


def _renamed(file: SourceFile, after: Mapping[str, SourceFile], text_of: TextOf) -> Iterator[_Renamed]:
    """Yield each word of a program that another word replaced at the head, with its line at the base."""
    was, now = (tokens_of_code(text_of(one), file.suffix) for one in (file, after[file.path]))
    words = [[at for at, one in enumerate(side) if one.kind in {"name", "string"}] for side in (was, now)]
    for i, k in aligned(
        *([_written(side[at]) for at in places] for side, places in zip((was, now), words, strict=True))
    ):
        if k is None:
            continue
        at, old, new = words[0][i], was[words[0][i]], now[words[1][k]]
        parts = _WORDS.findall(_written(old)), _WORDS.findall(_written(new))
        is_text = old.kind == new.kind == "string" and parts[0] == [_written(old)]
        for one, other in zip(*parts, strict=True) if len(parts[0]) == len(parts[1]) else ():
            if _spelling(one) != _spelling(other) and _declares(file, one):
                role = role_of(was, at) if is_text else None
                if role == "" and was[at - 1].text in _GIVES:  # of a key whose value can still be so
                    role = None
                owners, others = (_QUALIFIER.split(word) for word in (one, other))
                if old.kind == "name" and len(owners) > 1 and owners[:-1] == others[:-1]:
                    owner = owners[-2] if owners[-1][:1].islower() else ""
                    yield _Renamed(owners[-1], file.path, old.line, None, False, frozenset(), owner)
                near = {word for token in was[max(0, at - NEAR) : at + NEAR] for word in words_of(token.text)}
                yield _Renamed(_bare(one), file.path, old.line, role,
                               one.startswith("-"), frozenset(near))  # fmt: skip


def _written(token: CodeToken) -> str:
    return token.text.strip("\"'`@$:")


def role_of(tokens: Sequence[CodeToken], at: int) -> str:
    """Return the function whose call has a token as an argument; empty if the token is not an argument."""
    depth = 0
    for place in range(at - 1, max(-1, at - 40), -1):
        text = tokens[place].text
        if text == ")":
            depth += 1
        elif text == "(" and depth:
            depth -= 1
        elif text == "(":
            return tokens[place - 1].text if place else ""
        elif text in {"{", "}", ";"} and not depth:
            break
    return ""


def _renamed_on(old: SourceFile, new: SourceFile, text_of: TextOf) -> Iterator[tuple[_Mention, _Mention]]:
    """Yield each name of a page with the name that replaced it at the head."""
    was, now = list(_mentions([old], text_of)), list(_mentions([new], text_of))
    spelt = [[one.written for one in side] for side in (was, now)]
    for one, other in ((was[i], now[k]) for i, k in aligned(*spelt) if k is not None):
        is_telling = _TELLING.search(one.written) and _TELLING.search(other.written)
        if is_telling and one.key != other.key:
            yield one, other


def _spelt(files: Iterable[SourceFile], text_of: TextOf) -> tuple[set[str], set[str]]:
    """Return the names and strings of programs as spelt with the parts of dotted names, and those that may be flags.

    A sentence such as a message, and a path, declares only the flags that it writes with their dashes.
    """
    words = {word for file in files for word, _ in code_words(text_of(file), file.suffix)}
    spelt, flags = set(), set()
    for word in words:
        parts = {*_WORDS.findall(word), *_PARTS.findall(word)}
        spelt |= {_bare(part) for part in parts}
        is_told = len(word.split()) > 1 or _FILE.search(word)
        flags |= {_bare(part) for part in (_LONG.findall(word) if is_told else parts)}
    return spelt, flags


def _texts(files: Iterable[SourceFile], text_of: TextOf, wanted: Collection[str]) -> set[tuple[str, str]]:
    """Return the wanted strings that programs (not configuration) still have, each with its ``role_of``."""
    found = set()
    for file in files:
        if file.program not in {None, "json", "yaml", "toml"}:
            tokens = tokens_of_code(text_of(file), file.suffix)
            found |= {(_bare(_written(one)), role_of(tokens, at)) for at, one in enumerate(tokens)
                      if one.kind == "string" and _bare(_written(one)) in wanted}  # fmt: skip
    return found


def _is_lost(one: _Renamed, mention: _Mention, spelt: set[str], texts: set[tuple[str, str]]) -> bool:
    """Tell whether programs no longer declare a renamed word.

    This is so if the word is nowhere in the code. If the word was a string, it is enough that no such string is left;
    for a flag, that no such string is left in a call of the same function.
    """
    if not one.is_of(mention):
        return False
    if one.owner:
        return not any(word.endswith(f".{one.word}") for word in spelt)
    is_flag = mention.written[0] == "-"
    left = any(text == one.word and (not is_flag or role == one.role) for text, role in texts)
    is_declared = bool(one.role) if is_flag else one.role is not None  # ``import debug from "debug"`` has no flag
    return one.word not in spelt or (is_declared and not left)


def _bare(word: str) -> str:
    """Return a word without the dashes before a flag and without slashes at its end."""
    return word.lstrip("-").rstrip("/")


def _spelling(word: str) -> str:
    """Return a form of a word that is the same for equal names: ``max_size`` and ``max-size``."""
    return word.lower().replace("-", "_").strip("_/")


def _places_of(
    files: Iterable[SourceFile], text_of: TextOf, counts: Callable[[SourceFile, str], bool] = lambda *_: True
) -> dict[str, tuple[str, int]]:
    """Return the key of each name in programs that ``counts`` accepts → the path and line of its first place."""
    places: dict[str, tuple[str, int]] = {}
    for file in files:
        for word, line in code_words(text_of(file), file.suffix):
            for part in (word, *_PARTS.findall(word)):
                if counts(file, part):
                    places.setdefault(_key(part), (file.path, line))
    return places


def _declares(file: SourceFile, word: str) -> bool:
    """Tell whether a file can declare a name with a word.

    A Dockerfile declares only variables, because its other words are commands. Configuration declares only words that
    are spelt as names are, because other words and paths may be those of libraries and systems.
    """
    language = file.program
    if language == "dockerfile":
        return _VARIABLE.fullmatch(word) is not None
    return language not in {None, "json", "yaml"} or (_TELLING.search(word) is not None and word[0] != "/")


def _in_unread_programs(root: Path, commit: str, names: Sequence[str], unread: Iterable[str]) -> set[str]:
    """Return the ``names`` that occur in programs of a commit which drift does not read, such as shell scripts."""
    words = [part for name in names for part in ("-e", name)]
    asked = ("grep", "-h", "-o", "-w", "-F", *words, commit, "--", *_UNREAD_PROGRAMS, *islice(unread, MAX_GONE))
    try:
        found = b"".join(stream_git(root, *asked, timeout_s=GIT_S, must_finish=True, globs=True)) if words else b""
    except GitFailedError:  # there are none
        return set()
    return set(found.decode("utf-8", "replace").split())


def _is_marked_as_gone(mention: _Mention, page: str) -> bool:
    """Tell whether a page says that a name is of the past, or that its readers add the name themselves."""
    lines = lines_of(page)
    heading = next(filter(None, map(_HEADING.match, reversed(lines[: mention.line + 1]))), None)
    name = rf"[`*\"']*(?<![\w-]){re.escape(mention.written)}(?![\w-])"
    is_past = heading and _OF_THE_PAST.search(heading["title"].replace(mention.written, ""))
    return bool(is_past or re.search(_MARKED_AS_GONE.replace("NAME", name), page, re.IGNORECASE))


def _key(written: str) -> str:
    """Return a key that all spellings of a name share: ``--max-size``, ``MAX_SIZE`` and ``maxSize``."""
    return re.sub(r"[^0-9a-z/.:]", "", written.lower()).strip("./:")


def _mentions(files: Iterable[SourceFile], text_of: TextOf) -> Iterator[_Mention]:
    """Yield names that pages mark as code, explain, or spell as code. In code blocks only some kinds count."""
    for file in files:
        if file.kind != "documentation" or is_for_tools(file.path):
            continue
        is_fenced, explained = False, defaultdict(list)
        for name, line in documented_options(text_of(file)):
            explained[line].append(name)
        is_html = format_of(file.path) == "html"
        for line, written in enumerate(lines_of(text_of(file))):
            if _FENCE.match(written):
                is_fenced = not is_fenced
                continue
            text = written if is_fenced else _CODE_TAG.sub("`", written)
            text = _TAG.sub("", text) if is_html else text
            marked = [] if is_fenced else [one or other for one, other in _CODE.findall(text)]
            said = {word for word in explained[line] if _TELLING.search(word)}
            used = list(_USED.finditer(text)) if is_fenced else []
            set_on = {one["assigned"]: one["owner"] for one in used if one["assigned"]}
            said |= {
                one[kind]
                for one in used
                for kind in (one.lastgroup or "",)
                if kind not in {"call", "assigned"} or _TELLING.search(one[kind])
            }
            said |= (
                set(_URL.findall(text))
                if is_fenced
                else {*_URL.findall(text)}
                | {one[one.lastgroup or 0] for one in _UNMARKED.finditer(_CODE.sub(" ", text))}
            )
            for stretch in [text] if is_fenced else marked:
                words = _WORD.findall(stretch)
                key = _KEY.match(stretch) if is_fenced else None
                for word in words:
                    is_telling = _FLAG.fullmatch(word) or _VARIABLE.fullmatch(word) or (key and word == key[1])
                    is_route = word[0] == "/" and words[0].isupper()  # GET /lamps
                    is_alone = not is_fenced and (len(words) == 1 or is_route) and not _is_literal(word)
                    said |= {word} if is_telling or is_alone else set()
            said = {word for word in said if len(_key(word)) >= LEAST and word[0] + word[-1] != "__"}  # no emphasis
            yield from (_Mention(word, file.path, line, owner=set_on.get(word, "")) for word in sorted(said))
            letters = _LETTER.findall(text) if explained[line] or _LONG.search(text) else []
            yield from (_Mention(word, file.path, line, tuple(_LONG.findall(text))) for word in letters)


def _is_literal(word: str) -> bool:
    """Tell whether a word is ``true``, ``null`` or a similar literal, and therefore not a name."""
    value = read_value(word)
    return value is not None and value.kind in {"boolean", "none", "unlimited"}


def _finding(
    place: tuple[str, int], mentions: Sequence[_Mention], commit: str, lines: Callable[[str], Sequence[str]]
) -> Finding:
    path, line = place
    first = mentions[0]
    is_file = first.name == path
    by = f", removed by {commit}" if commit else ""
    what = "a file that is gone" if is_file else f"which the code no longer has; it was in {path}:{line + 1}"
    message = f"{first.path}:{first.line + 1} says {first.written}, {what}{by}"
    code = Place(path=path, line=line + 1, side="code", value=f"gone{by}", text="" if is_file else lines(path)[line])
    return page_finding("gone", first.written, message, code, _places(mentions, lines), was=first.written)


def _misnamed(
    place: tuple[str, int], was: str, mentions: Sequence[_Mention], lines: Callable[[str], Sequence[str]]
) -> Finding:
    """Return the finding for pages whose new name the code does not have, while it still has the old name ``was``."""
    (path, line), now = place, mentions[0]
    message = (
        f"{now.path}:{now.line + 1} says {now.written}, which the code does not have; it has {was} in {path}:{line + 1}"
    )
    code = Place(path=path, line=line + 1, side="code", value=was, text=lines(path)[line])
    return page_finding("gone", now.written, message, code, _places(mentions, lines), was=was, moved="second")


def page_finding(
    word: str, name: str, message: str, code: Place, pages: Sequence[Place], *, was: str, moved: Which = "first"
) -> Finding:
    """Return a finding in a range of commits, given what the pages say and the place of the code that differs.

    ``word`` is the last part of the rule's id, such as ``gone``.
    """
    return Finding(
        rule=f"nornweave/{word}",
        name=name,
        attribute=word,
        message=message,
        fingerprint=digest("drift-1", word, pages[0].path, name),
        confidence=CONFIDENCE,
        first=code,
        second=pages[0],
        also=tuple(pages[1 : MAX_ALSO + 1]),
        moved=moved,
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
