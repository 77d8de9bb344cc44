"""Read sidecar files: dates, authors and addresses of files that exports and fresh clones lose.

A YAML or JSON mapping of path → record::

    papers/attention.pdf: {title: Attention Is All You Need, updated_at: 2017-06-12, authors: [Vaswani, Shazeer]}

Keys are paths relative to the source's root. Aliases (``*name``) are not read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path

import yaml

from nornweave.core.errors import ConfigError, DocumentError, SourceUnavailableError
from nornweave.core.files.paths import is_text, unsafe_path
from nornweave.core.text.dates import utc
from nornweave.core.text.decode import MAX_BYTES, check_size
from nornweave.core.types import Entry, JsonValue, Metadata, canonical_json, digest, freeze
from nornweave.read.plain_yaml import load_plain_yaml

_SHOWN = 200
_TEXTS = frozenset({"title", "url", "revision"})


def dated(entry: Entry, records: Mapping[str, Metadata]) -> Entry:
    """Return a document with everything that a sidecar says about its path; its gate changes with that."""
    record = records.get(entry.path)
    if not record:
        return entry
    stated, revision = record.get("updated_at"), record.get("revision")
    return replace(
        entry,
        gate=f"{entry.gate}-{digest(canonical_json(record))}",
        updated_at=datetime.fromisoformat(stated) if isinstance(stated, str) else entry.updated_at,
        revision=revision if isinstance(revision, str) else None,
        metadata=record,
    )


def load_sidecar(file: Path) -> Mapping[str, Metadata]:
    """Read a sidecar; return its records by path.

    Raises:
        SourceUnavailableError: it is missing, unreadable or broken: the file, what was found and what is expected.
    """
    try:
        with file.open("rb") as opened:
            raw = opened.read(MAX_BYTES + 1)
        check_size(len(raw))
        text = raw.decode("utf-8-sig")
        loaded = json.loads(text) if file.suffix.lower() == ".json" else load_plain_yaml(text)
        return _checked({} if loaded is None else loaded)
    except OSError as error:
        raise _broken(file, f"it cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, ConfigError, DocumentError, RecursionError, ValueError) as error:
        raise _broken(file, " ".join(str(error).split())[:_SHOWN]) from error


def _checked(loaded: object) -> dict[str, Metadata]:
    if not isinstance(loaded, dict):
        raise ValueError(f"it holds a {type(loaded).__name__}")  # noqa: TRY004 - translated with the file above
    records = {}
    for key, fields in loaded.items():
        path = str(key).removeprefix("./")
        if reason := unsafe_path(path):
            raise ValueError(reason)
        if "*" in path:
            raise ValueError(f"{path[:40]!r} is a glob, expected the path of one file")
        if not isinstance(fields, dict):
            found = f"{path!r}: found {type(fields).__name__}"
            raise ValueError(f"{found}, expected a mapping such as {{title: …}}")  # noqa: TRY004 - as above
        records[path] = freeze(
            {str(name): _value(f"{path!r}: {name}", str(name), each) for name, each in fields.items()}
        )
    return records


def _value(place: str, name: str, value: object) -> JsonValue:
    if name == "updated_at":
        return _moment(place, value)
    if name in _TEXTS:
        if isinstance(value, list | dict):
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
        raise ValueError(f"{place} holds a {type(value).__name__} {str(value)[:40]!r}, expected {expected}")
    return value


def _moment(place: str, value: object) -> str:
    try:
        return utc(datetime.fromisoformat(str(value))).isoformat()
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{place} is {str(value)[:40]!r}, expected a date such as 2024-05-01T10:00:00Z") from error


def _broken(file: Path, found: str) -> SourceUnavailableError:
    return SourceUnavailableError(
        f"metadata file {file}: {found}; expected a YAML or JSON mapping of path to "
        "{title, updated_at, revision, url, authors, tags, …}. Correct it, or take 'metadata' out of the source."
    )
