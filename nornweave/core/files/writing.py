"""Write files atomically and for this user alone, and say in one sentence why that was not possible.

A reader sees the old file or the new one, even if the writer is killed. A full disk, missing memory and a missing write
permission are recognised in any error.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import re
import resource
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nornweave.core.errors import ConfigError, DiskFullError

PRIVATE = 0o600
# The next writer removes what a killed writer left. A living writer needs far less time than this.
ABANDONED_S = 3600.0

log = logging.getLogger(__name__)

UMASK = 0o077

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


def write_whole(file: Path, text: str, mode: int = PRIVATE) -> None:
    """Replace a file atomically and durably.

    A reader sees the old file or the new one. Each writer has a temporary file of its own, so two writers do not mix
    their texts. The last one to finish wins. A failure leaves no temporary file behind.

    Args:
        file: the file. Its folder must exist.
        text: the content, written as UTF-8.

    Raises:
        OSError: the file cannot be written. The old file stays.
    """
    _sweep(file)
    with _aside(file, text.encode(), mode) as written:
        written.replace(file)
    sync_path(file.parent)


def write_new(file: Path, content: bytes) -> None:
    """Create a file that only this user can read. If the file exists, do nothing.

    Args:
        file: the file. Its folder must exist.

    Raises:
        OSError: the file cannot be written.
    """
    with _aside(file, content, PRIVATE) as written, suppress(FileExistsError):
        os.link(written, file)


@contextmanager
def _aside(file: Path, content: bytes, mode: int) -> Iterator[Path]:
    """Yield a durable temporary file beside ``file`` that holds ``content``. Delete it at the end."""
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            sync_file(stream.fileno())
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def sync_file(descriptor: int) -> None:
    """Flush an open file to the disk. On macOS this takes more than ``fsync``, which only reaches the drive's cache."""
    with suppress(AttributeError, OSError):  # other systems do not have it, nor does every file system of macOS
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)  # type: ignore[attr-defined,unused-ignore]
        return
    os.fsync(descriptor)


def sync_path(path: Path) -> None:
    """Flush a file or the entries of a folder to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        sync_file(descriptor)
    finally:
        os.close(descriptor)


def _sweep(file: Path) -> None:
    """Delete old temporary files of ``file`` that killed writers left."""
    before = time.time() - ABANDONED_S
    for left in file.parent.iterdir():
        with suppress(FileNotFoundError):  # its writer is done
            if left.name.startswith(f".{file.name}.") and left.stat().st_mtime < before:
                left.unlink()


def user_cache(name: str) -> Path:
    """Return this user's cache folder for one kind of content."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nornweave" / name


def check_folder(data_dir: Path, *, make: bool = False) -> None:
    """Check that ``data_dir`` is a folder or can become one.

    Args:
        make: create the folder if it is missing. Without ``make``, the check cannot tell whether that works.

    Raises:
        ConfigError: it is not a folder and cannot become one.
        OSError: rights are missing, or the disk is full.
    """
    nearest = next(each for each in (data_dir, *data_dir.parents) if os.path.lexists(each))
    what = "" if nearest.is_dir() else f"{str(nearest)!r} is not a folder"
    try:
        if make and not what:
            data_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT}:
            raise
        what = error.strerror or type(error).__name__
    if what:
        raise ConfigError(f"data_dir: {str(data_dir)!r} cannot be made: {what}; name another folder in nornweave.yaml")


def keep_private(data_dir: Path, configuration: Path) -> None:
    """Make new files of this process and its children, and ``data_dir``, readable by this user alone.

    A folder that others may enter is closed, and so is everything in it. A folder stays as it is if it holds the
    configuration file or has the sticky bit, because then it is for everybody, such as ``/tmp``.

    Args:
        data_dir: the folder, which need not exist yet.
    """
    os.umask(UMASK)
    try:
        mode = data_dir.stat().st_mode
        if not mode & UMASK:
            return
        if configuration.is_relative_to(data_dir) or mode & stat.S_ISVTX:
            log.warning(
                "data_dir %s holds more than NornWeave's files and stays readable; name a folder of its own", data_dir
            )
            return
        data_dir.chmod(stat.S_IMODE(mode) & ~UMASK)
    except FileNotFoundError:
        return
    except OSError as error:
        log.warning("other users can read data_dir %s: %s; run 'chmod go= %s'", data_dir, error.strerror, data_dir)


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
