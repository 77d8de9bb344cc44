"""Common parts of conversation exports: their folder, and lines that name a speaker."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable
from typing import ClassVar

from nornweave.config.sources import SourceSettings
from nornweave.connect.files.source import FilesSource, read_inside
from nornweave.connect.files.walk import entry_of
from nornweave.core.files.paths import OwnFiles
from nornweave.core.text.decode import MAX_BYTES
from nornweave.core.types import Document, Domain, Entry, Listing, SourceId
from nornweave.read.isolated import parse_apart

# Hidden files, and what macOS puts beside the files of a zip archive.
_LEFT_OUT = (".*", "__MACOSX")


class FolderSource:
    """A base class of sources: one document per file with certain suffixes, in a folder or a single file.

    Attributes:
        suffixes: the suffixes of the files that are read. ``only`` replaces them, and ``include`` adds others.
        has_types: whether ``include`` adds files to those with the suffixes. In a source that is one export,
            ``include`` means the same as ``only``.
        parser: the function that ``parse`` runs in the sandbox. It must be at the top level of a module.
    """

    domain = Domain.CONVERSATIONS
    suffixes: ClassVar[tuple[str, ...]]
    has_types: ClassVar[bool] = True
    parser: Callable[[SourceId, Entry, bytes], Document]

    def __init__(self, settings: SourceSettings, own: OwnFiles | None = None) -> None:
        self.id = SourceId(settings.id)
        self.root = settings.required_path
        spellings = (spelling for each in self.suffixes for spelling in (each, each.upper()))
        types = tuple(f"*{each}" for each in spellings)
        exclude = (*settings.exclude, *_LEFT_OUT)
        include, only = (settings.include, settings.only) if self.has_types else ((), settings.chosen)
        self._files = FilesSource(
            self.id, self.domain, self.root, types=types, include=include, only=only, exclude=exclude, own=own
        )

    def list(self) -> Listing:
        return self._files.list()

    def fetch(self, entry: Entry) -> bytes:
        return self.read(entry.path)

    def parse(self, entry: Entry, raw: bytes) -> Document:
        return parse_apart(type(self).parser, self.id, entry, raw)

    def read(self, path: str, max_bytes: int = MAX_BYTES) -> bytes:
        """Return the bytes of one listed file. The errors are those of ``read_inside``."""
        return read_inside(self.root, path, max_bytes, self._files.own)

    def mark(self, path: str) -> str:
        """Return a text that changes whenever a file changes, from its size and times; empty if the file is missing."""
        base = self.root.parent if self.root.is_file() else self.root
        try:
            status = (base / path).stat()
        except (OSError, RuntimeError, ValueError):
            return ""
        return entry_of(path, status).gate if stat.S_ISREG(status.st_mode) else ""


_NAMED = re.compile(r"\s*(?:>>\s*|-\s+)?(?P<name>[^\s:<>][^:<>\n]{0,47}?)\s?:(?:\s+|$)(?P<said>.*)", re.DOTALL)
_IN_ANGLES = re.compile(r"\s*<(?P<name>[^<>\s][^<>\n]{0,47})>\s+(?P<said>.*)", re.DOTALL)
_MAX_NAME_WORDS = 4
# Small words inside names; any other word of a name of several words starts with a capital, a digit or a bracket.
_PARTICLES = frozenset(
    ("al", "and", "bin", "da", "de", "del", "della", "der", "di", "dos", "du", "el", "la", "le", "van", "von", "zu")
)
# Words before a colon in notes and logs that are not names.
_NOT_NAMES = """
action agenda answer caution critical date debug decision e.g error example fatal fyi http https i.e info note notes ps
question re reminder subject summary time tip todo topic trace update url warn warning
"""
_NOBODY = frozenset(_NOT_NAMES.split())
# The last line of a traceback, and of a build: ``json.decoder.JSONDecodeError: …``.
_RAISED = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Warning|Interrupt|Failure)")


def split_speaker(line: str) -> tuple[str, str] | None:
    """Split a line into speaker and text; ``None`` if the line does not start with a name.

    A name has one to four words. If it has several words, each must look like a part of a name, so "The plan is: ship"
    has no speaker.
    """
    match = _IN_ANGLES.match(line) or _NAMED.match(line)
    if match is None:
        return None
    name = " ".join(match["name"].split())
    return (name, match["said"].strip()) if _is_name(name) else None


def _is_name(name: str) -> bool:
    words = name.split()
    if not words or len(words) > _MAX_NAME_WORDS or name.lower() in _NOBODY or not any(map(str.isalpha, name)):
        return False
    if _RAISED.fullmatch(name):
        return False
    if len(words) == 1:
        return True
    is_numbered = len(words) == 2 and words[1].isdigit()  # "speaker 1"
    return is_numbered or all(not word[0].islower() or word in _PARTICLES for word in words)
