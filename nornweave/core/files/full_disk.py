"""Recognise a full disk, missing memory and missing write permission in any error, and describe it in one sentence."""

from __future__ import annotations

import errno
import os
import re
import resource
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nornweave.core.errors import DiskFullError

_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT})
_REFUSED = frozenset({errno.EACCES, errno.EROFS, errno.EPERM})
_READ_ONLY = re.compile(r"readonly database|read-only (?:file system|mode)|permission denied", re.IGNORECASE)
_SAID = re.compile(r"no space left on device|disk quota exceeded|database or disk is full", re.IGNORECASE)
# Messages that also occur on a disk with room: SQLite about shared memory, DuckDB about its temporary files.
_HINTED = re.compile(r"disk i/o error|max_temp_directory_size|no usable temporary directory", re.IGNORECASE)
_TOO_LARGE = re.compile(r"file too large", re.IGNORECASE)
_NO_MEMORY = re.compile(r"cannot allocate memory|failed to map segment|can't start new thread", re.IGNORECASE)
_PATH = re.compile(r"/[^\s'\":,;]+")
_NOTHING_LEFT = 1 << 20
_MIB = 1 << 20


@contextmanager
def translate_full_disk(folder: Path) -> Iterator[None]:
    """Translate errors of a full disk into ``DiskFullError``; any other error passes unchanged.

    Args:
        folder: the folder that is written to, used if the error names no file.

    Raises:
        DiskFullError: a disk is full.
    """
    try:
        yield
    except DiskFullError:
        raise
    except Exception as error:
        if reason := full_disk(error, folder):
            raise DiskFullError(reason) from error
        raise


def full_disk(error: BaseException, *folders: Path) -> str | None:
    """Return a message if a full disk or a limit of the file size caused an error, else ``None``.

    Args:
        folders: folders that may have been written to. Files that the error names are checked first.
    """
    chain = tuple(_chain(error))
    text = "\n".join(str(cause) for cause in chain)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if _TOO_LARGE.search(text) or (limit != resource.RLIM_INFINITY and _HINTED.search(text)):
        return (
            f"a file may have {limit:,} bytes at most (`ulimit -f`), and one needs more. Raise that limit and try "
            "again; what was published before still answers"
        )
    place = _full_folder([*_places(chain, text), *folders, Path(tempfile.gettempdir())])
    usage = shutil.disk_usage(place)
    is_said = _SAID.search(text) or any(isinstance(cause, OSError) and cause.errno in _ERRORS for cause in chain)
    if not is_said and not (_HINTED.search(text) and usage.free < _NOTHING_LEFT):
        return None
    return (
        f"the disk that holds {str(place)!r} is full: {usage.free // _MIB:,} MiB of {usage.total // _MIB:,} MiB are "
        "free. Free some space there, or set data_dir to a folder on a larger disk, and try again; what was published "
        "before still answers"
    )


def no_memory(error: BaseException) -> str | None:
    """Return a message if missing memory caused an error, else ``None``."""
    chain = tuple(_chain(error))
    if not any(isinstance(one, MemoryError) or _NO_MEMORY.search(str(one)) for one in chain):
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    bound = "" if limit == resource.RLIM_INFINITY else f": this process may have {limit // _MIB:,} MiB (`ulimit -v`)"
    return f"there is too little memory{bound}. Give it more and try again; what was published before still answers"


def not_writable(error: BaseException) -> str | None:
    """Return a message if a missing write permission caused an error, else ``None``."""
    chain = tuple(_chain(error))
    refused = [one for one in chain if isinstance(one, OSError) and one.errno in _REFUSED]
    text = "\n".join(str(one) for one in chain)
    if not refused and not _READ_ONLY.search(text):
        return None
    place = next((str(one.filename) for one in refused if one.filename), "") or next(_places(chain, text), "data_dir")
    return (
        f"{str(place)!r} may not be written: give this user the right to write below data_dir, or set data_dir to a "
        "folder that it may write; what is published can still be queried"
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        yield following
        following = following.__cause__ or following.__context__


def _places(chain: tuple[BaseException, ...], text: str) -> Iterator[Path]:
    for cause in chain:
        if isinstance(cause, OSError) and isinstance(cause.filename, str):
            yield Path(cause.filename).absolute()
    for match in _PATH.finditer(text):
        path = Path(match[0])
        if os.path.isdir(path.parent) and path.parent != Path("/"):  # noqa: PTH112 - web addresses look like paths too
            yield path


def _full_folder(places: list[Path]) -> Path:
    """Return the first of these folders whose disk is full; the first folder if no disk is full.

    For a path that is not a folder, use its nearest parent folder that exists.
    """
    # Not Path.is_dir(): that raises where a folder on the way may not be searched.
    there = [next(folder for folder in (place, *place.parents) if os.path.isdir(folder)) for place in places]  # noqa: PTH112
    return next((folder for folder in there if shutil.disk_usage(folder).free < _NOTHING_LEFT), there[0])
