"""The owners of code: the holders and the licence in the head of a file, compared with those of the whole source.

A file from another project keeps the notice of that project. It is recognised only if the source shows clearly
who owns the rest: if contributors sign their files, none of them is foreign.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import PurePosixPath
from posixpath import commonpath
from typing import Self

from nornweave.core.files.paths import folders_above
from nornweave.read.kinds import DATA_SUFFIXES, is_licence_name
from nornweave.read.worth import HEAD_CHARACTERS, head_comments, is_generated

FOREIGN = "foreign"
"""Metadata: the holder of another project whose notice stands at the head of a file."""

_MARK = r"(?:copyright|©|\(c\))"
_YEARS = r"(?:\d{4}|present|now)(?:[\s,–/-]+(?:\d{2,4}|present|now)\b)*"
_STATED = re.compile(
    rf"(?:\blicensed\s++to\s++the\s++|{_MARK}(?:\s*+(?:{_MARK}|:|by\b|,|-))*+\s*+)(?P<years>{_YEARS})?+[\s,.:;–-]*+(?:by\s++)?+"
    r"(?!holders?\b|notice|owners?\b|laws?\b|licen|statement|information|and\b|\W*$)(?P<name>[^\n<|*]{2,120})",
    re.IGNORECASE,
)
_BEHIND = re.compile(
    r"\ball\s+rights\b|\blicen[sc]ed\b|\b(?:see|this|permission|released|distributed|under)\b|https?:|[(<\[{/]|\.\s",
    re.I,
)
_WORD = re.compile(r"[^\W\d_][^\W_]+")
_OF_MANY = re.compile(
    r"(?:the|and|inc|ltd|llc|gmbh|corp(?:oration)?|company|co|authors?|contributors?|projects?|team|foundation|software"
    r"|others|et|al|its|or|affiliates|various|developers|group|by|of|for|in|to|com|org|net|www)"
)
_GROUP = re.compile(r"the \w+ (?:authors|contributors|developers|project|team)\b", re.IGNORECASE)
_LAW = "free software foundation"
"""Holds the text of the licence."""
_LICENCES = {
    name: re.compile(said.replace(" ", r"[\W_]+"), re.IGNORECASE)
    for name, said in {
        "LGPL": r"\blgpl|(?:lesser|library) general public",
        "AGPL": r"\bagpl|affero general public",
        "GPL": rf"(?<![al])gpl(?:\b|v?\d)|gnu general public|\b{_LAW}",
        "Apache": r"\bapache(?: software)?(?: license| 2)",
        "MIT": r"\bmit\b|permission is hereby granted free of charge",
        "ISC": r"\bisc\b|permission to use copy modify",
        "BSD": r"\bbsd\b|redistribution and use in",
        "MPL": r"\bmpl\b|mozilla public",
        "zlib": r"\bzlib licen|freely subject to the following",
        "Boost": r"\bboost software|\bbsl\b",
        "free": r"\bpublic domain|\bunlicense|\bcc0\b",
    }.items()
}
_ELEMENT = re.compile(r"<copyright>(.*?)</copyright>", re.IGNORECASE | re.DOTALL)
_MANIFEST = re.compile(
    r"package\.json|cargo\.toml|go\.mod|setup\.py|pyproject\.toml|composer\.json|pom\.xml|build\.gradle(?:\.kts)?"
    r"|.*\.(?:gemspec|podspec|csproj|cabal)",
    re.IGNORECASE,
)
_OF_THIRD_PARTIES = re.compile(r"_?vendor|(?:third|3rd)[_-]?party|extern(?:al|als)?|deps", re.IGNORECASE)
"""Folders of what others wrote, if their files say so."""
_OF_CONTRIBUTORS = re.compile(r"contribs?", re.IGNORECASE)
"""Folders of what others wrote, or some contributed: of a folder in it more has to say that it is another project's."""
_LIBRARY = re.compile(
    r"^\W{0,3}(?P<name>[A-Za-z][\w.+&-]*(?: [A-Za-z][\w.+&-]*){0,3}?)(?: \(|,? (?:version |v\.? ?)?)v?\d+\.\d+\b"
    r"[^\n]{0,100}(?:\n[^\n]{0,100}){0,2}?(?:https?://|www\.)",
    re.IGNORECASE | re.MULTILINE,
)
"""A library with its version and its address, as in ``Bootstrap v5.3.3 (https://getbootstrap.com/)``."""
_LIBRARY_LINES = 6
_OF_AUTOCONF = re.compile(r"https?://\S+/(autoconf-archive)/\w|^pkg\.m4 - .*\b(pkg-config)\b", re.MULTILINE)
"""How macros of Autoconf say which library they are of."""
_LIBRARY_END = re.compile(r"(?:[. ](?:js|css)| (?:free|library|plugin|framework))+$", re.IGNORECASE)
_SIGNS = re.compile(r"[\W_]+")
_OWN_NAME = re.compile(r"^\W*name\W*[=:]\s*[\"']([\w@/.-]+)[\"']", re.MULTILINE)
_CONFIGURED = re.compile(r"conf|rc\b|settings", re.IGNORECASE)
_SPDX = re.compile(r"spdx-license-identifier:\s*([\w.+-]+)", re.IGNORECASE)

OWN_LEAST, OWN_SHARE = 5, 0.1
"""Heads that name a holder, and their share of all files, before most heads tell whose the source is."""
FOREIGN_SHARE, FOREIGN_HEADS = 0.1, 0.3
"""Of the files and of the heads with a holder: where more are foreign, many write the source."""
PART_SHARE, SIGNERS = 0.25, 4
"""Of all files: a larger folder is a part of the source. So many others who sign files elsewhere are contributors."""
FOREIGN_FILES = 4
"""Files that name a foreign holder: more of them are a part that somebody contributed, unless a folder is theirs."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A statement about who owns the rights in a text.

    Attributes:
        holders: the set of words that identifies a holder → the holder's name as it is written.
        licences: the families of the licences that the text names.
        library: the library that the text names with its version and its address; empty if it names no library.
        is_element: whether the notice is in an XML element, as in protocol files.
    """

    holders: dict[frozenset[str], str] = field(default_factory=dict)
    licences: frozenset[str] = frozenset()
    library: str = ""
    is_element: bool = False

    @classmethod
    def of(cls, text: str) -> Self:
        """Read the notice in the comments at the head of a file."""
        element = _ELEMENT.search(text[:HEAD_CHARACTERS]) if text.lstrip("\ufeff \r\n").startswith("<") else None
        head = [words for _, _, words in head_comments(text)]
        first = "\n".join([words for words in head if words][:_LIBRARY_LINES])
        library = _LIBRARY.search(first)
        notice = cls.in_words("\n".join([*head, element[1] if element else ""]), is_element=element is not None)
        if macro := _OF_AUTOCONF.search(first):
            return replace(notice, library=macro[1] or macro[2])
        return replace(notice, library=_LIBRARY_END.sub("", library["name"])) if library else notice

    @classmethod
    def in_words(cls, words: str, *, is_element: bool = False) -> Self:
        """Read the notice in a plain text, such as a licence."""
        holders = {}
        for stated in _STATED.finditer(words):
            behind = _BEHIND.search(stated["name"])
            name = (stated["name"][: behind.start()] if behind else stated["name"]).strip(" \t.,;:-*/#©+")
            told = frozenset(word for word in map(str.lower, _WORD.findall(name)) if not _OF_MANY.fullmatch(word))
            # Without years it may be a list's (c), or say something of copyright.
            is_name = stated["years"] or ((name[:1].isupper() or _GROUP.match(name)) and not stated[0].startswith("("))
            if told and is_name and _LAW not in name.lower():
                holders[told] = name
        licences = frozenset(name for name, said in _LICENCES.items() if said.search(words))
        licences = licences or frozenset(_SPDX.findall(words)[:1])
        return cls(holders, licences, is_element=is_element)


@dataclass(frozen=True, slots=True)
class Holders:
    """The owners of a source.

    Attributes:
        own: the holders that the source's licence or most heads of its files name; empty if there are none or too many.
        licences: the licence families that the source's licence names, and those in at least a quarter of the heads.
        files: holder → the number of files that name the holder.
        folders: folder or file of another project → the name of its owner.
    """

    own: frozenset[frozenset[str]] = frozenset()
    licences: frozenset[str] = frozenset()
    files: Counter[frozenset[str]] = field(default_factory=Counter)
    folders: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, texts: Iterable[tuple[str, str]]) -> Self:
        """Read the licences of a source and the heads of its files.

        Args:
            name: the name of the source. A holder with this name is the source's own.
            texts: the path and the beginning of each file. Generated files may be included, but they do not count.
        """
        paths: list[str] = []
        manifests = [name]
        stated: dict[str, list[Notice]] = {"": []}
        heads: dict[str, Notice] = {}
        libraries: dict[str, Notice] = {}
        for path, text in texts:
            folder, _, file = path.rpartition("/")
            if is_licence_name(file):
                stated.setdefault(folder, []).append(Notice.in_words(text))
                continue
            paths.append(path)
            if "/" not in path and _MANIFEST.fullmatch(file):
                manifests += _OWN_NAME.findall(text)[:1]
            if (notice := Notice.of(text)).holders and not is_generated(text):
                heads[path] = notice
            if notice.library:
                libraries[path] = notice
        families = Counter(family for notice in heads.values() for family in notice.licences)
        licences = {family for family, count in families.items() if count >= max(3, len(heads) / 4)}
        of_root = {family for notice in stated[""] for family in notice.licences}
        called = {frozenset([word.lower()]) for word in _WORD.findall(name)}
        own = {holder for notice in stated.pop("") for holder in notice.holders}
        files = Counter(holder for notice in heads.values() for holder in notice.holders)
        first = called | (own or _most(heads.values(), len(paths)) or {one for one, _ in files.most_common(1)})
        named = {_plain(each.rpartition("/")[2]) for each in manifests}
        folders = _folders_of_libraries(named, first, libraries, paths)
        folders |= _folders_of_others(first, of_root or licences, stated, heads, paths)
        rest = [notice for path, notice in heads.items() if _above(path, folders) is None]
        most = _most(rest, len(paths))
        if not (own or most):
            return cls()
        whole = cls(frozenset(own | most | called), frozenset(of_root | licences), files, folders)
        foreign = sum(not any(map(whole._is_own, notice.holders)) for notice in rest)
        is_of_many = foreign > FOREIGN_SHARE * len(paths) and foreign > FOREIGN_HEADS * len(heads)
        return cls(folders=folders if own else {}) if is_of_many else whole

    def foreign(self, path: str, notice: Notice) -> str | None:
        """Return the owner of a file that comes from another project; ``None`` for the source's own files.

        A file in a folder of another project comes from that project. Any other file comes from another project if
        three conditions hold: the source owns none of the file's holders, only a few files name these holders, and the
        file has a different licence. A notice in an XML element needs no different licence.
        """
        if any(map(self._is_own, notice.holders)):
            return None
        if holder := _above(path, self.folders):
            return holder
        if not (self.own and notice.holders and notice.licences):
            return None
        suffix = PurePosixPath(path.lower()).suffix
        is_configuration = suffix in DATA_SUFFIXES and suffix != ".xml"
        is_alike = bool(notice.licences & self.licences) and not notice.is_element
        if is_configuration or is_alike:
            return None
        is_rare = all(self.files[holder] <= FOREIGN_FILES for holder in notice.holders)
        return next(iter(notice.holders.values())) if is_rare else None

    def _is_own(self, holder: frozenset[str]) -> bool:
        return _is_any(holder, self.own)


def is_kept_for_others(path: str) -> bool:
    """Tell whether a file is in a folder whose name is usual for code of other projects, such as ``third_party``."""
    return any(
        _OF_THIRD_PARTIES.fullmatch(folder) or _OF_CONTRIBUTORS.fullmatch(folder) or folder == "ext"
        for folder in path.split("/")[:-2]
    )


def _folders_of_others(
    own: Collection[frozenset[str]],
    licences: set[str],
    stated: Mapping[str, Sequence[Notice]],
    heads: Mapping[str, Notice],
    paths: Sequence[str],
) -> dict[str, str]:
    """Return the folders and single files of other projects, each with its owner.

    A folder in which no holder of the source is named belongs to another project in three cases. First, its licence
    names a holder, and it is not a package of a monorepo. Second, it is in a folder for third-party code, and a file
    names the owner; below ``contrib`` that file needs another licence, or half of the files must name the owner. Third,
    most of its files name one holder who is named nowhere else, and one of these files has another licence, or it is a
    small part of a source whose files several people do not sign.
    """
    owned = {
        folder
        for path, notice in chain(heads.items(), ((f"{at}/", each) for at, all_ in stated.items() for each in all_))
        if any(_is_same(holder, one) for holder in notice.holders for one in own)
        for folder in (path, *folders_above(path))
    }
    packages = {folder for folder, _, name in (path.rpartition("/") for path in paths) if _MANIFEST.fullmatch(name)}
    contributed: defaultdict[str, list[Notice]] = defaultdict(list)
    told = [(at, notice) for at, notices in stated.items() if at not in packages for notice in notices]
    for path, notice in heads.items():
        parts = path.split("/")
        kept = next((at for at, part in enumerate(parts[:-1], 2) if _OF_THIRD_PARTIES.fullmatch(part)), 0)
        told += [("/".join(parts[:kept]), notice)] if kept else []
        given = next((at for at, part in enumerate(parts[:-2], 2) if _OF_CONTRIBUTORS.fullmatch(part)), 0)
        if given and notice.holders:
            contributed["/".join(parts[:given])].append(notice)
    for at, notices in contributed.items():
        most = max(FOREIGN_FILES + 1, sum(path.startswith(f"{at}/") for path in paths) / 2)
        is_licensed_apart = any(notice.licences and not notice.licences & licences for notice in notices)
        is_theirs = at not in packages and (len(notices) >= most or (bool(licences) and is_licensed_apart))
        told += [(at, notices[0])] if is_theirs else []
    placed: defaultdict[frozenset[str], list[str]] = defaultdict(list)
    for path, notice in heads.items():
        for holder in notice.holders:
            placed[holder].append(path)
    for one in placed:
        named = sorted({path for other in placed if _is_same(one, other) for path in placed[other]})
        shared = commonpath([f"/{path.rpartition('/')[0]}" for path in named])[1:]
        if len(named) > FOREIGN_FILES and shared and any(heads[path].licences - licences for path in named):
            is_whole = 2 * len(named) >= sum(path.startswith(f"{shared}/") for path in paths)
            told += [(at, heads[named[0]]) for at in ([shared] if is_whole else named) if shared not in owned]
        elif len(named) > FOREIGN_FILES and shared not in owned | packages | {""}:
            below = sum(path.startswith(f"{shared}/") for path in paths)
            rest = {other for other in placed if not set(placed[other]) <= set(named) and not _is_any(other, own)}
            is_part = below <= min(2 * len(named), PART_SHARE * len(paths))
            told += [(shared, heads[named[0]])] if is_part and len(rest) < SIGNERS else []
    return {at: next(iter(notice.holders.values())) for at, notice in told if notice.holders and at not in owned}


def _plain(name: str) -> str:
    return _SIGNS.sub("", name).lower()


def _folders_of_libraries(
    called: Collection[str], own: Collection[frozenset[str]], libraries: Mapping[str, Notice], paths: Sequence[str]
) -> dict[str, str]:
    """Return a mapping from folders and files to the library that they contain.

    A folder or file contains a library if it has the library's name and a head in it names that library. A library does
    not count if it is the source's own, by its name or its holders, or if it is at least half of the source.
    """
    told: defaultdict[str, set[str]] = defaultdict(set)
    for path, notice in libraries.items():
        library = _plain(notice.library)
        is_own = library in called or any(_is_any(holder, own) for holder in notice.holders)
        if is_own:
            continue
        *folders, file = path.split("/")
        depth = next((at for at, folder in enumerate(folders, 1) if _plain(folder) == library), 0)
        is_file = _plain(file).startswith(library) and "." in file and not _CONFIGURED.search(file)
        is_file |= file.endswith(".m4")
        told[notice.library] |= {"/".join(folders[:depth])} if depth else {path} if is_file else set()
    below = {name: sum(_above(path, dict.fromkeys(at, "")) is not None for path in paths) for name, at in told.items()}
    return {at: name for name, places in told.items() if 2 * below[name] < len(paths) for at in places}


def _most(heads: Collection[Notice], files: int) -> set[frozenset[str]]:
    """Return the holders that most heads name, whatever the spelling of the name."""
    among = Counter(holder for notice in heads for holder in notice.holders)
    least = max(OWN_LEAST, len(heads) / 2, OWN_SHARE * files)
    return {one for one in among if sum(count for other, count in among.items() if _is_same(one, other)) >= least}


def _above(path: str, folders: Mapping[str, str]) -> str | None:
    """Return the value of a path, or else that of the nearest folder above it; ``None`` if neither has a value."""
    return next((folders[each] for each in (path, *folders_above(path)) if each in folders), None)


def _is_same(one: frozenset[str], other: frozenset[str]) -> bool:
    """Tell whether two names mean the same holder, because most words of the shorter name are in the other name."""
    return 2 * len(one & other) > min(len(one), len(other))


def _is_any(one: frozenset[str], others: Collection[frozenset[str]]) -> bool:
    return any(_is_same(one, other) for other in others)
