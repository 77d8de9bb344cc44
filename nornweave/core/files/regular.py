"""Open a file of somebody else, which may be anything by now."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from nornweave.core.errors import DocumentError


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
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DocumentError("it is not a regular file; exclude it")
    return os.fdopen(descriptor, "rb")
