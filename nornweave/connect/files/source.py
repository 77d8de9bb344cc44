"""A source of files in a folder, or of a single file. Domain and suffix decide how each is parsed.

Exports of conversations are a folder as well, with lines that name a speaker.

Sidecar files have dates, authors and addresses of files that do not carry them: a YAML or JSON mapping of path →
record::

    papers/attention.pdf: {title: Attention Is All You Need, updated_at: 2017-06-12, authors: [Vaswani, Shazeer]}
    "**/*.md": {tags: [handbook]}

Keys are paths relative to the source's root, or globs; a later glob goes before an earlier one, a plain path before
any glob. Of ``access``, in any case, every entry that matches counts. Aliases (``*name``) are not read, and there may
be ``MAX_GLOBS`` globs.
"""

from __future__ import annotations

import json
import math
import os
import posixpath
import re
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from pathlib import Path
from typing import ClassVar, Protocol

import yaml

from nornweave.config.sources import SourceSettings
from nornweave.connect.files.skip import DECIDING, WITH_FOLDERS, Rules, tree_of_folder
from nornweave.connect.files.walk import IgnoreFile, entry_of, walk
from nornweave.connect.git.blame import commit_of
from nornweave.connect.git.history import CommitHistory, history_document
from nornweave.connect.stackexchange.document import VERSION as STACKEXCHANGE_VERSION
from nornweave.connect.stackexchange.document import stackexchange_document
from nornweave.core.access import KEY, every_of, single_statements
from nornweave.core.errors import ConfigError, DocumentError, SourceUnavailableError, TransientDocumentError
from nornweave.core.files.paths import (
    OwnFiles,
    PathFilter,
    Withheld,
    Within,
    asks_for,
    check_globs,
    is_inside,
    is_text,
    read_regular,
    unsafe_path,
)
from nornweave.core.files.yaml_files import Pairs, load_pairs
from nornweave.core.text.dates import utc
from nornweave.core.text.decode import MAX_BYTES
from nornweave.core.types import (
    Document,
    Domain,
    Entry,
    JsonValue,
    Listing,
    Metadata,
    Skip,
    SourceId,
    digest,
    freeze,
    is_of_history,
)
from nornweave.read.access_statements import access_metadata, names_access
from nornweave.read.blocks.styles import MAX_OWN_BYTES, with_own_files
from nornweave.read.file import LFS_POINTER, parse_version, read_document
from nornweave.read.isolated import parse_apart
from nornweave.read.kinds import reads

MAX_GLOBS = 1_000
"""Globs of one sidecar: every file is compared with each."""
MAX_GLOB_CHARACTERS = 1_000

_SHOWN = 200
_GLOB_CHARACTERS = frozenset("*?[")
_TEXTS = frozenset({"title", "url", "revision"})


def file_version() -> str:
    """Return the version of file parsing. It changes whenever the same bytes may give another document."""
    return f"{parse_version()},{STACKEXCHANGE_VERSION}"


def file_document(
    source_id: SourceId,
    entry: Entry,
    raw: bytes,
    *,
    domain: Domain,
    is_dated: bool = False,
    is_handed_in: bool = False,
    is_asked_for: bool = False,
) -> Document:
    """Parse a file as ``read_document`` does. In the research domain a JSON file holds questions and answers.

    Raises:
        DocumentSkipped: the file is not worth reading, or it is a Git LFS pointer in place of the file.
        DocumentError: the file is too large, binary, empty or broken.
    """
    is_json = entry.path.lower().endswith(".json") and not raw.startswith(LFS_POINTER)
    if domain is Domain.RESEARCH and is_json:
        return stackexchange_document(source_id, entry, raw, domain=domain, is_dated=is_dated)
    how = {"is_dated": is_dated, "is_handed_in": is_handed_in, "is_asked_for": is_asked_for}
    return read_document(source_id, entry, raw, domain=domain, **how)


@dataclass(frozen=True, slots=True)
class FilesSource:
    """Files below a folder, or a single file.

    Attributes:
        root: the folder or file. It may be a symlink, and it may have any name, even ``site-packages``.
        include: globs of files to read in addition to the domain's file types.
        only: globs of the only files to read, as the configuration names them.
        exclude: globs of files not to read.
        types: globs of the file types that this kind of source reads; empty for the domain's file types.
        metadata: a sidecar file with dates, titles and other fields. They override those of the files.
        own: the workspace's own files, which are never read.
        history: the commits of the repository around the folder; ``None`` if they are not documents.
    """

    id: SourceId
    domain: Domain
    root: Path
    include: tuple[str, ...] = field(default=(), kw_only=True)
    only: tuple[str, ...] = field(default=(), kw_only=True)
    exclude: tuple[str, ...] = field(default=(), kw_only=True)
    types: tuple[str, ...] = field(default=(), kw_only=True)
    metadata: Path | None = field(default=None, kw_only=True)
    own: OwnFiles | None = field(default=None, kw_only=True)
    history: CommitHistory | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_globs(include=self.include, only=self.only, exclude=self.exclude)  # broken ones are said at once

    @property
    def version(self) -> str:
        # What include names is read whatever it holds.
        return ",".join(("files-2", file_version(), *self.include, *self.only))

    def list(self) -> Listing:
        """List the files by path without reading them."""
        return self.list_within(None)

    def watched_folder(self) -> str | None:
        """Return the folder with everything that affects the documents; ``None`` if there is no such folder."""
        root = os.path.realpath(self.root)
        is_whole = self.metadata is None or self._path_of_sidecar(root) is not None
        return root if is_whole and os.path.isdir(root) else None  # noqa: PTH112

    def list_within(self, within: Within | None) -> Listing:
        """List the files at some paths in the same way as ``list``; all files if ``within`` is ``None``."""
        root, status = resolved_root(self.id, self.root, self.own)
        # Before the files: what is committed meanwhile counts as not read yet.
        commit = commit_of(Path(root) if stat.S_ISDIR(status.st_mode) else Path(root).parent, "HEAD")
        return replace(self._listed(root, status, within), commit=commit)

    def _listed(self, root: str, status: os.stat_result, within: Within | None) -> Listing:
        sidecar = load_sidecar(self.metadata) if self.metadata else Sidecar()
        if stat.S_ISREG(status.st_mode):
            return _with_unmatched(Listing((sidecar.with_metadata(entry_of(self.root.name, status)),)), sidecar)
        rules = Rules(
            self.domain,
            tree_of_folder(root),
            types=self.types,
            include=self.include,
            only=self.only,
            exclude=self.exclude,
            withheld=Withheld(root, self.own),
        )
        own = self._path_of_sidecar(root)
        within = _affected_paths(within, own) if within else None
        walked = walk(root, rules, ignores=self.domain in WITH_FOLDERS, within=within)
        entries = tuple(sidecar.with_metadata(entry) for entry in walked.entries if entry.path != own)
        left_out = () if own is None else (Skip(own, "metadata: of this source"),)
        skipped = tuple(sorted(walked.skipped + left_out, key=lambda skip: skip.path))
        if within:
            return replace(walked, entries=entries, skipped=skipped)
        commits = self.history.entries_here() if self.history else ()
        return _with_unmatched(replace(walked, entries=(*entries, *commits), skipped=skipped), sidecar)

    def fetch(self, entry: Entry) -> bytes:
        """Return the bytes of a file or a commit. A documentation page gets the content of its style sheets.

        A file outside the folder is not read. The errors are those of ``read_inside``.
        """
        if self.history and is_of_history(entry.gate):
            return self.history.fetch(entry)
        raw = read_inside(self.root, entry.path, own=self.own)
        return with_own_files(entry.path, raw, self._beside) if self.domain is Domain.DOCUMENTATION else raw

    def _beside(self, path: str) -> bytes | None:
        """Return the file at a path to which a page links; ``None`` if it cannot be read."""
        with suppress(DocumentError):
            return read_inside(self.root, path, MAX_OWN_BYTES, own=self.own)
        return None

    def parse(self, entry: Entry, raw: bytes) -> Document:
        """Parse a file's bytes.

        The document's date is the date in the sidecar, else the document's own date, else the modification time.
        """
        if is_of_history(entry.gate):
            return history_document(self.id, entry, raw)
        is_dated = "updated_at" in entry.metadata
        is_named = is_asked_for(self, entry.path) or os.path.isfile(self.root)  # noqa: PTH113
        how = {"is_dated": is_dated, "is_asked_for": is_named}
        return parse_apart(file_document, self.id, entry, raw, domain=self.domain, **how)

    def _path_of_sidecar(self, root: str) -> str | None:
        if self.metadata is None:
            return None
        target = os.path.realpath(self.metadata)
        return os.path.relpath(target, root) if is_inside(target, root) else None


def _with_unmatched(listing: Listing, sidecar: Sidecar) -> Listing:
    """Return a complete listing with those paths and globs of the sidecar that match no document."""
    unmatched = tuple(sorted(sidecar.unmatched))
    if not unmatched:
        return listing
    notice = (
        f"{len(unmatched):,} of the paths and globs in the metadata file match no document, such as {unmatched[0]!r}; "
        "`nornweave status --access` lists them"
    )
    return replace(listing, unmatched=unmatched, notices=(*listing.notices, notice))


class WithGlobs(Protocol):
    """A source with configured globs."""

    @property
    def domain(self) -> Domain: ...
    @property
    def include(self) -> tuple[str, ...]: ...
    @property
    def only(self) -> tuple[str, ...]: ...


def is_asked_for(source: WithGlobs, path: str) -> bool:
    """Tell whether the configuration asks for a file: in ``include``, or in ``only`` despite an unusual type."""
    return asks_for(source.include, path) or (bool(source.only) and not reads(source.domain, path))


def _affected_paths(within: Within, sidecar: str | None) -> Within | None:
    """Return the paths that a change affects; ``None`` if it affects the whole source.

    A changed file with rules, such as ``.gitignore``, affects its whole folder. A changed sidecar affects all files.
    """
    paths = {posixpath.dirname(path) if posixpath.basename(path) in DECIDING else path for path in within.paths}
    return None if "" in paths or sidecar in paths else Within(frozenset(paths))


def resolved_root(source_id: SourceId, place: Path, own: OwnFiles | None = None) -> tuple[str, os.stat_result]:
    """Return a source's resolved folder or file, and its status.

    Raises:
        SourceUnavailableError: the place is missing, cannot be read, or is neither a folder nor a file; or a link leads
            to a place that ``own`` does not allow.
    """
    try:
        root = os.path.realpath(place, strict=True)
        status = os.stat(root)  # noqa: PTH116
    except OSError as error:
        raise SourceUnavailableError(
            f"source {source_id!r}: {str(place)!r} cannot be read: {error.strerror}; mount or create it, correct "
            "'path', or remove the source. Its documents are kept until then."
        ) from error
    if not (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)):
        raise SourceUnavailableError(f"source {source_id!r}: {str(place)!r} is neither a folder nor a file.")
    if led := own and own.led_out(place, root):
        raise SourceUnavailableError(f"source {source_id!r}: {str(place)!r} {led}")
    return root, status


def read_inside(place: Path, path: str, max_bytes: int = MAX_BYTES, own: OwnFiles | None = None) -> bytes:
    """Read one file of a folder. If the source is a single file, read that file.

    Raises:
        DocumentError: the file is larger than ``max_bytes``, is outside the folder or is not a regular file.
        TransientDocumentError: the file vanished or cannot be read.
    """
    try:
        root = os.path.realpath(place, strict=True)
        is_the_root = path == place.name and os.path.isfile(root)  # noqa: PTH113
        target = os.path.realpath(root if is_the_root else os.path.join(root, path), strict=True)  # noqa: PTH118
        if not is_inside(target, root) or (own and own.led_out(place, root)):
            raise DocumentError("it leads outside the source by now (symlink or ..); put the file itself there")
        return read_regular(target, max_bytes, follows=False)
    except ValueError as error:
        raise DocumentError(f"{path!r} is not a path: {error}") from error
    except FileNotFoundError as error:
        raise TransientDocumentError("it vanished after it was listed; the next sync settles it") from error
    except OSError as error:
        raise TransientDocumentError(
            f"it cannot be read: {error.strerror}; give read permission or repair it, the next sync tries again"
        ) from error


class Sidecar:
    """The records in one sidecar file."""

    def __init__(self, records: Sequence[tuple[str, Metadata]] = ()) -> None:
        self.unmatched = {key for key, _ in records}
        """Entries that have matched no document yet."""
        self._exact: dict[str, list[Metadata]] = {}
        for key, record in records:
            if not _is_glob(key):
                self._exact.setdefault(key, []).append(record)
        # An ignore file matches what its globs name, in linear time whatever the pattern.
        self._globs = tuple((key, IgnoreFile(key), record) for key, record in records if _is_glob(key))

    def with_metadata(self, entry: Entry) -> Entry:
        """Return an entry with the sidecar's metadata for its path. The entry's gate changes with the metadata."""
        matching = [(key, record) for key, glob, record in self._globs if _matches(glob, entry.path)]
        matching += [(entry.path, record) for record in self._exact.get(entry.path, ())]
        self.unmatched.difference_update(key for key, _ in matching)
        merged: dict[str, JsonValue] = {}
        for _, record in matching:
            merged |= record
        if not merged:
            return entry
        if KEY in merged:
            merged[KEY] = every_of(
                each for _, record in matching for each in single_statements(record.get(KEY)) if each is not None
            )
        stated, revision = merged.get("updated_at"), merged.get("revision")
        mark = digest(json.dumps(merged, sort_keys=True, ensure_ascii=False))
        return replace(
            entry,
            gate=f"{entry.gate}-{mark}",
            updated_at=datetime.fromisoformat(stated) if isinstance(stated, str) else entry.updated_at,
            revision=revision if isinstance(revision, str) else None,
            metadata=freeze(merged),
        )


def load_sidecar(file: Path) -> Sidecar:
    """Read a sidecar file.

    Raises:
        SourceUnavailableError: the file is missing, unreadable or broken. The message names the file, what was found
            and what is expected.
    """
    try:
        text = read_regular(file).decode("utf-8-sig")
        is_json = file.suffix.lower() == ".json"
        loaded = json.loads(text, object_pairs_hook=Pairs) if is_json else load_pairs(text)
        return Sidecar(_checked(Pairs(()) if loaded is None else loaded))
    except OSError as error:
        raise _broken(file, f"it cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, ConfigError, DocumentError, RecursionError, ValueError) as error:
        raise _broken(file, " ".join(str(error).split())[:_SHOWN]) from error


def _checked(loaded: object) -> list[tuple[str, Metadata]]:
    if not isinstance(loaded, Pairs):
        raise ValueError(f"it holds a {type(loaded).__name__}")  # noqa: TRY004 - translated with the file above
    if sum(_is_glob(str(key)) for key, _ in loaded.items()) > MAX_GLOBS:
        raise ValueError(f"it has more than {MAX_GLOBS:,} globs; name files by their paths")
    records = []
    for key, fields in loaded.items():
        path = str(key).removeprefix("./")
        if _is_glob(path):
            if len(path) > MAX_GLOB_CHARACTERS or "\n" in path:
                expected = f"a glob on one line, of at most {MAX_GLOB_CHARACTERS:,} characters"
                raise ValueError(f"{path[:40]!r}…: expected {expected}")
            PathFilter([path])
        elif reason := unsafe_path(path):
            raise ValueError(reason)
        if not isinstance(fields, Pairs):
            found = f"{path!r}: found {type(fields).__name__}"
            raise ValueError(f"{found}, expected a mapping such as {{title: …}}")  # noqa: TRY004 - as above
        # A key without a value is a statement that somebody began: nobody meets it.
        access = [(KEY, [] if each is None else each) for name, each in fields.items() if names_access(name)]
        stated = {str(name): each for name, each in fields.items() if not names_access(name)}
        known = {name: _value(f"{path!r}: {name}", name, each) for name, each in stated.items()}
        records.append((path, freeze({**known, **access_metadata(fields=access)})))
    return records


def _value(place: str, name: str, value: object) -> JsonValue:
    if name == "updated_at":
        return _moment(place, value)
    if name in _TEXTS:
        if isinstance(value, list | Pairs):
            raise ValueError(f"{place} is a {type(value).__name__}, expected text")
        return None if value is None else str(_scalar(place, value))  # revision: 12
    if isinstance(value, list):
        return tuple(_scalar(place, member) for member in value)
    return _scalar(place, value)


def _scalar(place: str, value: object) -> JsonValue:
    if isinstance(value, date):  # YAML reads dates as such, datetimes included
        return value.isoformat()
    is_odd = (isinstance(value, float) and not math.isfinite(value)) or (isinstance(value, str) and not is_text(value))
    if is_odd or not isinstance(value, str | int | float | None):
        expected = "text, a finite number, true, false or a list of these"
        found = "mapping" if isinstance(value, Pairs) else f"{type(value).__name__} {str(value)[:40]!r}"
        raise ValueError(f"{place} holds a {found}, expected {expected}")
    return value


def _moment(place: str, value: object) -> str:
    try:
        return utc(datetime.fromisoformat(str(value))).isoformat()
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{place} is {str(value)[:40]!r}, expected a date such as 2024-05-01T10:00:00Z") from error


def _is_glob(key: str) -> bool:
    return not _GLOB_CHARACTERS.isdisjoint(key)


def _matches(glob: IgnoreFile, path: str) -> bool:
    """Tell whether a glob matches a file, or a folder that contains the file."""
    *folders, name = path.split("/")
    above = ("/".join(folders[: end + 1]) for end in range(len(folders)))
    if any(glob.verdict(place, place.rpartition("/")[2], is_directory=True) for place in above):
        return True
    return glob.verdict(path, name, is_directory=False) is True


def _broken(file: Path, found: str) -> SourceUnavailableError:
    return SourceUnavailableError(
        f"metadata file {file}: {found}; expected a YAML or JSON mapping of path to "
        "{title, updated_at, revision, url, authors, tags, …}. Correct it, or take 'metadata' out of the source."
    )


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
