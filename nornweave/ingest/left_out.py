"""How much of each source is read: the counts that every sync prints, and the list of files that are left out."""

from __future__ import annotations

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from nornweave.config.workspace import INBOX_ID
from nornweave.connect.files.skip import CHOSEN, MARKUP
from nornweave.connect.files.walk import LINK
from nornweave.core.files.paths import folders_above
from nornweave.core.text.terminal import counted
from nornweave.core.types import Domain, Listing, Skip, is_of_history
from nornweave.index.outcomes import read_left_out, write_left_out
from nornweave.index.port import Failure
from nornweave.ingest.diff import Unavailable
from nornweave.read.chunking.languages import code_format_of

SHOWN = 6
"""Reasons in a line, the most frequent first."""
SHOWN_FOLDERS = 2
MANY = 0.1
"""Of a source's files in known languages: a larger share that is left out is warned of."""
_FINE = frozenset(
    {
        "ignored",
        "link",
        "licence",
        "empty",
        "translation",
        "written by a tool",
        "generated",
        "minified",
        "vendored",
        "draft",
    }
)
"""Labels of what nobody misses."""
_LABEL = re.compile(r"[^:;]{1,60}")
_FOLDER = re.compile(r": below ([^,;]+)")


@dataclass(frozen=True, slots=True)
class SourceReading:
    """How much of one source a sync read, and what it left out.

    Attributes:
        files: the number of files in the source, and of folders that were not entered.
        left_out: the paths that were left out, with reasons, by path. The path of a folder ends with a slash.
        known: the number of files in languages or markup that the domain knows. Files that the configuration or git
            leaves out are not counted.
        known_left_out: how many of the ``known`` files are left out.
        notices: what people should know about the listing, as in ``Listing.notices``.
        past: the number of commits and releases that are read besides the files.
    """

    files: int
    left_out: tuple[Skip, ...] = ()
    known: int = 0
    known_left_out: int = 0
    notices: tuple[str, ...] = ()
    past: int = 0

    @property
    def read(self) -> int:
        """Count the files that are read."""
        return self.files - len(self.left_out)

    def labels(self) -> Counter[str]:
        """Count the reasons by their labels."""
        return Counter(label_of(skip.reason) for skip in self.left_out)

    def summary(self) -> str:
        """Return the counts in words: ``944 files: 612 read, 58 .glyph, 5 too large``."""
        folders: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for skip in self.left_out:
            folders[label_of(skip.reason)].update(_FOLDER.findall(skip.reason))
        labels = sorted(self.labels().items(), key=lambda each: (-each[1], each[0]))
        parts = [f"{count:,} {label}{_places(folders[label])}" for label, count in labels[:SHOWN]]
        rest = sum(count for _, count in labels[SHOWN:])
        others = [f"{rest:,} for {counted(len(labels) - SHOWN, 'other reason')}"] if rest else []
        past = [f"{self.past:,} of history"] if self.past else []
        return f"{counted(self.files, 'file')}: {', '.join([f'{self.read:,} read', *past, *parts, *others])}"

    def warning(self) -> str:
        """Return a warning if many files that the domain can read are left out; empty otherwise."""
        if self.known_left_out <= MANY * self.known:
            return ""
        return (
            f"{self.known_left_out:,} of {self.known:,} files in known languages are left out; name them in include to "
            "read them, or in exclude if that is meant"
        )


def label_of(reason: str) -> str:
    """Return the part of a reason before ``:`` or ``;``, for counting: ``"too large: 9 MB" → "too large"``."""
    found = _LABEL.match(reason)
    return found[0].strip() if found else "other"


def _places(folders: Counter[str]) -> str:
    shown = sorted(folders, key=lambda folder: (-folders[folder], folder))[:SHOWN_FOLDERS]
    more = ", …" if len(folders) > len(shown) else ""
    return f" below {', '.join(shown)}{more}" if shown else ""


def readings(
    domains: Mapping[str, Domain], listings: Mapping[str, Listing | Unavailable], unread: Iterable[Failure]
) -> dict[str, SourceReading]:
    """Return source id → its reading, for sources that were listed as a whole. An empty inbox has no reading.

    Args:
        domains: source id → its domain.
        unread: listed documents that could not be read, or that were left out because of their content.
    """
    told: defaultdict[str, list[Skip]] = defaultdict(list)
    for failure in unread:
        told[failure.source_id].append(Skip(failure.path, failure.reason))
    found = {}
    for source_id, listing in listings.items():
        if isinstance(listing, Unavailable) or listing.within:
            continue
        if source_id == INBOX_ID and not listing.entries and not listing.skipped:
            continue  # an empty inbox
        unresolved = sorted([*listing.skipped, *told[source_id]], key=lambda skip: skip.path)
        left_out = tuple(_with_targets(unresolved, listing))
        is_known = _KNOWN.get(domains[source_id], _is_nothing)
        counts = [skip.path for skip in left_out if skip.reason not in CHOSEN and label_of(skip.reason) not in _FINE]
        listed = sum(is_known(entry.path) for entry in listing.entries)
        known_left_out = sum(map(is_known, counts))
        known = listed + known_left_out - sum(is_known(skip.path) for skip in told[source_id])
        past = sum(is_of_history(entry.gate) for entry in listing.entries)
        files = len(listing.entries) + len(listing.skipped) - past
        found[source_id] = SourceReading(files, left_out, known, known_left_out, listing.notices, past)
    return found


def _with_targets(left_out: Sequence[Skip], listing: Listing) -> Iterator[Skip]:
    """Yield what is left out. The reason of a link says whether its target is read."""
    reasons, read = {skip.path: skip.reason for skip in left_out}, {entry.path for entry in listing.entries}
    folders = {folder or "." for path in (*read, *reasons) for folder in folders_above(path)}
    for skip in left_out:
        if not skip.reason.startswith(LINK):
            yield skip
            continue
        target = posixpath.normpath(posixpath.join(posixpath.dirname(skip.path), skip.reason.removeprefix(LINK)))
        if (reason := reasons.get(target, LINK)) and not reason.startswith(LINK):
            told = f"link: its target is left out ({label_of(reason)})"
            yield Skip(skip.path, reason if label_of(reason) == "binary" else told)
        elif target in read:
            yield Skip(skip.path, "link: its target is read where it lies")
        elif target in folders:
            yield Skip(skip.path, "link: what lies in the folder that it leads to is read or left out there")
        else:
            yield Skip(skip.path, "link: it leads out of the source, or nowhere")


def _is_markup(path: str) -> bool:
    return PurePosixPath(path.lower()).suffix in MARKUP


def _is_nothing(_: str) -> bool:
    return False


_KNOWN = {
    Domain.CODE: lambda path: code_format_of(path) is not None,
    Domain.DOCUMENTATION: _is_markup,
    Domain.RESEARCH: _is_markup,
}


def note_left_out(folder: Path, sources: Mapping[str, SourceReading]) -> None:
    """Store what was left out of each listed source. Entries of other sources stay.

    Raises:
        OSError: the file cannot be written.
    """
    known = {}
    for source_id, reading in sources.items():
        by_reason: defaultdict[str, list[str]] = defaultdict(list)
        for skip in reading.left_out:
            by_reason[skip.reason].append(skip.path)
        known[source_id] = {"files": reading.files, "read": reading.read, "left_out": by_reason}
    if known:
        write_left_out(folder, {**read_left_out(folder), **known})
