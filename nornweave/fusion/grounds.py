"""What an item stands under: its path and headings, which say what a claim is about that only names an attribute."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from nornweave.claims.vocabulary import split_name, stem

CACHED = 1 << 12
MIN_LETTERS = 2
MAX_PARTS = 8
"""Of a path, counted from its end."""

# Stems that stand in documents of every project and so hardly say that two of them mean the same thing.
_GENERIC = """
api app application service server system request response error code data module function method object item handle
handler handling process operation call list name type field id path line page text content information detail
number result output input option flag feature change update version release product platform project team step run
work time section note using support please need allow require provide follow create start stop send receive add
remove show store save read write open close check test backend frontend endpoint base core common general overview
introduction guide reference production environment behaviour behavior standard mode state level group set part way
case thing example success successful http status string january february march april may june july august september
october november december monday tuesday wednesday thursday friday saturday sunday due date day year month week hour
minute second everybody called written metadata summary program tool software library package class element property
attribute end begin instance node host client everybody argument parameter
"""
GENERIC = frozenset(stem(word) for word in _GENERIC.split())
_ANY_FILE = """
readme index main init settings config configuration constants defaults options utils helpers test tests docs doc
changelog notes news release releases issues pulls deploy values limits production page handbook
"""
ANY_FILE = frozenset(stem(word) for word in _ANY_FILE.split())
"""What files are called in every project."""
_ANY_FOLDER = """
src lib libs pkg cmd source sources internal include vendor packages modules components resources scripts bin etc
java kotlin python typescript javascript swift ruby rust golang apps services com org net site github gitlab slack
channels chats messages transcripts meetings papers notes articles wiki guides runbooks adr decisions
"""
ANY_FOLDER = ANY_FILE | frozenset(stem(word) for word in _ANY_FOLDER.split())
"""What folders are called in every project."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What an item stands under.

    Attributes:
        text: its path and headings, as they stand.
        file, folders: stems of the file's name and of the folders that tell them from others.
        named: the stems of all words of its file's name and its headings.
        stems: those, and of its folders.
        function: the function that it is, if any.
        is_top: whether its file lies in no folder.
    """

    text: str
    file: frozenset[str]
    folders: frozenset[str]
    named: frozenset[str]
    stems: frozenset[str]
    function: str | None = None
    is_top: bool = False

    def same_place(self, other: Ground) -> bool:
        """Tell whether both name the same file or the same function (PIPELINE, "the same-entity check")."""
        return self.same_name(other) or not self.file.isdisjoint(other.file)

    def same_name(self, other: Ground) -> bool:
        """Tell whether the file's or function's whole name is the same: ``retry.py`` and ``retries.md``."""
        if self.function is not None and self.function == other.function:
            return True
        return bool(self.file) and self.file == other.file

    def same_folder(self, other: Ground) -> bool:
        """Tell whether the file or a folder of one is called like a folder of the other, or both have no folder."""
        if self.is_top and other.is_top:
            return True
        return not self.folders.isdisjoint(other.folders | other.file) or not self.file.isdisjoint(other.folders)


@lru_cache(maxsize=CACHED)
def ground_of(path: str, headings: str, function: str | None = None) -> Ground:
    """Read what an item's path and headings say.

    Args:
        headings: ``A > B``; empty without any.
    """
    *folders, name = path.split("/")[-MAX_PARTS:]
    file = _stems(name.partition(".")[0])
    above = _stems(" ".join(folders))
    named = file | _stems(headings)
    return Ground(
        text=f"{path} {headings}",
        file=file - GENERIC - ANY_FILE,
        folders=above - GENERIC - ANY_FOLDER,
        named=named,
        stems=named | above,
        function=function,
        is_top=bool(path) and not folders,
    )


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in split_name(text) if len(word) >= MIN_LETTERS)


NOWHERE = ground_of("", "")
