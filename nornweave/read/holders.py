"""Whose code a file is: the holders and the licence that its head names, beside those of the whole source.

A file that came from another project keeps the notice of that project. It is told only where the source says clearly
whose the rest is: where contributors sign their files, none of them is foreign.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import PurePosixPath
from posixpath import commonpath
from typing import Self

from nornweave.read.kinds import DATA_SUFFIXES
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
_LICENCE_FILE = re.compile(r"(?:un)?licen[sc]e|copying", re.IGNORECASE)

OWN_LEAST, OWN_SHARE = 5, 0.1
"""Heads that name a holder, and their share of all files, before most heads tell whose the source is."""
FOREIGN_SHARE, FOREIGN_HEADS = 0.1, 0.3
"""Of the files and of the heads with a holder: where more are foreign, many write the source."""
FOREIGN_FILES = 4
"""Files that name a foreign holder: more of them are a part that somebody contributed, unless a folder is theirs."""


@dataclass(frozen=True, slots=True)
class Notice:
    """What a text says of its rights.

    Attributes:
        holders: names as they are written, by the words that tell them apart.
        licences: families of licences.
        is_element: it stands in an element of XML, as protocols have it.
    """

    holders: dict[frozenset[str], str] = field(default_factory=dict)
    licences: frozenset[str] = frozenset()
    is_element: bool = False

    @classmethod
    def of(cls, text: str) -> Self:
        """Read the comments at the head of a file."""
        element = _ELEMENT.search(text[:HEAD_CHARACTERS]) if text.lstrip("\ufeff \r\n").startswith("<") else None
        head = [words for _, _, words in head_comments(text)]
        return cls.in_words("\n".join([*head, element[1] if element else ""]), is_element=element is not None)

    @classmethod
    def in_words(cls, words: str, *, is_element: bool = False) -> Self:
        """Read a notice that stands in a text, as in a licence."""
        holders = {}
        for stated in _STATED.finditer(words):
            behind = _BEHIND.search(stated["name"])
            name = (stated["name"][: behind.start()] if behind else stated["name"]).strip(" \t.,;:-*/#©+")
            told = frozenset(word for word in map(str.lower, _WORD.findall(name)) if not _OF_MANY.fullmatch(word))
            # Without years it may be a list's (c), or say something of copyright.
            is_name = stated["years"] or (name[:1].isupper() and not stated[0].startswith("("))
            if told and is_name and _LAW not in name.lower():
                holders[told] = name
        licences = frozenset(name for name, said in _LICENCES.items() if said.search(words))
        return cls(holders, licences, is_element)


@dataclass(frozen=True, slots=True)
class Holders:
    """Whose a source is.

    Attributes:
        own: the holders that its licence or most heads name; empty where nobody or many are.
        licences: what its licence says, and a quarter of the heads.
        files: how many name a holder.
        apart: the holders whose files lie in one folder, in which no holder of the source stands, and name another
            licence somewhere in it.
    """

    own: frozenset[frozenset[str]] = frozenset()
    licences: frozenset[str] = frozenset()
    files: Counter[frozenset[str]] = field(default_factory=Counter)
    apart: frozenset[frozenset[str]] = frozenset()

    @classmethod
    def of(cls, name: str, texts: Iterable[tuple[str, str]]) -> Self:
        """Read the heads of a source's files, and its licence.

        Args:
            name: of the source; who is called so is no foreigner.
            texts: path and beginning of each file, generated ones too, which do not count.
        """
        total = 0
        stated: list[Notice] = []
        heads: list[Notice] = []
        folders: defaultdict[frozenset[str], list[str]] = defaultdict(list)
        for path, text in texts:
            if _LICENCE_FILE.match(path):
                stated.append(Notice.in_words(text))
                continue
            total += 1
            if (notice := Notice.of(text)).holders and not is_generated(text):
                heads.append(notice)
                for holder in notice.holders:
                    folders[holder].append(f"/{path.rpartition('/')[0]}")
        files = Counter(holder for notice in heads for holder in notice.holders)
        own = {holder for notice in stated for holder in notice.holders}
        first = own | {holder for holder, _ in files.most_common(1)}
        apart = {one for one, count in files.items() if count > FOREIGN_FILES and _is_apart(one, first, folders)}
        rest = [one for one in heads if not any(_is_same(*pair) for pair in product(one.holders, apart))]
        least = max(OWN_LEAST, len(rest) / 2, OWN_SHARE * total)
        own |= {
            one
            for one in files.keys() - apart
            if sum(count for other, count in files.items() if _is_same(one, other)) >= least
        }
        families = Counter(family for notice in heads for family in notice.licences)
        licences = {family for family, count in families.items() if count >= max(3, len(heads) / 4)}
        licences = licences.union(*(notice.licences for notice in stated))
        named = {one for notice in heads if notice.licences - licences for one in notice.holders}
        whole = cls(
            frozenset(own | {frozenset([word.lower()]) for word in _WORD.findall(name)} if own else own),
            frozenset(licences),
            files,
            frozenset(apart & named),
        )
        foreign = sum(not any(map(whole._is_own, notice.holders)) for notice in rest)
        is_of_many = foreign > FOREIGN_SHARE * total and foreign > FOREIGN_HEADS * len(heads)
        return cls() if is_of_many else whole

    def foreign(self, path: str, notice: Notice) -> str | None:
        """Return the holder of another project whose notice a file carries, or ``None``.

        No holder of it is one of the source's, each is named in few files or in a folder of its own, and its licence is
        another one; an element of XML goes with what it describes, whatever the licence.
        """
        is_apart = self.apart.issuperset(notice.holders)
        if not (self.own and notice.holders and (notice.licences or is_apart)):
            return None
        suffix = PurePosixPath(path.lower()).suffix
        is_configuration = suffix in DATA_SUFFIXES and suffix != ".xml"
        is_alike = bool(notice.licences & self.licences) and not notice.is_element
        if is_configuration or is_alike or any(map(self._is_own, notice.holders)):
            return None
        is_rare = is_apart or all(self.files[holder] <= FOREIGN_FILES for holder in notice.holders)
        return next(iter(notice.holders.values())) if is_rare else None

    def _is_own(self, holder: frozenset[str]) -> bool:
        return any(_is_same(holder, own) for own in self.own)


def _is_apart(
    holder: frozenset[str], own: Iterable[frozenset[str]], folders: Mapping[frozenset[str], Sequence[str]]
) -> bool:
    """Tell whether all files of a holder lie below one folder, and none there names a holder of the source."""
    shared = commonpath(folders[holder])
    near = (folder for one, placed in folders.items() if any(_is_same(one, each) for each in own) for folder in placed)
    return shared != "/" and not any(f"{folder}/".startswith(f"{shared}/") for folder in near)


def _is_same(one: frozenset[str], other: frozenset[str]) -> bool:
    """Tell whether two names are of the same holder: most words of the shorter one stand in the other."""
    return 2 * len(one & other) > min(len(one), len(other))
