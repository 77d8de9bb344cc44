"""Open a file of somebody else, which may be anything by now."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from nornweave.core.errors import DocumentError
from nornweave.core.text.decode import MAX_BYTES, check_size


def read_regular(path: str | Path, max_bytes: int = MAX_BYTES, *, follows: bool = True) -> bytes:
    """Read a regular file of a bounded size; see ``open_regular``.

    Raises:
        DocumentError: it is not a regular file, or larger than ``max_bytes``.
        OSError: it cannot be read.
    """
    with open_regular(path, follows=follows) as file:
        check_size(os.fstat(file.fileno()).st_size, max_bytes)
        raw = file.read(max_bytes + 1)
    check_size(len(raw), max_bytes)
    return raw


def open_regular(path: str | Path, *, follows: bool = True) -> BinaryIO:
    """Open a regular file for reading; a pipe or a device neither blocks nor goes on for ever.

    Args:
        follows: whether it may be a link. A resolved path is none, so one that appears there is foul play.

    Raises:
        DocumentError: it is not a regular file.
        OSError: it cannot be opened.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follows else os.O_NOFOLLOW)
    descriptor = os.open(path, flags)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "it is a folder by now")
        raise DocumentError("it is not a regular file; exclude it")
    return os.fdopen(descriptor, "rb")
