"""Read sidecar files: dates, authors and addresses of files that exports and fresh clones lose.

A YAML or JSON mapping of path → record::

    papers/attention.pdf: {title: Attention Is All You Need, updated_at: 2017-06-12, authors: [Vaswani, Shazeer]}
    "**/*.md": {tags: [handbook]}

Keys are paths relative to the source's root, or globs; a later glob goes before an earlier one, a plain path before
any glob. Aliases (``*name``) are not read, and there may be ``MAX_GLOBS`` globs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import yaml

from nornweave.connect.files.gitignore import IgnoreFile
from nornweave.core.errors import ConfigError, SourceUnavailableError
from nornweave.core.files.paths import PathFilter, is_text, unsafe_path
from nornweave.core.text.dates import utc
from nornweave.core.text.decode import MAX_BYTES
from nornweave.core.types import NO_METADATA, Entry, JsonValue, Metadata, digest, freeze
from nornweave.read.plain_yaml import load_plain_yaml

MAX_GLOBS = 1_000
"""Globs of one sidecar: every file is compared with each."""
MAX_GLOB_CHARACTERS = 1_000

_SHOWN = 200
_GLOB_CHARACTERS = frozenset("*?[")
_TEXTS = frozenset({"title", "url", "revision"})


class Sidecar:
    """The records of one sidecar."""

    def __init__(self, records: Mapping[str, Metadata]) -> None:
        self._exact = {key: record for key, record in records.items() if not _is_glob(key)}
        # An ignore file matches what its globs name, in linear time whatever the pattern.
        self._globs = tuple((IgnoreFile(key), record) for key, record in records.items() if _is_glob(key))

    def dated(self, entry: Entry) -> Entry:
        """Return a document with everything that is said about its path; its gate changes with that."""
        merged: dict[str, JsonValue] = {}
        for glob, record in self._globs:
            if _matches(glob, entry.path):
                merged.update(record)
        merged.update(self._exact.get(entry.path, NO_METADATA))
        if not merged:
            return entry
        stated, revision = merged.get("updated_at"), merged.get("revision")
        mark = digest(json.dumps(merged, sort_keys=True, ensure_ascii=False))
        return replace(
            entry,
            gate=f"{entry.gate}-{mark}",
            updated_at=datetime.fromisoformat(stated) if isinstance(stated, str) else entry.updated_at,
            revision=revision if isinstance(revision, str) else None,
            metadata=freeze(merged),
        )


NO_SIDECAR = Sidecar({})


def load_sidecar(file: Path) -> Sidecar:
    """Read a sidecar.

    Raises:
        SourceUnavailableError: it is missing, unreadable or broken: the file, the line and what is expected.
    """
    try:
        with file.open("rb") as opened:
            raw = opened.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise _broken(file, None, f"it is larger than {MAX_BYTES} bytes")
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise _broken(file, None, f"it cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise _broken(file, raw.count(b"\n", 0, error.start) + 1, "it is not UTF-8 text") from error
    return Sidecar(dict(_records(file, text, _load(file, text))))


def _load(file: Path, text: str) -> Mapping[object, object]:
    try:
        loaded = json.loads(text) if file.suffix.lower() == ".json" else load_plain_yaml(text)
    except json.JSONDecodeError as error:
        raise _broken(file, error.lineno, error.msg) from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "not YAML"
        raise _broken(file, mark.line + 1 if mark else None, str(problem)) from error
    except (RecursionError, ValueError) as error:  # YAML dates such as 2024-13-01
        raise _broken(file, None, f"{error}") from error
    if loaded is not None and not isinstance(loaded, dict):
        raise _broken(file, 1, f"it holds a {type(loaded).__name__}")
    return loaded or {}


def _matches(glob: IgnoreFile, path: str) -> bool:
    """Tell whether a glob names a file or a folder that holds it."""
    *folders, name = path.split("/")
    above = ("/".join(folders[: end + 1]) for end in range(len(folders)))
    if any(glob.verdict(place, place.rpartition("/")[2], is_directory=True) for place in above):
        return True
    return glob.verdict(path, name, is_directory=False) is True


def _records(file: Path, text: str, loaded: Mapping[object, object]) -> Iterator[tuple[str, Metadata]]:
    if sum(_is_glob(str(key)) for key in loaded) > MAX_GLOBS:
        raise _broken(file, None, f"it has more than {MAX_GLOBS:,} globs; name files by their paths")
    for key, fields in loaded.items():
        try:
            path = _checked_key(key)
            yield path, _checked_record(fields)
        except (ConfigError, ValueError) as error:
            raise _broken(file, _line_of(text, str(key)), f"{_shown(key)}: {error}") from error


def _checked_key(key: object) -> str:
    if not isinstance(key, str):
        raise ValueError(f"a {type(key).__name__} is not a path")  # noqa: TRY004 - translated with the place above
    path = key.removeprefix("./")
    if _is_glob(path):
        if len(path) > MAX_GLOB_CHARACTERS or "\n" in path:
            raise ValueError(f"expected a glob on one line, of at most {MAX_GLOB_CHARACTERS:,} characters")
        PathFilter([path])
    elif reason := unsafe_path(path):
        raise ValueError(reason)
    return path


def _checked_record(fields: object) -> Metadata:
    if not isinstance(fields, dict):
        raise ValueError(f"found {type(fields).__name__}, expected a mapping such as {{title: …}}")  # noqa: TRY004
    return freeze({str(name): _checked_value(str(name), value) for name, value in fields.items()})


def _checked_value(name: str, value: object) -> JsonValue:
    if name == "updated_at":
        return _moment(value)
    if name in _TEXTS and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)  # revision: 12
    if name in _TEXTS and not isinstance(value, str | None):
        raise ValueError(f"{name} is {_shown(value)}, expected text")
    if isinstance(value, list):
        return tuple(_scalar(name, member) for member in value)
    return _scalar(name, value)


def _scalar(name: str, value: object) -> JsonValue:
    if isinstance(value, date):  # YAML reads dates as such, datetimes included
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name} is {_shown(value)}, expected a finite number")
    if isinstance(value, str) and not is_text(value):
        raise ValueError(f"{name} is {_shown(value)}, expected valid Unicode text")
    if value is None or isinstance(value, str | int | float):
        return value
    raise ValueError(f"{name} holds a {type(value).__name__}, expected text, a number, true, false or a list of these")


def _moment(value: object) -> str:
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        return utc(moment).isoformat()
    except (ValueError, OverflowError) as error:
        raise ValueError(f"updated_at is {_shown(value)}, expected a date such as 2024-05-01T10:00:00Z") from error


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _is_glob(key: str) -> bool:
    return not _GLOB_CHARACTERS.isdisjoint(key)


def _line_of(text: str, key: str) -> int | None:
    position = text.find(key)
    return text.count("\n", 0, position) + 1 if position >= 0 else None


def _broken(file: Path, line: int | None, found: str) -> SourceUnavailableError:
    place = f"{file}, line {line}" if line else str(file)
    return SourceUnavailableError(
        f"metadata file {place}: {found}; expected a YAML or JSON mapping of path to "
        "{title, updated_at, revision, url, authors, tags, …}. Correct it, or take 'metadata' out of the source."
    )
