"""The user's folders: only the user who runs NornWeave can read what it writes.

The umask makes every folder 0700 and every file 0600, those of DuckDB, SQLite, Dagster and child processes included.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
from pathlib import Path

from nornweave.core.errors import ConfigError

log = logging.getLogger(__name__)

UMASK = 0o077


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
