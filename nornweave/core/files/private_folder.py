"""The user's folders: everything that NornWeave writes is readable only by the user who runs it.

The umask makes every folder 0700 and every file 0600, those of DuckDB, SQLite, Dagster and child processes included.
"""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

log = logging.getLogger(__name__)

UMASK = 0o077
_EVERYBODYS = frozenset(map(Path, ("/tmp", "/var/tmp", "/dev/shm")))  # noqa: S108 - to keep away from them


def user_cache(name: str) -> Path:
    """Return the folder in which this user's programs keep what they can make again, by what it holds."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nornweave" / name


def keep_private(data_dir: Path, configuration: Path) -> None:
    """Make files of this process, its children and ``data_dir`` readable only by this user.

    A folder that others may enter is closed, and so is everything in it. One that holds the configuration file, or
    that is everybody's such as ``/tmp``, stays as it is.

    Args:
        data_dir: need not be there yet.
    """
    os.umask(UMASK)
    try:
        mode = data_dir.stat().st_mode
        if not mode & UMASK:
            return
        if configuration.is_relative_to(data_dir) or data_dir in _EVERYBODYS:
            log.warning(
                "data_dir %s holds more than NornWeave's files and stays readable; name a folder of its own", data_dir
            )
            return
        data_dir.chmod(stat.S_IMODE(mode) & ~UMASK)
    except FileNotFoundError:
        return
    except OSError as error:
        log.warning("other users can read data_dir %s: %s; run 'chmod go= %s'", data_dir, error.strerror, data_dir)
