"""Read sidecar files: dates, authors and addresses of files that do not carry them.

A YAML or JSON mapping of path → record::

    papers/attention.pdf: {title: Attention Is All You Need, updated_at: 2017-06-12, authors: [Vaswani, Shazeer]}
    "**/*.md": {tags: [handbook]}

Keys are paths relative to the source's root, or globs; a later glob goes before an earlier one, a plain path before
any glob. Of ``access``, in any case, every entry that matches counts. Aliases (``*name``) are not read, and there may
be ``MAX_GLOBS`` globs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path

import yaml

from nornweave.connect.files.gitignore import IgnoreFile
from nornweave.core.access import KEY, every_of, single_statements
from nornweave.core.errors import ConfigError, DocumentError, SourceUnavailableError
from nornweave.core.files.paths import PathFilter, is_text, read_regular, unsafe_path
from nornweave.core.text.dates import utc
from nornweave.core.types import Entry, JsonValue, Metadata, digest, freeze
from nornweave.read.access_statements import access_metadata, names_access
from nornweave.read.plain_yaml import Pairs, load_pairs

MAX_GLOBS = 1_000
"""Globs of one sidecar: every file is compared with each."""
MAX_GLOB_CHARACTERS = 1_000

_SHOWN = 200
_GLOB_CHARACTERS = frozenset("*?[")
_TEXTS = frozenset({"title", "url", "revision"})


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
